#include "tutti/advise/explanation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/units.h"

namespace tutti {
namespace {

Rational UnitShare(const Schedule& schedule, ShardId shard) {
  return Rational(schedule.collective.weight(shard)) /
         (Rational(schedule.collective.weight_of_size()) * Rational(schedule.units_per_shard));
}

Rational AlphaSeconds(const Topology& topology, LinkId link) {
  return {topology.alpha_ps(link), kPicosecondsPerSecond};
}

// Sums of units by link and shard become shares of M once a pair, not once a transfer.
class Shares {
 public:
  Shares(const Topology& topology, const Schedule& schedule)
      : schedule_(schedule), share_(static_cast<size_t>(topology.num_links())) {
    if (schedule.collective.equal_weights()) unit_ = UnitShare(schedule, ShardId{0});
  }
  void Add(const Transfer& transfer) {
    if (unit_)
      units_[transfer.link] += transfer.units();
    else
      share_[transfer.link.index()] +=
          UnitShare(schedule_, transfer.shard) * Rational(transfer.units());
  }
  std::vector<Rational> Finish() {
    for (const auto& [link, units] : units_) share_[link.index()] += *unit_ * Rational(units);
    units_.clear();
    return share_;
  }

 private:
  const Schedule& schedule_;
  std::optional<Rational> unit_;  // where all shards weigh the same
  std::map<LinkId, int64_t> units_;
  std::vector<Rational> share_;
};

}  // namespace

std::vector<LinkTraffic> TrafficOf(const Topology& topology, const Schedule& schedule) {
  std::vector<LinkTraffic> traffic;
  for (LinkId link : topology.Links()) traffic.push_back({.link = link});
  Shares shares(topology, schedule);
  std::vector<int32_t> last_step(traffic.size(), -1);
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  for (const Transfer& transfer : schedule.transfers) {
    const size_t link = transfer.link.index();
    if (timed || last_step[link] != transfer.step) ++traffic[link].messages;
    last_step[link] = transfer.step;
    shares.Add(transfer);
  }
  std::vector<Rational> share = shares.Finish();
  for (LinkTraffic& row : traffic) {
    row.share = std::move(share[row.link.index()]);
    row.seconds_per_byte = row.share / Rational(topology.bandwidth(row.link));
  }
  return traffic;
}

const LinkTraffic& BusiestOf(const std::vector<LinkTraffic>& traffic) {
  TUTTI_CHECK(!traffic.empty());
  return *std::max_element(traffic.begin(), traffic.end(), [](const auto& a, const auto& b) {
    return a.seconds_per_byte < b.seconds_per_byte;
  });
}

int64_t CountAsBusy(const std::vector<LinkTraffic>& traffic) {
  const Rational most = BusiestOf(traffic).seconds_per_byte;
  return std::count_if(traffic.begin(), traffic.end(),
                       [&most](const auto& row) { return row.seconds_per_byte == most; });
}

CutTraffic TrafficOver(const Topology& topology, const Schedule& schedule,
                       const CutCertificate& cut, const std::vector<LinkTraffic>& traffic) {
  // For networks that were unwound the set may hold switches that are gone.
  std::vector<bool> inside(static_cast<size_t>(topology.num_nodes()), false);
  for (NodeId node : cut.inside)
    if (node.value < topology.num_nodes()) inside[node.index()] = true;
  CutTraffic over;
  const Collective& collective = schedule.collective;
  over.needed = cut.shards_out;
  if (collective.is_all_to_all() && !collective.demand().empty()) {
    Rational total;
    const int32_t n = collective.num_ranks();
    for (ShardId shard : collective.Shards())
      if (shard.value / n != shard.value % n) total += Rational(collective.weight(shard));
    over.needed *= total / (Rational(n) * Rational(n - 1));
  }
  over.needed /= Rational(collective.weight_of_size());
  for (LinkId link : topology.Links()) {
    if (!inside[topology.tail(link).index()] || inside[topology.head(link).index()]) continue;
    over.links.push_back(link);
    over.sent += traffic[link.index()].share;
  }
  return over;
}

std::vector<StepTime> StepTimes(const Topology& topology, const Schedule& schedule,
                                int64_t size_bytes) {
  std::vector<StepTime> times;
  size_t at = 0;
  while (at < schedule.transfers.size()) {
    const int32_t step = schedule.transfers[at].step;
    std::map<LinkId, Rational> shares;
    for (; at < schedule.transfers.size() && schedule.transfers[at].step == step; ++at) {
      const Transfer& transfer = schedule.transfers[at];
      shares[transfer.link] += UnitShare(schedule, transfer.shard) * Rational(transfer.units());
    }
    std::optional<StepTime> longest;
    for (const auto& [link, share] : shares) {
      if (share.is_zero()) continue;
      Rational seconds = AlphaSeconds(topology, link) +
                         share * Rational(size_bytes) / Rational(topology.bandwidth(link));
      if (!longest || seconds > longest->seconds)
        longest = StepTime{step, link, share, std::move(seconds)};
    }
    if (longest) times.push_back(*std::move(longest));
  }
  return times;
}

// --- The chain -----------------------------------------------------------------------------------

namespace {

// Times of one simulation that are meant to be equal differ by rounding.
constexpr double kShareRounding = 1e-9;

class ChainSearch {
 public:
  ChainSearch(const Topology& topology, const Schedule& schedule, const SimOptions& options,
              const SimReport& report)
      : topology_(topology), schedule_(schedule), options_(options), report_(report) {
    Index();
  }

