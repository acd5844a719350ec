// MeetingDoor: where the process of a rank listens for the others, and a thread of this process that answers there.
//
// Model       Who connects is sent the door's greeting, 16 random bytes that only the ranks of its communicators were told, and
//             waits in a list for whoever takes it. So a connection alone proves nothing: a stopped process, or a child that
//             was forked and keeps the socket of a parent that has ended, says nothing; another program that has taken over
//             the port of one that has ended says something else.
// Limits      Of those that wait and have said nothing the oldest is turned away where there are more than kMostSilent.
// Threads     Any may call; one thread of the process greets at all doors. It begins with the
//             first door, and ends with the process. A child that was forked has none, until it opens a door itself.
// Trust       Who has been greeted may greet alike at that port once the process has ended. The network is trusted, as by
//             the other frames of communicators (docs/formats/wire.md).
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control_link.h"
#include "endpoint.h"
#include "tutti/base/result.h"
#include "tutti/runtime/remote.h"

namespace tutti {

// Where a rank is met, and what only its process says there.
struct MeetingPlace {
  Endpoint endpoint;
  JobSecret greeting{};

  // The bytes that are sent to who connects.
  std::string Greeting() const;
  friend bool operator==(const MeetingPlace&, const MeetingPlace&) = default;
};

inline constexpr size_t kMeetingPlaceWords = kEndpointWords + 2;
std::vector<int64_t> ToWords(const MeetingPlace& place);
MeetingPlace MeetingPlaceOfWords(const int64_t* words);

class MeetingDoor {
 public:
  static constexpr size_t kMostSilent = 256;

  // kIo: it cannot listen there.
  static Result<std::shared_ptr<MeetingDoor>> Open(const IpAddress& address);
  // Use Open.
  MeetingDoor(int listener, const MeetingPlace& place) : listener_(listener), place_(place) {}
  ~MeetingDoor();
  MeetingDoor(const MeetingDoor&) = delete;
  MeetingDoor& operator=(const MeetingDoor&) = delete;

  const MeetingPlace& place() const { return place_; }
  // Those that have been greeted since.
  std::list<ControlLink> Take();
  // With those that wait.
  void WithWaiting(const std::function<void(std::list<ControlLink>&)>& look);
  // `event`: of eventfd(), written to when one is greeted; -1: none.
  void Notify(int event);
  // Nobody is there any more: connections are refused from now on.
  void Close();

  // For the thread that greets.
  int listener() const { return listener_; }
  bool is_closed() const { return is_closed_; }
  // All that have come. False: the process has no room for another descriptor.
  bool Greet();

 private:
  const int listener_;
  const MeetingPlace place_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::list<ControlLink> waiting_;  // in the order they came
  int event_ = -1;
  std::atomic<bool> is_closed_ = false;
};

}  // namespace tutti
