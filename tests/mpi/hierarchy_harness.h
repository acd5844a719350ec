// What the tests of hierarchical exchanges share: groups drawn from a seed, and exchanges compared
// with what every rank can work out by itself: each byte is a function of sender, receiver, place.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "block_exchange.h"
#include "hierarchy/groups.h"
#include "tutti/base/index.h"

namespace tutti::mpi {

inline int failures = 0;

inline void Expect(bool good, const std::string& what) {
  if (good) return;
  if (++failures <= 5) std::fprintf(stderr, "failed: %s\n", what.c_str());
}

inline uint32_t Mix(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t x = a * 0x9e3779b1U ^ b * 0x85ebca77U ^ c * 0xc2b2ae3dU;
  x = (x ^ (x >> 15)) * 0x2c1b3c6dU;
  return x ^ (x >> 13);
}

// A third of the blocks are empty, most of the others small, few large.
inline int64_t BlockBytes(uint32_t seed, int from, int to) {
  const uint32_t draw = Mix(seed, static_cast<uint32_t>(from), static_cast<uint32_t>(to));
  if (draw % 3 == 0) return 0;
  if (draw % 89 == 1) return 300 + draw % 1000;
  if (draw % 4001 == 2) return 70'000;
  return 1 + draw % 24;
}

inline std::byte ByteOf(uint32_t seed, int from, int to, int64_t place) {
  return static_cast<std::byte>(Mix(seed + static_cast<uint32_t>(place), static_cast<uint32_t>(to),
                                    static_cast<uint32_t>(from)));
}

// Offsets of blocks in a shuffled order with holes; returns the bytes of the whole.
inline int64_t Scatter(const std::vector<int64_t>& bytes, uint32_t seed,
                       std::vector<int64_t>* offset) {
  std::vector<int> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 rng(seed);
  // A quarter of the buffers are in order, which receives in place.
  if (seed % 4 != 0) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng() % i]);
  }
  offset->assign(bytes.size(), 0);
  int64_t at = 0;
  for (const int block : order) {
    (*offset)[Index(block)] = at;
    at += bytes[Index(block)] + (seed % 4 != 0 ? static_cast<int64_t>(rng() % 3) : 0);
  }
  return at;
}

struct Case {
  MPI_Comm communicator;
  int rank;
  int size;
};

inline constexpr std::byte kHole{0xA5};

// Blocks drawn from `seed`, exchanged by `run(exchange)`, an error code, and compared.
template <class Run>
void ExchangeAndCheck(const Case& on, uint32_t seed, const std::string& what, const Run& run) {
  std::vector<int64_t> send_bytes(Index(on.size)), receive_bytes(Index(on.size));
  for (int r = 0; r < on.size; ++r) {
    send_bytes[Index(r)] = BlockBytes(seed, on.rank, r);
    receive_bytes[Index(r)] = BlockBytes(seed, r, on.rank);
  }
  std::vector<int64_t> send_offset, receive_offset;
  std::vector<std::byte> send(static_cast<size_t>(Scatter(send_bytes, seed, &send_offset)));
  std::vector<std::byte> receive(
      static_cast<size_t>(Scatter(receive_bytes, seed + 1, &receive_offset)), kHole);
  for (int r = 0; r < on.size; ++r) {
    for (int64_t k = 0; k < send_bytes[Index(r)]; ++k) {
      send[static_cast<size_t>(send_offset[Index(r)] + k)] = ByteOf(seed, on.rank, r, k);
    }
  }
  std::vector<std::byte> expected(receive.size(), kHole);
  for (int r = 0; r < on.size; ++r) {
    for (int64_t k = 0; k < receive_bytes[Index(r)]; ++k) {
      expected[static_cast<size_t>(receive_offset[Index(r)] + k)] = ByteOf(seed, r, on.rank, k);
    }
  }
  const std::vector<std::byte> send_before = send;
  const BlockExchange exchange{.communicator = on.communicator,
                               .rank = on.rank,
                               .size = on.size,
                               .send = send.data(),
                               .send_offset = send_offset,
                               .send_bytes = send_bytes,
                               .receive = receive.data(),
                               .receive_offset = receive_offset,
                               .receive_bytes = receive_bytes};
  const int error = run(exchange);
  const std::string name = "P=" + std::to_string(on.size) + " rank=" + std::to_string(on.rank) +
                           " " + what + " seed=" + std::to_string(seed);
  Expect(error == MPI_SUCCESS, "error code, " + name);
  Expect(receive == expected, "received bytes, " + name);
  Expect(send == send_before, "send buffer changed, " + name);
}

// Groups of seeded sizes with ranks dealt to them at random, `num_levels` of them nested.
inline Groups RandomGroups(int size, int num_levels, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<std::vector<int>> levels;
  for (int l = 0; l < num_levels; ++l) {
    const auto groups = 1 + rng() % static_cast<uint32_t>(size);
    std::vector<int> level(Index(size));
    // The smaller of two draws: groups of very unequal sizes.
    for (int& group : level) group = static_cast<int>(std::min(rng() % groups, rng() % groups));
    levels.push_back(std::move(level));
  }
  return NestedGroups(size, levels);
}

// The computer of every rank, by its name, as its smallest rank. Collective.
inline std::vector<int> ComputersOf(const Case& on) {
  std::vector<char> own(MPI_MAX_PROCESSOR_NAME, '\0');
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  std::vector<char> names(own.size() * Index(on.size));
  MPI_Allgather(own.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(), MPI_MAX_PROCESSOR_NAME,
                MPI_CHAR, on.communicator);
  std::vector<int> computers;
  std::vector<std::string> seen;
  for (size_t r = 0; r < Index(on.size); ++r) {
    seen.emplace_back(names.data() + r * own.size());
    computers.push_back(
        static_cast<int>(std::find(seen.begin(), seen.end(), seen.back()) - seen.begin()));
  }
  return computers;
}

// In simulation all numbers of ranks up to `size` in one run, else `size` alone:
// test(Case of that many ranks, whether it is the only one).
template <class Test>
void ForEachNumberOfRanks(int rank, int size, const Test& test) {
#ifdef TUTTI_MPI_SMPI
  const int smallest = 1;
#else
  const int smallest = size;
#endif
  for (int ranks = smallest; ranks <= size; ++ranks) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &part);
    if (part == MPI_COMM_NULL) continue;
    test(Case{.communicator = part, .rank = rank, .size = ranks}, smallest == size);
    MPI_Comm_free(&part);
  }
}

// The exit code, after the failures of all ranks.
inline int Verdict(const char* test, int rank, int size) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("%s: %d ranks passed\n", test, size);
  return all == 0 ? 0 : 1;
}

// What main() returns: `run` between the begin and the end of MPI.
inline int WithMpi(int argc, char** argv, int (*run)()) {
  MPI_Init(&argc, &argv);
  const int result = run();
  MPI_Finalize();
  return result;
}

}  // namespace tutti::mpi
