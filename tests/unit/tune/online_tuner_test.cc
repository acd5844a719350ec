#include "tutti/tune/online_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "tuna.h"
#include "tutti/base/random.h"

namespace tutti::tune {
namespace {

constexpr Algorithm kNative{.method = Method::kMpi};

// Serves `calls` calls whose time is `seconds_of(algorithm, call)`; what they took together.
template <class SecondsOf>
double Serve(OnlineTuner& tuner, int calls, SecondsOf seconds_of) {
  double total = 0;
  for (int call = 0; call < calls; ++call) {
    const double seconds = seconds_of(tuner.Next(), call);
    total += seconds;
    if (tuner.paused()) {
      tuner.Skip(1);
      continue;
    }
    tuner.Note(seconds);
    if (tuner.stage_ended()) tuner.EndStage(tuner.Times(), true, 0);
  }
  return total;
}

// The algorithms of a stage in their order.
std::vector<Algorithm> RunStage(OnlineTuner& tuner, double native_s, double other_s) {
  std::vector<Algorithm> order;
  while (!tuner.stage_ended()) {
    order.push_back(tuner.Next());
    tuner.Note(order.back() == kNative ? native_s : other_s);
  }
  return order;
}

TEST(OnlineTunerTest, TheFirstStagesByHand) {  // T2
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.5}, {Tuna(4), 0.7}};
  OnlineTuner tuner(1, shortlist, kNoisyClock);
  // Eight of the native algorithm after set-up, and two that are measured; of the one predicted
  // best three that may set it up, and two.
  std::vector<Algorithm> first(8 + 2, kNative);
  first.insert(first.end(), 3 + 2, Tuna(2));
  EXPECT_EQ(RunStage(tuner, 1, 0.25), first);
  // All that the other took but to set it up, then the measured calls.
  EXPECT_EQ(tuner.Times(), (std::vector<double>{0.5, 1, 1, 0.25, 0.25}));
  EXPECT_EQ(tuner.Next(), kNative);
  tuner.EndStage(tuner.Times(), true, 0);
  // A single pair does not decide. Two pairs, each begun by the other one; 2 measured calls a turn,
  // one before them after an agreement.
  std::vector<Algorithm> second(1 + 2, kNative);
  second.insert(second.end(), 3 + 2, Tuna(2));
  second.insert(second.end(), 3, kNative);
  EXPECT_EQ(RunStage(tuner, 1, 0.25), second);
  EXPECT_EQ(tuner.Times(), (std::vector<double>{1.25, 1, 1, 0.25, 0.25, 0.25, 0.25, 1, 1}));
  tuner.EndStage(tuner.Times(), true, 0);
  // Won; what is left promised less than that, so that nobody challenges.
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.serving(), Tuna(2));
  EXPECT_EQ(tuner.pause_calls(), OnlineTuner::kFirstRecheck);
}

TEST(OnlineTunerTest, WithAnExactClockOnePairDecides) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.9}, {Tuna(4), 0.7}};
  OnlineTuner tuner(1, shortlist, kExactClock);
  for (const double seconds : {0.9, 0.8}) {
    RunStage(tuner, 1, seconds);
    tuner.EndStage(tuner.Times(), true, 0);
    EXPECT_EQ(tuner.serving(), Tuna(2)) << "predicted to be the best, and was faster";
    if (tuner.settled()) break;
  }
}

TEST(OnlineTunerTest, TheFasterOneIsKeptAndMeasured) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}, {Tuna(4), 0.65}};
  for (const double clock : {kNoisyClock, kExactClock}) {
    OnlineTuner tuner(1, shortlist, clock);
    Serve(tuner, 600, [](const Algorithm& algorithm, int) {
      return algorithm == kNative ? 1.0 : (algorithm.radix == 4 ? 0.5 : 0.7);
    });
    ASSERT_TRUE(tuner.settled());
    EXPECT_EQ(tuner.serving(), Tuna(4));
    EXPECT_NEAR(tuner.serving_s(), 0.5, 1e-12);
    EXPECT_EQ(tuner.native_s(), 1.0);
  }
}

