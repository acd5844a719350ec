#include "session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "tutti/base/clock.h"
#include "tutti/coll/collective.h"

namespace tutti::service {
namespace {

using ipc::Kind;

constexpr int64_t kPage = 4096;
constexpr size_t kMaxMessages = 1 << 16;

ipc::StatusLine& LineOf(ipc::StatusArea& area, uint32_t line) { return area.lines[line]; }

}  // namespace

// --- The socket ----------------------------------------------------------------------------------

void Session::Answer(const ipc::Packet& packet, const std::vector<int>& descriptors) {
  if (!ipc::Send(socket_.fd(), packet, descriptors)) Close("it does not read its socket");
}

void Session::Refuse(uint64_t request, const Error& why) {
  if (tenant_ != nullptr) tenant_->CountRefusal(why.code);
  Answer({.kind = Kind::kRefused,
          .request = request,
          .words = {static_cast<uint64_t>(why.code)},
          .text = why.message});
}

void Session::Hear() {
  while (!closed_) {
    Result<std::optional<ipc::Received>> received = ipc::Receive(socket_.fd(), false, false);
    if (!received)
      return Close(received.error().code == ErrorCode::kPeerFailed ? "its process has ended"
                                                                   : received.error().message);
    if (!*received) return;
    Handle((*received)->packet);
  }
}

void Session::Handle(const ipc::Packet& packet) {
  if ((tenant_ == nullptr) != (packet.kind == Kind::kHello))
    return Close("its first packet, and no other, has to be a hello");
  Status done;
  switch (packet.kind) {
    case Kind::kHello:
      done = Welcome(packet);
      break;
    case Kind::kAllocate:
      done = Allocate(packet);
      break;
    case Kind::kFree:
      if (buffers_.erase(static_cast<uint32_t>(packet.words[0])) == 0)
        done = InvalidArgument(fmt::format("there is no buffer {}", packet.words[0]));
      else
        Answer({.kind = Kind::kFreed, .request = packet.request});
      break;
    case Kind::kMakeId: {
      const Result<UniqueId> id = host_.MakeId(*tenant_);
      if (!id) {
        done = tl::unexpected(id.error());
        break;
      }
      Answer(
          {.kind = Kind::kIdMade,
           .request = packet.request,
           .text = std::string(reinterpret_cast<const char*>(id->bytes.data()), id->bytes.size())});
      break;
    }
    case Kind::kJoin:
      done = Join(packet);
      break;
    case Kind::kLeave:
      if (FindLine(packet.words[0]) == nullptr) {
        done = InvalidArgument(fmt::format("there is no line {}", packet.words[0]));
        break;
      }
      // Commands that it issued before come first: its line may be another rank's next.
      TakeCommands(ipc::kSlots);
      if (closed_) return;
      Leave(static_cast<uint32_t>(packet.words[0]), "it left with operations unfinished");
      Answer({.kind = Kind::kLeft, .request = packet.request});
      break;
    case Kind::kAbort:
      Abort(packet);
      break;
    case Kind::kWhy: {
      const Line* line = FindLine(packet.words[0]);
      const Error why = line != nullptr && line->failure
                            ? *line->failure
                            : Error{ErrorCode::kInvalidArgument, "it has not failed"};
      Answer({.kind = Kind::kBecause,
              .request = packet.request,
              .words = {static_cast<uint64_t>(why.code)},
              .text = why.message});
      break;
    }
    case Kind::kRegroup:
      done = Regroup(packet);
      break;
    default:
      return Close(fmt::format("it sent a packet of kind {}", static_cast<uint32_t>(packet.kind)));
  }
  if (!done) Refuse(packet.request, done.error());
}

Status Session::Welcome(const ipc::Packet& hello) {
  Tenant* tenant = host_.FindTenant(caller_.user, hello.text);
  if (tenant == nullptr)
    return InvalidArgument(fmt::format(
        "user {} {} is no tenant of this service", caller_.user,
        hello.text.empty() ? "without a token (TUTTI_SERVICE_TOKEN)" : "with this token"));
  if (tenant->processes >= tenant->options.processes)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("tenant {} has {} processes here, its quota", tenant->options.name,
                                 tenant->processes));
  ipc::Descriptor commands_file, status_file;
  Result<ipc::Memory> command_memory =
      ipc::Memory::Make("tutti-commands", sizeof(ipc::CommandArea), false, commands_file);
  if (!command_memory) return tl::unexpected(command_memory.error());
  Result<ipc::Memory> status_memory =
      ipc::Memory::Make("tutti-status", sizeof(ipc::StatusArea), true, status_file);
  if (!status_memory) return tl::unexpected(status_memory.error());
  ipc::Descriptor doorbell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!doorbell.is_open())
    return MakeError(ErrorCode::kResourceExhausted, "the daemon has no descriptor left");
  command_memory_ = std::move(*command_memory);
  status_memory_ = std::move(*status_memory);
  doorbell_ = std::move(doorbell);
  new (command_memory_.data()) ipc::CommandArea;
  new (status_memory_.data()) ipc::StatusArea;
  tenant_ = tenant;
  ++tenant_->processes;
  Answer({.kind = Kind::kWelcome, .request = hello.request, .text = tenant->options.name},
         {commands_file.fd(), status_file.fd(), doorbell_.fd()});
  return {};
}

