// The hierarchical exchanges against what every rank can work out by itself: each byte is a
// function of sender, receiver and place. Groups are forced, so one node plays many.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "block_exchange.h"
#include "hierarchy/groups.h"
#include "hierarchy/hierarchical.h"
#include "hierarchy/routes.h"
#include "hierarchy/sizes_message.h"
#include "hierarchy_harness.h"
#include "message.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"

namespace tutti::mpi {
namespace {

enum class Form { kCoalesced, kStaggered, kMultilevel };

Trace ExchangeAndCheck(const Case& on, const Groups& groups, Form form, int radix, int window,
                       uint32_t seed) {
  const Routes routes(groups, on.rank,
                      form == Form::kMultilevel ? Routes::Levels::kAll : Routes::Levels::kNodes);
  const auto run = form == Form::kStaggered ? StaggeredExchange : CoalescedExchange;
  const std::string what = "form=" + std::to_string(static_cast<int>(form)) +
                           " r=" + std::to_string(radix) + " b=" + std::to_string(window);
  Trace trace;
  ExchangeAndCheck(on, seed, what, [&](const BlockExchange& exchange) {
    return run(exchange, routes, radix, window, &trace);
  });
  return trace;
}

std::vector<int> RadicesFor(int members) {
  const int root = std::max(2, static_cast<int>(std::lround(std::sqrt(members))));
  std::vector<int> radices = {2, 3, 4, root, std::max(2, members)};
  std::sort(radices.begin(), radices.end());
  radices.erase(std::unique(radices.begin(), radices.end()), radices.end());
  return radices;
}

// --- Index arithmetic, on one rank for all -------------------------------------------------------

void RoutesAgree(const Groups& groups, Routes::Levels levels, const std::string& name) {
  const int size = groups.size;
  std::vector<Routes> all;
  all.reserve(Index(size));
  for (int r = 0; r < size; ++r) all.emplace_back(groups, r, levels);
  std::vector<const Routes*> at(Index(size));  // by position
  for (const Routes& routes : all) at[Index(routes.position())] = &routes;
  for (int p = 0; p < size; ++p) {
    const Routes& mine = *at[Index(p)];
    const int last = mine.num_levels() - 1;
    Expect(mine.group(last) == Range{0, size}, "last level holds all, " + name);
    Expect(mine.held(last) == std::vector<int>{p}, "a rank ends with its own, " + name);
    size_t served = 0;
    for (int m = 0; m < mine.group(0).size(); ++m) {
      served += mine.bundle(m).size();
      Expect(mine.bundle(m) == at[Index(mine.group(0).begin + m)]->held(0), "bundles, " + name);
      if (last == 1) {
        const int outside = size - mine.group(0).size();
        const auto floor = Index(outside / mine.group(0).size());
        const size_t others = mine.bundle(m).size() - 1;
        Expect(others == floor || (others == floor + 1 && outside % mine.group(0).size() != 0),
               "destinations spread evenly, " + name);
      }
    }
    Expect(served == Index(size), "every destination has one holder, " + name);
    for (int l = 1; l <= last; ++l) {
      const Routes::Phase& phase = mine.phase(l);
      size_t leaving = Index(phase.kept.size());
      Expect(Index(phase.kept.size()) == mine.held(l).size(), "kept, " + name);
      for (const Routes::Send& send : phase.sends) {
        leaving += Index(send.held.size());
        const Routes& other = *at[Index(send.to)];
        Expect(std::equal(mine.held(l - 1).begin() + send.held.begin,
                          mine.held(l - 1).begin() + send.held.end, other.held(l).begin(),
                          other.held(l).end()),
               "a message is what its receiver holds, " + name);
        const auto receives = std::count_if(
            other.phase(l).steps.begin(), other.phase(l).steps.end(), [&](const auto& step) {
              return step.receive.from == p && step.receive.sources == mine.group(l - 1);
            });
        Expect(receives == 1, "the receiver expects it, " + name);
      }
      Expect(leaving == mine.held(l - 1).size(), "all that is held goes on, " + name);
    }
  }
}

void TestIndexArithmetic() {
  // By hand: nodes {0, 2, 4} and {1, 3}. Positions 0 2 4 | 1 3. For rank 3 (position 4) node 0's
  // holder is its member 4 mod 3 = 1, rank 2; for rank 4 (position 2) node 1's is 3 + 2 mod 2,
  // rank 1.
  const Groups uneven = NestedGroups(5, {{7, 3, 7, 3, 7}});
  Expect(uneven.levels == std::vector<std::vector<int>>{{0, 1, 0, 1, 0}}, "groups are renumbered");
  const Routes routes(uneven, 2, Routes::Levels::kNodes);
  Expect(routes.position() == 1 && routes.rank(3) == 1, "positions by node");
  Expect(routes.held(0) == std::vector<int>{1, 4}, "rank 2 holds for itself and rank 3");
  Expect(Routes(uneven, 1, Routes::Levels::kNodes).held(0) == std::vector<int>{0, 2, 3},
         "rank 1 holds for ranks 0, 4 and itself");

  Expect(NestedGroups(4, {{0, 1, 2, 3}, {0, 0, 1, 1}}).levels.size() == 1, "single ranks dropped");
  Expect(NestedGroups(4, {{0, 0, 1, 1}, {5, 5, 4, 4}}).levels.size() == 1, "equal levels dropped");
  Expect(NestedGroups(4, {{0, 0, 0, -1}, {0, 0, 1, 1}}).levels.size() == 1, "unknown dropped");
  // A socket number that two nodes share names two groups.
  Expect(NestedGroups(8, {{0, 0, 1, 1, 0, 0, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}}).levels.front() ==
             std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3},
         "groups lie inside those of the next level");
  Expect(NestedGroups(3, {}).levels.empty() &&
             NodesOf(NestedGroups(3, {})) == std::vector<int>{0, 0, 0},
         "no level is one node");

