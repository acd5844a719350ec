#include "meeting.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "bootstrap.h"
#include "control_link.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRegroupMagic = 0x0003'4750'5247'5454;  // "TTGRPG", version 3
constexpr size_t kRegroupWords = 6, kMostAskBytes = 4096;
constexpr int kMeetTickMs = 20;

Error StoppedEarly() { return {ErrorCode::kCancelled, "aborted"}; }

// A connection to a rank that does not wait: whether its process is there.
class Dial {
 public:
  enum class State : uint8_t { kWaits, kThere, kGone };

  // `silent_since`: of an earlier one that heard nothing.
  explicit Dial(const MeetingPlace& to, Clock::time_point silent_since = Clock::now())
      : to_(to), greeting_(to.Greeting()), since_(silent_since) {
    Begin();
  }
  ~Dial() { Close(); }
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  State Look() {
    if (state_ == State::kWaits && fd_ < 0 && Clock::now() >= next_try_) Begin();
    if (state_ == State::kWaits && fd_ >= 0 && !is_connected_) Finish();
    if (state_ == State::kWaits && is_connected_) ReadGreeting();
    if (state_ == State::kThere) {
      char byte = 0;
      const ssize_t bytes = recv(fd_, &byte, 1, MSG_DONTWAIT);
      if (bytes == 0 || (bytes < 0 && !WouldBlock())) {  // it may have ended: its host says so
        since_ = Clock::now();
        Begin();
      }
    }
    return state_;
  }
  bool IsSilent() const {
    return state_ == State::kWaits &&
           std::chrono::duration<double>(Clock::now() - since_).count() > Meeting::kSilence_s;
  }
  Clock::time_point since() const { return since_; }
  int Take() { return std::exchange(fd_, -1); }

 private:
  static constexpr std::chrono::milliseconds kPause{20};

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Begin() {
    Close();
    state_ = State::kWaits;
    is_connected_ = false;
    greeted_ = 0;
    next_try_ = Clock::now() + kPause;
    fd_ = TcpSocket(to_.endpoint, SOCK_NONBLOCK);
    if (fd_ < 0) return;
    if (ConnectTo(fd_, to_.endpoint) != 0 && errno != EINPROGRESS) Failed(errno);
  }
  void Failed(int error) {
    Close();
    is_connected_ = false;
    if (error == ECONNREFUSED || error == ECONNRESET) state_ = State::kGone;
  }
  void Finish() {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) <= 0) return;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Failed(error);
    // A free port of this host may have been connected to itself.
    if (LocalEndOf(fd_) == to_.endpoint) return Failed(ECONNREFUSED);
    is_connected_ = true;
  }
  // The process says it at once; one that is stopped says nothing, and another program something else, or leaves.
  void ReadGreeting() {
    std::array<char, 64> bytes{};
    const size_t wanted = std::min(bytes.size(), greeting_.size() - greeted_);
    const ssize_t got = recv(fd_, bytes.data(), wanted, MSG_DONTWAIT);
    if (got < 0 && WouldBlock()) return;
    if (got <= 0) return Failed(ECONNABORTED);  // to be tried again: why it left is not known
    const auto size = static_cast<size_t>(got);
    if (greeting_.compare(greeted_, size, bytes.data(), size) != 0) return Failed(ECONNREFUSED);
    greeted_ += size;
    if (greeted_ == greeting_.size()) state_ = State::kThere;
  }

  MeetingPlace to_;
  std::string greeting_;
  size_t greeted_ = 0;  // bytes of it that have come
  int fd_ = -1;
  bool is_connected_ = false;
  State state_ = State::kWaits;
  Clock::time_point since_, next_try_ = since_;
};

// Of a frame with a decision; it names each rank at most once.
size_t MostBytes(const Meeting::Party& party) {
  constexpr size_t kWord = 8;
  return kMostAskBytes + kWord * party.meetings.size();
}

