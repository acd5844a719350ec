#include "tutti/tune/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tuna.h"
#include "tutti/base/random.h"

namespace tutti::tune {
namespace {

using testing::ElementsAre;

// Powers of two, so that sums are exact and can be done by hand.
CostModel HandModel() {
  return {.library = Library::kOpenMpi,
          .inside = {.latency_s = 4, .flow_s_per_byte = 0.5, .node_s_per_byte = 0.0625},
          .between = {.latency_s = 16, .flow_s_per_byte = 1, .node_s_per_byte = 0.5},
          .send_s = 1,
          .receive_s = 2,
          .copy_s = 0.25,
          .copy_s_per_byte = 0.125};
}

constexpr BlockSizes kEqual{.mean_bytes = 8, .largest_bytes = 8};

// --- Worked examples ----------------------------------------------------------------------------

TEST(CostModelTest, RoundsOfTunaByHand) {  // C1; [tuna] Figure 3: K = 3, 4, 4 for r = 2, 3, 4
  EXPECT_THAT(TunaRounds(8, 2), ElementsAre(TunaRound{1, 4}, TunaRound{2, 4}, TunaRound{4, 4}));
  EXPECT_THAT(TunaRounds(8, 3),
              ElementsAre(TunaRound{1, 3}, TunaRound{2, 2}, TunaRound{3, 3}, TunaRound{6, 2}));
  EXPECT_THAT(TunaRounds(8, 4),
              ElementsAre(TunaRound{1, 2}, TunaRound{2, 2}, TunaRound{3, 2}, TunaRound{4, 4}));
  EXPECT_THAT(TunaRounds(3, 100), ElementsAre(TunaRound{1, 1}, TunaRound{2, 1}));
  EXPECT_TRUE(TunaRounds(1, 2).empty());
}

TEST(CostModelTest, TunaOnOneNodeByHand) {
  // Digits 0 and 1: one round of 2 blocks of 8 bytes each, among 4 ranks of one node. A byte of a
  // block: flow 2 x 0.5 = 1, node 4 x 2 x 0.0625 = 0.5, so 1. Each 4 + 3 + 8 = 15; in the first
  // one block is forwarded, whose size takes 1 byte at 0.5. Gathered 2 + 2, arrived 1 + 2, and
  // the own block: 8 x 1.25.
  const double seconds = MakeFormula(HandModel(), EvenPlacement(4, 4), Tuna(2)).Seconds(kEqual);
  EXPECT_DOUBLE_EQ(seconds, 15 + 0.5 + 15 + 10);
}

TEST(CostModelTest, SingleBlockRoundsSendNoSizesAndCopyNothing) {
  // Radix 4 on 4 ranks: three rounds of one block, together in flight: 4 + 3 + max(2 x 3, 12).
  EXPECT_DOUBLE_EQ(MakeFormula(HandModel(), EvenPlacement(4, 4), Tuna(4)).Seconds(kEqual),
                   4 + 3 + 12 + 1.25);
}

TEST(CostModelTest, RanksOfANodeShareWhatLeavesIt) {
  // 8 ranks, 4 a node, radix 8: of 7 blocks per rank 3 stay: 12 of the node, 16 leave: between:
  // flow 16 / 4 = 4, node 16 x 0.5 = 8 a byte.
  EXPECT_DOUBLE_EQ(MakeFormula(HandModel(), EvenPlacement(8, 4), Tuna(8)).Seconds(kEqual),
                   16 + 3 + 64 + 1.25);
}

TEST(CostModelTest, SpreadOutIsLimitedByTheProcessorOrTheWire) {
  // 4 ranks of one node: latency 4, the first message 3, then two more messages 6 of processor
  // time; wire of 3 blocks 1.5 a byte: 12 for 8 bytes, 1.5 for one.
  const Formula formula =
      MakeFormula(HandModel(), EvenPlacement(4, 4), {.method = Method::kSpreadOut});
  EXPECT_DOUBLE_EQ(formula.Seconds(kEqual), 4 + 3 + 12 + 1.25);
  EXPECT_DOUBLE_EQ(formula.Seconds({.mean_bytes = 1, .largest_bytes = 1}), 4 + 3 + 6 + 0.375);
}

TEST(CostModelTest, EagerBytesCostTheirSender) {
  // As above, blocks of 8 bytes at 0.5 a byte where messages are eager: the first 4 before, the two
  // others beside their 6 of processor time: 14, longer than the wire's 12.
  CostModel model = HandModel();
  model.eager_bytes = 8;
  model.eager_s_per_byte = 0.5;
  const Algorithm spread_out{.method = Method::kSpreadOut};
  EXPECT_DOUBLE_EQ(MakeFormula(model, EvenPlacement(4, 4), spread_out).Seconds(kEqual),
                   4 + 3 + 4 + 14 + 1.25);
  model.eager_bytes = 7;
  EXPECT_DOUBLE_EQ(MakeFormula(model, EvenPlacement(4, 4), spread_out).Seconds(kEqual),
                   4 + 3 + 12 + 1.25);
}

TEST(CostModelTest, CoalescedByHand) {
  // 4 ranks, 2 a node. TuNA on 2 ranks, radix 2: one round of 2 blocks (one a node), flow 1 a byte:
  //   sizes 4 + 3 + 2 x 0.5 = 8, data 4 + 3 + 8 = 15, gathered 2 and arrived 2: 5
  // One message of 2 blocks to the other node, flow 2, node 2 x 2 x 0.5 = 2: 16 + 3 + 16; its 2
  // blocks are copied to their places: 2.5.
  EXPECT_DOUBLE_EQ(MakeFormula(HandModel(), EvenPlacement(4, 2),
                               {.method = Method::kCoalesced, .radix = 2, .block_count = 1})
                       .Seconds(kEqual),
                   1.25 + 8 + 15 + 5 + 35 + 2.5);
}

TEST(CostModelTest, SharedByHand) {
  const auto seconds = [](int per_node, Method method) {
    return MakeFormula(HandModel(), EvenPlacement(4, per_node), {.method = method}).Seconds(kEqual);
  };
  // 4 ranks of one node: the own block, 3 blocks out, 4 in as one run, a barrier of 2 rounds.
  EXPECT_DOUBLE_EQ(seconds(4, Method::kShared), 1.25 + 3 * 1.25 + (0.25 + 4) + 2 * 4);
  // 2 a node: the run is 2 blocks; three barriers of a round; tables of 10 bytes per rank; a
  // message of 2 blocks to the other node, as above.
  const double shared = 1.25 + 3 * 1.25 + (0.25 + 2) + 3 * 4 + 40 * 0.125 + 35;
  EXPECT_DOUBLE_EQ(seconds(2, Method::kShared), shared);
  // Two parts a node, as many as ranks; the messages are put together after one more barrier.
  EXPECT_DOUBLE_EQ(seconds(2, Method::kSharedCoalesced), shared + 4 + 0.25 + 2);
}

TEST(CostModelTest, PaddedBruckPaysForTheLargestBlock) {
  const Formula formula =
      MakeFormula(HandModel(), EvenPlacement(4, 4), {.method = Method::kPaddedBruck});
  const double small = formula.Seconds({.mean_bytes = 1, .largest_bytes = 8});
  EXPECT_GT(formula.Seconds({.mean_bytes = 1, .largest_bytes = 80}), small + 72 * 2);
}

TEST(CostModelTest, OpenMpiTakesPairwiseOnSomeNumbersOfRanks) {
  const auto native_is = [](int ranks, Method method) {
    const Placement placement = EvenPlacement(ranks, 16);
    return MakeFormula(HandModel(), placement, {.method = Method::kMpi}).Seconds(kEqual) ==
           MakeFormula(HandModel(), placement, {.method = method}).Seconds(kEqual);
  };
  for (const int ranks : {2, 3, 64, 127, 256, 1023})
    EXPECT_TRUE(native_is(ranks, Method::kPairwise));
  for (const int ranks : {4, 63, 128, 255, 1024}) EXPECT_TRUE(native_is(ranks, Method::kLinear));
}

TEST(CostModelTest, PlacementsAreReadFromTheNodeOfEachRank) {
  const std::vector<int> blocks = {7, 7, 7, 2, 2};
  EXPECT_EQ(PlacementOf(blocks),
            (Placement{.ranks = 5, .nodes = 2, .largest_node = 3, .consecutive = true}));
  const std::vector<int> in_turn = {0, 1, 0, 1};
  EXPECT_EQ(PlacementOf(in_turn),
            (Placement{.ranks = 4, .nodes = 2, .largest_node = 2, .consecutive = false}));
  EXPECT_EQ(EvenPlacement(5, 2),
            (Placement{.ranks = 5, .nodes = 3, .largest_node = 2, .consecutive = true}));
}

TEST(CostModelTest, LibrariesAreReadAsWritten) {
  for (const Library library : {Library::kOpenMpi, Library::kMpich, Library::kSmpi}) {
    EXPECT_EQ(ParseLibrary(Name(library)).value(), library);
  }
  EXPECT_THAT(ParseLibrary("lam").error().message, testing::HasSubstr("openmpi, mpich, smpi"));
}

// --- Properties ---------------------------------------------------------------------------------

TEST(CostModelProperty, BlocksOfTunaRoundsAreThoseWithTheDigit) {  // C1
  for (int ranks = 1; ranks <= 70; ++ranks) {
    for (int radix = 2; radix <= ranks + 1; ++radix) {
      std::vector<TunaRound> expected;
      for (int64_t base = 1; base < ranks; base *= radix) {
        for (int64_t z = 1; z < radix; ++z) {
          int64_t blocks = 0;
          for (int64_t i = 0; i < ranks; ++i) blocks += (i / base) % radix == z ? 1 : 0;
          if (blocks > 0) expected.push_back({z * base, blocks});
        }
      }
      ASSERT_EQ(TunaRounds(ranks, radix), expected) << ranks << " ranks, radix " << radix;
    }
  }
}

// Digit by digit from the list of rounds: the formula counts blocks by arithmetic.
double TunaByRounds(const CostModel& model, const Placement& placement, int radix,
                    const BlockSizes& sizes) {
  const std::vector<TunaRound> rounds = TunaRounds(placement.ranks, radix);
  const double node = placement.largest_node;
  const double message = model.send_s + model.receive_s;
  double seconds = 0, copies = 1;
  int64_t base = 1;
  for (size_t first = 0, end = 0; first < rounds.size(); first = end, base *= radix) {
    double stay = 0, blocks = 0, arriving = 0;
    for (end = first; end < rounds.size() && rounds[end].distance < base * radix; ++end) {
      const TunaRound& round = rounds[end];
      const int64_t arrive = std::min(base, placement.ranks - round.distance);
      for (int rank = 0; rank < placement.largest_node; ++rank) {
        const bool stays = placement.nodes == 1 ||
                           (rank + round.distance) % placement.ranks < placement.largest_node;
        stay += stays ? static_cast<double>(round.blocks) : 0;
      }
      blocks += static_cast<double>(round.blocks);
      arriving += static_cast<double>(arrive);
      if (round.blocks > 1) copies += static_cast<double>(round.blocks + arrive);
    }
    const double leave = blocks * node - stay;
    const auto batches = static_cast<double>((end - first + 63) / 64);
    const double per_byte = std::max(
        {model.inside.flow_s_per_byte * stay / node, model.inside.node_s_per_byte * stay,
         model.between.flow_s_per_byte * leave / node, model.between.node_s_per_byte * leave});
    const double latency =
        std::max(stay > 0 ? model.inside.latency_s : 0, leave > 0 ? model.between.latency_s : 0);
    seconds += batches * (latency + message) +
               std::max((static_cast<double>(end - first) - batches) * message,
                        per_byte * (sizes.mean_bytes + 1 - arriving / blocks));
  }
  return seconds + copies * (model.copy_s + model.copy_s_per_byte * sizes.mean_bytes);
}

TEST(CostModelProperty, FormulaOfTunaIsTheSumOfItsRounds) {
  for (const auto& [ranks, per_node] :
       {std::pair{2, 1}, {7, 7}, {8, 2}, {24, 8}, {33, 16}, {64, 32}, {100, 20}, {131, 64}}) {
    Placement placement = EvenPlacement(ranks, per_node);
    // From as many as ranks on nothing is forwarded: that is spread-out.
    const Formula direct = MakeFormula(HandModel(), placement, {.method = Method::kSpreadOut});
    for (int radix : {ranks, ranks + 1}) {
      EXPECT_EQ(MakeFormula(HandModel(), placement, Tuna(radix)).Seconds(kEqual),
                direct.Seconds(kEqual));
    }
    for (int radix = 2; radix < ranks; ++radix) {
      const double expected = TunaByRounds(HandModel(), placement, radix, kEqual);
      ASSERT_NEAR(MakeFormula(HandModel(), placement, Tuna(radix)).Seconds(kEqual), expected,
                  1e-9 * expected)
          << ranks << " ranks, " << per_node << " a node, radix " << radix;
    }
  }
}

std::vector<Algorithm> SomeAlgorithms(int ranks) {
  std::vector<Algorithm> all;
  for (const Method method : {Method::kMpi, Method::kLinear, Method::kPairwise, Method::kXor,
                              Method::kSpreadOut, Method::kTwoPhaseBruck, Method::kPaddedBruck}) {
    all.push_back({.method = method});
  }
  for (const int radix : {2, 3, ranks}) {
    all.push_back(Tuna(std::max(2, radix)));
    for (const int count : {1, 4}) {
      for (const Method method : {Method::kCoalesced, Method::kStaggered, Method::kMultilevel}) {
        all.push_back({.method = method, .radix = std::max(2, radix), .block_count = count});
      }
    }
  }
  for (const int count : {0, 1, 5}) {
    for (const Method method : {Method::kScattered, Method::kShared, Method::kSharedCoalesced}) {
      all.push_back({.method = method, .block_count = count});
    }
  }
  return all;
}

TEST(CostModelProperty, NothingGetsFasterOnASlowerCluster) {  // C2
  double CostModel::*const scalars[] = {&CostModel::send_s, &CostModel::receive_s,
                                        &CostModel::copy_s, &CostModel::copy_s_per_byte};
  double PathCost::*const of_path[] = {&PathCost::latency_s, &PathCost::flow_s_per_byte,
                                       &PathCost::node_s_per_byte};
  for (const Placement& placement :
       {EvenPlacement(1, 1), EvenPlacement(6, 6), EvenPlacement(24, 8), EvenPlacement(30, 7)}) {
    Placement with_sockets = placement;
    with_sockets.largest_socket = 3;
    for (const Placement& each : {placement, with_sockets}) {
      for (const Algorithm& algorithm : SomeAlgorithms(each.ranks)) {
        const BlockSizes sizes{.mean_bytes = 100, .largest_bytes = 250};
        const double before = MakeFormula(HandModel(), each, algorithm).Seconds(sizes);
        const auto rises = [&](const CostModel& model) {
          return MakeFormula(model, each, algorithm).Seconds(sizes) >= before;
        };
        for (const auto field : scalars) {
          CostModel slower = HandModel();
          slower.*field *= 3;
          EXPECT_TRUE(rises(slower)) << ToString(algorithm);
        }
        for (const auto field : of_path) {
          CostModel slower = HandModel();
          slower.inside.*field *= 3;
          EXPECT_TRUE(rises(slower)) << ToString(algorithm);
          slower = HandModel();
          slower.between.*field *= 3;
          EXPECT_TRUE(rises(slower)) << ToString(algorithm);
        }
        const Formula formula = MakeFormula(HandModel(), each, algorithm);
        EXPECT_GE(formula.Seconds({.mean_bytes = 101, .largest_bytes = 251}), before);
        EXPECT_GE(formula.Seconds({.mean_bytes = 100, .largest_bytes = 251}), before);
      }
    }
  }
}

TEST(CostModelProperty, BestIsTheFastestOfAllItMayTake) {  // C3
  Random rng(1);
  for (const auto& [ranks, per_node] : {std::pair{5, 5}, {16, 4}, {64, 32}, {96, 16}}) {
    const Placement placement = EvenPlacement(ranks, per_node);
    const CostTables tables(DefaultModel(Library::kMpich), placement);
    std::vector<Formula> every_radix;
    for (int radix = 2; radix <= ranks; ++radix) {
      every_radix.push_back(MakeFormula(tables.model(), placement, Tuna(radix)));
    }
    for (int draw = 0; draw < 200; ++draw) {
      const auto mean = static_cast<double>(rng.Below(uint64_t{1} << rng.Below(24)) + 1);
      const BlockSizes sizes{.mean_bytes = mean,
                             .largest_bytes = mean * static_cast<double>(1 + rng.Below(4))};
      const Prediction best = tables.Best(sizes);
      EXPECT_DOUBLE_EQ(best.seconds, tables.Seconds(best.algorithm, sizes));
      for (const Algorithm& algorithm : SomeAlgorithms(ranks)) {
        EXPECT_LE(best.seconds, tables.Seconds(algorithm, sizes) * 1.001) << ToString(algorithm);
      }
      for (const Formula& tuna : every_radix) EXPECT_LE(best.seconds, tuna.Seconds(sizes) * 1.001);
    }
  }
}

TEST(CostModelProperty, TheShortlistIsSortedVariedAndWithoutTheLibrarysOwn) {
  const CostTables tables(DefaultModel(Library::kOpenMpi), EvenPlacement(256, 32));
  for (double mean = 1; mean < 1e6; mean *= 3) {
    const auto list = tables.Shortlist({.mean_bytes = mean, .largest_bytes = 2 * mean}, 10, 2);
    EXPECT_EQ(list.size(), 10U);
    std::multiset<Method> methods;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) {
        EXPECT_LE(list[i - 1].seconds, list[i].seconds);
      }
      methods.insert(list[i].algorithm.method);
      EXPECT_LE(methods.count(list[i].algorithm.method), 2U);
    }
    EXPECT_EQ(methods.count(Method::kMpi), 0U);
  }
}

