// RunThroughSwitches: RunEvents (event_loop.h) over paths through switches.
//
// Model       A link out of a rank is idle or busy. Idle, it is asked as there, and sends the chunk
//             that the matcher chooses for the way whose target would have it first, of the kWindow
//             nearest ones that lack something it has, or else of the next. The links
//             behind are taken for it at once, each in the first gap of its calendar from when the
//             chunk comes to its tail. So a chunk waits in front of a busy port, in the switch.
// Reversed    What is reversed in time to reduce must not meet itself in a switch: turned around,
//             copies of one chunk are different sums, and a switch has one place for each. Then a
//             chunk enters a switch only after the copy before has left it, and is sent as much
//             later or not at all (Stays).
// Copies      A switch that reduces, or any with multicast, copies: what comes in goes on to further
//             targets that lack it and to which the links are about free. Reversed only those that
//             reduce do: turned around, what left at several ports comes in there and is added.
// Matcher     As RunEvents asks of it, a path in place of a link, without TimeOf(); besides
//             bool Wants(uint32_t path, uint32_t chunk)   not there, not promised, not put off
//             bool HeadLacks(uint32_t path)   else nothing is wanted there, now or later
// Complexity  O(transfers * kWindow * links out of a switch), where few links find nothing to send.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ten/event_loop.h"
#include "ten/switch_paths.h"

namespace tutti::ten {

struct SwitchUse {
  bool multicast = false;  // every switch copies
  bool reversed = false;
};

// When chunks are inside switches, both ends included.
class Stays {
 public:
  explicit Stays(const SwitchPaths& paths) : paths_(paths) {}

  // How much later a chunk must be sent so as not to meet itself over these hops; 0: as it is.
  int64_t Delay(const std::vector<Hop>& hops, uint32_t chunk) const {
    int64_t delay = 0;
    for (size_t k = 1; k < hops.size(); ++k) {
      const auto found = inside_.find(KeyOf(hops[k], chunk));
      if (found == inside_.end()) continue;
      const int64_t in = ArrivalOf(hops[k - 1]), out = hops[k].start_ps;
      for (const Stay& stay : found->second)
        if (in <= stay.to() && stay.from <= out) delay = std::max(delay, stay.to() + 1 - in);
    }
    return delay;
  }

  // The same of hops that branch off from those of a chunk that is being sent, from when it comes to
  // the switch: it leaves each switch at an instant of its own, so that turned around it is clear
  // which sum comes first. Nothing where it would meet another copy.
  std::optional<int64_t> BranchDelay(const std::vector<Hop>& hops, uint32_t chunk) const {
    int64_t delay = 0;
    for (size_t k = 1; k < hops.size(); ++k) {
      const auto found = inside_.find(KeyOf(hops[k], chunk));
      if (found == inside_.end()) continue;
      const int64_t in = ArrivalOf(hops[k - 1]), out = hops[k].start_ps;
      for (const Stay& stay : found->second) {
        const bool is_own = stay.from == in;
        if (!is_own && in <= stay.to() && stay.from <= out) return {};
        if (is_own && Leaves(stay, out, hops[k].link)) delay = std::max(delay, out + 1 - in);
      }
    }
    return delay;
  }

  void Add(const std::vector<Hop>& hops, uint32_t chunk) {
    for (size_t k = 1; k < hops.size(); ++k) {
      std::vector<Stay>& stays = inside_[KeyOf(hops[k], chunk)];
      const int64_t in = ArrivalOf(hops[k - 1]);
      const auto own = std::find_if(stays.begin(), stays.end(),
                                    [in](const Stay& stay) { return stay.from == in; });
      Stay& stay = own != stays.end() ? *own : stays.emplace_back(Stay{in, {}});
      if (std::none_of(stay.out.begin(), stay.out.end(),
                       [&](const Hop& hop) { return hop.link == hops[k].link; }))
        stay.out.push_back(hops[k]);
    }
  }

 private:
  struct Stay {
    int64_t from;
    std::vector<Hop> out;

    int64_t to() const {
      int64_t last = from;
      for (const Hop& hop : out) last = std::max(last, hop.start_ps);
      return last;
    }
  };

