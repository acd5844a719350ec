// [mccs] 6.5: how long it takes to decide the strategy of a job.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "mccs/mccs.h"
#include "registry.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace mccs_policy_time {
namespace {

using namespace mccs;

constexpr std::array<int32_t, 8> kRanks = {32, 64, 128, 256, 512, 1024, 2048, 4096};
constexpr std::array<Placement, 2> kPlacements = {Placement::kRandom, Placement::kCompact};
constexpr int32_t kRacks = 128;
constexpr int32_t kRepeats = 9;

// Processor time of this thread, in microseconds: what others do on the machine does not count.
double ProcessorTime() {
  std::timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// The median over repeats, a value a seed, in microseconds.
Result<Estimate> TimeOf(const Cluster& cluster, std::string_view name, int32_t ranks,
                        Placement placement) {
  const Result<const Policy*> policy = FindPolicy(name);
  if (!policy) return tl::unexpected(policy.error());
  const std::vector<bool> free(static_cast<size_t>(cluster.view.num_ranks()), true);
  ClusterOptions options{.placement = placement};
  for (int32_t rank = 0; rank < cluster.view.num_ranks(); ++rank) {
    options.rack.push_back(cluster.view.place(rank).rack);
    options.host.push_back(cluster.view.place(rank).host);
  }
  std::vector<double> times;
  for (int32_t seed = 1; seed <= kSeeds; ++seed) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    Random random(static_cast<uint64_t>(seed));
    PolicyInput input{.view = &cluster.view, .jobs = {{}}, .channels = 16, .background = {}};
    const auto placed = PlaceJob(free, ranks, options, random);
    if (!placed) return InvalidArgument(fmt::format("{} ranks do not fit", ranks));
    for (const NodeId rank : *placed) input.jobs[0].ranks.push_back(rank.value);
    std::vector<double> repeats;
    for (int32_t i = 0; i < kRepeats; ++i) {
      const double begin_us = ProcessorTime();
      const Result<PolicyOutput> output = Decide(**policy, input);
      const double end_us = ProcessorTime();
      if (!output) return tl::unexpected(output.error());
      repeats.push_back(end_us - begin_us);
    }
    std::nth_element(repeats.begin(), repeats.begin() + kRepeats / 2, repeats.end());
    times.push_back(repeats[kRepeats / 2]);
  }
  return EstimateOf(times);
}

Result<ExperimentResult> RunPolicyTime(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable table{
      .title = "Time to decide rings and routes of a job (ffa, 16 rings)",
      .label_name = "ranks",
      .columns = {{.name = "spread by chance", .unit = "us", .digits = 0, .timed = true},
                  {.name = "95 %"},
                  {.name = "a rank", .unit = "us", .digits = 2, .timed = true},
                  {.name = "packed", .unit = "us", .digits = 0, .timed = true},
                  {.name = "95 % "},
                  {.name = "a rank ", .unit = "us", .digits = 2, .timed = true}}};
  ExperimentResult result;
  result.notes = {
      "Rings, NICs and pinned routes of one job on 4096 ranks in 128 racks with 16 spines; "
      "processor "
      "time, median of 9 decisions, mean and 95 % interval over 10 seeds. Spread by chance a job "
      "touches as "
      "many racks as it can, the worst case: 16 flows a rack and host.",
      "The paper: under 1 ms for 32 ranks, growing linearly."};
  const auto smallest = kRanks.front();
  if (!WithinSize(options, smallest)) {
    result.tables = {std::move(table)};
    return result;
  }
  const Result<Cluster> cluster = MakeCluster(kRacks);
  if (!cluster) return tl::unexpected(cluster.error());
  for (const int32_t ranks : kRanks) {
    if (!WithinSize(options, ranks)) break;
    ResultRow row{std::to_string(ranks), {}};
    for (const Placement placement : kPlacements) {
      const Result<Estimate> time = TimeOf(*cluster, "ffa", ranks, placement);
      if (!time) return tl::unexpected(time.error());
      row.cells.push_back(Number(time->mean, ranks == smallest ? "< 1000" : ""));
      row.cells.push_back(Word(fmt::format("+- {:.0f}", time->half)));
      row.cells.push_back(Number(time->mean / ranks));
    }
    table.rows.push_back(std::move(row));
  }
  result.tables = {std::move(table)};
  return result;
}

}  // namespace
}  // namespace mccs_policy_time

Experiment MccsPolicyTime() {
  return {"mccs-policy-time", "[mccs] 6.5", "how long a policy takes to decide, 32 to 4096 ranks",
          mccs_policy_time::RunPolicyTime};
}

}  // namespace tutti
