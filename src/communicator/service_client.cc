#include "service_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace tutti {
namespace {

using ipc::Kind;

constexpr double kAnswer_s = 10;  // of a daemon that does nothing but answer
constexpr double kAllocation_s = 600;

tl::unexpected<Error> Gone() { return MakeError(ErrorCode::kPeerFailed, "the service has gone"); }

tl::unexpected<Error> NoDescriptors() {
  return MakeError(ErrorCode::kResourceExhausted,
                   "this process has no descriptors left for what the service sent");
}

std::mutex all_mutex;
// Memory that a program holds must not go with its last communicator, nor with a daemon that was replaced.
std::vector<std::shared_ptr<ServiceClient>> all_kept;

}  // namespace

std::string ServiceSocket(const std::string& wanted) {
  if (!wanted.empty()) return wanted == "none" ? "" : wanted;
  const char* socket = std::getenv("TUTTI_SERVICE");
  return socket != nullptr ? socket : "";
}

Result<UniqueId> MakeServiceId(const std::string& socket) {
  const auto client = ServiceClient::Get(socket);
  if (!client) return tl::unexpected(client.error());
  const Result<ipc::Packet> answer = (*client)->Ask({.kind = Kind::kMakeId}, Deadline(kAnswer_s));
  if (!answer) return tl::unexpected(answer.error());
  UniqueId id;
  if (answer->text.size() != id.bytes.size()) return Gone();
  std::memcpy(id.bytes.data(), answer->text.data(), id.bytes.size());
  return id;
}

Result<std::shared_ptr<ServiceClient>> ServiceClient::Get(const std::string& socket) {
  struct Known {
    std::weak_ptr<ServiceClient> client;
    pid_t process = 0;  // a child of it must not use it
  };
  static std::map<std::string, Known> all;
  const std::lock_guard lock(all_mutex);
  Known& known = all[socket];
  if (known.process == getpid())
    if (std::shared_ptr<ServiceClient> client = known.client.lock(); client && client->IsServed())
      return client;
  std::shared_ptr<ServiceClient> client(new ServiceClient);
  if (const Status opened = client->Open(socket); !opened) return tl::unexpected(opened.error());
  known = {client, getpid()};
  all_kept.push_back(client);
  return client;
}

bool ServiceClient::FreeOfAny(void* memory) {
  std::vector<std::shared_ptr<ServiceClient>> kept;
  {
    const std::lock_guard lock(all_mutex);
    kept = all_kept;
  }
  return std::any_of(kept.begin(), kept.end(),
                     [memory](const auto& client) { return client->Free(memory); });
}

Status ServiceClient::Open(const std::string& socket) {
  Result<ipc::Descriptor> made = ipc::Connect(socket, ipc::SocketKind::kPackets);
  if (!made) return tl::unexpected(made.error());
  socket_ = std::move(*made);
  const char* token = std::getenv("TUTTI_SERVICE_TOKEN");
  Result<ipc::Received> welcome =
      AskAll({.kind = Kind::kHello, .text = token != nullptr ? token : ""}, Deadline(kAnswer_s),
             nullptr, nullptr);
  if (!welcome) return tl::unexpected(welcome.error());
  if (welcome->lost_descriptors) return NoDescriptors();
  if (welcome->packet.kind != Kind::kWelcome || welcome->descriptors.size() != 3)
    return MakeError(ErrorCode::kPeerFailed,
                     fmt::format("{}: is no service of this version", socket));
  Result<ipc::Memory> commands =
      ipc::Memory::Map(welcome->descriptors[0].fd(), sizeof(ipc::CommandArea), true);
  if (!commands) return tl::unexpected(commands.error());
  Result<ipc::Memory> status =
      ipc::Memory::Map(welcome->descriptors[1].fd(), sizeof(ipc::StatusArea), false);
  if (!status) return tl::unexpected(status.error());
  command_memory_ = std::move(*commands);
  status_memory_ = std::move(*status);
  doorbell_ = std::move(welcome->descriptors[2]);
  return {};
}