TEST(OnlineTunerTest, TheLibrarysOwnStaysUnlessAnotherIsClearlyFaster) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.5}};
  for (const double candidate : {0.98, 1.0, 2.0, 50.0}) {
    OnlineTuner tuner(1, shortlist, kNoisyClock);
    Serve(tuner, 2000,
          [&](const Algorithm& algorithm, int) { return algorithm == kNative ? 1.0 : candidate; });
    EXPECT_TRUE(tuner.settled());
    EXPECT_EQ(tuner.serving(), kNative) << candidate;
  }
}

// Times that stay: 10 % faster is enough among four ranks and not between two.
TEST(OnlineTunerTest, TwoRanksKeepTheLibrarysOwnUnlessAnotherIsPlainlyFaster) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}};
  for (const auto& [ranks, ratio, wins] :
       {std::tuple{4, 0.9, true}, {2, 0.9, false}, {2, 0.7, true}}) {
    const TuningPolicy policy = PolicyFor(ranks, 64, kNoisyClock);
    OnlineTuner tuner(1, shortlist, kNoisyClock, policy.margin);
    int others = 0;
    Serve(tuner, 20000, [&, other_s = ratio](const Algorithm& algorithm, int) {
      if (algorithm == kNative) return 1.0;
      ++others;
      return other_s;
    });
    EXPECT_EQ(tuner.serving(), wins ? Tuna(2) : kNative) << ranks << " ranks, " << ratio;
    if (!wins) {
      EXPECT_LT(others, 400);
    }
  }
}

TEST(OnlineTunerTest, WhatIsNotWorthATrialIsNotTried) {
  EXPECT_EQ(PolicyFor(8, 64, kNoisyClock), (TuningPolicy{OnlineTuner::kMargin, 1.5}));
  EXPECT_LT(PolicyFor(2, 64, kNoisyClock).max_predicted_ratio, 0.85);
  EXPECT_LT(PolicyFor(8, 32768, kNoisyClock).max_predicted_ratio, 1);
  // An exact clock finds out for two calls each.
  EXPECT_EQ(PolicyFor(2, 32768, kExactClock), PolicyFor(8, 64, kExactClock));
}

TEST(OnlineTunerTest, WithoutCandidatesNothingIsTried) {
  OnlineTuner tuner(1, {}, kNoisyClock);
  EXPECT_TRUE(tuner.settled());
  EXPECT_TRUE(tuner.paused());
  EXPECT_EQ(tuner.Next(), kNative);
  OnlineTuner known(Tuna(8), 0.5, false, 1, {}, kNoisyClock);
  EXPECT_TRUE(known.settled());
  EXPECT_TRUE(known.paused());
  EXPECT_EQ(known.Next(), Tuna(8));
}

TEST(OnlineTunerTest, WhatIsKnownServesAndIsChallenged) {
  const std::vector<Prediction> others = {{Tuna(4), 0.6}};
  for (const double clock : {kNoisyClock, kExactClock}) {
    OnlineTuner tuner(Tuna(2), 0.7, false, 1, others, clock);
    EXPECT_EQ(tuner.Next(), Tuna(2));
    Serve(tuner, 1000, [](const Algorithm& algorithm, int) {
      return algorithm == kNative ? 1.0 : (algorithm.radix == 4 ? 0.5 : 0.7);
    });
    EXPECT_TRUE(tuner.settled());
    EXPECT_EQ(tuner.serving(), Tuna(4));
    // Where the native algorithm was the best nearby, it is asked at once.
    OnlineTuner asks(Tuna(2), 0.7, true, 1, {}, clock);
    Serve(asks, 60,
          [](const Algorithm& algorithm, int) { return algorithm == kNative ? 1.0 : 1.3; });
    EXPECT_EQ(asks.serving(), kNative);
  }
}

