#include "tcp_transport.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "interpreter.h"
#include "tcp_receiver.h"
#include "tcp_sender.h"
#include "tcp_socket.h"
#include "wire_state.h"

namespace tutti {

TcpTransport::TcpTransport(int32_t rank, const TcpOptions& options)
    : rank_(rank), options_(options) {}

Result<std::unique_ptr<TcpTransport>> TcpTransport::Listen(int32_t rank,
                                                           const TcpOptions& options) {
  std::unique_ptr<TcpTransport> transport(new TcpTransport(rank, options));
  const Status opened = transport->Open();
  if (!opened) return Within(fmt::format("rank {}", rank), opened.error());
  return transport;
}

Status TcpTransport::Open() {
  const auto refused = [](const char* what) {
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)));
  };
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return refused("cannot make an epoll");
  endpoint_ = {options_.address, 0};
  listener_ = ListenAt(endpoint_);
  if (listener_ < 0) return refused(("cannot listen at " + endpoint_.AddressText()).c_str());
  if (const char* named = std::getenv("TUTTI_TCP_CONGESTION");
      named != nullptr && options_.congestion.empty())
    options_.congestion = named;
  if (!tcp::SetCongestion(listener_, options_.congestion))
    return InvalidArgument(
        fmt::format("the kernel has no TCP congestion control '{}' for this process: {}",
                    options_.congestion, std::strerror(errno)));
  epoll_event event{};
  // Data: null. Told once: who cannot be accepted for want of descriptors would be reported for ever.
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event) != 0)
    return refused("cannot watch a descriptor");
  return {};
}

TcpTransport::~TcpTransport() {
  for (const Stranger& stranger : strangers_) close(stranger.fd);
  for (const Early& early : early_) close(early.fd);
  senders_.clear();
  receivers_.clear();
  if (listener_ >= 0) close(listener_);
  if (epoll_ >= 0) close(epoll_);
}

Connection* TcpTransport::SendTo(int32_t peer, const Endpoint& to, int32_t channel,
                                 const TcpSource& source) {
  const tcp::Hello hello{.communicator = options_.communicator,
                         .epoch = options_.epoch,
                         .cookie = options_.cookie,
                         .sender = static_cast<uint32_t>(rank_),
                         .receiver = static_cast<uint32_t>(peer),
                         .channel = static_cast<uint64_t>(channel)};
  return senders_.emplace_back(std::make_unique<TcpSender>(hello, options_, epoll_, to, source))
      .get();
}

Connection* TcpTransport::ReceiveFrom(int32_t peer, int32_t channel) {
  const tcp::Hello hello{.communicator = options_.communicator,
                         .epoch = options_.epoch,
                         .cookie = options_.cookie,
                         .sender = static_cast<uint32_t>(peer),
                         .receiver = static_cast<uint32_t>(rank_),
                         .channel = static_cast<uint64_t>(channel)};
  TcpReceiver& receiver =
      *receivers_.emplace_back(std::make_unique<TcpReceiver>(hello, options_, epoll_));
  // The last one counts, where a peer has tried again.
  const auto bytes = tcp::Encode(hello);
  for (auto early = early_.begin(); early != early_.end();) {
    if (early->hello != bytes) {
      ++early;
      continue;
    }
    receiver.Open(early->fd);
    early = early_.erase(early);
  }
  return &receiver;
}

bool TcpTransport::IsOurs(const std::array<std::byte, tcp::kHelloBytes>& hello) const {
  const tcp::Hello ours{.communicator = options_.communicator,
                        .epoch = options_.epoch,
                        .cookie = options_.cookie,
                        .receiver = static_cast<uint32_t>(rank_)};
  auto anybody = hello;
  tcp::PutWord(tcp::WordAt(hello.data() + tcp::kHelloEnds) >> 32 << 32,
               anybody.data() + tcp::kHelloEnds);
  tcp::PutWord(0, anybody.data() + tcp::kHelloChannel);
  return anybody == tcp::Encode(ours);
}

void TcpTransport::Watch(int fd, uint32_t& ready) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &ready;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void TcpTransport::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      const int why = errno;
      somebody_waits_ = !WouldBlock();
      // Without descriptors the kernel refuses before it looks whether anybody is there.
      pollfd there{.fd = listener_, .events = POLLIN, .revents = 0};
      if (scarcity_.LastsTooLong(why, options_.in_vain_s) && poll(&there, 1, 0) > 0)
        for (const auto& receiver : receivers_) receiver->FailUnaccepted(options_.in_vain_s, why);
      return;
    }
    scarcity_.End();
    if (strangers_.size() >= kHalfOpen) {
      close(fd);
      continue;
    }
    // Else an acknowledgement waits for that of the one before it, which the peer delays by 40 ms.
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    HastenRepeats(fd);
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    strangers_.push_back({.fd = fd,
                          .have = 0,
                          .until = std::chrono::steady_clock::now() + kHelloPatience,
                          .bytes = {}});
  }
}

