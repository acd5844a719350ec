// Measures what the cost model of `auto` is fitted to (tutti/tune/calibration.h), for `tutti mpi
// calibrate`, which runs it under mpirun and reads what it prints.
//
// Model       Ranks of a node in a ring, and the ranks with the same index on the next node in
//             another.
//               pair   rank 0 and its neighbour send a message to and fro, all others wait
//               all    every rank sends to the next of the ring and receives from the one before
//               burst  the same with several messages of one byte in flight
//               copy   blocks copied from one half of a MiB to the other, in no order
//             Every figure is the fastest of some batches, of the slowest rank: what is fitted is
//             the network, not what else ran. With TUTTI_RANKS_PER_NODE nodes are what that says
//             (simulation).
// Output      "tutti-cluster RANKS NODES RANKS-OF-THE-LARGEST-NODE", then where ranks have to take
//             turns on a core "tutti-crowded RANKS CORES" of the machine with the most ranks for
//             its cores, then "tutti-sample ..." lines and "tutti-progress DONE OF".
//
//   mpirun -np 16 tutti-mpi-probe-openmpi
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "copy.h"
#include "hierarchy/groups.h"
#include "tutti/tune/cost_model.h"

namespace {

// In a simulation every batch takes the same time; ranks leave a barrier one after the other, which
// runs in a batch make up for.
#ifdef TUTTI_MPI_SMPI
constexpr int kBatches = 1, kMaxRuns = 10;
#else
constexpr int kBatches = 7, kMaxRuns = 34;
#endif

struct Ring {
  int to = MPI_PROC_NULL, from = MPI_PROC_NULL;  // this rank's neighbours
  int senders = 0;                               // of the largest node
  bool is_pair = false;                          // this rank is one of the two that measure alone
  bool starts = false;
  int partner = MPI_PROC_NULL;
};

class Probe {
 public:
  int Run() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    tutti::mpi::Groups groups;
    if (const int error = tutti::mpi::FindGroups(MPI_COMM_WORLD, &groups)) return error;
    nodes_ = NodesOf(groups);
    const tutti::tune::Placement placement = tutti::tune::PlacementOf(nodes_);
    if (rank_ == 0) {
      std::printf("tutti-cluster %d %d %d\n", size_, placement.nodes, placement.largest_node);
    }
    if (const int error = PrintCrowd()) return error;
    const std::vector<int> bytes = {1, 64, 512, 2048, 8192, 32768, 262144};
    const bool has_inside = placement.largest_node > 1, has_between = placement.nodes > 1;
    const int paths = (has_inside ? 1 : 0) + (has_between ? 1 : 0);
    total_ = paths * (2 * static_cast<int>(bytes.size()) + 3) + 4;
    if (has_inside) Measure(InNode(), "inside", bytes);
    if (has_between) Measure(AcrossNodes(), "between", bytes);
    Copies();
    return MPI_SUCCESS;
  }

 private:
  // Counts machines, whatever nodes are said to be.
  int PrintCrowd() const {
#ifndef TUTTI_MPI_SMPI
    MPI_Comm machine = MPI_COMM_NULL;
    if (const int error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_,
                                              MPI_INFO_NULL, &machine)) {
      return error;
    }
    struct {
      double ratio;
      int rank;
    } mine{0, rank_}, worst{};
    int crowd[] = {0, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))};
    MPI_Comm_size(machine, &crowd[0]);
    MPI_Comm_free(&machine);
    mine.ratio = static_cast<double>(crowd[0]) / std::max(crowd[1], 1);
    MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(crowd, 2, MPI_INT, worst.rank, MPI_COMM_WORLD);
    if (rank_ == 0 && crowd[0] > crowd[1]) std::printf("tutti-crowded %d %d\n", crowd[0], crowd[1]);