  CriticalChain Find() {
    CriticalChain chain{.time_s = report_.time_s};
    if (report_.trace.empty()) return chain;
    size_t at = 0;
    for (size_t i = 1; i < report_.trace.size(); ++i)
      if (report_.trace[i].arrive_s > report_.trace[at].arrive_s) at = i;
    double end = report_.trace[at].arrive_s;
    for (;;) {
      const std::optional<Before> before = BeforeOf(at);
      Add(at, end, before && before->by_link, chain);
      const double start = report_.trace[at].start_s;
      if (!before || start <= 0) {
        chain.waiting_s += start;
        break;
      }
      chain.waiting_s += start - before->end_s;
      at = before->message;
      end = before->end_s;
    }
    std::reverse(chain.messages.begin(), chain.messages.end());
    FindLongest(chain);
    return chain;
  }

 private:
  struct Before {
    size_t message;
    double end_s;
    bool by_link;
  };

  // Messages by link and by the node that they reach, in order of start.
  void Index() {
    by_link_.resize(static_cast<size_t>(topology_.num_links()));
    by_head_.resize(static_cast<size_t>(topology_.num_nodes()));
    place_on_link_.resize(report_.trace.size());
    for (size_t i = 0; i < report_.trace.size(); ++i) {
      const LinkId link = report_.trace[i].link;
      place_on_link_[i] = by_link_[link.index()].size();
      by_link_[link.index()].push_back(i);
      by_head_[topology_.head(link).index()].push_back(i);
    }
    for (std::vector<size_t>& messages : by_head_)
      std::stable_sort(messages.begin(), messages.end(), [this](size_t a, size_t b) {
        return report_.trace[a].arrive_s < report_.trace[b].arrive_s;
      });
  }

  // What the message waited for: what ended last before it started.
  std::optional<Before> BeforeOf(size_t message) const {
    const SimMessage& now = report_.trace[message];
    const double latest = now.start_s * (1 + kShareRounding);
    std::optional<Before> best;
    if (IsBarrier()) {
      for (size_t i = 0; i < report_.trace.size() && report_.trace[i].start_s < now.start_s; ++i)
        if (const SimMessage& one = report_.trace[i];
            one.arrive_s <= latest && (!best || one.arrive_s > best->end_s))
          best = Before{i, one.arrive_s, false};
      return best;
    }
    if (const size_t place = place_on_link_[message]; place > 0) {
      const size_t earlier = by_link_[now.link.index()][place - 1];
      if (const double free = report_.trace[earlier].free_s; free <= latest)
        best = Before{earlier, free, true};
    }
    const std::vector<size_t>& arrived = by_head_[topology_.tail(now.link).index()];
    auto after = std::upper_bound(
        arrived.begin(), arrived.end(), latest,
        [this](double time, size_t i) { return time < report_.trace[i].arrive_s; });
    while (after != arrived.begin()) {
      const size_t earlier = *--after;
      const double arrive = report_.trace[earlier].arrive_s;
      // The data, where both end together: it is why the chunk could not go earlier.
      if (best && arrive < best->end_s * (1 - kShareRounding)) break;
      if (report_.trace[earlier].start_s < now.start_s && Shares(earlier, message)) {
        best = Before{earlier, arrive, false};
        break;
      }
    }
    return best;
  }

