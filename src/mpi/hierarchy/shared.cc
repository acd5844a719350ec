#include "hierarchy/shared.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "copy.h"
#include "message.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/base/index.h"

namespace tutti::mpi {

namespace {

constexpr int kWaves = 2;  // so that blocks of one are taken while the next is on its way

bool IsShared(int64_t bytes) { return 0 < bytes && bytes <= kLongestShared; }

template <class T>
T* Array(std::byte* at) {
  return reinterpret_cast<T*>(at);
}

class Shared {
 public:
  Shared(const BlockExchange& exchange, const SharedPlan& plan, int window, NodeMemory& memory,
         SharedScratch& scratch, Trace* trace)
      : exchange_(exchange),
        plan_(plan),
        layout_(plan.layout()),
        memory_(memory),
        scratch_(scratch),
        trace_(trace),
        watch_(trace),
        node_(plan.node()),
        half_(scratch.calls++ % 2 == 0 ? 0 : layout_.twice) {
    window = window <= 0 ? alltoallv::kDefaultBlockCount : window;
    // Two waves are in flight at once.
    waves_ = std::max(kWaves, (2 * plan.max_messages() + window - 1) / window);
  }

  int Run() {
    scratch_.receives.clear();
    scratch_.sends.clear();
    scratch_.large.clear();
    if (const int error = PostLarge()) return error;
    Publish();
    memory_.Barrier();
    watch_.Charge(&Trace::metadata_s);
    if (plan_.nodes() == 1) {
      TakeFromNode();
    } else if (const int error = ExchangeBetweenNodes()) {
      return error;
    }
    if (scratch_.large.empty()) return MPI_SUCCESS;
    const int error = WaitForAll(scratch_.large);
    watch_.Charge(&Trace::data_s);
    return error;
  }

 private:
  int PostLarge();
  void Publish();
  void PublishSizes(std::byte* window);
  void Gather();
  int ExchangeBetweenNodes();
  int PostWave(int wave);
  int PostSend(const SharedPlan::Message& message);
  int PostReceive(const SharedPlan::Message& message);
  void TakeFromNode();
  void TakeWave(int wave);

  // Part `half_` of what a rank of this node published.
  std::byte* Published(int member, int64_t part) const {
    return memory_.window(member) + half_ + part;
  }
  int64_t SendBytesTo(int position) const {
    return exchange_.send_bytes[Index(plan_.rank(position))];
  }
  // Copies the blocks for these positions to one place, neighbours in one copy; notes in `starts`,
  // if there is one, where each begins. Returns their bytes.
  int64_t CopyRun(std::byte* to, Range positions, uint32_t* starts) const;
  int64_t RunBytes(Range positions) const;
  // Where the program has the blocks for these positions in one piece; else null.
  const std::byte* InOnePiece(Range positions) const;

  void CountMessage() {
    if (trace_ != nullptr) ++trace_->messages;
  }
  void Hold(int64_t bytes) {
    held_bytes_ += bytes;
    if (trace_ != nullptr) trace_->NoteTemporary(held_bytes_);
  }

