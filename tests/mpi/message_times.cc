// Prints what a message between ranks 0 and 1 takes, one way, as "BYTES SECONDS" for each size
// given: tests of the simulated machines compare it with what their platforms say. One clock, one
// thing at a time, so that simulated times are exact.
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int kRounds = 10;
  for (int i = 1; i < count; ++i) {
    const int bytes = std::atoi(words[i]);
    std::vector<std::byte> buffer(static_cast<size_t>(bytes) + 1);
    const auto send = [&] {
      MPI_Send(buffer.data(), bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    };
    const auto receive = [&] {
      MPI_Recv(buffer.data(), bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
    // Rank 1 waits for rank 0 from here on.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      for (int round = 0; round < kRounds; ++round) receive(), send();
      continue;
    }
    send(), receive();
    const double begin = MPI_Wtime();
    for (int round = 1; round < kRounds; ++round) send(), receive();
    std::printf("%d %.9g\n", bytes, (MPI_Wtime() - begin) / (2 * (kRounds - 1)));
  }
  MPI_Finalize();
  return 0;
}
