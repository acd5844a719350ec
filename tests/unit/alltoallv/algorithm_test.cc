#include "tutti/alltoallv/algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::alltoallv {
namespace {

TEST(AlgorithmTest, ReadsNamesAndParameters) {
  EXPECT_EQ(ParseAlgorithm("auto").value(), (Algorithm{.method = Method::kAuto}));
  EXPECT_EQ(ParseAlgorithm("tuna:r=8").value(), (Algorithm{.method = Method::kTuna, .radix = 8}));
  EXPECT_EQ(ParseAlgorithm("coalesced:b=16,r=4").value(),
            (Algorithm{.method = Method::kCoalesced, .radix = 4, .block_count = 16}));
  EXPECT_EQ(ParseAlgorithm("shared-coalesced:b=16").value(),
            (Algorithm{.method = Method::kSharedCoalesced, .block_count = 16}));
}

TEST(AlgorithmTest, EveryMethodIsReadAsWritten) {
  for (const std::string_view name : MethodNames()) {
    Algorithm algorithm = ParseAlgorithm(name).value();
    EXPECT_EQ(ToString(algorithm), name);
    if (TakesRadix(algorithm.method)) algorithm.radix = 7;
    if (TakesBlockCount(algorithm.method)) algorithm.block_count = 3;
    EXPECT_EQ(ParseAlgorithm(ToString(algorithm)).value(), algorithm);
  }
}

// The executor, its persistent form and the cost model ask here.
TEST(AlgorithmTest, WhatItIsOnSoManyRanks) {
  const auto resolved = [](const char* text, int ranks) {
    return ToString(Resolved(ParseAlgorithm(text).value(), ranks));
  };
  EXPECT_EQ(resolved("tuna", 16), "tuna:r=4");
  EXPECT_EQ(resolved("tuna", 17), "tuna:r=5");  // two digits need 5 * 5 >= 17
  EXPECT_EQ(resolved("tuna", 20), "tuna:r=5");
  EXPECT_EQ(resolved("tuna", 2), "spread-out");
  EXPECT_EQ(resolved("tuna:r=7", 8), "tuna:r=7");
  EXPECT_EQ(resolved("tuna:r=8", 8), "spread-out");
  EXPECT_EQ(resolved("tuna:r=9", 8), "spread-out");
  EXPECT_EQ(resolved("coalesced:b=3", 8), "coalesced:b=3");
  for (int ranks = 1; ranks <= 5000; ++ranks) {
    const int radix = RadixFor(0, ranks);
    EXPECT_GE(radix * radix, ranks);
    EXPECT_TRUE(radix == 2 || (radix - 1) * (radix - 1) < ranks) << ranks;
  }
}

TEST(AlgorithmTest, ARadixIsFromTwoToTheRanks) {
  EXPECT_EQ(RadixFor(3, 8), 3);
  EXPECT_EQ(RadixFor(9, 8), 8);
  EXPECT_EQ(RadixFor(1, 8), 2);
  EXPECT_EQ(RadixFor(5, 1), 2);
}

TEST(AlgorithmTest, EveryMethodHasItsTraits) {
  for (size_t i = 0; i < kNumMethods; ++i) {
    const auto method = static_cast<Method>(i);
    EXPECT_EQ(ParseAlgorithm(MethodNames()[i]).value().method, method);
    // auto and mpi are no algorithms of ours.
    const Family family = FamilyOf(method);
    EXPECT_EQ(family == Family::kChosen, method == Method::kAuto);
    EXPECT_EQ(family == Family::kNative, method == Method::kMpi);
  }
}

TEST(AlgorithmTest, EveryFaultNamesTheWordAndWhatIsAccepted) {
  const struct {
    const char* text;
    const char* named;
  } faults[] = {
      {"", "unknown all-to-all-v algorithm ''; accepted are auto, mpi, linear"},
      {"bruck", "unknown all-to-all-v algorithm 'bruck'"},
      {"tuna:", "unknown parameter '' of 'tuna'; accepted: r"},
      {"tuna:b=2", "unknown parameter 'b=2' of 'tuna'; accepted: r"},
      {"tuna:r=1", "'r' of 'tuna' is '1'; accepted are whole numbers from 2"},
      {"tuna:r=", "'r' of 'tuna' is ''"},
      {"tuna:r=2x", "'r' of 'tuna' is '2x'"},
      {"tuna:r=99999999999", "'r' of 'tuna' is '99999999999'"},
      {"tuna:r=2,r=3", "'r' is given twice in 'tuna:r=2,r=3'"},
      {"shared:r=2", "unknown parameter 'r=2' of 'shared'; accepted: b"},
      {"coalesced:r=2,b=0", "'b' of 'coalesced' is '0'; accepted are whole numbers from 1"},
      {"coalesced:r=2,", "unknown parameter '' of 'coalesced'; accepted: r and b"},
      {"linear:b=2", "'linear' takes no parameters"},
  };
  for (const auto& fault : faults) {
    const auto algorithm = ParseAlgorithm(fault.text);
    ASSERT_FALSE(algorithm.has_value()) << fault.text;
    EXPECT_THAT(algorithm.error().message, testing::HasSubstr(fault.named)) << fault.text;
  }
}

}  // namespace
}  // namespace tutti::alltoallv
