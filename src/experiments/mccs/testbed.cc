#include "mccs/testbed.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"
#include "tutti/base/process.h"
#include "tutti/base/progress.h"

namespace tutti::mccs {
namespace {

using Json = nlohmann::json;

constexpr int kSkipped = 77;
constexpr const char* kFailedBefore = "failed_before";  // in what is kept of a run

Json ToJson(const TestbedTenant& tenant) {
  Json ranks = Json::array();
  for (const Place& place : tenant.ranks)
    ranks.push_back({fmt::format("H{}", place.host), place.device});
  return {{"name", tenant.name},          {"ranks", ranks},
          {"size", tenant.bytes},         {"class", tenant.priority},
          {"compute", tenant.compute_ms}, {"collective", tenant.collective}};
}

Json SpecOf(const TestbedRun& run) {
  Json spec{{"topology", run.network}, {"tenants", Json::array()}, {"steps", Json::array()}};
  if (run.follow_s > 0) spec["follow"] = run.follow_s;
  for (const TestbedTenant& tenant : run.tenants) spec["tenants"].push_back(ToJson(tenant));
  for (const TestbedStep& step : run.steps) {
    Json json = Json::parse(step.what);
    json["after"] = step.after_s;
    spec["steps"].push_back(std::move(json));
  }
  spec["steps"].push_back({{"after", run.last_s}, {"stop", true}});
  return spec;
}

TestbedOutcome OutcomeOf(const Json& json) {
  TestbedOutcome outcome;
  for (const auto& [name, tenant] : json.at("tenants").items())
    for (const Json& iteration : tenant.at("iterations"))
      outcome.tenants[name].push_back({iteration.at(0), iteration.at(1)});
  for (const Json& step : json.at("steps")) {
    outcome.steps.emplace_back(step.at("begin_s"), step.at("end_s"));
    outcome.errors.push_back(step.at("error"));
  }
  const Json& steps = json.at("steps");
  outcome.end_s = steps.at(steps.size() - 1).at("begin_s");  // the one that stops, or none: thrown
  outcome.steps.pop_back();
  outcome.errors.pop_back();
  outcome.failed_before = json.value(kFailedBefore, 0);
  return outcome;
}

struct Programs {
  std::string testbed, cluster;
};

Result<Programs> FindPrograms() {
  constexpr const char* kRemedy = "it is part of Tutti's build and installation";
  Result<std::string> testbed = FindProgram("tutti-testbed", kRemedy);
  if (!testbed) return tl::unexpected(testbed.error());
  Result<std::string> cluster = FindProgram("tutti-testbed-cluster", kRemedy);
  if (!cluster) return tl::unexpected(cluster.error());
  return Programs{*std::move(testbed), *std::move(cluster)};
}

// What a run printed.
Result<std::string> OutputOf(const Programs& programs, const TestbedRun& run) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  std::string output, errors;
  const Result<ProcessEnd> end =
      RunProcess({programs.testbed, "--seed", std::to_string(run.seed), run.switches, "--",
                  programs.cluster, "-"},
                 [&](std::string_view line, ProcessStream stream) {
                   std::string& text = stream == ProcessStream::kOutput ? output : errors;
                   text += std::string(line) + "\n";
                 },
                 {.input = SpecOf(run).dump()});
  if (!end) return tl::unexpected(end.error());
  if (end->status == kSkipped) return MakeError(ErrorCode::kNotFound, errors);
  if (!end->ok())
    return MakeError(ErrorCode::kIo, fmt::format("the testbed ended with {}: {}", end->ToText(),
                                                 errors.empty() ? output : errors));
  return output;
}

Result<TestbedOutcome> Parsed(const Result<std::string>& output) {
  if (!output) return tl::unexpected(output.error());
  try {
    return OutcomeOf(Json::parse(*output));
  } catch (const Json::exception& fault) {
    return MakeError(ErrorCode::kCorrupt,
                     fmt::format("what the testbed printed is not understood: {}", fault.what()));
  }
}

// What runs printed, a file each.
class KeptRuns {
 public:
  // "": keeps nothing.
  static Result<KeptRuns> Open(const std::string& folder, const Programs& programs) {
    KeptRuns kept;
    if (folder.empty()) return kept;
    constexpr const char* kRemedy = "it is part of Tutti's build and installation";
    for (const char* name : {"tutti", "tuttid", "tutti-controller"}) {
      const Result<std::string> path = FindProgram(name, kRemedy);
      if (!path) return tl::unexpected(path.error());
      if (Status status = kept.AddFile(*path); !status) return tl::unexpected(status.error());
    }
    for (const std::string& path : {programs.testbed, programs.cluster})
      if (Status status = kept.AddFile(path); !status) return tl::unexpected(status.error());
    std::error_code fault;
    std::filesystem::create_directories(folder, fault);
    kept.folder_ = folder;
    return kept;
  }

