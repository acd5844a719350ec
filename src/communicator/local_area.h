// LocalArea: memory that the ranks of one host share: where they sleep, rings of bytes between each
// two, and a board on which each writes what all may read.
//
// Model       The first rank of a host makes a memory file without a name and says where it is; the
//             others open it through /proc. Nothing stays behind, whoever dies. Pages exist once they
//             are touched: rings that no schedule uses cost nothing. Ranks that are threads of one process
//             have one mapping, which race detectors need to see that they mean the same words.
// Board       Two kinds of rows that take turns: kRows of a line a rank, which says that its contribution is there and holds it where
//             it is small, and kBlockRows of a block a rank for larger ones (and a wide one for those who give much to all). A rank writes for operation k
//             when all have ended operation k - kRows, or k - kBlockRows where it needs a block; and only ever to its own.
// Errors      Make, Open: kIo; ranks then talk over TCP.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "connection.h"
#include "ring_connection.h"
#include "tutti/base/result.h"

namespace tutti {

// What a rank sleeps on that has nothing to do.
enum class Sleeps : uint32_t {
  kNo,
  kOnBell,    // the word
  kOnSockets  // it talks to other hosts, too, and is woken by a datagram
};

struct BellState {
  alignas(64) std::atomic<uint32_t> bell{0};
  std::atomic<Sleeps> sleeps{Sleeps::kNo};
  alignas(64) std::atomic<uint64_t> board_done{0};  // the last operation of the board that it ended
};

// The socket of a rank that others wake it by, named after the area and its place there. Anybody on the
// host may send to it: it wakes, finds nothing and sleeps again.
class WakeSocket {
 public:
  WakeSocket() = default;
  ~WakeSocket();
  WakeSocket(const WakeSocket&) = delete;
  WakeSocket& operator=(const WakeSocket&) = delete;

  // False: the system refuses; it cannot be woken.
  bool Open(uint64_t token, int32_t index);
  int fd() const { return fd_; }
  void Send(uint64_t token, int32_t index) const;
  void Drain() const;

 private:
  int fd_ = -1;
};

class LocalBell final : public Waker {
 public:
  LocalBell(BellState& state, int32_t index, uint64_t token, const WakeSocket& socket)
      : state_(&state), index_(index), token_(token), socket_(&socket) {}
  void Wake(WaitsFor) override {
    if (state_->sleeps.load() != Sleeps::kNo) Ring();
  }

 private:
  void Ring();

  BellState* state_;
  int32_t index_;
  uint64_t token_;
  const WakeSocket* socket_;
};

// Of two cache lines: up to 48 bytes cross between two cores with the word that says so.
struct alignas(128) BoardSlot {
  static constexpr uint64_t kRows = 64, kBlockRows = 8;
  static constexpr int64_t kInlineBytes = 112, kBlockBytes = int64_t{16} << 10,
                           kWideBytes = int64_t{64} << 10;
  std::atomic<uint64_t> sequence{0};  // of the operation whose data it holds
  uint64_t call = 0;                  // what is called
  std::array<std::byte, kInlineBytes> data{};
};
static_assert(sizeof(BoardSlot) == 128);

class LocalArea {
 public:
  // Where others find it.
  struct Place {
    int64_t process = 0, descriptor = 0;
    uint64_t token = 0;
  };
  static constexpr int32_t kMaxRanks = 64;
  static constexpr uint64_t kRingBytes = uint64_t{256} << 10;
  enum class Ring : uint8_t { kPlans, kDirect };  // the channels that have one

  static Result<std::unique_ptr<LocalArea>> Make(int32_t num_ranks);
  static Result<std::unique_ptr<LocalArea>> Open(const Place& place, int32_t num_ranks);
  ~LocalArea() { CloseFile(); }
  LocalArea(const LocalArea&) = delete;
  LocalArea& operator=(const LocalArea&) = delete;

  const Place& place() const { return place_; }
  // All have opened it.
  void CloseFile();

  // Ranks are those of the host, from 0.
  BellState& bell(int32_t rank) const;
  // All have ended the operations of the board up to this one.
  uint64_t DoneByAll() const;
  BoardSlot& slot(uint64_t sequence, int32_t rank) const;
  std::byte* block(uint64_t sequence, int32_t rank) const;
  // In place of its block, where a rank gives much to all.
  std::byte* wide_block(uint64_t sequence, int32_t rank) const;
  RingState& ring(int32_t from, int32_t to, Ring which) const;
  std::byte* RingBytes(int32_t from, int32_t to, Ring which) const;

 private:
  class Mapping;

  LocalArea(int32_t num_ranks, int file);
  Status Map();
  int64_t RingIndex(int32_t from, int32_t to, Ring which) const {
    return (int64_t{from} * num_ranks_ + to) * 2 + static_cast<int64_t>(which);
  }

  int32_t num_ranks_;
  int file_;
  Place place_;
  std::shared_ptr<Mapping> mapping_;
  std::byte* data_ = nullptr;  // of the mapping
  int64_t bytes_ = 0, slots_at_ = 0, blocks_at_ = 0, wide_blocks_at_ = 0, rings_at_ = 0,
          ring_bytes_at_ = 0;
};

// Which ranks run on this host and in this process's view of it: equal words mean yes.
uint64_t HostWord();

}  // namespace tutti
