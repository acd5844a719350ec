#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "interval_times.h"
#include "runs.h"
#include "step_messages.h"
#include "tutti/base/cancel.h"

namespace tutti::sim {
namespace {

using Message = StepMessages::Message;

// Starts and arrivals are sums and maxima of the same terms in the same order with and without the
// barrier. Rounding keeps order, so eager is never later, to the last bit.
// `least_s`: sooner after its start it does not arrive.
void Send(Message& message, int32_t step, Recorder& recorder, double& link_free_s,
          double least_s = 0) {
  const Recorder::Durations durations = recorder.Of(message.link, message.bytes);
  message.arrive_s = message.start_s + std::max(durations.travel_s, least_s);
  link_free_s = message.start_s + durations.hold_s;
  recorder.Add({message.link, step, message.start_s, link_free_s, message.arrive_s, message.bytes,
                message.first_transfer},
               durations.hold_s);
}

// How long the hosts with a limit need for all that they take in or send out in one step.
class HostTimes {
 public:
  explicit HostTimes(const Topology& topology) : topology_(topology) {
    if (!topology.has_host_limits()) return;
    out_.resize(static_cast<size_t>(topology.num_ranks()));
    in_ = out_;
    for (NodeId rank : topology.Ranks()) {
      const auto limit = topology.host_bandwidth(rank);
      if (!limit) continue;
      Set(topology.OutLinks(rank), *limit, out_[rank.index()]);
      Set(topology.InLinks(rank), *limit, in_[rank.index()]);
    }
  }

  void Count(std::span<const Message> messages) {
    if (out_.empty()) return;
    for (Host& host : out_) host.bytes = 0;
    for (Host& host : in_) host.bytes = 0;
    for (const Message& message : messages) {
      if (Host* host = Find(out_, topology_.tail(message.link))) host->bytes += message.bytes;
      if (Host* host = Find(in_, topology_.head(message.link))) host->bytes += message.bytes;
    }
  }

  // Of the step's messages, one after its hosts have done all of theirs.
  double Of(const Message& message) {
    double seconds = 0;
    for (const Host* host :
         {Find(out_, topology_.tail(message.link)), Find(in_, topology_.head(message.link))})
      if (host != nullptr)
        seconds = std::max(seconds, host->alpha_s + host->bytes / host->bandwidth);
    return seconds;
  }

 private:
  struct Host {
    double bandwidth = 0;  // 0: no limit
    double alpha_s = 0;    // the least of its links that way
    double bytes = 0;
  };

  template <class Links>
  void Set(const Links& links, int64_t limit, Host& host) const {
    int64_t alpha_ps = std::numeric_limits<int64_t>::max();
    for (LinkId link : links) alpha_ps = std::min(alpha_ps, topology_.alpha_ps(link));
    host.bandwidth = static_cast<double>(limit);
    host.alpha_s = static_cast<double>(alpha_ps) * 1e-12;
  }

  static Host* Find(std::vector<Host>& hosts, NodeId node) {
    if (node.index() >= hosts.size() || hosts[node.index()].bandwidth <= 0) return nullptr;
    return &hosts[node.index()];
  }

  const Topology& topology_;
  std::vector<Host> out_, in_;  // by rank; empty without limits
};

class EagerRun {
 public:
  EagerRun(const Topology& topology, const Schedule& schedule, Recorder& recorder)
      : topology_(topology),
        schedule_(schedule),
        recorder_(recorder),
        steps_(topology, schedule, recorder),
        layouts_(topology, schedule),
        arrived_(topology, schedule, layouts_, IntervalTimes::Side::kHead),
        link_free_s_(static_cast<size_t>(topology.num_links()), 0) {
    if (!schedule.collective.reduces()) return;
    overwriting_.emplace(topology, schedule, layouts_);
  }

  void Run() {
    while (!CancelRequested() && steps_.Next()) {
      for (Message& message : steps_.messages()) message.start_s = LinkFree(message);
      for (size_t i = steps_.first(); i < steps_.last(); ++i) Wait(i, arrived_.Latest(AtTail(i)));
      if (overwriting_) WaitForReaders(*overwriting_);
      for (Message& message : steps_.messages())
        Send(message, steps_.step(), recorder_, LinkFree(message));
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
  std::vector<double> link_free_s_;
};

}  // namespace

void RunWithBarriers(const Topology& topology, const Schedule& schedule, Recorder& recorder) {
  StepMessages steps(topology, schedule, recorder);
  HostTimes hosts(topology);
  double now = 0;
  while (!CancelRequested() && steps.Next()) {
    double end = now, link_free = 0;
    hosts.Count(steps.messages());
    for (Message& message : steps.messages()) {
      message.start_s = now;
      Send(message, steps.step(), recorder, link_free, hosts.Of(message));
      end = std::max(end, message.arrive_s);
    }
    now = end;
  }
}

void RunEagerly(const Topology& topology, const Schedule& schedule, Recorder& recorder) {
  EagerRun(topology, schedule, recorder).Run();
}

}  // namespace tutti::sim
