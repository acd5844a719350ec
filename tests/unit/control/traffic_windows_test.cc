#include "tutti/control/traffic_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tutti/base/random.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

// Two collectives of 10 ms, 2 ms apart, every 100 ms, the first at 1007 ms.
std::vector<TracedCollective> Regular(int bursts) {
  std::vector<TracedCollective> trace;
  for (int64_t j = 0; j < bursts; ++j) {
    const int64_t begin = 1007 * kMs + j * 100 * kMs;
    trace.push_back({begin, begin + 10 * kMs});
    trace.push_back({begin + 12 * kMs, begin + 22 * kMs});
  }
  return trace;
}

TEST(TrafficWindows, ByHand) {
  const TrafficWindows windows = *EstimateWindows(Regular(40), kMs);
  EXPECT_EQ(windows.period_ns, 100 * kMs);
  EXPECT_EQ(windows.length_ns, 22 * kMs);
  EXPECT_EQ(windows.phase_ns, 7 * kMs);
  EXPECT_EQ(windows.guard_ns, kMs);
  EXPECT_EQ(windows.victims_ns(), 76 * kMs);
  // Of the period from 507 ms on victims may send in [530, 606).
  for (const auto& [ms, open] :
       {std::pair{507, false}, {529, false}, {530, true}, {605, true}, {606, false}, {607, false}})
    EXPECT_EQ(windows.OpenToVictims(ms * kMs), open) << ms;
}

// Jitter of up to 1 ms, the phase round the end of the period: found again, and no collective of
// the trace lies where victims may send, but for the few beyond the 95th percentiles.
TEST(TrafficWindows, CoverWhatTheyWereMadeOf) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<TracedCollective> trace;
    const auto offset = static_cast<int64_t>(random.Below(100)) * kMs;
    for (int64_t j = 0; j < 32; ++j) {
      const int64_t begin =
          5000 * kMs + offset + j * 100 * kMs + static_cast<int64_t>(random.Below(2 * kMs)) - kMs;
      trace.push_back({begin, begin + 30 * kMs + static_cast<int64_t>(random.Below(kMs))});
    }
    const Result<TrafficWindows> windows = EstimateWindows(trace, 0);
    ASSERT_TRUE(windows) << windows.error().message;
    EXPECT_NEAR(static_cast<double>(windows->period_ns), 100e6, 1e6);
    int outside = 0;
    for (const TracedCollective& one : trace)
      outside +=
          windows->OpenToVictims(one.first_byte_ns) || windows->OpenToVictims(one.last_byte_ns);
    // A period that is off by a little drifts over the trace; the guard has that in it.
    EXPECT_LE(outside, 4);
  }
}

TEST(TrafficWindows, RefusesWithTheFigures) {
  const auto message = [](const std::vector<TracedCollective>& trace, int64_t error_ns = 0) {
    const Result<TrafficWindows> windows = EstimateWindows(trace, error_ns);
    return windows ? std::string("accepted") : windows.error().message;
  };
  EXPECT_THAT(message({}), HasSubstr("0 bursts in the trace, wanted at least 3"));
  EXPECT_THAT(message(Regular(2)), HasSubstr("2 bursts"));
  EXPECT_THAT(message(Regular(9), -1), HasSubstr("clocks of -1 ns"));
  EXPECT_THAT(message(Regular(9), 35 * kMs), HasSubstr("leave others 8000000 ns, less than 10 %"));
  EXPECT_THAT(message({{5, 4}}), HasSubstr("collective 0 of the trace ends before it begins"));
  EXPECT_THAT(message({{5, 6}, {4, 7}}), HasSubstr("collective 1 of the trace begins before"));
  std::vector<TracedCollective> wild;
  int64_t at = 0;
  for (int64_t j = 0; j < 20; ++j) {
    wild.push_back({at, at + kMs});
    at += (j % 3 == 0 ? 50 : j % 3 == 1 ? 100 : 200) * kMs;
  }
  EXPECT_THAT(message(wild), HasSubstr("more than 5 %"));
}

// By hand: bursts of 3 ms that begin 20, 21, 20, 21, ... ms after each other. A tenant that runs freely drifts; one
// that is held to windows of 21 ms is ready in time each time.
TEST(KeptWindowsTest, AreAsLongAsNearlyAllPeriodsAndDoNotDrift) {
  std::vector<TracedCollective> trace;
  int64_t at = 5 * kMs;
  for (int64_t j = 0; j < 20; ++j) {
    trace.push_back({at, at + 3 * kMs});
    at += (20 + j % 2) * kMs;
  }
  const auto kept = EstimateKeptWindows(trace, 50'000);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->period_ns, 21 * kMs);
  EXPECT_EQ(kept->length_ns, 3 * kMs);
  EXPECT_EQ(kept->guard_ns, 50'000);
  EXPECT_EQ(kept->phase_ns, trace.back().first_byte_ns % (21 * kMs));
  EXPECT_EQ(kept->victims_ns(), 18 * kMs - 100'000);
  const auto free = EstimateWindows(trace, 50'000);
  EXPECT_TRUE(!free || free->guard_ns > 2 * kMs);
  EXPECT_FALSE(EstimateKeptWindows(std::span(trace).first(2), 0));
  EXPECT_FALSE(EstimateKeptWindows(trace, -1));
  EXPECT_FALSE(EstimateKeptWindows(trace, 8 * kMs));  // nothing left for others
}

}  // namespace
}  // namespace tutti
