#include "exchange/tuna.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "copy.h"
#include "exchange/direct.h"
#include "message.h"
#include "tutti/base/check.h"
#include "with_width.h"

namespace tutti::mpi {
namespace {

// A message of sizes and blocks has at most so many bytes: what MPI libraries send eagerly. The
// receives of one digit, posted at once, share kInboxBytes.
constexpr int64_t kMaxShort = 16384;
constexpr int64_t kMinShort = 1024;
constexpr int64_t kInboxBytes = int64_t{1} << 20;
// A batch ends where its messages have more bytes than this: they keep the network busy.
constexpr int64_t kOutgoingBytes = int64_t{4} << 20;
constexpr int64_t kMinArena = 65536;

// In the first byte of a message of sizes; below: log2 of the width.
constexpr unsigned kSeparate = 4;

int WidthOf(int64_t size) {
  if (size <= std::numeric_limits<uint8_t>::max()) return 1;
  if (size <= std::numeric_limits<uint16_t>::max()) return 2;
  return size <= std::numeric_limits<uint32_t>::max() ? 4 : 8;
}

unsigned LogOfWidth(int width) {
  unsigned log = 0;
  while ((1 << log) < width) ++log;
  return log;
}

// Copies pieces to consecutive places, those that lie behind each other at once.
class PackingCopy {
 public:
  explicit PackingCopy(std::byte* to) : to_(to) {}
  ~PackingCopy() { Flush(); }
  PackingCopy(const PackingCopy&) = delete;
  PackingCopy& operator=(const PackingCopy&) = delete;

  void Add(const std::byte* from, int64_t bytes) {
    if (bytes == 0) return;
    if (from != from_ + bytes_) {
      Flush();
      from_ = from;
    }
    bytes_ += bytes;
  }

 private:
  void Flush() {
    CopyBytes(to_, from_, bytes_);
    to_ += bytes_;
    bytes_ = 0;
  }

