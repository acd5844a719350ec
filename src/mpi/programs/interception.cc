// What it costs a call to pass through the drop-in library. Run under LD_PRELOAD with
// TUTTI_ALLTOALLV=mpi: MPI_Alltoallv then passes through Tutti to the function that PMPI_Alltoallv
// calls at once, so the difference of the two is ours.
//
// Model       Blocks of zero bytes, on MPI_COMM_SELF (no message, no waiting: the cost itself) and
//             on all ranks (what a program would notice). Batches of both kinds alternate, and the
//             median of their differences is printed, so that load on the machine meets both alike.
//
//   mpirun -np 2 -x LD_PRELOAD=$PWD/build/release/lib/libtutti_mpi.so -x TUTTI_ALLTOALLV=mpi
//     build/release/bin/tutti-mpi-interception-openmpi
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

using Exchange = decltype(MPI_Alltoallv);

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Nanoseconds per call.
double Batch(Exchange* exchange, const std::vector<int>& zeros, MPI_Comm communicator, int calls) {
  char nothing = 0;
  char nowhere = 0;
  const double begin = PMPI_Wtime();
  for (int call = 0; call < calls; ++call) {
    exchange(&nothing, zeros.data(), zeros.data(), MPI_BYTE, &nowhere, zeros.data(), zeros.data(),
             MPI_BYTE, communicator);
  }
  return (PMPI_Wtime() - begin) / calls * 1e9;
}

void Compare(const char* name, MPI_Comm communicator, int batches, int calls) {
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(communicator, &size);
  const std::vector<int> zeros(static_cast<size_t>(size));
  std::vector<double> through;
  std::vector<double> past;
  std::vector<double> difference;
  Batch(&MPI_Alltoallv, zeros, communicator, calls);
  for (int batch = 0; batch < batches; ++batch) {
    through.push_back(Batch(&MPI_Alltoallv, zeros, communicator, calls));
    past.push_back(Batch(&PMPI_Alltoallv, zeros, communicator, calls));
    difference.push_back(through.back() - past.back());
  }
  if (rank == 0) {
    std::printf("%-16s MPI_Alltoallv %9.1f ns, PMPI_Alltoallv %9.1f ns, difference %7.1f ns\n",
                name, Median(through), Median(past), Median(difference));
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Dl_info owner{};
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Alltoallv"), &owner);
  if (rank == 0) {
    std::printf("MPI_Alltoallv of %s\n", owner.dli_fname == nullptr ? "?" : owner.dli_fname);
  }
  Compare("self", MPI_COMM_SELF, 400, 500);
  Compare("all ranks", MPI_COMM_WORLD, 400, 100);
  MPI_Finalize();
  return 0;
}
