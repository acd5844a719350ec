// Routers in the commands: `synth -a ROUTER`, rows of `compare`, `verify F.routes`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common.h"
#include "tutti/route/router.h"
#include "tutti/sched/routing.h"
#include "tutti/sim/flow_simulator.h"
#include "tutti/topo/topology.h"

namespace tutti::cli {

struct RoutingFlags {
  double gap = -1;  // below 0: the router's own
  double time_limit = 0;
  std::string paths = "disjoint";
  std::string max_chunks = "auto";  // or none, or a number
  int32_t max_paths = 0;
  bool no_bound = false;
  std::string layering;                // empty and no number of layers: none are made
  std::optional<int32_t> layers = {};  // at most; 0: as many as it takes

  // From --max-chunks: nullopt for none, 0 for auto.
  std::optional<int64_t> MaxChunks() const;
  // The same for algorithms that make schedules; 0: their default.
  int32_t MaxChunksOfSchedule() const;

  // --gap, --time-limit, --paths, --max-chunks, --max-paths, --layering, --layers, --no-bound
  void AddTo(Command command);
};

// "mcf, mcf-extp, ..."
std::string RouterNames();

struct RoutingJob {
  std::string algorithm, output;  // output: empty for none
  uint64_t seed = 1;
  int64_t size_bytes = 0;  // [M]
  bool verify = true;
};

// The exit code. Refuses collectives other than all-to-all(v).
int SynthesizeRouting(const Program& program, const Topology& topology,
                      const CollectiveFlags& collective, const RoutingFlags& flags,
                      const RoutingJob& job);

// The rows of routers in `compare`: adds them to out["rows"]. Text: the table, and `reasons` gets
// why a router is not in it. kInvalidArgument as SynthesizeRouting; kCancelled.
Result<std::string> CompareRouters(const Topology& topology, const CollectiveFlags& collective,
                                   const RoutingFlags& flags,
                                   const std::vector<const Router*>& routers, uint64_t seed,
                                   const std::vector<int64_t>& sizes, Json& out,
                                   std::string& reasons);

// No routing of this all-to-all(v), also within groups, has a larger rate on this network: by the flow
// that any routing is, and by the host limits. As close to the best as `gap`. Of an unwinding it is
// the limit of the network that was unwound, in links of the unwinding.
Result<Rational> LimitOfRate(const Topology& topology, const Collective& collective, double gap,
                             double max_seconds);
inline constexpr double kLimitGap = 1e-3;

// Seconds for size M when every pair sends at rate f: what the busiest link or host needs.
double SecondsAt(const Topology& topology, const Routing& routing, const Collective& collective,
                 const Rational& f, int64_t size);

// --- Commands on routing files

// `tutti verify`. What a routing file holds and whether it is right. `topology`: as in --topology,
// or empty.
struct RoutingVerdict {
  Json out;
  std::string subject;
  int64_t violations = 0;
  std::vector<std::pair<std::string, std::string>> shown;  // kind, message
};
Result<RoutingVerdict> JudgeRouting(const std::string& path, const std::string& topology,
                                    int32_t most);

// `tutti cost`.
int CostOfRoutingFile(const Program& program, const std::string& path,
                      const std::vector<int64_t>& sizes);

// `tutti sim`. `links`: how many of the busiest to show.
int SimulateRoutingFile(const Program& program, const std::string& path,
                        const std::vector<int64_t>& sizes, ForwardingPlace forwarding,
                        int32_t links);

}  // namespace tutti::cli