Status Session::Allocate(const ipc::Packet& packet) {
  const uint64_t asked = packet.words[0];
  const int64_t left = tenant_->options.memory_bytes - tenant_->memory_bytes;
  if (asked > static_cast<uint64_t>(std::max<int64_t>(left, 0)))
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} bytes: tenant {} has {} of its quota of {} bytes left", asked,
                                 tenant_->options.name, left, tenant_->options.memory_bytes));
  const int64_t unit = packet.text.empty() ? kPage : ipc::kCudaBlockBytes;
  const int64_t bytes =
      std::max<int64_t>(1, (static_cast<int64_t>(asked) + unit - 1) / unit) * unit;
  // To fill it with zeros takes a second a few GiB, which no other tenant shall wait for.
  auto buffer = std::make_shared<TenantBuffer>(*tenant_, bytes, host_.returns());
  if (packet.text.empty())
    AllocateOnHost(packet.request, buffer);
  else
    AllocateOnDevice(packet.request, buffer, packet.text);
  return {};
}

// In the planner's thread nothing of the session is touched: it may have ended.
void Session::AllocateOnHost(uint64_t request, const std::shared_ptr<TenantBuffer>& buffer) {
  host_.planner().Add([this, alive = alive_, request, buffer]() -> Worker::Finish {
    auto file = std::make_shared<ipc::Descriptor>();
    auto memory = std::make_shared<Result<ipc::Memory>>(
        ipc::Memory::Make("tutti-buffer", buffer->bytes(), false, *file));
    return [this, alive, request, buffer, file, memory] {
      if (!*alive || closed_) return;
      if (!*memory) return Refuse(request, memory->error());
      buffer->Fill(std::move(**memory));
      Answer({.kind = Kind::kAllocated,
              .request = request,
              .words = {Keep(buffer), static_cast<uint64_t>(buffer->bytes())}},
             {file->fd()});
    };
  });
}

void Session::AllocateOnDevice(uint64_t request, const std::shared_ptr<TenantBuffer>& buffer,
                               const std::string& uuid) {
  host_.planner().Add([this, alive = alive_, request, buffer, uuid]() -> Worker::Finish {
    auto made =
        std::make_shared<Result<ServedDevices::Made>>(ServedDevices::Make(uuid, buffer->bytes()));
    return [this, alive, request, buffer, made] {
      if (!*alive || closed_) return;
      if (!*made) return Refuse(request, made->error());
      const auto& handle = (*made)->handle.opaque;
      buffer->Fill(std::move((*made)->memory));
      Answer({.kind = Kind::kAllocated,
              .request = request,
              .words = {Keep(buffer), static_cast<uint64_t>(buffer->bytes())},
              .text = std::string(reinterpret_cast<const char*>(handle.data()), handle.size())});
    };
  });
}

uint32_t Session::Keep(std::shared_ptr<TenantBuffer> buffer) {
  do ++last_buffer_;
  while (last_buffer_ == ipc::kNoBuffer || buffers_.count(last_buffer_) > 0);
  buffers_[last_buffer_] = std::move(buffer);
  return last_buffer_;
}

Session::Line* Session::FindLine(uint64_t line) {
  return line < ipc::kLines && lines_[line].used ? &lines_[line] : nullptr;
}

