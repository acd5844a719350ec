// Following: communicators that keep silent while another one communicates, told by its daemons, without a period or a clock.
//
// Model       Announcer: of a communicator that others are to make way for; says to their daemons when its ranks here begin
//             and end to communicate. Followed: of one that makes way; whoever knows its key may say so, and it is busy
//             while one of them has said that it communicates and not that it has ended.
// Faults      Whose link is lost communicates no more, for who follows. A link that is lost is made again ten times, 100 ms apart: the
//             follower may not have heard its key yet, or have been told that it follows nobody any more. How long a
//             follower is silent at most says its gate (gate.h).
// Threads     The daemon's.
// Reference   ours, beside the windows of [mccs] 4.3 example 4
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "peer_link.h"

namespace tutti::service {

using FollowKey = std::array<uint64_t, 2>;

struct Follower {
  FollowKey key{};
  Endpoint daemon;
};

class Announcer {
 public:
  explicit Announcer(EventLoop& loop) : loop_(loop) {}
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  // In place of those before.
  void SetFollowers(const std::vector<Follower>& followers);
  void Say(bool busy);
  // To be called every 100 ms or so.
  void Tick(int64_t now_ns);
  size_t followers() const { return targets_.size(); }

 private:
  static constexpr int32_t kMostTries = 10;
  struct Target {
    Follower follower;
    std::unique_ptr<PeerLink> link;
    bool lost = false;
    int32_t tries = 0;
  };
  void Connect(Target& target);
  PeerFrame FrameFor(const Target& target) const;

  EventLoop& loop_;
  std::list<Target> targets_;
  bool busy_ = false;
};

class Followed {
 public:
  Followed() = default;
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  // Whoever spoke before is forgotten.
  void Begin(const FollowKey& key);
  void End();
  bool Has(const FollowKey& key) const { return follows_ && key == key_; }
  // A link whose first frame, kBusy of this key, has been read.
  void Accept(std::unique_ptr<PeerLink> link, const PeerFrame& first);
  bool is_busy() const;
  void Tick();

 private:
  struct Speaker {
    std::unique_ptr<PeerLink> link;
    bool busy = false, lost = false;
  };

  bool follows_ = false;
  FollowKey key_{};
  std::list<Speaker> speakers_;
};

}  // namespace tutti::service