  std::byte* to_;
  const std::byte* from_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace

int Tuna::Requests::Wait() {
  const int error = WaitForAll({first, static_cast<size_t>(count)});
  count = 0;
  return error;
}

Tuna::Tuna(const BlockExchange& exchange, const TunaOptions& options, Trace* trace)
    : exchange_(exchange),
      options_(options),
      trace_(trace),
      radix_rounds_(exchange.size, options.radix),
      num_rounds_(radix_rounds_.num_rounds()),
      in_flight_(std::min<int64_t>(
          num_rounds_, options.as_published
                           ? 1
                           : (options.in_flight > 0 ? options.in_flight : kRoundsInFlight))),
      rounds_(num_rounds_),
      slot_at_(radix_rounds_.num_slots()),
      slot_bytes_(radix_rounds_.num_slots()),
      // First messages, blocks and sends (two a round) of two batches.
      request_memory_(in_flight_ * 7) {}

// Lays out rounds, inboxes and requests; what does not change from one exchange to the next.
int Tuna::Prepare() {
  if (!rounds_.ok() || !slot_at_.ok() || !slot_bytes_.ok() || !request_memory_.ok()) {
    return MPI_ERR_NO_MEM;
  }
  const int64_t shortest =
      std::clamp(kInboxBytes / (radix_rounds_.radix() - 1), kMinShort, kMaxShort);
  int64_t inbox_bytes = 0;
  RadixRound index;
  for (int64_t k = 0; k < num_rounds_; ++k, index = radix_rounds_.After(index)) {
    Round& round = rounds_[k] = Round{};
    round.index = index;
    round.blocks = radix_rounds_.NumBlocks(index);
    round.arriving = radix_rounds_.NumArrived(index);
    round.send_to = static_cast<int>(Destination(index.first));
    round.receive_from = static_cast<int>(Source(index.first));
    round.sizes_known =
        !options_.as_published && (ForwardsKnown() || round.blocks == round.arriving);
    if (round.sizes_known) continue;
    round.inbox_capacity = std::max(HeaderBytes(round, 8), shortest);
    inbox_bytes += round.inbox_capacity;
  }
  inboxes_ = Lease(inbox_bytes);
  arena_ = Lease(kMinArena);
  if (inboxes_.data() == nullptr || arena_.data() == nullptr) return MPI_ERR_NO_MEM;
  std::byte* inbox = inboxes_.data();
  for (Round& round : rounds_.span()) {
    if (round.sizes_known) continue;
    round.inbox = inbox;
    inbox += round.inbox_capacity;
  }
  std::fill(slot_at_.span().begin(), slot_at_.span().end(), nullptr);
  inbox_requests_.first = request_memory_.data();
  for (int parity = 0; parity < 2; ++parity) {
    block_requests_[parity].first = request_memory_.data() + in_flight_ * (1 + parity);
    send_requests_[parity].first = request_memory_.data() + in_flight_ * (3 + 2 * parity);
  }
  prepared_ = true;
  return MPI_SUCCESS;
}

// Calls visit(bytes, where) for the blocks that the round sends, in ascending order; with
// `sizes_only` for those whose sizes go with them.
template <class Visit>
void Tuna::VisitSent(const Round& round, bool sizes_only, const Visit& visit) const {
  const int64_t least =
      sizes_only && !options_.as_published ? round.index.step * radix_rounds_.radix() : 0;
  radix_rounds_.ForEachRow(round.index, [&](int64_t start, int64_t end, int64_t first_slot) {
    if (start < least) return;
    const size_t to = Destination(start);
    visit(exchange_.send_bytes[to], exchange_.send + exchange_.send_offset[to]);
    for (int64_t slot = first_slot + 1; slot < first_slot + end - start; ++slot) {
      visit(slot_bytes_[slot], slot_at_[slot]);
    }
  });
}

void Tuna::MeasureSend(Round& round) const {
  int64_t total = 0;
  VisitSent(round, false, [&](int64_t bytes, const std::byte*) { total += bytes; });
  round.send_bytes = total;
  if (round.sizes_known) return;
  int64_t largest = 0;
  VisitSent(round, true,
            [&](int64_t bytes, const std::byte*) { largest = std::max(largest, bytes); });
  round.size_width = std::max(WidthOf(largest), options_.as_published ? 4 : 1);
  round.separate =
      options_.as_published || HeaderBytes(round, round.size_width) + total > round.inbox_capacity;
}

// The rounds from `begin` that go next, and memory for what they send.
int Tuna::NextBatch(int64_t begin, int parity, Batch* batch) {
  batch->begin = begin;
  batch->parity = parity;
  int64_t outgoing = 0;
  int64_t end = begin;
  while (end < num_rounds_ && end - begin < in_flight_ && outgoing <= kOutgoingBytes &&
         rounds_[end].index.step == rounds_[begin].index.step) {
    Round& round = rounds_[end++];
    MeasureSend(round);
    if (!round.sizes_known) outgoing += HeaderBytes(round, round.size_width);
    if (!IsDirect(round)) outgoing += round.send_bytes;
  }
  batch->end = end;
  // The messages of the batch before the last.
  if (const int error = send_requests_[parity].Wait()) return error;
  outgoing_top_[parity] = 0;
  if (outgoing_[parity].capacity() < outgoing) {
    outgoing_[parity] = Lease();
    outgoing_[parity] = Lease(outgoing);
    if (outgoing_[parity].data() == nullptr) return MPI_ERR_NO_MEM;
  }
  return MPI_SUCCESS;
}

int64_t Tuna::BytesArriving(const Round& round) const {
  int64_t bytes = 0;
  for (int64_t block = round.index.first; block < round.index.first + round.arriving; ++block) {
    bytes += exchange_.receive_bytes[Source(block)];
  }
  return bytes;
}

// Where the round's blocks begin in the program's receive buffer, if they lie there as in the
// message.
std::byte* Tuna::OneRunInPlace(const Round& round) const {
  if (round.blocks != round.arriving) return nullptr;
  // Offsets may have any sign: the buffer's address may be in the middle.
  std::optional<int64_t> begin;
  int64_t end = 0;
  for (int64_t block = round.index.first; block < round.index.first + round.arriving; ++block) {
    const size_t source = Source(block);
    if (exchange_.receive_bytes[source] == 0) continue;
    if (!begin) {
      begin = end = exchange_.receive_offset[source];
    } else if (end != exchange_.receive_offset[source]) {
      return nullptr;
    }
    end += exchange_.receive_bytes[source];
  }
  return begin ? exchange_.receive + *begin : nullptr;
}

int Tuna::PostReceive(Round& round, int parity) {
  round.posted = true;
  if (round.data_bytes == 0) return MPI_SUCCESS;
  return ReceiveBytes(round.data, round.data_bytes, round.receive_from, Tag::kData,
                      exchange_.communicator, block_requests_[parity].Next());
}

// Posts the receives of sizes, and those of blocks whose sizes the receiver knows.
int Tuna::PostWhatIsKnown(const Batch& batch) {
  int64_t landing = 0;
  int64_t forwarded = 0;
  int64_t sizes_read = sizes_read_;
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    Round& round = rounds_[k];
    round.posted = false;
    if (!round.sizes_known) continue;
    round.data_bytes = BytesArriving(round);
    round.data = OneRunInPlace(round);
    round.in_place = round.data != nullptr;
    if (round.blocks == round.arriving) {
      if (!round.in_place) landing += round.data_bytes;
      continue;
    }
    const int64_t others = round.blocks - round.arriving;
    if (options_.known_sizes == nullptr) {
      round.data_bytes += others * exchange_.uniform_bytes;
    } else {
      for (const int64_t end = sizes_read + others; sizes_read < end; ++sizes_read) {
        round.data_bytes += options_.known_sizes[sizes_read];
      }
    }
    forwarded += round.data_bytes;
  }
  Lease& memory = landing_[batch.parity];
  if (memory.capacity() < landing) {
    memory = Lease();
    memory = Lease(landing);
    if (memory.data() == nullptr) return MPI_ERR_NO_MEM;
  }
  // Else it must wait until blocks have been passed on (PostBlocks).
  const bool room = arena_top_ + forwarded <= arena_.capacity();
  std::byte* land = memory.data();
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    Round& round = rounds_[k];
    if (!round.sizes_known) {
      const int error = ReceiveBytes(round.inbox, round.inbox_capacity, round.receive_from,
                                     Tag::kSizes, exchange_.communicator, inbox_requests_.Next());
      if (error != MPI_SUCCESS) return error;
      continue;
    }
    if (round.blocks == round.arriving) {
      if (!round.in_place) {
        round.data = land;
        land += round.data_bytes;
      }
    } else {
      if (!room) continue;
      round.data = arena_.data() + arena_top_;
      arena_top_ += round.data_bytes;
    }
    if (const int error = PostReceive(round, batch.parity)) return error;
  }
  return MPI_SUCCESS;
}

std::byte* Tuna::WriteSizes(const Round& round, std::byte* to) const {
  *to++ = static_cast<std::byte>(LogOfWidth(round.size_width) | (round.separate ? kSeparate : 0U));
  WithWidth(round.size_width, [&](auto zero) {
    VisitSent(round, true, [&](int64_t bytes, const std::byte*) {
      const auto size = static_cast<decltype(zero)>(bytes);
      std::memcpy(to, &size, sizeof(size));
      to += sizeof(size);
    });
  });
  CountCopy(HeaderBlocks(round) * round.size_width);
  return to;
}

// Sizes that do not go with their blocks can go before the blocks of earlier rounds are here.
int Tuna::SendSizesAhead(const Batch& batch) {
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    const Round& round = rounds_[k];
    if (round.sizes_known || !round.separate) continue;
    std::byte* message = outgoing_[batch.parity].data() + outgoing_top_[batch.parity];
    const int64_t bytes = WriteSizes(round, message) - message;
    outgoing_top_[batch.parity] += bytes;
    const int error = SendBytes(message, bytes, round.send_to, Tag::kSizes, exchange_.communicator,
                                send_requests_[batch.parity].Next());
    if (error != MPI_SUCCESS) return error;
    if (trace_ != nullptr) ++trace_->messages;
  }
  return MPI_SUCCESS;
}

