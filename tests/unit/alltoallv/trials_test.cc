#include "tutti/alltoallv/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "tutti/base/random.h"

namespace tutti::alltoallv {
namespace {

Algorithm Tuna(int radix) { return {.method = Method::kTuna, .radix = radix}; }
constexpr Algorithm kOwn{.method = Method::kMpi};

// Serves `calls` calls whose time is `seconds_of(algorithm, call)`; what they took together.
template <class SecondsOf>
double Serve(Trials& trials, int calls, SecondsOf seconds_of) {
  double total = 0;
  for (int call = 0; call < calls; ++call) {
    const double seconds = seconds_of(trials.Next(), call);
    total += seconds;
    if (trials.settled()) continue;
    if (trials.idle()) {
      trials.Skip(1);
      continue;
    }
    trials.Note(seconds);
    if (trials.cycle_ended()) trials.EndCycle(trials.Medians(), true);
  }
  return total;
}

TEST(TrialsTest, TheFirstCyclesByHand) {  // T2
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}, {Tuna(4), 0.7}};
  Trials trials(1, shortlist);
  std::vector<Algorithm> first;
  for (int call = 0; call < 7; ++call) {
    EXPECT_FALSE(trials.cycle_ended());
    first.push_back(trials.Next());
    trials.Note(first.back() == kOwn ? 1 : 0.5);
  }
  // Four of the library's own, then three of the one predicted best.
  const std::vector<Algorithm> expected = {kOwn, kOwn, kOwn, kOwn, Tuna(2), Tuna(2), Tuna(2)};
  EXPECT_EQ(first, expected);
  EXPECT_TRUE(trials.cycle_ended());
  EXPECT_EQ(trials.Medians(), (std::vector<double>{1, 0.5}));
  trials.EndCycle(trials.Medians(), true);
  std::map<int, int> calls_of_radix;
  while (!trials.cycle_ended()) {
    ++calls_of_radix[trials.Next().radix];
    trials.Note(1);
  }
  EXPECT_EQ(calls_of_radix, (std::map<int, int>{{0, 4}, {2, 4}, {4, 3}}));
}

TEST(TrialsTest, TheFasterOneIsKeptAndMeasured) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}, {Tuna(4), 0.7}};
  Trials trials(1, shortlist);
  Serve(trials, 400, [](const Algorithm& algorithm, int) {
    return algorithm == kOwn ? 1.0 : (algorithm.radix == 4 ? 0.5 : 0.7);
  });
  ASSERT_TRUE(trials.settled());
  EXPECT_EQ(trials.Next(), Tuna(4));
  EXPECT_EQ(trials.choice_s(), 0.5);
  EXPECT_EQ(trials.own_s(), 1.0);
}

TEST(TrialsTest, TheLibrarysOwnStaysUnlessAnotherIsClearlyFaster) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.5}};
  for (const double candidate : {0.98, 1.0, 2.0, 50.0}) {
    Trials trials(1, shortlist);
    Serve(trials, 1000,
          [&](const Algorithm& algorithm, int) { return algorithm == kOwn ? 1.0 : candidate; });
    EXPECT_TRUE(trials.settled());
    EXPECT_EQ(trials.Next(), kOwn) << candidate;
  }
}

TEST(TrialsTest, WithoutCandidatesNothingIsTried) {
  Trials trials(1, {});
  EXPECT_TRUE(trials.settled());
  EXPECT_EQ(trials.Next(), kOwn);
  Trials known(Tuna(8));
  EXPECT_TRUE(known.settled());
  EXPECT_EQ(known.Next(), Tuna(8));
}

TEST(TrialsTest, ACycleWhoseSizesChangedSaysNothing) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}};
  Trials trials(1, shortlist);
  bool first = true;
  for (int call = 0; call < 400 && !trials.settled(); ++call) {
    const bool own = trials.Next() == kOwn;
    if (trials.idle()) {
      trials.Skip(1);
      continue;
    }
    trials.Note(first ? (own ? 1 : 100) : (own ? 1 : 0.5));
    if (!trials.cycle_ended()) continue;
    trials.EndCycle(trials.Medians(), !first);
    first = false;
  }
  ASSERT_TRUE(trials.settled());
  EXPECT_EQ(trials.Next(), Tuna(2));
}

TEST(TrialsProperty, TryingCostsFewCallsAndEndsWithTheBest) {  // T1, T3
  Random random(3);
  double most = 0;
  for (int draw = 0; draw < 400; ++draw) {
    std::vector<Prediction> shortlist;
    std::map<int, double> truth;
    double best = 1;
    for (int radix = 2; radix < 8; ++radix) {
      const double predicted = 0.5 + 0.01 * static_cast<double>(random.Below(100));
      // Predictions are wrong by up to a factor of 2.5 either way.
      truth[radix] = predicted * (0.4 + 0.021 * static_cast<double>(random.Below(100)));
      best = std::min(best, truth[radix]);
      shortlist.push_back({Tuna(radix), predicted});
    }
    const auto seconds_of = [&](const Algorithm& algorithm, int) {
      return algorithm == kOwn ? 1.0 : truth[algorithm.radix];
    };
    Trials trials(1, shortlist), twin(1, shortlist);
    const double total = Serve(trials, 300, seconds_of);
    EXPECT_EQ(Serve(twin, 300, seconds_of), total);
    most = std::max(most, total / 300);
    Serve(trials, 20000, seconds_of);
    ASSERT_TRUE(trials.settled());
    EXPECT_LE(seconds_of(trials.Next(), 0), best < 1 - Trials::kMargin ? best * 1.05 : 1.0);
  }
  EXPECT_LE(most, 1.05);
}

TEST(TrialsProperty, NoiseRarelyFoolsThem) {
  Random random(5);
  int wrong = 0;
  constexpr int kDraws = 200;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}, {Tuna(4), 0.7}};
    Trials trials(1, shortlist);
    // Every call is up to 30 % longer, and one in ten takes ten times as long.
    Serve(trials, 3000, [&](const Algorithm& algorithm, int) {
      const double clean = algorithm == kOwn ? 1.0 : (algorithm.radix == 2 ? 0.8 : 1.2);
      const double noise = 1 + 0.003 * static_cast<double>(random.Below(100));
      return clean * noise * (random.Below(10) == 0 ? 10 : 1);
    });
    wrong += trials.Next() == Tuna(2) ? 0 : 1;
  }
  EXPECT_LE(wrong, kDraws / 20);
}

}  // namespace
}  // namespace tutti::alltoallv
