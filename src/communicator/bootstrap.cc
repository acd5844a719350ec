#include "bootstrap.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tcp_frames.h"

namespace tutti::bootstrap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kIdMagic = 0x0001'4449'5454'5554;     // "TUTTID", version 1
constexpr uint64_t kHelloMagic = 0x0001'4d4d'4f43'5454;  // "TTCOMM", version 1
constexpr size_t kHelloWords = 5;
constexpr size_t kMaxStrangers = 64;
constexpr std::chrono::seconds kHelloPatience{1};
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
  static Result<std::unique_ptr<Root>> Start(uint32_t address) {
    std::unique_ptr<Root> root(new Root);
    if (Status opened = root->Open(address); !opened) return tl::unexpected(opened.error());
    root->thread_ = std::thread([self = root.get()] { self->Serve(); });
    return root;
  }
  ~Root() {
    // The thread is of the process that made it, not of one that was forked.
    if (getpid() != process_) {
      thread_.detach();
      return;
    }
    stop_ = true;
    const uint64_t one = 1;
    if (wake_ >= 0 && write(wake_, &one, sizeof(one)) < 0) stop_ = true;  // it looks in a second
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) close(listener_);
    if (wake_ >= 0) close(wake_);
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const Address& address() const { return address_; }
  bool over() const { return over_; }

 private:
  struct Member {
    std::optional<ControlLink> link;
    std::optional<std::string> share;
    bool joined = false, failed = false;
  };
  struct Stranger {
    ControlLink link;
    Clock::time_point until;
  };

  Root() = default;

  Status Open(uint32_t at) {
    address_ = {{at, 0}, DrawSecret()};
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
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
      for (size_t rank = 0; rank < members_.size(); ++rank) Hear(rank);
    }
    for (Member& member : members_)
      if (member.link) static_cast<void>(member.link->Send(FrameType::kEnd, ""));
    members_.clear();
    over_ = true;
  }

  bool AllGone() const {
    if (members_.empty() || joined_ < members_.size()) return false;
    return std::none_of(members_.begin(), members_.end(),
                        [](const Member& member) { return member.link.has_value(); });
  }

  void Wait() {
    std::vector<pollfd> ready = {{.fd = wake_, .events = POLLIN, .revents = 0}};
    const auto add = [&ready](int fd) {
      ready.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    };
    if (strangers_.size() < kMaxStrangers) add(listener_);
    for (const Stranger& stranger : strangers_) add(stranger.link.fd());
    for (const Member& member : members_)
      if (member.link) add(member.link->fd());
    poll(ready.data(), ready.size(), 1000);
  }

  void Accept() {
    while (strangers_.size() < kMaxStrangers) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      strangers_.push_back({ControlLink(fd), Clock::now() + kHelloPatience});
    }
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
        (*words)[0] != static_cast<int64_t>(kHelloMagic) ||
        static_cast<uint64_t>((*words)[1]) != address_.secret[0] ||
        static_cast<uint64_t>((*words)[2]) != address_.secret[1])
      return;
    const int64_t rank = (*words)[3], num_ranks = (*words)[4];
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
        ++joined_;
        return;
      }
      fault = fmt::format("rank {} has joined already", rank);
    }
    static_cast<void>(link.Send(FrameType::kAbort, fault));
  }

  void Hear(size_t rank) {
    Member& member = members_[rank];
    while (member.link) {
      const Result<std::optional<Frame>> frame = member.link->TryReceive(kMaxShareBytes);
      if (frame && !*frame) return;
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
        member.share = frame.body;
        EndRound();
        return;
      case FrameType::kFailed:
        if (!member.failed && WaitsForSome() && !member.link->Send(FrameType::kAbort, Missing()))
          member.link.reset();
        member.failed = true;
        TellOthers(rank, fmt::format("rank {}: {}", rank, frame.body));
        return;
      case FrameType::kEnd:
        member.link.reset();
        return;
      default:
        member.link.reset();
        TellOthers(rank, fmt::format("rank {} sent a frame of type {}", rank,
                                     static_cast<int>(frame.type)));
    }
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
    for (size_t other = 0; other < members_.size(); ++other)
      if (Member& member = members_[other]; other != rank && member.link)
        if (!member.link->Send(FrameType::kAbort, what)) member.link.reset();
  }

  Address address_;
  const pid_t process_ = getpid();
  int listener_ = -1, wake_ = -1;
  std::atomic<bool> stop_ = false, over_ = false;
  std::thread thread_;
  // Of the thread.
  std::vector<Member> members_;
  std::list<Stranger> strangers_;
  size_t joined_ = 0;
};

