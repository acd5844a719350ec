// Synthesizers: algorithms that make a schedule for a topology and a collective. One folder of
// src/synth a family; one line a synthesizer in src/synth/registry.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

// Whether slow links leave to faster ones what those are about to bring (ten).
enum class Waiting : uint8_t { kAuto, kAlways, kNever };

// An all-gather of `tl` steps: the least TB (M/B) that was found, and what none is below.
struct StepPoint {
  int32_t tl = 0;
  Rational tb, tb_limit;
};

// What an answer is worth beyond being correct: of searches that may end before they have proven
// that nothing is better.
struct SynthNotes {
  std::optional<double> gap = {};  // (it - the proven limit) / it, in the unit of `remark`
  std::string remark = {};
  double chunk_loss = 0;  // what finer chunks, not worth their messages, would save of the time
  std::optional<Rational> tb_limit = {};  // no schedule of any algorithm has a smaller TB (M/B)
  std::vector<StepPoint> frontier = {};   // of the network, ascending in tl, descending in tb
};

// Options that only some algorithms have; each declares its own (Synthesizer::options). A new one is
// a field of SynthOptions, a name here and a row in src/synth/options.cc.
enum class SynthOption : uint8_t {
  kTries,
  kAutoChunks,
  kPolicy,
  kWaiting,
  kFinalPass,
  kSteps,
  kMaxChunks,
  kMaxSeconds,
  kTrees,
  kMulticast,
};

struct SynthOptions {
  int32_t chunks = 0;  // P equal chunks per shard; 0: what the algorithm needs
  uint64_t seed = 1;
  int64_t size_bytes = int64_t{1} << 30;  // [M], where the best schedule depends on it
  // What a chunk may not be smaller than: more chunks than that are refused, those that an
  // algorithm needs too, and those that it chooses are as large as messages are worth
  // (WorthwhileChunkBytes). 0: shards are cut as finely as exactness wants, whatever their size.
  int32_t element_bytes = 0;
  LinkModel link_model = LinkModel::kHeld;  // of timed schedules

  // Those of SynthOption.
  int32_t tries = 0;  // the best of so many variants; 0: the algorithm's default
  // Instead of `chunks`: as many as are predicted to be fastest for size_bytes.
  bool auto_chunks = false;
  std::string policy{};  // which chunk goes first; empty: as the algorithm finds best
  Waiting waiting = Waiting::kAuto;
  bool final_pass = true;  // transfers are moved earlier and useless ones dropped
  int32_t steps = 0;       // of the schedule; 0: what takes the least time
  int32_t max_chunks = 0;  // the most chunks per shard that it chooses from; 0: its default
  double max_seconds = 0;  // of searches by integer programs; 0: their default
  int32_t trees = 0;       // spanning trees a root at most; 0: what is fastest
  bool multicast = false;  // switches copy what they forward to several ports

  SynthNotes* notes = nullptr;  // where to leave them
};

// What is known of a run before it is made, from sizes alone: the same on every machine.
struct Forecast {
  int64_t work_ns = 0;     // about, on one core
  bool steps_only = true;  // no timed schedule comes of it
  int32_t min_steps = 0;   // of the schedule; 0: as few as the network allows
};
// A run that takes `ns` for each chunk at each rank that it goes to or comes from.
Forecast ForecastByDeliveries(const Collective& collective, const SynthOptions& options,
                              int64_t ns);
inline constexpr int64_t kUsualNsADelivery = 1000;

// So many chunks of the largest shard are not smaller than `smallest_bytes`; at least 1.
int64_t MostChunks(const Collective& collective, int64_t size_bytes, int64_t smallest_bytes);
// Finer chunks are not worth while: a link that carries whole chunks carries at most one more than
// its share in a step, and of this size one takes a sixteenth of any link's alpha at most.
int64_t WorthwhileChunkBytes(const Topology& topology);

// Which collectives within groups of ranks (coll/collective.h) an algorithm makes.
enum class GroupUse : uint8_t {
  kNone,
  kOwnLinks,       // over links between the members of a group
  kThroughOthers,  // also where ranks outside the group forward
  kTogether,       // all groups in one go, looking at what the others send
};

struct Synthesizer {
  std::string_view name;         // as in `-a name`
  std::string_view description;  // one line
  std::vector<CollectiveKind> collectives;
  // The schedule obeys S1 .. S4, carries the topology's fingerprint, the algorithm and the seed.
  // kInfeasible: this algorithm has no schedule for this network (says why).
  Result<Schedule> (*synthesize)(const Topology&, const Collective&, const SynthOptions&);
  // What the collective of `-a name` looks like: trees want all-reduce over one shard.
  bool one_shard_all_reduce = false;
  bool on_request_only = false;  // may take minutes: `tutti compare` runs it only when it is named
  // Makes what reduces on networks with switches as they are: ranks reduce, switches forward.
  bool reduces_through_switches = false;
  // More or fewer chunks than its default may be faster: `-a auto` tries several.
  bool chunk_choice = false;
  // nullptr: by deliveries, kUsualNsADelivery each.
  Forecast (*forecast)(const Topology&, const Collective&, const SynthOptions&) = nullptr;
  std::vector<SynthOption> options = {};  // that it has
  GroupUse groups = GroupUse::kNone;

  bool Has(SynthOption option) const;
  bool Makes(CollectiveKind kind) const;
};

// In the order in which `tutti compare` shows them by default.
std::span<const Synthesizer> Synthesizers();
// kNotFound lists the accepted names.
Result<const Synthesizer*> FindSynthesizer(std::string_view name);

// kInvalidArgument: an option that this synthesizer does not have, naming those that do.
Status CheckSynthOptions(const Synthesizer& synthesizer, const SynthOptions& options);
// With the defaults of those that it does not have.
SynthOptions OptionsFor(const Synthesizer& synthesizer, SynthOptions options);

// What callers use: refuses a collective the synthesizer does not make (kInfeasible, naming those
// it makes) and a collective of another number of ranks, then synthesizes. One rank, or none that
// needs anything: the empty schedule. With options.element_bytes smaller chunks are
// kInvalidArgument where options.chunks asks for them, kInfeasible where the algorithm needs them.
// Errors also as CheckSynthOptions.
Result<Schedule> RunSynthesizer(const Synthesizer& synthesizer, const Topology& topology,
                                const Collective& collective, const SynthOptions& options);

// Builds schedules of other collectives from an all-gather (or broadcast) maker, as
// [direct-connect] Appendix B: reduce-scatter is the reversed all-gather, on the same links where
// every link has a twin in the other direction, through an isomorphism to the transpose where one
// is found, and otherwise made on the transpose and reversed (corollary 1.1). All-reduce is
// reduce-scatter + all-gather. `make` gets the topology to work on and the collective it must make
// (kAllGather, or kBroadcast for broadcast, reduce and one-shard all-reduce).
using MakeForward = std::function<Result<Schedule>(const Topology&, const Collective&)>;
Result<Schedule> DeriveFromForward(const Topology& topology, const Collective& collective,
                                   const MakeForward& make);

}  // namespace tutti
