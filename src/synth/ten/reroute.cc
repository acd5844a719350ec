#include "ten/reroute.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "ten/calendar.h"
#include "ten/link_time.h"
#include "tutti/base/cancel.h"

namespace tutti::ten {
namespace {

constexpr int64_t kNoDelivery = std::numeric_limits<int64_t>::max();
constexpr int32_t kMaxFailedPasses = 2;  // passes in a row

struct Delivery {
  uint32_t chunk = 0, link = 0;
  int64_t start = 0;
  int64_t arrival = 0;  // when PushToTheEnd() sorts
};

class Rerouter {
 public:
  Rerouter(const Input& input, const Schedule& schedule)
      : input_(input),
        topology_(input.topology),
        num_ranks_(static_cast<size_t>(topology_.num_ranks())),
        time_(static_cast<size_t>(topology_.num_links())) {
    for (LinkId link : topology_.Links())
      time_[link.index()] = LinkTimeOf(schedule, topology_, input.MakeTransfer(link, 0, 0));
    for (NodeId rank : topology_.Ranks()) {
      first_in_link_.push_back(in_links_.size());
      for (LinkId link : topology_.InLinks(rank))
        in_links_.push_back({static_cast<uint32_t>(topology_.tail(link).value),
                             static_cast<uint32_t>(link.value), time_[link.index()]});
    }
    first_in_link_.push_back(in_links_.size());
    for (size_t i = 0; i < schedule.transfers.size(); ++i) {
      const Transfer& transfer = schedule.transfers[i];
      deliveries_.push_back(
          {static_cast<uint32_t>(transfer.shard.value * input.chunks + transfer.begin),
           static_cast<uint32_t>(transfer.link.value), schedule.start_ps[i], 0});
    }
  }

  int64_t End() const {
    int64_t end = 0;
    for (const Delivery& delivery : deliveries_) end = std::max(end, ArrivalOf(delivery));
    return end;
  }

  void Again() {
    PushToTheEnd(End());
    SendByUrgency();
  }

  const std::vector<Delivery>& deliveries() const { return deliveries_; }

 private:
  struct InLink {
    uint32_t tail, link;
    LinkTime time;
  };

  int64_t ArrivalOf(const Delivery& delivery) const {
    return delivery.start + time_[delivery.link].travel_ps;
  }
  size_t Place(uint32_t chunk, NodeId rank) const { return chunk * num_ranks_ + rank.index(); }
  NodeId TailOf(const Delivery& delivery) const {
    return topology_.tail(LinkId{static_cast<int32_t>(delivery.link)});
  }
  NodeId HeadOf(const Delivery& delivery) const {
    return topology_.head(LinkId{static_cast<int32_t>(delivery.link)});
  }

  // The last to arrive first, on calendars of negative times.
  void PushToTheEnd(int64_t end) {
    for (Delivery& delivery : deliveries_) delivery.arrival = ArrivalOf(delivery);
    std::sort(deliveries_.begin(), deliveries_.end(), [](const Delivery& a, const Delivery& b) {
      return std::tie(b.arrival, a.link, a.chunk) < std::tie(a.arrival, b.link, b.chunk);
    });
    sent_on_.assign(input_.source.size() * num_ranks_, end);
    std::vector<Calendar> calendars(time_.size());
    for (Delivery& delivery : deliveries_) {
      const LinkTime& time = time_[delivery.link];
      const int64_t latest = sent_on_[Place(delivery.chunk, HeadOf(delivery))] - time.travel_ps;
      Calendar& calendar = calendars[delivery.link];
      delivery.start = -calendar.FirstFree(-latest - time.hold_ps, time.hold_ps) - time.hold_ps;
      calendar.Take(-delivery.start - time.hold_ps, time.hold_ps);
      int64_t& sent_on = sent_on_[Place(delivery.chunk, TailOf(delivery))];
      sent_on = std::min(sent_on, delivery.start);
    }
  }

  void SendByUrgency() {
    std::sort(deliveries_.begin(), deliveries_.end(), [](const Delivery& a, const Delivery& b) {
      return std::tie(a.start, a.link, a.chunk) < std::tie(b.start, b.link, b.chunk);
    });
    std::vector<int64_t>& held_from = sent_on_;
    held_from.assign(sent_on_.size(), kNoDelivery);
    for (uint32_t chunk = 0; chunk < input_.source.size(); ++chunk)
      held_from[Place(chunk, input_.source[chunk])] = 0;
    std::vector<Calendar> calendars(time_.size());
    for (Delivery& delivery : deliveries_) {
      const NodeId head = HeadOf(delivery);
      const int64_t* const held_by = held_from.data() + delivery.chunk * num_ranks_;
      int64_t best = kNoDelivery;
      for (size_t k = first_in_link_[head.index()]; k < first_in_link_[head.index() + 1]; ++k) {
        const auto& [tail, link, time] = in_links_[k];
        const int64_t held = held_by[tail];
        // Also where nothing is held, and not earlier even if the link is free.
        if (held >= best - time.travel_ps) continue;
        const int64_t start = calendars[link].FirstFree(held, time.hold_ps);
        if (start >= best - time.travel_ps) continue;
        best = start + time.travel_ps;
        delivery.link = link;
        delivery.start = start;
      }
      calendars[delivery.link].Take(delivery.start, time_[delivery.link].hold_ps);
      held_from[Place(delivery.chunk, head)] = best;
    }
  }

  const Input& input_;
  const Topology& topology_;
  size_t num_ranks_;
  std::vector<LinkTime> time_;
  std::vector<InLink> in_links_;  // by head, each as its link is there
  std::vector<size_t> first_in_link_;
  std::vector<Delivery> deliveries_;
  std::vector<int64_t> sent_on_;  // [chunk][rank]: first sent on, or there from
};

}  // namespace

Result<Schedule> Reroute(const Input& input, const Schedule& schedule, int32_t passes) {
  Rerouter rerouter(input, schedule);
  int64_t best_end = rerouter.End();
  std::vector<Delivery> best;
  int32_t in_vain = 0;
  for (int32_t pass = 0; pass < passes && in_vain < kMaxFailedPasses; ++pass) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    rerouter.Again();
    const int64_t end = rerouter.End();
    ++in_vain;
    if (end >= best_end) continue;
    in_vain = 0;
    best_end = end;
    best = rerouter.deliveries();
  }
  if (best.empty()) return schedule;
  std::sort(best.begin(), best.end(), [](const Delivery& a, const Delivery& b) {
    return std::tie(a.start, a.link, a.chunk) < std::tie(b.start, b.link, b.chunk);
  });
  Schedule result = schedule;
  result.transfers.clear();
  result.start_ps.clear();
  for (const Delivery& delivery : best) {
    result.transfers.push_back(
        input.MakeTransfer(LinkId{static_cast<int32_t>(delivery.link)}, delivery.chunk, 0));
    result.start_ps.push_back(delivery.start);
  }
  return result;
}

}  // namespace tutti::ten
