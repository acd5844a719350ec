// A rank whose operations a service runs: commands go to the daemon of its host, which reads and writes the
// process's service memory, of the host or of a device. Buffers elsewhere are copied into such memory and back.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "rank.h"
#include "service_client.h"
#include "tutti/base/copy.h"
#include "tutti/base/deadline.h"

namespace tutti {
namespace {

using ipc::Kind;

// Service memory that grows as it is needed and is kept.
class Stage {
 public:
  explicit Stage(ServiceClient& client) : client_(client) {}
  ~Stage() {
    if (memory_ != nullptr) client_.Free(memory_);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Result<std::byte*> OfSize(int64_t bytes) {
    if (bytes > bytes_) {
      if (memory_ != nullptr) client_.Free(memory_);
      memory_ = nullptr;
      bytes_ = 0;
      const Result<void*> made = client_.Allocate(bytes);
      if (!made) return tl::unexpected(made.error());
      memory_ = static_cast<std::byte*>(*made);
      bytes_ = bytes;
    }
    return memory_;
  }

 private:
  ServiceClient& client_;
  std::byte* memory_ = nullptr;
  int64_t bytes_ = 0;
};

class ServiceRank final : public Communicator::Rank {
 public:
  ServiceRank(std::shared_ptr<ServiceClient> client, int32_t num_ranks, int32_t rank,
              const CommunicatorOptions& options)
      : Rank(num_ranks, rank, options),
        client_(std::move(client)),
        input_(*client_),
        output_(*client_) {}
  ~ServiceRank() override {
    if (line_)
      static_cast<void>(client_->Ask({.kind = Kind::kLeave, .words = {*line_}}, Deadline(10)));
  }

  Status Join(const UniqueId& id);

  void Abort() override {
    aborted_ = true;
    static_cast<void>(TellAbort("aborted"));
  }
  Status RunHere(const CollectiveCall& call) override;
  Status ExchangeHere(std::span<const Message> messages, const std::string& text) override;
  bool Understands(const void* of_device, int64_t bytes) const override {
    return num_ranks_ > 1 && client_->Find(of_device, bytes);
  }
  Result<std::shared_ptr<std::byte>> AllocateHost(int64_t bytes) override;
  Result<std::vector<std::string>> Share(const std::string& mine, const std::string& text) override;
  Result<std::string> ScheduleFor(const CollectiveCall&) override {
    return num_ranks_ == 1 ? "copy" : "the service's";
  }
  Result<UniqueId> MakeId() const override { return MakeUniqueId(options_.service); }
  Result<Regrouped> Regroup(const RegroupAsk& ask, const Deadline& deadline) override;
  Result<std::unique_ptr<Communicator::Rank>> JoinAgain(const Regrouped& regrouped) override {
    return JoinService(ServiceSocket(options_.service), regrouped.id, regrouped.num_ranks,
                       regrouped.rank, options_);
  }

 private:
  using Place = ServiceClient::Place;
  static constexpr size_t kShareBytes = 4096;

  Status RunNow(const CollectiveCall& call);
  Status TellAbort(const std::string& why) {
    return client_->Tell({.kind = Kind::kAbort, .words = {*line_}, .text = why});
  }
  // Where the daemon finds the bytes: in place, or in `stage`, filled where they are read. The daemon's copies do not
  // wait for what the program gave its device, so this does.
  Result<Place> PlaceOf(const void* data, int64_t bytes, Stage& stage, bool is_read);
  static Status Settle(const void* data, const Place& place) {
    ipc::CudaPointers* cuda = place.of_device ? ipc::CudaPointers::OfThisProcess() : nullptr;
    return cuda == nullptr ? Status{} : cuda->WaitFor(data);
  }
  // Until the command is complete.
  Status Wait(const std::string& text);
  // Why the daemon says that it failed.
  Error Reason(const std::string& text);

