// The judge is judged: correct schedules are broken in every way the rules know of, one transfer
// at a time, and each mutant must be refused with the culprit named, unless the plain second judge
// of oracle.h holds that it is still correct.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/verify/verifier.h"
#include "unit/verify/hand_schedules.h"
#include "unit/verify/oracle.h"

namespace tutti {
namespace {

using Kind = ViolationKind;

struct Subject {
  std::string name;
  Topology topology;
  Schedule schedule;
};

std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  const auto add = [&subjects](std::string name, const Topology& topology, Schedule schedule) {
    subjects.push_back({std::move(name), topology, std::move(schedule)});
  };
  const LinkSpec slow{1'000'000'000, 700'000};
  const Topology uniring = hand::Ring(5, false, slow), ring = hand::Ring(6, true, slow);
  const Topology complete = hand::Complete(4, slow), six = hand::Complete(6, slow);
  add("all-gather", ring, hand::RingAllGather(ring, true));
  add("reduce-scatter", uniring, hand::RingReduceScatter(uniring));
  add("all-reduce", uniring, hand::RingAllReduce(uniring));
  add("broadcast", six, hand::BinomialBroadcast(six));
  add("all-to-all", complete, hand::RelayedAllToAll(complete));
  add("timed all-gather", ring,
      hand::Timed(ring, hand::RingAllGather(ring, true), 10'000, LinkModel::kHeld));
  add("timed pipelined all-reduce", uniring,
      hand::Timed(uniring, hand::RingAllReduce(uniring), 10'000, LinkModel::kPipelined));
  add("timed broadcast", six,
      hand::Timed(six, hand::BinomialBroadcast(six), 10'000, LinkModel::kHeld));
  return subjects;
}

bool IsTimed(const Schedule& schedule) { return schedule.kind == ScheduleKind::kTimed; }

// Restores S3. Returns where each transfer went.
std::vector<size_t> SortByTime(Schedule& schedule) {
  const size_t count = schedule.transfers.size();
  std::vector<size_t> order(count), place(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto time = [&schedule](size_t i) {
    return IsTimed(schedule) ? schedule.start_ps[i] : schedule.transfers[i].step;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&time](size_t a, size_t b) { return time(a) < time(b); });
  const Schedule before = schedule;
  for (size_t to = 0; to < count; ++to) {
    place[order[to]] = to;
    schedule.transfers[to] = before.transfers[order[to]];
    if (IsTimed(schedule)) schedule.start_ps[to] = before.start_ps[order[to]];
  }
  return place;
}

void Erase(Schedule& schedule, size_t i) {
  schedule.transfers.erase(schedule.transfers.begin() + static_cast<std::ptrdiff_t>(i));
  if (IsTimed(schedule))
    schedule.start_ps.erase(schedule.start_ps.begin() + static_cast<std::ptrdiff_t>(i));
}

// One more transfer at the end of the list.
void Append(Schedule& schedule, const Transfer& transfer, int64_t start_ps) {
  schedule.transfers.push_back(transfer);
  if (IsTimed(schedule)) schedule.start_ps.push_back(start_ps);
}

bool Mentions(const VerifyReport& report, const std::string& what) {
  return std::any_of(report.violations.begin(), report.violations.end(),
                     [&what](const Violation& violation) {
                       return violation.message.find(what) != std::string::npos;
                     });
}
bool Has(const VerifyReport& report, Kind kind) {
  return std::any_of(report.violations.begin(), report.violations.end(),
                     [kind](const Violation& violation) { return violation.kind == kind; });
}
std::string TransferText(size_t i) { return fmt::format("transfer {} ", i); }

// Both judges agree; returns the report, which is empty when the mutant is equivalent.
VerifyReport JudgeTwice(const Topology& topology, const Schedule& schedule) {
  VerifyReport report = Verify(topology, schedule.collective, schedule, {1000});
  EXPECT_EQ(report.verified(), hand::Oracle(topology, schedule).Accepts())
      << (report.verified() ? "accepted" : report.violations[0].message);
  return report;
}

// Counts mutants, so that a test cannot pass by making none.
struct Tally {
  int caught = 0, equivalent = 0;
  void Add(const VerifyReport& report) { ++(report.verified() ? equivalent : caught); }
};

template <class Mutate>
Tally ForEachTransfer(Mutate mutate) {
  Tally tally;
  for (const Subject& subject : Subjects()) {
    EXPECT_TRUE(JudgeTwice(subject.topology, subject.schedule).verified()) << subject.name;
    for (size_t i = 0; i < subject.schedule.transfers.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}, transfer {}", subject.name, i));
      mutate(subject, i, tally);
      if (testing::Test::HasFailure()) return tally;
    }
  }
  return tally;
}

TEST(VerifierMutation, DropATransfer) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    Schedule mutant = subject.schedule;
    const Transfer dropped = mutant.transfers[i];
    Erase(mutant, i);
    const VerifyReport report = JudgeTwice(subject.topology, mutant);
    result.Add(report);
    EXPECT_FALSE(report.verified());
    EXPECT_TRUE(Mentions(report, fmt::format("shard {}", dropped.shard.value)));
    // Who should have got a copy lacks it. What a lost reduction lacks shows at the destination.
    if (dropped.op == TransferOp::kCopy) {
      EXPECT_TRUE(Mentions(
          report, "rank " + subject.topology.node_name(subject.topology.head(dropped.link))));
    } else {
      EXPECT_TRUE(Has(report, Kind::kPostcondition));
    }
  });
  EXPECT_GT(tally.caught, 200);
  EXPECT_EQ(tally.equivalent, 0);
}

TEST(VerifierMutation, SwapTwoInTime) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    for (size_t j = i + 1; j < subject.schedule.transfers.size(); ++j) {
      Schedule mutant = subject.schedule;
      Transfer &a = mutant.transfers[i], &b = mutant.transfers[j];
      const bool same =
          IsTimed(mutant) ? mutant.start_ps[i] == mutant.start_ps[j] : a.step == b.step;
      if (same) continue;
      std::swap(a, b);
      std::swap(a.step, b.step);
      const VerifyReport report = JudgeTwice(subject.topology, mutant);
      result.Add(report);
      // The late one, the early one or one that depends on them: some culprit is named.
      if (!report.verified()) {
        EXPECT_TRUE(Mentions(report, TransferText(i)) || Mentions(report, TransferText(j)) ||
                    Mentions(report, fmt::format("transfer {}", i)) ||
                    Mentions(report, fmt::format("transfer {}", j)) ||
                    Has(report, Kind::kPostcondition))
            << j;
      }
    }
  });
  EXPECT_GT(tally.caught, 1000);
  EXPECT_LT(tally.equivalent, tally.caught);
}