  // At this instant over another link.
  static bool Leaves(const Stay& stay, int64_t at_ps, LinkId link) {
    return std::any_of(stay.out.begin(), stay.out.end(),
                       [&](const Hop& hop) { return hop.start_ps == at_ps && hop.link != link; });
  }

  uint64_t KeyOf(const Hop& out, uint32_t chunk) const {
    const auto node = static_cast<uint64_t>(paths_.topology().tail(out.link).value);
    return uint64_t{chunk} << 32 | node;
  }
  int64_t ArrivalOf(const Hop& hop) const {
    return hop.start_ps + paths_.time_of_link(hop.link).travel_ps;
  }

  const SwitchPaths& paths_;
  std::unordered_map<uint64_t, std::vector<Stay>> inside_;
};

template <class Matcher>
class SwitchedEvents {
 public:
  SwitchedEvents(const SwitchPaths& paths, Matcher& matcher, SwitchUse use, const SendSink& sink)
      : paths_(paths),
        matcher_(matcher),
        use_(use),
        some_copy_(SomeCopy(paths.topology(), use)),
        sink_(sink),
        stays_(paths),
        calendars_(static_cast<size_t>(paths.topology().num_links())),
        is_busy_(paths.first_links().size(), false),
        is_asked_(is_busy_.size(), false),
        nearest_first_(paths.time().size()),
        links_of_rank_(static_cast<size_t>(paths.topology().num_ranks())) {
    for (uint32_t k = 0; k < is_busy_.size(); ++k) {
      const NodeId rank = paths.topology().tail(paths.first_links()[k]);
      links_of_rank_[rank.index()].push_back(k);
      cheapest_.push_back(paths.first_path(k));
      for (uint32_t path = paths.first_path(k); path < paths.end_path(k); ++path)
        if (matcher.Before(path, cheapest_.back())) cheapest_.back() = path;
      OrderWays(k);
      if (paths.first_path(k) < paths.end_path(k)) Ask(k);
    }
  }

  // As RunEvents.
  Result<int64_t> Run(int64_t max_ps) {
    ProgressScope progress("matching", matcher_.num_left());
    for (uint32_t instants = 1;; ++instants) {
      if ((instants & 0xff) == 0 && CancelRequested()) return tl::unexpected(CancelledError());
      const int64_t before = matcher_.num_left();
      SendWhatIsAsked();
      progress.Add(before - matcher_.num_left());
      if (end_ > max_ps) return max_ps + 1;
      if (matcher_.num_left() == 0) return end_;
      GoToNextInstant();
    }
  }

 private:
  static constexpr size_t kWindow = 64;

  static bool SomeCopy(const Topology& topology, SwitchUse use) {
    bool some = use.multicast;
    for (NodeId node : topology.Nodes())
      some = some || (!topology.is_rank(node) && topology.reduces(node));
    return some;
  }

  enum Kind : uint8_t { kArrives, kFrees };
  struct Event {
    int64_t time;
    uint32_t number, chunk;  // of the way, or of the first link
    Kind kind;
    bool operator>(const Event& other) const {
      return std::tie(time, kind, number, chunk) >
             std::tie(other.time, other.kind, other.number, other.chunk);
    }
  };
  struct Option {
    int64_t end_ps;
    uint32_t path;
  };

  // Equally near ones from the rank's own number on, so that not all begin with the same.
  void OrderWays(uint32_t k) {
    const std::span<uint32_t> order = PathsFrom(k);
    std::iota(order.begin(), order.end(), paths_.first_path(k));
    const int32_t tail = paths_.topology().tail(paths_.first_links()[k]).value;
    const int32_t ranks = paths_.topology().num_ranks();
    const auto key = [&](uint32_t path) {
      const int32_t beyond = (paths_.target(path).value - tail + ranks) % ranks;
      return std::pair(paths_.time()[path].travel_ps, beyond);
    };
    std::sort(order.begin(), order.end(),
              [&key](uint32_t a, uint32_t b) { return key(a) < key(b); });
  }
  std::span<uint32_t> PathsFrom(uint32_t k) {
    return {nearest_first_.data() + paths_.first_path(k),
            paths_.end_path(k) - paths_.first_path(k)};
  }