// [tuna] section V-A: the best radix grows with the block size, from 2 to P.
TEST(CostModelProperty, TheBestRadixGrowsWithTheBlocks) {
  const CostModel model = DefaultModel(Library::kOpenMpi);
  const Placement placement = EvenPlacement(2048, 32);
  int last = 0;
  std::vector<Formula> formulas;
  for (int radix = 2; radix <= 2048; radix *= 2) {
    formulas.push_back(MakeFormula(model, placement, Tuna(radix)));
  }
  for (double largest = 16; largest <= 1 << 18; largest *= 4) {
    const BlockSizes sizes{.mean_bytes = largest / 2, .largest_bytes = largest};
    int best = 0;
    for (int i = 0; i < static_cast<int>(formulas.size()); ++i) {
      if (formulas[static_cast<size_t>(i)].Seconds(sizes) <
          formulas[static_cast<size_t>(best)].Seconds(sizes)) {
        best = i;
      }
    }
    EXPECT_GE(best, last);
    last = best;
    if (largest == 16) {
      EXPECT_LE(best, 5);  // rounds of a digit go together: radix 64 at most
    }
  }
  EXPECT_EQ(last, 10);  // radix 2048
}

TEST(CostModelTest, TablesOfThousandsOfRanksStaySmall) {
  const CostTables tables(DefaultModel(Library::kOpenMpi), EvenPlacement(4096, 32));
  EXPECT_LE(tables.num_candidates(), 600U);
}

