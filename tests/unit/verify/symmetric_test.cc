// The judge of symmetric schedules: right ones by hand, every single fault by its kind and words,
// and agreement with the judge of whole schedules on mutants.
#include "tutti/verify/symmetric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "unit/verify/hand_schedules.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;
NodePermutation Rotation(int32_t n, int32_t by = 1) {
  NodePermutation images;
  for (int32_t i = 0; i < n; ++i) images.push_back(NodeId{(i + by) % n});
  return images;
}

Transfer At(const Topology& topology, int32_t tail, int32_t head, int32_t begin, int32_t end,
            int32_t step, TransferOp op = TransferOp::kCopy) {
  return {ShardId{0}, hand::FindLink(topology, tail, head), begin, end, step, op};
}

constexpr TransferOp kReduce = TransferOp::kReduce;

// Ring of four, both ways round: the shard goes to both neighbours, and a half from each to the
// rank opposite.
SymmetricSchedule RingOfFour(const Topology& ring) {
  SymmetricSchedule schedule{hand::Empty(ring, hand::MustMake(CollectiveKind::kAllGather, 4), 2, 2),
                             {Rotation(4)}};
  schedule.root.transfers = {At(ring, 0, 1, 0, 2, 0), At(ring, 0, 3, 0, 2, 0),
                             At(ring, 1, 2, 0, 1, 1), At(ring, 3, 2, 1, 2, 1)};
  return schedule;
}

// The same, backwards.
SymmetricSchedule ReduceOnRingOfFour(const Topology& ring) {
  SymmetricSchedule schedule{
      hand::Empty(ring, hand::MustMake(CollectiveKind::kReduceScatter, 4), 2, 2), {Rotation(4)}};
  schedule.root.transfers = {At(ring, 2, 1, 0, 1, 0, kReduce), At(ring, 2, 3, 1, 2, 0, kReduce),
                             At(ring, 1, 0, 0, 2, 1, kReduce), At(ring, 3, 0, 0, 2, 1, kReduce)};
  return schedule;
}

SymmetricSchedule AllReduceOnRingOfFour(const Topology& ring) {
  SymmetricSchedule schedule{hand::Empty(ring, hand::MustMake(CollectiveKind::kAllReduce, 4), 4, 2),
                             {Rotation(4)}};
  schedule.root.transfers = ReduceOnRingOfFour(ring).root.transfers;
  for (Transfer transfer : RingOfFour(ring).root.transfers) {
    transfer.step += 2;
    schedule.root.transfers.push_back(transfer);
  }
  return schedule;
}

VerifyReport Judge(const Topology& topology, const SymmetricSchedule& schedule) {
  return VerifySymmetric(topology, schedule.root.collective, schedule);
}

TEST(VerifySymmetric, RingOfFourByHand) {
  const Topology ring = hand::Ring(4, true);
  for (const SymmetricSchedule& schedule :
       {RingOfFour(ring), ReduceOnRingOfFour(ring), AllReduceOnRingOfFour(ring)}) {
    const VerifyReport report = Judge(ring, schedule);
    EXPECT_TRUE(report.verified()) << report.violations.front().message;
    EXPECT_EQ(report.deliveries, 4 * static_cast<int64_t>(schedule.root.transfers.size()));
    // And written out, by the other judge.
    const Result<Translations> translations = Translations::Make(ring, schedule.generators);
    ASSERT_TRUE(translations.has_value());
    const Result<Schedule> whole = Expand(*translations, ring, schedule, 1000);
    ASSERT_TRUE(whole.has_value());
    EXPECT_TRUE(Verify(ring, schedule.root.collective, *whole).verified());
  }
}

TEST(VerifySymmetric, OneRankHasNothingToDo) {
  const Topology one = hand::MustBuild(Topology::Builder(1));
  const SymmetricSchedule schedule{
      hand::Empty(one, hand::MustMake(CollectiveKind::kAllGather, 1), 0), {}};
  EXPECT_TRUE(Judge(one, schedule).verified());
}