  void Ask(uint32_t k) {
    if (is_busy_[k] || is_asked_[k]) return;
    is_asked_[k] = true;
    asked_.push_back(k);
  }

  void SendWhatIsAsked() {
    std::sort(asked_.begin(), asked_.end(), [this](uint32_t a, uint32_t b) {
      return matcher_.Before(cheapest_[a], cheapest_[b]);
    });
    const std::vector<uint32_t> now = std::exchange(asked_, {});
    for (uint32_t k : now) {
      is_asked_[k] = false;
      if (SendOver(k)) Ask(k);
    }
  }

  enum class Sent : uint8_t { kYes, kNothing, kRefused };

  // Whether it would have sent something, but for a copy of the same chunk in a switch.
  bool SendOver(uint32_t k) {
    const std::span<uint32_t> paths = PathsFrom(k);
    bool refused = false;
    for (size_t begin = 0; begin < paths.size(); begin += kWindow) {
      const Sent sent = SendOver(k, paths.subspan(begin, std::min(kWindow, paths.size() - begin)));
      if (sent == Sent::kYes) return false;
      refused = refused || sent == Sent::kRefused;
    }
    return refused;
  }

  Sent SendOver(uint32_t k, std::span<const uint32_t> paths) {
    options_.clear();
    for (uint32_t path : paths) {
      if (!matcher_.HeadLacks(path)) continue;
      hops_.clear();
      options_.push_back({RouteBy(k, path, now_, hops_), path});
    }
    std::sort(options_.begin(), options_.end(), [this](const Option& a, const Option& b) {
      return a.end_ps != b.end_ps ? a.end_ps < b.end_ps : matcher_.Before(a.path, b.path);
    });
    bool refused = false;
    for (const Option& option : options_) {
      const uint32_t chunk = matcher_.Choose(option.path);
      if (chunk == kNoChunk) continue;
      hops_.clear();
      int64_t end_ps = RouteBy(k, option.path, now_, hops_);
      if (use_.reversed && !PutOff(k, option.path, chunk, &end_ps)) {
        refused = true;
        continue;
      }
      Send(k, option.path, chunk, end_ps);
      return Sent::kYes;
    }
    return refused ? Sent::kRefused : Sent::kNothing;
  }

  int64_t RouteBy(uint32_t k, uint32_t path, int64_t start_ps, std::vector<Hop>& hops) const {
    const LinkId first = paths_.first_links()[k];
    hops.push_back({first, start_ps});
    return paths_.Route(paths_.topology().head(first), paths_.target(path),
                        start_ps + paths_.time_of_link(first).travel_ps, calendars_, {}, hops);
  }

  // Moves `hops_` so that the chunk does not meet itself; false: that would take long.
  bool PutOff(uint32_t k, uint32_t path, uint32_t chunk, int64_t* end_ps) {
    constexpr int kTimes = 4, kPartOfHold = 16;
    const int64_t most = paths_.time_of_link(paths_.first_links()[k]).hold_ps / kPartOfHold;
    int64_t delay = 0;
    for (int time = 0; time < kTimes; ++time) {
      const int64_t more = stays_.Delay(hops_, chunk);
      if (more == 0) return true;
      delay += more;
      if (delay > std::max<int64_t>(most, 1)) return false;
      hops_.clear();
      *end_ps = RouteBy(k, path, now_ + delay, hops_);
    }
    return false;
  }

  void Send(uint32_t k, uint32_t path, uint32_t chunk, int64_t end_ps) {
    const int64_t frees_ps =
        hops_.front().start_ps + paths_.time_of_link(hops_.front().link).hold_ps;
    if (use_.reversed) stays_.Add(hops_, chunk);
    Take(0, chunk);
    Deliver(path, chunk, end_ps);
    is_busy_[k] = true;
    events_.push({frees_ps, k, chunk, kFrees});
    if (some_copy_) SendOn(path, chunk);
  }

