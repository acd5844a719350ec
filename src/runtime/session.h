// Session: everything one run needs, made before the ranks start: the program, the patterns, and
// the shared memory with buffers, connections, bells and results.
//
// Model       A *connection* counts messages: `posted` by the sender, `acked` by the receiver, both
//             for ever, over passes and iterations. Message m may be posted once m - kWindow is
//             acked. The receiver claims a message and reads the sender's buffer. Where the sender
//             must overwrite that buffer and the receiver has not come yet (it may be waiting for
//             this very rank: two ranks that exchange a buffer in place), the sender claims the
//             message and saves it to a bounce buffer. It may do so for kBounces messages beyond
//             the last acked one: plans that need FIFOs of that depth do not deadlock. A rank that
//             can do nothing sleeps on its *bell*; who posts or acks rings it.
// Memory      Buffers as Layout says, bounce buffers, events of the trace and the control words.
// Threads     Atomics are the only words that two ranks touch at once; buffers are handed over by
//             posted (release of the source) and acked (release of the reader).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels.h"
#include "layout.h"
#include "pattern.h"
#include "program.h"
#include "shared_memory.h"
#include "tutti/base/result.h"
#include "tutti/runtime/executor.h"

namespace tutti {

// What the figures in docs/performance.md were measured with.
struct Tuning {
  int64_t piece_bytes = 256 * 1024;  // aimed at for the largest message of a pass
  int32_t spins = 1000;              // looks around before sleeping
  int32_t crowded_spins = 50;        // the same with more ranks than processors
  int32_t passes_ahead = 4;          // of a stream before the last one of its rank
};

inline constexpr uint64_t kWindow = 16;
inline constexpr uint64_t kBounces = 2;

enum class Claim : uint32_t { kOpen, kTaken, kSaving, kSaved };
enum class WaitsFor : uint32_t { kNo, kForMessages, kForAnything };
enum class Phase : uint32_t { kPreparing, kRunning, kDraining, kAtBarrier, kChecking, kFinished };

struct ConnectionState {
  alignas(64) std::atomic<uint64_t> posted{0};
  alignas(64) std::atomic<uint64_t> acked{0};
  alignas(64) std::atomic<Claim> claim[kWindow]{};
};

struct RankState {
  alignas(64) std::atomic<uint32_t> bell{0};
  std::atomic<WaitsFor> waiting{WaitsFor::kNo};
  alignas(64) std::atomic<uint64_t> beats{0};  // grows while the rank gets on
  std::atomic<Phase> phase{Phase::kPreparing};
  std::atomic<int64_t> wrong{0};
  std::atomic<int64_t> events{0};
  std::atomic<int64_t> ended_ns{0};  // its last iteration
};

struct ControlState {
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<uint32_t> finished{0};  // ranks; rung for the supervisor
  // Of the steady clock: when the iteration was let go, and the time of all measured ones.
  alignas(64) std::atomic<int64_t> released_ns{0};
  std::atomic<int64_t> measured_ns{0};
};

class Session {
 public:
  // `plan` must outlive the session.
  static Result<Session> Make(const Plan& plan, const RunOptions& options, const Tuning& tuning);

  const Plan& plan() const { return *plan_; }
  const RunOptions& options() const { return options_; }
  const Tuning& tuning() const { return tuning_; }
  const Layout& layout() const { return layout_; }
  const Program& program() const { return program_; }
  const Pattern& pattern() const { return *pattern_; }
  int32_t num_ranks() const { return static_cast<int32_t>(program_.ranks.size()); }
  int32_t num_iterations() const { return options_.warmup + options_.iterations; }
  // How often a rank looks around before it sleeps.
  int32_t spins() const { return crowded_ ? tuning_.crowded_spins : tuning_.spins; }

  std::byte* data() const { return memory_.data() + data_at_; }
  std::byte* bounce(int32_t connection, uint64_t message) const {
    const auto c = static_cast<size_t>(connection);
    return memory_.data() + bounce_at_[c] +
           static_cast<int64_t>(message % kBounces) * program_.connections[c].largest_message;
  }
  ControlState& control() const { return *At<ControlState>(control_at_); }
  RankState& rank(int32_t rank) const { return At<RankState>(ranks_at_)[rank]; }
  ConnectionState& connection(int32_t connection) const {
    return At<ConnectionState>(connections_at_)[connection];
  }
  // Instructions a stream has executed in all passes; for dependencies and for the supervisor.
  std::atomic<uint64_t>& executed(int32_t rank, int32_t stream) const {
    return At<std::atomic<uint64_t>>(
        executed_at_)[executed_first_[static_cast<size_t>(rank)] + stream];
  }
  // Room for every event of a rank in the last iteration, when it is recorded.
  RunEvent* events(int32_t rank) const {
    return At<RunEvent>(events_at_) + events_first_[static_cast<size_t>(rank)];
  }

 private:
  Session(const Plan& plan, const RunOptions& options, const Tuning& tuning, Layout layout,
          Program program);
  template <class T>
  T* At(int64_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
  }
  // Lays the areas out behind one another; the bytes they need.
  int64_t Arrange();
  void Construct();

  const Plan* plan_;
  RunOptions options_;
  Tuning tuning_;
  Layout layout_;
  Program program_;
  std::unique_ptr<Pattern> pattern_;
  SharedMemory memory_;
  bool crowded_ = false;
  int64_t control_at_ = 0, ranks_at_ = 0, connections_at_ = 0, executed_at_ = 0;
  int64_t events_at_ = 0, data_at_ = 0;
  int64_t num_executed_ = 0;
  std::vector<int64_t> executed_first_, events_first_, bounce_at_;
};

int64_t NowNs();

}  // namespace tutti