Status Session::Join(const ipc::Packet& packet) {
  UniqueId id;
  constexpr uint64_t kMostRanks = 65536;
  if (packet.text.size() != id.bytes.size()) return InvalidArgument("the unique id is none");
  if (packet.words[0] < 1 || packet.words[0] > kMostRanks || packet.words[1] >= packet.words[0])
    return InvalidArgument(
        fmt::format("rank {} of {} cannot be", packet.words[1], packet.words[0]));
  if (tenant_->ranks >= tenant_->options.ranks)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("tenant {} has {} ranks here, its quota", tenant_->options.name,
                                 tenant_->ranks));
  uint32_t index = 0;
  while (index < ipc::kLines && lines_[index].used) ++index;
  if (index == ipc::kLines)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("a process has at most {} ranks", ipc::kLines));
  std::memcpy(id.bytes.data(), packet.text.data(), id.bytes.size());
  Line& line = lines_[index] = Line{};
  line.used = true;
  line.request = packet.request;
  line.rank = static_cast<int32_t>(packet.words[1]);
  ipc::StatusLine& shown = LineOf(status(), index);
  shown.completed = 0;
  shown.state = ipc::LineState::kActive;
  Result<ServiceCommunicator*> joined = host_.JoinCommunicator(
      *tenant_, id, static_cast<int32_t>(packet.words[0]), line.rank, *this, index);
  if (!joined) {
    line = Line{};
    return tl::unexpected(joined.error());
  }
  line.communicator = *joined;
  return {};
}

void Session::Joined(uint32_t line) {
  lines_[line].joined = true;
  Answer({.kind = Kind::kJoined, .request = lines_[line].request, .words = {line}});
}

void Session::JoinRefused(uint32_t line, const Error& why) {
  const uint64_t request = lines_[line].request;
  if (lines_[line].communicator != nullptr)
    lines_[line].communicator->Leave({&line, 1}, *this, why.message);
  lines_[line] = Line{};
  Refuse(request, why);
}

Status Session::Regroup(const ipc::Packet& packet) {
  const Line* line = FindLine(packet.words[0]);
  const std::optional<RegroupAsk> ask = DecodeAsk(packet.text);
  if (line == nullptr || line->communicator == nullptr || !ask)
    return InvalidArgument(fmt::format("line {} cannot ask that", packet.words[0]));
  constexpr uint64_t kMostMs = uint64_t{1} << 40;
  constexpr int64_t kNsAMs = 1'000'000;
  const int64_t wait_ns = static_cast<int64_t>(std::min(packet.words[1], kMostMs)) * kNsAMs;
  return line->communicator->Regroup(
      static_cast<uint32_t>(packet.words[0]), *this, *ask, NowNs() + wait_ns,
      [this, alive = alive_, request = packet.request](const Result<Regrouped>& become) {
        if (!*alive || closed_) return;
        if (!become) return Refuse(request, become.error());
        Answer({.kind = Kind::kRegrouped, .request = request, .text = Encode(*become)});
      });
}

void Session::Abort(const ipc::Packet& packet) {
  Line* line = FindLine(packet.words[0]);
  if (packet.words[0] == ipc::kLines)  // a join under way
    for (Line& joining : lines_)
      if (joining.used && !joining.joined && joining.request == packet.words[1]) line = &joining;
  if (line == nullptr || line->communicator == nullptr) return;
  line->communicator->Abort(
      {ErrorCode::kCancelled, fmt::format("rank {}: {}", line->rank, packet.text)});
}

void Session::Leave(uint32_t index, const std::string& why) {
  Line& line = lines_[index];
  if (line.communicator != nullptr) line.communicator->Leave({&index, 1}, *this, why);
  line = Line{};
  LineOf(status(), index).state = ipc::LineState::kFree;
}

// All ranks that a communicator has here at once, so that all are named.
void Session::LeaveAll(const std::string& why) {
  std::map<ServiceCommunicator*, std::vector<uint32_t>> by_communicator;
  for (uint32_t line = 0; line < ipc::kLines; ++line)
    if (lines_[line].used && lines_[line].communicator != nullptr)
      by_communicator[lines_[line].communicator].push_back(line);
  for (const auto& [communicator, lines] : by_communicator) communicator->Leave(lines, *this, why);
  for (uint32_t line = 0; line < ipc::kLines; ++line)
    if (lines_[line].used) Leave(line, why);
}

void Session::Close(const std::string& why) {
  if (closed_) return;
  closed_ = true;
  why_closed_ = why;
  LeaveAll(why);
  if (tenant_ != nullptr) --tenant_->processes;
}

// --- Commands ------------------------------------------------------------------------------------

bool Session::has_commands() const {
  return !closed_ && tenant_ != nullptr && commands().page.tail.load() != head_;
}

void Session::SayWhetherSleeping(bool sleeps) {
  if (tenant_ != nullptr) status().daemon_sleeps.store(sleeps ? 1 : 0);
}