TEST(VerifierMutation, SendBeforeArrival) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    Schedule mutant = subject.schedule;
    const NodeId tail = subject.topology.tail(mutant.transfers[i].link);
    if (IsTimed(mutant)) {
      if (mutant.start_ps[i] == 0) return;
      --mutant.start_ps[i];  // a picosecond is enough
    } else {
      if (mutant.transfers[i].step == 0) return;
      --mutant.transfers[i].step;
    }
    const size_t place = SortByTime(mutant)[i];
    const VerifyReport report = JudgeTwice(subject.topology, mutant);
    result.Add(report);
    if (!Has(report, Kind::kNotHeld)) return;
    const auto early =
        std::find_if(report.violations.begin(), report.violations.end(),
                     [](const Violation& violation) { return violation.kind == Kind::kNotHeld; });
    EXPECT_EQ(early->transfer, static_cast<int64_t>(place));
    EXPECT_THAT(early->message, testing::HasSubstr(fmt::format("rank {} does not hold",
                                                               subject.topology.node_name(tail))));
    EXPECT_THAT(early->message, testing::HasSubstr("it arrives only"));
  });
  EXPECT_GT(tally.caught, 100);
}

TEST(VerifierMutation, DeliverTwice) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    const Schedule& schedule = subject.schedule;
    const int64_t times = IsTimed(schedule) ? 2 : schedule.num_steps;
    for (int64_t time = 0; time < times; ++time) {
      Schedule mutant = schedule;
      Transfer again = schedule.transfers[i];
      if (!IsTimed(schedule)) again.step = static_cast<int32_t>(time);
      Append(mutant, again,
             IsTimed(schedule) ? time == 0 ? schedule.start_ps[i] : 1'000'000'000'000 : 0);
      const std::vector<size_t> place = SortByTime(mutant);
      const VerifyReport report = JudgeTwice(subject.topology, mutant);
      result.Add(report);
      EXPECT_FALSE(report.verified());
      // Sent before it is there, or twice: each time one of the two is named.
      EXPECT_TRUE(Mentions(report, TransferText(place[i])) ||
                  Mentions(report, TransferText(place.back())));
      const bool later = IsTimed(schedule) ? time == 1 : again.step > schedule.transfers[i].step;
      if (!later) continue;
      // A late reduction may also meet the copy of the finished sum.
      if (again.op == TransferOp::kReduce) {
        EXPECT_TRUE(Has(report, Kind::kDoubleReduction) || Has(report, Kind::kOverwrite));
      } else {
        EXPECT_TRUE(Has(report, Kind::kRedundantDelivery));
      }
      EXPECT_TRUE(Mentions(report, TransferText(place.back())));
    }
  });
  EXPECT_GT(tally.caught, 900);
  EXPECT_EQ(tally.equivalent, 0);
}

