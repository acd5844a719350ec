#include "mccs/mccs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/topo/expression.h"

namespace tutti::mccs {
namespace {

constexpr int32_t kJobs = 50;
constexpr double kBytes = 100e6;
constexpr double kMeanGapOfArrivalsS = 0.2;

// In (0, 1].
double Uniform(Random& random) { return static_cast<double>((random.Next() >> 11) + 1) * 0x1p-53; }

std::vector<ClusterJob> DrawJobs(uint64_t seed) {
  Random random(seed * 2 + 1);
  std::vector<ClusterJob> jobs;
  double arrival_s = 0;
  for (int32_t i = 0; i < kJobs; ++i) {
    arrival_s += -std::log(Uniform(random)) * kMeanGapOfArrivalsS;
    jobs.push_back({.arrival_s = arrival_s,
                    .ranks = random.Below(2) == 0 ? 16 : 32,
                    .iterations = static_cast<int32_t>(10 + random.Below(51)),
                    .gap_s = static_cast<double>(20 + random.Below(81)) * 1e-3});
  }
  return jobs;
}

// Asks the policy again whenever a job comes or goes.
class PolicyStrategy : public ClusterStrategy {
 public:
  PolicyStrategy(const Cluster& cluster, const Policy& policy, const Run& run, uint64_t seed)
      : cluster_(cluster), policy_(policy), seed_(seed) {
    input_.view = &cluster.view;
    input_.channels = run.rings;
    input_.nics = run.nics;
    input_.seed = seed;
  }

  Status Join(int32_t job, std::span<const NodeId> ranks) override {
    PolicyJob one{.id = job, .ranks = {}, .priority = 0, .running = {}};
    for (const NodeId rank : ranks) one.ranks.push_back(rank.value);
    input_.jobs.push_back(std::move(one));
    return Plan();
  }
  void Leave(int32_t job) override {
    std::erase_if(input_.jobs, [&](const PolicyJob& one) { return one.id == job; });
    channels_.erase(job);
    // With fewer jobs a decision that was possible stays so.
    (void)Plan();
  }
  std::span<const ClusterChannel> Channels(int32_t job) override { return channels_.at(job); }

 private:
  Status Plan() {
    const Result<PolicyOutput> output = Decide(policy_, input_);
    if (!output) return tl::unexpected(output.error());
    for (size_t j = 0; j < input_.jobs.size(); ++j) {
      PolicyJob& job = input_.jobs[j];
      const JobStrategy& strategy = output->jobs[j];
      const bool pinned = !strategy.routes.empty() && strategy.routes.front() != kByEcmp;
      // A connection that stays keeps its route; nothing changes for the job.
      if (channels_.contains(job.id) && (!pinned || job.running == strategy.routes)) continue;
      if (pinned) job.running = strategy.routes;
      channels_[job.id] = ChannelsOf(job, strategy);
    }
    return {};
  }

  std::vector<ClusterChannel> ChannelsOf(const PolicyJob& job, const JobStrategy& strategy) const {
    const auto ranks = static_cast<double>(job.ranks.size());
    const auto rings = static_cast<double>(strategy.rings.size());
    std::vector<ClusterChannel> channels(strategy.rings.size());
    for (ClusterChannel& channel : channels)
      channel.flow_bytes = 2 * (ranks - 1) / ranks * kBytes / rings;
    for (size_t i = 0; i < strategy.flows.size(); ++i) {
      const RingFlow& flow = strategy.flows[i];
      const uint64_t connection = static_cast<uint64_t>(job.id) << 32 | i;
      const int32_t route = strategy.routes[i] == kByEcmp
                                ? EcmpRoute(cluster_.view, flow, connection, seed_)
                                : strategy.routes[i];
      channels[static_cast<size_t>(flow.channel)].flows.push_back(
          cluster_.view.Path(flow.from_port, flow.to_port, route));
    }
    return channels;
  }

  const Cluster& cluster_;
  const Policy& policy_;
  uint64_t seed_;
  PolicyInput input_;
  std::map<int32_t, std::vector<ClusterChannel>> channels_;
};

Result<std::vector<double>> TimesOfSeed(const Cluster& cluster, const Policy& policy,
                                        const Run& run, uint64_t seed) {
  ClusterOptions options{.placement = run.placement, .coupling = run.coupling, .seed = seed};
  for (int32_t rank = 0; rank < cluster.view.num_ranks(); ++rank) {
    options.rack.push_back(cluster.view.place(rank).rack);
    options.host.push_back(cluster.view.place(rank).host);
  }
  PolicyStrategy strategy(cluster, policy, run, seed);
  const std::vector<ClusterJob> jobs = DrawJobs(seed);
  const Result<ClusterReport> report = SimulateCluster(cluster.topology, jobs, options, strategy);
  if (!report) return tl::unexpected(report.error());
  std::vector<double> times;
  for (const ClusterJobReport& job : report->jobs) times.push_back(job.collective_s);
  return times;
}

}  // namespace

Result<Cluster> MakeCluster(int32_t racks) {
  Result<Topology> topology = ParseTopology(
      fmt::format("cluster(boxes={},gpus=8,nics=8,nic=200Gbit/s,fabric=spine_leaf({},16),"
                  "oversubscription=2)",
                  4 * racks, racks));
  if (!topology) return tl::unexpected(topology.error());
  Result<ClusterView> view = ClusterView::Make(*topology);
  if (!view) return tl::unexpected(view.error());
  return Cluster{*std::move(topology), *std::move(view)};
}

Result<std::vector<std::vector<double>>> JobTimes(const Cluster& cluster, const Run& run,
                                                  int32_t seeds) {
  const Result<const Policy*> policy = FindPolicy(run.policy);
  if (!policy) return tl::unexpected(policy.error());
  std::vector<Result<std::vector<double>>> of_seed(static_cast<size_t>(seeds));
  ParallelFor(seeds, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      of_seed[static_cast<size_t>(i)] =
          TimesOfSeed(cluster, **policy, run, static_cast<uint64_t>(i + 1));
  });
  std::vector<std::vector<double>> times;
  for (Result<std::vector<double>>& one : of_seed) {
    if (!one) return tl::unexpected(one.error());
    times.push_back(*std::move(one));
  }
  return times;
}

Estimate SpeedUp(const std::vector<std::vector<double>>& slow,
                 const std::vector<std::vector<double>>& fast) {
  std::vector<double> means;
  for (size_t seed = 0; seed < slow.size(); ++seed) {
    double mean = 0;
    for (size_t job = 0; job < slow[seed].size(); ++job)
      mean += slow[seed][job] / fast[seed][job] / static_cast<double>(slow[seed].size());
    means.push_back(mean);
  }
  return EstimateOf(means);
}

ResultCell Number(double value, std::string paper) {
  return Figure(Rational::FromDouble(value), std::move(paper));
}

ResultCell Half(const Estimate& estimate) { return Word(fmt::format("+- {:.2f}", estimate.half)); }

}  // namespace tutti::mccs