TEST(OnlineTunerTest, TheFirstCallOfWhatIsKnownIsNotMeasured) {
  OnlineTuner tuner(Tuna(2), 0.7, true, 1, {}, kExactClock);
  int of_known = 0;
  Serve(tuner, 60, [&](const Algorithm& algorithm, int) {
    if (algorithm == kNative) return 1.0;
    return ++of_known == 1 ? 9.0 : 0.7;
  });
  EXPECT_EQ(tuner.serving(), Tuna(2));
}

TEST(OnlineTunerTest, WithAnExactClockAllOfTheShortlistGetAPair) {
  std::vector<Prediction> shortlist;
  for (int radix = 2; radix < 14; ++radix) shortlist.push_back({Tuna(radix), 0.8});
  OnlineTuner tuner(1, shortlist, kExactClock);
  // The first is much faster than predicted, which says nothing against the others.
  Serve(tuner, 64, [](const Algorithm& algorithm, int) {
    return algorithm == kNative ? 1.0 : 0.3 - 0.01 * algorithm.radix;
  });
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.serving(), Tuna(13));
}

TEST(OnlineTunerTest, OneBadPairDoesNotPutAGoodOneToRest) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.5}};
  OnlineTuner tuner(1, shortlist, kNoisyClock);
  int of_other = 0;
  Serve(tuner, 60, [&](const Algorithm& algorithm, int) {
    if (algorithm == kNative) return 1.0;
    return ++of_other <= 3 + 2 ? 3.5 : 0.5;
  });
  EXPECT_EQ(tuner.serving(), Tuna(2));
}

TEST(OnlineTunerTest, AStageWhoseSizesChangedSaysNothing) {
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}};
  OnlineTuner tuner(1, shortlist, kNoisyClock);
  RunStage(tuner, 1, 100);
  tuner.EndStage(tuner.Times(), false, 0);
  // The same once more, but that set-up is over.
  std::vector<Algorithm> order(1 + 2, kNative);
  order.insert(order.end(), 3 + 2, Tuna(2));
  EXPECT_EQ(RunStage(tuner, 1, 0.4), order);
  tuner.EndStage(tuner.Times(), true, 0);
  Serve(tuner, 400, [](const Algorithm& algorithm, int) { return algorithm == kNative ? 1 : 0.4; });
  ASSERT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.serving(), Tuna(2));
}

TEST(OnlineTunerTest, WhatGetsSlowerIsGivenUp) {
  for (const bool known : {false, true}) {
    const std::vector<Prediction> shortlist = {{Tuna(2), 0.5}};
    OnlineTuner tuner = known ? OnlineTuner(Tuna(2), 0.5, false, 1, {}, kNoisyClock)
                              : OnlineTuner(1, shortlist, kNoisyClock);
    const auto fast = [](const Algorithm& algorithm, int) {
      return algorithm == kNative ? 1 : 0.5;
    };
    const auto slow = [](const Algorithm& algorithm, int) {
      return algorithm == kNative ? 1 : 1.1;
    };
    Serve(tuner, 300, fast);
    EXPECT_EQ(tuner.serving(), Tuna(2));
    Serve(tuner, 1000, slow);
    EXPECT_EQ(tuner.serving(), kNative);
  }
}

TEST(OnlineTunerTest, RechecksCostLessAndLess) {
  OnlineTuner tuner(Tuna(2), 1.0 / 3, false, 1, {}, kNoisyClock);
  const auto seconds_of = [](const Algorithm& algorithm, int) {
    return algorithm == kNative ? 3.0 : 1.0;
  };
  double before = 0;
  for (const int calls : {1000, 10000, 100000}) {
    const double lost = Serve(tuner, calls, seconds_of) / calls - 1;
    EXPECT_LE(lost, before == 0 ? 0.03 : before / 2);
    before = lost;
  }
}