bool Session::TakeCommands(uint64_t most) {
  if (closed_ || tenant_ == nullptr) return false;
  const uint64_t tail = commands().page.tail.load();
  if (tail == head_) return false;
  if (tail - head_ > ipc::kSlots) {
    Close(fmt::format("its queue of {} slots claims {} commands", ipc::kSlots, tail - head_));
    return false;
  }
  taken_ns_ = NowNs();
  for (uint64_t taken = 0; head_ != tail && taken < most && !closed_; ++taken) {
    ipc::Slot slot;  // what is checked is what is used
    std::memcpy(&slot, &commands().slots[head_++ % ipc::kSlots], sizeof(slot));
    Take(slot);
  }
  if (!closed_) status().head.store(head_);
  return true;
}

void Session::Take(const ipc::Slot& slot) {
  Line* line = FindLine(slot.line);
  if (line == nullptr || !line->joined || slot.reserved != 0 || slot.zero != decltype(slot.zero){})
    return Close(fmt::format("a command for line {} is malformed", slot.line));
  // What was queued behind the command that failed.
  if (line->failure) return;
  if (slot.sequence != line->sequence + 1)
    return Close(fmt::format("command {} of line {}: wanted {}", slot.sequence, slot.line,
                             line->sequence + 1));
  Status taken;
  switch (slot.opcode) {
    case ipc::Opcode::kCollective:
      taken = TakeCollective(slot, *line);
      break;
    case ipc::Opcode::kMessage:
      taken = TakeMessage(slot, *line);
      break;
    case ipc::Opcode::kExchange: {
      CommandOnDevices command = line->exchange ? std::move(*line->exchange) : CommandOnDevices{};
      line->exchange.reset();
      command.command.is_exchange = true;
      command.command.is_of_all = slot.kind == static_cast<uint8_t>(CollectiveKind::kAllToAllV);
      command.command.what = slot.what;
      taken = CheckMessages(command.command.messages, line->rank, line->communicator->num_ranks());
      if (taken) Issue(slot.line, *line, std::move(command));
      break;
    }
    default:
      return Close(fmt::format("a command of kind {}", static_cast<uint16_t>(slot.opcode)));
  }
  if (!taken) FailLine(*line, taken.error());
}

void Session::FailLine(Line& line, const Error& why) {
  tenant_->CountRefusal(why.code);
  line.communicator->Abort({why.code, fmt::format("rank {}: command {}: {}", line.rank,
                                                  line.sequence + 1, why.message)});
}

void Session::Issue(uint32_t index, Line& line, CommandOnDevices&& command) {
  ++line.sequence;
  if (!command.has_copies() && (line.copied == nullptr || line.copied->is_idle())) {
    command.command.posted_ns = taken_ns_;
    return IssueNow(index, line, std::move(command.command));
  }
  CopiedCommands& copied = CopiedOf(index, line);
  if (copied.size() >= ServiceCommunicator::kMaxQueued) return FailForQueue(line);
  copied.Add(line.sequence, std::move(command));
}

void Session::IssueNow(uint32_t index, Line& line, Command&& command) {
  if (!line.communicator->Issue(index, *this, std::move(command))) FailForQueue(line);
}

void Session::FailForQueue(Line& line) {
  FailLine(line, {ErrorCode::kResourceExhausted,
                  fmt::format("more than {} commands wait", ServiceCommunicator::kMaxQueued)});
}

CopiedCommands& Session::CopiedOf(uint32_t index, Line& line) {
  if (line.copied == nullptr)
    line.copied = std::make_shared<CopiedCommands>(
        host_.devices(), LineOf(status(), index).completed.load(),
        CopiedCommands::Owner{
            .issue = [this, index](
                         Command command) { IssueNow(index, lines_[index], std::move(command)); },
            .show = [this, index](uint64_t completed,
                                  uint32_t epoch) { Show(index, completed, epoch); },
            .fail = [this, index](const Error& why) { FailLine(lines_[index], why); }});
  return *line.copied;
}

Result<std::byte*> Session::Locate(uint32_t buffer, uint64_t offset, int64_t bytes,
                                   int64_t alignment, Access access, CommandOnDevices& command) {
  if (bytes == 0) return nullptr;
  const auto found = buffers_.find(buffer);
  if (found == buffers_.end()) return InvalidArgument(fmt::format("there is no buffer {}", buffer));
  const auto size = static_cast<uint64_t>(found->second->bytes());
  if (offset > size || static_cast<uint64_t>(bytes) > size - offset)
    return InvalidArgument(fmt::format("{} bytes from byte {} of buffer {}, which has {}", bytes,
                                       offset, buffer, size));
  if (offset % static_cast<uint64_t>(alignment) != 0)
    return InvalidArgument(
        fmt::format("byte {} of buffer {} is no multiple of {}", offset, buffer, alignment));
  command.command.memory.Add(found->second);
  if (found->second->on_device() != nullptr)
    (access == Access::kRead ? command.reads : command.writes)
        .push_back({found->second, static_cast<int64_t>(offset), bytes});
  return found->second->data() + offset;
}

