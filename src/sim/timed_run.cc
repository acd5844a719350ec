#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "interval_times.h"
#include "runs.h"

namespace tutti::sim {
namespace {

// Without reductions every value is written once and read later: whatever brought it is what a
// transfer waits for. With reductions a value changes, so starts and arrivals are handled in the
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
    if (schedule_.collective.reduces()) return RunInPlannedOrder();
    for (size_t i = 0; i < schedule_.transfers.size(); ++i) {
      Arrive(i, Start(i));
    }
  }

 private:
  struct Message {
    double start_s, hold_s, free_s, arrive_s;
  };

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

  void RunInPlannedOrder() {
    const size_t count = schedule_.transfers.size();
    std::vector<int64_t> planned(count);
    for (size_t i = 0; i < count; ++i) {
      const LinkId link = schedule_.transfers[i].link;
      const int64_t wire = TransferPs(schedule_, schedule_.transfers[i], topology_.bandwidth(link));
      if (__builtin_add_overflow(wire, topology_.alpha_ps(link), &planned[i]) ||
          __builtin_add_overflow(planned[i], schedule_.start_ps[i], &planned[i]))
        planned[i] = std::numeric_limits<int64_t>::max();
    }
    std::vector<size_t> by_arrival(count);
    std::iota(by_arrival.begin(), by_arrival.end(), size_t{0});
    std::stable_sort(by_arrival.begin(), by_arrival.end(),
                     [&planned](size_t a, size_t b) { return planned[a] < planned[b]; });

    IntervalTimes read(topology_, schedule_, layouts_, IntervalTimes::Side::kTail);
    std::vector<Message> messages;
    size_t next = 0;
    const auto land = [&] {
      const size_t i = by_arrival[next++];
      Message& message = messages[i];
      message.arrive_s = std::max(
          {message.arrive_s, read.Latest(AtHead(i)),
           schedule_.transfers[i].op == TransferOp::kCopy ? arrived_.Latest(AtHead(i)) : 0});
      Arrive(i, message);
    };
    for (size_t i = 0; i < count; ++i) {
      while (next < count && by_arrival[next] < i &&
             planned[by_arrival[next]] <= schedule_.start_ps[i])
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
