// Session: everything one run needs, made before the ranks start: the program, the patterns, and
// the shared memory with buffers, connections, bells and results.
//
// Model       Ranks are joined by SharedConnections. A rank that can do nothing sleeps on its
//             *bell*; who posts or acknowledges rings it.
// Memory      Buffers as Layout says, bounce buffers, events of the trace and the control words.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"
#include "layout.h"
#include "pattern.h"
#include "program.h"
#include "shared_connection.h"
#include "shared_memory.h"
#include "tcp_transport.h"
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

// For tests of failures: this rank kills itself before its k-th instruction. -1: none does.
struct Death {
  int32_t rank = -1;
  int64_t at_instruction = 0;
};

enum class Phase : uint32_t { kPreparing, kRunning, kDraining, kAtBarrier, kChecking, kFinished };

struct RankState {
  alignas(64) std::atomic<uint32_t> bell{0};
  std::atomic<WaitsFor> waiting{WaitsFor::kNo};
  alignas(64) std::atomic<uint64_t> beats{0};  // grows while the rank gets on
  std::atomic<Phase> phase{Phase::kPreparing};
  std::atomic<int64_t> wrong{0};
  std::atomic<uint64_t> digest{0};  // of its results, with fixed_order
  std::atomic<int64_t> events{0};
  std::atomic<int64_t> began_ns{0}, ended_ns{0};  // its last iteration
  // Why it ended before it had finished, with a zero behind; "": it says nothing.
  std::array<char, 256> fault{};
};

// The bell of a rank, from the side of who rings.
class Bell final : public Waker {
 public:
  explicit Bell(RankState& state) : state_(&state) {}
  void Wake(WaitsFor at_least) override;

 private:
  RankState* state_;
};

struct ControlState {
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<uint32_t> finished{0};  // ranks; rung for the supervisor
  // By the steady clock: when the iteration was let go, and the time of all measured ones.
  alignas(64) std::atomic<int64_t> released_ns{0};
  std::atomic<int64_t> measured_ns{0};
};

class Session {
 public:
  // `plan` must outlive the session.
  static Result<Session> Make(const Plan& plan, const RunOptions& options, const Tuning& tuning);
  // For one rank, whose buffers alone it holds; the others are elsewhere. options.transport is not
  // kShared. `make` gets what the ranks of this call have in common, for the headers of messages.
  using MakeTransport =
      std::function<Result<std::unique_ptr<PeerTransport>>(uint64_t call_signature)>;
  static Result<Session> MakeForRank(const Plan& plan, const RunOptions& options,
                                     const Tuning& tuning, int32_t rank, const MakeTransport& make);
  void SetDeath(const Death& death) { death_ = death; }
  const Death& death() const { return death_; }

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
  // Where the buffers of a rank lie.
  const Binding& binding(int32_t rank) const { return bindings_[static_cast<size_t>(rank)]; }
  // What the two ends of a connection have in common; its wakers are the bells of the ranks.
  SharedChannel ChannelOf(int32_t connection) const;
  // Null where the ranks share memory.
  PeerTransport* transport(int32_t rank) const {
    return transports_.empty() ? nullptr : transports_[static_cast<size_t>(rank)].get();
  }
  Bell& bell(int32_t rank) const { return bells_[static_cast<size_t>(rank)]; }
  ControlState& control() const { return *At<ControlState>(control_at_); }
  RankState& rank(int32_t rank) const { return At<RankState>(ranks_at_)[rank]; }
  // Why a rank ended before it had finished; for its supervisor.
  void NoteFault(int32_t rank, const Error& error) const;
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
  // All but sockets.
  static Result<Session> MakeIdle(const Plan& plan, const RunOptions& options, const Tuning& tuning,
                                  std::optional<int32_t> only);
  template <class T>
  T* At(int64_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
  }
  // Lays the areas out behind one another; the bytes they need.
  int64_t Arrange();
  void Construct();
  // All ranks, before they start: so each knows where the others listen.
  Status Listen();
  // What both ends of a connection have to call alike.
  uint64_t CallSignature() const;

  const Plan* plan_;
  RunOptions options_;
  Tuning tuning_;
  Death death_;
  Layout layout_;
  Program program_;
  std::unique_ptr<Pattern> pattern_;
  SharedMemory memory_;
  std::vector<Binding> bindings_;
  std::vector<std::unique_ptr<PeerTransport>> transports_;  // by rank; null where it is elsewhere
  mutable std::vector<Bell> bells_;  // ringing changes the shared memory only
  bool crowded_ = false;
  int64_t control_at_ = 0, ranks_at_ = 0, connections_at_ = 0, executed_at_ = 0;
  int64_t events_at_ = 0, data_at_ = 0;
  int64_t num_executed_ = 0;
  std::vector<int64_t> executed_first_, events_first_, bounce_at_;
};

}  // namespace tutti
