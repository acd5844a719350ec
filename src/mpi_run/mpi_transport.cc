#include "mpi_transport.h"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <climits>
#include <thread>
#include <utility>

#include "tcp_frames.h"

namespace tutti {
namespace {

constexpr size_t kMessageHeader = 16;  // call, number

std::string TextOf(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
    return fmt::format("MPI error {}", error);
  return {text, static_cast<size_t>(length)};
}

std::string NameOf(int32_t from, int32_t to, int32_t channel) {
  return fmt::format("connection {} -> {} channel {}", from, to, channel);
}

}  // namespace

// --- Sender -------------------------------------------------------------------------------------

MpiSender::MpiSender(MPI_Comm ranks, int32_t peer, int tag, uint64_t signature, std::string name)
    : ranks_(ranks), peer_(peer), tag_(tag), signature_(signature), name_(std::move(name)) {}

// What has not left by now nobody takes any more.
MpiSender::~MpiSender() {
  for (; ended_ < posted_; ++ended_) {
    MPI_Request& request = window_[ended_ % kWindow].request;
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

void MpiSender::Fail(const std::string& what) {
  if (health_) health_ = MakeError(ErrorCode::kPeerFailed, name_ + ": " + what);
}

bool MpiSender::Advance() {
  bool any = false;
  while (health_ && ended_ < posted_) {
    int over = 0;
    const int error = MPI_Test(&window_[ended_ % kWindow].request, &over, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) Fail(TextOf(error));
    if (over == 0) break;
    ++ended_;
    any = true;
  }
  return any;
}

bool MpiSender::TryPost(const Piece& source) {
  if (!health_) return false;
  if (posted_ - ended_ == kWindow && !Advance()) return false;
  const int64_t bytes = source.Bytes();
  if (bytes > INT_MAX - static_cast<int64_t>(kMessageHeader)) {
    Fail(fmt::format("a message of {} bytes", bytes));
    return false;
  }
  Sent& sent = window_[posted_ % kWindow];
  sent.bytes.resize(kMessageHeader + static_cast<size_t>(bytes));
  tcp::PutWord(signature_, sent.bytes.data());
  tcp::PutWord(posted_, sent.bytes.data() + 8);
  Pack(source, sent.bytes.data() + kMessageHeader);
  const int error = MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE,
                              peer_, tag_, ranks_, &sent.request);
  if (error != MPI_SUCCESS) {
    Fail(TextOf(error));
    return false;
  }
  ++posted_;
  return true;
}

// --- Receiver -----------------------------------------------------------------------------------

MpiReceiver::MpiReceiver(MPI_Comm ranks, int32_t peer, int tag, uint64_t signature,
                         std::string name)
    : ranks_(ranks), peer_(peer), tag_(tag), signature_(signature), name_(std::move(name)) {}

MpiReceiver::~MpiReceiver() {
  for (Received& message : received_) {
    if (message.request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&message.request);
    MPI_Request_free(&message.request);
  }
}

void MpiReceiver::Fail(const std::string& what) {
  if (health_) health_ = MakeError(ErrorCode::kPeerFailed, name_ + ": " + what);
}

bool MpiReceiver::AdvanceOne(Received& message) {
  int there = 0;
  if (message.stage == Stage::kIdle) {
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    int error = MPI_Improbe(peer_, tag_, ranks_, &there, &handle, &status);
    if (error == MPI_SUCCESS && there == 0) return false;
    int bytes = 0;
    if (error == MPI_SUCCESS) error = MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (error == MPI_SUCCESS) {
      message.bytes.resize(static_cast<size_t>(bytes));
      error = MPI_Imrecv(message.bytes.data(), bytes, MPI_BYTE, &handle, &message.request);
    }
    if (error != MPI_SUCCESS) {
      Fail(TextOf(error));
      return false;
    }
    message.stage = Stage::kReceiving;
  }
  const int error = MPI_Test(&message.request, &there, MPI_STATUS_IGNORE);
  if (error != MPI_SUCCESS) Fail(TextOf(error));
  if (there != 0) message.stage = Stage::kReady;
  return true;
}

// The first is received before the second, as a probe finds them in that order.
bool MpiReceiver::Advance() {
  bool any = false;
  for (uint64_t k = taken_; health_ && k < taken_ + received_.size(); ++k) {
    Received& message = received_[k % received_.size()];
    if (message.stage == Stage::kReady) continue;
    const bool was_idle = message.stage == Stage::kIdle;
    if (!AdvanceOne(message)) break;
    any = any || was_idle || message.stage == Stage::kReady;
  }
  return any;
}

bool MpiReceiver::CheckHeader(const Target& target) {
  const std::vector<std::byte>& bytes = received_[taken_ % received_.size()].bytes;
  const auto wanted = static_cast<size_t>(target.piece.Bytes());
  const bool has_header = bytes.size() >= kMessageHeader;
  const uint64_t call = has_header ? tcp::WordAt(bytes.data()) : 0;
  const uint64_t number = has_header ? tcp::WordAt(bytes.data() + 8) : 0;
  header_seen_ = call == signature_ && number == taken_ && bytes.size() == kMessageHeader + wanted;
  if (!header_seen_)
    Fail(
        fmt::format("got message {} of call {:016x} with {} bytes, wanted message {} of call "
                    "{:016x} with {}: the ranks do not run the same",
                    number, call, bytes.size(), taken_, signature_, kMessageHeader + wanted));
  return header_seen_;
}

Progress MpiReceiver::TryTake(const Target& target, int64_t& budget) {
  Received& message = received_[taken_ % received_.size()];
  if (message.stage != Stage::kReady) Advance();
  if (!health_ || message.stage != Stage::kReady) return Progress::kNothing;
  if (!header_seen_ && !CheckHeader(target)) return Progress::kNothing;
  const int64_t before = budget;
  const std::byte* from = message.bytes.data() + kMessageHeader + cursor_.bytes;
  if (!MovePacked(from, target, cursor_, budget))
    return budget < before ? Progress::kPart : Progress::kNothing;
  message.stage = Stage::kIdle;
  ++taken_;
  cursor_ = {};
  header_seen_ = false;
  Advance();
  return Progress::kDone;
}

// --- Transport ----------------------------------------------------------------------------------

Result<std::unique_ptr<MpiTransport>> MpiTransport::Make(MPI_Comm ranks, int32_t rank,
                                                         uint64_t signature) {
  int* most = nullptr;
  int given = 0;
  MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
  const int error = MPI_Comm_get_attr(ranks, MPI_TAG_UB, static_cast<void*>(&most), &given);
  if (error != MPI_SUCCESS) return MakeError(ErrorCode::kIo, TextOf(error));
  constexpr int kAlways = 32767;  // what the standard promises
  return std::unique_ptr<MpiTransport>(
      new MpiTransport(ranks, rank, signature, given != 0 ? *most : kAlways));
}

std::string MpiTransport::FaultOf(int32_t channel) const {
  if (0 <= channel && channel <= max_tag_) return "";
  return fmt::format("channel {} is no tag of this MPI library, whose largest is {}", channel,
                     max_tag_);
}

Connection* MpiTransport::SendTo(int32_t peer, int32_t channel) {
  MpiSender& sender =
      senders_.emplace_back(ranks_, peer, channel, signature_, NameOf(rank_, peer, channel));
  if (const std::string fault = FaultOf(channel); !fault.empty()) sender.Fail(fault);
  return &sender;
}

Connection* MpiTransport::ReceiveFrom(int32_t peer, int32_t channel) {
  MpiReceiver& receiver =
      receivers_.emplace_back(ranks_, peer, channel, signature_, NameOf(peer, rank_, channel));
  if (const std::string fault = FaultOf(channel); !fault.empty()) receiver.Fail(fault);
  return &receiver;
}

bool MpiTransport::AdvanceAll() {
  bool any = false;
  for (MpiSender& sender : senders_) any = sender.Advance() || any;
  for (MpiReceiver& receiver : receivers_) any = receiver.Advance() || any;
  return any;
}

bool MpiTransport::is_quiet() const {
  for (const MpiSender& sender : senders_)
    if (!sender.is_quiet() && sender.health()) return false;
  return true;
}

bool MpiTransport::Poll(int wait_ms) {
  if (AdvanceAll()) return true;
  if (wait_ms == 0) return false;
  // MPI has nothing to sleep on: the core goes to others, then this rank looks now and then.
  constexpr int kYields = 100;
  constexpr std::chrono::microseconds kNap{50};
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  for (int looks = 0; std::chrono::steady_clock::now() < until; ++looks) {
    looks < kYields ? static_cast<void>(sched_yield()) : std::this_thread::sleep_for(kNap);
    if (AdvanceAll()) return true;
  }
  return false;
}

}  // namespace tutti
