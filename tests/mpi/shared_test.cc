// The exchanges over memory that the ranks of a node share: plans by themselves, blocks against
// what every rank can work out, ranks that come late, programs that need progress while they wait,
// communicators that come and go, and what serves where memory cannot be shared.
#include "hierarchy/shared.h"

#include <mpi.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "hierarchy/groups.h"
#include "hierarchy/node_memory.h"
#include "hierarchy/shared_plan.h"
#include "hierarchy_harness.h"
#include "served.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;
using Form = SharedPlan::Form;

constexpr Form kForms[] = {Form::kRuns, Form::kCoalesced};

// --- Plans, on one rank for all ------------------------------------------------------------------

void PlansAgree(const Groups& groups, Form form, const std::string& name) {
  std::vector<SharedPlan> plans;
  for (int r = 0; r < groups.size; ++r) plans.emplace_back(groups, r, form);
  const std::vector<int> node_of = NodesOf(groups);
  for (int r = 0; r < groups.size; ++r) {
    const SharedPlan& mine = plans[Index(r)];
    std::vector<int> covered(Index(groups.size), 0);
    std::vector<int> messages(Index(mine.members()), 0);
    for (size_t i = 0; i < mine.received().size(); ++i) {
      const SharedPlan::Message& message = mine.received()[i];
      for (int p = message.sources.begin; p < message.sources.end; ++p) ++covered[Index(p)];
      ++messages[Index(message.member)];
      Expect(message.place + message.sources.size() <= mine.layout().rows, "rows, " + name);
      Expect(i == 0 || mine.received()[i - 1].Wave(3) <= message.Wave(3), "waves, " + name);
    }
    for (int p = 0; p < groups.size; ++p) {
      Expect(covered[Index(p)] == (mine.node().contains(p) ? 0 : 1), "every source once, " + name);
    }
    const auto [least, most] = std::minmax_element(messages.begin(), messages.end());
    Expect(*most - *least <= 1 && *most <= mine.max_messages(), "spread evenly, " + name);
    // What two ranks expect of each other, in order.
    for (int other = 0; other < groups.size; ++other) {
      if (node_of[Index(other)] == node_of[Index(r)]) continue;
      const SharedPlan& theirs = plans[Index(other)];
      std::vector<SharedPlan::Message> out, in;
      for (const auto& each : mine.sent()) {
        if (each.member == mine.self() && each.peer == other) out.push_back(each);
      }
      for (const auto& each : theirs.received()) {
        if (each.member == theirs.self() && each.peer == r) in.push_back(each);
      }
      Expect(std::equal(out.begin(), out.end(), in.begin(), in.end(),
                        [](const auto& a, const auto& b) {
                          return a.sources == b.sources && a.Wave(4) == b.Wave(4);
                        }),
             "sender and receiver agree, " + name);
    }
  }
}

void TestPlans() {
  // By hand: nodes {0, 1, 2} and {3, 4}. As one other node is there, two messages per rank would be
  // six and four: a rank is a part. Node 0 receives two, by its ranks 0 and 1.
  const Groups uneven = NestedGroups(5, {{0, 0, 0, 1, 1}});
  const SharedPlan plan(uneven, 1, Form::kCoalesced);
  Expect(plan.received().size() == 2 && plan.sent().size() == 3, "messages by hand");
  Expect(plan.received()[1].peer == 4 && plan.received()[1].member == 1, "received by hand");
  Expect(plan.sent()[2].peer == 3 && plan.sent()[2].sources == Range{2, 3}, "sent by hand");
  Expect(!plan.gathers() && plan.max_messages() == 2, "own messages by hand");
  // 12 nodes of 2: 11 others, one part a node, which both ranks fill.
  const Groups many = GroupsOfConsecutiveRanks(24, std::vector<int>{2});
  const SharedPlan gathered(many, 0, Form::kCoalesced);
  Expect(gathered.sent().size() == 11 && gathered.gathers(), "parts of several ranks");
  Expect(gathered.sent()[3].member == 1 && gathered.sent()[3].sources == Range{0, 2}, "in turn");
  for (const Form form : kForms) {
    for (int size = 1; size <= 20; ++size) {
      for (int ranks = 1; ranks <= size; ++ranks) {
        PlansAgree(GroupsOfConsecutiveRanks(size, std::vector<int>{ranks}), form, "consecutive");
      }
      for (uint32_t seed = 0; seed < 8; ++seed) {
        PlansAgree(RandomGroups(size, 1, seed), form,
                   "random " + std::to_string(size) + " " + std::to_string(seed));
      }
    }
  }
}

