// The second half of the drop-in library, linked instead of loaded, so that sanitizers see it: what
// it reads from the environment, agrees on, checks and reports; calls through the seam between the
// halves. Programs that know nothing of it: dropin_test.py. Run on two ranks or more; prints what
// failed and ends with 1.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "engine/agreement.h"
#include "engine/check_counts.h"
#include "engine/handles.h"
#include "engine/memory_limit.h"
#include "engine/reductions.h"
#include "engine/report.h"
#include "engine/settings.h"
#include "interface.h"

extern "C" const tutti::mpi::preload::Engine* TuttiMpiEngine();

namespace tutti::mpi::preload {
namespace {

using alltoallv::Method;

int failures = 0;
int world_rank = 0;
int world_size = 0;

void Expect(bool right, const std::string& what) {
  if (right || ++failures > 5) return;
  std::fprintf(stderr, "FAILED: rank %d: %s\n", world_rank, what.c_str());
}

// --- The environment ----------------------------------------------------------------------------

std::map<std::string, std::string> variables;

Settings Read(const std::map<std::string, std::string>& given) {
  variables = given;
  return ReadSettings([](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void DefaultsAreQuiet() {
  std::map<std::string, std::string> empty;
  for (const char* name : {"TUTTI_ALLTOALLV", "TUTTI_VERBOSE", "TUTTI_CHECK", "TUTTI_HOST_BUFFERS",
                           "TUTTI_TEMPORARY_LIMIT", "TUTTI_RANKS_PER_NODE"}) {
    empty[name] = "";
  }
  for (const auto& given : {std::map<std::string, std::string>{}, empty}) {
    const Settings settings = Read(given);
    Expect(settings.algorithm == alltoallv::Algorithm{}, "auto is the default");
    Expect(settings.report == Report::kNobody && !settings.check_counts && !settings.host_buffers,
           "nothing is asked for");
    Expect(settings.temporary_limit == kNoLimit && settings.ignored.empty(), "no limit");
    Expect(settings.services == Settings::AllAuto() && !settings.reorders, "auto everywhere");
  }
}

void VariablesAreRead() {
  const Settings settings = Read({{"TUTTI_ALLTOALLV", "coalesced:r=4,b=16"},
                                  {"TUTTI_VERBOSE", "2"},
                                  {"TUTTI_CHECK", "1"},
                                  {"TUTTI_HOST_BUFFERS", "1"},
                                  {"TUTTI_TEMPORARY_LIMIT", "1048576"},
                                  {"TUTTI_RANKS_PER_NODE", "4,32"},
                                  {"TUTTI_ALLREDUCE", "shared"},
                                  {"TUTTI_BCAST", "native"},
                                  {"TUTTI_BARRIER", "mpi"},
                                  {"TUTTI_REORDER", "1"}});
  Expect(settings.algorithm ==
             alltoallv::Algorithm{.method = Method::kCoalesced, .radix = 4, .block_count = 16},
         "algorithm");
  Expect(settings.report == Report::kEveryRank && settings.check_counts && settings.host_buffers,
         "switches");
  Expect(settings.temporary_limit == 1048576 && settings.ignored.empty(), "limit");
  Services services = Settings::AllAuto();
  services[static_cast<size_t>(Collective::kAllreduce)] = Service::kShared;
  services[static_cast<size_t>(Collective::kBcast)] = Service::kNative;
  services[static_cast<size_t>(Collective::kBarrier)] = Service::kNative;
  Expect(settings.services == services && settings.reorders, "services of the other collectives");
}

// One row a fault: the variable, its value, what the line must say.
void NonsenseIsNamed() {
  const char* rows[][3] = {
      {"TUTTI_ALLTOALLV", "tunas", "unknown all-to-all-v algorithm 'tunas'"},
      {"TUTTI_ALLTOALLV", "tuna:r=0", "auto is used"},
      {"TUTTI_VERBOSE", "3", "accepted are 0, 1"},
      {"TUTTI_VERBOSE", "11", "accepted are 0, 1"},
      {"TUTTI_CHECK", "2", "accepted are 0 and 1"},
      {"TUTTI_CHECK", "on", "accepted are 0 and 1"},
      {"TUTTI_HOST_BUFFERS", "y", "accepted are 0 and 1"},
      {"TUTTI_TEMPORARY_LIMIT", "1GiB", "whole numbers of bytes"},
      {"TUTTI_TEMPORARY_LIMIT", "99999999999999999999", "whole numbers of bytes"},
      {"TUTTI_RANKS_PER_NODE", "0", "wanted a positive number"},
      {"TUTTI_ALLREDUCE", "ring", "accepted are native, auto, shared; auto is used"},
      {"TUTTI_REDUCE_SCATTER_BLOCK", "Shared", "accepted are native, auto, shared"},
      {"TUTTI_REORDER", "yes", "accepted are 0 and 1 (floating-point"},
  };
  for (const auto& row : rows) {
    const char* const name = row[0];
    const char* const value = row[1];
    const char* const says = row[2];
    const Settings settings = Read({{name, value}});
    Expect(settings.ignored.size() == 1 && settings.ignored[0].find(says) != std::string::npos &&
               settings.ignored[0].find(std::string(name) + "='" + value) != std::string::npos,
           std::string("one line on ") + name + "=" + value);
  }
  const Settings odd = Read({{"TUTTI_ALLTOALLV", "\x1b[31m\n" + std::string(100000, 'x')}});
  Expect(odd.ignored.size() == 1 && odd.ignored[0].size() < 500 &&
             odd.ignored[0].find('\n') == std::string::npos &&
             odd.ignored[0].find('\x1b') == std::string::npos,
         "a line of a terminal");
}

// --- Agreement ----------------------------------------------------------------------------------

Agreement ProposeByRank() {
  Agreement proposed;
  proposed.algorithm = {.method = Method::kTuna, .radix = 2 + world_rank};
  proposed.check_counts = world_rank == 0;
  proposed.temporary_limit = 1000 + world_rank;
  return proposed;
}

void RankZeroOfTheCommunicatorDecides() {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
  Agreement* agreement = nullptr;
  Expect(Agree(reversed, &ProposeByRank, &agreement) == MPI_SUCCESS, "agree");
  Expect(agreement->served && agreement->algorithm.radix == 2 + world_size - 1 &&
             !agreement->check_counts && agreement->temporary_limit == 1000 + world_size - 1,
         "the last rank of the world is the first here");
  Agreement* again = nullptr;
  Agree(reversed, &ProposeByRank, &again);
  Expect(again == agreement, "kept");
  MPI_Comm_free(&reversed);
  Expect(Agree(MPI_COMM_NULL, &ProposeByRank, &again) == MPI_SUCCESS && again == nullptr,
         "no communicator, no agreement");
}

void LimitsAreThoseOfAllRanks() {
  Agreement agreement;
  agreement.algorithm.method = Method::kTuna;
  agreement.temporary_limit = int64_t{100} * world_size;
  agreement.size = world_size;
  bool exceeds = true;
  ExceedsLimit(MPI_COMM_WORLD, agreement, 100, 0, &exceeds);
  Expect(!exceeds, "ranks times 100 bytes fit");
  ExceedsLimit(MPI_COMM_WORLD, agreement, world_rank == 1 ? 101 : 1, 0, &exceeds);
  Expect(exceeds, "one rank's block is too large for all");
  ExceedsLimit(MPI_COMM_WORLD, agreement, 100, world_rank == 0 ? 1 : 0, &exceeds);
  Expect(exceeds, "one rank packs too much");
  agreement.algorithm.method = Method::kSpreadOut;
  ExceedsLimit(MPI_COMM_WORLD, agreement, int64_t{1} << 62, 0, &exceeds);
  Expect(!exceeds, "direct algorithms hold no blocks");
}

// --- Counts -------------------------------------------------------------------------------------

void MismatchesReachEveryRank() {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  Agreement agreement;
  agreement.rank = world_rank;
  agreement.size = world_size;
  std::vector<int64_t> send(static_cast<size_t>(world_size), 8);
  std::vector<int64_t> receive(static_cast<size_t>(world_size), 8);
  Expect(CheckCounts("test", own, agreement, send, receive) == MPI_SUCCESS, "counts that match");
  if (world_rank == 0) receive[static_cast<size_t>(world_size) - 1] = 16;
  int error_class = MPI_SUCCESS;
  MPI_Error_class(CheckCounts("test", own, agreement, send, receive), &error_class);
  Expect(error_class == MPI_ERR_TRUNCATE, "every rank gets the error");
  MPI_Comm_free(&own);
}

// --- The seam -----------------------------------------------------------------------------------

int passed_on = 0;

// Of the collectives that are called below.
int PassOnCollective(const CollectiveCall& call) {
  ++passed_on;
  const auto communicator = FromHandle<MPI_Comm>(call.communicator);
  const auto type = FromHandle<MPI_Datatype>(call.receive_type);
  if (call.which == Collective::kBarrier) return PMPI_Barrier(communicator);
  if (call.which == Collective::kBcast)
    return PMPI_Bcast(call.receive, call.receive_count, type, call.root, communicator);
  return PMPI_Allreduce(call.send, call.receive, call.receive_count, type,
                        FromHandle<MPI_Op>(call.op), communicator);
}

int PassOnVector(const AlltoallvCall& call) {
  ++passed_on;
  return PMPI_Alltoallv(call.send, call.send_counts, call.send_displacements,
                        FromHandle<MPI_Datatype>(call.send_type), call.receive, call.receive_counts,
                        call.receive_displacements, FromHandle<MPI_Datatype>(call.receive_type),
                        FromHandle<MPI_Comm>(call.communicator));
}

int PassOnUniform(const AlltoallCall& call) {
  ++passed_on;
  return PMPI_Alltoall(call.send, call.send_count, FromHandle<MPI_Datatype>(call.send_type),
                       call.receive, call.receive_count,
                       FromHandle<MPI_Datatype>(call.receive_type),
                       FromHandle<MPI_Comm>(call.communicator));
}

void CallsThroughTheSeam(const Engine& engine, MPI_Comm communicator, bool served) {
  const auto size = static_cast<size_t>(world_size);
  std::vector<int> send(size);
  std::vector<int> receive(size, -1);
  const std::vector<int> counts(size, 1);
  std::vector<int> at(size);
  for (int rank = 0; rank < world_size; ++rank) {
    send[static_cast<size_t>(rank)] = 100 * world_rank + rank;
    at[static_cast<size_t>(rank)] = rank;
  }
  const auto is_right = [&] {
    for (int rank = 0; rank < world_size; ++rank) {
      int& item = receive[static_cast<size_t>(rank)];
      if (item != 100 * rank + world_rank) return false;
      item = -1;
    }
    return true;
  };
  passed_on = 0;
  Expect(engine.alltoallv({send.data(), counts.data(), at.data(), ToHandle(MPI_INT), receive.data(),
                           counts.data(), at.data(), ToHandle(MPI_INT), ToHandle(communicator)}) ==
                 MPI_SUCCESS &&
             is_right(),
         "alltoallv");
  Expect(engine.alltoall({send.data(), 1, ToHandle(MPI_INT), receive.data(), 1, ToHandle(MPI_INT),
                          ToHandle(communicator)}) == MPI_SUCCESS &&
             is_right(),
         "alltoall");
  const int type = MPI_Type_c2f(MPI_INT);
  const int fortran_communicator = MPI_Comm_c2f(communicator);
  const int one = 1;
  Expect(engine.fortran_alltoallv({send.data(), counts.data(), at.data(), &type, receive.data(),
                                   counts.data(), at.data(), &type, &fortran_communicator}) ==
                 MPI_SUCCESS &&
             is_right(),
         "alltoallv of Fortran");
  Expect(engine.fortran_alltoall({send.data(), &one, &type, receive.data(), &one, &type,
                                  &fortran_communicator}) == MPI_SUCCESS &&
             is_right(),
         "alltoall of Fortran");
  Expect(passed_on == (served ? 0 : 4), "calls that were passed on");
  void* exchange = nullptr;
  const NamedCalls& named = engine.named;
  Expect(named.alltoallv_init(
             {send.data(), counts.data(), at.data(), ToHandle(MPI_INT), receive.data(),
              counts.data(), at.data(), ToHandle(MPI_INT), ToHandle(communicator)},
             "tuna:r=2", &exchange) == MPI_SUCCESS &&
             named.start(exchange) == MPI_SUCCESS && named.wait(exchange) == MPI_SUCCESS &&
             named.free(&exchange) == MPI_SUCCESS && exchange == nullptr && is_right(),
         "an exchange by name");
  engine.count_passed_on(PassedOn::kIalltoallv);
}

void EngineServes() {
  const Engine* engine = TuttiMpiEngine();
  Expect(engine->version == kInterfaceVersion, "version");
  static const NextCalls next{&PassOnVector, &PassOnUniform, &PassOnCollective, "an MPI"};
  for (const char* algorithm : {"tuna:r=2", "mpi", "auto"}) {
    setenv("TUTTI_ALLTOALLV", algorithm, 1);
    setenv("TUTTI_CHECK", "1", 1);
    setenv("TUTTI_VERBOSE", "2", 1);
    engine->start(next);
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    CallsThroughTheSeam(*engine, own, std::string(algorithm) != "mpi");
    MPI_Comm_free(&own);
  }
  const std::string report = ReportText("title");
  for (const char* words :
       {"tutti: title\n", "MPI_Alltoallv ", "MPI_Alltoall ", " 4 B ", " tuna:r=2 ", " mpi ",
        "Ialltoallv               passed on", "calls: 3\n"}) {
    Expect(report.find(words) != std::string::npos, std::string("the report says ") + words);
  }
  Expect(report.find(" auto ") == std::string::npos, "the report says what auto became");
}

// --- The other collectives ------------------------------------------------------------------------

void OrderIsKnownOfTheStandardsOwnReductions() {
  struct Row {
    MPI_Datatype type;
    MPI_Op op;
    OrderOf order;
  };
  const Row rows[] = {
      {MPI_INT, MPI_SUM, OrderOf::kNever},
      {MPI_UINT64_T, MPI_PROD, OrderOf::kNever},
      {MPI_INT16_T, MPI_MAX, OrderOf::kNever},
      {MPI_INT16_T, MPI_SUM, OrderOf::kUnknown},
      {MPI_LONG, MPI_LXOR, OrderOf::kNever},
      {MPI_BYTE, MPI_BOR, OrderOf::kNever},
      {MPI_BYTE, MPI_SUM, OrderOf::kUnknown},
      {MPI_2INT, MPI_MINLOC, OrderOf::kNever},
      {MPI_DOUBLE, MPI_SUM, OrderOf::kCommutes},
      {MPI_FLOAT, MPI_PROD, OrderOf::kCommutes},
      {MPI_DOUBLE, MPI_MAX, OrderOf::kMatters},
      {MPI_DOUBLE, MPI_BAND, OrderOf::kUnknown},
      {MPI_DOUBLE_INT, MPI_MAXLOC, OrderOf::kUnknown},
      {MPI_C_DOUBLE_COMPLEX, MPI_SUM, OrderOf::kUnknown},
      {MPI_INT, MPI_REPLACE, OrderOf::kUnknown},
  };
  for (const Row& row : rows) {
    Expect(OrderOfReduction(row.type, row.op) == row.order,
           "order of row " + std::to_string(&row - rows));
  }
  Expect(NamedTypeSize(MPI_DOUBLE) == 8 && NamedTypeSize(MPI_DOUBLE_INT) == 0, "no holes");
}

// Two ranks or more, each with its number: who passes on, who answers.
void CollectivesThroughTheSeam(const Engine& engine, MPI_Comm communicator, bool served) {
  passed_on = 0;
  const int mine = world_rank + 1;
  int sum = 0, word = world_rank == 1 ? 77 : 0;
  const int expected = world_size * (world_size + 1) / 2;
  CollectiveCall call{.which = Collective::kAllreduce,
                      .send = &mine,
                      .receive = &sum,
                      .receive_count = 1,
                      .receive_type = ToHandle(MPI_INT),
                      .op = ToHandle(MPI_SUM),
                      .communicator = ToHandle(communicator)};
  Expect(engine.collective(call) == MPI_SUCCESS && sum == expected, "allreduce");
  const int one = 1, type = MPI_Type_c2f(MPI_INT), op = MPI_Op_c2f(MPI_SUM);
  const int fortran_communicator = MPI_Comm_c2f(communicator);
  sum = 0;
  Expect(engine.fortran_collective({.which = Collective::kAllreduce,
                                    .send = const_cast<int*>(&mine),
                                    .receive = &sum,
                                    .receive_count = &one,
                                    .receive_type = &type,
                                    .op = &op,
                                    .communicator = &fortran_communicator}) == MPI_SUCCESS &&
             sum == expected,
         "allreduce of Fortran");
  const CollectiveCall broadcast{.which = Collective::kBcast,
                                 .receive = &word,
                                 .receive_count = 1,
                                 .receive_type = ToHandle(MPI_INT),
                                 .root = 1,
                                 .communicator = ToHandle(communicator)};
  Expect(engine.collective(broadcast) == MPI_SUCCESS && word == 77, "bcast");
  Expect(engine.collective({.which = Collective::kBarrier,
                            .communicator = ToHandle(communicator)}) == MPI_SUCCESS,
         "barrier");
  Expect(passed_on == (served ? 0 : 4), "collectives that were passed on");
  // Between more than two ranks the order of these is the MPI library's.
  const double number = 0.1 * mine;
  double all = 0;
  call.send = &number;
  call.receive = &all;
  call.receive_type = ToHandle(MPI_DOUBLE);
  passed_on = 0;
  Expect(engine.collective(call) == MPI_SUCCESS && all > 0, "a sum of doubles");
  Expect(passed_on == (served && world_size == 2 ? 0 : 1), "who serves a sum of doubles");
}

void EngineServesCollectives() {
  const Engine* engine = TuttiMpiEngine();
  static const NextCalls next{&PassOnVector, &PassOnUniform, &PassOnCollective, "an MPI"};
  unsetenv("TUTTI_CHECK");
  for (const char* service : {"shared", "native"}) {
    for (int which = 0; which < kNumCollectives; ++which) {
      setenv(NameOf(static_cast<Collective>(which)).variable, service, 1);
    }
    engine->start(next);
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    CollectivesThroughTheSeam(*engine, own, std::string(service) == "shared");
    MPI_Comm_free(&own);
  }
  engine->count_passed_on(NonblockingOf(Collective::kReduceScatterBlock));
  engine->count_passed_on(PersistentOf(Collective::kBarrier));
  const std::string report = ReportText("title");
  for (const char* words :
       {"MPI_Allreduce ", "MPI_Barrier ", " shared ", "Ireduce_scatter_block ", "Barrier_init "}) {
    Expect(report.find(words) != std::string::npos, std::string("the report says ") + words);
  }
}

// One call that met something else on its machine must not make what serves look slower than what
// it is compared with: both columns are medians. (As means: 100001 us beside 2.)
void BothTimesOfARowAreMedians() {
  ServedCall call{.function = "MPI_Alltoallv",
                  .ranks = 77,
                  .largest_block_bytes = 512,
                  .algorithm = {.method = alltoallv::Method::kShared},
                  .seconds = 1e-6,
                  .native_seconds = 2e-6};
  for (int i = 0; i < 9; ++i) Record(call);
  call.seconds = 1;
  Record(call);
  const std::string report = ReportText("medians");
  const size_t row = report.find(" 77 ");
  Expect(row != std::string::npos && report.find("median us") != std::string::npos, "a row of 77");
  double seconds = 0, median_us = 0, native_us = 0;
  long long calls = 0;
  Expect(row != std::string::npos &&
             std::sscanf(report.c_str() + row, " 77 512 B shared %lld %lf %lf %lf", &calls,
                         &seconds, &median_us, &native_us) == 4,
         "the row is read");
  Expect(calls == 10 && seconds > 1, "calls and seconds are those of all");
  Expect(median_us > 0.95 && median_us < 1.05, "the median of the calls");
  Expect(native_us > 1.9 && native_us < 2.1, "the median of the library's own");
}

void Run() {
  BothTimesOfARowAreMedians();
  DefaultsAreQuiet();
  VariablesAreRead();
  NonsenseIsNamed();
  RankZeroOfTheCommunicatorDecides();
  LimitsAreThoseOfAllRanks();
  MismatchesReachEveryRank();
  EngineServes();
  OrderIsKnownOfTheStandardsOwnReductions();
  EngineServesCollectives();
}

}  // namespace
}  // namespace tutti::mpi::preload

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &tutti::mpi::preload::world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &tutti::mpi::preload::world_size);
  tutti::mpi::preload::Run();
  int failures = tutti::mpi::preload::failures;
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
