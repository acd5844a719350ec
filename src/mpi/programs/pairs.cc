// What: `auto` against the MPI library's own in one run: pairs of batches of calls, one of each
// taking turns in going first, on a fresh communicator for each size of blocks, so that all that
// `auto` spends on trying is counted. Each pair has a second batch of the library's own, which says
// how well a ratio can be measured here.
// Output: one line a size: the median over the pairs of (auto / own) and of (own / own), the ratio
// of all calls together, the medians of both, and what `auto` settled on. Times are of the slowest
// rank.
//
//   mpirun -np 8 tutti-mpi-pairs-openmpi [pairs [calls a batch [sizes...]]]
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include "programs/workload.h"
#include "served.h"

namespace {

using tutti::alltoallv::Algorithm;
using tutti::alltoallv::Method;
using tutti::mpi::MedianOf;
using tutti::mpi::TimeCalls;

}  // namespace

int main(int argc, char** argv) {
  auto [rank, size, pairs, calls, sizes] = tutti::mpi::Start(argc, argv, {40, 1}, {10, 1}, 0);
  if (sizes.empty()) sizes = {16, 64, 256, 1024, 4096, 16384, 65536};
  if (rank == 0) {
    std::printf("%d ranks, %d pairs of %d calls\n%8s %8s %8s %8s %12s %12s  %s\n", size, pairs,
                calls, "block", "auto/own", "own/own", "all", "own us", "auto us", "auto took");
  }
  const Algorithm own{.method = Method::kMpi}, chosen{.method = Method::kAuto};
  for (const int most : sizes) {
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    tutti::mpi::Workload workload(rank, size, most);
    TimeCalls(workload, own, calls, communicator);  // opens connections
    std::vector<double> ratios, noise, own_s, auto_s;
    double own_all = 0, auto_all = 0;
    for (int pair = 0; pair < pairs; ++pair) {
      const bool own_first = pair % 2 == 0;
      const double first = TimeCalls(workload, own_first ? own : chosen, calls, communicator);
      const double second = TimeCalls(workload, own_first ? chosen : own, calls, communicator);
      own_s.push_back(own_first ? first : second);
      auto_s.push_back(own_first ? second : first);
      own_all += own_s.back();
      auto_all += auto_s.back();
      ratios.push_back(auto_s.back() / own_s.back());
      noise.push_back(TimeCalls(workload, own, calls, communicator) / own_s.back());
    }
    TimeCalls(workload, chosen, 1, communicator);
    if (rank == 0) {
      const std::string name = ToString(tutti::mpi::LatestServed().algorithm);
      std::printf("%8d %8.3f %8.3f %8.3f %12.2f %12.2f  %s\n", most, MedianOf(ratios),
                  MedianOf(noise), auto_all / own_all, MedianOf(own_s) / calls * 1e6,
                  MedianOf(auto_s) / calls * 1e6, name.c_str());
      std::fflush(stdout);
    }
    MPI_Comm_free(&communicator);
  }
  MPI_Finalize();
  return 0;
}
