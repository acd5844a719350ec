// How long the ranks of a communicator take to be ready over loopback TCP, from the unique id to the end of a first
// barrier, as processes and as threads:
//   build/release/bin/ready_ranks [ranks] [rounds]
// A time is that of the slowest rank; printed are all rounds and their median.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "tutti/communicator.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Slowest {
  std::atomic<int64_t> join_ns{0}, barrier_ns{0};
  std::atomic<int> failed{0};
};

void Raise(std::atomic<int64_t>& most, Clock::time_point since) {
  const int64_t ns = std::chrono::nanoseconds(Clock::now() - since).count();
  for (int64_t seen = most; seen < ns && !most.compare_exchange_weak(seen, ns);) continue;
}

void RunRank(const tutti::UniqueId& id, int ranks, int rank, Clock::time_point begin,
             Slowest& slowest) {
  auto joined = tutti::Communicator::Join(id, ranks, rank, {.shared_memory = false});
  if (!joined) {
    std::fprintf(stderr, "%s\n", joined.error().message.c_str());
    ++slowest.failed;
    return;
  }
  Raise(slowest.join_ns, begin);
  if (!joined->Barrier()) ++slowest.failed;
  Raise(slowest.barrier_ns, begin);
  // Who leaves early must not look like a failure to the others.
  if (!joined->Barrier()) ++slowest.failed;
}

void RunRound(int ranks, bool processes, Slowest& slowest) {
  const tutti::UniqueId id = tutti::MakeUniqueId().value();
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!processes) {
      threads.emplace_back([&, rank] { RunRank(id, ranks, rank, begin, slowest); });
    } else if (fork() == 0) {
      RunRank(id, ranks, rank, begin, slowest);
      _exit(0);
    }
  }
  for (std::thread& thread : threads) thread.join();
  while (processes && wait(nullptr) > 0) continue;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 64;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  setenv("TUTTI_HOST", "127.0.0.1", 1);
  int failed = 0;
  for (const bool processes : {true, false}) {
    std::vector<int64_t> ready;
    for (int round = 0; round < rounds; ++round) {
      auto* slowest = new (mmap(nullptr, sizeof(Slowest), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Slowest();
      RunRound(ranks, processes, *slowest);
      failed += slowest->failed;
      ready.push_back(slowest->barrier_ns);
      std::printf("%d %s: joined %.1f ms, first barrier %.1f ms\n", ranks,
                  processes ? "processes" : "threads", static_cast<double>(slowest->join_ns) * 1e-6,
                  static_cast<double>(slowest->barrier_ns) * 1e-6);
    }
    std::sort(ready.begin(), ready.end());
    std::printf("%d %s: ready in %.1f ms (median of %d)\n", ranks,
                processes ? "processes" : "threads",
                static_cast<double>(ready[ready.size() / 2]) * 1e-6, rounds);
  }
  return failed == 0 ? 0 : 1;
}
