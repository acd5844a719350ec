#include "peer_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tcp_frames.h"

namespace tutti::service {
namespace {

constexpr size_t kWord = 8;

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

PeerLink::PeerLink(EventLoop& loop, int fd, Handlers handlers)
    : PeerLink(loop, std::move(handlers)) {
  link_.emplace(fd);
  remote_ = link_->remote();
  Listen();
}

std::unique_ptr<PeerLink> PeerLink::Connect(EventLoop& loop, const Endpoint& to,
                                            Handlers handlers) {
  std::unique_ptr<PeerLink> link(new PeerLink(loop, std::move(handlers)));
  link->remote_ = to;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_in address = to.ToSocket();
  link->connecting_ = fd;
  if (fd < 0) return nullptr;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS)
    shutdown(fd, SHUT_RDWR);  // the loop says why: nobody expects it here
  loop.Add(fd, EPOLLOUT, [self = link.get()](uint32_t) { self->BeConnected(); });
  return link;
}

PeerLink::~PeerLink() {
  *alive_ = false;
  if (connecting_ >= 0) {
    loop_.Remove(connecting_);
    close(connecting_);
  }
  if (link_) loop_.Remove(link_->fd());
}

void PeerLink::BeConnected() {
  int error = 0;
  socklen_t size = sizeof(error);
  sockaddr_in peer{};
  socklen_t peer_size = sizeof(peer);
  const int fd = std::exchange(connecting_, -1);
  loop_.Remove(fd);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0 && getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    error = errno;
  if (error != 0) {
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
    if ((events & ~uint32_t{EPOLLOUT}) != 0) Read();
  });
}

void PeerLink::Read() {
  const std::shared_ptr<bool> alive = alive_;
  while (*alive && link_) {
    Result<std::optional<Frame>> frame = link_->TryReceive(kMostBytes);
    if (!frame) return Lose(fmt::format("{}: {}", remote_.ToText(), frame.error().message));
    if (!*frame) return;
    std::optional<PeerFrame> said =
        (*frame)->type == FrameType::kDaemon ? Decode((*frame)->body) : std::nullopt;
    if (!said) return Lose(fmt::format("{}: sent what is no frame", remote_.ToText()));
    // The handler may replace itself, or end this link.
    const auto handler = handlers_.frame;
    handler(std::move(*said));
  }
}

void PeerLink::Send(const PeerFrame& frame) {
  if (lost_) return;
  const std::string body = Encode(frame);
  unsent_ += WordsToBytes({static_cast<int64_t>(static_cast<uint64_t>(FrameType::kDaemon) << 56 |
                                                uint64_t{body.size()})});
  unsent_ += body;
  if (link_) Flush();
}

void PeerLink::Flush() {
  size_t done = 0;
  while (done < unsent_.size()) {
    const ssize_t sent = send(link_->fd(), unsent_.data() + done, unsent_.size() - done,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) break;  // who is lost shows when it is read
    done += static_cast<size_t>(sent);
  }
  unsent_.erase(0, done);
  loop_.Change(link_->fd(), EPOLLIN | (unsent_.empty() ? 0u : uint32_t{EPOLLOUT}));
}

void PeerLink::Lose(const std::string& why) {
  if (lost_) return;
  lost_ = true;
  if (link_) {
    loop_.Remove(link_->fd());
    link_.reset();
  }
  const auto handler = handlers_.lost;
  handler(why);
}

}  // namespace tutti::service
