// `auto` against the native algorithm in one run: pairs of batches of calls, one of each taking
// turns in going first, on a fresh communicator for each size of blocks, so that all that `auto`
// spends on trying is counted. Each pair has a second batch of the native algorithm, which says how
// well a ratio can be measured here.
//
// Output      One line a size: the median over the pairs of (auto / own) and of (own / own), the
//             ratio of all calls together, the medians of both, and what `auto` settled on. Times
//             are of the slowest rank.
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
  const Algorithm native{.method = Method::kMpi}, chosen{.method = Method::kAuto};
  for (const int most : sizes) {
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    tutti::mpi::Workload workload(rank, size, most);
    TimeCalls(workload, native, calls, communicator);  // opens connections
    std::vector<double> ratios, noise, native_s, auto_s;
    double native_all = 0, auto_all = 0;
    for (int pair = 0; pair < pairs; ++pair) {
      const bool native_first = pair % 2 == 0;
      const double first = TimeCalls(workload, native_first ? native : chosen, calls, communicator);
      const double second =
          TimeCalls(workload, native_first ? chosen : native, calls, communicator);
      native_s.push_back(native_first ? first : second);
      auto_s.push_back(native_first ? second : first);
      native_all += native_s.back();
      auto_all += auto_s.back();
      ratios.push_back(auto_s.back() / native_s.back());
      noise.push_back(TimeCalls(workload, native, calls, communicator) / native_s.back());
    }
    TimeCalls(workload, chosen, 1, communicator);
    if (rank == 0) {
      const std::string name = ToString(tutti::mpi::LatestServed().algorithm);
      std::printf("%8d %8.3f %8.3f %8.3f %12.2f %12.2f  %s\n", most, MedianOf(ratios),
                  MedianOf(noise), auto_all / native_all, MedianOf(native_s) / calls * 1e6,
                  MedianOf(auto_s) / calls * 1e6, name.c_str());
      std::fflush(stdout);
    }
    MPI_Comm_free(&communicator);
  }
  MPI_Finalize();
  return 0;
}
