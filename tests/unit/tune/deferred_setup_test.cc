#include "tutti/tune/deferred_setup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "tutti/base/random.h"

namespace tutti::tune {
namespace {

struct Course {
  int64_t calls = 0;               // until it was over
  std::vector<int64_t> measured;   // which calls, the first is 1
  std::vector<int64_t> agreed_at;  // after so many calls
};

// `seconds_of` a call; `others` is what the other ranks spent beside what this one did.
Course CourseOf(DeferredSetup deferred, const std::function<double(int64_t)>& seconds_of,
                double others = 1) {
  Course course;
  while (true) {
    if (deferred.asks()) {
      course.agreed_at.push_back(course.calls);
      deferred.Decide(others * deferred.spent_s());
    }
    const int64_t call = course.calls + 1;
    if (!deferred.Passes()) {
      if (deferred.over()) return course;
      course.measured.push_back(call);
      deferred.Note(seconds_of(call));
    }
    course.calls = call;
  }
}

TEST(DeferredSetupTest, ByHand) {
  // 1 s a call, 40 wanted: 16 are not enough, and it will be 40 after 40 calls.
  const Course course = CourseOf(DeferredSetup(1000, 40), [](int64_t) { return 1; });
  EXPECT_EQ(course.measured, (std::vector<int64_t>{13, 14, 15, 16, 37, 38, 39, 40}));
  EXPECT_EQ(course.agreed_at, (std::vector<int64_t>{16, 40}));
  EXPECT_EQ(course.calls, 40);
}

TEST(DeferredSetupTest, ChecksComeAtTwiceToEightTimesAsManyCalls) {
  EXPECT_EQ(CourseOf(DeferredSetup(5000, 1e9), [](int64_t) { return 1; }).agreed_at,
            (std::vector<int64_t>{16, 128, 1024}));
  EXPECT_EQ(CourseOf(DeferredSetup(5000, 17), [](int64_t) { return 1; }).agreed_at,
            (std::vector<int64_t>{16, 32}));
}

TEST(DeferredSetupTest, FewCallsOrNoClockAreNotMeasured) {  // Q2
  for (const int64_t calls : {0, 1, 4, 16}) {
    const Course course = CourseOf(DeferredSetup(calls, 1e-9), [](int64_t) { return 1; });
    EXPECT_EQ(course.calls, calls);
    EXPECT_TRUE(course.measured.empty());
  }
  const Course course = CourseOf(DeferredSetup(500, std::numeric_limits<double>::infinity()),
                                 [](int64_t) { return 1; });
  EXPECT_EQ(course.calls, 500);
  EXPECT_TRUE(course.measured.empty());
  EXPECT_TRUE(DeferredSetup().over());
}

TEST(DeferredSetupTest, OneLongCallEndsNothing) {  // Q3
  for (const int64_t long_one : {13, 16}) {
    EXPECT_EQ(
        CourseOf(DeferredSetup(300, 400), [&](int64_t call) { return call == long_one ? 1e6 : 1; })
            .calls,
        300);
  }
}

TEST(DeferredSetupTest, WhatIsAgreedDecides) {  // Q1
  EXPECT_EQ(CourseOf(
                DeferredSetup(1000, 40), [](int64_t) { return 1; }, 3)
                .calls,
            16);
  EXPECT_EQ(CourseOf(
                DeferredSetup(1000, 40), [](int64_t) { return 1e6; }, 0)
                .calls,
            1000);
}

TEST(DeferredSetupProperty, ItEndsWithinTwiceWhatWasWantedOrWithTheCalls) {  // Q2
  Random random(7);
  for (int draw = 0; draw < 500; ++draw) {
    const auto calls = static_cast<int64_t>(random.Below(3000));
    const auto enough = static_cast<double>(1 + random.Below(3000));
    const Course course = CourseOf(DeferredSetup(calls, enough), [](int64_t) { return 1; });
    EXPECT_LE(course.calls, calls);
    if (course.calls < calls) {
      EXPECT_GE(static_cast<double>(course.calls), enough);
      EXPECT_LE(static_cast<double>(course.calls), std::max(2 * enough, 16.0));
    }
  }
}

}  // namespace
}  // namespace tutti::tune
