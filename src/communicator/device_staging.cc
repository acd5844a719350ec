#include "device_staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "rank.h"

namespace tutti {
namespace {

bool Overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

Status Communicator::Rank::Run(const CollectiveCall& call) {
  if (std::optional<Status> done = staging_.Run(call)) return std::move(*done);
  return RunHere(call);
}

Status Communicator::Rank::Exchange(std::span<const Message> messages, const std::string& text) {
  if (std::optional<Status> done = staging_.Exchange(messages, text)) return std::move(*done);
  return ExchangeHere(messages, text);
}

Result<std::shared_ptr<std::byte>> Communicator::Rank::AllocateHost(int64_t bytes) {
  constexpr int64_t kPage = 4096;
  const int64_t whole = (bytes + kPage - 1) / kPage * kPage;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, static_cast<size_t>(whole)));
  if (memory == nullptr)
    return MakeError(ErrorCode::kResourceExhausted, fmt::format("no memory for {} bytes", bytes));
  return std::shared_ptr<std::byte>(memory, [](std::byte* at) { std::free(at); });
}

void DeviceStaging::Stage::Release() {
  if (pinned_by_ != nullptr) pinned_by_->Unpin(memory_.get());
  pinned_by_ = nullptr;
  memory_.reset();
  bytes_ = 0;
}

Result<std::byte*> DeviceStaging::Stage::OfSize(Communicator::Rank& rank, ipc::CudaPointers& cuda,
                                                int64_t bytes, const void* of_device) {
  if (bytes <= bytes_) return memory_.get();
  Release();
  Result<std::shared_ptr<std::byte>> made = rank.AllocateHost(bytes);
  if (!made) return tl::unexpected(made.error());
  memory_ = std::move(*made);
  bytes_ = bytes;
  if (cuda.Pin(memory_.get(), bytes_, of_device)) pinned_by_ = &cuda;
  return memory_.get();
}

bool DeviceStaging::IsStaged(ipc::CudaPointers& cuda, const void* data, int64_t bytes) const {
  return bytes > 0 && cuda.IsOfDevice(data) && !rank_.Understands(data, bytes);
}

std::optional<Status> DeviceStaging::Run(const CollectiveCall& call) {
  ipc::CudaPointers* cuda = ipc::CudaPointers::OfThisProcess();
  if (cuda == nullptr || (!cuda->IsOfDevice(call.input) && !cuda->IsOfDevice(call.output)))
    return std::nullopt;
  if (Status checked = CheckCall(call, rank_.rank(), rank_.num_ranks()); !checked) return checked;
  const int64_t reads = InputBytes(call, rank_.rank(), rank_.num_ranks());
  const int64_t writes = OutputBytes(call, rank_.rank(), rank_.num_ranks());
  if (!IsStaged(*cuda, call.input, reads) && !IsStaged(*cuda, call.output, writes))
    return std::nullopt;
  const std::lock_guard running(running_);
  return RunStaged(*cuda, call, reads, writes);
}

Status DeviceStaging::RunStaged(ipc::CudaPointers& cuda, const CollectiveCall& call, int64_t reads,
                                int64_t writes) {
  const auto* input = static_cast<const std::byte*>(call.input);
  auto* output = static_cast<std::byte*>(call.output);
  const bool stages_input = IsStaged(cuda, input, reads);
  const bool stages_output = IsStaged(cuda, output, writes);
  CollectiveCall staged = call;
  std::byte* of_input = nullptr;
  std::byte* of_output = nullptr;
  if (stages_input && stages_output && Overlap(input, reads, output, writes)) {
    const std::byte* begin = std::min<const std::byte*>(input, output);
    const std::byte* end = std::max<const std::byte*>(input + reads, output + writes);
    const Result<std::byte*> both = output_.OfSize(rank_, cuda, end - begin, output);
    if (!both) return tl::unexpected(both.error());
    of_input = *both + (input - begin);
    of_output = *both + (output - begin);
  } else {
    if (stages_input) {
      const Result<std::byte*> made = input_.OfSize(rank_, cuda, reads, input);
      if (!made) return tl::unexpected(made.error());
      of_input = *made;
    }
    if (stages_output) {
      const Result<std::byte*> made = output_.OfSize(rank_, cuda, writes, output);
      if (!made) return tl::unexpected(made.error());
      of_output = *made;
    }
  }
  if (stages_input) {
    if (Status copied = cuda.CopyToHost(of_input, input, reads); !copied) return copied;
    staged.input = of_input;
  }
  if (stages_output) staged.output = of_output;
  // A rank that does not read, or does not write, may have given its one buffer for both.
  if (reads == 0) staged.input = staged.output;
  if (writes == 0) staged.output = const_cast<void*>(staged.input);
  if (Status done = rank_.RunHere(staged); !done) return done;
  if (stages_output) return cuda.CopyToDevice(output, of_output, writes);
  return {};
}

std::optional<Status> DeviceStaging::Exchange(std::span<const Message> messages,
                                              const std::string& text) {
  ipc::CudaPointers* cuda = ipc::CudaPointers::OfThisProcess();
  if (cuda == nullptr) return std::nullopt;
  constexpr int64_t kLine = 64;
  const auto padded = [](int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  std::vector<size_t> staged;
  std::array<int64_t, 2> stage_bytes{};
  std::array<const void*, 2> of_device{};
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (!IsStaged(*cuda, message.data, message.bytes)) continue;
    const size_t side = message.is_send ? 0 : 1;
    staged.push_back(i);
    stage_bytes[side] += padded(message.bytes);
    of_device[side] = message.data;
  }
  if (staged.empty()) return std::nullopt;
  const std::lock_guard running(running_);
  std::array<std::byte*, 2> next{};
  for (size_t side = 0; side < 2; ++side) {
    if (stage_bytes[side] == 0) continue;
    const Result<std::byte*> made =
        (side == 0 ? input_ : output_).OfSize(rank_, *cuda, stage_bytes[side], of_device[side]);
    if (!made) return tl::unexpected(made.error());
    next[side] = *made;
  }
  std::vector<Message> on_host(messages.begin(), messages.end());
  for (const size_t i : staged) {
    Message& message = on_host[i];
    std::byte*& at = next[message.is_send ? 0 : 1];
    message.data = at;
    at += padded(message.bytes);
    if (!message.is_send) continue;
    if (Status copied = cuda->CopyToHost(message.data, messages[i].data, message.bytes); !copied)
      return copied;
  }
  if (Status done = rank_.ExchangeHere(on_host, text); !done) return done;
  for (const size_t i : staged) {
    if (messages[i].is_send) continue;
    if (Status copied = cuda->CopyToDevice(messages[i].data, on_host[i].data, messages[i].bytes);
        !copied)
      return copied;
  }
  return Status{};
}

}  // namespace tutti
