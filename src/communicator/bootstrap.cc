#include "bootstrap.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "tcp_frames.h"
#include "tutti/base/cancel.h"

namespace tutti::bootstrap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kIdMagic = 0x0002'4449'5454'5554;     // "TUTTID", version 2
constexpr uint64_t kHelloMagic = 0x0006'4d4d'4f43'5454;  // "TTCOMM", version 6
constexpr size_t kHelloWords = 6;
constexpr int64_t kMaxSilenceMs = int64_t{1} << 40;
constexpr std::chrono::milliseconds kRootLooks{1000};  // at least so often
constexpr size_t kMaxStrangers = 64;
// A rank on a busy host may take long between that it has connected and that it says who it is.
constexpr std::chrono::seconds kHelloPatience{10};
constexpr size_t kMaxSharedBytes = size_t{1} << 30;
constexpr int32_t kMaxJobRanks = 1 << 20;

// What each rank said: its length in a word, then its bytes.
std::string Pack(const std::vector<std::string>& shares) {
  std::string packed;
  for (const std::string& share : shares)
    packed += WordsToBytes({static_cast<int64_t>(share.size())}) + share;
  return packed;
}

std::optional<std::vector<std::string>> Unpack(std::string_view packed, int32_t num_ranks) {
  std::vector<std::string> shares;
  while (!packed.empty()) {
    if (packed.size() < 8) return std::nullopt;
    const uint64_t size = tcp::WordAt(reinterpret_cast<const std::byte*>(packed.data()));
    packed.remove_prefix(8);
    if (size > packed.size()) return std::nullopt;
    shares.emplace_back(packed.substr(0, size));
    packed.remove_prefix(size);
  }
  if (shares.size() != static_cast<size_t>(num_ranks)) return std::nullopt;
  return shares;
}

class Root {
 public:
  static Result<std::unique_ptr<Root>> Start(const IpAddress& address,
                                             std::chrono::milliseconds lingers) {
    std::unique_ptr<Root> root(new Root(lingers));
    if (Status opened = root->Open(address); !opened) return tl::unexpected(opened.error());
    root->thread_ = std::make_unique<std::thread>([self = root.get()] { self->Serve(); });
    return root;
  }
  ~Root() {
    // The thread is of the process that made it: one that was forked can neither join nor detach it.
    if (getpid() != process_) {
      static_cast<void>(thread_.release());
      return;
    }
    stop_ = true;
    const uint64_t one = 1;
    if (wake_ >= 0 && write(wake_, &one, sizeof(one)) < 0) stop_ = true;  // it looks in a second
    if (thread_ != nullptr) thread_->join();
    if (listener_ >= 0) close(listener_);
    if (wake_ >= 0) close(wake_);
    if (spare_ >= 0) close(spare_);
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const Address& address() const { return address_; }
  bool over() const { return over_; }

 private:
  struct Member {
    std::optional<ControlLink> link;
    std::optional<std::string> share;
    bool joined = false, failed = false, left = false;
    std::chrono::milliseconds silence{0};  // 0: it may be silent
    Clock::time_point heard;
  };
  struct Stranger {
    ControlLink link;
    Clock::time_point until;
  };

  explicit Root(std::chrono::milliseconds lingers) : lingers_(lingers) {}

  Status Open(const IpAddress& at) {
    address_ = {{at, 0}, DrawSecret()};
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    spare_ = eventfd(0, EFD_CLOEXEC);
    listener_ = wake_ < 0 ? -1 : ListenAt(address_.root);
    if (listener_ < 0)
      return MakeError(ErrorCode::kIo,
                       fmt::format("cannot listen at {}: {}", address_.root.AddressText(),
                                   std::strerror(errno)));
    return {};
  }

  void Serve() {
    while (!stop_ && !AllGone()) {
      Wait();
      Accept();
      HearStrangers();
      for (const size_t rank : readable_) Hear(rank);
      TellDepartures();
      LookForSilence();
      if (SomeAreThere()) left_ = Clock::now();
    }
    for (Member& member : members_)
      if (member.link) static_cast<void>(member.link->Send(FrameType::kEnd, ""));
    members_.clear();
    strangers_.clear();
    // Whoever comes now is refused at once, in place of waiting for an answer.
    close(std::exchange(listener_, -1));
    over_ = true;
  }

  bool SomeAreThere() const {
    return std::any_of(members_.begin(), members_.end(),
                       [](const Member& member) { return member.link.has_value(); });
  }

  bool AllGone() const {
    if (joined_ == 0 || SomeAreThere()) return false;
    // Those that have not come may have been killed before they could.
    return joined_ == members_.size() || (!fault_.empty() && Clock::now() - left_ >= lingers_);
  }

  void Wait() {
    std::vector<pollfd> ready = {{.fd = wake_, .events = POLLIN, .revents = 0}};
    const auto add = [&ready](int fd) {
      ready.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    };
    if (strangers_.size() < kMaxStrangers) add(listener_);
    for (const Stranger& stranger : strangers_) add(stranger.link.fd());
    const size_t first = ready.size();
    std::vector<size_t> ranks;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (!members_[rank].link) continue;
      add(members_[rank].link->fd());
      ranks.push_back(rank);
    }
    poll(ready.data(), ready.size(), static_cast<int>(kRootLooks.count()));
    readable_.clear();
    for (size_t i = 0; i < ranks.size(); ++i)
      if (ready[first + i].revents != 0) readable_.push_back(ranks[i]);
  }

