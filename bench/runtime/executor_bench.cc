// All-reduce on 8 local ranks beside the memory bandwidth of two cores, in one run.
//
// The limit   A plan moves bytes: a receive or a copy reads and writes each once, a reduction reads
//             two and writes one; a send moves nothing, the receiver reads the sender's buffer.
//             Threads measure how many bytes a second memory gives over as much memory as the run
//             touches: the best of a copy, a sum a = b + c, and the same sum written past the
//             cache, by one thread a core and by one a rank (which get the same share as the ranks
//             of a machine that has other work too). The limit is the algbw of a
//             run that moves the plan's bytes at that rate. A run may pass it, since part of what
//             it moves is still in a cache.
// Rounds      Bandwidth and runs take turns; the best of each counts, so that what else the machine
//             does meanwhile falls on both.
// Arguments   [size in bytes] [rounds]. Ends with 1 when all-reduce reaches less than half.
#include <fmt/format.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tutti/lower/lowering.h"
#include "tutti/runtime/executor.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

constexpr size_t kArrays = 3;

// --- Memory bandwidth
// -----------------------------------------------------------------------------

struct Arrays {
  float *a, *b, *c;
  size_t count;
};

void CopyArray(const Arrays& x) { std::memcpy(x.a, x.b, x.count * sizeof(float)); }

void SumArrays(const Arrays& x) {
  for (size_t i = 0; i < x.count; ++i) x.a[i] = x.b[i] + x.c[i];
}

void SumArraysPastCache(const Arrays& x) {
#if defined(__SSE2__)
  for (size_t i = 0; i + 4 <= x.count; i += 4)
    _mm_stream_ps(x.a + i, _mm_add_ps(_mm_load_ps(x.b + i), _mm_load_ps(x.c + i)));
#else
  SumArrays(x);
#endif
}

class MemoryBandwidth {
 public:
  // Touches `bytes` of memory in all.
  explicit MemoryBandwidth(int64_t bytes)
      : count_(static_cast<size_t>(bytes) / sizeof(float) / 16 * 16),
        memory_(static_cast<float*>(std::aligned_alloc(64, count_ * sizeof(float))), std::free) {
    std::fill_n(memory_.get(), count_, 1.0f);
  }

  // Bytes a second, the best kernel of one round.
  double Measure(size_t num_threads) const {
    return std::max({Run(CopyArray, 2, num_threads), Run(SumArrays, 3, num_threads),
                     Run(SumArraysPastCache, 3, num_threads)});
  }

 private:
  double Run(void (*kernel)(const Arrays&), int arrays_moved, size_t num_threads) const {
    const size_t each = count_ / (kArrays * num_threads) / 16 * 16;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < num_threads; ++t) {
      float* first = memory_.get() + t * kArrays * each;
      threads.emplace_back(kernel, Arrays{first, first + each, first + 2 * each, each});
    }
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return static_cast<double>(each * num_threads * sizeof(float)) * arrays_moved / taken.count();
  }

  size_t count_;
  std::unique_ptr<float, void (*)(void*)> memory_;
};

// --- Plans
// ----------------------------------------------------------------------------------------

// Bytes that all ranks read and write for a size M that all units divide.
double BytesMoved(const Plan& plan, double size_bytes) {
  double units = 0;
  for (const RankPlan& rank : plan.ranks)
    for (const Stream& stream : rank.streams)
      for (const Instruction& instruction : stream.instructions) {
        const auto count = static_cast<double>(instruction.count);
        if (instruction.op == OpCode::kRecvReduce) units += 3 * count;
        if (instruction.op == OpCode::kRecv || instruction.op == OpCode::kCopy) units += 2 * count;
      }
  return units / plan.units_per_shard * size_bytes / plan.collective.num_shards();
}

Result<Plan> MakeAllReduce(const char* network, const char* algorithm) {
  const Result<Topology> topology = ParseTopology(network);
  if (!topology) return tl::unexpected(topology.error());
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  Collective::Options options;
  options.all_reduce_shards = (*synthesizer)->one_shard_all_reduce ? 1 : 0;
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllReduce, topology->num_ranks(), options);
  if (!collective) return tl::unexpected(collective.error());
  const Result<Schedule> schedule =
      RunSynthesizer(**synthesizer, *topology, *collective, SynthOptions());
  if (!schedule) return tl::unexpected(schedule.error());
  return Lower(*topology, *schedule);
}

// True when the figure is reached.
bool Compare(const char* network, const char* algorithm, int64_t size_bytes, int rounds) {
  const Result<Plan> plan = MakeAllReduce(network, algorithm);
  if (!plan) {
    fmt::print("{} {}: {}\n", network, algorithm, plan.error().message);
    return false;
  }
  const auto ranks = static_cast<int64_t>(plan->ranks.size());
  const MemoryBandwidth memory(2 * ranks * size_bytes);
  double bandwidth = 0, algbw = 0;
  int64_t wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    bandwidth = std::max({bandwidth, memory.Measure(std::thread::hardware_concurrency()),
                          memory.Measure(static_cast<size_t>(ranks))});
    RunOptions options;
    options.size_bytes = size_bytes;
    options.warmup = 1;
    options.iterations = 5;
    options.check = round == 0;
    const Result<RunReport> report = RunPlan(*plan, options);
    if (!report) {
      fmt::print("{} {}: {}\n", network, algorithm, report.error().message);
      return false;
    }
    algbw = std::max(algbw, report->algbw);
    if (options.check) wrong += report->wrong;
  }
  const double moved = BytesMoved(*plan, static_cast<double>(size_bytes));
  const double limit = static_cast<double>(size_bytes) / (moved / bandwidth);
  fmt::print("{:<14} {:<8} {:>10} {:>12.1f} {:>12.2f} {:>12.3f} {:>12.3f} {:>7.2f} {:>6}\n",
             network, algorithm, size_bytes, moved / 1e6, bandwidth / 1e9, limit / 1e9, algbw / 1e9,
             algbw / limit, wrong);
  return wrong == 0 && algbw >= limit / 2;
}

int Main(int argc, char** argv) {
  const int64_t size_bytes = argc > 1 ? std::atoll(argv[1]) : int64_t{64} << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  fmt::print("{:<14} {:<8} {:>10} {:>12} {:>12} {:>12} {:>12} {:>7} {:>6}\n", "network",
             "algorithm", "size(B)", "moved(MB)", "memory(GB/s)", "limit(GB/s)", "algbw(GB/s)",
             "ratio", "wrong");
  bool reached = true;
  for (const auto& [network, algorithm] :
       {std::pair("ring(8)", "ring"), std::pair("hypercube(3)", "bfb"),
        std::pair("hypercube(3)", "rhd"), std::pair("complete(8)", "direct")})
    reached = Compare(network, algorithm, size_bytes, rounds) && reached;
  return reached ? 0 : 1;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