bool TcpTransport::Hear(Stranger& stranger) {
  const ssize_t bytes =
      recv(stranger.fd, stranger.bytes.data() + stranger.have, tcp::kHelloBytes - stranger.have, 0);
  const bool blocked = bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (bytes > 0) stranger.have += static_cast<size_t>(bytes);
  const bool over =
      bytes == 0 || (bytes < 0 && !blocked) || std::chrono::steady_clock::now() >= stranger.until;
  if (stranger.have < tcp::kHelloBytes) {
    if (over) close(stranger.fd);
    return over;
  }
  epoll_ctl(epoll_, EPOLL_CTL_DEL, stranger.fd, nullptr);
  for (const auto& receiver : receivers_)
    if (tcp::Encode(receiver->hello()) == stranger.bytes) {
      receiver->Open(stranger.fd);
      return true;
    }
  // Else it would be closed, and try again only after a while.
  if (IsOurs(stranger.bytes) && early_.size() < kMaxEarly)
    early_.push_back({stranger.fd, stranger.bytes});
  else
    close(stranger.fd);
  return true;
}

bool TcpTransport::HearAll() {
  bool any = false;
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    if (Hear(*stranger)) {
      stranger = strangers_.erase(stranger);
      any = true;
    } else {
      ++stranger;
    }
  }
  return any;
}

bool TcpTransport::Poll(int wait_ms) {
  constexpr int kEvents = 64;
  std::array<epoll_event, kEvents> events;
  for (const auto& receiver : receivers_) receiver->Advance();
  const int count = epoll_wait(epoll_, events.data(), kEvents, wait_ms);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.ptr != nullptr)
      *static_cast<uint32_t*>(event.data.ptr) |= event.events;
    else
      somebody_waits_ = true;
    any = true;
  }
  // Not each time: the kernel makes a whole socket before it looks whether anybody is there.
  if (somebody_waits_) Accept();
  if (HearAll()) any = true;
  for (const auto& sender : senders_)
    if (sender->Advance()) any = true;
  return any;
}

void TcpTransport::Break() {
  for (const auto& sender : senders_) sender->Break();
  for (const auto& receiver : receivers_) receiver->Break();
}

// A filter that the kernel asks of each segment to a socket, and to those accepted of it.
void TcpTransport::Cut(uint16_t first, uint16_t last) {
  // The source port is the first half word of a segment.
  std::array<sock_filter, 5> program = {{
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const auto attach = [&filter](int fd) {
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
  };
  attach(listener_);
  for (const auto& receiver : receivers_) attach(receiver->fd());
  for (const Stranger& stranger : strangers_) attach(stranger.fd);
}

void TcpTransport::Mend() {
  const auto detach = [](int fd) {
    const int unused = 0;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
  };
  detach(listener_);
  for (const auto& receiver : receivers_) detach(receiver->fd());
  for (const Stranger& stranger : strangers_) detach(stranger.fd);
}

void TcpTransport::CutAnswers() {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &nothing};
  for (const auto& sender : senders_)
    if (sender->fd() >= 0)
      setsockopt(sender->fd(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

int64_t TcpTransport::resumptions() const {
  int64_t count = 0;
  for (const auto& sender : senders_) count += sender->resumptions();
  return count;
}

Status RunToEnd(Interpreter& interpreter, TcpTransport& transport, const Deadline& deadline) {
  constexpr int64_t kBudget = int64_t{256} << 10;
  interpreter.Start();
  for (int stuck = 0;;) {
    const Interpreter::Outcome outcome = interpreter.Poll(kBudget);
    if (outcome == Interpreter::Outcome::kOver) {
      transport.Poll(0);  // the last acknowledgements
      return {};
    }
    if (Status health = interpreter.health(); !health) return health;
    if (deadline.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, "the operation did not end by its deadline");
    stuck = outcome == Interpreter::Outcome::kMoved ? 0 : stuck + 1;
    if (stuck > 1) interpreter.SaveWanted();
    if (transport.Poll(stuck > 2 ? 1 : 0)) stuck = 0;
  }
}

}  // namespace tutti
