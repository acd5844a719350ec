// The engine over MPI: what every kind of connection is tried with, on the first ranks of the job; the same bytes
// as over shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "connection_cases.h"
#include "mpi_transport.h"
#include "ranks_in_memory.h"
#include "tutti/base/deadline.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using testing::HasSubstr;

int RankInWorld() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// The first ranks of the job; others have none.
class FirstRanks {
 public:
  explicit FirstRanks(int32_t count) {
    MPI_Comm_split(MPI_COMM_WORLD, RankInWorld() < count ? 0 : MPI_UNDEFINED, 0, &ranks_);
  }
  ~FirstRanks() {
    if (ranks_ != MPI_COMM_NULL) MPI_Comm_free(&ranks_);
  }
  FirstRanks(const FirstRanks&) = delete;
  FirstRanks& operator=(const FirstRanks&) = delete;

  bool has_me() const { return ranks_ != MPI_COMM_NULL; }
  MPI_Comm get() const { return ranks_; }

 private:
  MPI_Comm ranks_ = MPI_COMM_NULL;
};

// Until it is over and all has left; "": it was.
std::string RunToEnd(Interpreter& interpreter, PeerTransport& transport, Random& random,
                     int64_t max_budget) {
  const Deadline deadline(120);
  interpreter.Start();
  for (int stuck = 0; !deadline.HasPassed();) {
    const auto budget = static_cast<int64_t>(random.Below(static_cast<uint64_t>(max_budget)));
    const Interpreter::Outcome outcome = interpreter.Poll(budget + 1);
    if (outcome == Interpreter::Outcome::kOver && transport.is_quiet()) return "";
    if (Status health = interpreter.health(); !health) return health.error().message;
    stuck = outcome == Interpreter::Outcome::kMoved ? 0 : stuck + 1;
    if (stuck > 1) interpreter.SaveWanted();
    if (transport.Poll(stuck > 2 ? 1 : 0)) stuck = 0;
  }
  return "it did not end";
}

std::vector<std::byte> OverSharedMemory(const ConnectionCase& each, int32_t rank) {
  RanksInMemory ranks(each.plan, each.options);
  SharedEnds ends(ranks);
  std::deque<Interpreter> interpreters;
  for (int32_t r = 0; r < ranks.num_ranks(); ++r)
    interpreters.push_back(ranks.MakeInterpreter(r, ends.Of(ranks, r)));
  ranks.Fill();
  EXPECT_TRUE(RunInTurns(
      interpreters, [] { return kNoBudget; }, [] { return false; }));
  return ranks.ResultsOf(rank);
}

TEST(MpiConnectionsTest, EveryPlanGivesTheBytesOfSharedMemory) {
  const int rank = RankInWorld();
  for (const ConnectionCase& each : ConnectionCases()) {
    SCOPED_TRACE(testing::Message()
                 << Name(each.plan.collective.kind()) << " " << each.options.count << " "
                 << Name(each.options.type) << " " << Name(each.options.op));
    const FirstRanks first(each.plan.collective.num_ranks());
    if (!first.has_me()) continue;
    RanksInMemory ranks(each.plan, each.options);
    const auto transport = MpiTransport::Make(first.get(), rank, 7).value();
    Interpreter interpreter =
        ranks.MakeInterpreter(rank, PeerEnds(ranks.program(), rank, *transport));
    Random random(static_cast<uint64_t>(rank));
    for (const int64_t max_budget : {int64_t{1} << 40, int64_t{5000}}) {
      ranks.Fill();
      MPI_Barrier(first.get());
      ASSERT_EQ(RunToEnd(interpreter, *transport, random, max_budget), "");
      ASSERT_EQ(ranks.CountWrongOf(rank), 0);
    }
    EXPECT_EQ(ranks.ResultsOf(rank), OverSharedMemory(each, rank));
    MPI_Barrier(first.get());
  }
}

TEST(MpiConnectionsTest, RanksThatRunDifferentCallsSaySo) {
  const int rank = RankInWorld();
  const FirstRanks first(2);
  if (!first.has_me()) return;
  const Plan plan = RingAllReduce(2);
  RanksInMemory ranks(plan, {.count = 8});
  const auto transport = MpiTransport::Make(first.get(), rank, rank == 0 ? 0x11 : 0x22).value();
  Interpreter interpreter =
      ranks.MakeInterpreter(rank, PeerEnds(ranks.program(), rank, *transport));
  Random random(1);
  EXPECT_THAT(RunToEnd(interpreter, *transport, random, 1 << 20),
              HasSubstr(rank == 0 ? "connection 1 -> 0 channel 0: got message 0 of call "
                                    "0000000000000022 with 32 bytes, wanted message 0 of call "
                                    "0000000000000011 with 32: the ranks do not run the same"
                                  : "connection 0 -> 1 channel 0: got message 0 of call "
                                    "0000000000000011"));
  MPI_Barrier(first.get());
}

TEST(MpiConnectionsTest, AChannelThatIsNoTagIsRefused) {
  const auto transport = MpiTransport::Make(MPI_COMM_WORLD, RankInWorld(), 1).value();
  EXPECT_THAT(transport->SendTo(0, -1)->health().error().message,
              HasSubstr("channel -1 is no tag of this MPI library"));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