  // After all that has come was read.
  void LookForSilence() {
    const Clock::time_point now = Clock::now();
    // This process has stood still, and perhaps the others with it.
    if (now - looked_ > 2 * kRootLooks)
      for (Member& member : members_) member.heard = now;
    looked_ = now;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = members_[rank];
      const auto silent = now - member.heard;
      if (!member.link || member.silence.count() == 0 || silent <= member.silence) continue;
      const std::string what = fmt::format(
          "rank {} ({}) has said nothing for {:.1f} s: it is stopped, or its host is "
          "gone",
          rank, member.link->remote().AddressText(), std::chrono::duration<double>(silent).count());
      member.link->SendIfRoom(FrameType::kAbort, what);
      member.link.reset();
      if (!member.failed) TellOthers(rank, what);
    }
  }

  void Accept() {
    while (strangers_.size() < kMaxStrangers) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) RefuseForWantOfDescriptors();
        return;
      }
      strangers_.push_back({ControlLink(fd), Clock::now() + kHelloPatience});
    }
  }

  // Whoever comes would wait for nothing: the descriptor that is kept for this tells one of them why.
  void RefuseForWantOfDescriptors() {
    const std::string why = std::strerror(errno);
    if (spare_ >= 0) close(spare_);
    if (const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0) {
      ControlLink link(fd);
      SendAway(link, why);
    }
    spare_ = eventfd(0, EFD_CLOEXEC);
  }

  void HearStrangers() {
    for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
      Result<std::optional<Frame>> frame = stranger->link.TryReceive(kHelloWords * 8);
      const bool silent = frame && !*frame;
      if (silent && Clock::now() < stranger->until) {
        ++stranger;
        continue;
      }
      if (frame && *frame) Admit(**frame, std::move(stranger->link));
      stranger = strangers_.erase(stranger);
    }
  }

  // Who has no secret is closed without a word.
  void Admit(const Frame& frame, ControlLink link) {
    const auto words = frame.Words(kHelloWords);
    if (frame.type != FrameType::kHello || !words ||
        static_cast<uint64_t>((*words)[1]) != address_.secret[0] ||
        static_cast<uint64_t>((*words)[2]) != address_.secret[1])
      return;
    const auto magic = static_cast<uint64_t>((*words)[0]);
    if (const std::optional<std::string> other = OtherVersion(magic, kHelloMagic))
      return SendAway(link, *other);
    if (magic != kHelloMagic) return;
    const int64_t rank = (*words)[3], num_ranks = (*words)[4], silence = (*words)[5];
    std::string fault;
    if (num_ranks < 1 || num_ranks > kMaxJobRanks || rank < 0 || rank >= num_ranks)
      fault = fmt::format("rank {} of {} cannot be", rank, num_ranks);
    else if (!members_.empty() && members_.size() != static_cast<size_t>(num_ranks))
      fault = fmt::format("rank {} says that there are {} ranks, others say {}", rank, num_ranks,
                          members_.size());
    if (fault.empty()) {
      members_.resize(static_cast<size_t>(num_ranks));
      Member& member = members_[static_cast<size_t>(rank)];
      if (!member.joined) {
        member.joined = true;
        member.link = std::move(link);
        member.silence = std::chrono::milliseconds(std::clamp<int64_t>(silence, 0, kMaxSilenceMs));
        member.heard = Clock::now();
        readable_.push_back(static_cast<size_t>(rank));
        ++joined_;
        // Who comes after another has gone would wait for it.
        if (!fault_.empty() && !member.link->Send(FrameType::kAbort, fault_)) member.link.reset();
        return;
      }
      fault = fmt::format("rank {} has joined already", rank);
    }
    SendAway(link, fault);
  }

  // Closed with bytes unread the connection would be reset, and the other end might not hear why.
  static void SendAway(ControlLink& link, const std::string& why) {
    constexpr double kPatience_s = 0.2;
    if (!link.Send(FrameType::kAbort, why)) return;
    shutdown(link.fd(), SHUT_WR);
    std::array<char, 4096> unread{};
    for (const Deadline patience(kPatience_s); !patience.HasPassed();) {
      pollfd ready{.fd = link.fd(), .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, static_cast<int>(patience.Left() * 1e3)) > 0 &&
          recv(link.fd(), unread.data(), unread.size(), MSG_DONTWAIT) <= 0)
        return;
    }
  }

  void Hear(size_t rank) {
    Member& member = members_[rank];
    while (member.link) {
      const Result<std::optional<Frame>> frame = member.link->TryReceive(
          std::max(kMaxShareBytes, RankProgress::MaxBytes(members_.size())));
      if (frame && !*frame) return;
      member.heard = Clock::now();
      if (!frame) {
        const std::string who =
            fmt::format("rank {} ({})", rank, member.link->remote().AddressText());
        member.link.reset();
        if (!member.failed) TellOthers(rank, who + " has gone: " + frame.error().message);
        return;
      }
      Do(rank, **frame);
    }
  }

  void Do(size_t rank, const Frame& frame) {
    Member& member = members_[rank];
    switch (frame.type) {
      case FrameType::kShare:
        if (frame.body.size() > kMaxShareBytes) return SpeaksNonsense(rank, frame);
        member.share = frame.body;
        EndRound();
        LookForLeft();
        return;
      case FrameType::kFailed:
        if (!member.failed && WaitsForSome() && !member.link->Send(FrameType::kAbort, Missing()))
          member.link.reset();
        member.failed = true;
        TellOthers(rank, fmt::format("rank {}: {}", rank, frame.body));
        return;
      case FrameType::kEnd:
        member.link.reset();
        member.left = true;
        LookForLeft();
        if (const auto words = frame.Words(frame.body.size() / sizeof(int64_t)))
          if (auto completed = RankProgress::FromWords(*words))
            departed_.emplace_back(rank, *std::move(completed));
        return;
      case FrameType::kBeat:
        if (!frame.body.empty()) member.link->SendIfRoom(FrameType::kBeat, "");  // a question
        return;
      default:
        return SpeaksNonsense(rank, frame);
    }
  }

  void SpeaksNonsense(size_t rank, const Frame& frame) {
    members_[rank].link.reset();
    TellOthers(rank, fmt::format("rank {} sent a frame of type {} and {} bytes", rank,
                                 static_cast<int>(frame.type), frame.body.size()));
  }

  void EndRound() {
    std::vector<std::string> shares;
    for (const Member& member : members_) {
      if (!member.share) return;
      shares.push_back(*member.share);
    }
    const std::string packed = Pack(shares);
    for (Member& member : members_) {
      member.share.reset();
      if (member.link && !member.link->Send(FrameType::kShared, packed)) member.link.reset();
    }
  }

  // Who has left will not come to the round that others wait in.
  void LookForLeft() {
    if (!WaitsForSome()) return;
    for (size_t rank = 0; rank < members_.size(); ++rank)
      if (Member& member = members_[rank]; member.left && !member.failed && !member.share) {
        member.failed = true;  // said once
        TellOthers(rank, fmt::format("rank {} has left", rank));
      }
  }

  bool WaitsForSome() const {
    return std::any_of(members_.begin(), members_.end(),
                       [](const Member& member) { return member.share.has_value(); });
  }
  std::string Missing() const {
    constexpr size_t kMost = 8;
    std::vector<size_t> missing;
    for (size_t rank = 0; rank < members_.size(); ++rank)
      if (!members_[rank].share) missing.push_back(rank);
    const size_t shown = std::min(kMost, missing.size());
    return fmt::format(
        "not there: rank {}{}",
        fmt::join(missing.begin(), missing.begin() + static_cast<int64_t>(shown), ", "),
        shown < missing.size() ? fmt::format(" and {} more", missing.size() - shown) : "");
  }

  void TellOthers(size_t rank, const std::string& what) {
    if (fault_.empty()) fault_ = what;
    for (size_t other = 0; other < members_.size(); ++other)
      if (Member& member = members_[other]; other != rank && member.link)
        if (!member.link->Send(FrameType::kAbort, what)) member.link.reset();
  }

  // To each what concerns it, of all that have left since the last look: at the end of a job that is most of them.
  void TellDepartures() {
    if (departed_.empty()) return;
    for (size_t other = 0; other < members_.size(); ++other) {
      if (!members_[other].link) continue;
      std::vector<int64_t> words;
      for (const auto& [rank, completed] : departed_) {
        const auto with = completed.MessagesWith(static_cast<int32_t>(other));
        words.insert(words.end(),
                     {static_cast<int64_t>(rank), static_cast<int64_t>(completed.collectives),
                      static_cast<int64_t>(with.sent), static_cast<int64_t>(with.received)});
      }
      members_[other].link->SendIfRoom(FrameType::kLeft, WordsToBytes(words));
    }
    departed_.clear();
  }

  const std::chrono::milliseconds lingers_;
  Address address_;
  const pid_t process_ = getpid();
  int listener_ = -1, wake_ = -1, spare_ = -1;
  std::atomic<bool> stop_ = false, over_ = false;
  std::unique_ptr<std::thread> thread_;
  // State of the thread.
  std::vector<Member> members_;
  std::vector<size_t> readable_;                           // ranks
  std::vector<std::pair<size_t, RankProgress>> departed_;  // of whom nobody was told yet
  Clock::time_point looked_ = Clock::now();
  Clock::time_point left_ = Clock::now();  // until then some were there
  std::list<Stranger> strangers_;
  size_t joined_ = 0;
  std::string fault_;  // of the first that has gone or failed
};

