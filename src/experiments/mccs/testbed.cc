#include "mccs/testbed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/process.h"

namespace tutti::mccs {
namespace {

using Json = nlohmann::json;

constexpr int kSkipped = 77;

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
  outcome.end_s = outcome.steps.back().first;  // the one that stops
  outcome.steps.pop_back();
  outcome.errors.pop_back();
  return outcome;
}

}  // namespace

std::vector<double> TestbedOutcome::CollectiveTimes(const std::string& tenant, size_t phase) const {
  const double from = steps[phase].second;
  const double to = phase + 1 < steps.size() ? steps[phase + 1].first : end_s;
  std::vector<double> times;
  const auto found = tenants.find(tenant);
  if (found != tenants.end())
    for (const Iteration& iteration : found->second)
      if (iteration.begin_s >= from && iteration.end_s <= to)
        times.push_back(iteration.end_s - iteration.begin_s);
  return times;
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
  if (CancelRequested()) return tl::unexpected(CancelledError());
  constexpr const char* kRemedy = "it is part of Tutti's build and installation";
  const Result<std::string> testbed = FindProgram("tutti-testbed", kRemedy);
  if (!testbed) return tl::unexpected(testbed.error());
  const Result<std::string> cluster = FindProgram("tutti-testbed-cluster", kRemedy);
  if (!cluster) return tl::unexpected(cluster.error());
  std::string output, errors;
  const Result<ProcessEnd> end =
      RunProcess({*testbed, "--seed", std::to_string(run.seed), run.switches, "--", *cluster, "-"},
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
  try {
    return OutcomeOf(Json::parse(output));
  } catch (const Json::exception& fault) {
    return MakeError(ErrorCode::kCorrupt,
                     fmt::format("what the testbed printed is not understood: {}", fault.what()));
  }
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
