#include "tutti/calibrate/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plans.h"
#include "tutti/base/random.h"
#include "tutti/lower/lowering.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

using calibrate::Pair;
using testing::HasSubstr;

// --- Intervals ----------------------------------------------------------------------------------

TEST(SpreadOf, ByHand) {
  // Of 15 values the fourth from each end: P(at most 3 of 15 below the median) = 1.76 %, of 4 5.9 %.
  std::vector<double> values;
  for (int i = 15; i > 0; --i) values.push_back(i);
  const Spread spread = SpreadOf(values);
  EXPECT_EQ(spread.median, 8);
  EXPECT_EQ(spread.low, 4);
  EXPECT_EQ(spread.high, 12);
  // Of five no interval is so sure; of six the extremes are: 2 / 64.
  EXPECT_EQ(SpreadOf({5, 1, 4, 2, 3}).low, 1);
  EXPECT_EQ(SpreadOf({6, 5, 1, 4, 2, 3}).high, 6);
  EXPECT_EQ(SpreadOf({6, 5, 1, 4, 2, 3}).median, 3.5);
  EXPECT_EQ(SpreadOf({7}).low, 7);
}

TEST(SpreadOf, HoldsTheMedianAsOftenAsItSays) {
  Random random(7);
  for (const int n : {6, 9, 15, 30}) {
    int held = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values;
      for (int i = 0; i < n; ++i) values.push_back(static_cast<double>(random.Below(1'000'001)));
      const Spread spread = SpreadOf(values);
      held += spread.low <= 500'000 && 500'000 <= spread.high ? 1 : 0;
    }
    EXPECT_GE(held, kTrials * 94 / 100) << n;
  }
}

// --- Plans --------------------------------------------------------------------------------------

