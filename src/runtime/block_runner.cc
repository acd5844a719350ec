#include "tutti/runtime/block_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "block_memory.h"
#include "kernels.h"
#include "rates.h"
#include "tutti/base/cancel.h"
#include "tutti/base/clock.h"
#include "tutti/base/index.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

using Counter = std::atomic<int32_t>;

// How far a thread block is.
struct BlockCursor {
  const Block* block = nullptr;
  size_t next = 0;
  bool came = false;  // to the meeting that it waits at,
  int32_t round = 0;  // which is over when its round has changed
};

// What all workers share.
class Run {
 public:
  Run(const BlockProgram& program, const RunOptions& options, const BlockMemory& memory,
      int32_t workers)
      : program_(program),
        options_(options),
        memory_(memory),
        workers_(workers),
        reduce_(FindReduceKernel(options.type, options.op)),
        counters_(std::make_unique<Counter[]>(program.counters.size())),
        barrier_(workers, [this]() noexcept { NextPhase(); }) {}

  void Execute() {
    std::vector<std::thread> threads;
    for (int32_t w = 1; w < workers_; ++w) threads.emplace_back([this, w] { Work(w); });
    Work(0);
    for (std::thread& thread : threads) thread.join();
  }

  const std::optional<Error>& error() const { return error_; }
  int64_t wrong() const { return wrong_.load(); }
  int64_t measured_ns() const { return measured_ns_; }

 private:
  // Runs alone, when all workers are between two phases.
  void NextPhase() noexcept {
    if (filled_) {
      for (size_t c = 0; c < program_.counters.size(); ++c)
        counters_[c].store(program_.counters[c], std::memory_order_relaxed);
      started_ns_ = NowNs();
      beats_.fetch_add(1);
    } else {
      if (iteration_++ >= options_.warmup) measured_ns_ += NowNs() - started_ns_;
      stops_ = failed_.load();
    }
    filled_ = !filled_;
  }

  void Work(int32_t worker) {
    for (int32_t i = 0; i < options_.warmup + options_.iterations && !stops_; ++i) {
      for (int32_t rank = worker; rank < NumRanks(); rank += workers_) memory_.Fill(rank);
      barrier_.arrive_and_wait();
      RunBlocksOf(worker);
      barrier_.arrive_and_wait();
    }
    if (stops_ || !options_.check) return;
    for (int32_t rank = worker; rank < NumRanks(); rank += workers_) {
      if (program_.collective.reduces() && options_.op == ReduceOp::kAvg) memory_.Divide(rank);
      wrong_.fetch_add(memory_.CountWrong(rank));
    }
  }

  int32_t NumRanks() const { return program_.collective.num_ranks(); }

  void RunBlocksOf(int32_t worker) {
    std::vector<BlockCursor> cursors;
    for (const Block& block : program_.blocks)
      if (block.rank % workers_ == worker) cursors.push_back({&block});
    std::vector<std::byte> buffer;
    uint64_t seen = 0;
    int64_t idle_since = 0;
    for (int32_t idle = 0; !cursors.empty() && !failed_.load();) {
      bool moved = false;
      for (BlockCursor& cursor : cursors)
        while (Advance(cursor, buffer)) moved = true;
      std::erase_if(cursors, [](const BlockCursor& cursor) {
        return cursor.next == cursor.block->steps.size();
      });
      if (CancelRequested()) return Fail(CancelledError());
      if (moved) {
        beats_.fetch_add(1, std::memory_order_relaxed);
        idle = 0;
        continue;
      }
      if (cursors.empty()) break;
      if (const uint64_t beats = beats_.load(); idle == 0 || beats != seen) {
        seen = beats;
        idle_since = NowNs();
      }
      if (static_cast<double>(NowNs() - idle_since) * 1e-9 > Patience())
        return Fail({ErrorCode::kPeerFailed, "nothing moves: " + Explain(cursors.front())});
      Pause(++idle);
    }
  }

  // Alone, a worker that finds nothing to do will not find anything later.
  double Patience() const { return workers_ == 1 ? -1 : options_.hang_timeout_s; }

