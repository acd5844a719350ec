#include "tutti/tune/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tutti::tune {
namespace {

using testing::HasSubstr;

TEST(CalibrationTest, LinesAreFittedByRelativeErrorAndStayPositive) {
  const Line exact = FitLine({{1, 3}, {2, 5}, {100, 201}});
  EXPECT_NEAR(exact.intercept, 1, 1e-9);
  EXPECT_NEAR(exact.slope, 2, 1e-9);
  // Two points at the same place, one point, a falling line, a line through less than nothing.
  EXPECT_EQ(FitLine({{4, 7}, {4, 7}}).intercept, 7);
  EXPECT_EQ(FitLine({{4, 7}}).slope, 0);
  EXPECT_EQ(FitLine({{1, 2}, {2, 1}}).slope, 0);
  const Line steep = FitLine({{1, 1}, {2, 4}});
  EXPECT_EQ(steep.intercept, 0);
  EXPECT_GT(steep.slope, 1);
  EXPECT_LT(steep.slope, 2);
}

// Times as the model says them, so that fitting must find the model again.
std::vector<Sample> SamplesOf(const CostModel& model, double senders, bool two_nodes) {
  std::vector<Sample> samples;
  const double message = model.send_s + model.receive_s;
  for (const bool between : {false, true}) {
    if (between && !two_nodes) continue;
    const PathCost& path = between ? model.between : model.inside;
    const double per_byte = std::max(path.flow_s_per_byte, senders * path.node_s_per_byte);
    for (const double bytes : {1.0, 1024.0, 8192.0, 32768.0, 65536.0}) {
      const double eager = bytes <= model.eager_bytes ? model.eager_s_per_byte * bytes : 0;
      samples.push_back({Sample::Kind::kPair, between, 1, bytes,
                         path.latency_s + message + eager + path.flow_s_per_byte * bytes});
      samples.push_back({Sample::Kind::kAll, between, senders, bytes,
                         path.latency_s + message + eager + per_byte * bytes});
    }
    for (const double messages : {1.0, 8.0, 64.0}) {
      samples.push_back(
          {Sample::Kind::kBurst, between, senders, messages, path.latency_s + messages * message});
    }
  }
  for (const double bytes : {16.0, 4096.0}) {
    samples.push_back(
        {Sample::Kind::kCopy, false, 1, bytes, model.copy_s + model.copy_s_per_byte * bytes});
  }
  return samples;
}

void ExpectSame(const CostModel& a, const CostModel& b) {
  const auto near = [](double x, double y) { EXPECT_NEAR(x, y, 1e-6 * y); };
  for (const auto path : {&CostModel::inside, &CostModel::between}) {
    near((a.*path).latency_s, (b.*path).latency_s);
    near((a.*path).flow_s_per_byte, (b.*path).flow_s_per_byte);
    near((a.*path).node_s_per_byte, (b.*path).node_s_per_byte);
  }
  near(a.send_s + a.receive_s, b.send_s + b.receive_s);
  near(a.copy_s, b.copy_s);
  near(a.copy_s_per_byte, b.copy_s_per_byte);
  EXPECT_EQ(a.eager_bytes, b.eager_bytes);
  near(a.eager_s_per_byte, b.eager_s_per_byte);
}

TEST(CalibrationTest, AModelIsFoundAgainFromItsOwnTimes) {
  CostModel model = DefaultModel(Library::kMpich);
  model.inside.node_s_per_byte = model.inside.flow_s_per_byte / 4;
  model.between.flow_s_per_byte = model.inside.flow_s_per_byte;
  model.eager_bytes = 16384;
  model.eager_s_per_byte = 7e-10;
  const Result<CostModel> fitted = FitModel(Library::kMpich, SamplesOf(model, 16, true));
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_EQ(fitted->library, Library::kMpich);
  ExpectSame(*fitted, model);
  EXPECT_EQ(fitted->inside.origin, Origin::kMeasured);
  EXPECT_EQ(fitted->between.origin, Origin::kMeasured);
}

// On one node nothing is known of the way between two: it was once taken to be as the way inside.
TEST(CalibrationTest, WhatWasNotMeasuredIsAssumedAndSaysSo) {
  CostModel model = DefaultModel(Library::kMpich);
  model.inside = {.latency_s = 9e-6, .flow_s_per_byte = 7e-10, .node_s_per_byte = 7e-11};
  model.between = {.latency_s = 8e-6, .flow_s_per_byte = 6e-10, .node_s_per_byte = 6e-10};
  const std::vector<Sample> all = SamplesOf(model, 16, true);
  const PathCost CostModel::*paths[] = {&CostModel::inside, &CostModel::between};
  for (const bool only_between : {false, true}) {
    std::vector<Sample> one;
    for (const Sample& sample : all) {
      if (sample.kind == Sample::Kind::kCopy || sample.between == only_between) {
        one.push_back(sample);
      }
    }
    const CostModel fitted = FitModel(Library::kMpich, one).value();
    const auto measured = paths[only_between ? 1 : 0], assumed = paths[only_between ? 0 : 1];
    EXPECT_EQ((fitted.*measured).origin, Origin::kMeasured);
    EXPECT_NEAR((fitted.*measured).latency_s, (model.*measured).latency_s, 1e-12);
    EXPECT_EQ(fitted.*assumed, DefaultModel(Library::kMpich).*assumed);
    EXPECT_EQ((fitted.*assumed).origin, Origin::kAssumed);
  }
  const CostModel crowded = FitModel(Library::kMpich, SamplesOf(model, 16, false), true).value();
  EXPECT_EQ(crowded.inside.origin, Origin::kCrowded);
  EXPECT_EQ(crowded.between.origin, Origin::kAssumed);
}

TEST(CalibrationTest, MissingKindsAreNamed) {
  const std::vector<Sample> all = SamplesOf(DefaultModel(Library::kSmpi), 4, true);
  for (const auto& [kind, named] : {std::pair{Sample::Kind::kAll, "pair and all"},
                                    {Sample::Kind::kPair, "pair and all"},
                                    {Sample::Kind::kBurst, "burst"},
                                    {Sample::Kind::kCopy, "copy"}}) {
    std::vector<Sample> rest;
    for (const Sample& sample : all) {
      if (sample.kind != kind) rest.push_back(sample);
    }
    const Result<CostModel> model = FitModel(Library::kSmpi, rest);
    ASSERT_FALSE(model);
    EXPECT_THAT(model.error().message, HasSubstr(named));
  }
}

TEST(CalibrationTest, SamplesAreReadAmongOtherLines) {
  const Result<std::vector<Sample>> samples = ParseSamples(
      "some words\ntutti-sample all between 8 1024 3.5e-06\ntutti-sample copy - 1 64 1e-8");
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ(samples->front().kind, Sample::Kind::kAll);
  EXPECT_TRUE(samples->front().between);
  EXPECT_EQ(samples->front().senders, 8);
  EXPECT_EQ(samples->front().x, 1024);
  EXPECT_EQ(samples->front().seconds, 3.5e-6);
  EXPECT_EQ(samples->back().kind, Sample::Kind::kCopy);
}

TEST(CalibrationTest, EveryFaultNamesItsLine) {
  for (const std::string line :
       {"tutti-sample ", "tutti-sample all", "tutti-sample most inside 1 1 1",
        "tutti-sample all outside 1 1 1", "tutti-sample copy inside 1 1 1",
        "tutti-sample all - 1 1 1", "tutti-sample all inside 0 1 1",
        "tutti-sample all inside 1 -1 1", "tutti-sample all inside 1 1 nan",
        "tutti-sample all inside 1 1 1x", "tutti-sample all inside 1 1 1 1",
        "tutti-sample all inside 1 1e16 1"}) {
    const auto samples = ParseSamples("\n" + line + "\n");
    ASSERT_FALSE(samples) << line;
    EXPECT_EQ(samples.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(samples.error().message, HasSubstr("line 2: not a sample: "));
  }
}

}  // namespace
}  // namespace tutti::tune