// Those of this process; they end with it.
class Roots {
 public:
  Result<Address> Start(const IpAddress& address, std::chrono::milliseconds lingers) {
    Result<std::unique_ptr<Root>> root = Root::Start(address, lingers);
    if (!root) return tl::unexpected(root.error());
    const std::lock_guard lock(mutex_);
    roots_.remove_if([](const auto& other) { return other->over(); });
    roots_.push_back(std::move(*root));
    return roots_.back()->address();
  }

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<Root>> roots_;
};

Error LinkLost(const Error& error) {
  return {ErrorCode::kPeerFailed, "the process that made the unique id has gone: " + error.message};
}

// It closes who has no secret of its own without a word.
Error NotWelcome(const Error& error) {
  return {
      ErrorCode::kPeerFailed,
      "the process that made the unique id has gone, or does not know this id: " + error.message};
}

// It listened before anybody had the id: where a connection is refused it has gone.
Result<ControlLink> ConnectToRoot(const Endpoint& root, const Deadline& deadline) {
  constexpr std::chrono::milliseconds kBetween{20};
  while (true) {
    const int fd = TcpSocket(root);
    if (fd >= 0 && ConnectTo(fd, root) == 0) return ControlLink(fd);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (error == ECONNREFUSED || deadline.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, fmt::format("nobody could be reached at {}: {}",
                                                           root.ToText(), std::strerror(error)));
    std::this_thread::sleep_for(kBetween);
  }
}

}  // namespace