struct Fault {
  const char* name;
  std::function<void(const Topology&, SymmetricSchedule&)> break_it;
  ViolationKind kind;
  const char* words;
};

void ExpectFaults(const std::vector<Fault>& faults,
                  SymmetricSchedule (*make)(const Topology& ring)) {
  const Topology ring = hand::Ring(4, true);
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    SymmetricSchedule schedule = make(ring);
    const Collective collective = schedule.root.collective;
    fault.break_it(ring, schedule);
    const VerifyReport report = VerifySymmetric(ring, collective, schedule);
    ASSERT_EQ(report.num_violations, 1);
    EXPECT_FALSE(report.verified());
    ASSERT_EQ(report.violations.size(), 1u);
    EXPECT_EQ(report.violations[0].kind, fault.kind) << report.violations[0].message;
    EXPECT_THAT(report.violations[0].message, HasSubstr(fault.words));
  }
}

using S = SymmetricSchedule;
using T = Topology;

TEST(VerifySymmetric, NamesEveryFaultOfAnAllGather) {
  ExpectFaults(
      {
          {"a permutation that is no symmetry",
           [](const T&, S& s) {
             s.generators.push_back({NodeId{1}, NodeId{0}, NodeId{2}, NodeId{3}});
           },
           ViolationKind::kSymmetry, "generator 1 maps rank 0 to rank 1, but the links"},
          {"no permutation", [](const T&, S& s) { s.generators[0][3] = NodeId{1}; },
           ViolationKind::kSymmetry,
           "generator 0 maps rank 3 to 1, which is no rank or an image already"},
          {"not over all ranks", [](const T&, S& s) { s.generators[0].pop_back(); },
           ViolationKind::kSymmetry, "generator 0 maps 3 ranks, the network has 4"},
          {"an image that is no rank", [](const T&, S& s) { s.generators[0][1] = NodeId{4}; },
           ViolationKind::kSymmetry, "generator 0 maps rank 1 to 4"},
          {"an intransitive group", [](const T&, S& s) { s.generators = {Rotation(4, 2)}; },
           ViolationKind::kSymmetry, "take rank 0 to 2 of 4 ranks only"},
          {"no generators", [](const T&, S& s) { s.generators.clear(); }, ViolationKind::kSymmetry,
           "take rank 0 to 1 of 4 ranks only"},
          {"a group with a reflection",
           [](const T&, S& s) {
             s.generators.push_back({NodeId{0}, NodeId{3}, NodeId{2}, NodeId{1}});
           },
           ViolationKind::kSymmetry, "two different products of generators"},
          {"a rank lacks a half", [](const T&, S& s) { s.root.transfers.pop_back(); },
           ViolationKind::kPostcondition, "in the end rank 2 lacks 1/2..1 of shard 0"},
          {"a rank lacks the end of it", [](const T&, S& s) { s.root.transfers[3].end = 1; },
           ViolationKind::kStructure, "units [1, 1)"},
          {"sent while it arrives", [](const T&, S& s) { s.root.transfers[2].step = 0; },
           ViolationKind::kNotHeld,
           "rank 1 does not hold 0..1/2 of shard 0, which it sends over link 1 -> 2; it arrives "
           "only in step 0 by transfer 0"},
          {"delivered twice",
           [](const T& t, S& s) { s.root.transfers.push_back(At(t, 1, 2, 1, 2, 1)); },
           ViolationKind::kRedundantDelivery,
           "1/2..1 of shard 0 arrives at rank 2 over link 1 -> 2, which has got it already by "
           "transfer 3"},
          {"delivered to rank 0",
           [](const T& t, S& s) { s.root.transfers.push_back(At(t, 1, 0, 0, 1, 1)); },
           ViolationKind::kRedundantDelivery, "which has got it already, from the start"},
          {"another shard", [](const T&, S& s) { s.root.transfers[0].shard = ShardId{1}; },
           ViolationKind::kStructure, "transfer 0 is of shard 1"},
          {"a link that is not there", [](const T&, S& s) { s.root.transfers[1].link.value = 99; },
           ViolationKind::kMissingLink, "transfer 1 uses link 99"},
          {"a step too many", [](const T&, S& s) { s.root.transfers[3].step = 2; },
           ViolationKind::kStructure, "transfer 3 is in step 2; the schedule has 2 steps"},
          {"steps that descend", [](const T&, S& s) { s.root.transfers[0].step = 1; },
           ViolationKind::kStructure, "transfers must ascend in step"},
          {"a reduction", [](const T&, S& s) { s.root.transfers[2].op = kReduce; },
           ViolationKind::kStructure, "reduces"},
          {"another network", [](const T&, S& s) { ++s.root.topology_fingerprint; },
           ViolationKind::kWrongTopology, "another topology"},
          {"another collective",
           [](const T&, S& s) {
             s.root.collective = hand::MustMake(CollectiveKind::kReduceScatter, 4);
           },
           ViolationKind::kStructure, "made for reduce-scatter"},
          {"timed",
           [](const T&, S& s) {
             s.root.kind = ScheduleKind::kTimed;
             s.root.start_ps.assign(4, 0);
             s.root.num_steps = 0;
             s.root.size_bytes = 1;
           },
           ViolationKind::kStructure, "timed"},
      },
      RingOfFour);
}

