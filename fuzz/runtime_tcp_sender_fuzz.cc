// What a receiver, or whoever listens in its place, may answer to the sending end of a TCP connection, which it may close at
// any time: the sender writes its messages in order from where it was asked to go on, releases those only that it was told
// were taken, and fails where an answer cannot be true.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "bytes.h"
#include "runtime/tcp_sender.h"
#include "tcp_messages.h"

namespace {

using namespace tutti;
using namespace tutti::fuzz;

// Of waiting for what has to come: what was sent within a host is there at once, but where it is busy.
constexpr int kRoundsAtOnce = 20, kRounds = kRoundsAtOnce + 20000;

// Listens, and takes what was sent from where it asked the sender to go on.
class Receiver {
 public:
  enum class Stage : uint8_t { kAway, kGreeted, kOpen };

  ~Receiver() { Close(); }

  const Endpoint& endpoint() const { return Listening().endpoint; }
  Stage stage() const { return stage_; }
  // The message under way, from that byte on; those before it have been read, or were said to be.
  uint64_t message() const { return message_; }

  // False: nobody has connected.
  bool Accept() {
    const int fd = accept4(Listening().fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return false;
    Close();
    fd_ = fd;
    // Ends at once, and keeps no port.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    // Else an answer waits for the acknowledgement of the one before it.
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    stage_ = Stage::kGreeted;
    hello_.clear();
    return true;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    stage_ = Stage::kAway;
  }
  void SayWords(std::initializer_list<uint64_t> words) const {
    std::vector<std::byte> bytes(8 * words.size());
    size_t at = 0;
    for (const uint64_t word : words) tcp::PutWord(word, bytes.data() + 8 * at++);
    if (fd_ >= 0) send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // What was asked for is expected from now on.
  void ExpectFrom(uint64_t message, size_t byte) {
    stage_ = Stage::kOpen;
    message_ = message;
    byte_ = byte;
    header_.clear();
  }
  // Reads what is there. False: nothing was.
  bool Read() {
    if (fd_ < 0) return false;
    static std::array<std::byte, 65536> bytes;
    const ssize_t came = recv(fd_, bytes.data(), bytes.size(), 0);
    if (came <= 0) return false;
    Judge(std::span(bytes).first(static_cast<size_t>(came)));
    return true;
  }

 private:
  struct Listener {
    Endpoint endpoint{INADDR_LOOPBACK, 0};
    int fd = -1;
  };
  static const Listener& Listening() {
    static const Listener listener = [] {
      Listener made;
      made.fd = ListenAt(made.endpoint);
      Check(made.fd >= 0);
      return made;
    }();
    return listener;
  }

  void Judge(std::span<const std::byte> bytes) {
    static const auto kExpectedHello = tcp::Encode(kHello);
    while (!bytes.empty()) {
      if (hello_.size() < tcp::kHelloBytes) {
        MoveUntil(tcp::kHelloBytes, bytes, hello_);
        Check(std::equal(hello_.begin(), hello_.end(), kExpectedHello.begin()));
        continue;
      }
      Check(stage_ == Stage::kOpen);  // nothing before it is welcome
      if (header_.size() < tcp::kHeaderBytes) {
        MoveUntil(tcp::kHeaderBytes, bytes, header_);
        if (header_.size() == tcp::kHeaderBytes) JudgeHeader();
        continue;
      }
      const std::vector<std::byte>& content = ContentOf(message_);
      const size_t more = std::min(bytes.size(), content.size() - byte_);
      Check(std::equal(bytes.begin(), bytes.begin() + static_cast<int64_t>(more),
                       content.begin() + static_cast<int64_t>(byte_)));
      bytes = bytes.subspan(more);
      byte_ += more;
      EndWhereItIsWhole();
    }
  }
  void JudgeHeader() {
    Check(tcp::WordAt(header_.data()) == kSignature);
    if (tcp::WordAt(header_.data() + 8) == tcp::kQuestion) return header_.clear();
    Check(tcp::WordAt(header_.data() + 8) == message_);
    EndWhereItIsWhole();
  }
  void EndWhereItIsWhole() {
    if (byte_ < BytesOf(message_)) return;
    ++message_;
    byte_ = 0;
    header_.clear();
  }

  int fd_ = -1;
  Stage stage_ = Stage::kAway;
  std::vector<std::byte> hello_, header_;
  uint64_t message_ = 0;
  size_t byte_ = 0;
};

class Exchange {
 public:
  Exchange() {
    options_.signature = kSignature;
    options_.silence_s = 0;  // looks for no other way
    options_.retry = {};
    options_.patience_s = options_.in_vain_s = kForEver_s;
    Check(epoll_ >= 0);
    sender_ = std::make_unique<TcpSender>(kHello, options_, epoll_, receiver_.endpoint(),
                                          options_.source);
    Advance();
  }
  ~Exchange() {
    receiver_.Close();
    sender_.reset();
    // Who has connected and was not accepted is not the next input's.
    while (receiver_.Accept()) receiver_.Close();
    close(epoll_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Receiver& receiver() { return receiver_; }
  uint64_t released() const { return sender_->released(); }
  // No answer was wrong.
  bool is_healthy() const { return sender_->health().has_value(); }

  void Post() {
    auto buffer = std::make_unique<MessageBuffer>(posted_);
    buffer->Fill(ContentOf(posted_));
    const bool has_room = posted_ - released() < kWindow;
    Check(sender_->TryPost(buffer->piece()) == has_room);
    if (!has_room) return;
    if (buffers_.size() == kWindow) buffers_.pop_front();
    buffers_.push_back(std::move(buffer));
    ++posted_;
  }
  // Saves the `ahead`-th message that is not released, whose memory is another's from then on.
  void Save(uint64_t ahead) {
    const uint64_t message = released() + ahead % kBounces;
    if (message >= posted_ || message < saved_) return;
    MessageBuffer& buffer = *buffers_[buffers_.size() - static_cast<size_t>(posted_ - message)];
    Check(sender_->Save(message, buffer.piece()));
    saved_ = message + 1;
    buffer.Fill(ContentOf(message + 5));  // of the same size
  }
  void Advance(int wait_ms = 0) {
    const uint64_t released_before = released();
    TakeEvents(epoll_, wait_ms);
    sender_->Advance();
    Check(released() >= released_before && released() <= posted_);
  }
  template <class Condition>
  void AdvanceUntil(Condition condition) {
    for (int round = 0; !condition(); ++round) {
      Check(round < kRounds);
      Advance(receiver_.Read() || round < kRoundsAtOnce ? 0 : 1);
    }
  }

  void Accept() {
    Advance();
    if (receiver_.Accept()) Advance();
  }
  void Welcome(uint64_t magic, uint64_t message, uint64_t byte) {
    if (receiver_.stage() != Receiver::Stage::kGreeted || !is_healthy()) return;
    while (receiver_.Read()) {
    }
    const bool is_known = message >= released() && message <= posted_;
    const uint64_t most = is_known && message < posted_ ? BytesOf(message) : 0;
    const bool is_right = magic == tcp::kWelcomeMagic && is_known && byte <= most;
    if (is_right) receiver_.ExpectFrom(message, byte);
    receiver_.SayWords({magic, message, byte});
    if (is_right)
      AdvanceUntil([&] { return released() == message; });
    else
      AdvanceUntil([&] { return !is_healthy(); });
  }
  void Acknowledge(uint64_t message) {
    if (receiver_.stage() != Receiver::Stage::kOpen || !is_healthy()) return;
    const bool was_read = message <= receiver_.message();
    const bool is_impossible = message > posted_ || message < released();
    receiver_.SayWords({message});
    if (is_impossible)
      AdvanceUntil([&] { return !is_healthy(); });
    else if (was_read)
      AdvanceUntil([&] { return released() == message; });
    else
      Advance();
  }
  void Refuse() {
    if (receiver_.stage() != Receiver::Stage::kOpen) return;
    receiver_.SayWords({tcp::kRefusalMagic, receiver_.message(), ~kSignature});
    AdvanceUntil([&] { return !is_healthy(); });
  }
  // Another connection is made by and by.
  void Reconnect() {
    receiver_.Close();
    for (int round = 0; is_healthy() && !receiver_.Accept(); ++round) {
      Check(round < kRounds);
      Advance(round < kRoundsAtOnce ? 0 : 1);
    }
  }

  // Whatever was posted comes, where all answers were true.
  void Finish() {
    while (receiver_.Read()) {
    }
    if (!is_healthy() || receiver_.stage() != Receiver::Stage::kOpen) return;
    AdvanceUntil([&] { return receiver_.message() == posted_; });
    Acknowledge(posted_);
  }

 private:
  TcpOptions options_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::deque<std::unique_ptr<MessageBuffer>> buffers_;  // of the last that were posted
  Receiver receiver_;
  std::unique_ptr<TcpSender> sender_;
  uint64_t posted_ = 0, saved_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Exchange exchange;
  constexpr int kMostActions = 60;
  for (int action = 0; action < kMostActions && !bytes.empty(); ++action) {
    switch (bytes.Take<uint8_t>() % 11) {
      case 0:
        exchange.Post();
        break;
      case 1:
        exchange.Accept();
        break;
      case 2:
        exchange.Welcome(tcp::kWelcomeMagic, exchange.released(), 0);
        break;
      case 3: {
        const uint64_t message = exchange.released() + bytes.Take<uint8_t>() % 4;
        exchange.Welcome(tcp::kWelcomeMagic, message, bytes.Take<uint16_t>());
        break;
      }
      case 4: {
        const auto magic = bytes.Take<uint64_t>(), message = bytes.Take<uint64_t>();
        exchange.Welcome(magic, message, bytes.Take<uint64_t>());
        break;
      }
      case 5:
        exchange.receiver().Read();
        exchange.Acknowledge(exchange.receiver().message());
        break;
      case 6:
        exchange.Acknowledge(bytes.Take<uint8_t>());
        break;
      case 7:
        exchange.Refuse();
        break;
      case 8:
        exchange.Save(bytes.Take<uint8_t>());
        break;
      case 9:
        exchange.Advance();
        exchange.receiver().Read();
        break;
      case 10:
        exchange.Reconnect();
        break;
    }
  }
  exchange.Finish();
  return 0;
}