// The decision by which `party` was made, for rank `rank` of the party before it.
std::optional<Regrouped> DecisionFor(const Meeting::Party& party, int32_t rank) {
  return party.decision ? party.decision->For(rank) : std::nullopt;
}

struct Hello {
  JobSecret secret{}, before{};
  int32_t rank = 0;
};

std::optional<Hello> HelloOf(const Frame& frame) {
  const auto words = frame.Words(kRegroupWords);
  if (frame.type != FrameType::kHello || !words || (*words)[0] != kRegroupMagic)
    return std::nullopt;
  const int64_t rank = (*words)[3];
  if (rank < 0 || rank > INT32_MAX) return std::nullopt;
  const auto secret = [&words](size_t at) {
    return JobSecret{static_cast<uint64_t>((*words)[at]), static_cast<uint64_t>((*words)[at + 1])};
  };
  return Hello{secret(1), secret(4), static_cast<int32_t>(rank)};
}

// The hello that has come, which stays to be received. `has_gone`: nothing will come any more.
std::optional<Hello> LookAtHello(int fd, bool& has_gone) {
  constexpr size_t kWord = 8;
  std::array<char, kWord*(1 + kRegroupWords)> bytes{};
  const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  has_gone = got == 0 || (got < 0 && !WouldBlock());
  if (got != static_cast<ssize_t>(bytes.size())) return std::nullopt;
  const std::string expected =
      WordsToBytes({static_cast<int64_t>(FrameType::kHello) << 56 | kWord * kRegroupWords});
  if (std::string_view(bytes.data(), kWord) != expected) return std::nullopt;
  return HelloOf({FrameType::kHello, std::string(bytes.begin() + kWord, bytes.end())});
}

// Who is asked may be of the party before this one, and hears what was decided.
bool Greet(ControlLink& link, int32_t leader, const Meeting::Party& party, const RegroupAsk& ask) {
  if (!link.Send(FrameType::kHello,
                 {kRegroupMagic, static_cast<int64_t>(party.secret[0]),
                  static_cast<int64_t>(party.secret[1]), int64_t{party.rank},
                  static_cast<int64_t>(party.before[0]), static_cast<int64_t>(party.before[1])}))
    return false;
  if (party.decision) {
    Regrouped decision = *party.decision;
    decision.rank = leader;
    if (!link.Send(FrameType::kShared, Encode(decision))) return false;
  }
  return static_cast<bool>(link.Send(FrameType::kShare, Encode(ask)));
}

// A rank's part as one that follows another. Nothing: that has gone, or does not lead.
Result<std::optional<Regrouped>> Follow(int fd, int32_t leader, const Meeting::Party& party,
                                        const RegroupAsk& ask, const Deadline& deadline,
                                        const std::atomic<bool>& stop) {
  ControlLink link(fd);
  if (!Greet(link, leader, party, ask)) return std::optional<Regrouped>();
  // Who lives and does not ask does not lead. Who leads decides by its own deadline.
  constexpr double kLong = 1e9, kGrace_s = 2;
  const double left = deadline.Left() > 0 ? deadline.Left() : kLong;
  const Deadline until_it_leads(left / 2), until_it_decides(left + kGrace_s);
  bool leads = false;
  while (true) {
    const Result<std::optional<Frame>> frame = link.Receive(MostBytes(party), kMeetTickMs);
    if (!frame) return std::optional<Regrouped>();
    if (*frame && (*frame)->type == FrameType::kBeat) {
      leads = true;
    } else if (*frame) {
      if ((*frame)->type == FrameType::kAbort)
        return MakeError(ErrorCode::kPeerFailed, (*frame)->body);
      const auto regrouped = DecodeRegrouped((*frame)->body);
      if ((*frame)->type == FrameType::kShared && regrouped) return regrouped;
      return MakeError(ErrorCode::kPeerFailed, "the rank that leads sent nonsense");
    }
    if (stop) return tl::unexpected(StoppedEarly());
    if (!leads && until_it_leads.HasPassed()) return std::optional<Regrouped>();
    if (until_it_decides.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, "not all ranks that are there asked in time");
  }
}

}  // namespace