// An algorithm without a radix is predicted as what the executor then runs.
TEST(CostModelTest, WithoutARadixTheExecutedOneIsPredicted) {
  const CostModel model = DefaultModel(Library::kOpenMpi);
  const BlockSizes sizes{.mean_bytes = 100, .largest_bytes = 200};
  for (int ranks = 2; ranks <= 128; ++ranks) {
    const int radix = alltoallv::RadixFor(0, ranks);
    const auto seconds = [&](Method method, int with_radix, const Placement& placement) {
      return MakeFormula(model, placement, {.method = method, .radix = with_radix}).Seconds(sizes);
    };
    const Placement one_node = EvenPlacement(ranks, ranks), nodes = EvenPlacement(3 * ranks, ranks);
    EXPECT_EQ(seconds(Method::kTuna, 0, one_node), seconds(Method::kTuna, radix, one_node));
    for (const Method method : {Method::kCoalesced, Method::kStaggered, Method::kMultilevel}) {
      EXPECT_EQ(seconds(method, 0, nodes), seconds(method, radix, nodes)) << ranks;
    }
    const Algorithm resolved = alltoallv::Resolved({.method = Method::kTuna}, ranks);
    EXPECT_EQ(resolved.method == Method::kTuna ? resolved.radix : ranks, radix);
  }
}

}  // namespace
}  // namespace tutti::tune
