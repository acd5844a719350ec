// What a sender, or whoever knows its cookie, may send to the receiving end of a TCP connection, in pieces, over
// connections that end anywhere: the receiver takes exactly the messages that came, each byte once, and fails where a header
// is not the next one's.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bytes.h"
#include "runtime/kernels.h"
#include "runtime/tcp_receiver.h"
#include "tcp_messages.h"

namespace {

using namespace tutti;
using namespace tutti::fuzz;

// What the bytes that were sent mean.
class ExpectedMessages {
 public:
  void Sent(std::span<const std::byte> bytes) {
    while (!is_wrong_ && (!bytes.empty() || IsWhole())) {
      if (IsWhole()) {
        Begin(next() + 1);
        continue;
      }
      if (header_.size() < tcp::kHeaderBytes) {
        MoveUntil(tcp::kHeaderBytes, bytes, header_);
        if (header_.size() == tcp::kHeaderBytes) JudgeHeader();
        continue;
      }
      MoveUntil(BytesOf(next()), bytes, contents_.back());
    }
  }
  // On another connection, of which the receiver says what it has.
  void GoOnAt(uint64_t message, uint64_t byte) {
    Check(message <= next() && byte <= contents_[message].size() && byte % kElementBytes == 0);
    contents_.resize(message + 1);
    contents_.back().resize(byte);
    header_.clear();
    is_wrong_ = false;
  }

  bool is_wrong() const { return is_wrong_; }
  // The one under way, and those before it are whole.
  uint64_t next() const { return contents_.size() - 1; }
  const std::vector<std::byte>& content(uint64_t message) const { return contents_[message]; }
  bool IsInBody() const { return header_.size() == tcp::kHeaderBytes; }

 private:
  bool IsWhole() const { return IsInBody() && contents_.back().size() == BytesOf(next()); }
  void Begin(uint64_t message) {
    contents_.resize(message + 1);
    header_.clear();
  }
  void JudgeHeader() {
    const uint64_t message = tcp::WordAt(header_.data() + 8);
    if (message == tcp::kQuestion)
      header_.clear();
    else
      is_wrong_ = message != next() || tcp::WordAt(header_.data()) != kSignature;
  }

  std::vector<std::vector<std::byte>> contents_ = {{}};  // by message; the last is not whole
  std::vector<std::byte> header_;
  bool is_wrong_ = false;
};

class Sender {
 public:
  explicit Sender(bool reduces)
      : reduce_(reduces ? FindReduceKernel(DataType::kUint32, ReduceOp::kSum) : nullptr) {
    options_.signature = kSignature;
    options_.patience_s = kForEver_s;
    Check(epoll_ >= 0);
  }
  ~Sender() {
    receiver_.reset();
    if (fd_ >= 0) close(fd_);
    close(epoll_);
  }

  void Connect() {
    Hear();
    if (fd_ >= 0) close(fd_);
    std::array<int, 2> ends{};
    Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    fd_ = ends[0];
    const bool healthy = receiver_->health().has_value();
    receiver_->Open(ends[1]);
    std::array<std::byte, tcp::kWelcomeBytes> welcome{};
    const bool welcome_came =
        recv(fd_, welcome.data(), welcome.size(), 0) == static_cast<ssize_t>(welcome.size());
    Check(welcome_came == healthy);
    answer_.clear();
    if (!healthy) return;
    Check(tcp::WordAt(welcome.data()) == tcp::kWelcomeMagic);
    acked_ = tcp::WordAt(welcome.data() + 8);
    Check(acked_ == taken_);
    expected_.GoOnAt(acked_, tcp::WordAt(welcome.data() + 16));
  }
  void Send(std::span<const std::byte> bytes) {
    if (fd_ < 0) return;
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) expected_.Sent(bytes.first(static_cast<size_t>(sent)));
  }
  void SendHeader(uint64_t message, uint64_t signature) { Send(HeaderOf(message, signature)); }
  void SendBody(size_t most) {
    const uint64_t message = expected_.next();
    const size_t at = expected_.content(message).size();
    std::vector<std::byte> bytes(most);
    for (size_t i = 0; i < most; ++i) bytes[i] = ByteOf(message, at + i);
    Send(bytes);
  }
  bool IsInBody() const { return expected_.IsInBody(); }
  uint64_t next() const { return expected_.next(); }

