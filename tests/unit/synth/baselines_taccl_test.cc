// taccl-like: the integer program over the time-expanded network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "classic_support.h"
#include "tutti/base/cancel.h"
#include "tutti/synth/time_expanded_program.h"

namespace tutti::classic_test {
namespace {

using ::testing::HasSubstr;
using Kind = CollectiveKind;

Result<TimeExpandedAnswer> Solve(const Topology& topology, const SynthOptions& options = {},
                                 double seconds = 30) {
  return SolveTimeExpanded(topology, *Collective::Make(Kind::kAllGather, topology.num_ranks()),
                           options, seconds);
}

// uniring(1,3): two slots, and in each every rank passes on what it has got last.
TEST(TacclLikeTest, WorkedExample) {
  const Topology topology = Parse("uniring(1,3)");
  const Schedule made = MustRun("taccl-like", topology, Kind::kAllGather);
  ASSERT_EQ(made.transfers.size(), 6u);
  for (const Transfer& transfer : made.transfers)
    EXPECT_EQ((transfer.shard.value + transfer.step) % 3, topology.tail(transfer.link).value);
}

// Slots known to be least: distances, what comes into a rank, or that nothing shorter is possible.
TEST(TacclLikeTest, FindsTheLeastSlots) {
  struct Case {
    const char* expression;
    int32_t slots;
  };
  const std::vector<Case> cases = {{"uniring(1,5)", 4}, {"ring(7)", 3},      {"complete(5)", 1},
                                   {"mesh(3,3)", 4},    {"torus(3,3)", 2},   {"hypercube(3)", 3},
                                   {"dgx1", 2},         {"genkautz(2,7)", 6}};
  for (const Case& c : cases) {
    const Topology topology = Parse(c.expression);
    const Result<TimeExpandedAnswer> answer = Solve(topology);
    ASSERT_TRUE(answer.has_value()) << c.expression << ": " << answer.error().message;
    EXPECT_LE(answer->min_slots, answer->slots);
    ExpectSound("taccl-like", topology, answer->schedule.collective, answer->schedule);
    EXPECT_EQ(answer->Gap() == 0, answer->min_slots == answer->slots);
    EXPECT_EQ(answer->slots, c.slots) << c.expression;
  }
}

// A slow link takes as many slots as it is slower; the way round it is shorter.
TEST(TacclLikeTest, SlowLinksTakeMoreSlots) {
  Topology::Builder builder(3);
  const LinkSpec fast{100'000'000'000, 0}, slow{10'000'000'000, 0};
  builder.AddDuplex(NodeId{0}, NodeId{1}, fast);
  builder.AddDuplex(NodeId{1}, NodeId{2}, fast);
  builder.AddDuplex(NodeId{0}, NodeId{2}, slow);
  const Topology topology = *std::move(builder).Build();
  const Result<TimeExpandedAnswer> answer = Solve(topology);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->slots, 2);
  for (const Transfer& transfer : answer->schedule.transfers)
    EXPECT_EQ(topology.bandwidth(transfer.link), fast.bandwidth);
  ExpectSound("taccl-like", topology, answer->schedule.collective, answer->schedule);
}

TEST(TacclLikeTest, NotesSayWhatIsProven) {
  for (Kind kind : {Kind::kAllGather, Kind::kAllReduce}) {
    SynthNotes notes;
    const Topology topology = Parse("mesh(2,3)");
    const Result<Schedule> made = Synthesize("taccl-like", topology, CollectiveFor("ring", kind, 6),
                                             {.max_seconds = 30, .notes = &notes});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(notes.gap, 0.0);
    EXPECT_EQ(notes.remark, "proven: no schedule takes fewer than 3 slots");
  }
}

TEST(TacclLikeTest, SchedulesAreProvenOnManyNetworks) {
  for (const char* expression :
       {"ring(2)", "ring(6)", "mesh(2,3)", "torus(3,2)", "bipartite(2)", "kautz(2,1)",
        "debruijn(2,2)", "uniring(2,4)", "unwind(rfs(2,2,2,bw_per_link=50GB/s),degree=1)",
        "without(torus(3,3),links=2,seed=1)", "mesh(2,3,bw=[10,40]GB/s)"}) {
    const Topology topology = Parse(expression);
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce}) {
      SCOPED_TRACE(std::string(expression) + " " + std::string(Name(kind)));
      const Schedule made = MustRun("taccl-like", topology, kind);
      EXPECT_EQ(MustRun("taccl-like", topology, kind), made);
    }
  }
  EXPECT_EQ(
      MustRun("taccl-like", Parse("ring(4)"), Kind::kAllGather, {.chunks = 2}).units_per_shard, 2);
}

// Every rank gets every chunk once.
TEST(TacclLikeTest, SingleFaultsAreFound) {
  const Topology topology = Parse("mesh(2,3)");
  const Schedule made = MustRun("taccl-like", topology, Kind::kReduceScatter);
  for (size_t i = 0; i < made.transfers.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    Schedule lacking = made, twice = made;
    lacking.transfers.erase(lacking.transfers.begin() + at);
    twice.transfers.insert(twice.transfers.begin() + at, made.transfers[i]);
    EXPECT_FALSE(Verify(topology, made.collective, lacking).verified()) << i;
    EXPECT_FALSE(Verify(topology, made.collective, twice).verified()) << i;
  }
}

TEST(TacclLikeTest, RefusalsSayWhy) {
  EXPECT_THAT(Solve(Parse("switch(4)")).error().message, HasSubstr("unwind(switch(4),degree=2)"));
  EXPECT_THAT(Solve(Parse("torus(8,8)")).error().message, HasSubstr("columns"));
  EXPECT_THAT(Solve(Parse("torus(4,4)"), {.chunks = 1'000}).error().message, HasSubstr("columns"));
  const Result<TimeExpandedAnswer> late = Solve(Parse("ring(4)"), {}, 0);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(late.error().message, HasSubstr("no answer in 0 s"));
  const Topology ring = Parse("ring(4)");
  RequestCancel();
  const Result<TimeExpandedAnswer> interrupted = Solve(ring);
  ResetCancel();
  ASSERT_FALSE(interrupted.has_value());
  EXPECT_EQ(interrupted.error().code, ErrorCode::kCancelled);
}

TEST(TacclLikeTest, RunsOnlyWhenItIsNamed) {
  EXPECT_TRUE(Algorithm("taccl-like").on_request_only);
  EXPECT_FALSE(Algorithm("themis").on_request_only);
}

}  // namespace
}  // namespace tutti::classic_test