void ServiceClient::ReadOne(std::unique_lock<std::mutex>& lock) {
  constexpr int kLookMs = 20;  // somebody may have aborted
  somebody_reads_ = true;
  lock.unlock();
  pollfd ready{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
  poll(&ready, 1, kLookMs);
  Result<std::optional<ipc::Received>> received = ipc::Receive(socket_.fd(), false, true);
  lock.lock();
  somebody_reads_ = false;
  if (!received)
    gone_ = true;
  else if (*received)
    answers_.emplace((*received)->packet.request, std::move(**received));
  answered_.notify_all();
}

Result<ipc::Received> ServiceClient::AskAll(ipc::Packet packet, const Deadline& deadline,
                                            const std::atomic<bool>* stop, uint64_t* asked) {
  std::unique_lock lock(mutex_);
  packet.request = ++requests_;
  if (asked != nullptr) *asked = packet.request;
  if (const Status sent = ipc::Send(socket_.fd(), packet); !sent) return Gone();
  while (true) {
    if (const auto found = answers_.find(packet.request); found != answers_.end()) {
      ipc::Received answer = std::move(found->second);
      answers_.erase(found);
      if (answer.packet.kind != Kind::kRefused) return answer;
      return MakeError(static_cast<ErrorCode>(answer.packet.words[0]), answer.packet.text);
    }
    if (gone_) return Gone();
    if (stop != nullptr && *stop) return MakeError(ErrorCode::kCancelled, "aborted");
    if (deadline.HasPassed())
      return MakeError(ErrorCode::kPeerFailed, "the service did not answer in time");
    if (somebody_reads_)
      answered_.wait_for(lock, std::chrono::milliseconds(20));
    else
      ReadOne(lock);
  }
}

Result<ipc::Packet> ServiceClient::Ask(ipc::Packet packet, const Deadline& deadline,
                                       const std::atomic<bool>* stop, uint64_t* asked) {
  Result<ipc::Received> answer = AskAll(std::move(packet), deadline, stop, asked);
  if (!answer) return tl::unexpected(answer.error());
  return std::move(answer->packet);
}

Status ServiceClient::Tell(ipc::Packet packet) {
  const std::lock_guard lock(mutex_);
  return ipc::Send(socket_.fd(), packet);
}

Result<void*> ServiceClient::Allocate(int64_t bytes) {
  Result<ipc::Received> answer =
      AskAll({.kind = Kind::kAllocate, .words = {static_cast<uint64_t>(bytes)}},
             Deadline(kAllocation_s), nullptr, nullptr);
  if (!answer) return tl::unexpected(answer.error());
  const auto buffer = static_cast<uint32_t>(answer->packet.words[0]);
  const auto mapped = static_cast<int64_t>(answer->packet.words[1]);
  if (answer->lost_descriptors) {
    GiveBack(buffer);
    return NoDescriptors();
  }
  if (answer->packet.kind != Kind::kAllocated || answer->descriptors.size() != 1) return Gone();
  Result<ipc::Memory> memory = ipc::Memory::Map(answer->descriptors[0].fd(), mapped, true);
  if (!memory) {
    GiveBack(buffer);
    return tl::unexpected(memory.error());
  }
  std::byte* data = memory->data();
  const std::lock_guard lock(memory_mutex_);
  owned_.emplace(data, Owned{buffer, mapped, std::move(*memory)});
  return data;
}

Result<void*> ServiceClient::AllocateOnDevice(int64_t bytes, int32_t number) {
  const Result<std::unique_ptr<ipc::Device>> device = ipc::OpenCudaDevice(number);
  if (!device) return tl::unexpected(device.error());
  const Result<ipc::Packet> answer = Ask(
      {.kind = Kind::kAllocate, .words = {static_cast<uint64_t>(bytes)}, .text = (*device)->uuid()},
      Deadline(kAllocation_s));
  if (!answer) return tl::unexpected(answer.error());
  const auto buffer = static_cast<uint32_t>(answer->words[0]);
  ipc::DeviceHandle handle{.kind = ipc::DeviceKind::kCuda,
                           .bytes = static_cast<int64_t>(answer->words[1])};
  if (answer->kind != Kind::kAllocated || answer->text.size() != handle.opaque.size())
    return Gone();
  std::memcpy(handle.opaque.data(), answer->text.data(), handle.opaque.size());
  Result<std::unique_ptr<ipc::DeviceMemory>> memory = (*device)->Open(handle);
  if (!memory) {
    GiveBack(buffer);
    return tl::unexpected(memory.error());
  }
  auto* data = reinterpret_cast<std::byte*>((*memory)->address());
  const std::lock_guard lock(memory_mutex_);
  owned_.emplace(data, Owned{buffer, handle.bytes, {}, std::move(*memory)});
  return data;
}

bool ServiceClient::Free(void* memory) {
  uint32_t buffer = ipc::kNoBuffer;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = owned_.find(static_cast<std::byte*>(memory));
    if (found == owned_.end()) return false;
    buffer = found->second.buffer;
    // A device's is closed here before who allocated it frees it.
    owned_.erase(found);
  }
  GiveBack(buffer);
  return true;
}

void ServiceClient::GiveBack(uint32_t buffer) {
  // A daemon that has gone has freed it.
  static_cast<void>(Ask({.kind = Kind::kFree, .words = {buffer}}, Deadline(kAnswer_s)));
}

std::optional<ServiceClient::Place> ServiceClient::Find(const void* memory, int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(memory_mutex_);
  auto found = owned_.upper_bound(begin);
  if (found == owned_.begin()) return std::nullopt;
  --found;
  const int64_t offset = begin - found->first;
  if (offset + bytes > found->second.bytes) return std::nullopt;
  return Place{found->second.buffer, static_cast<uint64_t>(offset),
               found->second.of_device != nullptr};
}

bool ServiceClient::Submit(std::span<const ipc::Slot> slots) {
  const std::lock_guard lock(submit_mutex_);
  ipc::CommandArea& area = commands();
  uint64_t tail = area.page.tail.load(std::memory_order_relaxed);
  for (const ipc::Slot& slot : slots) {
    while (tail - status().head.load() >= ipc::kSlots) {
      if (gone_) return false;
      std::this_thread::yield();
    }
    area.slots[tail % ipc::kSlots] = slot;
    area.page.tail.store(++tail);
    if (status().daemon_sleeps.load() == 0) continue;
    const uint64_t one = 1;
    // A doorbell that is full has been rung.
    [[maybe_unused]] const ssize_t rung = write(doorbell_.fd(), &one, sizeof(one));
  }
  return true;
}

void ServiceClient::WaitForLine(uint32_t index, uint64_t completed) {
  constexpr int64_t kLookNs = 20'000'000;
  std::atomic<uint32_t>& waits = commands().page.waits[index];
  const ipc::StatusLine& watched = line(index);
  waits.fetch_add(1);
  if (watched.completed.load() == completed && watched.state.load() == ipc::LineState::kActive)
    ipc::WaitWhile(&watched.completed, static_cast<uint32_t>(completed), kLookNs);
  waits.fetch_sub(1);
  IsServed();
}

bool ServiceClient::IsServed() {
  // A daemon that ended, or was killed, has closed its end.
  pollfd ready{.fd = socket_.fd(), .events = 0, .revents = 0};
  if (poll(&ready, 1, 0) > 0 && (ready.revents & (POLLHUP | POLLERR)) != 0) gone_ = true;
  return !gone_;
}

}  // namespace tutti