// The blocks of the round behind each other; their slots are free then.
void Tuna::Gather(const Round& round, std::byte* to) {
  PackingCopy copy(to);
  VisitSent(round, false, [&](int64_t bytes, const std::byte* at) { copy.Add(at, bytes); });
  radix_rounds_.ForEachRow(round.index, [&](int64_t start, int64_t end, int64_t first_slot) {
    for (int64_t slot = first_slot + 1; slot < first_slot + end - start; ++slot) {
      stored_bytes_ -= slot_bytes_[slot];
      slot_at_[slot] = nullptr;
    }
  });
}

int Tuna::Send(const Batch& batch) {
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    const Round& round = rounds_[k];
    const bool with_sizes = !round.sizes_known && !round.separate;
    if (IsDirect(round) && !with_sizes) {
      if (round.send_bytes == 0) continue;
      const size_t to = Destination(round.index.first);
      const int error =
          SendBytes(exchange_.send + exchange_.send_offset[to], round.send_bytes, round.send_to,
                    Tag::kData, exchange_.communicator, send_requests_[batch.parity].Next());
      if (error != MPI_SUCCESS) return error;
      if (trace_ != nullptr) ++trace_->messages;
      continue;
    }
    std::byte* message = outgoing_[batch.parity].data() + outgoing_top_[batch.parity];
    std::byte* blocks = with_sizes ? WriteSizes(round, message) : message;
    Gather(round, blocks);
    const int64_t bytes = blocks - message + round.send_bytes;
    outgoing_top_[batch.parity] += bytes;
    if (bytes == 0) continue;
    const int error =
        SendBytes(message, bytes, round.send_to, with_sizes ? Tag::kSizes : Tag::kData,
                  exchange_.communicator, send_requests_[batch.parity].Next());
    if (error != MPI_SUCCESS) return error;
    if (trace_ != nullptr) ++trace_->messages;
  }
  return MPI_SUCCESS;
}

