// Measures the all-to-all-v algorithms that the cost model finds worth it, for each size of blocks,
// beside the native algorithm: for `tutti mpi tune`, which runs it under mpirun and reads what it
// prints.
//
// Model       Blocks of 0 to S bytes, evenly spread. Batches of all algorithms of a size take
//             turns, so that what else the machine does meets all alike; a figure is the median
//             time of the native algorithm, times the median over the turns of the ratio to it, of
//             the slowest rank. After the first turns the slower half is left out. In a simulation,
//             where a call says all, more candidates of a method are taken.
// Output      "tutti-cluster RANKS NODES RANKS-OF-THE-LARGEST-NODE"; per size and algorithm
//             "tutti-time S ALGORITHM SECONDS-PREDICTED SECONDS"; "tutti-progress DONE OF".
//
//   mpirun -np 16 tutti-mpi-tune-openmpi TURNS CANDIDATES SIZE...
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "choice/learned.h"
#include "exchange/run.h"
#include "flavour.h"
#include "hierarchy/groups.h"
#include "programs/workload.h"
#include "tutti/tune/cost_model.h"

namespace {

using tutti::alltoallv::Algorithm;
using tutti::alltoallv::Method;
using tutti::tune::CostTables;
using tutti::tune::Prediction;

struct Entry {
  Prediction predicted;
  std::vector<double> seconds = {};
};

double MedianRatio(const Entry& entry, const Entry& native) {
  std::vector<double> ratios;
  for (size_t turn = 0; turn < entry.seconds.size(); ++turn) {
    ratios.push_back(entry.seconds[turn] / native.seconds[turn]);
  }
  return tutti::mpi::MedianOf(ratios);
}

// Enough calls that a batch takes some milliseconds, few enough that slow networks end. In a
// simulation one says all.
int CallsOf(double seconds) {
#ifdef TUTTI_MPI_SMPI
  static_cast<void>(seconds);
  return 1;
#else
  constexpr double kBatchSeconds = 2e-3;
  return std::clamp(static_cast<int>(kBatchSeconds / std::max(seconds, 1e-9)), 1, 20);
#endif
}

#ifdef TUTTI_MPI_SMPI
constexpr size_t kOfAMethod = 6;
#else
constexpr size_t kOfAMethod = 4;
#endif

void Turn(std::vector<Entry>& entries, tutti::mpi::Workload& workload, int calls) {
  for (Entry& entry : entries) {
    entry.seconds.push_back(
        tutti::mpi::TimeCalls(workload, entry.predicted.algorithm, calls, MPI_COMM_WORLD) / calls);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto started = tutti::mpi::Start(argc, argv, {10, 2}, {12, 1}, 1);
  const int rank = started.rank, size = started.size, turns = started.first;
  tutti::mpi::Groups groups;
  tutti::tune::TuningDatabase database;
  if (tutti::mpi::FindGroups(MPI_COMM_WORLD, &groups) != MPI_SUCCESS ||
      tutti::mpi::ShareTuningDatabase(MPI_COMM_WORLD, rank, &database) != MPI_SUCCESS) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const auto library = tutti::tune::ParseLibrary(tutti::mpi::FlavourName()).value();
  const auto model = database.models.find(library);
  const tutti::tune::Placement placement = tutti::tune::PlacementOf(NodesOf(groups));
  const CostTables tables(
      model == database.models.end() ? tutti::tune::DefaultModel(library) : model->second,
      placement);
  if (rank == 0) {
    std::printf("tutti-cluster %d %d %d\n", size, placement.nodes, placement.largest_node);
  }
  size_t done = 0;
  for (const int most : started.sizes) {
    const tutti::tune::BlockSizes sizes{.mean_bytes = most / 2.0,
                                        .largest_bytes = static_cast<double>(most)};
    const Algorithm native{.method = Method::kMpi};
    std::vector<Entry> entries = {{{native, tables.Seconds(native, sizes)}}};
    for (const Prediction& each :
         tables.Shortlist(sizes, static_cast<size_t>(started.second), kOfAMethod)) {
      if (tutti::mpi::CanRunExchange(each.algorithm.method)) entries.push_back({each});
    }
    tutti::mpi::Workload workload(rank, size, most);
    Turn(entries, workload, 1);  // opens connections, grows buffers
    for (Entry& entry : entries) entry.seconds.clear();
    const double once = tutti::mpi::TimeCalls(workload, native, 1, MPI_COMM_WORLD);
    const int calls = CallsOf(once);
    for (int turn = 0; turn < turns; ++turn) {
      Turn(entries, workload, calls);
      if (turn + 1 != std::max(1, turns / 3)) continue;
      // The same on all ranks: times are those of the slowest.
      const Entry first = entries.front();
      std::stable_sort(entries.begin() + 1, entries.end(), [&](const Entry& a, const Entry& b) {
        return MedianRatio(a, first) < MedianRatio(b, first);
      });
      entries.resize(
          std::max<size_t>(std::min<size_t>(entries.size(), 3), (entries.size() + 1) / 2));
    }
    ++done;
    if (rank != 0) continue;
    const double native_s = tutti::mpi::MedianOf(entries.front().seconds);
    for (const Entry& entry : entries) {
      const std::string name = ToString(entry.predicted.algorithm);
      std::printf("tutti-time %d %s %.6g %.6g\n", most, name.c_str(), entry.predicted.seconds,
                  native_s * MedianRatio(entry, entries.front()));
    }
    std::printf("tutti-progress %zu %zu\n", done, started.sizes.size());
    std::fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
