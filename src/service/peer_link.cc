#include "peer_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "gateway.h"
#include "tcp_frames.h"
#include "tutti/base/clock.h"
#include "tutti/runtime/remote.h"
#include "wire_state.h"

namespace tutti::service {
namespace {

constexpr size_t kWord = 8, kLinkWords = 5;
static_assert(tcp::kHelloMagic >> 48 == 2, "kPeerMagic needs a new version, too");

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<uint64_t> Word() {
    if (bytes_.size() < kWord) return std::nullopt;
    const uint64_t word = tcp::WordAt(reinterpret_cast<const std::byte*>(bytes_.data()));
    bytes_.remove_prefix(kWord);
    return word;
  }
  std::optional<std::string> Text() {
    const std::optional<uint64_t> size = Word();
    if (!size || *size > bytes_.size()) return std::nullopt;
    std::string text(bytes_.substr(0, *size));
    bytes_.remove_prefix(*size);
    return text;
  }
  // So many of so many bytes at least can be left.
  bool Holds(uint64_t count, size_t each) const { return count <= bytes_.size() / each; }
  bool AtEnd() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string Encode(const PeerFrame& frame) {
  std::vector<int64_t> head = {static_cast<int64_t>(frame.kind),
                               static_cast<int64_t>(frame.words.size()),
                               static_cast<int64_t>(frame.texts.size())};
  head.insert(head.end(), frame.words.begin(), frame.words.end());
  std::string bytes = WordsToBytes(head);
  for (const std::string& text : frame.texts)
    bytes += WordsToBytes({static_cast<int64_t>(text.size())}) + text;
  return bytes;
}

std::optional<PeerFrame> Decode(std::string_view bytes) {
  Reader reader(bytes);
  const auto kind = reader.Word(), words = reader.Word(), texts = reader.Word();
  if (!kind || *kind < 1 || *kind > static_cast<uint64_t>(kLastPeerKind) || !words || !texts)
    return std::nullopt;
  if (!reader.Holds(*words, kWord)) return std::nullopt;
  PeerFrame frame{.kind = static_cast<PeerKind>(*kind)};
  for (uint64_t i = 0; i < *words; ++i) frame.words.push_back(static_cast<int64_t>(*reader.Word()));
  if (!reader.Holds(*texts, kWord)) return std::nullopt;
  for (uint64_t i = 0; i < *texts; ++i) {
    std::optional<std::string> text = reader.Text();
    if (!text) return std::nullopt;
    frame.texts.push_back(std::move(*text));
  }
  if (!reader.AtEnd()) return std::nullopt;
  return frame;
}

FrameBytes Framed(const PeerFrame& frame) {
  const std::string body = Encode(frame);
  std::string bytes = WordsToBytes(
      {static_cast<int64_t>(static_cast<uint64_t>(FrameType::kDaemon) << 56 | body.size())});
  bytes += body;
  return std::make_shared<const std::string>(std::move(bytes));
}

PeerLink::PeerLink(EventLoop& loop, int fd, Handlers handlers, PeerLinks* links)
    : PeerLink(loop, std::move(handlers)) {
  links_ = links;
  link_.emplace(fd);
  remote_ = link_->remote();
  Listen();
}

std::unique_ptr<PeerLink> PeerLink::Connect(EventLoop& loop, const Endpoint& to,
                                            Handlers handlers) {
  std::unique_ptr<PeerLink> link(new PeerLink(loop, std::move(handlers)));
  link->remote_ = to;
  link->made_here_ = true;
  link->id_ = DrawSecret();
  link->BeginConnection(Framed(link->LinkFrame()));
  const int fd = TcpSocket(to, SOCK_NONBLOCK);
  link->connecting_ = fd;
  if (fd < 0) return nullptr;
  Endpoint at = to;
  if (Gateway* gateway = loop.gateway(); gateway != nullptr)
    if (const Result<Endpoint> through = gateway->Through(to, {}); through)
      link->through_ = at = *through;
  if (ConnectTo(fd, at) != 0 && errno != EINPROGRESS) {
    link->refused_ = errno == ECONNREFUSED;
    shutdown(fd, SHUT_RDWR);  // the loop says why: nobody expects it here
  }
  loop.Add(fd, EPOLLOUT, [self = link.get()](uint32_t) { self->BeConnected(); });
  return link;
}

PeerLink::~PeerLink() {
  *alive_ = false;
  CloseConnecting();
  if (link_) loop_.Remove(link_->fd());
  LeaveGateway();
  if (links_ != nullptr)
    if (const auto own = links_->find(id_); own != links_->end() && own->second == this)
      links_->erase(own);
}

void PeerLink::LeaveGateway() {
  if (through_.port == 0) return;
  loop_.gateway()->Close(through_);
  through_.port = 0;
}

void PeerLink::BeConnected() {
  int error = 0;
  socklen_t size = sizeof(error);
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof(peer);
  const int fd = std::exchange(connecting_, -1);
  loop_.Remove(fd);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0 && getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    error = errno;
  if (error != 0) {
    refused_ = refused_ || error == ECONNREFUSED || error == ECONNRESET;
    close(fd);
    Lose(fmt::format("nobody could be reached at {}: {}", remote_.ToText(), std::strerror(error)));
    return;
  }
  link_.emplace(fd);
  Listen();
  Flush();
}

void PeerLink::Listen() {
  loop_.Add(link_->fd(), EPOLLIN, [this](uint32_t events) {
    if ((events & EPOLLOUT) != 0) Flush();
    if ((events & ~uint32_t{EPOLLOUT}) != 0 || lacks_memory_) Read();
  });
}

std::optional<PeerFrame> PeerLink::Next() {
  Result<std::optional<PeerFrame>> next;
  try {
    lacks_memory_ = false;
    next = TryNext();
  } catch (const std::bad_alloc&) {
    lacks_memory_ = true;
    // There may be memory when the loop comes by again, and perhaps nothing more to read.
    loop_.Change(link_->fd(), EPOLLIN | EPOLLOUT);
    return std::nullopt;
  }
  if (next) return *std::move(next);
  Lose(fmt::format("{}: {}", remote_.ToText(), next.error().message));
  return std::nullopt;
}

Result<std::optional<PeerFrame>> PeerLink::TryNext() {
  if (!undecoded_) {
    Result<std::optional<Frame>> frame = link_->TryReceive(kMostBytes);
    if (!frame) return tl::unexpected(frame.error());
    if (!*frame) return std::optional<PeerFrame>();
    undecoded_ = std::move(**frame);
  }
  std::optional<PeerFrame> said =
      undecoded_->type == FrameType::kDaemon ? Decode(undecoded_->body) : std::nullopt;
  undecoded_.reset();
  if (!said) return MakeError(ErrorCode::kPeerFailed, "sent what is no frame");
  return said;
}

void PeerLink::Read() {
  const std::shared_ptr<bool> alive = alive_;
  while (*alive && link_) {
    std::optional<PeerFrame> said = Next();
    if (!said) break;
    if (is_deaf_) continue;
    if (said->kind == PeerKind::kLink) {
      HearLink(*said);
      continue;
    }
    if (said->kind == PeerKind::kHeard) {
      if (said->words.size() == 1) HearHeard(said->words[0]);
      continue;
    }
    ++received_;
    // The handler may replace itself, or end this link.
    const auto handler = handlers_.frame;
    handler(std::move(*said));
  }
  if (!*alive || !link_ || lost_ || told_ == received_) return;
  told_ = received_;
  Queue(Framed({.kind = PeerKind::kHeard, .words = {received_}}));
  Flush();
}

// --- Silence -------------------------------------------------------------------------------------

PeerFrame PeerLink::LinkFrame() const {
  return {.kind = PeerKind::kLink,
          .words = {static_cast<int64_t>(id_[0]), static_cast<int64_t>(id_[1]), received_, number_,
                    static_cast<int64_t>(kPeerMagic)}};
}

void PeerLink::HearHeard(int64_t frames) {
  losses_in_turn_ = 0;
  if (heard_ < frames) unheard_since_ns_ = NowNs();
  for (; heard_ < frames && !unheard_.empty(); ++heard_) unheard_.pop_front();
  if (unheard_.empty()) unheard_since_ns_ = 0;
}

void PeerLink::Resend() {
  for (const FrameBytes& frame : unheard_) Queue(frame);
  Flush();
}

bool PeerLink::IsOfThisVersion(const PeerFrame& link) {
  if (link.words.size() < kLinkWords) return false;  // another version may say more
  const std::optional<std::string> other =
      OtherVersion(static_cast<uint64_t>(link.words[4]), kPeerMagic);
  if (!other) return static_cast<uint64_t>(link.words[4]) == kPeerMagic;
  if (made_here_) {
    Lose(fmt::format("{}: {}", remote_.ToText(), *other));
    return false;
  }
  // It closes the connection when it has heard why: closed here, with bytes unread, that might not arrive.
  is_deaf_ = true;
  Queue(Framed(LinkFrame()));
  Flush();
  return false;
}

void PeerLink::HearLink(const PeerFrame& frame) {
  if (!IsOfThisVersion(frame)) return;
  const int64_t heard = frame.words[2], number = frame.words[3];
  if (made_here_) {
    if (!awaits_answer_) return;
    awaits_answer_ = false;
    left_.reset();
    HearHeard(heard);
    return Resend();
  }
  if (links_ == nullptr) return;
  id_ = {static_cast<uint64_t>(frame.words[0]), static_cast<uint64_t>(frame.words[1])};
  const auto [known, is_new] = links_->try_emplace(id_, this);
  if (is_new) {
    number_ = number;
    // Nothing was heard of those before; the other end waits to hear that.
    if (number > 0) {
      Queue(Framed(LinkFrame()));
      Flush();
    }
    return;
  }
  if (known->second == this) return;
  PeerLink& resumed = *known->second;
  loop_.Remove(link_->fd());
  ControlLink link = std::move(*link_);
  link_.reset();
  lost_ = true;
  // It goes on over this connection, but where that is one that the other end has left.
  const bool is_newer = number > resumed.number_;
  if (is_newer) resumed.TakeOver(std::move(link), number, heard);
  const auto handler = handlers_.lost;
  handler(is_newer ? "it resumed another link" : "the other end has left this connection");
}

void PeerLink::TakeOver(ControlLink link, int64_t number, int64_t heard) {
  if (lost_) return;
  number_ = number;
  if (link_) loop_.Remove(link_->fd());
  link_.emplace(std::move(link));
  HearHeard(heard);
  told_ = received_;
  BeginConnection(Framed(LinkFrame()));
  Listen();
  const std::shared_ptr<bool> alive = alive_;
  Resend();
  if (*alive) Read();  // what came with the first frame
}

void PeerLink::CloseConnecting() {
  if (connecting_ < 0) return;
  loop_.Remove(connecting_);
  close(std::exchange(connecting_, -1));
}

void PeerLink::Adopt(int fd) {
  silent_looks_ = 0;
  if (connecting_ >= 0) {  // nothing was sent by the first one
    CloseConnecting();
    link_.emplace(fd);
    Listen();
    return Flush();
  }
  if (link_) {
    loop_.Remove(link_->fd());
    // Closed when the other end has left it, too: else a reset of it might say that this daemon has gone.
    left_.emplace(std::move(*link_));
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(left_->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  link_.emplace(fd);
  acked_bytes_ = 0;
  awaits_answer_ = true;  // until it says what it has heard
  ++number_;
  told_ = received_;
  BeginConnection(Framed(LinkFrame()));
  Listen();
  Flush();
}

void PeerLink::Beat(int64_t now_ns) {
  constexpr int64_t kBeatNs = 500'000'000;
  if (now_ns < next_beat_ns_ || !unsent_.empty()) return;
  next_beat_ns_ = now_ns + kBeatNs;
  Queue(Framed({.kind = PeerKind::kHeard, .words = {received_}}));
  Flush();
}

void PeerLink::Return(int64_t now_ns) {
  constexpr int64_t kFirstNs = 250'000'000, kMostNs = 2'000'000'000, kPatienceNs = 1'000'000'000;
  constexpr int64_t kMostDoublings = 3;
  if (redial_.has_begun()) {
    if (ipc::Descriptor made = redial_.Take(); made.is_open()) return Adopt(made.Release());
    if (redial_.is_under_way() && now_ns - redial_.since_ns() < kPatienceNs) return;
    why_lost_ = fmt::format("nobody could be reached at {}: {}", remote_.ToText(),
                            std::strerror(redial_.is_under_way() ? ETIMEDOUT : redial_.error()));
    redial_.Close();
    ++losses_in_turn_;
    next_return_ns_ = 0;
  }
  if (next_return_ns_ == 0) {
    const int64_t doublings = std::min(losses_in_turn_ - 2, kMostDoublings);
    next_return_ns_ = now_ns + (losses_in_turn_ < 2 ? 0 : std::min(kFirstNs << doublings, kMostNs));
  }
  if (now_ns < next_return_ns_) return;
  next_return_ns_ = 0;
  redial_.Begin(through_.port != 0 ? through_ : remote_, 1, now_ns);
}

bool PeerLink::IsSilent() {
  if (!link_) return true;
  const std::optional<WireState> wire = LookAtWire(link_->fd());
  if (!wire) return false;
  const bool heard = wire->acked_bytes != acked_bytes_;
  acked_bytes_ = wire->acked_bytes;
  return !heard && (wire->unacked > 0 || wire->probes > 0);
}

void PeerLink::Watch(int64_t now_ns) {
  constexpr int kSilentLooks = 2;
  constexpr size_t kRedials = 4;
  constexpr int64_t kRedialNs = 250'000'000;
  if (lost_) return;
  if (endures_ && made_here_ && !link_ && connecting_ < 0) return Return(now_ns);
  if (through_.port != 0 || (!link_ && connecting_ < 0)) return;
  if (!made_here_) return Beat(now_ns);
  if (!IsSilent()) {
    silent_looks_ = 0;
    redial_.Close();
    return Beat(now_ns);
  }
  if (++silent_looks_ < kSilentLooks) return;
  if (ipc::Descriptor made = redial_.Take(); made.is_open()) return Adopt(made.Release());
  if (redial_.error() == ECONNREFUSED) {
    refused_ = refused_ || connecting_ >= 0;
    CloseConnecting();
    redial_.Close();
    return Lose(fmt::format("nobody is there any more at {}", remote_.ToText()));
  }
  if (redial_.is_under_way() && now_ns - redial_.since_ns() < kRedialNs) return;
  redial_.Begin(remote_, kRedials, now_ns);
}

void PeerLink::Send(FrameBytes frame) {
  if (lost_) return;
  if (unheard_.empty()) unheard_since_ns_ = NowNs();
  unheard_.push_back(std::move(frame));
  if (awaits_answer_) return;
  Queue(unheard_.back());
  if (link_) Flush();
}

void PeerLink::BeginConnection(FrameBytes frame) {
  unsent_.clear();
  sent_of_first_ = 0;
  undecoded_.reset();  // it was not counted: it is sent again
  Queue(std::move(frame));
}

void PeerLink::Flush() {
  while (!unsent_.empty()) {
    const std::string& frame = *unsent_.front();
    const ssize_t sent = send(link_->fd(), frame.data() + sent_of_first_,
                              frame.size() - sent_of_first_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) break;  // who is lost shows when it is read
    sent_of_first_ += static_cast<size_t>(sent);
    if (sent_of_first_ < frame.size()) continue;
    unsent_.pop_front();
    sent_of_first_ = 0;
  }
  loop_.Change(link_->fd(), EPOLLIN | (unsent_.empty() ? 0u : uint32_t{EPOLLOUT}));
}

void PeerLink::Lose(const std::string& why) {
  if (lost_) return;
  if (link_) {
    loop_.Remove(link_->fd());
    link_.reset();
  }
  if (endures_) {
    redial_.Close();
    left_.reset();
    unsent_.clear();
    sent_of_first_ = 0;
    undecoded_.reset();
    awaits_answer_ = made_here_;  // nothing is sent until the other end has said what it has heard
    ++losses_in_turn_;
    next_return_ns_ = 0;
    why_lost_ = WithFault(why);
    return;
  }
  lost_ = true;
  const auto handler = handlers_.lost;
  handler(WithFault(why));
}

std::string PeerLink::WithFault(const std::string& why) const {
  const Gateway* gateway = loop_.gateway();
  const std::string fault = gateway == nullptr ? "" : gateway->FaultWith(remote_);
  return fault.empty() ? why : why + ": " + fault;
}

}  // namespace tutti::service
