// Collectives as a program gets them that preloads the drop-in library, beside the MPI library's own, in one
// run:
//   mpirun -np 4 build/release/bin/preloaded-openmpi [most bytes] [rounds] [collective]
// Linked before the MPI library against what programs preload, so that MPI_ calls go the way of any
// program's; PMPI_ calls are the MPI library's own. Before a size is measured calls are made for a third of
// a second, in which `auto` decides. Then both take turns, `rounds` times each; a time is the median of the
// rounds, of the slowest rank. A row has the bytes of the whole buffer, both times and MPI's / Tutti's.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {

struct Data {
  std::vector<int> send, receive;
  int all = 0, block = 0;  // elements, and those of one rank's block
};

struct PreloadedRow {
  const char* name;
  std::function<void(Data&)> native, preloaded;
};

#define TUTTI_ROW(name, Function, ...)                                         \
  {                                                                            \
    name, [](Data& d) { static_cast<void>(d), PMPI_##Function(__VA_ARGS__); }, \
        [](Data& d) { static_cast<void>(d), MPI_##Function(__VA_ARGS__); }     \
  }

const std::vector<PreloadedRow>& PreloadedRows() {
  static const std::vector<PreloadedRow> rows = {
      TUTTI_ROW("allreduce", Allreduce, d.send.data(), d.receive.data(), d.all, MPI_INT, MPI_SUM,
                MPI_COMM_WORLD),
      TUTTI_ROW("reduce_scatter", Reduce_scatter_block, d.send.data(), d.receive.data(), d.block,
                MPI_INT, MPI_SUM, MPI_COMM_WORLD),
      TUTTI_ROW("reduce", Reduce, d.send.data(), d.receive.data(), d.all, MPI_INT, MPI_SUM, 0,
                MPI_COMM_WORLD),
      TUTTI_ROW("allgather", Allgather, d.send.data(), d.block, MPI_INT, d.receive.data(), d.block,
                MPI_INT, MPI_COMM_WORLD),
      TUTTI_ROW("bcast", Bcast, d.send.data(), d.all, MPI_INT, 0, MPI_COMM_WORLD),
      TUTTI_ROW("gather", Gather, d.send.data(), d.block, MPI_INT, d.receive.data(), d.block,
                MPI_INT, 0, MPI_COMM_WORLD),
      TUTTI_ROW("scatter", Scatter, d.send.data(), d.block, MPI_INT, d.receive.data(), d.block,
                MPI_INT, 0, MPI_COMM_WORLD),
      TUTTI_ROW("barrier", Barrier, MPI_COMM_WORLD),
  };
  return rows;
}

// Seconds of one call, of the slowest rank.
double SecondsOf(int calls, Data& data, const std::function<void(Data&)>& call) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begin = PMPI_Wtime();
  for (int i = 0; i < calls; ++i) call(data);
  double mine = (PMPI_Wtime() - begin) / calls, slowest = 0;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double MedianOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int64_t most = argc > 1 ? std::atoll(argv[1]) : int64_t{16} << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  constexpr double kDecidingSeconds = 0.3, kRoundSeconds = 0.01;
  if (rank == 0) {
    std::printf("%-15s %10s %12s %12s %8s\n", "collective", "bytes", "MPI us", "Tutti us", "ratio");
  }
  for (const PreloadedRow& row : PreloadedRows()) {
    if (argc > 3 && std::strcmp(argv[3], row.name) != 0) continue;
    for (int64_t bytes = 8; bytes <= most; bytes *= 16) {
      if (bytes > 8 && row.name == PreloadedRows().back().name) break;
      Data data;
      data.block = static_cast<int>(std::max<int64_t>(1, bytes / 4 / ranks));
      data.all = std::max(static_cast<int>(bytes / 4), data.block * ranks);
      data.send.assign(static_cast<size_t>(data.all), rank + 1);
      data.receive.assign(static_cast<size_t>(data.all), 0);
      SecondsOf(2, data, row.native);
      const double native_s = SecondsOf(3, data, row.native);
      const auto calls_in = [&](double seconds, int least, int at_most) {
        return std::clamp(static_cast<int>(seconds / native_s), least, at_most);
      };
      SecondsOf(calls_in(kDecidingSeconds, 40, 100000), data, row.preloaded);
      const int calls = calls_in(kRoundSeconds, 2, 20000);
      std::vector<double> native, preloaded;
      for (int round = 0; round < rounds; ++round) {
        native.push_back(SecondsOf(calls, data, row.native));
        preloaded.push_back(SecondsOf(calls, data, row.preloaded));
      }
      if (rank != 0) continue;
      std::printf("%-15s %10lld %12.2f %12.2f %8.2f\n", row.name, static_cast<long long>(bytes),
                  MedianOf(native) * 1e6, MedianOf(preloaded) * 1e6,
                  MedianOf(native) / MedianOf(preloaded));
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
