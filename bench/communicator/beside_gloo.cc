// Collectives of a Tutti communicator over loopback TCP beside those of Gloo, in one run, and a third time through
// shared memory, which Gloo has not:
//   build/release/bin/beside_gloo [ranks] [most bytes] [rounds] [collective]
// Ranks are processes. All three are run in turn, `rounds` times each; a time is the median of the rounds, of the
// slowest rank, and the results of the first round are compared. Gloo's all-reduce is the faster of its ring and
// its bcube, its reduce-scatter the class of its older interface, which works in place.
// A row has the bytes of the whole buffer, three times and Gloo's / Tutti's over TCP.

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace {

using tutti::Communicator;
using tutti::DataType;
using tutti::ReduceOp;
using Clock = std::chrono::steady_clock;

constexpr int kMaxRanks = 64;

// Between the processes: where they meet, and how long each took.
struct Board {
  std::atomic<uint32_t> arrived{0}, generation{0};
  std::array<double, kMaxRanks> seconds{};
};

[[noreturn]] void Stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  _exit(1);
}

void Meet(Board& board, int ranks) {
  const uint32_t generation = board.generation.load();
  if (board.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(ranks)) {
    board.arrived = 0;
    board.generation.fetch_add(1);
    return;
  }
  while (board.generation.load() == generation) sched_yield();
}

// Seconds of one call, of the slowest rank.
double TimeOf(Board& board, int rank, int ranks, int iterations,
              const std::function<void()>& call) {
  Meet(board, ranks);
  const auto begin = Clock::now();
  for (int i = 0; i < iterations; ++i) call();
  board.seconds[static_cast<size_t>(rank)] =
      std::chrono::duration<double>(Clock::now() - begin).count() / iterations;
  Meet(board, ranks);
  return *std::max_element(board.seconds.begin(), board.seconds.begin() + ranks);
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Buffers {
  std::vector<float> input, gloo, tutti;
};

struct Ranks {
  std::shared_ptr<gloo::Context> gloo;
  Communicator* tcp = nullptr;
  int rank = 0, count = 1;
};

struct Row {
  const char* name;
  bool by_blocks;  // the count is of one rank's block
  // One or more ways of Gloo's to do it; what each call does.
  std::function<std::vector<std::function<void()>>(const Ranks&, Buffers&, size_t)> gloo;
  std::function<tutti::Status(Communicator&, Buffers&, int64_t)> tutti;
};

void Add(void* to, const void* a, const void* b, size_t count) {
  gloo::sum<float>(to, a, b, count);
}

std::vector<Row> Rows() {
  using Calls = std::vector<std::function<void()>>;
  return {
      {"all-reduce", false,
       [](const Ranks& ranks, Buffers& b, size_t n) {
         Calls calls;
         for (const auto algorithm :
              {gloo::AllreduceOptions::Algorithm::RING, gloo::AllreduceOptions::Algorithm::BCUBE}) {
           auto options = std::make_shared<gloo::AllreduceOptions>(ranks.gloo);
           options->setAlgorithm(algorithm);
           options->setInput(b.input.data(), n);
           options->setOutput(b.gloo.data(), n);
           options->setReduceFunction(Add);
           calls.emplace_back([options] { gloo::allreduce(*options); });
         }
         return calls;
       },
       [](Communicator& ranks, Buffers& b, int64_t n) {
         return ranks.AllReduce(b.input.data(), b.tutti.data(), n, DataType::kFloat32,
                                ReduceOp::kSum);
       }},
      {"all-gather", true,
       [](const Ranks& ranks, Buffers& b, size_t n) {
         auto options = std::make_shared<gloo::AllgatherOptions>(ranks.gloo);
         options->setInput(b.input.data(), n);
         options->setOutput(b.gloo.data(), n * static_cast<size_t>(ranks.count));
         return Calls{[options] { gloo::allgather(*options); }};
       },
       [](Communicator& ranks, Buffers& b, int64_t n) {
         return ranks.AllGather(b.input.data(), b.tutti.data(), n, DataType::kFloat32);
       }},
      {"reduce-scatter", true,
       [](const Ranks& ranks, Buffers& b, size_t n) {
         b.gloo = b.input;
         auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
             ranks.gloo, std::vector<float*>{b.gloo.data()},
             static_cast<int>(n * static_cast<size_t>(ranks.count)),
             std::vector<int>(static_cast<size_t>(ranks.count), static_cast<int>(n)));
         return Calls{[algorithm] { algorithm->run(); }};
       },
       [](Communicator& ranks, Buffers& b, int64_t n) {
         return ranks.ReduceScatter(b.input.data(), b.tutti.data(), n, DataType::kFloat32,
                                    ReduceOp::kSum);
       }},
      {"broadcast", false,
       [](const Ranks& ranks, Buffers& b, size_t n) {
         auto options = std::make_shared<gloo::BroadcastOptions>(ranks.gloo);
         options->setOutput(b.gloo.data(), n);
         options->setRoot(0);
         return Calls{[options] { gloo::broadcast(*options); }};
       },
       [](Communicator& ranks, Buffers& b, int64_t n) {
         return ranks.Broadcast(b.tutti.data(), b.tutti.data(), n, DataType::kFloat32, 0);
       }},
      {"all-to-all", true,
       [](const Ranks& ranks, Buffers& b, size_t n) {
         auto options = std::make_shared<gloo::AlltoallOptions>(ranks.gloo);
         options->setInput(b.input.data(), n * static_cast<size_t>(ranks.count));
         options->setOutput(b.gloo.data(), n * static_cast<size_t>(ranks.count));
         return Calls{[options] { gloo::alltoall(*options); }};
       },
       [](Communicator& ranks, Buffers& b, int64_t n) {
         return ranks.AllToAll(b.input.data(), b.tutti.data(), n, DataType::kFloat32);
       }},
  };
}

