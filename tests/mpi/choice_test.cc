// `auto` on real ranks: right answers while sizes change, the same algorithm on all ranks, what the
// tuning database says is taken, what was measured is remembered, a damaged file is no obstacle.
#include <mpi.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "choice/choose.h"
#include "flavour.h"
#include "served.h"
#include "tutti/base/file.h"
#include "tutti/mpi/alltoallv.h"
#include "tutti/tune/deferred_setup.h"
#include "tutti/tune/tuning_database.h"

namespace {

using tutti::alltoallv::Algorithm;
using tutti::alltoallv::Method;

constexpr Algorithm kAuto{.method = Method::kAuto};

int failures = 0;

void Check(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::printf("failed: %s\n", what);
}

int Rank(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}
int Size(MPI_Comm communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  return size;
}

std::byte Content(int from, int to, int byte) {
  return static_cast<std::byte>((from * 31 + to * 7 + byte) & 0xff);
}
// Blocks of 0 to `most` bytes, uneven.
int BlockBytes(int from, int to, int most) { return (from * 5 + to * 3) * 17 % (most + 1); }

// One call with blocks of at most `most` bytes; whether everything arrived.
bool AlltoallvArrives(MPI_Comm communicator, int most) {
  const int rank = Rank(communicator), size = Size(communicator);
  std::vector<int> send_counts, send_at, receive_counts, receive_at;
  std::vector<std::byte> send;
  int total = 0;
  for (int peer = 0; peer < size; ++peer) {
    send_at.push_back(static_cast<int>(send.size()));
    send_counts.push_back(BlockBytes(rank, peer, most));
    for (int i = 0; i < send_counts.back(); ++i) send.push_back(Content(rank, peer, i));
    receive_at.push_back(total);
    receive_counts.push_back(BlockBytes(peer, rank, most));
    total += receive_counts.back();
  }
  std::vector<std::byte> receive(static_cast<size_t>(total) + 1);
  if (tutti::mpi::Alltoallv(send.data(), send_counts.data(), send_at.data(), MPI_BYTE,
                            receive.data(), receive_counts.data(), receive_at.data(), MPI_BYTE,
                            communicator, kAuto) != MPI_SUCCESS) {
    return false;
  }
  for (int peer = 0, at = 0; peer < size; ++peer) {
    const int bytes = receive_counts[static_cast<size_t>(peer)];
    for (int i = 0; i < bytes; ++i, ++at) {
      if (receive[static_cast<size_t>(at)] != Content(peer, rank, i)) return false;
    }
  }
  return true;
}

bool AlltoallArrives(MPI_Comm communicator, int bytes) {
  const int rank = Rank(communicator), size = Size(communicator);
  std::vector<std::byte> send, receive(static_cast<size_t>(size * bytes) + 1);
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < bytes; ++i) send.push_back(Content(rank, peer, i));
  }
  send.push_back({});
  if (tutti::mpi::Alltoall(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE,
                           communicator, kAuto) != MPI_SUCCESS) {
    return false;
  }
  for (int i = 0; i < size * bytes; ++i) {
    if (receive[static_cast<size_t>(i)] != Content(i / bytes, rank, i % bytes)) return false;
  }
  return true;
}

// Method, radix and block count of the last call, equal on all ranks.
Algorithm ServedEverywhere(MPI_Comm communicator) {
  const Algorithm algorithm = tutti::mpi::LatestServed().algorithm;
  const int mine[] = {static_cast<int>(algorithm.method), algorithm.radix, algorithm.block_count};
  int least[3], most[3];
  MPI_Allreduce(mine, least, 3, MPI_INT, MPI_MIN, communicator);
  MPI_Allreduce(mine, most, 3, MPI_INT, MPI_MAX, communicator);
  for (int i = 0; i < 3; ++i) Check(least[i] == most[i], "all ranks take the same algorithm");
  return algorithm;
}

// Takes `file` as the tuning database from here on for communicators made from here on: the file is
// read once per process, so each case is a run of its own (main).
struct Case {
  const char* name;
  void (*run)(const std::string& file);
};