// The leader's part.
class Meeting::Lead {
 public:
  // `silent`: ranks that this one would have followed and heard nothing of, and since when.
  Lead(Meeting& meeting, const Party& party, const RegroupAsk& ask,
       std::map<int32_t, Clock::time_point> silent)
      : door_(*meeting.door_),
        party_(party),
        silent_(std::move(silent)),
        roll_(static_cast<int32_t>(party.meetings.size())),
        dials_(party.meetings.size()) {
    entered_ = roll_.Enter(party.rank, ask);
    door_.Notify(came_);
  }
  ~Lead() {
    door_.Notify(-1);
    if (came_ >= 0) close(came_);
  }
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

  Result<Regrouped> Run(const std::function<Result<UniqueId>()>& make_id, const Deadline& deadline,
                        const std::atomic<bool>& stop) {
    while (true) {
      if (!entered_) return Refuse(entered_.error());
      if (stop) return Refuse(StoppedEarly());
      for (ControlLink& link : door_.Take()) guests_.push_back({std::move(link)});
      for (auto guest = guests_.begin(); guest != guests_.end();)
        guest = Hear(*guest) ? std::next(guest) : guests_.erase(guest);
      if (learned_) return Pass(*learned_);
      const bool all_known = LookForMissing();
      const Status may = roll_.MayGoOn();
      if (entered_ && (deadline.HasPassed() || (all_known && (may || is_settled_)))) {
        if (!may) return Refuse(may.error());
        return Decide(make_id);
      }
      Wait();
    }
  }

 private:
  struct Guest {
    ControlLink link;
    int32_t rank = -1;
    bool is_ahead = false;  // of the party that some of this one's became
  };

  // False: it has left, or was sent away.
  bool Hear(Guest& guest) {
    while (true) {
      const Result<std::optional<Frame>> frame = guest.link.TryReceive(MostBytes(party_));
      if (!frame) {
        if (guest.rank >= 0) roll_.SetMissing(guest.rank);
        return false;
      }
      if (!*frame) return true;
      if (guest.rank < 0 && !guest.is_ahead) {
        if (!Welcome(**frame, guest)) return false;
        continue;
      }
      if ((*frame)->type == FrameType::kShared) {
        if (guest.is_ahead) Learn((*frame)->body);
        continue;
      }
      if (guest.is_ahead) return false;  // it says what it asks where this one has followed
      const auto ask = DecodeAsk((*frame)->body);
      if ((*frame)->type != FrameType::kShare || !ask) return false;
      if (roll_.is_excluded(guest.rank)) {
        static_cast<void>(guest.link.Send(FrameType::kAbort, "the others leave this rank out"));
        return false;
      }
      if (Status entered = roll_.Enter(guest.rank, *ask); !entered) entered_ = entered;
      static_cast<void>(guest.link.Send(FrameType::kBeat, ""));
    }
  }

  // By a guest's hello. False: it is sent away.
  bool Welcome(const Frame& hello, Guest& guest) {
    const auto said = HelloOf(hello);
    if (!said) return false;
    if (said->secret == party_.secret) {
      if (said->rank >= static_cast<int32_t>(party_.meetings.size()) || said->rank == party_.rank)
        return false;
      guest.rank = said->rank;
      return true;
    }
    if (said->before == party_.secret) {
      guest.is_ahead = true;
      return true;
    }
    const auto decision = said->secret == party_.before ? DecisionFor(party_, said->rank)
                                                        : std::optional<Regrouped>();
    static_cast<void>(decision ? guest.link.Send(FrameType::kShared, Encode(*decision))
                               : guest.link.Send(FrameType::kAbort, std::string(kWithout)));
    return false;
  }

