#include <algorithm>
#include <limits>
#include <vector>

#include "interval_times.h"
#include "radix_sort.h"
#include "runs.h"
#include "tutti/base/cancel.h"

namespace tutti::sim {
namespace {

// Without reductions every value is written once and read later: whatever brought it is what a
// transfer waits for. With reductions a value changes, and a switch gets the same one again for
// every receiver, which those before do not wait for. So starts and arrivals are handled in the
// order of the plan: a transfer waits for what has arrived by then in the plan, and what arrives
// later in the plan waits at its receiver until the old value has left.
class TimedRun {
 public:
  TimedRun(const Topology& topology, const Schedule& schedule, Recorder& recorder)
      : topology_(topology),
        schedule_(schedule),
        recorder_(recorder),
        layouts_(topology, schedule),
        arrived_(topology, schedule, layouts_, IntervalTimes::Side::kHead),
        link_free_s_(static_cast<size_t>(topology.num_links()), 0) {}

  void Run() {
    if (schedule_.collective.reduces() || topology_.has_switches()) return RunInPlannedOrder();
    for (size_t i = 0; i < schedule_.transfers.size() && !Cancelled(i); ++i) {
      Arrive(i, Start(i));
    }
  }

 private:
  struct PlannedArrival {
    int64_t ps;
    uint32_t transfer;
  };
  struct Message {
    double start_s, hold_s, free_s, arrive_s;
  };

  static bool Cancelled(size_t i) { return i % 65536 == 0 && CancelRequested(); }

  Place At(const Transfer& transfer, NodeId node) const {
    return {node, transfer.shard, transfer.begin, transfer.end};
  }
  Place AtTail(size_t i) const {
    return At(schedule_.transfers[i], topology_.tail(schedule_.transfers[i].link));
  }
  Place AtHead(size_t i) const {
    return At(schedule_.transfers[i], topology_.head(schedule_.transfers[i].link));
  }

  Message Start(size_t i) {
    const Transfer& transfer = schedule_.transfers[i];
    double& link_free = link_free_s_[transfer.link.index()];
    const Recorder::Durations durations = recorder_.Of(transfer.link, recorder_.Bytes(transfer));
    const double start = std::max(link_free, arrived_.Latest(AtTail(i)));
    link_free = start + durations.hold_s;
    return {start, durations.hold_s, link_free, start + durations.travel_s};
  }

  void Arrive(size_t i, const Message& message) {
    const Transfer& transfer = schedule_.transfers[i];
    arrived_.Add(AtHead(i), message.arrive_s);
    recorder_.Add({transfer.link, 0, message.start_s, message.free_s, message.arrive_s,
                   recorder_.Bytes(transfer), static_cast<int64_t>(i)},
                  message.hold_s);
  }

  int64_t PlannedArrivalPs(size_t i) const {
    const Transfer& transfer = schedule_.transfers[i];
    int64_t at = TransferPs(schedule_, transfer, topology_.bandwidth(transfer.link));
    if (__builtin_add_overflow(at, topology_.alpha_ps(transfer.link), &at) ||
        __builtin_add_overflow(at, schedule_.start_ps[i], &at))
      return std::numeric_limits<int64_t>::max();
    return at;
  }

  void RunInPlannedOrder() {
    const size_t count = schedule_.transfers.size();
    std::vector<PlannedArrival> planned;
    planned.reserve(count);
    for (size_t i = 0; i < count; ++i)
      planned.push_back({PlannedArrivalPs(i), static_cast<uint32_t>(i)});
    RadixSort(planned, [](const PlannedArrival& arrival) { return arrival.ps; });

    IntervalTimes read(topology_, schedule_, layouts_, IntervalTimes::Side::kTail);
    std::vector<Message> messages;
    messages.reserve(count);
    size_t next = 0;
    const auto land = [&] {
      const size_t i = planned[next++].transfer;
      Message& message = messages[i];
      message.arrive_s = std::max(
          {message.arrive_s, read.Latest(AtHead(i)),
           schedule_.transfers[i].op == TransferOp::kCopy ? arrived_.Latest(AtHead(i)) : 0});
      Arrive(i, message);
    };
    for (size_t i = 0; i < count; ++i) {
      if (Cancelled(i)) return;
      while (next < count && planned[next].transfer < i &&
             planned[next].ps <= schedule_.start_ps[i])
        land();
      messages.push_back(Start(i));
      read.Add(AtTail(i), messages.back().start_s);
    }
    while (next < count) land();
  }

  const Topology& topology_;
  const Schedule& schedule_;
  Recorder& recorder_;
  ShardLayouts layouts_;
  IntervalTimes arrived_;
  std::vector<double> link_free_s_;
};

}  // namespace

void RunTimed(const Topology& topology, const Schedule& schedule, Recorder& recorder) {
  TimedRun(topology, schedule, recorder).Run();
}

}  // namespace tutti::sim
