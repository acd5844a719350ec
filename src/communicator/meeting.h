// Meeting: where the process of a rank is found again when its communicator has failed, and how the ranks that are left regroup
// (regroup.h) without the process that made the unique id.
//
// Model       A door (meeting_door.h) that is open as long as the rank's communicator, or any that was made of it by regrouping,
//             lives. Who is greeted there knows that the process runs; who is refused, or greeted by somebody else,
//             that it has ended; who hears nothing for kSilence_s, nothing. A rank follows the lowest one that is there.
// Descent     A party that was made by regrouping knows the decision it was made by. Who is still of the party before
//             that and is named by the decision hears it, whichever of both leads; who is not named is sent away. So
//             those that a leader told before it ended and those that it did not find each other
//             (docs/adr/0109-who-heard-a-decision-carries-it-on.md).
// Frames      those of control_link.h: hello, share, shared, abort (docs/formats/wire.md).
// Trust       Who knows the communicator's secret is a rank.
// Threads     One at a time, beside the one that greets at the door.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "meeting_door.h"
#include "regroup.h"
#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/runtime/remote.h"

namespace tutti {

class Meeting {
 public:
  // How long nothing may come back from a process before it counts as cut off, or stopped.
  static constexpr double kSilence_s = 3;

  // What a communicator knows of its ranks.
  struct Party {
    int32_t rank = 0;
    std::vector<MeetingPlace> meetings;  // by rank
    JobSecret secret{};
    // What it was made by, where nobody new came with it: the secret of the party before it, and the decision.
    JobSecret before{};
    std::optional<Regrouped> decision = {};
  };
  // Of those that survive by a decision of `party`, before any of them has joined the new communicator.
  static Result<Party> Descend(const Party& party, const Regrouped& decision);

  static Result<std::shared_ptr<Meeting>> Open(const IpAddress& address);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  const MeetingPlace& place() const { return door_->place(); }
  // Waits until those who are there agree, until `deadline` or `stop`. `make_id` is called by the leader.
  Result<Regrouped> Regroup(const Party& party, const RegroupAsk& ask,
                            const std::function<Result<UniqueId>()>& make_id,
                            const Deadline& deadline, const std::atomic<bool>& stop);
  // A rank of the party with that secret that has come and waits for this one to lead. It is heard when this one does.
  std::optional<int32_t> WhoWaits(const JobSecret& secret);

 private:
  class Lead;
  explicit Meeting(std::shared_ptr<MeetingDoor> door) : door_(std::move(door)) {}

  std::shared_ptr<MeetingDoor> door_;
};

// What the rank that leads looks at while those of its decision join the new communicator: nobody waits for one that will
// not come.
class MeetingWatch {
 public:
  struct Member {
    int32_t rank = 0;  // of the new communicator
    MeetingPlace meeting;
  };
  // Of the party with that secret; `own` is where its first rank is met.
  MeetingWatch(std::shared_ptr<Meeting> own, const JobSecret& secret, std::vector<Member> members);
  ~MeetingWatch();
  MeetingWatch(const MeetingWatch&) = delete;
  MeetingWatch& operator=(const MeetingWatch&) = delete;

  // To be called now and then. kPeerFailed: one has ended, and had time to say so otherwise; or one regroups already, as it
  // could not join.
  Status Look();

 private:
  struct Watched;
  std::shared_ptr<Meeting> own_;
  JobSecret secret_;
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace tutti