  // From who heard a decision of this party that this rank did not.
  void Learn(std::string_view bytes) {
    const auto decision = DecodeRegrouped(bytes);
    if (decision) learned_ = decision->For(party_.rank);
  }

  // To those who follow; what becomes of this one.
  Regrouped Pass(const Regrouped& decision) {
    for (Guest& guest : guests_) {
      if (guest.rank < 0) continue;
      const auto become = decision.For(guest.rank);
      static_cast<void>(become ? guest.link.Send(FrameType::kShared, Encode(*become))
                               : guest.link.Send(FrameType::kAbort, std::string(kWithout)));
    }
    return decision;
  }

  // Who was silent is not waited for as long again, but may answer.
  Clock::time_point SinceFor(int32_t rank) {
    constexpr std::chrono::milliseconds kOnceMore{500};
    const Clock::time_point now = Clock::now();
    const auto known = silent_.extract(rank);
    if (known.empty()) return now;
    return std::max(known.mapped(), now + kOnceMore -
                                        std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(kSilence_s)));
  }

  // True: of all that are missing it is known that they will not come.
  bool LookForMissing() {
    bool all_known = true;
    is_settled_ = true;
    for (int32_t rank = 0; rank < static_cast<int32_t>(dials_.size()); ++rank) {
      auto& dial = dials_[static_cast<size_t>(rank)];
      if (!roll_.is_missing(rank)) {
        dial.reset();
        continue;
      }
      if (dial == nullptr)
        dial = std::make_unique<Dial>(party_.meetings[static_cast<size_t>(rank)], SinceFor(rank));
      const Dial::State state = dial->Look();
      if (state == Dial::State::kGone) {
        roll_.SetGone(rank);
        dial.reset();
        continue;
      }
      const bool silent = dial->IsSilent();
      if (state == Dial::State::kWaits && !silent) is_settled_ = false;
      if (!silent && !roll_.is_excluded(rank)) all_known = false;
    }
    return all_known;
  }

  void Wait() {
    std::vector<pollfd> ready = {{.fd = came_, .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_)
      ready.push_back({.fd = guest.link.fd(), .events = POLLIN, .revents = 0});
    poll(ready.data(), ready.size(), kMeetTickMs);
    uint64_t times = 0;
    if (ready[0].revents != 0) static_cast<void>(read(came_, &times, sizeof(times)));
  }

  Result<Regrouped> Decide(const std::function<Result<UniqueId>()>& make_id) {
    std::optional<UniqueId> made;
    if (roll_.needs_id()) {
      const Result<UniqueId> id = make_id();
      if (!id) return Refuse(id.error());
      made = *id;
    }
    Result<Regrouped> first = roll_.BecomeOf(0, made);
    if (!first) return Refuse(first.error());
    first->survivors = roll_.Survivors();
    Pass(*first);
    return *first->For(party_.rank);
  }

  Result<Regrouped> Refuse(const Error& why) {
    for (Guest& guest : guests_)
      if (guest.rank >= 0) static_cast<void>(guest.link.Send(FrameType::kAbort, why.message));
    return tl::unexpected(why);
  }

  static constexpr std::string_view kWithout = "the other ranks have gone on without this one";
  MeetingDoor& door_;
  const int came_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // guests; without one, a tick later
  const Party& party_;
  std::map<int32_t, Clock::time_point> silent_;
  Roll roll_;
  std::optional<Regrouped> learned_;
  Status entered_;           // an error: somebody asks for something else
  bool is_settled_ = false;  // no host is still to answer
  std::list<Guest> guests_;
  std::vector<std::unique_ptr<Dial>> dials_;  // to those who are missing
};

Result<std::shared_ptr<Meeting>> Meeting::Open(const IpAddress& address) {
  Result<std::shared_ptr<MeetingDoor>> door = MeetingDoor::Open(address);
  if (!door) return tl::unexpected(door.error());
  return std::shared_ptr<Meeting>(new Meeting(std::move(*door)));
}