UniqueId Encode(const Address& address) {
  UniqueId id;
  tcp::PutWord(kIdMagic, id.bytes.data());
  size_t at = 8;
  for (const int64_t word : ToWords(address.root)) {
    tcp::PutWord(static_cast<uint64_t>(word), id.bytes.data() + at);
    at += 8;
  }
  for (const uint64_t word : address.secret) {
    tcp::PutWord(word, id.bytes.data() + at);
    at += 8;
  }
  return id;
}

Result<Address> Decode(const UniqueId& id) {
  const auto word = [&id](size_t at) { return tcp::WordAt(id.bytes.data() + at); };
  const bool zeros = std::all_of(id.bytes.begin() + 48, id.bytes.end(),
                                 [](std::byte byte) { return byte == std::byte{0}; });
  if (word(0) != kIdMagic || word(24) > UINT16_MAX || !zeros)
    return InvalidArgument("these bytes are no unique id of this version");
  return Address{{IpAddress::OfWords(word(8), word(16)), static_cast<uint16_t>(word(24))},
                 {word(32), word(40)}};
}

Result<Address> StartRoot(const IpAddress& listen_address, std::chrono::milliseconds lingers) {
  static Roots roots;
  return roots.Start(listen_address, lingers);
}

Link::Link(ControlLink link, int32_t rank, int32_t num_ranks, double silence_s)
    : link_(std::make_shared<BeatingLink>(std::move(link))),
      local_(link_->link.local()),
      rank_(rank),
      num_ranks_(num_ranks),
      silence_s_(silence_s) {
  if (silence_s_ > 0) BeatOn(link_);
}

