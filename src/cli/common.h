// What the commands share: global flags, exit codes, output of tables and JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/coll/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/sched/schedule.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {

using Json = nlohmann::ordered_json;

// Exit codes of every command (design.md section 4).
inline constexpr int kDone = 0, kAnswerIsNo = 1, kBadInput = 2;

// What a parsed command line asks for: set by the subcommand's callback, run by main().
struct Program {
  CLI::App app;
  bool json = false;
  bool verbose = false;  // log what takes how long, to stderr
  int threads = 0;
  std::function<int()> action;

  Program();
  // A subcommand with --json, -j and an example in its help.
  CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& description,
                       const std::string& example);
};

// One line a command, in the order of the help.
void AddTopo(Program& program);
void AddSynth(Program& program);
void AddVerify(Program& program);
void AddCost(Program& program);
void AddSim(Program& program);
void AddCompare(Program& program);
void AddFlow(Program& program);
void AddLower(Program& program);
void AddRun(Program& program);
void AddDesign(Program& program);
void AddTrain(Program& program);
void AddMpi(Program& program);
void AddBench(Program& program);
void AddDocs(Program& program);

// Prints "tutti: error: ..." to stderr; the exit code for it.
int Report(const Error& error);

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
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  Last last_;
};

// "12.3 us", "1.50 GB/s", "97.2 %".
std::string Seconds(double seconds);
std::string BytesPerSecond(double value);
std::string Percent(double ratio);
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

// A matrix of sizes, row by row: CSV, or blanks as in the files of nccl-tests.
Result<std::vector<int64_t>> ReadDemand(const std::string& path);

// --chunks N, or auto.
class ChunksFlag {
 public:
  void AddTo(CLI::App* command);
  bool is_auto() const { return text_ == kAuto; }
  int32_t count() const;  // 0: what the algorithm needs

 private:
  static constexpr const char* kAuto = "auto";
  std::string text_ = "0";  // checked
};

// Options that say which collective: -c, --root, --demand.
struct CollectiveFlags {
  std::string name = "all-gather";
  int32_t root = 0;
  std::string demand_path;

  void AddTo(CLI::App* command);
  Result<Collective> Make(const Topology& topology, bool one_shard_all_reduce) const;
};

int32_t DiameterOf(const Topology& topology);

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
  double bound_s = 0;
  double efficiency = 0;
};
Result<Evaluation> Evaluate(const Topology& topology, const Schedule& schedule, int64_t size_bytes);
// Keys `tl tl_bound tb tb_bound alpha_s time_s bound_s efficiency algbw busbw ...`.
void DescribeEvaluation(const Schedule& schedule, const Evaluation& evaluation, int64_t size_bytes,
                        Json& out);
std::string EvaluationText(const Schedule& schedule, const Evaluation& evaluation,
                           int64_t size_bytes);

// Keys that name limits which are no bounds: `ideal_s`, `rsag_s`.
void DescribeLimits(const Bounds& bounds, int64_t size_bytes, Json& out);

}  // namespace tutti::cli