// Written by rank 0 before the first call.
void Put(const std::string& file, const std::string& text) {
  if (Rank(MPI_COMM_WORLD) == 0) {
    Check(tutti::WriteFileAtomically(file, text).has_value(), "the memory file is written");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// A cluster of which something is known: `auto` looks for the best from the first call on.
void PutModel(const std::string& file) {
  tutti::tune::TuningDatabase database;
  const auto library = tutti::tune::ParseLibrary(tutti::mpi::FlavourName()).value();
  database.models[library] = tutti::tune::DefaultModel(library);
  Put(file, tutti::tune::FormatTuningDatabase(database));
}

void SizesChange(const std::string& file) {
  PutModel(file);
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  std::map<int, int> served;
  for (int call = 0; call < 300; ++call) {
    const int most = call < 120 ? 40 : (call < 200 ? 3000 : (call % 2 == 0 ? 8 : 700));
    Check(AlltoallvArrives(communicator, most), "blocks of MPI_Alltoallv arrive");
    ++served[static_cast<int>(ServedEverywhere(communicator).method)];
    Check(AlltoallArrives(communicator, 1 + call % 3 * 100), "blocks of MPI_Alltoall arrive");
    ServedEverywhere(communicator);
  }
  Check(served[static_cast<int>(Method::kMpi)] > 0, "the MPI library's own is among what is tried");
  MPI_Comm_free(&communicator);
}

void SomeCommunicators(const std::string& file) {
  PutModel(file);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, Rank(MPI_COMM_WORLD) % 2, 0, &half);
  for (int call = 0; call < 60; ++call) {
    Check(AlltoallvArrives(half, 50), "on half of the ranks");
    Check(AlltoallvArrives(MPI_COMM_SELF, 50), "on one rank");
    if (call % 3 == 0) Check(AlltoallvArrives(MPI_COMM_WORLD, 50), "on all ranks");
  }
  MPI_Comm_free(&half);
}

void KnownBestIsTaken(const std::string& file) {
  const std::string ranks = std::to_string(Size(MPI_COMM_WORLD));
  Put(file, std::string("tutti-mpi 1\nbest ") + tutti::mpi::FlavourName() + " ranks=" + ranks +
                " per-node=" + ranks + " block=32 algorithm=tuna:r=3 seconds=1e-6 own=2e-6\n");
  for (int call = 0; call < 100; ++call) {
    Check(AlltoallvArrives(MPI_COMM_WORLD, 48), "blocks arrive by what is known to be best");
    const Algorithm served = ServedEverywhere(MPI_COMM_WORLD);
    // Before the size of the first call is agreed on, the native algorithm.
    const bool expected = call == 0 ? served.method == Method::kMpi
                                    : served == Algorithm{.method = Method::kTuna, .radix = 3};
    Check(expected, "what the file says is taken from the second call on");
  }
}

// Nothing is remembered: the first calls are the native algorithm, whatever the size; how many of
// them depends on how long they take.
void DamagedFileIsNoObstacle(const std::string& file) {
  Put(file, "tutti-mpi 1\nbest of all\n");
  const int deferred = 4096 / Size(MPI_COMM_WORLD);
  for (int call = 0; call < deferred + 30; ++call) {
    Check(AlltoallvArrives(MPI_COMM_WORLD, 48), "blocks arrive without the file");
    if (call % 16 == 0) ServedEverywhere(MPI_COMM_WORLD);
    if (call < tutti::tune::DeferredSetup::kFirstCheck) {
      Check(tutti::mpi::LatestServed().algorithm.method == Method::kMpi,
            "few calls are left alone");
    }
  }
}

constexpr Case kCases[] = {{"sizes-change", SizesChange},
                           {"some-communicators", SomeCommunicators},
                           {"known-best", KnownBestIsTaken},
                           {"damaged-file", DamagedFileIsNoObstacle}};

}  // namespace

// MPI cannot be started twice in a process: the number of ranks chooses the case, as on_ranks.sh
// runs this on several.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = Rank(MPI_COMM_WORLD);
  const Case& chosen = kCases[static_cast<size_t>(Size(MPI_COMM_WORLD)) % std::size(kCases)];
  int process = static_cast<int>(::getpid());
  MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const char* folder = std::getenv("TMPDIR");
  const std::string file = std::string(folder == nullptr ? "/tmp" : folder) +
                           "/tutti_choice_test." + std::to_string(process);
  ::setenv("TUTTI_MPI_FILE", file.c_str(), 1);
  chosen.run(file);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) {
    std::remove(file.c_str());
    std::remove((file + ".lock").c_str());
    std::printf("%s: %d failures\n", chosen.name, all);
  }
  return all == 0 ? 0 : 1;
}