TEST(VerifySymmetric, NamesEveryFaultOfAReduction) {
  ExpectFaults(
      {
          {"a contribution is lacking",
           [](const T&, S& s) { s.root.transfers.erase(s.root.transfers.begin()); },
           ViolationKind::kPostcondition,
           "in the end rank 0 lacks the contribution of rank 2 to 0..1/2 of shard 0"},
          {"a contribution counts twice",
           [](const T& t, S& s) {
             s.root.transfers.insert(s.root.transfers.begin() + 2, At(t, 2, 3, 0, 1, 0, kReduce));
           },
           ViolationKind::kDoubleReduction, "it would count twice"},
          {"sent on while it arrives", [](const T&, S& s) { s.root.transfers[2].step = 0; },
           ViolationKind::kPostcondition,
           "0..1/2 of shard 0 arrives at rank 1 over link 2 -> 1, which sends it on in step 0 by "
           "transfer 2 already: it is lost"},
          {"rank 0 gives its own away",
           [](const T& t, S& s) {
             s.root.transfers.insert(s.root.transfers.begin(), At(t, 0, 1, 0, 1, 0, kReduce));
           },
           ViolationKind::kDoubleReduction, "which it is to keep"},
          {"a copy", [](const T&, S& s) { s.root.transfers[0].op = TransferOp::kCopy; },
           ViolationKind::kStructure, "copies, which no transfer of reduce-scatter does"},
      },
      ReduceOnRingOfFour);
}

TEST(VerifySymmetric, NamesEveryFaultOfAnAllReduce) {
  ExpectFaults(
      {
          {"rank 0 sends on too early",
           [](const T&, S& s) {
             s.root.transfers[4].step = 1;
             s.root.transfers[4].begin = 0;
           },
           ViolationKind::kNotHeld,
           "rank 0 does not hold 0..1 of shard 0, which it sends over link 0 -> 1; it arrives only "
           "in step 1"},
          {"a contribution is lacking",
           [](const T&, S& s) { s.root.transfers.erase(s.root.transfers.begin()); },
           ViolationKind::kPostcondition, "lacks the contribution of rank 2"},
          {"a result is lacking", [](const T&, S& s) { s.root.transfers.pop_back(); },
           ViolationKind::kPostcondition, "in the end rank 2 lacks"},
      },
      AllReduceOnRingOfFour);
}

