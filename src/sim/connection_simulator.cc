#include "tutti/sim/connection_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/sim/fair_sharing.h"

namespace tutti {
namespace {

Status CheckPath(const Topology& logical, const Topology& switched, LinkId link,
                 std::span<const LinkId> path) {
  NodeId at = logical.tail(link);
  for (const LinkId hop : path) {
    if (hop.value < 0 || hop.value >= switched.num_links() || switched.tail(hop) != at)
      return InvalidArgument(
          fmt::format("the path of link {} breaks at link {}", link.value, hop.value));
    at = switched.head(hop);
  }
  if (at != logical.head(link))
    return InvalidArgument(fmt::format("the path of link {} ends at {}, wanted {}", link.value,
                                       switched.node_name(at),
                                       switched.node_name(logical.head(link))));
  return {};
}

Status CheckInput(const Topology& logical, const Schedule& schedule, const Topology& switched,
                  std::span<const std::vector<LinkId>> paths, int64_t size_bytes) {
  if (size_bytes < 1) return InvalidArgument("the size must be at least 1 byte");
  if (schedule.topology_fingerprint != logical.Fingerprint())
    return InvalidArgument("the schedule was made for another network than " + logical.name());
  if (schedule.kind != ScheduleKind::kStep)
    return InvalidArgument("a timed schedule, wanted one of steps");
  if (logical.has_switches())
    return InvalidArgument(
        "the schedule names its paths through switches, wanted one between ranks");
  if (logical.num_ranks() != switched.num_ranks())
    return InvalidArgument(fmt::format("the schedule is of {} ranks, {} has {}",
                                       logical.num_ranks(), switched.name(), switched.num_ranks()));
  if (paths.size() != static_cast<size_t>(logical.num_links()))
    return InvalidArgument(fmt::format("{} paths, wanted one for each of {} links", paths.size(),
                                       logical.num_links()));
  std::vector<bool> checked(paths.size());
  for (const Transfer& transfer : schedule.transfers) {
    if (checked[transfer.link.index()]) continue;
    checked[transfer.link.index()] = true;
    if (Status status = CheckPath(logical, switched, transfer.link, paths[transfer.link.index()]);
        !status)
      return status;
  }
  return {};
}

using Message = std::pair<LinkId, int64_t>;  // link of the schedule's network, units

class ConnectionRun {
 public:
  ConnectionRun(const Topology& switched, std::span<const std::vector<LinkId>> paths,
                double unit_bytes)
      : switched_(switched),
        paths_(paths),
        unit_bytes_(unit_bytes),
        sharing_(Capacities(switched)) {
    report_.link_bytes.resize(static_cast<size_t>(switched.num_links()));
    on_link_.resize(report_.link_bytes.size());
  }

  // Messages by link, each once.
  Status AddStep(const std::vector<Message>& messages) {
    if (messages != last_) {
      const Result<double> time_s = TimeOf(messages);
      if (!time_s) return tl::unexpected(time_s.error());
      last_time_s_ = *time_s;
      last_ = messages;
    }
    report_.time_s += last_time_s_;
    for (const auto& [link, units] : messages)
      for (const LinkId hop : paths_[link.index()])
        report_.link_bytes[hop.index()] += static_cast<double>(units) * unit_bytes_;
    return {};
  }

  ConnectionSimReport Take() { return std::move(report_); }

 private:
  struct Flow {
    int32_t user = 0;
    double bytes = 0, left = 0, alpha_s = 0;
  };

  // Links, then what ranks send, then what they receive.
  static std::vector<double> Capacities(const Topology& switched) {
    std::vector<double> capacity;
    for (const LinkId link : switched.Links())
      capacity.push_back(static_cast<double>(switched.bandwidth(link)));
    for (int side = 0; side < 2; ++side)
      for (const NodeId rank : switched.Ranks())
        capacity.push_back(switched.host_bandwidth(rank)
                               ? static_cast<double>(*switched.host_bandwidth(rank))
                               : std::numeric_limits<double>::infinity());
    return capacity;
  }