  const BlockExchange& exchange_;
  const SharedPlan& plan_;
  const SharedPlan::Layout& layout_;
  NodeMemory& memory_;
  SharedScratch& scratch_;
  Trace* const trace_;
  StopWatch watch_;
  const Range node_;
  const int64_t half_;
  int waves_ = 1;
  int64_t held_bytes_ = 0;
  int64_t arriving_ = 0;  // bytes of this rank's incoming messages so far
  int64_t packed_ = 0;    // of outgoing ones that were not in one piece
  size_t next_receive_ = 0, next_send_ = 0, next_taken_ = 0;  // in the lists of the plan
};

int64_t Shared::CopyRun(std::byte* to, Range positions, uint32_t* starts) const {
  const std::byte* from = nullptr;
  int64_t pending = 0;
  int64_t done = 0;
  for (int p = positions.begin; p < positions.end; ++p) {
    if (starts != nullptr) starts[p - positions.begin] = static_cast<uint32_t>(done + pending);
    const size_t rank = Index(plan_.rank(p));
    const int64_t bytes = exchange_.send_bytes[rank];
    if (!IsShared(bytes)) continue;
    const std::byte* const block = exchange_.send + exchange_.send_offset[rank];
    if (pending == 0 || block != from + pending) {
      CopyBytes(to + done, from, pending);
      done += pending;
      from = block;
      pending = 0;
    }
    pending += bytes;
  }
  CopyBytes(to + done, from, pending);
  return done + pending;
}

int64_t Shared::RunBytes(Range positions) const {
  int64_t bytes = 0;
  for (int p = positions.begin; p < positions.end; ++p) {
    if (IsShared(SendBytesTo(p))) bytes += SendBytesTo(p);
  }
  return bytes;
}

const std::byte* Shared::InOnePiece(Range positions) const {
  const std::byte* first = nullptr;
  int64_t bytes = 0;
  for (int p = positions.begin; p < positions.end; ++p) {
    const size_t rank = Index(plan_.rank(p));
    if (!IsShared(exchange_.send_bytes[rank])) continue;
    const std::byte* const block = exchange_.send + exchange_.send_offset[rank];
    if (first == nullptr) first = block;
    if (block != first + bytes) return nullptr;
    bytes += exchange_.send_bytes[rank];
  }
  return first;
}

int Shared::PostLarge() {
  const int size = plan_.size();
  for (int k = 1; k < size; ++k) {
    const int from = (exchange_.rank - k + size) % size;
    const int64_t bytes = exchange_.receive_bytes[Index(from)];
    if (bytes <= kLongestShared) continue;
    if (const int error =
            ReceiveBytes(exchange_.receive + exchange_.receive_offset[Index(from)], bytes, from,
                         Tag::kData, exchange_.communicator, &scratch_.large.emplace_back())) {
      return error;
    }
  }
  for (int k = 1; k < size; ++k) {
    const int to = (exchange_.rank + k) % size;
    const int64_t bytes = exchange_.send_bytes[Index(to)];
    if (bytes <= kLongestShared) continue;
    CountMessage();
    if (const int error =
            SendBytes(exchange_.send + exchange_.send_offset[Index(to)], bytes, to, Tag::kData,
                      exchange_.communicator, &scratch_.large.emplace_back())) {
      return error;
    }
  }
  return MPI_SUCCESS;
}

void Shared::Publish() {
  std::byte* const window = Published(plan_.self(), 0);
  Hold(CopyRun(window + layout_.slot, node_, Array<uint32_t>(window + layout_.starts)));
  CountTable(int64_t{4} * node_.size());
  if (plan_.nodes() > 1) PublishSizes(window);
  SettleCopies();
  watch_.Charge(&Trace::copy_s);
}

void Shared::PublishSizes(std::byte* window) {
  if (plan_.gathers()) {
    auto* const runs = Array<int64_t>(window + layout_.runs);
    for (int n = 0; n < plan_.nodes(); ++n) runs[n] = RunBytes(plan_.range(n));
    CountTable(int64_t{8} * plan_.nodes());
  }
  const auto put = [&](auto* sizes) {
    for (int p = 0; p < plan_.size(); ++p) {
      const int64_t bytes = exchange_.receive_bytes[Index(plan_.rank(p))];
      using Size = std::remove_reference_t<decltype(*sizes)>;
      sizes[p] = static_cast<Size>(IsShared(bytes) ? bytes : 0);
    }
  };
  int64_t largest = 0;
  for (const int64_t bytes : exchange_.receive_bytes) {
    if (bytes <= kLongestShared) largest = std::max(largest, bytes);
  }
  const int64_t width = largest < 256 ? 1 : 2;
  *Array<int64_t>(window + layout_.width) = width;
  if (width == 1) {
    put(Array<uint8_t>(window + layout_.sizes));
  } else {
    put(Array<uint16_t>(window + layout_.sizes));
  }
  CountTable(width * plan_.size());
}

// This rank's runs into the messages of its part.
void Shared::Gather() {
  const int position = node_.begin + plan_.self();
  for (const SharedPlan::Message& message : plan_.sent()) {
    if (!message.sources.contains(position) || plan_.IsOwn(message)) continue;
    int64_t before = 0;
    for (int p = message.sources.begin; p < position; ++p) {
      before += Array<int64_t>(Published(p - node_.begin, layout_.runs))[message.node];
    }
    CountTable(8 * int64_t{position - message.sources.begin});
    std::byte* const to =
        memory_.window(message.member) + layout_.outgoing + message.place * kLongestShared + before;
    Hold(CopyRun(to, plan_.range(message.node), nullptr));
  }
  SettleCopies();
}

int Shared::ExchangeBetweenNodes() {
  if (plan_.gathers()) {
    Gather();
    watch_.Charge(&Trace::copy_s);
    memory_.Barrier();
    watch_.Charge(&Trace::metadata_s);
  }
  if (const int error = PostWave(0)) return error;
  size_t received = 0, sent = 0;
  for (int wave = 0; wave < waves_; ++wave) {
    const size_t end_received = scratch_.receives.size(), end_sent = scratch_.sends.size();
    if (wave + 1 < waves_) {
      if (const int error = PostWave(wave + 1)) return error;
    }
    watch_.Charge(&Trace::inter_node_s);
    if (wave == 0) {
      TakeFromNode();
      watch_.Charge(&Trace::rearrange_s);
    }
    if (const int error =
            WaitForAll(std::span(scratch_.receives).subspan(received, end_received - received))) {
      return error;
    }
    received = end_received;
    memory_.Barrier();
    watch_.Charge(&Trace::inter_node_s);
    TakeWave(wave);
    watch_.Charge(&Trace::rearrange_s);
    if (const int error = WaitForAll(std::span(scratch_.sends).subspan(sent, end_sent - sent))) {
      return error;
    }
    sent = end_sent;
    watch_.Charge(&Trace::inter_node_s);
  }
  return MPI_SUCCESS;
}

int Shared::PostWave(int wave) {
  const std::vector<SharedPlan::Message>& sent = plan_.sent();
  for (; next_send_ < sent.size() && sent[next_send_].Wave(waves_) == wave; ++next_send_) {
    if (sent[next_send_].member != plan_.self()) continue;
    if (const int error = PostSend(sent[next_send_])) return error;
  }
  const std::vector<SharedPlan::Message>& received = plan_.received();
  for (; next_receive_ < received.size() && received[next_receive_].Wave(waves_) == wave;
       ++next_receive_) {
    if (received[next_receive_].member != plan_.self()) continue;
    if (const int error = PostReceive(received[next_receive_])) return error;
  }
  return MPI_SUCCESS;
}

int Shared::PostSend(const SharedPlan::Message& message) {
  const std::byte* from = nullptr;
  int64_t bytes = 0;
  if (plan_.IsOwn(message)) {
    const Range positions = plan_.range(message.node);
    bytes = RunBytes(positions);
    from = InOnePiece(positions);
    if (from == nullptr && bytes > 0) {
      std::byte* const to = memory_.window(plan_.self()) + layout_.outgoing + packed_;
      packed_ += bytes;
      Hold(CopyRun(to, positions, nullptr));
      from = to;
    }
  } else {
    from = memory_.window(plan_.self()) + layout_.outgoing + message.place * kLongestShared;
    for (int p = message.sources.begin; p < message.sources.end; ++p) {
      bytes += Array<int64_t>(Published(p - node_.begin, layout_.runs))[message.node];
    }
    CountTable(8 * int64_t{message.sources.size()});
  }
  if (bytes == 0) return MPI_SUCCESS;
  CountMessage();
  return SendBytes(from, bytes, message.peer, Tag::kNode, exchange_.communicator,
                   &scratch_.sends.emplace_back());
}

// How long it is and where its blocks begin, from what the ranks of this node published.
int Shared::PostReceive(const SharedPlan::Message& message) {
  const int members = node_.size();
  std::byte* const window = memory_.window(plan_.self());
  const int64_t begin = arriving_;
  auto* const table = Array<uint32_t>(window + layout_.table) + message.place;
  const int64_t rows = layout_.rows;
  int64_t read = 0;
  for (int p = message.sources.begin; p < message.sources.end; ++p) {
    for (int m = 0; m < members; ++m) {
      const std::byte* const published = Published(m, 0);
      table[m * rows + (p - message.sources.begin)] = static_cast<uint32_t>(arriving_);
      const bool narrow = *reinterpret_cast<const int64_t*>(published + layout_.width) == 1;
      const std::byte* const sizes = published + layout_.sizes;
      arriving_ += narrow ? reinterpret_cast<const uint8_t*>(sizes)[p]
                          : reinterpret_cast<const uint16_t*>(sizes)[p];
      read += narrow ? 1 : 2;
    }
  }
  CountTable(read + int64_t{4} * members * message.sources.size());
  const int64_t bytes = arriving_ - begin;
  arriving_ = (arriving_ + 63) / 64 * 64;
  if (bytes == 0) return MPI_SUCCESS;
  Hold(bytes);
  return ReceiveBytes(window + layout_.incoming + begin, bytes, message.peer, Tag::kNode,
                      exchange_.communicator, &scratch_.receives.emplace_back());
}

void Shared::TakeFromNode() {
  const size_t own = Index(exchange_.rank);
  CopyBytes(exchange_.receive + exchange_.receive_offset[own],
            exchange_.send + exchange_.send_offset[own], exchange_.send_bytes[own]);
  for (int k = 1; k < node_.size(); ++k) {
    const int member = (plan_.self() + k) % node_.size();
    const size_t rank = Index(plan_.rank(node_.begin + member));
    const int64_t bytes = exchange_.receive_bytes[rank];
    if (!IsShared(bytes)) continue;
    const std::byte* const window = Published(member, 0);
    const uint32_t start = reinterpret_cast<const uint32_t*>(window + layout_.starts)[plan_.self()];
    CopyBytes(exchange_.receive + exchange_.receive_offset[rank], window + layout_.slot + start,
              bytes);
  }
  CountTable(int64_t{4} * node_.size());
  SettleCopies();
}

void Shared::TakeWave(int wave) {
  const std::vector<SharedPlan::Message>& received = plan_.received();
  for (; next_taken_ < received.size() && received[next_taken_].Wave(waves_) == wave;
       ++next_taken_) {
    const SharedPlan::Message& message = received[next_taken_];
    const std::byte* const window = memory_.window(message.member);
    const auto* const table = reinterpret_cast<const uint32_t*>(window + layout_.table) +
                              plan_.self() * layout_.rows + message.place;
    for (int p = message.sources.begin; p < message.sources.end; ++p) {
      const size_t rank = Index(plan_.rank(p));
      const int64_t bytes = exchange_.receive_bytes[rank];
      if (!IsShared(bytes)) continue;
      CopyBytes(exchange_.receive + exchange_.receive_offset[rank],
                window + layout_.incoming + table[p - message.sources.begin], bytes);
    }
    CountTable(4 * int64_t{message.sources.size()});
  }
  SettleCopies();
}

}  // namespace

int SharedExchange(const BlockExchange& exchange, const SharedPlan& plan, int window,
                   NodeMemory& memory, SharedScratch& scratch, Trace* trace) {
  try {
    return Shared(exchange, plan, window, memory, scratch, trace).Run();
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  }
}

}  // namespace tutti::mpi