TEST(VerifierMutation, ReduceTwiceNamesTheFirstOne) {
  int mutants = 0;
  for (const Subject& subject : Subjects()) {
    const Schedule& schedule = subject.schedule;
    for (size_t i = 0; i < schedule.transfers.size(); ++i) {
      if (schedule.transfers[i].op != TransferOp::kReduce) continue;
      SCOPED_TRACE(fmt::format("{}, transfer {}", subject.name, i));
      Schedule mutant = schedule;
      Append(mutant, schedule.transfers[i], IsTimed(schedule) ? schedule.start_ps[i] : int64_t{0});
      const std::vector<size_t> place = SortByTime(mutant);
      const VerifyReport report = JudgeTwice(subject.topology, mutant);
      ASSERT_TRUE(Has(report, Kind::kDoubleReduction));
      EXPECT_TRUE(Mentions(report, fmt::format("by transfer {}", place[i])));
      ++mutants;
    }
  }
  EXPECT_EQ(mutants, 3 * 20);
}

TEST(VerifierMutation, UseAMissingLink) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    for (int32_t link : {-1, subject.topology.num_links()}) {
      Schedule mutant = subject.schedule;
      mutant.transfers[i].link = LinkId{link};
      const VerifyReport report = JudgeTwice(subject.topology, mutant);
      result.Add(report);
      ASSERT_FALSE(report.verified());
      EXPECT_EQ(report.violations[0].kind, Kind::kMissingLink);
      EXPECT_THAT(report.violations[0].message,
                  testing::StartsWith(fmt::format("transfer {} uses link {}", i, link)));
    }
  });
  EXPECT_GT(tally.caught, 400);
}

TEST(VerifierMutation, UseAnotherLink) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    for (LinkId link : subject.topology.Links()) {
      Schedule mutant = subject.schedule;
      if (mutant.transfers[i].link == link) continue;
      mutant.transfers[i].link = link;
      result.Add(JudgeTwice(subject.topology, mutant));
    }
  });
  EXPECT_GT(tally.caught, 1000);
  EXPECT_LT(tally.equivalent, tally.caught);
}

TEST(VerifierMutation, OverlapOnALink) {
  int mutants = 0;
  for (const Subject& subject : Subjects()) {
    if (!IsTimed(subject.schedule)) continue;
    const Schedule& schedule = subject.schedule;
    for (size_t i = 0; i < schedule.transfers.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        if (schedule.transfers[i].link != schedule.transfers[j].link) continue;
        SCOPED_TRACE(fmt::format("{}, transfers {} and {}", subject.name, j, i));
        Schedule mutant = schedule;
        mutant.start_ps[i] = mutant.start_ps[j] + 1;
        const std::vector<size_t> place = SortByTime(mutant);
        const VerifyReport report = JudgeTwice(subject.topology, mutant);
        ASSERT_TRUE(Has(report, Kind::kLinkOverlap));
        EXPECT_TRUE(Mentions(report, fmt::format("which transfer {} (sent at", place[j])));
        ++mutants;
      }
  }
  EXPECT_GT(mutants, 50);
}

TEST(VerifierMutation, ReduceForCopyAndCopyForReduce) {
  const Tally tally = ForEachTransfer([](const Subject& subject, size_t i, Tally& result) {
    Schedule mutant = subject.schedule;
    const bool copied = mutant.transfers[i].op == TransferOp::kCopy;
    mutant.transfers[i].op = copied ? TransferOp::kReduce : TransferOp::kCopy;
    const VerifyReport report = JudgeTwice(subject.topology, mutant);
    result.Add(report);
    ASSERT_FALSE(report.verified());
    EXPECT_TRUE(Mentions(report, TransferText(i)));
    const Kind expected = !copied                                 ? Kind::kOverwrite
                          : subject.schedule.collective.reduces() ? Kind::kDoubleReduction
                                                                  : Kind::kStructure;
    EXPECT_EQ(report.violations[0].kind, expected);
  });
  EXPECT_GT(tally.caught, 200);
  EXPECT_EQ(tally.equivalent, 0);
}

TEST(VerifierMutation, CopyOverPartialSums) {
  // In every place and step of an all-reduce: an extra copy over the partial sums of its head.
  int caught = 0;
  for (const Subject& subject : Subjects()) {
    const Schedule& schedule = subject.schedule;
    if (!schedule.collective.reduces() || IsTimed(schedule)) continue;
    for (int32_t step = 0; step < schedule.num_steps; ++step)
      for (LinkId link : subject.topology.Links())
        for (ShardId shard : schedule.collective.Shards()) {
          Schedule mutant = schedule;
          Append(mutant, {shard, link, 0, 1, step, TransferOp::kCopy}, 0);
          const size_t place = SortByTime(mutant).back();
          const VerifyReport report = JudgeTwice(subject.topology, mutant);
          if (report.verified()) continue;
          ++caught;
          EXPECT_TRUE(Mentions(report, TransferText(place)));
        }
  }
  EXPECT_GT(caught, 80);
}