// --- Exchanges -----------------------------------------------------------------------------------

#ifndef TUTTI_MPI_SMPI
// Groups that a test forces may hold ranks of several computers (on_nodes.sh).
bool EachNodeIsOnOneComputer(const Case& on, const Groups& groups) {
  const std::vector<int> nodes = NodesOf(groups), computers = ComputersOf(on);
  for (int r = 0; r < on.size; ++r) {
    for (int other = 0; other < r; ++other) {
      if (nodes[Index(r)] == nodes[Index(other)] &&
          computers[Index(r)] != computers[Index(other)]) {
        return false;
      }
    }
  }
  return true;
}
#endif

// Both forms in turn over the same memory, as calls of a program are.
void TestPlacement(const Case& on, const Groups& groups, uint32_t* seed) {
  const SharedPlan plans[] = {{groups, on.rank, kForms[0]}, {groups, on.rank, kForms[1]}};
  std::vector<int> members;
  for (int p = plans[0].node().begin; p < plans[0].node().end; ++p) {
    members.push_back(plans[0].rank(p));
  }
  std::unique_ptr<NodeMemory> memory;
  const int64_t bytes = std::max(plans[0].layout().bytes, plans[1].layout().bytes);
  const int error = NodeMemory::Make(on.communicator, members, plans[0].self(), bytes, &memory);
#ifdef TUTTI_MPI_SMPI
  const bool can_share = true;  // one process
#else
  const bool can_share = EachNodeIsOnOneComputer(on, groups);
#endif
  Expect(error == MPI_SUCCESS && (memory != nullptr) == can_share,
         "memory is shared where all nodes can");
  if (memory == nullptr) return;
  SharedScratch scratch;
  for (int call = 0; call < 4; ++call) {
    const SharedPlan& plan = plans[call % 3 == 0 ? 0 : 1];
    Trace trace;
    ExchangeAndCheck(on, (*seed)++, "shared, nodes=" + std::to_string(plan.nodes()),
                     [&](const BlockExchange& exchange) {
                       return SharedExchange(exchange, plan, call, *memory, scratch, &trace);
                     });
    int64_t large = 0;
    for (int r = 0; r < on.size; ++r) {
      large += BlockBytes(*seed - 1, on.rank, r) > kLongestShared ? 1 : 0;
    }
    Expect(trace.messages <= plan.max_messages() + large, "messages");
  }
}

void TestPlacements(const Case& on, uint32_t* seed, int trials) {
  for (int ranks = 1; ranks <= on.size; ++ranks) {
    if (on.size % ranks != 0) continue;
    TestPlacement(on, GroupsOfConsecutiveRanks(on.size, std::vector<int>{ranks}), seed);
  }
  for (int trial = 0; trial < trials; ++trial) {
    TestPlacement(on, RandomGroups(on.size, 1, *seed), seed);
  }
}

// --- As programs call it -------------------------------------------------------------------------

// One call of `elements` integers a pair at most; whether the answer is right.
bool ExchangeIntegers(MPI_Comm communicator, const Algorithm& algorithm, int elements, int turn) {
  int rank = 0, size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const auto count = [&](int from, int to) { return (from * 5 + to * 3 + turn) % (elements + 1); };
  std::vector<int> counts, places, back_counts, back_places, sent, expected;
  for (int r = 0; r < size; ++r) {
    counts.push_back(count(rank, r));
    places.push_back(static_cast<int>(sent.size()));
    sent.insert(sent.end(), Index(counts.back()), rank * 1000 + r + turn);
    back_counts.push_back(count(r, rank));
    back_places.push_back(static_cast<int>(expected.size()));
    expected.insert(expected.end(), Index(back_counts.back()), r * 1000 + rank + turn);
  }
  std::vector<int> received(expected.size(), -1);
  const int error =
      Alltoallv(sent.data(), counts.data(), places.data(), MPI_INT, received.data(),
                back_counts.data(), back_places.data(), MPI_INT, communicator, algorithm);
  return error == MPI_SUCCESS && received == expected;
}

constexpr Algorithm kShared{.method = Method::kShared};
constexpr Algorithm kSharedCoalesced{.method = Method::kSharedCoalesced, .block_count = 2};

