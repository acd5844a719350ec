// Tuna: TuNA, the all-to-all-v of tunable radix, and what is made of it: two-phase Bruck, padded
// Bruck and the uniform all-to-all by Bruck with a radix.
//
// Model       radix_rounds.h says which blocks travel when. A round is one message to a rank and
//             one from another. Beyond the paper:
//
//               - Rounds of one digit are independent and go together, `in_flight` at a time.
//               - Nothing is agreed beforehand about sizes (the paper takes the largest of all
//                 ranks).
//               - Only sizes of blocks that will be forwarded are sent: those of arriving blocks
//                 are the receiver's own counts. So the last digit and rounds of a single block
//                 have no metadata.
//               - Sizes travel in the message of the blocks as long as that is short (the receive,
//                 of fixed capacity, is posted before); else in a message of their own, as soon as
//                 they are known, ahead of the blocks of earlier rounds.
//               - Where all blocks of all ranks are equal (uniform all-to-all), no sizes are sent.
//               - Forwarded blocks stay where they were received until they are gathered into the
//                 next message; a message of one block is sent and received in the program's own
//                 buffers, and so is one whose blocks all arrive and lie behind each other there. A
//                 block that makes h hops is copied at most h + 1 times.
//               - When memory for arriving messages runs out, those already passed on are closed
//                 up.
// Units       Bytes.
// Invariants  At most P - (K + 1) blocks are on their way through a rank at any time.
// Complexity  K <= ceil(log_r P) (r - 1) messages per rank in ceil(log_r P) dependent steps.
// Errors      An MPI error code; MPI_ERR_NO_MEM.
// Threads     As for collectives.
// Reference   [tuna] section III; two-phase Bruck: its reference [10].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "block_exchange.h"
#include "buffer_pool.h"
#include "exchange/radix_rounds.h"
#include "trace.h"

namespace tutti::mpi {

struct TunaOptions {
  int radix = 2;
  int in_flight = 0;  // rounds of a digit at once; 0: kRoundsInFlight
  // As in the paper: the largest block of all ranks is agreed on first, rounds go one by one, sizes
  // of all blocks in a message before that of the blocks, in every round.
  bool as_published = false;
  // Sizes of forwarded blocks in the order in which they are received, from ExchangeTunaSizes.
  const int64_t* known_sizes = nullptr;
};

inline constexpr int kRoundsInFlight = 64;

int TunaExchange(const BlockExchange& exchange, const TunaOptions& options, Trace* trace);
inline int TunaExchange(const BlockExchange& exchange, int radix, Trace* trace) {
  return TunaExchange(exchange, TunaOptions{.radix = radix}, trace);
}

// Sends only the sizes: what TunaOptions::known_sizes of later exchanges with the same counts
// points to.
int ExchangeTunaSizes(const BlockExchange& exchange, int radix, std::vector<int64_t>* sizes);

// An exchange in two halves: Begin starts the messages of the first rounds, Finish does the rest.
// May be repeated; memory is kept between.
class Tuna {
 public:
  // Both must outlive this.
  Tuna(const BlockExchange& exchange, const TunaOptions& options, Trace* trace);

  int Begin();
  int Finish();

 private:
  struct Round {
    RadixRound index;
    int64_t blocks, arriving;
    int send_to, receive_from;
    bool sizes_known;  // by the receiver: none are sent
    // What is sent.
    int64_t send_bytes;
    int size_width;  // bytes of a size in the message
    bool separate;   // sizes and blocks are two messages
    // What arrives.
    std::byte* inbox;  // sizes and short blocks; null if sizes_known
    int64_t inbox_capacity;
    std::byte* data;
    int64_t data_bytes;
    bool in_place;  // it arrives where it belongs
    bool posted;    // the receive of the blocks is
  };
  struct Requests {
    MPI_Request* first = nullptr;
    int64_t count = 0;

    MPI_Request* Next() { return &(first[count++] = MPI_REQUEST_NULL); }
    int Wait();
  };
  // A run of rounds [begin, end) of one digit that go together.
  struct Batch {
    int64_t begin, end;
    int parity;
  };

  int Prepare();
  bool ForwardsKnown() const {
    return exchange_.uniform_bytes >= 0 || options_.known_sizes != nullptr;
  }
  int NextBatch(int64_t begin, int parity, Batch* batch);
  void MeasureSend(Round& round) const;
  int PostWhatIsKnown(const Batch& batch);
  int SendSizesAhead(const Batch& batch);
  int Send(const Batch& batch);
  int PostBlocks(const Batch& batch);
  void CopyArrived(const Batch& batch);
  int PostReceive(Round& round, int parity);
  int ReserveArena(int64_t bytes);

  template <class Visit>
  void VisitSent(const Round& round, bool sizes_only, const Visit& visit) const;
  std::byte* WriteSizes(const Round& round, std::byte* to) const;
  void Gather(const Round& round, std::byte* to);
  void ReadSizes(Round& round);
  template <class SizeAt>
  int64_t StoreSizes(const Round& round, const SizeAt& size_at);
  void AddressSlots(const Round& round);
  int64_t BytesArriving(const Round& round) const;
  std::byte* OneRunInPlace(const Round& round) const;
  int64_t HeaderBlocks(const Round& round) const {
    return options_.as_published ? round.blocks : round.blocks - round.arriving;
  }
  int64_t HeaderBytes(const Round& round, int width) const {
    return 1 + HeaderBlocks(round) * width;
  }
  // Sent from where it lies.
  static bool IsDirect(const Round& round) { return round.blocks == 1; }
  size_t Destination(int64_t block) const {
    const int64_t rank = exchange_.rank - block;
    return static_cast<size_t>(rank < 0 ? rank + exchange_.size : rank);
  }
  size_t Source(int64_t block) const {
    const int64_t rank = exchange_.rank + block;
    return static_cast<size_t>(rank >= exchange_.size ? rank - exchange_.size : rank);
  }

  const BlockExchange& exchange_;
  const TunaOptions options_;
  Trace* trace_;
  RadixRounds radix_rounds_;
  int64_t num_rounds_;
  int64_t in_flight_;

  LeasedArray<Round> rounds_;
  LeasedArray<std::byte*> slot_at_;  // null: nothing is stored there
  LeasedArray<int64_t> slot_bytes_;
  LeasedArray<MPI_Request> request_memory_;
  Lease inboxes_;
  Lease arena_;  // arriving messages that carry forwarded blocks
  int64_t arena_top_ = 0;
  Lease landing_[2];  // arriving messages of which nothing is forwarded, by parity of the batch
  Lease outgoing_[2];
  int64_t outgoing_top_[2] = {0, 0};
  Requests inbox_requests_;
  Requests block_requests_[2];
  Requests send_requests_[2];
  Batch batch_ = {0, 0, 0};
  bool prepared_ = false;
  int64_t stored_bytes_ = 0;
  int64_t sizes_read_ = 0;  // of options_.known_sizes
};

}  // namespace tutti::mpi