  std::shared_ptr<ServiceClient> client_;
  Stage input_, output_;
  std::optional<uint32_t> line_;
  std::mutex running_;
  std::atomic<bool> aborted_ = false;
  uint64_t sequence_ = 0;
};

Status ServiceRank::Join(const UniqueId& id) {
  uint64_t request = 0;
  const Result<ipc::Packet> joined = client_->Ask(
      {.kind = Kind::kJoin,
       .words = {static_cast<uint64_t>(num_ranks_), static_cast<uint64_t>(rank_)},
       .text = std::string(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size())},
      Deadline(options_.timeout_s), nullptr, &request);
  if (joined) {
    line_ = static_cast<uint32_t>(joined->words[0]);
    return {};
  }
  // It may still be waiting there for the others.
  static_cast<void>(client_->Tell(
      {.kind = Kind::kAbort, .words = {ipc::kLines, request}, .text = "it did not join in time"}));
  return tl::unexpected(joined.error());
}

Result<ServiceRank::Place> ServiceRank::PlaceOf(const void* data, int64_t bytes, Stage& stage,
                                                bool is_read) {
  if (bytes == 0) return Place{};
  if (const std::optional<Place> found = client_->Find(data, bytes)) {
    if (const Status settled = Settle(data, *found); !settled)
      return tl::unexpected(settled.error());
    return *found;
  }
  const Result<std::byte*> staged = stage.OfSize(bytes);
  if (!staged) return tl::unexpected(staged.error());
  if (is_read) CopyMemory(*staged, data, static_cast<size_t>(bytes));
  return *client_->Find(*staged, bytes);
}

Result<std::shared_ptr<std::byte>> ServiceRank::AllocateHost(int64_t bytes) {
  const Result<void*> made = client_->Allocate(bytes);
  if (!made) return tl::unexpected(made.error());
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(*made),
                                    [client = client_](std::byte* at) { client->Free(at); });
}

Error ServiceRank::Reason(const std::string& text) {
  if (client_->has_gone()) return {ErrorCode::kPeerFailed, "in " + text + ": the service has gone"};
  const Result<ipc::Packet> why =
      client_->Ask({.kind = Kind::kWhy, .words = {*line_}}, Deadline(10));
  if (!why) return why.error();
  return {static_cast<ErrorCode>(why->words[0]), fmt::format("in {}: {}", text, why->text)};
}

Status ServiceRank::Wait(const std::string& text) {
  constexpr int kSpins = 8;
  constexpr std::chrono::microseconds kAwake{200};  // before it sleeps
  const ipc::StatusLine& line = client_->line(*line_);
  const Deadline deadline(options_.timeout_s);
  const auto begin = std::chrono::steady_clock::now();
  bool told = false;
  for (int look = 0;; ++look) {
    // Whether it has gone is looked at first: what it completed before is complete.
    const bool has_gone = client_->has_gone();
    const ipc::LineOutcome outcome = ipc::OutcomeOf(line, sequence_);
    if (outcome == ipc::LineOutcome::kCompleted) return {};
    if (outcome == ipc::LineOutcome::kFailed || has_gone) return FailFor(Reason(text));
    if (look < kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      continue;
    }
    if (std::chrono::steady_clock::now() - begin < kAwake) {
      std::this_thread::yield();  // the daemon may share the core
      continue;
    }
    client_->WaitForLine(*line_, sequence_ - 1);
    if (!told && deadline.HasPassed()) {
      told = true;
      static_cast<void>(
          TellAbort(fmt::format("{} did not end within {} s", text, options_.timeout_s)));
    }
  }
}

Status ServiceRank::RunHere(const CollectiveCall& call) {
  const std::lock_guard running(running_);
  return RunNow(call);
}

Status ServiceRank::RunNow(const CollectiveCall& call) {
  if (Status checked = CheckCall(call, rank_, num_ranks_); !checked) return checked;
  if (Status healthy = health(); !healthy) return healthy;
  if (num_ranks_ == 1) {
    Copy(call);
    return {};
  }
  const int64_t reads = InputBytes(call, rank_, num_ranks_);
  const int64_t writes = OutputBytes(call, rank_, num_ranks_);
  const Result<Place> input = PlaceOf(call.input, reads, input_, true);
  if (!input) return tl::unexpected(input.error());
  const Result<Place> output = PlaceOf(call.output, writes, output_, false);
  if (!output) return tl::unexpected(output.error());
  const ipc::Slot slot{.sequence = ++sequence_,
                       .opcode = ipc::Opcode::kCollective,
                       .kind = static_cast<uint8_t>(call.kind),
                       .type = static_cast<uint8_t>(call.type),
                       .op = static_cast<uint8_t>(call.op),
                       .line = *line_,
                       .root = static_cast<uint32_t>(call.root),
                       .input = input->buffer,
                       .output = output->buffer,
                       .input_offset = input->offset,
                       .output_offset = output->offset,
                       .count = static_cast<uint64_t>(call.count)};
  client_->Submit({&slot, 1});
  if (Status done = Wait(ToText(call)); !done) return done;
  if (writes > 0 && !client_->Find(call.output, writes)) {
    const Result<std::byte*> staged = output_.OfSize(writes);
    CopyMemory(call.output, *staged, static_cast<size_t>(writes));
  }
  return {};
}

Status ServiceRank::ExchangeHere(std::span<const Message> messages, const std::string& text) {
  const std::lock_guard running(running_);
  if (Status checked = CheckMessages(messages, rank_, num_ranks_); !checked) return checked;
  if (Status healthy = health(); !healthy) return healthy;
  // What lies elsewhere goes into one piece of memory a direction.
  constexpr int64_t kLine = 64;
  const auto padded = [](int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  std::vector<std::optional<Place>> places;
  std::array<int64_t, 2> staged_bytes{};
  for (const Message& message : messages) {
    places.push_back(message.bytes == 0 ? Place{} : client_->Find(message.data, message.bytes));
    if (!places.back())
      staged_bytes[message.is_send ? 0 : 1] += padded(message.bytes);
    else if (Status settled = Settle(message.data, *places.back()); !settled)
      return settled;
  }
  std::array<std::byte*, 2> staged{};
  for (size_t side = 0; side < 2; ++side) {
    const auto memory = (side == 0 ? input_ : output_).OfSize(staged_bytes[side]);
    if (!memory) return tl::unexpected(memory.error());
    staged[side] = *memory;
  }
  std::vector<std::pair<const Message*, const std::byte*>> to_copy_back;
  std::vector<ipc::Slot> slots;
  ++sequence_;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (!places[i]) {
      std::byte*& next = staged[message.is_send ? 0 : 1];
      if (message.is_send)
        CopyMemory(next, message.data, static_cast<size_t>(message.bytes));
      else
        to_copy_back.emplace_back(&message, next);
      places[i] = client_->Find(next, message.bytes);
      next += padded(message.bytes);
    }
    slots.push_back({.sequence = sequence_,
                     .opcode = ipc::Opcode::kMessage,
                     .sends = message.is_send ? uint8_t{1} : uint8_t{0},
                     .line = *line_,
                     .root = static_cast<uint32_t>(message.peer),
                     .input = places[i]->buffer,
                     .input_offset = places[i]->offset,
                     .count = static_cast<uint64_t>(message.bytes)});
  }
  slots.push_back(
      {.sequence = sequence_,
       .opcode = ipc::Opcode::kExchange,
       .kind = text == kMessages ? uint8_t{0} : static_cast<uint8_t>(CollectiveKind::kAllToAllV),
       .line = *line_,
       .what = SignatureOfText(text)});
  client_->Submit(slots);
  if (Status done = Wait(text); !done) return done;
  for (const auto& [message, from] : to_copy_back)
    CopyMemory(message->data, from, static_cast<size_t>(message->bytes));
  return {};
}

Result<Regrouped> ServiceRank::Regroup(const RegroupAsk& ask, const Deadline& deadline) {
  constexpr double kMsAS = 1000, kLongS = 1e6, kAnswerS = 10;
  const double left = deadline.Left() > 0 ? deadline.Left() : kLongS;
  // The daemon's time passes first, so that it says who did not come.
  const Result<ipc::Packet> packet =
      client_->Ask({.kind = Kind::kRegroup,
                    .words = {*line_, static_cast<uint64_t>(left * kMsAS)},
                    .text = Encode(ask)},
                   Deadline(left + kAnswerS));
  if (!packet) return tl::unexpected(packet.error());
  const auto regrouped = DecodeRegrouped(packet->text);
  if (!regrouped) return MakeError(ErrorCode::kCorrupt, "the service's answer is none");
  return *regrouped;
}

Result<std::vector<std::string>> ServiceRank::Share(const std::string& mine, const std::string&) {
  const std::lock_guard running(running_);
  constexpr size_t kBlock = kShareBytes + sizeof(uint64_t);
  const auto ranks = static_cast<size_t>(num_ranks_);
  std::vector<char> own(kBlock), all(kBlock * ranks);
  const uint64_t size = std::min(mine.size(), kShareBytes);
  std::memcpy(own.data(), &size, sizeof(size));
  std::memcpy(own.data() + sizeof(size), mine.data(), size);
  const Status shared = RunNow({.kind = CollectiveKind::kAllGather,
                                .input = own.data(),
                                .output = all.data(),
                                .count = static_cast<int64_t>(kBlock),
                                .type = DataType::kUint8});
  if (!shared) return tl::unexpected(shared.error());
  std::vector<std::string> said;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const char* block = all.data() + rank * kBlock;
    uint64_t length = 0;
    std::memcpy(&length, block, sizeof(length));
    said.emplace_back(block + sizeof(length), std::min<size_t>(length, kShareBytes));
  }
  return said;
}

}  // namespace

Result<std::unique_ptr<Communicator::Rank>> JoinService(const std::string& socket,
                                                        const UniqueId& id, int32_t num_ranks,
                                                        int32_t rank,
                                                        const CommunicatorOptions& options) {
  Result<std::shared_ptr<ServiceClient>> client = ServiceClient::Get(socket);
  if (!client) return tl::unexpected(client.error());
  auto self = std::make_unique<ServiceRank>(std::move(*client), num_ranks, rank, options);
  if (const Status joined = self->Join(id); !joined) return tl::unexpected(joined.error());
  return self;
}

}  // namespace tutti