  // nullopt: not made yet, or not understood.
  std::optional<TestbedOutcome> Find(const TestbedRun& run) const {
    if (folder_.empty()) return std::nullopt;
    const Result<std::string> output = ReadFile(PathOf(run));
    if (!output) return std::nullopt;
    Result<TestbedOutcome> outcome = Parsed(output);
    if (!outcome) return std::nullopt;
    outcome->kept = true;
    return *std::move(outcome);
  }

  // `output`: what Parsed() understands.
  Status Keep(const TestbedRun& run, const std::string& output, int32_t failures) const {
    if (folder_.empty()) return {};
    Json json = Json::parse(output);
    json[kFailedBefore] = failures;
    return WriteFileAtomically(PathOf(run), json.dump());
  }

 private:
  Status AddFile(const std::string& path) {
    const Result<std::string> bytes = ReadFile(path);
    if (!bytes) return tl::unexpected(bytes.error());
    programs_.AddBytes(*bytes);
    return {};
  }

  std::string PathOf(const TestbedRun& run) const {
    Fnv1a hash = programs_;
    hash.AddBytes(fmt::format("{} {} {}", run.switches, run.seed, SpecOf(run).dump()));
    return fmt::format("{}/testbed-{:016x}.json", folder_, hash.value());
  }

  std::string folder_;
  Fnv1a programs_;
};

Result<TestbedOutcome> KeptOrMade(const Programs& programs, const KeptRuns& kept,
                                  const TestbedRun& run) {
  constexpr int32_t kMostFailures = 2;
  if (std::optional<TestbedOutcome> before = kept.Find(run)) return *std::move(before);
  int32_t failures = 0;
  Result<std::string> output = OutputOf(programs, run);
  while (!output && output.error().code == ErrorCode::kIo && failures < kMostFailures) {
    ++failures;
    output = OutputOf(programs, run);
  }
  Result<TestbedOutcome> outcome = Parsed(output);
  if (!outcome) return outcome;
  outcome->failed_before = failures;
  if (Status status = kept.Keep(run, *output, failures); !status)
    return tl::unexpected(status.error());
  return outcome;
}

}  // namespace

std::vector<double> TestbedOutcome::CollectiveTimes(const std::string& tenant, double from_s,
                                                    double to_s) const {
  std::vector<double> times;
  const auto found = tenants.find(tenant);
  if (found != tenants.end())
    for (const Iteration& iteration : found->second)
      if (iteration.begin_s >= from_s && iteration.end_s <= to_s)
        times.push_back(iteration.end_s - iteration.begin_s);
  return times;
}

std::vector<double> TestbedOutcome::CollectiveTimes(const std::string& tenant, size_t phase) const {
  return CollectiveTimes(tenant, steps[phase].second,
                         phase + 1 < steps.size() ? steps[phase + 1].first : end_s);
}

std::vector<double> TestbedOutcome::Periods(const std::string& tenant, size_t phase) const {
  const double from = steps[phase].second;
  const double to = phase + 1 < steps.size() ? steps[phase + 1].first : end_s;
  std::vector<double> periods;
  const auto found = tenants.find(tenant);
  if (found == tenants.end()) return periods;
  for (size_t i = 1; i < found->second.size(); ++i)
    if (found->second[i - 1].begin_s >= from && found->second[i].begin_s <= to)
      periods.push_back(found->second[i].begin_s - found->second[i - 1].begin_s);
  return periods;
}

