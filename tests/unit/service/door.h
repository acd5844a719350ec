// Door: where a daemon listens for others, without a daemon behind it: what tests of its parts share. Several parts of several
// daemons run in one thread, over one EventLoop.
#pragma once

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "event_loop.h"
#include "peer_link.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

class Door {
 public:
  // Who has come, and the first frame that it sent.
  using Come = std::function<void(std::unique_ptr<PeerLink>, const PeerFrame&)>;

  // `links`, of what is accepted, must outlive all of that.
  Door(EventLoop& loop, PeerLinks& links, Come come) : loop_(loop), come_(std::move(come)) {
    listener_ = ipc::Descriptor(ListenAt(endpoint_));
    loop_.Add(listener_.fd(), EPOLLIN, [this, &links](uint32_t) {
      const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      accepted_.push_back(fd);
      auto& stranger = strangers_.emplace_back();
      stranger = std::make_unique<PeerLink>(
          loop_, fd,
          PeerLink::Handlers{
              .frame = [this,
                        &stranger](const PeerFrame& frame) { come_(std::move(stranger), frame); },
              .lost = [](const std::string&) {}},
          &links);
    });
  }
  ~Door() { loop_.Remove(listener_.fd()); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  // The descriptors of all that have come, in their order.
  const std::vector<int>& accepted() const { return accepted_; }

 private:
  EventLoop& loop_;
  Come come_;
  Endpoint endpoint_;
  ipc::Descriptor listener_;
  std::list<std::unique_ptr<PeerLink>> strangers_;
  std::vector<int> accepted_;
};

// One end of a link, and what it has heard.
struct HeardLink {
  std::unique_ptr<PeerLink> link;
  std::vector<PeerFrame> heard;
  std::string lost;

  void Keep(std::unique_ptr<PeerLink> kept) {
    link = std::move(kept);
    link->SetHandlers({.frame = [this](const PeerFrame& frame) { heard.push_back(frame); },
                       .lost = [this](const std::string& why) { lost = why; }});
  }
  void Connect(EventLoop& loop, const Endpoint& to) {
    Keep(PeerLink::Connect(loop, to,
                           {.frame = [](const PeerFrame&) {}, .lost = [](const std::string&) {}}));
  }
  size_t Count(PeerKind kind) const {
    size_t count = 0;
    for (const PeerFrame& frame : heard)
      if (frame.kind == kind) ++count;
    return count;
  }
  // The newest of a kind that has been heard.
  const PeerFrame& Last(PeerKind kind) const {
    for (auto frame = heard.rbegin(); frame != heard.rend(); ++frame)
      if (frame->kind == kind) return *frame;
    ADD_FAILURE() << "no frame of kind " << static_cast<int>(kind) << " was heard";
    static const PeerFrame none;
    return none;
  }
};

class LoopTest : public testing::Test {
 protected:
  LoopTest() : loop_(std::move(*EventLoop::Make())) {}

  // What `look` does, then what has come, until it is so.
  void Until(
      const std::function<bool()>& done, const std::function<void()>& look = [] {}) {
    constexpr int kMostLooks = 6'000, kWaitMs = 5;
    for (int i = 0; i < kMostLooks && !done(); ++i) {
      look();
      loop_->Poll(kWaitMs);
    }
    ASSERT_TRUE(done());
  }
  // Whatever is under way here comes.
  void Settle(const std::function<void()>& look = [] {}) {
    for (int quiet = 0; quiet < 5; ++quiet) {
      look();
      if (loop_->Poll(2)) quiet = 0;
    }
  }

  std::unique_ptr<EventLoop> loop_;
  PeerLinks links_;
};

}  // namespace tutti::service
