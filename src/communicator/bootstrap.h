// How the ranks of a communicator find each other and hear of each other's end.
//
// Model       Who makes a unique id runs a *root*: a thread that listens. Every rank keeps a
//             connection to it. A *round* gives every rank what all ranks have said in it; joining
//             is the first. When a rank's connection ends before it has said goodbye, when it says
//             why it failed, or when it leaves while others wait for it in a round, the root tells all others.
// Silence     A thread of each process (beats.h) says every second on all its links that the process is
//             there. The root tells the others of a rank that has said nothing for the time that the
//             rank gave when it joined: it is stopped, or its host is gone. A rank that waits asks the root, which
//             has to answer within that time. Who finds that itself has stood still judges nobody.
// Frames      those of control_link.h: hello, share, shared, beat, failed, abort, end
//             (docs/formats/wire.md).
// Errors      kPeerFailed: what the root said, or that it has gone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "beats.h"
#include "control_link.h"
#include "departures.h"
#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"
#include "tutti/runtime/remote.h"

namespace tutti::bootstrap {

inline constexpr size_t kMaxShareBytes = 4096;  // of one rank in a round

// What a unique id says.
struct Address {
  Endpoint root;
  JobSecret secret{};
};
UniqueId Encode(const Address& address);
// kInvalidArgument: no id of this version.
Result<Address> Decode(const UniqueId& id);

// How long a root stays for those that have not come when all others have gone, one of them by a fault: so that they, too, hear of it.
inline constexpr std::chrono::milliseconds kRootLingers{30'000};

// Starts a root that lives until its ranks have gone, or the process ends.
Result<Address> StartRoot(const IpAddress& listen_address,
                          std::chrono::milliseconds lingers = kRootLingers);

// A rank's connection to its root.
class Link {
 public:
  // `silence_s`: 0: nobody is judged.
  static Result<Link> Join(const Address& address, int32_t num_ranks, int32_t rank,
                           double silence_s, const Deadline& deadline);
  Link(Link&&) noexcept = default;
  Link& operator=(Link&&) noexcept = default;
  ~Link();

  // What each rank said, by rank. kCancelled: `aborted` was set. `look`, if any, is called while it waits and may end that.
  Result<std::vector<std::string>> Share(std::string_view mine, const Deadline& deadline,
                                         const std::atomic<bool>& aborted,
                                         const std::function<Status()>& look = nullptr);
  // An error, the same from then on: somebody has failed, gone, or fallen silent. Costs a system call.
  Status Check();
  // Tells the root why this rank fails, once, and adds what others say within `wait_s`.
  Error Fail(const Error& error, double wait_s);

  // It leaves, having completed that, and nobody fails for it. To be called last; without it nothing is said of what it completed.
  void End(const RankProgress& completed);
  // Those of whose end Check() has heard.
  const Departures& departures() const { return departures_; }

  const Endpoint& local() const { return local_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  Link(ControlLink link, int32_t rank, int32_t num_ranks, double silence_s);
  // The next frame but beats and those that end everything; nothing: none came.
  Result<std::optional<Frame>> Next(int wait_ms);
  void HearLeft(const Frame& frame);
  // Asks the root now and then; an error: it has not answered in time.
  Status AskRoot();
  Status Send(FrameType type, std::string_view body);

  std::shared_ptr<BeatingLink> link_;
  Endpoint local_;
  int32_t rank_ = 0, num_ranks_ = 0;
  double silence_s_ = 0;
  Time asked_, looked_;
  std::optional<Time> unanswered_;  // since when
  std::optional<Error> fault_;      // the last that was heard
  Departures departures_;
  bool heard_ = false;  // anything at all
  bool over_ = false;   // the root is no longer needed, or has failed
};

}  // namespace tutti::bootstrap