// Those of this process; they end with it.
class Roots {
 public:
  Result<Address> Start(uint32_t address) {
    Result<std::unique_ptr<Root>> root = Root::Start(address);
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

}  // namespace

UniqueId Encode(const Address& address) {
  UniqueId id;
  tcp::PutWord(kIdMagic, id.bytes.data());
  tcp::PutWord(uint64_t{address.root.address} << 16 | address.root.port, id.bytes.data() + 8);
  tcp::PutWord(address.secret[0], id.bytes.data() + 16);
  tcp::PutWord(address.secret[1], id.bytes.data() + 24);
  return id;
}

Result<Address> Decode(const UniqueId& id) {
  const auto word = [&id](size_t at) { return tcp::WordAt(id.bytes.data() + at); };
  const bool zeros = std::all_of(id.bytes.begin() + 32, id.bytes.end(),
                                 [](std::byte byte) { return byte == std::byte{0}; });
  if (word(0) != kIdMagic || word(8) >> 48 != 0 || !zeros)
    return InvalidArgument("these bytes are no unique id of this version");
  return Address{{static_cast<uint32_t>(word(8) >> 16), static_cast<uint16_t>(word(8))},
                 {word(16), word(24)}};
}

Result<Address> StartRoot(uint32_t listen_address) {
  static Roots roots;
  return roots.Start(listen_address);
}

Result<Link> Link::Join(const Address& address, int32_t num_ranks, int32_t rank,
                        const Deadline& deadline) {
  constexpr double kLong = 1e9;
  const double patience = deadline.Left() > 0 ? deadline.Left() : kLong;
  Result<ControlLink> link =
      ControlLink::Connect(address.root.AddressText(), address.root.port, patience);
  if (!link) return Within("the rank that made the unique id", link.error());
  const Status greeted =
      link->Send(FrameType::kHello,
                 {static_cast<int64_t>(kHelloMagic), static_cast<int64_t>(address.secret[0]),
                  static_cast<int64_t>(address.secret[1]), int64_t{rank}, int64_t{num_ranks}});
  if (!greeted) return tl::unexpected(LinkLost(greeted.error()));
  return Link(std::move(*link), num_ranks);
}

Link::~Link() {
  if (link_.fd() >= 0 && !over_) static_cast<void>(link_.Send(FrameType::kEnd, ""));
}

Result<std::optional<Frame>> Link::Next(int wait_ms) {
  if (over_) return std::optional<Frame>();
  Result<std::optional<Frame>> frame = link_.Receive(kMaxSharedBytes, wait_ms);
  if (!frame) {
    over_ = true;
    return tl::unexpected(LinkLost(frame.error()));
  }
  if (!*frame) return frame;
  if ((*frame)->type == FrameType::kAbort) return MakeError(ErrorCode::kPeerFailed, (*frame)->body);
  if ((*frame)->type == FrameType::kEnd) {
    over_ = true;
    return std::optional<Frame>();
  }
  return frame;
}

Result<std::vector<std::string>> Link::Share(std::string_view mine, const Deadline& deadline,
                                             const std::atomic<bool>& aborted) {
  constexpr int kTickMs = 20;
  if (!over_)
    if (const Status sent = link_.Send(FrameType::kShare, mine); !sent)
      return tl::unexpected(LinkLost(sent.error()));
  while (!over_) {
    Result<std::optional<Frame>> frame = Next(kTickMs);
    if (!frame) return tl::unexpected(frame.error());
    if (*frame) {
      auto shares = Unpack((*frame)->body, num_ranks_);
      if ((*frame)->type == FrameType::kShared && shares) return std::move(*shares);
      return MakeError(ErrorCode::kPeerFailed, "the root of the communicator sent nonsense");
    }
    if (aborted) return MakeError(ErrorCode::kCancelled, "aborted");
    if (deadline.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, "not all ranks came in time");
  }
  return MakeError(ErrorCode::kPeerFailed, "the process that made the unique id has ended");
}

Status Link::Check() {
  const Result<std::optional<Frame>> frame = Next(0);
  if (!frame) return tl::unexpected(frame.error());
  return {};
}

Error Link::Fail(const Error& error, double wait_s) {
  if (over_) return error;
  Error all = error;
  if (!link_.Send(FrameType::kFailed, error.message.substr(0, kMaxShareBytes))) return all;
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
