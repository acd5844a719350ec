// What the commands share: global flags, exit codes, output of tables and JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flags.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/sched/placement_search.h"
#include "tutti/sched/schedule.h"
#include "tutti/verify/verifier.h"

namespace tutti {
struct Synthesizer;
struct SynthOptions;
}  // namespace tutti

namespace tutti::cli {

using Json = nlohmann::ordered_json;

// Exit codes of every command. One that a signal ends has 128 + its number, as a shell says it: 130
// after Ctrl-C, 143 after SIGTERM, 141 where the reader of its output has gone.
inline constexpr int kDone = 0, kAnswerIsNo = 1, kBadInput = 2, kInterrupted = 130,
                     kReaderGone = 141;

// The command line and what every command has.
struct Program {
  CommandLine line;
  std::vector<std::string> arguments = {};  // as they were given, the program's name first
  bool json = false;
  bool verbose = false;  // log what takes how long, to stderr
  int threads = 0;
  std::string color = "auto";

  Program();
  // A subcommand with --json, --color, -j and an example in its help.
  Command AddCommand(Command parent, const std::string& name, const std::string& description,
                     const std::string& example);
};

// What a program's main() does: signals, progress, errors, exit codes.
int RunProgram(int argc, char** argv, void (*add_commands)(Program&));

// One line a command, in the order of the help.
void AddTopo(Program& program);
void AddSynth(Program& program);
void AddVerify(Program& program);
void AddCost(Program& program);
void AddSim(Program& program);
void AddCompare(Program& program);
void AddExplain(Program& program);
void AddDiff(Program& program);
void AddExplore(Program& program);
void AddAdvise(Program& program);
void AddFlow(Program& program);
void AddLower(Program& program);
void AddRules(Program& program);
void AddRun(Program& program);
void AddRunRanks(Program& program);
void AddCalibrate(Program& program);
void AddDesign(Program& program);
void AddTrain(Program& program);
void AddMpi(Program& program);
void AddBench(Program& program);
void AddService(Program& program);
void AddDocs(Program& program);

// Whether text on a terminal is coloured: "auto" (on a terminal, without NO_COLOR in the
// environment and TERM=dumb), "always" or "never". Before it is called: "auto".
void SetColor(const std::string& when);

// Prints "tutti: error: ..." to stderr, on a line of its own; Report also gives the exit code for
// it.
void PrintError(const std::string& message);
bool PrintedError();  // async-signal-safe
int Report(const Error& error);

// Prints that the command was interrupted, unless another process of the same job is left to say so.
void PrintInterrupted();
void LeaveInterruptionToOthers();
bool InterruptionIsLeftToOthers();  // async-signal-safe

// Bytes that are no UTF-8 (of file names) are replaced by U+FFFD.
void Print(const Json& json);

// {"num": .., "den": .., "value": ..}
Json ToJson(const Rational& value);

// The first column is left-aligned, the others right-aligned; with kProse the last is text too.
class Table {
 public:
  enum class Last { kNumber, kProse };
  explicit Table(std::vector<std::string> header, Last last = Last::kNumber)
      : rows_{std::move(header)}, last_(last) {}
  void AddRow(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // The row added last is the best: it stands out where there are colours.
  void MarkBest() { MarkBest(rows_.size() - 2); }
  void MarkBest(size_t row) { best_.insert(row + 1); }
  // For standard output.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::set<size_t> best_;
  Last last_;
};

// "12.3 us", "1.50 GB/s", "97.2 %".
std::string Seconds(double seconds);
std::string BytesPerSecond(double value);
std::string Percent(double ratio);
// "1,511,459,389,440"
std::string Count(int64_t count);
// "15/16 = 0.9375"; the number alone when it is whole, the decimals alone when the fraction is
// long.
std::string Exact(const Rational& value);

int64_t PeakRssBytes();

// Prints what is wrong with a schedule that was just made; an error that says what becomes of it
// ("nothing was written"). Also where the proof was interrupted. Fine where all is proven.
Status RequireVerified(const VerifyReport& report, const std::string& algorithm,
                       const std::string& consequence);

// The parts of a comma-separated list; of "" one that is empty.
std::vector<std::string> SplitAtCommas(const std::string& text);

// A comma-separated list of sizes, each at least 1 byte.
Result<std::vector<int64_t>> ParseSizes(const std::string& text);

// The file of a demand matrix (tutti/coll/demand.h).
Result<std::vector<int64_t>> ReadDemand(const std::string& path);

// --chunks N, or auto.
class ChunksFlag {
 public:
  void AddTo(Command command);
  bool is_auto() const { return text_ == kAuto; }
  int32_t count() const;  // 0: what the algorithm needs