TEST(VerifierMutation, WrongTopology) {
  for (const Subject& subject : Subjects()) {
    for (LinkId changed : subject.topology.Links()) {
      Topology::Builder builder(subject.topology.num_ranks());
      for (LinkId link : subject.topology.Links()) {
        LinkSpec spec = subject.topology.spec(link);
        if (link == changed) ++spec.alpha_ps;
        builder.AddLink(subject.topology.tail(link), subject.topology.head(link), spec);
      }
      const Topology other = hand::MustBuild(std::move(builder));
      const VerifyReport report = Verify(other, subject.schedule.collective, subject.schedule);
      ASSERT_EQ(report.num_violations, 1);
      EXPECT_EQ(report.violations[0].kind, Kind::kWrongTopology);
    }
  }
}

// --- Random schedules, most of them wrong ------------------------------------------------------

Topology RandomTopology(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return hand::Ring(2 + static_cast<int32_t>(random.Below(3)), false, {1000, 2});
    case 1:
      return hand::Ring(3, true, {1000, 3});
    case 2:
      return hand::Star(2 + static_cast<int32_t>(random.Below(2)), {2000, 1});
    default:
      return hand::Complete(2 + static_cast<int32_t>(random.Below(2)), {1000, 1});
  }
}

// One field becomes nonsense, as in a damaged file.
void Spoil(Transfer& transfer, Random& random) {
  constexpr std::array<int32_t, 5> kNonsense{-1, 9, 1000, std::numeric_limits<int32_t>::min(),
                                             std::numeric_limits<int32_t>::max()};
  const int32_t value = kNonsense[random.Below(kNonsense.size())];
  switch (random.Below(5)) {
    case 0:
      transfer.shard = ShardId{value};
      break;
    case 1:
      transfer.link = LinkId{value};
      break;
    case 2:
      transfer.begin = value;
      break;
    case 3:
      transfer.end = value;
      break;
    default:
      transfer.step = value;
  }
}

Schedule RandomSchedule(const Topology& topology, Random& random) {
  const auto below = [&random](int32_t bound) {
    return static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound)));
  };
  const int32_t n = topology.num_ranks();
  constexpr std::array<CollectiveKind, 5> kKinds{
      CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAllReduce,
      CollectiveKind::kGather, CollectiveKind::kAllGather};
  const CollectiveKind kind = kKinds[random.Below(kKinds.size())];
  Collective::Options options;
  if (kind == CollectiveKind::kAllReduce) options.all_reduce_shards = 1;
  Schedule schedule =
      hand::Empty(topology, hand::MustMake(kind, n, options), 1 + below(4), 1 + below(3));
  const bool timed = below(2) == 0;
  if (timed) {
    schedule.kind = ScheduleKind::kTimed;
    schedule.num_steps = 0;
    schedule.size_bytes = 1 + below(3);
    schedule.link_model = below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined;
  }
  const int32_t count = below(8);
  for (int32_t i = 0; i < count; ++i) {
    Transfer transfer;
    transfer.shard = ShardId{below(schedule.collective.num_shards())};
    transfer.link = LinkId{below(topology.num_links())};
    transfer.begin = below(schedule.units_per_shard);
    transfer.end = transfer.begin + 1 + below(schedule.units_per_shard - transfer.begin);
    transfer.step = timed ? 0 : below(schedule.num_steps);
    const bool to_rank = topology.is_rank(topology.head(transfer.link));
    if (schedule.collective.reduces() && to_rank && below(3) > 0) transfer.op = TransferOp::kReduce;
    if (below(40) == 0) Spoil(transfer, random);
    // Times that often meet: transfers last 0.2 to 3 ns here.
    Append(schedule, transfer, int64_t{below(12)} * 500'000'000 + below(3));
  }
  SortByTime(schedule);
  return schedule;
}

TEST(VerifierOracle, AgreesOnRandomSchedules) {
  int accepted = 0;
  std::set<Kind> seen;
  for (uint64_t seed = 0; seed < 40000; ++seed) {
    Random random(seed);
    const Topology topology = RandomTopology(random);
    const Schedule schedule = RandomSchedule(topology, random);
    const VerifyReport report = Verify(topology, schedule.collective, schedule);
    ASSERT_EQ(report.verified(), hand::Oracle(topology, schedule).Accepts())
        << "seed " << seed << ": "
        << (report.verified() ? "accepted" : report.violations[0].message);
    accepted += report.verified() ? 1 : 0;
    for (const Violation& violation : report.violations) seen.insert(violation.kind);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_EQ(seen.size(), 8u);  // all but wrong topology
}

}  // namespace
}  // namespace tutti