  Flow Start(const Message& message) {
    const std::vector<LinkId>& path = paths_[message.first.index()];
    std::vector<ResourceUse> uses;
    int64_t alpha_ps = 0;
    for (const LinkId hop : path) {
      uses.push_back({hop.value, 1});
      alpha_ps += switched_.alpha_ps(hop);
      report_.max_on_a_link = std::max(report_.max_on_a_link, ++on_link_[hop.index()]);
    }
    if (switched_.has_host_limits()) {
      uses.push_back({switched_.num_links() + switched_.tail(path.front()).value, 1});
      uses.push_back(
          {switched_.num_links() + switched_.num_ranks() + switched_.head(path.back()).value, 1});
    }
    const double bytes = static_cast<double>(message.second) * unit_bytes_;
    return {sharing_.Add(uses), bytes, bytes, static_cast<double>(alpha_ps) * 1e-12};
  }

  Result<double> TimeOf(const std::vector<Message>& messages) {
    std::fill(on_link_.begin(), on_link_.end(), 0);
    std::vector<Flow> flows;
    flows.reserve(messages.size());
    for (const Message& message : messages) flows.push_back(Start(message));
    double now_s = 0, end_s = 0;
    while (!flows.empty()) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      sharing_.Update();
      ++report_.events;
      double step_s = std::numeric_limits<double>::infinity();
      for (const Flow& flow : flows)
        step_s = std::min(step_s, flow.left / sharing_.rate(flow.user));
      now_s += step_s;
      std::erase_if(flows, [&](Flow& flow) {
        flow.left -= sharing_.rate(flow.user) * step_s;
        if (flow.left > flow.bytes * 1e-9) return false;
        sharing_.Remove(flow.user);
        end_s = std::max(end_s, now_s + flow.alpha_s);
        return true;
      });
    }
    return end_s;
  }

  const Topology& switched_;
  std::span<const std::vector<LinkId>> paths_;
  double unit_bytes_;
  FairSharing sharing_;
  ConnectionSimReport report_;
  std::vector<int32_t> on_link_;  // messages of the step
  std::vector<Message> last_;
  double last_time_s_ = 0;
};

}  // namespace

Result<ConnectionSimReport> SimulateConnections(const Topology& logical, const Schedule& schedule,
                                                const Topology& switched,
                                                std::span<const std::vector<LinkId>> paths,
                                                int64_t size_bytes) {
  if (Status status = CheckInput(logical, schedule, switched, paths, size_bytes); !status)
    return tl::unexpected(status.error());
  const double shard_bytes =
      static_cast<double>(size_bytes) / static_cast<double>(schedule.collective.weight_of_size());
  ConnectionRun run(switched, paths, shard_bytes / schedule.units_per_shard);
  std::vector<int64_t> units(static_cast<size_t>(logical.num_links()));
  std::vector<LinkId> used;
  std::vector<Message> messages;
  const auto end_step = [&]() -> Status {
    std::sort(used.begin(), used.end());
    messages.clear();
    for (const LinkId link : used)
      messages.emplace_back(link, std::exchange(units[link.index()], 0));
    used.clear();
    return messages.empty() ? Status() : run.AddStep(messages);
  };
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    if (i > 0 && transfer.step != schedule.transfers[i - 1].step)
      if (Status status = end_step(); !status) return tl::unexpected(status.error());
    if (units[transfer.link.index()] == 0) used.push_back(transfer.link);
    units[transfer.link.index()] +=
        int64_t{transfer.units()} * schedule.collective.weight(transfer.shard);
  }
  if (Status status = end_step(); !status) return tl::unexpected(status.error());
  ConnectionSimReport report = run.Take();
  if (report.time_s > 0) {
    report.algbw = static_cast<double>(size_bytes) / report.time_s;
    report.busbw = report.algbw * schedule.collective.BusFactor().ToDouble();
  }
  return report;
}

}  // namespace tutti