TEST(OnlineTunerProperty, TryingCostsFewCallsAndEndsWithTheBest) {  // T1, T3
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
      return algorithm == kNative ? 1.0 : truth[algorithm.radix];
    };
    OnlineTuner tuner(1, shortlist, kNoisyClock), twin(1, shortlist, kNoisyClock);
    const double total = Serve(tuner, 300, seconds_of);
    EXPECT_EQ(Serve(twin, 300, seconds_of), total);
    most = std::max(most, total / 300);
    Serve(tuner, 20000, seconds_of);
    ASSERT_TRUE(tuner.settled());
    EXPECT_LE(seconds_of(tuner.serving(), 0), 1.0);
  }
  EXPECT_LE(most, 1.05);
}

// A machine with more ranks than cores: every call is up to 30 % longer, one in ten takes up to ten
// times as long, and all calls get slower and faster by half over some hundred calls.
class NoisyMachine {
 public:
  explicit NoisyMachine(uint64_t seed) : random_(seed) {}

  double Seconds(double clean, int call) {
    const double noise = 1 + 0.003 * static_cast<double>(random_.Below(100));
    const double tail =
        random_.Below(10) == 0 ? 1 + 0.09 * static_cast<double>(random_.Below(100)) : 1;
    const int phase = call % 600;
    const double drift = 1 + 0.5 * (phase < 300 ? phase : 600 - phase) / 300.0;
    return clean * noise * tail * drift;
  }

 private:
  Random random_;
};

TEST(OnlineTunerProperty, NoiseRarelyFoolsThem) {
  int wrong = 0, slower = 0;
  constexpr int kDraws = 200;
  for (int draw = 0; draw < kDraws; ++draw) {
    NoisyMachine machine(static_cast<uint64_t>(draw) + 5);
    const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}, {Tuna(4), 0.7}, {Tuna(8), 0.7}};
    OnlineTuner tuner(1, shortlist, kNoisyClock);
    Serve(tuner, 6000, [&](const Algorithm& algorithm, int call) {
      const double clean =
          algorithm == kNative ? 1.0 : (algorithm.radix == 2 ? 0.6 : 1 + 0.01 * algorithm.radix);
      return machine.Seconds(clean, call);
    });
    wrong += tuner.serving() == Tuna(2) ? 0 : 1;
    slower += tuner.serving() == Tuna(2) || tuner.serving() == kNative ? 0 : 1;
  }
  EXPECT_LE(wrong, kDraws / 20);
  EXPECT_LE(slower, kDraws / 100);
}

TEST(OnlineTunerProperty, WhatIsALittleSlowerIsRarelyTakenAndSoonGivenUp) {
  int taken = 0, kept = 0;
  constexpr int kDraws = 200;
  for (int draw = 0; draw < kDraws; ++draw) {
    NoisyMachine machine(static_cast<uint64_t>(draw) + 1000);
    const std::vector<Prediction> shortlist = {{Tuna(2), 0.7}, {Tuna(4), 0.75}};
    OnlineTuner tuner(1, shortlist, kNoisyClock);
    const auto seconds_of = [&](const Algorithm& algorithm, int call) {
      return machine.Seconds(algorithm == kNative ? 1.0 : 1.06, call);
    };
    Serve(tuner, 2000, seconds_of);
    taken += tuner.serving() == kNative ? 0 : 1;
    Serve(tuner, 8000, seconds_of);
    kept += tuner.serving() == kNative ? 0 : 1;
  }
  EXPECT_LE(taken, kDraws / 20);
  EXPECT_LE(kept, kDraws / 50);
}

// Eight ranks on two cores, as measured: setting the communicator up leaves them milliseconds apart
// for some calls (here a call of the native algorithm is 1), an agreement makes the call after it
// half as long again, one call in 16 meets a time slice of something else, and the machine gets
// slower and faster by up to a half.
class OversubscribedRanks {
 public:
  explicit OversubscribedRanks(uint64_t seed) : random_(seed) {}