  for (int size = 1; size <= 24; ++size) {
    for (int ranks = 1; ranks <= size; ++ranks) {
      RoutesAgree(GroupsOfConsecutiveRanks(size, std::vector<int>{ranks}), Routes::Levels::kNodes,
                  "consecutive");
    }
    for (uint32_t seed = 0; seed < 12; ++seed) {
      RoutesAgree(RandomGroups(size, 1 + static_cast<int>(seed % 3), seed), Routes::Levels::kAll,
                  "random " + std::to_string(size) + " " + std::to_string(seed));
    }
  }
}

void TestRanksPerGroupText() {
  Expect(ParseRanksPerGroup("32").value() == std::vector<int>{32}, "32");
  Expect(ParseRanksPerGroup("4,8,32").value() == std::vector<int>{4, 8, 32}, "4,8,32");
  for (const char* bad :
       {"", "0", "-4", "x", "8,", ",8", "8,12", "8 16", "1,2,4,8,16", "8.5", "99999999999999"}) {
    const auto parsed = ParseRanksPerGroup(bad);
    Expect(!parsed.has_value(), std::string("accepted \"") + bad + "\"");
    Expect(parsed.has_value() || parsed.error().message.find("wanted") != std::string::npos,
           "message says what is wanted");
  }
  Expect(GroupsOfConsecutiveRanks(7, std::vector<int>{2, 4}).levels ==
             std::vector<std::vector<int>>{{0, 0, 1, 1, 2, 2, 3}, {0, 0, 0, 0, 1, 1, 1}},
         "consecutive groups");
}

void TestSizesMessages() {
  for (const int64_t largest :
       {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{65'536}, int64_t{1} << 40}) {
    const std::vector<int64_t> sizes = {0, largest, 7, largest / 2};
    std::vector<std::byte> message(static_cast<size_t>(SizesMessageBytes(4)));
    const int64_t bytes = EncodeSizes(sizes, message.data());
    const int64_t width = largest < 256 ? 1 : largest < 65'536 ? 2 : largest >> 32 == 0 ? 4 : 8;
    Expect(bytes == 8 + 4 * width, "width of sizes");
    std::vector<int64_t> back(4);
    DecodeSizes(message.data(), back);
    Expect(back == sizes, "sizes come back");
  }
}

// --- Exchanges
// ------------------------------------------------------------------------------------

// Every radix up to 20 ranks; above, another of them for each number of ranks per node.
void TestEveryDivisor(const Case& on, uint32_t* seed) {
  int turn = on.size;
  for (int ranks = 1; ranks <= on.size; ++ranks) {
    if (on.size % ranks != 0) continue;
    const Groups groups = GroupsOfConsecutiveRanks(on.size, std::vector<int>{ranks});
    const int windows[] = {1, 2, on.size / ranks};
    std::vector<int> radices = RadicesFor(ranks);
    if (on.size > 20) radices = {radices[Index(turn) % radices.size()]};
    for (const int radix : radices) {
      ExchangeAndCheck(on, groups, Form::kCoalesced, radix, windows[turn % 3], (*seed)++);
      ExchangeAndCheck(on, groups, Form::kStaggered, radix, windows[(turn + 1) % 3], (*seed)++);
      ++turn;
    }
  }
}

void TestUnequalGroups(const Case& on, uint32_t* seed, int trials) {
  for (int trial = 0; trial < trials; ++trial) {
    const Groups groups = RandomGroups(on.size, 1 + trial % 3, *seed);
    const int window = 1 + trial % 4;
    ExchangeAndCheck(on, groups, Form::kCoalesced, 2 + trial % 3, window, (*seed)++);
    ExchangeAndCheck(on, groups, Form::kStaggered, 2 + trial % 4, window, (*seed)++);
    ExchangeAndCheck(on, groups, Form::kMultilevel, 2 + trial % 3, window, (*seed)++);
  }
}

void TestLevels(const Case& on, uint32_t* seed) {
  for (const std::vector<int>& ranks : {std::vector<int>{2, 4}, std::vector<int>{2, 4, 8},
                                        std::vector<int>{3, 6}, std::vector<int>{1, 4}}) {
    ExchangeAndCheck(on, GroupsOfConsecutiveRanks(on.size, ranks), Form::kMultilevel, 0, 0,
                     (*seed)++);
  }
}

// Between two equal nodes of Q ranks a rank sends one coalesced message, or one a block.
void TestMessagesAndMemory(const Case& on) {
  if (on.size % 4 != 0 || on.size < 8) return;
  const int ranks = 4;
  const Groups groups = GroupsOfConsecutiveRanks(on.size, std::vector<int>{ranks});
  const uint32_t seed = 11;
  const Trace coalesced = ExchangeAndCheck(on, groups, Form::kCoalesced, 2, 1, seed);
  // Radix 2 in 4 ranks: two rounds, sizes and data, then at most a message a node.
  const int64_t nodes = on.size / ranks;
  Expect(coalesced.rounds == 2, "rounds");
  Expect(coalesced.messages <= 4 + nodes - 1, "coalesced messages");
  const Routes routes(groups, on.rank, Routes::Levels::kNodes);
  int64_t held = 0;  // for others, at this rank, when the node is done
  int64_t blocks = 0;
  int64_t passing = 0;  // everything that could wait here at once before that
  for (const int d : routes.held(0)) {
    if (d == routes.position()) continue;
    for (int s = routes.group(0).begin; s < routes.group(0).end; ++s) {
      const int64_t bytes = BlockBytes(seed, routes.rank(s), routes.rank(d));
      held += bytes;
      blocks += bytes > 0 ? 1 : 0;
    }
  }
  for (int s = routes.group(0).begin; s < routes.group(0).end; ++s) {
    for (int d = 0; d < on.size; ++d) {
      passing += BlockBytes(seed, routes.rank(s), routes.rank(d));
    }
  }
  Expect(held <= coalesced.temporary_bytes && coalesced.temporary_bytes <= held + passing,
         "bytes held");
  const Trace staggered = ExchangeAndCheck(on, groups, Form::kStaggered, 2, 1, seed);
  Expect(staggered.messages == 4 + blocks || staggered.messages < coalesced.messages + blocks,
         "staggered messages");
}

void TestFindGroups(const Case& on) {
  Groups groups;
  unsetenv("TUTTI_RANKS_PER_NODE");
  Expect(FindGroups(on.communicator, &groups) == MPI_SUCCESS && groups.size == on.size, "found");
  const Groups found = groups;
#ifndef TUTTI_MPI_SMPI
  // Also where one computer plays several (on_nodes.sh).
  Expect(NodesOf(found) == NodesOf(NestedGroups(on.size, {ComputersOf(on)})),
         "nodes are the computers that ranks run on");
#endif
  for (const char* nonsense : {"0", "many", "4,6"}) {
    setenv("TUTTI_RANKS_PER_NODE", nonsense, 1);
    Expect(FindGroups(on.communicator, &groups) == MPI_SUCCESS && groups == found,
           "nonsense is ignored");
  }
  setenv("TUTTI_RANKS_PER_NODE", "2,4", 1);
  Expect(FindGroups(on.communicator, &groups) == MPI_SUCCESS &&
             groups == GroupsOfConsecutiveRanks(on.size, std::vector<int>{2, 4}),
         "forced groups");
  // Of the world: where a communicator has its ranks in another order, they lie where they did.
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(on.communicator, 0, -on.rank, &reversed);
  std::vector<int> nodes;
  for (int r = 0; r < on.size; ++r) nodes.push_back((on.size - 1 - r) / 4);
#ifndef TUTTI_MPI_SMPI  // where all ranks have one environment
  // Only rank 0 is asked.
  if (on.rank != on.size - 1) unsetenv("TUTTI_RANKS_PER_NODE");
#endif
  Expect(FindGroups(reversed, &groups) == MPI_SUCCESS &&
             NodesOf(groups) == NodesOf(NestedGroups(on.size, {nodes})),
         "forced groups of a part of the world");
  MPI_Comm_free(&reversed);
  unsetenv("TUTTI_RANKS_PER_NODE");
}

// As a program calls them: by name, groups looked up by the call.
void TestByName(const Case& on) {
  setenv("TUTTI_RANKS_PER_NODE", "2,6", 1);
  MPI_Comm fresh = MPI_COMM_NULL;
  MPI_Comm_dup(on.communicator, &fresh);
  for (const alltoallv::Algorithm& algorithm :
       {alltoallv::Algorithm{alltoallv::Method::kCoalesced, 3, 2},
        alltoallv::Algorithm{alltoallv::Method::kStaggered, 2, 1},
        alltoallv::Algorithm{alltoallv::Method::kMultilevel, 0, 0}}) {
    std::vector<int> counts(Index(on.size)), places(Index(on.size)), back_counts(Index(on.size)),
        back_places(Index(on.size)), sent, expected;
    for (int r = 0; r < on.size; ++r) {
      counts[Index(r)] = (on.rank + 2 * r) % 5;
      places[Index(r)] = static_cast<int>(sent.size());
      sent.insert(sent.end(), Index(counts[Index(r)]), on.rank * 1000 + r);
      back_counts[Index(r)] = (r + 2 * on.rank) % 5;
      back_places[Index(r)] = static_cast<int>(expected.size());
      expected.insert(expected.end(), Index(back_counts[Index(r)]), r * 1000 + on.rank);
    }
    std::vector<int> received(expected.size(), -1);
    const int error = Alltoallv(sent.data(), counts.data(), places.data(), MPI_INT, received.data(),
                                back_counts.data(), back_places.data(), MPI_INT, fresh, algorithm);
    Expect(error == MPI_SUCCESS && received == expected, "by name: " + ToString(algorithm));
    std::vector<int> one(Index(on.size)), answers(Index(on.size), -1);
    for (int r = 0; r < on.size; ++r) one[Index(r)] = on.rank * 1000 + r;
    Alltoall(one.data(), 1, MPI_INT, answers.data(), 1, MPI_INT, fresh, algorithm);
    for (int r = 0; r < on.size; ++r) {
      Expect(answers[Index(r)] == r * 1000 + on.rank, "uniform: " + ToString(algorithm));
    }
  }
  MPI_Comm_free(&fresh);
  unsetenv("TUTTI_RANKS_PER_NODE");
}

int Main() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    TestIndexArithmetic();
    TestRanksPerGroupText();
    TestSizesMessages();
  }
  ForEachNumberOfRanks(rank, size, [&](const Case& on, bool is_only) {
    auto seed = static_cast<uint32_t>(on.size) * 1000;
    TestEveryDivisor(on, &seed);
    TestUnequalGroups(on, &seed, is_only ? 12 : on.size > 20 ? 1 : 3);
    if (on.size % 8 == 0 || on.size < 20) TestLevels(on, &seed);
    TestMessagesAndMemory(on);
    if (on.size == size) TestFindGroups(on);
    if (on.size % 7 == 2 || on.size == size) TestByName(on);
  });
  return Verdict("hierarchy_test", rank, size);
}

}  // namespace
}  // namespace tutti::mpi

int main(int argc, char** argv) { return tutti::mpi::WithMpi(argc, argv, &tutti::mpi::Main); }
