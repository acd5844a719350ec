#include "meeting_door.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "of_this_process.h"

namespace tutti {
namespace {

constexpr int64_t kGreetingMagic = 0x0001'5445'4547'5454;  // "TTGEET", version 1

void Write(int event) {
  const uint64_t one = 1;
  static_cast<void>(write(event, &one, sizeof(one)));
}

// Whether anything has come from it; `has_gone`: nothing will any more.
bool HasSpoken(const ControlLink& link, bool& has_gone) {
  char byte = 0;
  const ssize_t bytes = recv(link.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  has_gone = bytes == 0 || (bytes < 0 && !WouldBlock());
  return bytes > 0;
}

class Greeter {
 public:
  ~Greeter() {
    if (changed_ >= 0) close(changed_);
  }
  void Begin() {
    std::thread([this] {
      while (true) GreetOnce();
    }).detach();
  }
  void Add(const std::shared_ptr<MeetingDoor>& door) {
    const std::lock_guard lock(mutex_);
    doors_.push_back(door);
    Write(changed_);
  }

 private:
  static constexpr int kPauseMs = 20;  // where descriptors have run out

  void GreetOnce() {
    std::vector<std::shared_ptr<MeetingDoor>> doors;
    {
      const std::lock_guard lock(mutex_);
      for (const std::weak_ptr<MeetingDoor>& each : doors_)
        if (auto door = each.lock(); door != nullptr && !door->is_closed())
          doors.push_back(std::move(door));
      doors_.assign(doors.begin(), doors.end());
    }
    std::vector<pollfd> ready = {{.fd = changed_, .events = POLLIN, .revents = 0}};
    for (const auto& door : doors)
      ready.push_back({.fd = door->listener(), .events = POLLIN, .revents = 0});
    // Without a descriptor of its own it looks for new doors now and then.
    poll(ready.data(), ready.size(), changed_ < 0 ? kPauseMs : -1);
    uint64_t times = 0;
    if (ready[0].revents != 0) static_cast<void>(read(changed_, &times, sizeof(times)));
    bool has_room = true;
    for (size_t i = 0; i < doors.size(); ++i)
      if (ready[i + 1].revents != 0) has_room = doors[i]->Greet() && has_room;
    if (!has_room) std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }

  const int changed_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex_;
  std::vector<std::weak_ptr<MeetingDoor>> doors_;
};

}  // namespace

std::string MeetingPlace::Greeting() const {
  constexpr int64_t kBytes = 3 * sizeof(int64_t);
  return WordsToBytes({static_cast<int64_t>(FrameType::kHello) << 56 | kBytes, kGreetingMagic,
                       static_cast<int64_t>(greeting[0]), static_cast<int64_t>(greeting[1])});
}

std::vector<int64_t> ToWords(const MeetingPlace& place) {
  const auto at = ToWords(place.endpoint);
  std::vector<int64_t> words(at.begin(), at.end());
  for (const uint64_t word : place.greeting) words.push_back(static_cast<int64_t>(word));
  return words;
}

MeetingPlace MeetingPlaceOfWords(const int64_t* words) {
  return {EndpointOfWords(words),
          {static_cast<uint64_t>(words[kEndpointWords]),
           static_cast<uint64_t>(words[kEndpointWords + 1])}};
}

Result<std::shared_ptr<MeetingDoor>> MeetingDoor::Open(const IpAddress& address) {
  Endpoint endpoint{address, 0};
  const int listener = ListenAt(endpoint);
  if (listener < 0)
    return MakeError(ErrorCode::kIo, fmt::format("cannot listen at {}: {}", endpoint.AddressText(),
                                                 std::strerror(errno)));
  auto door = std::make_shared<MeetingDoor>(listener, MeetingPlace{endpoint, DrawSecret()});
  OfThisProcess<Greeter>().Add(door);
  return door;
}

MeetingDoor::~MeetingDoor() { close(listener_); }

void MeetingDoor::Close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  waiting_.clear();
  // The thread that greets may hold the socket for a moment; in a child that was forked it is the parent's, too.
  if (getpid() == process_) shutdown(listener_, SHUT_RDWR);
}

std::list<ControlLink> MeetingDoor::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void MeetingDoor::WithWaiting(const std::function<void(std::list<ControlLink>&)>& look) {
  const std::lock_guard lock(mutex_);
  look(waiting_);
}

void MeetingDoor::Notify(int event) {
  const std::lock_guard lock(mutex_);
  event_ = event;
}

bool MeetingDoor::Greet() {
  const std::string greeting = place_.Greeting();
  const std::lock_guard lock(mutex_);
  while (!is_closed_) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    ControlLink link(fd);
    if (send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(greeting.size()))
      continue;  // it has gone already
    waiting_.push_back(std::move(link));
    if (event_ >= 0) Write(event_);
    if (waiting_.size() <= kMostSilent) continue;
    waiting_.remove_if([](const ControlLink& each) {
      bool has_gone = false;
      HasSpoken(each, has_gone);
      return has_gone;
    });
    const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), [](const ControlLink& each) {
      bool has_gone = false;
      return !HasSpoken(each, has_gone);
    });
    if (waiting_.size() > kMostSilent && oldest != waiting_.end()) waiting_.erase(oldest);
  }
  return true;
}

}  // namespace tutti
