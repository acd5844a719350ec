// The second half of the drop-in library (interface.h): what a taken-over call becomes.
//
// Model       A call on an intercommunicator, with arguments that are wrong, or where
//             TUTTI_ALLTOALLV=mpi, goes to the next function of its name, which is the MPI
//             library's or another tool's; any other to Tutti's executor.
// Threads     As safe as the MPI library: nothing is shared between communicators but the report.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "choice/choose.h"
#include "communicator_state.h"
#include "datatypes.h"
#include "engine/accelerator.h"
#include "engine/agreement.h"
#include "engine/check_counts.h"
#include "engine/collectives.h"
#include "engine/fortran.h"
#include "engine/handles.h"
#include "engine/memory_limit.h"
#include "engine/reductions.h"
#include "engine/report.h"
#include "engine/settings.h"
#include "interface.h"
#include "served.h"
#include "tutti/mpi/alltoallv.h"
#include "tutti/mpi/tutti_mpi.h"

namespace tutti::mpi::preload {
namespace {

Settings settings;
NextCalls next;

// Sizes of one call on this rank, in bytes.
struct Blocks {
  std::vector<int64_t> send;
  std::vector<int64_t> receive;
  int64_t packed = 0;  // what Tutti would copy aside

  int64_t largest() const { return *std::max_element(send.begin(), send.end()); }
};

int64_t Sum(const std::vector<int64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

// Calls of both kinds have these: the bytes of every block on one side.
std::vector<int64_t> SideBytes(const TypeShape& shape, const int* counts, int ranks) {
  std::vector<int64_t> bytes(static_cast<size_t>(ranks));
  std::transform(counts, counts + ranks, bytes.begin(),
                 [&shape](int count) { return count * shape.size; });
  return bytes;
}

std::vector<int64_t> SideBytes(const TypeShape& shape, int count, int ranks) {
  return std::vector<int64_t>(static_cast<size_t>(ranks), count * shape.size);
}

template <class Counts>
int Measure(const void* send, const Counts& send_counts, Handle send_type,
            const Counts& receive_counts, Handle receive_type, int ranks, Blocks* blocks) {
  TypeShape shape{};
  if (const int error = ShapeOf(FromHandle<MPI_Datatype>(receive_type), &shape)) return error;
  blocks->receive = SideBytes(shape, receive_counts, ranks);
  if (!shape.plain) blocks->packed = Sum(blocks->receive);
  if (send == MPI_IN_PLACE) {
    blocks->send = blocks->receive;
    blocks->packed += Sum(blocks->send);
    return MPI_SUCCESS;
  }
  if (const int error = ShapeOf(FromHandle<MPI_Datatype>(send_type), &shape)) return error;
  blocks->send = SideBytes(shape, send_counts, ranks);
  if (!shape.plain) blocks->packed += Sum(blocks->send);
  return MPI_SUCCESS;
}

int BlocksOf(const AlltoallvCall& call, int ranks, Blocks* blocks) {
  return Measure(call.send, call.send_counts, call.send_type, call.receive_counts,
                 call.receive_type, ranks, blocks);
}

int BlocksOf(const AlltoallCall& call, int ranks, Blocks* blocks) {
  return Measure(call.send, call.send_count, call.send_type, call.receive_count, call.receive_type,
                 ranks, blocks);
}

// Whether one side of a call can be read. If not, the MPI library has its own words for what is
// wrong.
bool IsSound(const int* counts, const int* displacements, Handle type, int ranks) {
  return counts != nullptr && displacements != nullptr &&
         FromHandle<MPI_Datatype>(type) != MPI_DATATYPE_NULL &&
         std::all_of(counts, counts + ranks, [](int count) { return count >= 0; });
}

bool IsSound(int count, Handle type) {
  return count >= 0 && FromHandle<MPI_Datatype>(type) != MPI_DATATYPE_NULL;
}

bool IsSound(const AlltoallvCall& call, int ranks) {
  return IsSound(call.receive_counts, call.receive_displacements, call.receive_type, ranks) &&
         (call.send == MPI_IN_PLACE ||
          IsSound(call.send_counts, call.send_displacements, call.send_type, ranks));
}

bool IsSound(const AlltoallCall& call, int /*ranks*/) {
  return IsSound(call.receive_count, call.receive_type) &&
         (call.send == MPI_IN_PLACE || IsSound(call.send_count, call.send_type));
}

int PassOn(const AlltoallvCall& call) { return next.alltoallv(call); }
int PassOn(const AlltoallCall& call) { return next.alltoall(call); }

// To the next tool or the MPI library, which Tutti's executor would not pass by.
bool IsPassedOn(const alltoallv::Algorithm& algorithm) {
  if (algorithm.method != alltoallv::Method::kMpi) return false;
  LatestServed() = {.algorithm = algorithm};
  return true;
}

int Run(const AlltoallvCall& call, const alltoallv::Algorithm& algorithm) {
  if (IsPassedOn(algorithm)) return PassOn(call);
  return Alltoallv(call.send, call.send_counts, call.send_displacements,
                   FromHandle<MPI_Datatype>(call.send_type), call.receive, call.receive_counts,
                   call.receive_displacements, FromHandle<MPI_Datatype>(call.receive_type),
                   FromHandle<MPI_Comm>(call.communicator), algorithm);
}

int Run(const AlltoallCall& call, const alltoallv::Algorithm& algorithm) {
  if (IsPassedOn(algorithm)) return PassOn(call);
  return Alltoall(call.send, call.send_count, FromHandle<MPI_Datatype>(call.send_type),
                  call.receive, call.receive_count, FromHandle<MPI_Datatype>(call.receive_type),
                  FromHandle<MPI_Comm>(call.communicator), algorithm);
}

// For an algorithm that was asked for by name: what the native algorithm would take. Collective at
// the first call on a communicator.
int PredictNativeOf(MPI_Comm communicator, const Blocks& blocks, bool uniform, double* seconds) {
  CommunicatorState* state = nullptr;
  if (const int error = CommunicatorState::Of(communicator, &state)) return error;
  return PredictNative(*state,
                       {.total_bytes = std::max(Sum(blocks.send), Sum(blocks.receive)),
                        .largest_block_bytes = blocks.largest(),
                        .uniform = uniform},
                       seconds);
}

// Whether buffers may be out of the processor's reach.
bool IsDisabledByAccelerators() {
  return !settings.host_buffers && LoadedAcceleratorRuntime() != nullptr;
}

Agreement Propose() {
  Agreement proposed;
  proposed.algorithm = settings.algorithm;
  if (IsDisabledByAccelerators()) proposed.algorithm = {.method = alltoallv::Method::kMpi};
  proposed.check_counts = settings.check_counts;
  proposed.temporary_limit = settings.temporary_limit;
  proposed.memory_is_limited = settings.memory_is_limited;
  proposed.reports = settings.report != Report::kNobody;
  return proposed;
}

bool IsLimited(const Agreement& agreement) {
  return agreement.algorithm.method != alltoallv::Method::kMpi &&
         (agreement.temporary_limit != kNoLimit || agreement.memory_is_limited);
}

template <class Call>
int ServeWatched(const char* function, const Call& call, Agreement& agreement);

template <class Call>
int Serve(const char* function, const Call& call) {
  Agreement* agreement = nullptr;
  const int error = Agree(FromHandle<MPI_Comm>(call.communicator), &Propose, &agreement);
  if (error != MPI_SUCCESS) return error;
  if (agreement == nullptr ||
      (agreement->passes_on() && (settings.report == Report::kNobody || !agreement->served)) ||
      !IsSound(call, agreement->size)) {
    return PassOn(call);
  }
  if (agreement->check_counts || IsLimited(*agreement) || agreement->reports ||
      settings.report != Report::kNobody) {
    return ServeWatched(function, call, *agreement);
  }
  return Run(call, agreement->algorithm);
}

// Calls of which something must be known, or noted.
template <class Call>
int ServeWatched(const char* function, const Call& call, Agreement& agreement) {
  const auto communicator = FromHandle<MPI_Comm>(call.communicator);
  Blocks blocks;
  if (const int error = BlocksOf(call, agreement.size, &blocks)) return error;
  if (agreement.check_counts) {
    const int mismatch =
        CheckCounts(function, communicator, agreement, blocks.send, blocks.receive);
    if (mismatch != MPI_SUCCESS) return mismatch;
  }
  alltoallv::Algorithm algorithm = agreement.algorithm;
  if (IsLimited(agreement)) {
    bool exceeds = false;
    const int error =
        ExceedsLimit(communicator, agreement, blocks.largest(), blocks.packed, &exceeds);
    if (error != MPI_SUCCESS) return error;
    if (exceeds) algorithm = {.method = alltoallv::Method::kMpi};
  }
  double native_seconds = -1;
  if (agreement.reports && agreement.kept && algorithm.method != alltoallv::Method::kAuto) {
    const int error =
        PredictNativeOf(communicator, blocks, std::is_same_v<Call, AlltoallCall>, &native_seconds);
    if (error != MPI_SUCCESS) return error;
  }
  const double begin = PMPI_Wtime();
  const int code = Run(call, algorithm);
  const double seconds = PMPI_Wtime() - begin;
  if (settings.report != Report::kNobody) {
    Record(
        {.function = function,
         .ranks = agreement.size,
         .largest_block_bytes = blocks.largest(),
         .algorithm = LatestServed().algorithm,
         .seconds = seconds,
         .native_seconds = native_seconds >= 0 ? native_seconds : LatestServed().native_seconds});
  }
  return code;
}

int ServeAlltoallv(const AlltoallvCall& call) { return Serve("MPI_Alltoallv", call); }
int ServeAlltoall(const AlltoallCall& call) { return Serve("MPI_Alltoall", call); }

int ServeFortranAlltoallv(const FortranAlltoallvCall& call) {
  return ServeAlltoallv({.send = FortranAddress(call.send),
                         .send_counts = call.send_counts,
                         .send_displacements = call.send_displacements,
                         .send_type = ToHandle(PMPI_Type_f2c(*call.send_type)),
                         .receive = FortranAddress(call.receive),
                         .receive_counts = call.receive_counts,
                         .receive_displacements = call.receive_displacements,
                         .receive_type = ToHandle(PMPI_Type_f2c(*call.receive_type)),
                         .communicator = ToHandle(PMPI_Comm_f2c(*call.communicator))});
}

int ServeFortranAlltoall(const FortranAlltoallCall& call) {
  return ServeAlltoall({.send = FortranAddress(call.send),
                        .send_count = *call.send_count,
                        .send_type = ToHandle(PMPI_Type_f2c(*call.send_type)),
                        .receive = FortranAddress(call.receive),
                        .receive_count = *call.receive_count,
                        .receive_type = ToHandle(PMPI_Type_f2c(*call.receive_type)),
                        .communicator = ToHandle(PMPI_Comm_f2c(*call.communicator))});
}

void CountPassedOn(PassedOn call) {
  if (settings.report != Report::kNobody) Record(call);
}

int WorldRank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// Runs first of all in MPI_Finalize, from whichever language that is called.
int PrintReport(MPI_Comm /*self*/, int /*key*/, void* /*value*/, void* /*extra*/) {
  const int rank = WorldRank();
  if (settings.report == Report::kRankZero && rank != 0) return MPI_SUCCESS;
  std::string title = "rank " + std::to_string(rank) + ", " + next.mpi_version +
                      ", TUTTI_ALLTOALLV=" + alltoallv::ToString(settings.algorithm);
  for (int which = 0; which < kNumCollectives; ++which) {
    const Service service = settings.services[static_cast<size_t>(which)];
    if (service == Service::kAuto) continue;
    title.append(", ").append(NameOf(static_cast<Collective>(which)).variable);
    title.append("=").append(kServiceNames[static_cast<size_t>(service)]);
  }
  if (settings.reorders) title.append(", TUTTI_REORDER=1");
  if (IsDisabledByAccelerators()) {
    title.append("; passed on: ").append(LoadedAcceleratorRuntime());
    title.append(" is loaded and TUTTI_HOST_BUFFERS is not 1");
  }
  const std::string text = ReportText(title);
  std::fputs(text.c_str(), stderr);
  return MPI_SUCCESS;
}

void Start(const NextCalls& given) {
  next = given;
  settings = ReadSettings([](const char* name) -> const char* { return std::getenv(name); });
  settings.memory_is_limited = ProcessHasMemoryLimit();
  // Memory that ranks share is as large as it may ever be: not where there is a limit.
  StartCollectives(settings, next, [] {
    return IsDisabledByAccelerators() || settings.temporary_limit != kNoLimit ||
           settings.memory_is_limited;
  });
  int initialized = 0;
  PMPI_Initialized(&initialized);
  if (initialized == 0) return;
  MakeTypeTable();
  if (WorldRank() == 0) {
    for (const std::string& line : settings.ignored)
      std::fprintf(stderr, "tutti: %s\n", line.c_str());
  }
  if (settings.report == Report::kNobody) return;
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &PrintReport, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

int RunNamedAlltoallv(const AlltoallvCall& call, const char* algorithm) {
  return tutti_alltoallv(call.send, call.send_counts, call.send_displacements,
                         FromHandle<MPI_Datatype>(call.send_type), call.receive,
                         call.receive_counts, call.receive_displacements,
                         FromHandle<MPI_Datatype>(call.receive_type),
                         FromHandle<MPI_Comm>(call.communicator), algorithm);
}

int RunNamedAlltoall(const AlltoallCall& call, const char* algorithm) {
  return tutti_alltoall(call.send, call.send_count, FromHandle<MPI_Datatype>(call.send_type),
                        call.receive, call.receive_count,
                        FromHandle<MPI_Datatype>(call.receive_type),
                        FromHandle<MPI_Comm>(call.communicator), algorithm);
}

int MakeNamedExchange(const AlltoallvCall& call, const char* algorithm, void** exchange) {
  tutti_exchange made = nullptr;
  const int error = tutti_alltoallv_init(call.send, call.send_counts, call.send_displacements,
                                         FromHandle<MPI_Datatype>(call.send_type), call.receive,
                                         call.receive_counts, call.receive_displacements,
                                         FromHandle<MPI_Datatype>(call.receive_type),
                                         FromHandle<MPI_Comm>(call.communicator), algorithm, &made);
  *exchange = made;
  return error;
}

int FreeNamedExchange(void** exchange) {
  auto* made = static_cast<tutti_exchange>(*exchange);
  const int error = tutti_free(&made);
  *exchange = made;
  return error;
}

constexpr NamedCalls kNamed{
    .alltoallv = &RunNamedAlltoallv,
    .alltoall = &RunNamedAlltoall,
    .alltoallv_init = &MakeNamedExchange,
    .start = [](void* exchange) { return tutti_start(static_cast<tutti_exchange>(exchange)); },
    .wait = [](void* exchange) { return tutti_wait(static_cast<tutti_exchange>(exchange)); },
    .free = &FreeNamedExchange,
    .message = &tutti_mpi_message};

constexpr Engine kEngine{.version = kInterfaceVersion,
                         .start = &Start,
                         .alltoallv = &ServeAlltoallv,
                         .alltoall = &ServeAlltoall,
                         .fortran_alltoallv = &ServeFortranAlltoallv,
                         .fortran_alltoall = &ServeFortranAlltoall,
                         .collective = &ServeCollective,
                         .leaves = &LeavesCollective,
                         .fortran_collective = &ServeFortranCollective,
                         .count_passed_on = &CountPassedOn,
                         .named = kNamed};

}  // namespace
}  // namespace tutti::mpi::preload

extern "C" __attribute__((visibility("default"))) const tutti::mpi::preload::Engine*
TuttiMpiEngine() {
  return &tutti::mpi::preload::kEngine;
}