TEST(Tournament, EveryTwoMeetOnce) {
  for (int32_t ranks = 2; ranks <= 33; ++ranks) {
    std::set<std::pair<int32_t, int32_t>> met;
    const auto rounds = calibrate::Tournament(ranks);
    EXPECT_EQ(rounds.size(), static_cast<size_t>(ranks % 2 == 0 ? ranks - 1 : ranks));
    for (const auto& round : rounds) {
      std::set<int32_t> busy;
      for (const Pair& pair : round) {
        EXPECT_TRUE(busy.insert(pair.first).second);
        EXPECT_TRUE(busy.insert(pair.second).second);
        EXPECT_LT(pair.first, pair.second);
        EXPECT_TRUE(met.emplace(pair.first, pair.second).second);
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(ranks) * static_cast<size_t>(ranks - 1) / 2);
  }
}

TEST(Plans, AreProvenCorrect) {
  for (int32_t ranks = 2; ranks <= 6; ++ranks) {
    for (const auto& round : calibrate::Tournament(ranks))
      for (const int64_t bytes : {1, 1000}) {
        const auto faults = CheckPlan(calibrate::PingPlan(ranks, round, bytes));
        EXPECT_TRUE(faults.empty()) << faults[0].message;
      }
    for (int32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(CheckPlan(calibrate::FanOutPlan(ranks, rank, 7)).empty());
      EXPECT_TRUE(CheckPlan(calibrate::FanInPlan(ranks, rank, 7)).empty());
    }
    EXPECT_TRUE(CheckPlan(calibrate::ShufflePlan(ranks, 7)).empty());
  }
}

// --- A network that is known --------------------------------------------------------------------

// Links of their own, what each rank brings out and in, and what all do together.
struct Network {
  int32_t ranks = 4;
  double host = 1e18, fabric = 1e18;
  double Alpha(int32_t from, int32_t to) const { return 1e-6 * (10 + from + 2 * to); }
  double Bandwidth(int32_t from, int32_t to) const { return 1e9 * (1 + from) / (1 + to); }
};

// What a run would take on it.
Result<RunReport> RunOn(const Network& network, const Plan& plan, const RunOptions& options) {
  const int32_t n = network.ranks;
  const auto bytes = [&](int32_t from, int32_t to) {
    return static_cast<double>(
        plan.collective.demand()[static_cast<size_t>(from) * static_cast<size_t>(n) +
                                 static_cast<size_t>(to)]);
  };
  const auto way = [&](int32_t from, int32_t to) {
    return network.Alpha(from, to) + bytes(from, to) / network.Bandwidth(from, to);
  };
  double total = 0;
  for (int32_t from = 0; from < n; ++from)
    for (int32_t to = 0; to < n; ++to) total += bytes(from, to);
  RunReport report;
  report.rank_times.resize(static_cast<size_t>(n));
  for (int32_t rank = 0; rank < n; ++rank) {
    double time = 0, out = 0, in = 0;
    for (int32_t peer = 0; peer < n; ++peer) {
      if (bytes(rank, peer) == 0 && bytes(peer, rank) == 0) continue;
      if (plan.algorithm == "ping") time = way(rank, peer) + way(peer, rank);
      out += bytes(rank, peer);
      in += bytes(peer, rank);
    }
    if (plan.algorithm != "ping")
      time = std::max(std::max(out, in) / network.host, total / network.fabric);
    report.rank_times[static_cast<size_t>(rank)].assign(static_cast<size_t>(options.iterations),
                                                        time);
  }
  return report;
}

Result<Calibration> CalibrateOn(const Network& network, int64_t bytes = 1'000'000) {
  return Calibrate(
      {.num_ranks = network.ranks, .large_bytes = bytes, .repeats = 7},
      [&](const Plan& plan, const RunOptions& options) { return RunOn(network, plan, options); });
}

TEST(Calibrate, FindsTheNetworkAgain) {
  for (const int32_t ranks : {2, 3, 4, 7}) {
    const Network network{.ranks = ranks};
    const Result<Calibration> calibration = CalibrateOn(network);
    ASSERT_TRUE(calibration.has_value()) << calibration.error().message;
    ASSERT_EQ(calibration->pairs.size(),
              static_cast<size_t>(ranks) * static_cast<size_t>(ranks - 1));
    for (const PairMeasure& pair : calibration->pairs) {
      // One byte less than the long message is what takes the difference, and the byte back.
      const double expected = network.Bandwidth(pair.from, pair.to);
      EXPECT_NEAR(pair.bandwidth.median / expected, 1, 2e-3) << pair.from << " " << pair.to;
      const double both = network.Alpha(pair.from, pair.to) + network.Alpha(pair.to, pair.from);
      EXPECT_NEAR(pair.alpha_s.median / (both / 2), 1, 2e-3);
    }
    const Result<Topology> topology = ToTopology(*calibration);
    ASSERT_TRUE(topology.has_value()) << topology.error().message;
    EXPECT_EQ(topology->num_ranks(), ranks);
    EXPECT_EQ(topology->num_links(), ranks * (ranks - 1));
    EXPECT_FALSE(topology->has_host_limits());
    const std::string text = TopologyToJson(*topology, DescribeCalibration(*calibration, "here"));
    EXPECT_THAT(text, HasSubstr("measured by tutti calibrate between here"));
    const Result<Topology> read = TopologyFromJson(text);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->Fingerprint(), topology->Fingerprint());
  }
}

TEST(Calibrate, LinksThatShareAHostAreSaidToDoSo) {
  const Result<Calibration> calibration = CalibrateOn({.ranks = 4, .host = 0.5e9});
  ASSERT_TRUE(calibration.has_value());
  const Topology topology = ToTopology(*calibration).value();
  for (const NodeId rank : topology.Ranks())
    EXPECT_EQ(topology.host_bandwidth(rank), 500'000'000) << rank.value;
  // Two ranks have one link, which is its own limit.
  EXPECT_FALSE(ToTopology(CalibrateOn({.ranks = 2, .host = 0.1e9}).value())->has_host_limits());
}