Status Session::TakeCollective(const ipc::Slot& slot, Line& line) {
  const ServiceCommunicator& communicator = *line.communicator;
  if (slot.kind > static_cast<uint8_t>(CollectiveKind::kAllToAll) ||
      slot.type > static_cast<uint8_t>(kLastDataType) ||
      slot.op > static_cast<uint8_t>(ReduceOp::kAvg) || line.exchange != nullptr)
    return InvalidArgument(
        fmt::format("collective {}, type {}, operation {}", slot.kind, slot.type, slot.op));
  CommandOnDevices command;
  CollectiveCall& call = command.command.call;
  call.kind = static_cast<CollectiveKind>(slot.kind);
  call.type = static_cast<DataType>(slot.type);
  call.op = static_cast<ReduceOp>(slot.op);
  if (slot.count > static_cast<uint64_t>(INT64_MAX) || slot.root > INT32_MAX)
    return InvalidArgument(fmt::format("count {}, root {}", slot.count, slot.root));
  call.count = static_cast<int64_t>(slot.count);
  call.root = static_cast<int32_t>(slot.root);
  // Pointers follow; first count and root, from which their sizes come.
  std::byte nowhere{};
  call.input = call.output = &nowhere;
  const int32_t ranks = communicator.num_ranks();
  if (Status checked = CheckCall(call, line.rank, ranks); !checked) return checked;
  const int64_t size = SizeOf(call.type);
  const int64_t reads = InputBytes(call, line.rank, ranks);
  const int64_t writes = OutputBytes(call, line.rank, ranks);
  const Result<std::byte*> input =
      Locate(slot.input, slot.input_offset, reads, size, Access::kRead, command);
  if (!input) return tl::unexpected(input.error());
  const Result<std::byte*> output =
      Locate(slot.output, slot.output_offset, writes, size, Access::kWrite, command);
  if (!output) return tl::unexpected(output.error());
  call.input = *input;
  call.output = *output;
  command.command.bytes = std::max(reads, writes);
  Issue(slot.line, line, std::move(command));
  return {};
}

Status Session::TakeMessage(const ipc::Slot& slot, Line& line) {
  if (line.exchange == nullptr) line.exchange = std::make_unique<CommandOnDevices>();
  Command& command = line.exchange->command;
  if (command.messages.size() >= kMaxMessages)
    return InvalidArgument(fmt::format("more than {} messages at once", kMaxMessages));
  if (slot.count > static_cast<uint64_t>(INT64_MAX) || slot.root > INT32_MAX || slot.sends > 1)
    return InvalidArgument(fmt::format("a message of {} bytes, peer {}", slot.count, slot.root));
  const auto bytes = static_cast<int64_t>(slot.count);
  const Result<std::byte*> data =
      Locate(slot.input, slot.input_offset, bytes, 1,
             slot.sends == 1 ? Access::kRead : Access::kWrite, *line.exchange);
  if (!data) return tl::unexpected(data.error());
  command.messages.push_back({.peer = static_cast<int32_t>(slot.root),
                              .data = *data,
                              .bytes = bytes,
                              .is_send = slot.sends == 1});
  command.bytes += bytes;
  return {};
}

void Session::Completed(uint32_t line, uint64_t completed, uint32_t epoch) {
  if (lines_[line].copied == nullptr) return Show(line, completed, epoch);
  lines_[line].copied->Completed(completed, epoch);
}

void Session::Show(uint32_t line, uint64_t completed, uint32_t epoch) {
  ipc::StatusLine& shown = LineOf(status(), line);
  shown.epoch.store(epoch, std::memory_order_relaxed);
  shown.completed.store(completed);
  if (commands().page.waits[line].load() != 0) ipc::WakeAll(&shown.completed);
}

void Session::Failed(uint32_t line, const Error& why) {
  lines_[line].failure = why;
  ipc::StatusLine& shown = LineOf(status(), line);
  shown.state.store(ipc::LineState::kFailed);
  ipc::WakeAll(&shown.completed);
}

}  // namespace tutti::service