Result<Link> Link::Join(const Address& address, int32_t num_ranks, int32_t rank, double silence_s,
                        const Deadline& deadline) {
  constexpr double kLong = 1e9;
  Result<ControlLink> link = ConnectToRoot(address.root, deadline);
  if (!link) return Within("the rank that made the unique id", link.error());
  const auto silence_ms = static_cast<int64_t>(std::min(silence_s, kLong) * 1e3);
  const Status greeted = link->Send(
      FrameType::kHello,
      {static_cast<int64_t>(kHelloMagic), static_cast<int64_t>(address.secret[0]),
       static_cast<int64_t>(address.secret[1]), int64_t{rank}, int64_t{num_ranks}, silence_ms});
  if (!greeted) return tl::unexpected(LinkLost(greeted.error()));
  return Link(std::move(*link), rank, num_ranks, silence_s);
}

Link::~Link() {
  if (link_ != nullptr && !over_) static_cast<void>(Send(FrameType::kEnd, ""));
}

void Link::End(const RankProgress& completed) {
  if (link_ == nullptr || std::exchange(over_, true)) return;
  std::string body;
  try {
    std::vector<int64_t> words;
    completed.AppendTo(words);
    body = WordsToBytes(words);
  } catch (const std::bad_alloc&) {  // then nothing is said of it
  }
  static_cast<void>(Send(FrameType::kEnd, body));
}

Status Link::Send(FrameType type, std::string_view body) {
  const std::lock_guard sending(link_->sending);
  return link_->link.Send(type, body);
}

Result<std::optional<Frame>> Link::Next(int wait_ms) {
  if (over_) return std::optional<Frame>();
  Result<std::optional<Frame>> frame = link_->link.Receive(kMaxSharedBytes, wait_ms);
  if (!frame) {
    over_ = true;
    fault_ = heard_ ? LinkLost(frame.error()) : NotWelcome(frame.error());
    return tl::unexpected(*fault_);
  }
  if (!*frame) return frame;
  heard_ = true;
  unanswered_.reset();
  if ((*frame)->type == FrameType::kBeat) return std::optional<Frame>();
  if ((*frame)->type == FrameType::kAbort) {
    fault_ = Error{ErrorCode::kPeerFailed, (*frame)->body};
    return tl::unexpected(*fault_);
  }
  if ((*frame)->type == FrameType::kEnd) {
    over_ = true;
    return std::optional<Frame>();
  }
  if ((*frame)->type == FrameType::kLeft) {
    HearLeft(**frame);
    return std::optional<Frame>();
  }
  return frame;
}