  bool IsBarrier() const {
    return schedule_.kind == ScheduleKind::kStep && options_.step_mode == StepMode::kBarrier;
  }

  // The transfers of a message: one of a timed schedule, all over its link in its step.
  std::vector<const Transfer*> TransfersOf(const SimMessage& message) const {
    std::vector<const Transfer*> transfers;
    auto at = static_cast<size_t>(message.first_transfer);
    if (schedule_.kind == ScheduleKind::kTimed) return {&schedule_.transfers[at]};
    for (; at < schedule_.transfers.size() && schedule_.transfers[at].step == message.step; ++at)
      if (schedule_.transfers[at].link == message.link)
        transfers.push_back(&schedule_.transfers[at]);
    return transfers;
  }

  // Whether one brings bytes that the other carries on.
  bool Shares(size_t earlier, size_t later) const {
    const std::vector<const Transfer*> ones = TransfersOf(report_.trace[earlier]);
    const std::vector<const Transfer*> others = TransfersOf(report_.trace[later]);
    return std::any_of(ones.begin(), ones.end(), [&others](const Transfer* a) {
      return std::any_of(others.begin(), others.end(), [a](const Transfer* b) {
        return a->shard == b->shard && a->begin < b->end && b->begin < a->end;
      });
    });
  }

  void Add(size_t message, double end, bool waited_for_link, CriticalChain& chain) const {
    const SimMessage& one = report_.trace[message];
    const double bandwidth_s = one.bytes / static_cast<double>(topology_.bandwidth(one.link));
    const double alpha_s = static_cast<double>(topology_.alpha_ps(one.link)) /
                           static_cast<double>(kPicosecondsPerSecond);
    const bool pays_alpha =
        options_.link_model == LinkModel::kHeld || end >= one.arrive_s * (1 - kShareRounding);
    chain.messages.push_back({one.link, one.step, one.start_s, end, one.bytes, waited_for_link});
    chain.bandwidth_s += bandwidth_s;
    if (pays_alpha) chain.latency_s += alpha_s;
    // A host limit holds messages up beyond both.
    chain.waiting_s += (end - one.start_s) - bandwidth_s - (pays_alpha ? alpha_s : 0);
  }

  static void FindLongest(CriticalChain& chain) {
    std::map<LinkId, double> on;
    for (const ChainMessage& message : chain.messages)
      on[message.link] += message.end_s - message.start_s;
    for (const auto& [link, seconds] : on) {
      if (seconds <= chain.longest_on_s * (1 + kShareRounding)) continue;
      chain.longest_on = link;
      chain.longest_on_s = seconds;
    }
    if (chain.waiting_s < chain.time_s * kShareRounding) chain.waiting_s = 0;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const SimOptions& options_;
  const SimReport& report_;
  std::vector<std::vector<size_t>> by_link_, by_head_;
  std::vector<size_t> place_on_link_;
};

}  // namespace

Result<CriticalChain> FindCriticalChain(const Topology& topology, const Schedule& schedule,
                                        SimOptions options) {
  options.record_messages = true;
  const Result<SimReport> report = Simulate(topology, schedule, options);
  if (!report) return tl::unexpected(report.error());
  return ChainSearch(topology, schedule, options, *report).Find();
}

}  // namespace tutti