void RunRank(int rank, int count, Board& board, const std::string& folder,
             const std::array<tutti::UniqueId, 2>& ids, int64_t most, int rounds,
             const std::string& only) {
  gloo::transport::tcp::attr address;
  address.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(address);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, count);
  context->connectFullMesh(store, device);
  auto tcp = Communicator::Join(ids[0], count, rank, {.shared_memory = false});
  auto shared = Communicator::Join(ids[1], count, rank);
  if (!tcp || !shared) Stop("the ranks do not find each other");
  const Ranks ranks{context, &*tcp, rank, count};
  if (rank == 0)
    std::printf("%-15s %10s %12s %12s %8s %14s\n", "collective", "bytes", "Gloo us", "Tutti us",
                "ratio", "in memory us");
  for (const Row& row : Rows())
    for (int64_t bytes = 64; bytes <= most; bytes *= bytes < 1024 ? 8 : 4) {
      if (!only.empty() && only != row.name) continue;
      const int64_t floats = bytes / 4;
      const int64_t n = row.by_blocks ? std::max<int64_t>(1, floats / count) : floats;
      const auto all = static_cast<size_t>(row.by_blocks ? n * count : n);
      Buffers buffers{std::vector<float>(all), std::vector<float>(all), std::vector<float>(all)};
      for (size_t i = 0; i < all; ++i)
        buffers.input[i] = static_cast<float>((static_cast<int>(i) + rank * 7) % 64);
      if (rank == 0) buffers.gloo = buffers.tutti = buffers.input;
      const auto by_gloo = row.gloo(ranks, buffers, static_cast<size_t>(n));
      const auto run = [&](Communicator& by) {
        if (const auto ran = row.tutti(by, buffers, n); !ran) Stop(ran.error().message);
      };
      // The first of each, compared; a reduce-scatter's result is what is at the front.
      run(*tcp);
      const size_t compared =
          row.name == std::string("reduce-scatter") ? static_cast<size_t>(n) : all;
      for (const auto& call : by_gloo) {
        call();
        if (!std::equal(buffers.gloo.begin(), buffers.gloo.begin() + static_cast<int64_t>(compared),
                        buffers.tutti.begin()))
          Stop(std::string(row.name) + ": the results differ");
      }
      const int iterations = static_cast<int>(
          std::clamp<int64_t>((int64_t{16} << 20) / std::max<int64_t>(bytes, 1), 2, 300));
      std::vector<std::vector<double>> gloo(by_gloo.size());
      std::vector<double> over_tcp, in_memory;
      for (int round = 0; round < rounds; ++round) {
        for (size_t way = 0; way < by_gloo.size(); ++way)
          gloo[way].push_back(TimeOf(board, rank, count, iterations, by_gloo[way]));
        over_tcp.push_back(TimeOf(board, rank, count, iterations, [&] { run(*tcp); }));
        in_memory.push_back(TimeOf(board, rank, count, iterations, [&] { run(*shared); }));
      }
      double best = Median(gloo[0]);
      for (const auto& times : gloo) best = std::min(best, Median(times));
      if (rank == 0) {
        std::printf("%-15s %10zu %12.2f %12.2f %8.2f %14.2f\n", row.name, all * 4, best * 1e6,
                    Median(over_tcp) * 1e6, best / Median(over_tcp), Median(in_memory) * 1e6);
        std::fflush(stdout);
      }
      Meet(board, count);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int64_t most = argc > 2 ? std::atoll(argv[2]) : int64_t{16} << 20;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const std::string only = argc > 4 ? argv[4] : "";
  if (ranks < 2 || ranks > kMaxRanks) Stop("2 to 64 ranks");
  auto* board =
      new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Board();
  std::string folder = std::filesystem::temp_directory_path() / "beside_gloo_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) Stop("no temporary folder");
  setenv("TUTTI_HOST", "127.0.0.1", 1);
  std::array<tutti::UniqueId, 2> ids;
  for (tutti::UniqueId& id : ids) {
    const auto made = tutti::MakeUniqueId();
    if (!made) Stop(made.error().message);
    id = *made;
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      RunRank(rank, ranks, *board, folder, ids, most, rounds, only);
      _exit(0);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    wait(&status);
    if (status == 0 || failed != 0) continue;
    // The others wait for who has gone.
    failed = 1;
    for (const pid_t child : children) kill(child, SIGKILL);
  }
  std::filesystem::remove_all(folder);
  return failed;
}