// Behind leaves with few cables to the spines no rank alone notices what all together lack.
TEST(Calibrate, WhatAllRanksShareLimitsEachOfThem) {
  const Calibration calibration = CalibrateOn({.ranks = 4, .fabric = 0.8e9}).value();
  const Topology topology = ToTopology(calibration).value();
  for (const NodeId rank : topology.Ranks())
    EXPECT_EQ(topology.host_bandwidth(rank), 200'000'000) << rank.value;
  EXPECT_NEAR(calibration.ranks[1].in.median, 0.8e9, 1);
  EXPECT_NEAR(calibration.ranks[1].all.median, 0.2e9, 1);
  EXPECT_THAT(DescribeCalibration(calibration, "here"),
              HasSubstr("while all do GB/s 0.2 (0.2 to 0.2)"));
}

// A host that is busy while the first messages go: they take longer than long ones.
TEST(Calibrate, WhatDoesNotTellIsMeasuredAgainWithMoreRepetitions) {
  for (const int32_t noisy : {1, 2, 3, 4}) {
    const Network network{.ranks = 4};
    std::vector<int32_t> repeats;  // of each run of short messages
    const auto run = [&](const Plan& plan, const RunOptions& options) {
      Result<RunReport> report = RunOn(network, plan, options);
      if (plan.algorithm != "ping" || options.size_bytes != 1) return report;
      repeats.push_back(options.iterations);
      if (static_cast<int32_t>(repeats.size()) <= noisy)
        for (double& time : report->rank_times[0]) time += 1;  // of the round's two pairs one
      return report;
    };
    const Result<Calibration> calibration =
        Calibrate({.num_ranks = 4, .large_bytes = 1'000'000, .repeats = 1}, run);
    if (noisy > 3) {
      ASSERT_FALSE(calibration.has_value());
      EXPECT_EQ(calibration.error().code, ErrorCode::kInfeasible);
      EXPECT_THAT(calibration.error().message, HasSubstr("larger messages are needed"));
      EXPECT_EQ(repeats, (std::vector<int32_t>{1, 30, 60, 120}));
      continue;
    }
    ASSERT_TRUE(calibration.has_value()) << calibration.error().message;
    ASSERT_EQ(calibration->pairs.size(), 12u);
    for (const PairMeasure& pair : calibration->pairs) {
      EXPECT_NEAR(pair.bandwidth.median / network.Bandwidth(pair.from, pair.to), 1, 2e-3);
      const double both = network.Alpha(pair.from, pair.to) + network.Alpha(pair.to, pair.from);
      EXPECT_NEAR(pair.alpha_s.median / (both / 2), 1, 2e-3);
    }
  }
}

TEST(Calibrate, SaysWhatItCannotTell) {
  const auto message = [](const Result<Calibration>& calibration) {
    return calibration ? std::string("measured") : calibration.error().message;
  };
  EXPECT_THAT(message(CalibrateOn({.ranks = 1})), HasSubstr("1 ranks: a calibration has 2 to 512"));
  EXPECT_THAT(message(CalibrateOn({.ranks = 513})), HasSubstr("513 ranks"));
  EXPECT_THAT(message(CalibrateOn({.ranks = 2}, 1)), HasSubstr("messages of 1 bytes"));
  const auto answer = [&](const Result<RunReport>& report) {
    return message(
        Calibrate({.num_ranks = 2}, [&](const Plan&, const RunOptions&) { return report; }));
  };
  EXPECT_EQ(answer(MakeError(ErrorCode::kPeerFailed, "rank 1 ended")), "rank 1 ended");
  RunReport wrong;
  wrong.wrong = 3;
  EXPECT_EQ(answer(wrong), "3 bytes arrived wrong");
  RunReport flat;
  flat.rank_times = {{1e-3, 1.1e-3}, {1e-3, 1.1e-3}};
  EXPECT_THAT(answer(flat), HasSubstr("from rank 0 to rank 1 4194304 bytes take 1050.0 us, and one "
                                      "takes 1050.0 us: larger messages are needed"));
}

}  // namespace
}  // namespace tutti