  double Seconds(double clean) {
    if (calls_of_pace_-- == 0) {
      calls_of_pace_ = 200 + random_.Below(800);
      pace_ = 1 + Uniform() / 2;
    }
    double seconds = clean * (0.85 + 0.3 * Uniform());
    if (after_set_up_ < 2)
      seconds += 50 + 80 * Uniform();
    else if (after_set_up_ < 4)
      seconds += 1 + 6 * Uniform();
    else if (after_agreement_)
      seconds += 0.3 + 0.3 * Uniform();
    ++after_set_up_;
    after_agreement_ = false;
    if (random_.Below(16) == 0) seconds += 1 + 40 * Uniform() * Uniform();
    return seconds * pace_;
  }
  double SecondsOfAgreement() {
    after_agreement_ = true;
    return 2 * (0.7 + 0.6 * Uniform()) * pace_;
  }

 private:
  double Uniform() { return 1e-3 * static_cast<double>(random_.Below(1000)); }

  Random random_;
  int after_set_up_ = 0;
  bool after_agreement_ = false;
  uint64_t calls_of_pace_ = 0;
  double pace_ = 1;
};

struct Outcome {
  bool slower_served = false;  // beside comparison
  Algorithm serving;
  double mean_cost = 0;  // of a call and its share of agreements, without noise
};

Outcome OnOversubscribedRanks(uint64_t seed, std::span<const Prediction> shortlist,
                              double challenger, int calls) {
  constexpr double kAgreement = 2;
  OversubscribedRanks ranks(seed);
  OnlineTuner tuner(1, shortlist, kNoisyClock);
  Outcome outcome;
  for (int call = 0; call < calls; ++call) {
    const double clean = tuner.Next() == kNative ? 1 : challenger;
    const double seconds = ranks.Seconds(clean);
    outcome.mean_cost += clean / calls;
    outcome.slower_served |= challenger > 1 && !(tuner.serving() == kNative);
    if (tuner.paused()) {
      tuner.Skip(1);
      continue;
    }
    tuner.Note(seconds);
    if (!tuner.stage_ended()) continue;
    tuner.EndStage(tuner.Times(), true, ranks.SecondsOfAgreement());
    outcome.mean_cost += kAgreement / calls;
  }
  outcome.serving = tuner.serving();
  return outcome;
}

constexpr int kDrawsOfRanks = 200, kCallsOfRanks = 4000;

TEST(OnlineTunerProperty, RanksThatLeaveAnAgreementApartDoNotMakeAChallengerFast) {  // T3
  const std::vector<Prediction> shortlist = {{Tuna(2), 0.9}, {Tuna(4), 0.95}, {Tuna(8), 1}};
  for (const double challenger : {0.97, 1.0, 1.05, 1.1}) {
    int slower = 0;
    double most = 0;
    for (int draw = 0; draw < kDrawsOfRanks; ++draw) {
      const Outcome outcome =
          OnOversubscribedRanks(static_cast<uint64_t>(draw), shortlist, challenger, kCallsOfRanks);
      slower += outcome.slower_served ? 1 : 0;
      most = std::max(most, outcome.mean_cost);
    }
    EXPECT_LE(slower, kDrawsOfRanks / 100) << challenger;
    EXPECT_LE(most, 1.03) << challenger;
  }
}

TEST(OnlineTunerProperty, WhatIsTwiceAsFastIsFoundAmongRanksThatAreApart) {
  for (const double predicted : {0.4, 0.8}) {
    const std::vector<Prediction> shortlist = {{Tuna(2), predicted}};
    int found = 0;
    double sum = 0;
    for (int draw = 0; draw < kDrawsOfRanks; ++draw) {
      const Outcome outcome =
          OnOversubscribedRanks(static_cast<uint64_t>(draw), shortlist, 0.45, kCallsOfRanks);
      found += outcome.serving == Tuna(2) ? 1 : 0;
      sum += outcome.mean_cost;
    }
    EXPECT_GE(found, kDrawsOfRanks * 98 / 100) << predicted;
    EXPECT_LE(sum / kDrawsOfRanks, 0.48) << predicted;
  }
}

}  // namespace
}  // namespace tutti::tune