TEST(VerifySymmetric, CountsAllAndKeepsTheFirst) {
  const Topology ring = hand::Ring(4, true);
  SymmetricSchedule schedule = RingOfFour(ring);
  schedule.root.transfers.erase(schedule.root.transfers.begin());
  // Rank 1 has nothing: it lacks the shard, and half of it does not come to rank 2.
  const VerifyReport all = Judge(ring, schedule);
  EXPECT_EQ(all.num_violations, 2);
  ASSERT_EQ(all.violations.size(), 2u);
  EXPECT_EQ(all.violations[0].kind, ViolationKind::kNotHeld);
  EXPECT_EQ(all.violations[0].transfer, 1);
  EXPECT_EQ(all.violations[1].kind, ViolationKind::kPostcondition);
  const VerifyReport none =
      VerifySymmetric(ring, schedule.root.collective, schedule, {.max_violations = 0});
  EXPECT_EQ(none.num_violations, 2);
  EXPECT_TRUE(none.violations.empty());
}

TEST(VerifySymmetric, RefusesSwitchesAndOtherCollectives) {
  const Topology star = hand::Star(3);
  const SymmetricSchedule on_star{
      hand::Empty(star, hand::MustMake(CollectiveKind::kAllGather, 3), 0), {}};
  EXPECT_THAT(Judge(star, on_star).violations.at(0).message, HasSubstr("switches"));
  const Topology ring = hand::Ring(4, true);
  const SymmetricSchedule broadcast{
      hand::Empty(ring, hand::MustMake(CollectiveKind::kBroadcast, 4), 0), {Rotation(4)}};
  EXPECT_THAT(Judge(ring, broadcast).violations.at(0).message, HasSubstr("no symmetric form"));
}

// Changes one thing in a right schedule at random. Of an all-gather both judges say the same; of
// reductions the symmetric one may be stricter, but never says yes where the other says no.
TEST(VerifySymmetric, AgreesWithTheJudgeOfWholeSchedulesOnMutants) {
  const Topology ring = hand::Ring(4, true);
  const Result<Translations> translations = Translations::Make(ring, {Rotation(4)});
  ASSERT_TRUE(translations.has_value());
  int32_t correct = 0, wrong = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    SymmetricSchedule schedule = seed % 3 == 0   ? RingOfFour(ring)
                                 : seed % 3 == 1 ? ReduceOnRingOfFour(ring)
                                                 : AllReduceOnRingOfFour(ring);
    Schedule& root = schedule.root;
    root.num_steps += 1;
    for (uint64_t change = 0; change < 1 + random.Below(2); ++change) {
      Transfer& transfer = root.transfers[random.Below(root.transfers.size())];
      switch (random.Below(5)) {
        case 0:
          transfer.link = LinkId{static_cast<int32_t>(random.Below(8))};
          break;
        case 1:
          transfer.step = static_cast<int32_t>(random.Below(static_cast<uint64_t>(root.num_steps)));
          break;
        case 2:
          transfer.begin = static_cast<int32_t>(random.Below(2));
          transfer.end = transfer.begin + 1;
          break;
        case 3:
          transfer.begin = 0;
          transfer.end = 2;
          break;
        default:
          root.transfers.push_back(transfer);
      }
    }
    SortBySteps(root);
    const bool symmetric = Judge(ring, schedule).verified();
    const Result<Schedule> whole = Expand(*translations, ring, schedule, 1000);
    ASSERT_TRUE(whole.has_value());
    const bool in_full = Verify(ring, root.collective, *whole).verified();
    (in_full ? correct : wrong) += 1;
    if (root.collective.kind() == CollectiveKind::kAllGather)
      EXPECT_EQ(symmetric, in_full) << "seed " << seed;
    else
      EXPECT_LE(symmetric, in_full) << "seed " << seed;
  }
  EXPECT_GT(correct, 100);
  EXPECT_GT(wrong, 1000);
}

}  // namespace
}  // namespace tutti
