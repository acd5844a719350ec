#include "interpreter.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "hand_plans.h"
#include "ranks_in_memory.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

std::vector<Plan> Plans() {
  return {RingAllGather(4),     RingAllReduce(5),     ExchangeAllReduce(2),
          ExchangeAllReduce(8), DoublingAllGather(8), RingAllGather(1)};
}

// Runs the plan twice in one process and one thread.
void ExpectRight(const Plan& plan, const CallOptions& options, int64_t max_budget, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << Name(plan.collective.kind()) << " count " << options.count
                                  << (options.in_place ? " in place" : "") << " seed " << seed);
  Random random(seed);
  RanksInMemory ranks(plan, options);
  SharedEnds ends(ranks);
  std::deque<Interpreter> interpreters;
  for (int32_t r = 0; r < ranks.num_ranks(); ++r)
    interpreters.push_back(ranks.MakeInterpreter(r, ends.Of(ranks, r)));
  for (int run = 0; run < 2; ++run) {
    ranks.Fill();
    const bool over = RunInTurns(
        interpreters,
        [&] { return 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(max_budget))); },
        [] { return false; });
    ASSERT_TRUE(over);
    ASSERT_EQ(ranks.CountWrong(), 0);
  }
}

TEST(InterpreterTest, AnyCountOnOneThread) {
  for (const Plan& plan : Plans())
    for (const bool in_place : {false, true})
      for (const int64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 1000, 1009})
        ExpectRight(plan, {.count = count, .in_place = in_place}, kNoBudget - 2, 1);
}

TEST(InterpreterTest, GoesOnWithinAMessageWhereTheBudgetEnded) {  // and reduces nothing twice
  uint64_t seed = 0;
  for (const Plan& plan : Plans())
    for (const bool in_place : {false, true})
      for (const int64_t budget : {1, 7, 64, 1000})
        for (const int64_t piece : {100, 1 << 20})
          ExpectRight(plan, {.count = 1009, .in_place = in_place, .piece_bytes = piece}, budget,
                      ++seed);
}

TEST(InterpreterTest, EveryTypeAndOperationInParts) {
  for (int type = 0; type < 7; ++type)
    for (int op = 0; op < 5; ++op)
      ExpectRight(RingAllReduce(3),
                  {.count = 101,
                   .type = static_cast<DataType>(type),
                   .op = static_cast<ReduceOp>(op),
                   .in_place = op % 2 == 0},
                  24, 7);
}

TEST(InterpreterTest, APlanThatWaitsForItselfStaysStuck) {
  Plan plan = RingAllReduce(2);  // both first sends wait for their own last receive
  for (RankPlan& rank : plan.ranks) rank.streams[0].instructions[0].after = {{1, 1}};
  RanksInMemory ranks(plan, {.count = 4});
  SharedEnds ends(ranks);
  std::deque<Interpreter> interpreters;
  for (int32_t r = 0; r < 2; ++r)
    interpreters.push_back(ranks.MakeInterpreter(r, ends.Of(ranks, r)));
  EXPECT_FALSE(RunInTurns(
      interpreters, [] { return kNoBudget; }, [] { return false; }));
}

}  // namespace
}  // namespace tutti