// Notes the sizes of the forwarded blocks of a round, the k-th being size_at(k); returns their sum.
template <class SizeAt>
int64_t Tuna::StoreSizes(const Round& round, const SizeAt& size_at) {
  const int64_t least = round.index.step * radix_rounds_.radix();
  int64_t k = options_.as_published ? round.arriving : 0;
  int64_t total = 0;
  radix_rounds_.ForEachRow(round.index, [&](int64_t start, int64_t end, int64_t first_slot) {
    if (start < least) return;
    for (int64_t slot = first_slot; slot < first_slot + end - start; ++slot) {
      slot_bytes_[slot] = size_at(k++);
      total += slot_bytes_[slot];
    }
  });
  stored_bytes_ += total;
  return total;
}

void Tuna::ReadSizes(Round& round) {
  if (exchange_.uniform_bytes >= 0 && round.sizes_known) {
    StoreSizes(round, [&](int64_t) { return exchange_.uniform_bytes; });
    return;
  }
  if (options_.known_sizes != nullptr) {
    const int64_t* sizes = options_.known_sizes + sizes_read_;
    StoreSizes(round, [sizes](int64_t k) { return sizes[k]; });
    sizes_read_ += round.blocks - round.arriving;
    return;
  }
  if (round.sizes_known) return;
  const auto kind = static_cast<unsigned>(*round.inbox);
  const int width = 1 << (kind % kSeparate);
  const std::byte* sizes = round.inbox + 1;
  WithWidth(width, [&](auto zero) {
    round.data_bytes = StoreSizes(round, [&](int64_t k) {
      auto size = zero;
      std::memcpy(&size, sizes + k * width, sizeof(size));
      return static_cast<int64_t>(size);
    });
  });
  round.data_bytes += BytesArriving(round);
  round.data = (kind & kSeparate) != 0 ? nullptr : round.inbox + HeaderBytes(round, width);
  round.in_place = false;
  round.posted = round.data != nullptr;
}

// Tells the slots where their blocks are, or will be when the message is here.
void Tuna::AddressSlots(const Round& round) {
  if (round.blocks == round.arriving) return;
  const int64_t least = round.index.step * radix_rounds_.radix();
  std::byte* at = round.data + BytesArriving(round);
  radix_rounds_.ForEachRow(round.index, [&](int64_t start, int64_t end, int64_t first_slot) {
    if (start < least) return;
    for (int64_t slot = first_slot; slot < first_slot + end - start; ++slot) {
      slot_at_[slot] = at;
      at += slot_bytes_[slot];
    }
  });
}