void Link::HearLeft(const Frame& frame) {
  constexpr size_t kWordsARank = 4;
  const auto words = frame.Words(frame.body.size() / sizeof(int64_t));
  if (!words || words->size() % kWordsARank != 0) return;
  for (size_t at = 0; at < words->size(); at += kWordsARank) {
    const auto word = [&](size_t i) { return static_cast<uint64_t>((*words)[at + i]); };
    RankProgress completed{.collectives = word(1)};
    completed.messages[rank_] = {.sent = word(2), .received = word(3)};
    departures_.Add(static_cast<int32_t>(word(0)), completed, "it left");
  }
}

Status Link::AskRoot() {
  constexpr std::chrono::milliseconds kAsks{1000};
  if (over_ || silence_s_ <= 0) return {};
  const Time now = Clock::now();
  // After work of its own, or having been stopped.
  if (now - looked_ > kAsks) {
    unanswered_.reset();
    asked_ = now;
  }
  looked_ = now;
  if (now - asked_ >= kAsks) {
    asked_ = now;
    if (!unanswered_) unanswered_ = now;
    const std::lock_guard sending(link_->sending);
    link_->link.SendIfRoom(FrameType::kBeat, WordsToBytes({1}));
  }
  if (!unanswered_) return {};
  const double silent_s = std::chrono::duration<double>(now - *unanswered_).count();
  if (silent_s <= silence_s_) return {};
  over_ = true;
  fault_ = Error{ErrorCode::kPeerFailed,
                 fmt::format("the process that made the unique id ({}) has said nothing for "
                             "{:.1f} s: it is stopped, or its host is gone",
                             link_->link.remote().AddressText(), silent_s)};
  return tl::unexpected(*fault_);
}

Result<std::vector<std::string>> Link::Share(std::string_view mine, const Deadline& deadline,
                                             const std::atomic<bool>& aborted,
                                             const std::function<Status()>& look) {
  constexpr int kTickMs = 20;
  if (fault_) return tl::unexpected(*fault_);
  if (!over_)
    if (const Status sent = Send(FrameType::kShare, mine); !sent)
      return tl::unexpected(LinkLost(sent.error()));
  while (!over_) {
    Result<std::optional<Frame>> frame = Next(kTickMs);
    if (!frame) return tl::unexpected(frame.error());
    if (*frame) {
      auto shares = Unpack((*frame)->body, num_ranks_);
      if ((*frame)->type == FrameType::kShared && shares) return std::move(*shares);
      return MakeError(ErrorCode::kPeerFailed, "the root of the communicator sent nonsense");
    }
    if (const Status answers = AskRoot(); !answers) return tl::unexpected(answers.error());
    if (look)
      if (const Status there = look(); !there) return tl::unexpected(there.error());
    if (aborted) return MakeError(ErrorCode::kCancelled, "aborted");
    if (deadline.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, "not all ranks came in time");
  }
  return MakeError(ErrorCode::kPeerFailed, "the process that made the unique id has ended");
}

Status Link::Check() {
  if (fault_) return tl::unexpected(*fault_);
  const Result<std::optional<Frame>> frame = Next(0);
  if (!frame) return tl::unexpected(frame.error());
  return AskRoot();
}

Error Link::Fail(const Error& error, double wait_s) {
  if (over_) return error;
  Error all = error;
  if (!Send(FrameType::kFailed, error.message.substr(0, kMaxShareBytes))) return all;
  if (wait_s <= 0) return all;
  const Deadline patience(wait_s);
  while (!over_ && !patience.HasPassed()) {
    const Result<std::optional<Frame>> frame = Next(10);
    if (frame) continue;
    if (!over_ && all.message.find(frame.error().message) == std::string::npos)
      all.message += "; " + frame.error().message;
    break;
  }
  return all;
}

}  // namespace tutti::bootstrap
