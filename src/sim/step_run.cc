#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "host_times.h"
#include "interval_times.h"
#include "runs.h"
#include "step_messages.h"
#include "tutti/base/cancel.h"

namespace tutti::sim {
namespace {

using Message = StepMessages::Message;

// Starts and arrivals are sums and maxima of the same terms in the same order with and without the
// barrier. Rounding keeps order, so eager is never later, to the last bit.
// `not_before_s`: sooner it does not arrive.
void Send(Message& message, int32_t step, Recorder& recorder, double& link_free_s,
          double not_before_s) {
  const Recorder::Durations durations = recorder.Of(message.link, message.bytes);
  message.arrive_s = std::max(message.start_s + durations.travel_s, not_before_s);
  link_free_s = message.start_s + durations.hold_s;
  recorder.Add({message.link, step, message.start_s, link_free_s, message.arrive_s, message.bytes,
                message.first_transfer},
               durations.hold_s);
}

class EagerRun {
 public:
  EagerRun(const Topology& topology, const Schedule& schedule, Recorder& recorder)
      : topology_(topology),
        schedule_(schedule),
        recorder_(recorder),
        steps_(topology, schedule, recorder),
        layouts_(topology, schedule),
        arrived_(topology, schedule, layouts_, IntervalTimes::Side::kHead),
        hosts_(topology, recorder.link_model()),
        link_free_s_(static_cast<size_t>(topology.num_links()), 0) {
    if (!schedule.collective.reduces()) return;
    overwriting_.emplace(topology, schedule, layouts_);
  }

  void Run() {
    while (!CancelRequested() && steps_.Next()) {
      hosts_.Count(steps_.messages());
      for (Message& message : steps_.messages())
        message.start_s = std::max(LinkFree(message), hosts_.FreeFor(message));
      for (size_t i = steps_.first(); i < steps_.last(); ++i) Wait(i, arrived_.Latest(AtTail(i)));
      if (overwriting_) WaitForReaders(*overwriting_);
      const std::vector<double>& through = hosts_.LetThrough(steps_.messages());
      for (size_t i = 0; i < through.size(); ++i) {
        Message& message = steps_.messages()[i];
        Send(message, steps_.step(), recorder_, LinkFree(message), through[i]);
      }
      for (size_t i = steps_.first(); i < steps_.last(); ++i) Arrive(i);
    }
  }

 private:
  // Only reductions overwrite: elsewhere a value is written once, before it is first read.
  struct Overwriting {
    Overwriting(const Topology& topology, const Schedule& schedule, const ShardLayouts& layouts)
        : read(topology, schedule, layouts, IntervalTimes::Side::kTail),
          copied(topology, schedule, layouts, IntervalTimes::Side::kHead) {}
    IntervalTimes read;    // when it was last sent on
    IntervalTimes copied;  // when the last copy arrived
    std::vector<uint32_t> handles;
  };

  Place AtTail(size_t i) const { return At(i, topology_.tail(schedule_.transfers[i].link)); }
  Place AtHead(size_t i) const { return At(i, topology_.head(schedule_.transfers[i].link)); }
  Place At(size_t i, NodeId node) const {
    const Transfer& transfer = schedule_.transfers[i];
    return {node, transfer.shard, transfer.begin, transfer.end};
  }
  double& LinkFree(const Message& message) { return link_free_s_[message.link.index()]; }

  bool Wait(size_t i, double until) {
    double& start = steps_.MessageOf(i).start_s;
    if (until <= start) return false;
    start = until;
    return true;
  }

  // Nothing is written before what it replaces has left, in this step or before. Messages of one
  // step may wait for one another in circles (two ranks that exchange sums); the starts are the
  // smallest that satisfy everyone, found by raising them until nothing changes.
  void WaitForReaders(Overwriting& over) {
    over.handles.clear();
    for (size_t i = steps_.first(); i < steps_.last(); ++i)
      Wait(i, schedule_.transfers[i].op == TransferOp::kCopy ? arrived_.Latest(AtHead(i))
                                                             : over.copied.Latest(AtHead(i)));
    for (size_t i = steps_.first(); i < steps_.last(); ++i)
      over.handles.push_back(over.read.Add(AtTail(i), steps_.MessageOf(i).start_s));
    for (;;) {
      bool later = false;
      for (size_t i = steps_.first(); i < steps_.last(); ++i)
        later |= Wait(i, over.read.Latest(AtHead(i)));
      if (!later) return;
      for (size_t i = steps_.first(); i < steps_.last(); ++i)
        over.read.Raise(AtTail(i), over.handles[i - steps_.first()], steps_.MessageOf(i).start_s);
    }
  }

  void Arrive(size_t i) {
    const double arrival = steps_.MessageOf(i).arrive_s;
    arrived_.Add(AtHead(i), arrival);
    if (overwriting_ && schedule_.transfers[i].op == TransferOp::kCopy)
      overwriting_->copied.Add(AtHead(i), arrival);
  }

  const Topology& topology_;
  const Schedule& schedule_;
  Recorder& recorder_;
  StepMessages steps_;
  ShardLayouts layouts_;
  IntervalTimes arrived_;
  std::optional<Overwriting> overwriting_;  // where something is overwritten
  HostTimes hosts_;
  std::vector<double> link_free_s_;
};

}  // namespace

void RunWithBarriers(const Topology& topology, const Schedule& schedule, Recorder& recorder) {
  StepMessages steps(topology, schedule, recorder);
  HostTimes hosts(topology, recorder.link_model());
  double now = 0;
  while (!CancelRequested() && steps.Next()) {
    double end = now, link_free = 0;
    hosts.Count(steps.messages());
    for (Message& message : steps.messages()) {
      message.start_s = now;
      Send(message, steps.step(), recorder, link_free, now + hosts.AfterBarrier(message));
      end = std::max(end, message.arrive_s);
    }
    now = end;
  }
}

void RunEagerly(const Topology& topology, const Schedule& schedule, Recorder& recorder) {
  EagerRun(topology, schedule, recorder).Run();
}

}  // namespace tutti::sim