 private:
  static constexpr const char* kAuto = "auto";
  std::string text_ = "0";  // checked
};

// --type: what the buffers hold. Chunks are at least one element.
class ElementFlag {
 public:
  void AddTo(Command command);
  Status Check() const;
  int32_t bytes() const;  // of a checked one

 private:
  std::string type_ = "float";
};
// kInvalidArgument: --chunks asks for chunks below one element at the smallest of the sizes.
Status CheckChunksExist(const Collective& collective, const ChunksFlag& chunks,
                        const std::vector<int64_t>& sizes, const ElementFlag& element);

// Options that say which collective, and within which groups of ranks: -c, --root, --demand, --group,
// --groups, --others, --placement.
struct CollectiveFlags {
  std::string name = "all-gather";
  int32_t root = 0;
  std::string demand_path;
  std::string group, groups, others = "forward", placement;
  std::optional<FoundPlacement> best;  // of --placement best, once it was looked for

  void AddTo(Command command);
  bool has_groups() const { return !group.empty() || !groups.empty() || !placement.empty(); }
  // The files that are read.
  std::vector<std::string> Inputs() const;
  // --placement best: finds `best`, for the schedule of this algorithm; where it makes none of groups, or
  // for null, for that of direct. Else nothing.
  Status FindBest(const Topology& topology, const Synthesizer* synthesizer,
                  const SynthOptions& options);
  // --placement best without a `best`: as FindBest() finds it for null and the default size.
  Result<Collective> Make(const Topology& topology, bool one_shard_all_reduce) const;

 private:
  bool wants_best() const { return placement == "best" && !best; }
  Result<Collective> MakeAt(const std::vector<NodeId>* placed, const Topology& topology,
                            bool one_shard_all_reduce) const;
};

// "  placement    ..."; empty where none was looked for.
std::string PlacementText(const CollectiveFlags& flags);
void DescribePlacement(const CollectiveFlags& flags, Json& out);

// Key `groups` where there are some.
void DescribeGroups(const Collective& collective, Json& out);
// ", in 8 groups of 64"; empty without.
std::string GroupsText(const Collective& collective);

// Its name, or "an unnamed network".
std::string NameOf(const Topology& topology);

// [alltoall-mcf] Theorem 1, where the network is regular, without switches and with equal links.
std::optional<Rational> MooreFlowOf(const Topology& topology);

// Keys `topology nodes ranks links degree diameter`.
void DescribeTopology(const Topology& topology, Json& out);
// The same where the diameter is known, or unknown and too dear.
void DescribeTopology(const Topology& topology, std::optional<int32_t> diameter, Json& out);
// Keys `collective algorithm seed chunks steps transfers`.
void DescribeSchedule(const Schedule& schedule, Json& out);

// Everything analytic that is known of a schedule at one size.
struct Evaluation {
  StepCost cost;      // step schedules
  double time_s = 0;  // barrier cost, or the completion of a timed schedule
  Bounds bounds;
  double bound_s = 0;       // of every schedule
  double step_bound_s = 0;  // of step schedules with barriers
  double efficiency = 0;    // bound_s / time_s
};
// `bounds`: BoundsOf() of synth/proven_bounds.h.
Evaluation Evaluate(const Topology& topology, const Schedule& schedule, int64_t size_bytes,
                    const Bounds& bounds);
// bound / time; 1 where there is nothing to do.
double Efficiency(double bound_s, double time_s);
// Keys `tl tl_bound tb tb_bound alpha_s time_s bound_s step_bound_s efficiency algbw busbw ...`.
void DescribeEvaluation(const Schedule& schedule, const Evaluation& evaluation, int64_t size_bytes,
                        Json& out);
std::string EvaluationText(const Schedule& schedule, const Evaluation& evaluation,
                           int64_t size_bytes);

// Keys that name limits which are no bounds: `ideal_s`, `rsag_s`.
void DescribeLimits(const Bounds& bounds, int64_t size_bytes, Json& out);

}  // namespace tutti::cli