  // The hops from the n-th on.
  void Take(size_t n, uint32_t chunk) {
    for (; n < hops_.size(); ++n) {
      const Hop& hop = hops_[n];
      if (!paths_.topology().is_rank(paths_.topology().tail(hop.link)))
        calendars_[hop.link.index()].Take(hop.start_ps, paths_.time_of_link(hop.link).hold_ps);
      if (sink_) sink_(hop.link, chunk, hop.start_ps);
    }
  }

  void Deliver(uint32_t path, uint32_t chunk, int64_t end_ps) {
    end_ = std::max(end_, end_ps);
    matcher_.Start(path, chunk);
    events_.push({end_ps, path, chunk, kArrives});
  }

  // To further targets of the same first link, where they have it at most a chunk later than over
  // links that are free.
  void SendOn(uint32_t sent, uint32_t chunk) {
    for (const Option& option : options_) {
      if (option.path == sent || !matcher_.Wants(option.path, chunk)) continue;
      const std::optional<int64_t> end_ps = Branch(option.path, chunk);
      if (!end_ps) continue;
      const size_t before = hops_.size();
      for (const Hop& hop : further_)
        if (!IsCarried(hop)) hops_.push_back(hop);
      Take(before, chunk);
      Deliver(option.path, chunk, *end_ps);
    }
  }

  // Fills `further_`, from the first link on; when the chunk is there.
  std::optional<int64_t> Branch(uint32_t path, uint32_t chunk) {
    constexpr int kTimes = 16;
    const Hop first = hops_.front();
    const LinkTime& time = paths_.time_of_link(first.link);
    int64_t delay = 0;
    for (int tried = 0; tried < kTimes; ++tried) {
      further_.assign(1, first);
      const int64_t end_ps =
          paths_.Route(paths_.topology().head(first.link), paths_.target(path),
                       first.start_ps + time.travel_ps + delay, calendars_, hops_, further_);
      const LinkTime& last = paths_.time_of_link(further_.back().link);
      if (end_ps - first.start_ps > paths_.time()[path].travel_ps + last.hold_ps) return {};
      const auto branch = std::find_if_not(further_.begin(), further_.end(),
                                           [this](const Hop& hop) { return IsCarried(hop); });
      if (branch == further_.end() || !Copies(paths_.topology().tail(branch->link))) return {};
      if (!use_.reversed) return end_ps;
      if (std::any_of(branch, further_.end(), [this](const Hop& hop) { return IsCarried(hop); }))
        return {};
      const std::optional<int64_t> more = stays_.BranchDelay(further_, chunk);
      if (!more) return {};
      if (*more == 0) {
        stays_.Add(further_, chunk);
        return end_ps;
      }
      delay = std::max(delay + 1, *more);
    }
    return {};
  }

  bool IsCarried(const Hop& hop) const {
    return std::any_of(hops_.begin(), hops_.end(),
                       [&hop](const Hop& known) { return known.link == hop.link; });
  }
  bool Copies(NodeId node) const {
    return (use_.multicast && !use_.reversed) || paths_.topology().reduces(node);
  }

  void GoToNextInstant() {
    matcher_.SetNetworkIdle(events_.empty());
    if (events_.empty()) {
      for (uint32_t k = 0; k < is_busy_.size(); ++k)
        if (paths_.first_path(k) < paths_.end_path(k)) Ask(k);
      return;
    }
    now_ = events_.top().time;
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      if (event.kind == kFrees) {
        is_busy_[event.number] = false;
        Ask(event.number);
        continue;
      }
      matcher_.Arrive(event.number, event.chunk);
      for (uint32_t k : links_of_rank_[paths_.target(event.number).index()]) Ask(k);
    }
  }

  const SwitchPaths& paths_;
  Matcher& matcher_;
  const SwitchUse use_;
  const bool some_copy_;
  const SendSink& sink_;
  Stays stays_;
  std::vector<Calendar> calendars_;  // by link; of those out of switches
  std::vector<bool> is_busy_, is_asked_;
  std::vector<uint32_t> asked_, cheapest_;  // first links; the cheapest path of each
  std::vector<uint32_t> nearest_first_;     // paths, in the places of those of each first link
  std::vector<std::vector<uint32_t>> links_of_rank_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Option> options_;
  std::vector<Hop> hops_, further_;
  int64_t now_ = 0, end_ = 0;
};

}  // namespace tutti::ten
