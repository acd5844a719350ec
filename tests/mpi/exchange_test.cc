// Every algorithm against what the exchange must give, computed from a seed: byte k of the block
// from s to d is a function of (seed, s, d, k). Run on any number of ranks; prints what failed and
// ends with 1. Receive buffers start as kUntouched everywhere, so that writes into holes show.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;

constexpr unsigned char kUntouched = 0xA5;

int failures = 0;

void Fail(const std::string& what) {
  if (++failures <= 5) std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

std::uint64_t Mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

unsigned char ByteOf(std::uint64_t seed, int source, int destination, std::int64_t offset) {
  return static_cast<unsigned char>(
      Mix(seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(source) * 1000003U +
          static_cast<std::uint64_t>(destination) * 7919U + static_cast<std::uint64_t>(offset)));
}

// What ranks send each other, in elements; every rank knows the whole from the seed.
struct Workload {
  std::uint64_t seed;
  int most;  // elements a block
  int zeros_of_eight;

  int Count(int source, int destination) const {
    const std::uint64_t drawn = Mix(seed ^ (static_cast<std::uint64_t>(source) << 32U) ^
                                    static_cast<std::uint64_t>(destination));
    if (static_cast<int>(drawn % 8) < zeros_of_eight) return 0;
    return static_cast<int>((drawn >> 8U) % static_cast<std::uint64_t>(most + 1));
  }
};

// Counts and places of blocks, with holes and in an order drawn from the seed.
struct Placement {
  std::vector<int> counts, displacements;
  std::int64_t elements = 0;
};

Placement Place(std::vector<int> counts, std::uint64_t seed, bool shuffled) {
  Placement placement;
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  if (shuffled) std::shuffle(order.begin(), order.end(), random);
  placement.displacements.resize(counts.size());
  for (const std::size_t block : order) {
    if (shuffled) placement.elements += static_cast<std::int64_t>(random() % 3);
    placement.displacements[block] = static_cast<int>(placement.elements);
    placement.elements += counts[block];
  }
  placement.counts = std::move(counts);
  return placement;
}

struct Ranks {
  MPI_Comm communicator;
  int rank, size;

  explicit Ranks(MPI_Comm on) : communicator(on), rank(0), size(0) {
    MPI_Comm_rank(on, &rank);
    MPI_Comm_size(on, &size);
  }
};

void CheckBytes(const Ranks& ranks, const Workload& workload, bool shuffled,
                const Algorithm& algorithm) {
  std::vector<int> sent(static_cast<std::size_t>(ranks.size)), received(sent);
  for (int peer = 0; peer < ranks.size; ++peer) {
    sent[static_cast<std::size_t>(peer)] = workload.Count(ranks.rank, peer);
    received[static_cast<std::size_t>(peer)] = workload.Count(peer, ranks.rank);
  }
  const Placement send = Place(sent, workload.seed + 1, shuffled);
  const Placement receive = Place(received, workload.seed + 2, shuffled);
  std::vector<unsigned char> out(static_cast<std::size_t>(send.elements) + 1, 0);
  std::vector<unsigned char> in(static_cast<std::size_t>(receive.elements) + 1, kUntouched);
  std::vector<unsigned char> expected(in);
  for (int peer = 0; peer < ranks.size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    for (int k = 0; k < sent[at]; ++k) {
      out[static_cast<std::size_t>(send.displacements[at] + k)] =
          ByteOf(workload.seed, ranks.rank, peer, k);
    }
    for (int k = 0; k < received[at]; ++k) {
      expected[static_cast<std::size_t>(receive.displacements[at] + k)] =
          ByteOf(workload.seed, peer, ranks.rank, k);
    }
  }
  const std::vector<unsigned char> out_before = out;
  const Placement send_before = send;
  const Placement receive_before = receive;
  const std::string name = alltoallv::ToString(algorithm) + " on " + std::to_string(ranks.size) +
                           " ranks, rank " + std::to_string(ranks.rank) + ", seed " +
                           std::to_string(workload.seed);
  const int error = Alltoallv(out.data(), send.counts.data(), send.displacements.data(), MPI_BYTE,
                              in.data(), receive.counts.data(), receive.displacements.data(),
                              MPI_BYTE, ranks.communicator, algorithm);
  if (error != MPI_SUCCESS) Fail(name + ": error " + std::to_string(error));
  if (in != expected) Fail(name + ": wrong bytes");
  if (out != out_before) Fail(name + ": the send buffer was written");
  if (send.counts != send_before.counts || send.displacements != send_before.displacements ||
      receive.counts != receive_before.counts ||
      receive.displacements != receive_before.displacements) {
    Fail(name + ": the caller's arrays were written");
  }
}

std::vector<Algorithm> Named() {
  std::vector<Algorithm> all;
  for (const char* text : {"linear", "pairwise", "xor", "spread-out", "scattered:b=3", "scattered",
                           "two-phase-bruck", "padded-bruck"}) {
    all.push_back(alltoallv::ParseAlgorithm(text).value());
  }
  return all;
}

// --- Algorithms by name, bytes ------------------------------------------------------------------

void EveryAlgorithmGivesTheAnswer() {
  const Ranks world(MPI_COMM_WORLD);
  for (const Algorithm& algorithm : Named()) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CheckBytes(world, {.seed = seed, .most = 40, .zeros_of_eight = 2}, seed != 1, algorithm);
    }
  }
  for (int radix = 2; radix <= world.size + 1; ++radix) {
    CheckBytes(world, {.seed = 11, .most = 24, .zeros_of_eight = 2}, true,
               {alltoallv::Method::kTuna, radix, 0});
  }
  for (const int radix : {2, 3, 4, 7}) {
    const Algorithm tuna{alltoallv::Method::kTuna, radix, 0};
    // Dense and in order; sizes of two bytes each; above what goes with its sizes; nothing at all.
    CheckBytes(world, {.seed = 12, .most = 9, .zeros_of_eight = 0}, false, tuna);
    CheckBytes(world, {.seed = 13, .most = 700, .zeros_of_eight = 1}, true, tuna);
    CheckBytes(world, {.seed = 14, .most = 9000, .zeros_of_eight = 3}, true, tuna);
    CheckBytes(world, {.seed = 15, .most = 100000 / world.size, .zeros_of_eight = 7}, true, tuna);
    CheckBytes(world, {.seed = 16, .most = 0, .zeros_of_eight = 8}, true, tuna);
  }
}

// --- Memory -------------------------------------------------------------------------------------

// [tuna] section III-C: P - (K + 1) blocks of the largest size.
void TemporaryMemoryIsThePapers() { const Ranks world(MPI_COMM_WORLD); }

void Run() {
  EveryAlgorithmGivesTheAnswer();
  TemporaryMemoryIsThePapers();
}

}  // namespace
}  // namespace tutti::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  tutti::mpi::Run();
  int failures = tutti::mpi::failures;
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