  static void Pause(int32_t idle) {
    constexpr int32_t kYields = 64;
    if (idle < kYields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  std::string Explain(const BlockCursor& cursor) const {
    return fmt::format("gpu {} tb {} waits at its operation {}", cursor.block->rank,
                       cursor.block->number, cursor.block->steps[cursor.next].origin);
  }

  void Fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }

  // Runs one step; false where it has to wait or there is none.
  bool Advance(BlockCursor& cursor, std::vector<std::byte>& buffer) {
    if (cursor.next == cursor.block->steps.size()) return false;
    const BlockStep& step = cursor.block->steps[cursor.next];
    switch (step.action) {
      case BlockAction::kPost:
        for (int32_t c = 0; c < step.count; ++c)
          At(step.counter + c).fetch_add(1, std::memory_order_acq_rel);
        break;
      case BlockAction::kTake:
        if (!Take(At(step.counter))) return false;
        break;
      case BlockAction::kReach:
        for (int32_t c = 0; c < step.count; ++c)
          if (At(step.counter + c).load(std::memory_order_acquire) < step.value) return false;
        break;
      case BlockAction::kMeet:
        if (!Meet(cursor, step)) return false;
        break;
      case BlockAction::kReduce:
        Reduce(step, buffer);
        break;
    }
    ++cursor.next;
    return true;
  }

  Counter& At(int32_t counter) const { return counters_[Index(counter)]; }

  static bool Take(Counter& counter) {
    int32_t value = counter.load(std::memory_order_acquire);
    while (value > 0)
      if (counter.compare_exchange_weak(value, value - 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  bool Meet(BlockCursor& cursor, const BlockStep& step) const {
    Counter& rounds = At(step.counter + 1);
    if (!cursor.came) {
      cursor.came = true;
      cursor.round = rounds.load(std::memory_order_acquire);
      if (At(step.counter).fetch_add(1, std::memory_order_acq_rel) + 1 == step.count) {
        At(step.counter).store(0, std::memory_order_relaxed);
        rounds.fetch_add(1, std::memory_order_acq_rel);
      }
    }
    if (rounds.load(std::memory_order_acquire) == cursor.round) return false;
    cursor.came = false;
    return true;
  }

  void Reduce(const BlockStep& step, std::vector<std::byte>& buffer) const {
    const BlockRange* sources = &program_.ranges[Index(step.first_range)];
    const BlockRange* targets = sources + step.num_sources;
    const int64_t bytes = step.cells * memory_.cell_elements() * memory_.element_bytes();
    constexpr int64_t kPart = int64_t{1} << 17;  // bytes; stays in the cache
    for (int64_t done = 0; done < bytes; done += kPart) {
      const int64_t part = std::min(kPart, bytes - done);
      const std::byte* value = memory_.At(sources[0]) + done;
      if (step.num_sources > 1) {
        buffer.resize(Index(kPart));
        for (int32_t s = 1; s < step.num_sources; ++s) {
          reduce_(buffer.data(), value, memory_.At(sources[s]) + done,
                  part / memory_.element_bytes());
          value = buffer.data();
        }
      }
      for (int32_t t = 0; t < step.num_targets; ++t)
        std::memmove(memory_.At(targets[t]) + done, value, Index(part));
    }
  }

  const BlockProgram& program_;
  const RunOptions& options_;
  const BlockMemory& memory_;
  int32_t workers_;
  ReduceKernel reduce_;
  std::unique_ptr<Counter[]> counters_;
  std::atomic<uint64_t> beats_ = 0;
  std::atomic<int64_t> wrong_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
  // Written by NextPhase only.
  bool filled_ = true, stops_ = false;
  int32_t iteration_ = 0;
  int64_t started_ns_ = 0, measured_ns_ = 0;
  std::barrier<std::function<void()>> barrier_;
};

Status CheckIterations(const RunOptions& options) {
  constexpr int32_t kMost = 1'000'000'000;
  if (options.iterations >= 1 && options.warmup >= 0 && options.warmup <= kMost &&
      options.iterations <= kMost)
    return {};
  return InvalidArgument(
      fmt::format("a run needs 0 to 10^9 iterations to warm up and 1 to 10^9 to measure, got {} "
                  "and {}",
                  options.warmup, options.iterations));
}

Result<BlockMemory> AllocateFor(const BlockProgram& program, const RunOptions& options) {
  if (const Status checked = CheckIterations(options); !checked)
    return tl::unexpected(checked.error());
  Result<BlockMemory> memory = BlockMemory::Make(program, options);
  if (!memory) return tl::unexpected(memory.error());
  if (const Status allocated = memory->Allocate(); !allocated)
    return tl::unexpected(allocated.error());
  return memory;
}

}  // namespace

Result<int64_t> SizeThatRuns(const BlockProgram& program, const RunOptions& options) {
  return AllocateFor(program, options).map([](const BlockMemory& memory) {
    return memory.size_bytes();
  });
}

Result<RunReport> RunBlocks(const BlockProgram& program, const RunOptions& options) {
  Result<BlockMemory> memory = AllocateFor(program, options);
  if (!memory) return tl::unexpected(memory.error());
  const int32_t ranks = program.collective.num_ranks();
  Run run(program, options, *memory, std::clamp(NumThreads(), 1, ranks));
  run.Execute();
  if (run.error()) return tl::unexpected(*run.error());
  RunReport report;
  report.size_bytes = memory->size_bytes();
  report.time_s = static_cast<double>(run.measured_ns()) * 1e-9 / options.iterations;
  FillRates(program.collective, memory->element_bytes(), report);
  report.wrong = options.check ? run.wrong() : -1;
  return report;
}

}  // namespace tutti