Meeting::~Meeting() { door_->Close(); }

Result<Meeting::Party> Meeting::Descend(const Party& party, const Regrouped& decision) {
  const auto root = bootstrap::Decode(decision.id);
  if (!root) return tl::unexpected(root.error());
  Party next{.rank = decision.rank,
             .meetings = {},
             .secret = root->secret,
             .before = party.secret,
             .decision = decision};
  for (const int32_t was : decision.survivors) {
    if (was >= static_cast<int32_t>(party.meetings.size()))
      return MakeError(ErrorCode::kPeerFailed, "the rank that leads sent nonsense");
    next.meetings.push_back(party.meetings[static_cast<size_t>(was)]);
  }
  return next;
}

Result<Regrouped> Meeting::Regroup(const Party& party, const RegroupAsk& ask,
                                   const std::function<Result<UniqueId>()>& make_id,
                                   const Deadline& deadline, const std::atomic<bool>& stop) {
  // So often a port may be somebody else's that closes at once.
  constexpr int kMostTries = 3;
  std::map<int32_t, Clock::time_point> silent;
  for (int32_t leader = 0; leader < party.rank; ++leader) {
    if (std::binary_search(ask.excluded.begin(), ask.excluded.end(), leader)) continue;
    for (int tries = 0; tries < kMostTries; ++tries) {
      Dial dial(party.meetings[static_cast<size_t>(leader)]);
      Dial::State state = dial.Look();
      for (; state == Dial::State::kWaits && !dial.IsSilent() && !stop && !deadline.HasPassed();
           state = dial.Look())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (stop) return tl::unexpected(StoppedEarly());
      if (dial.IsSilent()) silent[leader] = dial.since();
      if (state != Dial::State::kThere) break;
      const double left = deadline.Left();
      Result<std::optional<Regrouped>> followed =
          Follow(dial.Take(), leader, party, ask, deadline, stop);
      if (!followed) return tl::unexpected(followed.error());
      if (*followed) return **followed;
      if (left > 0 && deadline.Left() <= left / 2) break;  // it lives, and does not ask
    }
  }
  return Lead(*this, party, ask, std::move(silent)).Run(make_id, deadline, stop);
}

std::optional<int32_t> Meeting::WhoWaits(const JobSecret& secret) {
  std::optional<int32_t> rank;
  door_->WithWaiting([&](std::list<ControlLink>& waiting) {
    for (auto link = waiting.begin(); link != waiting.end() && !rank;) {
      bool has_gone = false;
      const auto hello = LookAtHello(link->fd(), has_gone);
      if (hello && hello->secret == secret) rank = hello->rank;
      link = has_gone ? waiting.erase(link) : std::next(link);
    }
  });
  return rank;
}

struct MeetingWatch::Watched {
  explicit Watched(const Member& of) : member(of), dial(of.meeting) {}
  Member member;
  Dial dial;
  std::optional<Clock::time_point> gone;
};

MeetingWatch::MeetingWatch(std::shared_ptr<Meeting> own, const JobSecret& secret,
                           std::vector<Member> members)
    : own_(std::move(own)), secret_(secret) {
  for (const Member& member : members) watched_.push_back(std::make_unique<Watched>(member));
}

MeetingWatch::~MeetingWatch() = default;

Status MeetingWatch::Look() {
  // Who has ended all that was to be done may be heard of later than that it has gone.
  constexpr std::chrono::milliseconds kGrace{200};
  if (const auto rank = own_->WhoWaits(secret_))
    return MakeError(ErrorCode::kPeerFailed, fmt::format("rank {} could not join", *rank));
  const Clock::time_point now = Clock::now();
  for (const auto& watched : watched_) {
    if (watched->dial.Look() != Dial::State::kGone) continue;
    if (!watched->gone) watched->gone = now;
    if (now - *watched->gone >= kGrace)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("rank {} has ended before it joined", watched->member.rank));
  }
  return {};
}

}  // namespace tutti
