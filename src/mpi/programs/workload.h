// Workload: what the measuring programs share: arguments, buffers of uneven blocks, times of the
// slowest rank.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tutti/mpi/alltoallv.h"

namespace tutti::mpi {

// What a program is told on its command line: two counts, and the largest blocks of its workloads.
struct Count {
  int usual, least;
};
struct Started {
  int rank = 0, size = 0;
  int first = 0, second = 0;
  std::vector<int> sizes;
};

inline Started Start(int argc, char** argv, Count first, Count second, int min_size) {
  MPI_Init(&argc, &argv);
  Started started;
  MPI_Comm_rank(MPI_COMM_WORLD, &started.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &started.size);
  const auto count = [&](int at, Count wanted) {
    return argc > at ? std::max(wanted.least, std::atoi(argv[at])) : wanted.usual;
  };
  started.first = count(1, first);
  started.second = count(2, second);
  for (int i = 3; i < argc; ++i) started.sizes.push_back(count(i, {0, min_size}));
  return started;
}

// What `from` sends to `to`: 0 to `most` bytes, evenly spread, the same on every run.
inline int BlockBytes(int from, int to, int most) {
  uint64_t mixed = static_cast<uint64_t>(from) * 0x9e3779b97f4a7c15U +
                   static_cast<uint64_t>(to) * 0xbf58476d1ce4e5b9U;
  mixed ^= mixed >> 29;
  mixed *= 0x94d049bb133111ebU;
  return static_cast<int>((mixed >> 32) % (static_cast<uint64_t>(most) + 1));
}

struct Workload {
  std::vector<int> send_counts, send_at, receive_counts, receive_at;
  std::vector<std::byte> send, receive;

  Workload(int rank, int size, int most) {
    int sent = 0, received = 0;
    for (int peer = 0; peer < size; ++peer) {
      send_counts.push_back(BlockBytes(rank, peer, most));
      receive_counts.push_back(BlockBytes(peer, rank, most));
      send_at.push_back(sent);
      receive_at.push_back(received);
      sent += send_counts.back();
      received += receive_counts.back();
    }
    send.resize(static_cast<size_t>(sent) + 1);
    receive.resize(static_cast<size_t>(received) + 1);
  }

  int Exchange(const alltoallv::Algorithm& algorithm, MPI_Comm communicator) {
    return Alltoallv(send.data(), send_counts.data(), send_at.data(), MPI_BYTE, receive.data(),
                     receive_counts.data(), receive_at.data(), MPI_BYTE, communicator, algorithm);
  }
};

// Seconds of the slowest rank for all `calls` calls.
inline double TimeCalls(Workload& workload, const alltoallv::Algorithm& algorithm, int calls,
                        MPI_Comm communicator) {
  MPI_Barrier(communicator);
  const double begin = MPI_Wtime();
  for (int call = 0; call < calls; ++call) workload.Exchange(algorithm, communicator);
  const double seconds = MPI_Wtime() - begin;
  double slowest = 0;
  MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, communicator);
  return slowest;
}

// At least one value.
inline double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

}  // namespace tutti::mpi
