#include "following.h"

#include <algorithm>
#include <string>

namespace tutti::service {

void Announcer::SetFollowers(const std::vector<Follower>& followers) {
  targets_.clear();
  for (const Follower& follower : followers) {
    Target& target = targets_.emplace_back();
    target.follower = follower;
    Connect(target);
  }
}

PeerFrame Announcer::FrameFor(const Target& target) const {
  const FollowKey& key = target.follower.key;
  return {.kind = PeerKind::kBusy,
          .words = {static_cast<int64_t>(key[0]), static_cast<int64_t>(key[1]), busy_ ? 1 : 0}};
}

void Announcer::Connect(Target& target) {
  target.lost = false;
  target.link = PeerLink::Connect(loop_, target.follower.daemon,
                                  {.frame = [](const PeerFrame&) {},
                                   .lost = [&target](const std::string&) { target.lost = true; }});
  if (target.link == nullptr)
    target.lost = true;
  else
    target.link->Send(FrameFor(target));
}

void Announcer::Say(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  for (Target& target : targets_)
    if (!target.lost) target.link->Send(FrameFor(target));
}

void Announcer::Tick(int64_t now_ns) {
  targets_.remove_if(
      [](const Target& target) { return target.lost && target.tries == kMostTries; });
  for (Target& target : targets_)
    if (target.lost) {
      ++target.tries;
      Connect(target);
    } else {
      target.link->Watch(now_ns);
    }
}

void Followed::Begin(const FollowKey& key) {
  End();
  key_ = key;
  follows_ = true;
}

void Followed::End() {
  follows_ = false;
  speakers_.clear();
}

void Followed::Accept(std::unique_ptr<PeerLink> link, const PeerFrame& first) {
  Speaker& speaker = speakers_.emplace_back();
  speaker.busy = first.words[2] != 0;
  speaker.link = std::move(link);
  speaker.link->SetHandlers({.frame =
                                 [&speaker](const PeerFrame& frame) {
                                   if (frame.kind == PeerKind::kBusy && frame.words.size() == 3)
                                     speaker.busy = frame.words[2] != 0;
                                 },
                             .lost = [&speaker](const std::string&) { speaker.lost = true; }});
}

bool Followed::is_busy() const {
  return std::any_of(speakers_.begin(), speakers_.end(),
                     [](const Speaker& speaker) { return speaker.busy && !speaker.lost; });
}

void Followed::Tick() {
  speakers_.remove_if([](const Speaker& speaker) { return speaker.lost; });
}

}  // namespace tutti::service