Result<TestbedOutcome> RunTestbed(const TestbedRun& run) {
  const Result<Programs> programs = FindPrograms();
  if (!programs) return tl::unexpected(programs.error());
  return Parsed(OutputOf(*programs, run));
}

Result<std::vector<TestbedOutcome>> RunTestbeds(const std::vector<TestbedRun>& runs,
                                                const ExperimentOptions& options, size_t at_once) {
  const Result<Programs> programs = FindPrograms();
  if (!programs) return tl::unexpected(programs.error());
  Result<KeptRuns> kept = KeptRuns::Open(options.simulated, *programs);
  if (!kept) return tl::unexpected(kept.error());
  ProgressScope progress("runs of the testbed", static_cast<int64_t>(runs.size()));
  std::vector<Result<TestbedOutcome>> outcomes(runs.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (size_t i = next++; i < runs.size() && !failed; i = next++) {
      outcomes[i] = KeptOrMade(*programs, *kept, runs[i]);
      if (!outcomes[i]) failed = true;
      progress.Add(1);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(at_once, runs.size()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (const Result<TestbedOutcome>& outcome : outcomes)
    if (!outcome) return tl::unexpected(outcome.error());
  std::vector<TestbedOutcome> all;
  for (Result<TestbedOutcome>& outcome : outcomes) all.push_back(*std::move(outcome));
  return all;
}

std::vector<std::string> NotesOf(const std::vector<TestbedOutcome>& outcomes) {
  int32_t failures = 0;
  std::ptrdiff_t kept = 0;
  for (const TestbedOutcome& outcome : outcomes) {
    failures += outcome.failed_before;
    kept += outcome.kept ? 1 : 0;
  }
  std::vector<std::string> notes;
  if (failures > 0)
    notes.push_back(
        fmt::format("{} runs ended with an error, as a connection was taken for lost on this "
                    "machine, and were made again.",
                    failures));
  if (kept > 0)
    notes.push_back(
        fmt::format("Made in pieces: {} of {} runs by earlier calls of this program, whose time is "
                    "not in the one below.",
                    kept, outcomes.size()));
  return notes;
}

double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double BusMbit(const TestbedTenant& tenant, double seconds) {
  constexpr double kBitsAMbit = 1e6, kBitsAByte = 8;
  const auto ranks = static_cast<double>(tenant.ranks.size());
  const double factor = (tenant.collective == "all-reduce" ? 2 : 1) * (ranks - 1) / ranks;
  return seconds <= 0
             ? 0
             : factor * static_cast<double>(tenant.bytes) * kBitsAByte / seconds / kBitsAMbit;
}

ChartSeries CommandLineAt(double second, double height, std::string name) {
  return {.name = std::move(name), .grey = true, .points = {{second, 0}, {second, height}}};
}

std::string ApplyPolicy(const std::string& policy) {
  return Json{{"apply", {{"policy", policy}}}}.dump();
}

std::array<SetUp, 4> SetUps() {
  // Tenants that do not know the network name hosts in an order that crosses racks at every hop.
  const auto both = [](std::vector<int32_t> hosts) {
    std::vector<Place> ranks;
    for (const int32_t host : hosts) ranks.insert(ranks.end(), {{host, 0}, {host, 1}});
    return ranks;
  };
  const auto one = [](std::vector<int32_t> hosts, int32_t device) {
    std::vector<Place> ranks;
    for (const int32_t host : hosts) ranks.push_back({host, device});
    return ranks;
  };
  const std::vector<int32_t> across = {0, 2, 1, 3};
  return {{
      {{{"A", both({0, 2})}, {"B", both({1, 3})}}, {100, 100}},
      {{{"A", one(across, 0)}, {"B", one({0, 2}, 1)}, {"C", one({1, 3}, 1)}},
       {200.0 / 3, 200.0 / 3, 200.0 / 3}},
      {{{"A", both({0, 2})}, {"B", one({1, 3}, 0)}, {"C", one({1, 3}, 1)}}, {100, 50, 50}},
      {{{"A", one(across, 0)}, {"B", one(across, 1)}}, {100, 100}},
  }};
}

}  // namespace tutti::mccs