// Room for so many bytes at arena_top_. No message may be on its way into the arena.
int Tuna::ReserveArena(int64_t bytes) {
  if (arena_top_ + bytes <= arena_.capacity()) return MPI_SUCCESS;
  // Close up what has been passed on, in the order of addresses, so that nothing is overwritten.
  const LeasedArray<int64_t> kept(radix_rounds_.num_slots());
  if (!kept.ok()) return MPI_ERR_NO_MEM;
  int64_t num_kept = 0;
  int64_t kept_bytes = 0;
  for (int64_t slot = 0; slot < radix_rounds_.num_slots(); ++slot) {
    const std::byte* at = slot_at_[slot];
    if (at == nullptr || at < arena_.data() || at >= arena_.data() + arena_.capacity()) continue;
    kept[num_kept++] = slot;
    kept_bytes += slot_bytes_[slot];
  }
  std::sort(kept.data(), kept.data() + num_kept,
            [&](int64_t a, int64_t b) { return slot_at_[a] < slot_at_[b]; });
  Lease larger;
  if (kept_bytes + bytes > arena_.capacity()) {
    larger = Lease(kept_bytes + bytes);
    if (larger.data() == nullptr) return MPI_ERR_NO_MEM;
  }
  std::byte* to = larger.data() != nullptr ? larger.data() : arena_.data();
  arena_top_ = kept_bytes;
  for (int64_t k = 0; k < num_kept; ++k) {
    std::byte*& at = slot_at_[kept[k]];
    MoveBytes(to, at, slot_bytes_[kept[k]]);
    at = to;
    to += slot_bytes_[kept[k]];
  }
  if (larger.data() != nullptr) arena_ = std::move(larger);
  return MPI_SUCCESS;
}

// The sizes of the batch's blocks are here: posts the receives that waited for them.
int Tuna::PostBlocks(const Batch& batch) {
  int64_t needed = 0;
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    Round& round = rounds_[k];
    ReadSizes(round);
    if (!round.posted) needed += round.data_bytes;
  }
  if (const int error = ReserveArena(needed)) return error;
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    Round& round = rounds_[k];
    if (!round.posted) {
      round.data = arena_.data() + arena_top_;
      arena_top_ += round.data_bytes;
      if (const int error = PostReceive(round, batch.parity)) return error;
    }
    AddressSlots(round);
  }
  if (trace_ != nullptr) {
    trace_->NoteTemporary(stored_bytes_);
    trace_->NoteStaging(inboxes_.capacity() + arena_.capacity() + landing_[0].capacity() +
                        landing_[1].capacity() + outgoing_[0].capacity() + outgoing_[1].capacity());
  }
  return MPI_SUCCESS;
}

void Tuna::CopyArrived(const Batch& batch) {
  for (int64_t k = batch.begin; k < batch.end; ++k) {
    const Round& round = rounds_[k];
    if (round.in_place) continue;
    const std::byte* from = round.data;
    int64_t begin = 0;  // a run of the receive buffer that is filled at once
    int64_t end = 0;
    for (int64_t block = round.index.first; block < round.index.first + round.arriving; ++block) {
      const size_t source = Source(block);
      const int64_t bytes = exchange_.receive_bytes[source];
      if (bytes == 0) continue;
      if (exchange_.receive_offset[source] != end) {
        CopyBytes(exchange_.receive + begin, from, end - begin);
        from += end - begin;
        begin = end = exchange_.receive_offset[source];
      }
      end += bytes;
    }
    CopyBytes(exchange_.receive + begin, from, end - begin);
  }
}

int Tuna::Begin() {
  StopWatch watch(trace_);
  if (!prepared_) {
    if (const int error = Prepare()) return error;
  }
  if (trace_ != nullptr) {
    trace_->rounds += num_rounds_;
    trace_->slots = std::max(trace_->slots, radix_rounds_.num_slots());
  }
  arena_top_ = 0;
  sizes_read_ = 0;
  if (options_.as_published) {
    int64_t largest = 0;
    for (const int64_t bytes : exchange_.send_bytes) largest = std::max(largest, bytes);
    const int error =
        PMPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_INT64_T, MPI_MAX, exchange_.communicator);
    if (error != MPI_SUCCESS) return error;
    if (const int failed = ReserveArena(largest * radix_rounds_.num_slots())) return failed;
  }
  if (const int error = NextBatch(0, 0, &batch_)) return error;
  if (const int error = PostWhatIsKnown(batch_)) return error;
  watch.Charge(&Trace::prepare_s);
  if (const int error = SendSizesAhead(batch_)) return error;
  if (const int error = Send(batch_)) return error;
  watch.Charge(&Trace::data_s);
  const auto own = static_cast<size_t>(exchange_.rank);
  CopyBytes(exchange_.receive + exchange_.receive_offset[own],
            exchange_.send + exchange_.send_offset[own], exchange_.send_bytes[own]);
  watch.Charge(&Trace::copy_s);
  return MPI_SUCCESS;
}

