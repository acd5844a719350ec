// What: `auto` against the MPI library's own in one run: pairs of batches of calls, one of each
// taking turns in going first, on a fresh communicator for each size of blocks, so that all that
// `auto` spends on trying is counted.
// Output: one line a size: the median over the pairs of (auto / own), the ratio of all calls
// together, the medians of both, and what `auto` settled on. Times are of the slowest rank.
//
//   mpirun -np 8 tutti-mpi-pairs-openmpi [pairs [calls a batch [sizes...]]]
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "served.h"
#include "tutti/mpi/alltoallv.h"

namespace {

using tutti::alltoallv::Algorithm;
using tutti::alltoallv::Method;

// Blocks of 0 to `most` bytes, the same on every run; what `from` sends to `to`.
int BlockBytes(int from, int to, int most) {
  std::uint64_t mixed = static_cast<std::uint64_t>(from) * 0x9e3779b97f4a7c15U +
                        static_cast<std::uint64_t>(to) * 0xbf58476d1ce4e5b9U;
  mixed ^= mixed >> 29;
  mixed *= 0x94d049bb133111ebU;
  return static_cast<int>((mixed >> 32) % (static_cast<std::uint64_t>(most) + 1));
}

struct Buffers {
  std::vector<int> send_counts, send_at, receive_counts, receive_at;
  std::vector<std::byte> send, receive;
};

Buffers Fill(int rank, int size, int most) {
  Buffers buffers;
  int send = 0, receive = 0;
  for (int peer = 0; peer < size; ++peer) {
    buffers.send_counts.push_back(BlockBytes(rank, peer, most));
    buffers.receive_counts.push_back(BlockBytes(peer, rank, most));
    buffers.send_at.push_back(send);
    buffers.receive_at.push_back(receive);
    send += buffers.send_counts.back();
    receive += buffers.receive_counts.back();
  }
  buffers.send.resize(static_cast<std::size_t>(send) + 1);
  buffers.receive.resize(static_cast<std::size_t>(receive) + 1);
  return buffers;
}

// Seconds of the slowest rank.
double Time(Buffers& buffers, const Algorithm& algorithm, int calls, MPI_Comm communicator) {
  MPI_Barrier(communicator);
  const double begin = MPI_Wtime();
  for (int call = 0; call < calls; ++call) {
    tutti::mpi::Alltoallv(buffers.send.data(), buffers.send_counts.data(), buffers.send_at.data(),
                          MPI_BYTE, buffers.receive.data(), buffers.receive_counts.data(),
                          buffers.receive_at.data(), MPI_BYTE, communicator, algorithm);
  }
  double seconds = MPI_Wtime() - begin, slowest = 0;
  MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, communicator);
  return slowest;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int pairs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  const int calls = argc > 2 ? std::max(1, std::atoi(argv[2])) : 10;
  std::vector<int> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::max(0, std::atoi(argv[i])));
  if (sizes.empty()) sizes = {16, 64, 256, 1024, 4096, 16384, 65536};
  if (rank == 0) {
    std::printf("%d ranks, %d pairs of %d calls\n%8s %8s %8s %12s %12s  %s\n", size, pairs, calls,
                "block", "median", "all", "own us", "auto us", "auto took");
  }
  const Algorithm own{.method = Method::kMpi}, chosen{.method = Method::kAuto};
  for (const int most : sizes) {
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    Buffers buffers = Fill(rank, size, most);
    Time(buffers, own, calls, communicator);  // opens connections
    std::vector<double> ratios, own_s, auto_s;
    double own_all = 0, auto_all = 0;
    for (int pair = 0; pair < pairs; ++pair) {
      const bool own_first = pair % 2 == 0;
      const double first = Time(buffers, own_first ? own : chosen, calls, communicator);
      const double second = Time(buffers, own_first ? chosen : own, calls, communicator);
      own_s.push_back(own_first ? first : second);
      auto_s.push_back(own_first ? second : first);
      own_all += own_s.back();
      auto_all += auto_s.back();
      ratios.push_back(auto_s.back() / own_s.back());
    }
    Time(buffers, chosen, 1, communicator);
    if (rank == 0) {
      const std::string name = ToString(tutti::mpi::LatestServed().algorithm);
      std::printf("%8d %8.3f %8.3f %12.2f %12.2f  %s\n", most, Median(ratios), auto_all / own_all,
                  Median(own_s) / calls * 1e6, Median(auto_s) / calls * 1e6, name.c_str());
      std::fflush(stdout);
    }
    MPI_Comm_free(&communicator);
  }
  MPI_Finalize();
  return 0;
}