#endif
    return MPI_SUCCESS;
  }

  std::vector<int> RanksOfNode(int node) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size_; ++rank) {
      if (nodes_[static_cast<size_t>(rank)] == node) ranks.push_back(rank);
    }
    return ranks;
  }

  Ring InNode() const {
    Ring ring;
    int largest = 0;
    for (const int node : nodes_) {
      const std::vector<int> ranks = RanksOfNode(node);
      largest = std::max(largest, static_cast<int>(ranks.size()));
      if (ranks.size() < 2 || node != nodes_[static_cast<size_t>(rank_)]) continue;
      const auto at =
          static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
      ring.to = ranks[(at + 1) % ranks.size()];
      ring.from = ranks[(at + ranks.size() - 1) % ranks.size()];
    }
    ring.senders = largest;
    // The first node with two ranks.
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<int> ranks = RanksOfNode(nodes_[static_cast<size_t>(rank)]);
      if (ranks.size() < 2) continue;
      MakePair(ranks[0], ranks[1], ring);
      break;
    }
    return ring;
  }

  Ring AcrossNodes() const {
    Ring ring;
    const int num_nodes = *std::max_element(nodes_.begin(), nodes_.end()) + 1;
    size_t least = static_cast<size_t>(size_);
    for (int node = 0; node < num_nodes; ++node) least = std::min(least, RanksOfNode(node).size());
    const int mine = nodes_[static_cast<size_t>(rank_)];
    const std::vector<int> here = RanksOfNode(mine);
    const auto at = static_cast<size_t>(std::find(here.begin(), here.end(), rank_) - here.begin());
    if (at < least) {
      ring.to = RanksOfNode((mine + 1) % num_nodes)[at];
      ring.from = RanksOfNode((mine + num_nodes - 1) % num_nodes)[at];
    }
    ring.senders = static_cast<int>(least);
    MakePair(RanksOfNode(0)[0], RanksOfNode(1)[0], ring);
    return ring;
  }

  void MakePair(int first, int second, Ring& ring) const {
    ring.is_pair = rank_ == first || rank_ == second;
    ring.starts = rank_ == first;
    ring.partner = rank_ == first ? second : first;
  }

  void Print(const char* kind, const char* path, int senders, int x, double seconds) {
    if (rank_ != 0) return;
    // The clock of a simulation may stand still for what costs nothing there.
    constexpr double kMinSeconds = 1e-12;
    std::printf("tutti-sample %s %s %d %d %.6g\ntutti-progress %d %d\n", kind, path, senders, x,
                std::max(seconds, kMinSeconds), ++done_, total_);
    std::fflush(stdout);
  }

  // Seconds of one of `times` runs, on the slowest rank, of the fastest batch.
  template <class Once>
  double Time(int times, const Once& once) {
    double fastest = 0;
    for (int batch = 0; batch < kBatches + 1; ++batch) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < times; ++i) once();
      const double mine = (MPI_Wtime() - begin) / times;
      double slowest = 0;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      // The first opens connections.
      if (batch == 1 || (batch > 1 && slowest < fastest)) fastest = slowest;
    }
    return fastest;
  }

  // Fewer runs of long messages.
  static int TimesFor(int bytes) { return std::min(kMaxRuns, 2 + 32 * 4096 / (4096 + bytes)); }

  void Measure(const Ring& ring, const char* path, const std::vector<int>& sizes) {
    std::vector<std::byte> out(static_cast<size_t>(sizes.back())), in(out.size());
    for (const int bytes : sizes) {
      const auto to_and_fro = [&] {
        if (!ring.is_pair) return;
        if (ring.starts) MPI_Send(out.data(), bytes, MPI_BYTE, ring.partner, 0, MPI_COMM_WORLD);
        MPI_Recv(in.data(), bytes, MPI_BYTE, ring.partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!ring.starts) MPI_Send(out.data(), bytes, MPI_BYTE, ring.partner, 0, MPI_COMM_WORLD);
      };
      Print("pair", path, 1, bytes, Time(TimesFor(bytes), to_and_fro) / 2);
    }
    for (const int bytes : sizes) {
      const auto around = [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Irecv(in.data(), bytes, MPI_BYTE, ring.from, 0, MPI_COMM_WORLD, &request);
        MPI_Send(out.data(), bytes, MPI_BYTE, ring.to, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      };
      Print("all", path, ring.senders, bytes, Time(TimesFor(bytes), around));
    }
    for (const int messages : {1, 8, 64}) {
      std::vector<MPI_Request> requests(2 * static_cast<size_t>(messages));
      const auto burst = [&] {
        size_t next = 0;
        for (int i = 0; i < messages; ++i) {
          MPI_Irecv(&in[static_cast<size_t>(i)], 1, MPI_BYTE, ring.from, 0, MPI_COMM_WORLD,
                    &requests[next++]);
        }
        for (int i = 0; i < messages; ++i) {
          MPI_Isend(&out[static_cast<size_t>(i)], 1, MPI_BYTE, ring.to, 0, MPI_COMM_WORLD,
                    &requests[next++]);
        }
        for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
      };
      Print("burst", path, ring.senders, messages,
            Time(std::min(TimesFor(0), 1 + 256 / messages), burst));
    }
  }

  void Copies() {
    constexpr size_t kArena = size_t{1} << 19;
    std::vector<std::byte> arena(2 * kArena);
    for (const int bytes : {16, 256, 4096, 65536}) {
      const int blocks = static_cast<int>(kArena) / bytes;
      const auto stride = kArena / static_cast<size_t>(blocks);
      const auto copy = [&] {
        for (int i = 0; i < blocks; ++i) {
          // An odd multiplier visits all places in no simple order.
          const auto from = static_cast<size_t>(i) * 40503 % static_cast<size_t>(blocks);
          tutti::mpi::CopyBytes(arena.data() + kArena + static_cast<size_t>(i) * stride,
                                arena.data() + from * stride, bytes);
        }
        tutti::mpi::SettleCopies();
      };
      Print("copy", "-", 1, bytes, Time(2, copy) / blocks);
    }
  }

  int rank_ = 0, size_ = 0;
  std::vector<int> nodes_;
  int done_ = 0, total_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int error = Probe().Run();
  if (error != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return 0;
}