int Tuna::Finish() {
  StopWatch watch(trace_);
  while (batch_.begin < num_rounds_) {
    if (const int error = inbox_requests_.Wait()) return error;
    if (const int error = PostBlocks(batch_)) return error;
    Batch next{batch_.end, batch_.end, 1 - batch_.parity};
    const bool more = next.begin < num_rounds_;
    if (more) {
      if (const int error = NextBatch(next.begin, next.parity, &next)) return error;
      if (const int error = PostWhatIsKnown(next)) return error;
      if (const int error = SendSizesAhead(next)) return error;
    }
    watch.Charge(&Trace::metadata_s);
    if (const int error = block_requests_[batch_.parity].Wait()) return error;
    watch.Charge(&Trace::data_s);
    if (more) {
      if (const int error = Send(next)) return error;
    }
    CopyArrived(batch_);
    watch.Charge(&Trace::copy_s);
    batch_ = next;
  }
  if (const int error = send_requests_[0].Wait()) return error;
  if (const int error = send_requests_[1].Wait()) return error;
  watch.Charge(&Trace::data_s);
  TUTTI_DCHECK(stored_bytes_ == 0);
  return MPI_SUCCESS;
}

int TunaExchange(const BlockExchange& exchange, const TunaOptions& options, Trace* trace) {
  if (options.radix >= exchange.size && !options.as_published) {
    // Every round is one block: what remains of the algorithm is its batches.
    if (trace != nullptr) trace->rounds += exchange.size - 1;
    const int batch = options.in_flight > 0 ? options.in_flight : kRoundsInFlight;
    return ScatteredExchange({.blocks = exchange}, batch, trace);
  }
  Tuna tuna(exchange, options, trace);
  if (const int error = tuna.Begin()) return error;
  return tuna.Finish();
}

int ExchangeTunaSizes(const BlockExchange& exchange, int radix, std::vector<int64_t>* sizes) {
  const RadixRounds rounds(exchange.size, radix);
  std::vector<int64_t> slot_bytes(static_cast<size_t>(rounds.num_slots()));
  sizes->clear();
  RadixRound round;
  std::vector<int64_t> sent;
  for (int64_t left = rounds.num_rounds(); left > 0; --left, round = rounds.After(round)) {
    sent.clear();
    const int64_t least = round.step * rounds.radix();
    rounds.ForEachRow(round, [&](int64_t start, int64_t end, int64_t first_slot) {
      if (start < least) return;
      sent.push_back(exchange.send_bytes[static_cast<size_t>(
          (exchange.rank - start + exchange.size) % exchange.size)]);
      for (int64_t slot = first_slot + 1; slot < first_slot + end - start; ++slot) {
        sent.push_back(slot_bytes[static_cast<size_t>(slot)]);
      }
    });
    if (sent.empty()) continue;
    const size_t before = sizes->size();
    sizes->resize(before + sent.size());
    const auto bytes = static_cast<int64_t>(sent.size() * sizeof(int64_t));
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int error = ReceiveBytes(reinterpret_cast<std::byte*>(sizes->data() + before), bytes,
                             static_cast<int>((exchange.rank + round.first) % exchange.size),
                             Tag::kSizes, exchange.communicator, &requests[0]);
    if (error == MPI_SUCCESS) {
      error =
          SendBytes(reinterpret_cast<const std::byte*>(sent.data()), bytes,
                    static_cast<int>((exchange.rank - round.first + exchange.size) % exchange.size),
                    Tag::kSizes, exchange.communicator, &requests[1]);
    }
    if (error == MPI_SUCCESS) error = WaitForAll(requests);
    if (error != MPI_SUCCESS) return error;
    size_t read = before;
    rounds.ForEachRow(round, [&](int64_t start, int64_t end, int64_t first_slot) {
      if (start < least) return;
      for (int64_t slot = first_slot; slot < first_slot + end - start; ++slot) {
        slot_bytes[static_cast<size_t>(slot)] = (*sizes)[read++];
      }
    });
  }
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi
