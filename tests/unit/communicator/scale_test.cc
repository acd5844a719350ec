// As many ranks as large machines have, as threads of a few processes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "ranks_in_threads.h"
#include "support/quiet_fork.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

// The descriptors of this process that are connected TCP sockets, of which there are two ends each.
size_t Sockets() {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(file.path(), error);
    if (!error && target.string().rfind("socket:", 0) == 0) ++count;
  }
  return count;
}

// Ranks [first, first + count), each in a thread; exit code 0: all sums were right.
int RunPart(const UniqueId& id, int32_t num_ranks, int32_t first, int32_t count, int32_t degree,
            const std::string& folder) {
  std::atomic<int32_t> right{0}, done{0};
  std::atomic<size_t> sockets{0};
  std::vector<std::thread> threads;
  for (int32_t rank = first; rank < first + count; ++rank)
    threads.emplace_back([&, rank] {
      Result<Communicator> ranks = Communicator::Join(
          id, num_ranks, rank,
          {.timeout_s = 500, .silence_s = 100, .schedules = folder, .shared_memory = false});
      if (!ranks) {
        fprintf(stderr, "%s\n", ranks.error().message.c_str());
        ++done;
        return;
      }
      constexpr int64_t kCount = 4096;
      std::vector<int64_t> data(kCount);
      for (int64_t i = 0; i < kCount; ++i) data[static_cast<size_t>(i)] = rank + i;
      const Status ran =
          ranks->AllReduce(data.data(), data.data(), kCount, DataType::kInt64, ReduceOp::kSum);
      if (!ran) fprintf(stderr, "rank %d: %s\n", rank, ran.error().message.c_str());
      bool all = ran.has_value();
      for (int64_t i = 0; i < kCount; ++i)
        all = all && data[static_cast<size_t>(i)] ==
                         int64_t{num_ranks} * (num_ranks - 1) / 2 + num_ranks * i;
      if (all) ++right;
      if (++done == count) sockets = Sockets();
      // All connections are there when they are counted.
      while (done < count) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (ran) static_cast<void>(ranks->Barrier());
    });
  for (std::thread& thread : threads) thread.join();
  // Of each rank: to the root, the listener, to each neighbour and from each.
  const auto most = static_cast<size_t>(count * (2 + 2 * degree));
  if (sockets > most + static_cast<size_t>(num_ranks) + 8)
    fprintf(stderr, "%zu sockets, wanted %zu\n", sockets.load(), most);
  return right == count && sockets <= most + static_cast<size_t>(num_ranks) + 8 ? 0 : 1;
}

void RunTorus(const char* network, const char* algorithm, int32_t degree, int32_t processes) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const Topology topology = ParseTopology(network).value();
  const int32_t num_ranks = topology.num_ranks();
  const Collective collective = Collective::Make(CollectiveKind::kAllReduce, num_ranks).value();
  const Schedule schedule =
      RunSynthesizer(*FindSynthesizer(algorithm).value(), topology, collective, {}).value();
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("tutti_scale_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(Succeeded(WriteScheduleFile((folder / "torus.sched").string(), topology, schedule)));
  const UniqueId id = MakeUniqueId().value();
  std::vector<pid_t> children;
  for (int32_t part = 0; part < processes; ++part) {
    const int32_t first = num_ranks * part / processes;
    const int32_t count = num_ranks * (part + 1) / processes - first;
    const pid_t child = test_support::QuietFork();
    if (child == 0) _exit(RunPart(id, num_ranks, first, count, degree, folder.string()));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::filesystem::remove_all(folder);
}

TEST(CommunicatorScaleTest, ATorusOfSixtyFourRanks) { RunTorus("torus(4,4,4)", "bfb", 6, 2); }
TEST(CommunicatorScaleByHand, ATorusOfAThousandRanks) { RunTorus("torus(10,10,10)", "bfb", 6, 4); }

}  // namespace
}  // namespace tutti