  void Take(int64_t budget) {
    TakeEvents(epoll_, 0);
    receiver_->Advance();
    if (target_ == nullptr) {
      target_ = std::make_unique<MessageBuffer>(taken_);
      own_ = ContentOf(taken_ + 1);
      own_.resize(BytesOf(taken_));
      target_->Fill(own_);
    }
    const int64_t before = budget;
    const Progress progress =
        receiver_->TryTake({.piece = target_->piece(), .reduce = reduce_}, budget);
    Check(budget >= 0 && budget <= before);
    Check(target_->HasItsGuards());
    if (progress != Progress::kDone) return;
    Check(expected_.next() > taken_ || expected_.content(taken_).size() == BytesOf(taken_));
    std::vector<std::byte> whole = expected_.content(taken_);
    if (reduce_ != nullptr) reduce_(whole.data(), whole.data(), own_.data(), ElementsOf(taken_));
    Check(target_->Content() == whole);
    ++taken_;
    target_.reset();
  }

  // All that is on its way; then as much was taken as had come.
  void Finish() {
    constexpr int kRounds = 200;  // more than messages of the longest input
    for (int round = 0; round < kRounds; ++round) Take(kNoBudget);
    const bool is_there = fd_ >= 0 && receiver_->fd() >= 0;
    if (!receiver_->health()) Check(expected_.is_wrong());
    if (is_there) {
      Check(!expected_.is_wrong());
      Check(taken_ == expected_.next());
      Hear();
      Check(acked_ == taken_);
    }
  }

 private:
  // Acknowledgements, and a refusal if what was sent was wrong.
  void Hear() {
    if (fd_ < 0) return;
    static std::array<std::byte, 4096> bytes;
    while (true) {
      const ssize_t came = recv(fd_, bytes.data(), bytes.size(), 0);
      if (came <= 0) break;
      answer_.insert(answer_.end(), bytes.begin(), bytes.begin() + came);
    }
    size_t at = 0;
    for (; answer_.size() - at >= tcp::kAckBytes; at += tcp::kAckBytes) {
      const uint64_t acked = tcp::WordAt(answer_.data() + at);
      if (acked == tcp::kRefusalMagic) {
        Check(expected_.is_wrong() && answer_.size() - at == tcp::kRefusalBytes);
        Check(tcp::WordAt(answer_.data() + at + 8) == taken_);
        return answer_.clear();
      }
      Check(acked >= acked_ && acked <= taken_);
      acked_ = acked;
    }
    answer_.erase(answer_.begin(), answer_.begin() + static_cast<int64_t>(at));
  }

  ReduceKernel reduce_;
  TcpOptions options_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC), fd_ = -1;
  std::unique_ptr<TcpReceiver> receiver_ = std::make_unique<TcpReceiver>(kHello, options_, epoll_);
  ExpectedMessages expected_;
  std::vector<std::byte> answer_;
  std::unique_ptr<MessageBuffer> target_;
  std::vector<std::byte> own_;  // what a reduction adds to
  uint64_t taken_ = 0, acked_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Sender sender(bytes.Take<uint8_t>() % 2 != 0);
  sender.Connect();
  constexpr int kMostActions = 100;
  for (int action = 0; action < kMostActions && !bytes.empty(); ++action) {
    switch (bytes.Take<uint8_t>() % 8) {
      case 0:
        sender.Connect();
        break;
      case 1:
        sender.SendHeader(sender.next(), kSignature);
        break;
      case 2:
        sender.SendBody(bytes.Take<uint16_t>());
        break;
      case 3:  // what comes next, whatever that is
        if (!sender.IsInBody()) sender.SendHeader(sender.next(), kSignature);
        sender.SendBody(BytesOf(sender.next()));
        break;
      case 4: {
        const auto raw = bytes.Take<uint64_t>();
        sender.Send(std::as_bytes(std::span(&raw, 1)).first(1 + raw % 8));
        break;
      }
      case 5:
        sender.SendHeader(tutti::tcp::kQuestion, kSignature);
        break;
      case 6:
        sender.SendHeader(bytes.Take<uint8_t>(), bytes.Take<uint8_t>() + kSignature);
        break;
      case 7:
        sender.Take(1 + int64_t{bytes.Take<uint16_t>()});
        break;
    }
  }
  sender.Finish();
  return 0;
}