// Small, large, small again; several communicators at once; freed and made again.
void TestCommunicators(const Case& on) {
  for (const char* ranks : {"", "3", "2,4"}) {
    if (*ranks != '\0') setenv("TUTTI_RANKS_PER_NODE", ranks, 1);
    for (int round = 0; round < 3; ++round) {
      std::vector<MPI_Comm> alive(3);
      MPI_Comm_dup(on.communicator, &alive[0]);
      MPI_Comm_split(on.communicator, on.rank % 2, on.size - on.rank, &alive[1]);
      MPI_Comm_split(on.communicator, on.rank / 3, on.rank, &alive[2]);
      for (const int elements : {3, 40'000 / on.size, 0, 30'000, 5}) {
        for (MPI_Comm communicator : alive) {
          Expect(ExchangeIntegers(communicator, kShared, elements, round), "shared by name");
          Expect(ExchangeIntegers(communicator, kSharedCoalesced, elements, round), "coalesced");
        }
      }
      for (MPI_Comm& communicator : alive) MPI_Comm_free(&communicator);
    }
    unsetenv("TUTTI_RANKS_PER_NODE");
  }
}

#ifndef TUTTI_MPI_SMPI
void TestLateRanks(const Case& on) {
  MPI_Comm fresh = MPI_COMM_NULL;
  MPI_Comm_dup(on.communicator, &fresh);
  for (int turn = 0; turn < 12; ++turn) {
    if (turn % on.size == on.rank) usleep(3000);
    Expect(ExchangeIntegers(fresh, turn % 2 == 0 ? kShared : kSharedCoalesced, 9, turn), "late");
  }
  MPI_Comm_free(&fresh);
}
#endif

// A legal program in which one rank's call can begin only once another that waits in its call has
// moved a long message along.
void TestProgress(const Case& on) {
  if (on.size < 2) return;
  for (const char* ranks : {"", "2"}) {
    if (*ranks != '\0') setenv("TUTTI_RANKS_PER_NODE", ranks, 1);
    MPI_Comm fresh = MPI_COMM_NULL;
    MPI_Comm_dup(on.communicator, &fresh);
    std::vector<char> message(1 << 20, static_cast<char>(on.rank));
    MPI_Request request = MPI_REQUEST_NULL;
    if (on.rank == 0) MPI_Send(message.data(), 1 << 20, MPI_CHAR, 1, 7, on.communicator);
    if (on.rank == 1) {
      MPI_Irecv(message.data(), 1 << 20, MPI_CHAR, 0, 7, on.communicator, &request);
    }
    Expect(ExchangeIntegers(fresh, kShared, 4, 1), "exchange beside a long message");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    Expect(on.rank != 1 || message.back() == 0, "the long message");
    MPI_Comm_free(&fresh);
    unsetenv("TUTTI_RANKS_PER_NODE");
  }
}

// A process that may not have any number of addresses does without, and so do all with it.
void TestFallback(const Case& on) {
  MPI_Comm fresh = MPI_COMM_NULL;
  MPI_Comm_dup(on.communicator, &fresh);
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit limited = before;
  limited.rlim_cur = rlim_t{1} << 46;
  if (on.rank == on.size - 1) setrlimit(RLIMIT_AS, &limited);
  Expect(ExchangeIntegers(fresh, kShared, 7, 2), "exchange without shared memory");
  Expect(LatestServed().algorithm.method == Method::kCoalesced || on.size == 1, "says so");
  if (on.rank == on.size - 1) setrlimit(RLIMIT_AS, &before);
  Expect(ExchangeIntegers(fresh, kSharedCoalesced, 7, 3), "and later");
  MPI_Comm_free(&fresh);
}

int Main() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) TestPlans();
  ForEachNumberOfRanks(rank, size, [&](const Case& on, bool is_only) {
    auto seed = static_cast<uint32_t>(on.size) * 1000;
    TestPlacements(on, &seed, is_only ? 8 : 2);
    if (on.size == size) {
      TestCommunicators(on);
      TestProgress(on);
      TestFallback(on);
#ifndef TUTTI_MPI_SMPI
      TestLateRanks(on);
#endif
    }
  });
  return Verdict("shared_test", rank, size);
}

}  // namespace
}  // namespace tutti::mpi

int main(int argc, char** argv) { return tutti::mpi::WithMpi(argc, argv, &tutti::mpi::Main); }
