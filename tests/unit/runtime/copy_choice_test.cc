#include "copy_choice.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr int64_t kSize = 100'000;

bool Streams(const CopyChoice& choice, int64_t bytes) {
  return (choice.streamed() & CopyChoice::BitOf(bytes)) != 0;
}

// Messages that take so long cached or streamed, as the choice wants them; how many were streamed.
int StreamedOf(CopyChoice& choice, int messages, int64_t cached_ns, int64_t streamed_ns) {
  int streamed = 0;
  for (int i = 0; i < messages; ++i) {
    const bool streams = Streams(choice, kSize);
    streamed += streams ? 1 : 0;
    choice.Add(kSize, streams, streams ? streamed_ns : cached_ns);
  }
  return streamed;
}

TEST(CopyChoiceTest, ClassesArePowersOfTwoFromTheLeastSizeOn) {
  EXPECT_EQ(CopyChoice::BitOf(0), 0u);
  EXPECT_EQ(CopyChoice::BitOf(CopyChoice::kLeastBytes - 1), 0u);
  EXPECT_EQ(CopyChoice::BitOf(CopyChoice::kLeastBytes), 1u);
  EXPECT_EQ(CopyChoice::BitOf(2 * CopyChoice::kLeastBytes - 1), 1u);
  EXPECT_EQ(CopyChoice::BitOf(2 * CopyChoice::kLeastBytes), 2u);
  EXPECT_EQ(CopyChoice::BitOf(INT64_MAX), 1u << 31);
}

TEST(CopyChoiceTest, BothWaysAreTriedAndTheShorterOneIsTaken) {
  for (const int64_t streamed_ns : {50, 150}) {
    CopyChoice choice;
    const bool shorter = streamed_ns < 100;
    const int others = CopyChoice::kPeriod - 2 * CopyChoice::kTrials;
    EXPECT_EQ(StreamedOf(choice, CopyChoice::kTrials, 100, streamed_ns), 0);
    EXPECT_EQ(StreamedOf(choice, CopyChoice::kTrials, 100, streamed_ns), CopyChoice::kTrials);
    EXPECT_EQ(StreamedOf(choice, others, 100, streamed_ns), shorter ? others : 0);
  }
}

// Processors move apart and come together again while a virtual machine runs.
TEST(CopyChoiceTest, WhatChangesIsFoundInTheNextPeriod) {
  CopyChoice choice;
  for (const bool streaming_pays : {false, true, false, true, true}) {
    const int streamed = StreamedOf(choice, CopyChoice::kPeriod, 100, streaming_pays ? 50 : 150);
    const int least = CopyChoice::kTrials;
    EXPECT_EQ(streamed, streaming_pays ? CopyChoice::kPeriod - least : least);
  }
}

TEST(CopyChoiceTest, OneInterruptedTrialDecidesNothing) {
  CopyChoice choice;
  choice.Add(kSize, false, 100);
  choice.Add(kSize, false, 100);
  choice.Add(kSize, true, 10'000);
  choice.Add(kSize, true, 50);
  EXPECT_TRUE(Streams(choice, kSize));
}

TEST(CopyChoiceTest, ClassesAreChosenForEachAlone) {
  CopyChoice choice;
  StreamedOf(choice, 10, 100, 50);
  EXPECT_TRUE(Streams(choice, kSize));
  EXPECT_FALSE(Streams(choice, 4 * kSize));
  choice.Add(1000, false, 1);  // too small to count
  EXPECT_TRUE(Streams(choice, kSize));
}

// A sender that cannot stream does not keep the choice waiting.
TEST(CopyChoiceTest, WhatNeverComesStreamedIsAskedForAndDoesNoHarm) {
  CopyChoice choice;
  for (int period = 0; period < 3; ++period)
    for (int i = 1; i <= CopyChoice::kPeriod; ++i) {
      choice.Add(kSize, false, 100);
      const bool asks = i >= CopyChoice::kTrials && i < CopyChoice::kPeriod;
      EXPECT_EQ(choice.streamed(), asks ? CopyChoice::BitOf(kSize) : 0u) << i;
    }
}

}  // namespace
}  // namespace tutti
