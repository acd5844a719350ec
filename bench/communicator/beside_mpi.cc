// Collectives of a Tutti communicator beside those of the MPI library that started it, in one run:
//   mpirun -np 4 build/release/bin/beside_mpi-openmpi [most bytes] [rounds]
// Both are run in turn, `rounds` times each; a time is the median of the rounds, of the slowest rank. Every
// result of Tutti's is compared with MPI's. A row has the bytes of the whole buffer (of one rank's block
// times the ranks), both times and MPI's / Tutti's.

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace {

using tutti::Communicator;
using tutti::DataType;
using tutti::ReduceOp;

struct Buffers {
  std::vector<float> input, mpi, tutti;
};

struct Row {
  const char* name;
  bool by_blocks;  // the count is of one rank's block
  std::function<void(Buffers&, int)> mpi;
  std::function<tutti::Status(Communicator&, Buffers&, int)> tutti;
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> kRows = {
      {"all-reduce", false,
       [](Buffers& b, int n) {
         MPI_Allreduce(b.input.data(), b.mpi.data(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
       },
       [](Communicator& ranks, Buffers& b, int n) {
         return ranks.AllReduce(b.input.data(), b.tutti.data(), n, DataType::kFloat32,
                                ReduceOp::kSum);
       }},
      {"all-gather", true,
       [](Buffers& b, int n) {
         MPI_Allgather(b.input.data(), n, MPI_FLOAT, b.mpi.data(), n, MPI_FLOAT, MPI_COMM_WORLD);
       },
       [](Communicator& ranks, Buffers& b, int n) {
         return ranks.AllGather(b.input.data(), b.tutti.data(), n, DataType::kFloat32);
       }},
      {"reduce-scatter", true,
       [](Buffers& b, int n) {
         MPI_Reduce_scatter_block(b.input.data(), b.mpi.data(), n, MPI_FLOAT, MPI_SUM,
                                  MPI_COMM_WORLD);
       },
       [](Communicator& ranks, Buffers& b, int n) {
         return ranks.ReduceScatter(b.input.data(), b.tutti.data(), n, DataType::kFloat32,
                                    ReduceOp::kSum);
       }},
      {"broadcast", false,
       [](Buffers& b, int n) { MPI_Bcast(b.mpi.data(), n, MPI_FLOAT, 0, MPI_COMM_WORLD); },
       [](Communicator& ranks, Buffers& b, int n) {
         return ranks.Broadcast(b.tutti.data(), b.tutti.data(), n, DataType::kFloat32, 0);
       }},
      {"all-to-all", true,
       [](Buffers& b, int n) {
         MPI_Alltoall(b.input.data(), n, MPI_FLOAT, b.mpi.data(), n, MPI_FLOAT, MPI_COMM_WORLD);
       },
       [](Communicator& ranks, Buffers& b, int n) {
         return ranks.AllToAll(b.input.data(), b.tutti.data(), n, DataType::kFloat32);
       }},
  };
  return kRows;
}

// Seconds of one call, of the slowest rank.
template <class Call>
double TimeOf(int iterations, Call call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) call();
  double mine = (MPI_Wtime() - begin) / iterations, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

Communicator Join(int rank, int num_ranks) {
  tutti::UniqueId id;
  if (rank == 0) {
    const auto made = tutti::MakeUniqueId();
    if (!made) Stop(made.error().message);
    id = *made;
  }
  MPI_Bcast(id.bytes.data(), static_cast<int>(id.bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  auto joined = Communicator::Join(id, num_ranks, rank);
  if (!joined) Stop(joined.error().message);
  return std::move(*joined);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const int64_t most = argc > 1 ? std::atoll(argv[1]) : int64_t{16} << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  {
    Communicator ranks = Join(rank, num_ranks);
    if (rank == 0)
      std::printf("%-15s %10s %12s %12s %8s   schedule\n", "collective", "bytes", "MPI us",
                  "Tutti us", "ratio");
    for (const Row& row : Rows())
      for (int64_t bytes = 8; bytes <= most; bytes *= bytes < 1024 ? 8 : 4) {
        const int64_t floats = bytes / 4;
        const auto n =
            static_cast<int>(row.by_blocks ? std::max<int64_t>(1, floats / num_ranks) : floats);
        const auto all = static_cast<size_t>(row.by_blocks ? n * num_ranks : n);
        Buffers buffers{std::vector<float>(all), std::vector<float>(all), std::vector<float>(all)};
        for (size_t i = 0; i < all; ++i)
          buffers.input[i] = static_cast<float>((static_cast<int>(i) + rank * 7) % 64);
        if (rank == 0) buffers.mpi = buffers.tutti = buffers.input;
        const auto run_mpi = [&] { row.mpi(buffers, n); };
        const auto run_tutti = [&] {
          if (const auto ran = row.tutti(ranks, buffers, n); !ran) Stop(ran.error().message);
        };
        const int iterations = static_cast<int>(
            std::clamp<int64_t>((int64_t{32} << 20) / std::max<int64_t>(bytes, 1), 3, 2000));
        std::vector<double> mpi, tutti;
        TimeOf(2, run_mpi);
        TimeOf(2, run_tutti);
        for (int round = 0; round < rounds; ++round) {
          mpi.push_back(TimeOf(iterations, run_mpi));
          tutti.push_back(TimeOf(iterations, run_tutti));
        }
        if (buffers.mpi != buffers.tutti) Stop(std::string(row.name) + ": the results differ");
        const tutti::CollectiveKind kind = tutti::ParseCollectiveKind(row.name).value();
        if (rank == 0)
          std::printf("%-15s %10lld %12.2f %12.2f %8.2f   %s\n", row.name,
                      static_cast<long long>(all * 4), Median(mpi) * 1e6, Median(tutti) * 1e6,
                      Median(mpi) / Median(tutti),
                      ranks.ScheduleFor(kind, n, DataType::kFloat32).value_or("").c_str());
      }
  }
  MPI_Finalize();
  return 0;
}
