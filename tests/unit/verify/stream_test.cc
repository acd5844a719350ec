// The judge of files too large for memory agrees with the one in memory: on correct schedules, on
// every mutant, and on random ones.
#include "tutti/verify/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <set>

#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/random.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "unit/verify/hand_schedules.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Kind = ViolationKind;

constexpr int64_t kAnyMemory = std::numeric_limits<int64_t>::max();

// Hands a schedule out in small blocks, without a file.
class PiecesReader : public ScheduleReader {
 public:
  PiecesReader(const Topology& topology, Schedule schedule, size_t piece)
      : topology_(topology), header_(std::move(schedule)), piece_(piece) {
    transfers_ = std::exchange(header_.transfers, {});
  }
  const Topology& topology() const override { return topology_; }
  const Schedule& header() const override { return header_; }
  uint64_t num_transfers() const override { return transfers_.size(); }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>&) override {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const size_t end = std::min(at_ + piece_, transfers_.size());
    transfers.assign(transfers_.begin() + static_cast<std::ptrdiff_t>(at_),
                     transfers_.begin() + static_cast<std::ptrdiff_t>(end));
    at_ = end;
    return !transfers.empty();
  }

 private:
  const Topology& topology_;
  Schedule header_;
  std::vector<Transfer> transfers_;
  size_t piece_, at_ = 0;
};

VerifyReport Stream(const Topology& topology, const Schedule& schedule, size_t piece = 3) {
  PiecesReader reader(topology, schedule, piece);
  const Result<VerifyReport> report = VerifyStream(reader, {1000}, kAnyMemory);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return *report;
}

// The same faults; messages begin alike.
VerifyReport Agree(const Topology& topology, const Schedule& schedule, size_t piece = 3) {
  const VerifyReport whole = Verify(topology, schedule.collective, schedule, {1000});
  VerifyReport streamed = Stream(topology, schedule, piece);
  EXPECT_EQ(streamed.num_violations, whole.num_violations);
  EXPECT_EQ(streamed.deliveries, whole.deliveries);
  EXPECT_EQ(streamed.violations.size(), whole.violations.size());
  for (size_t i = 0; i < std::min(streamed.violations.size(), whole.violations.size()); ++i) {
    const Violation &ours = streamed.violations[i], &theirs = whole.violations[i];
    EXPECT_EQ(ours.kind, theirs.kind);
    EXPECT_EQ(ours.transfer, theirs.transfer);
    EXPECT_EQ(ours.message, theirs.message.substr(0, ours.message.size()));
  }
  return streamed;
}

std::vector<std::pair<Topology, Schedule>> StreamSubjects() {
  std::vector<std::pair<Topology, Schedule>> subjects;
  const Topology ring = hand::Ring(6, true), six = hand::Complete(6), four = hand::Complete(4);
  subjects.emplace_back(ring, hand::RingAllGather(ring, true));
  subjects.emplace_back(six, hand::BinomialBroadcast(six));
  subjects.emplace_back(four, hand::RelayedAllToAll(four));
  return subjects;
}

TEST(VerifyStreamTest, AcceptsHandMadeSchedules) {
  for (const auto& [topology, schedule] : StreamSubjects())
    for (size_t piece : {size_t{1}, size_t{5}, size_t{1000}})
      EXPECT_TRUE(Agree(topology, schedule, piece).verified());
}

// Each transfer dropped, doubled, sent a step earlier or later, over the next link, with the next
// shard, with another part, and with the other operation.
TEST(VerifyStreamTest, FindsEverySingleFaultAsTheJudgeInMemoryDoes) {
  std::set<Kind> seen;
  int mutants = 0;
  for (const auto& [topology, schedule] : StreamSubjects()) {
    for (size_t i = 0; i < schedule.transfers.size(); ++i) {
      for (int fault = 0; fault < 8; ++fault) {
        Schedule bad = schedule;
        Transfer& transfer = bad.transfers[i];
        switch (fault) {
          case 0:
            bad.transfers.erase(bad.transfers.begin() + static_cast<std::ptrdiff_t>(i));
            break;
          case 1:
            bad.transfers.push_back(Transfer(transfer));
            break;
          case 2:
            transfer.step = std::max(0, transfer.step - 1);
            break;
          case 3:
            transfer.step = std::min(bad.num_steps - 1, transfer.step + 1);
            break;
          case 4:
            transfer.link = LinkId{(transfer.link.value + 1) % topology.num_links()};
            break;
          case 5:
            transfer.shard = ShardId{(transfer.shard.value + 1) % bad.collective.num_shards()};
            break;
          case 6:
            if (transfer.units() > 1)
              ++transfer.begin;
            else if (transfer.begin > 0)
              --transfer.begin;
            break;
          default:
            transfer.op = TransferOp::kReduce;
        }
        SortBySteps(bad);
        SCOPED_TRACE(testing::Message() << "transfer " << i << ", fault " << fault);
        for (const Violation& violation : Agree(topology, bad).violations)
          seen.insert(violation.kind);
        ++mutants;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(mutants, 500);
  EXPECT_EQ(seen, (std::set<Kind>{Kind::kStructure, Kind::kNotHeld, Kind::kRedundantDelivery,
                                  Kind::kPostcondition}));
}

TEST(VerifyStreamProperty, AgreesOnRandomSchedules) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const auto below = [&random](int32_t bound) {
      return static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound)));
    };
    const Topology topology = seed % 3 == 0   ? hand::Star(2 + below(3))
                              : seed % 3 == 1 ? hand::Ring(2 + below(3), below(2) == 0)
                                              : hand::Complete(2 + below(3));
    constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kBroadcast,
                                         CollectiveKind::kGather, CollectiveKind::kScatter};
    Schedule schedule =
        hand::Empty(topology, hand::MustMake(kKinds[random.Below(4)], topology.num_ranks()),
                    1 + below(4), 1 + below(4));
    for (int32_t count = below(10); count > 0; --count) {
      Transfer transfer;
      transfer.shard = ShardId{below(schedule.collective.num_shards())};
      transfer.link = LinkId{below(topology.num_links())};
      transfer.begin = below(schedule.units_per_shard);
      transfer.end = transfer.begin + 1 + below(schedule.units_per_shard - transfer.begin);
      transfer.step = below(schedule.num_steps);
      schedule.transfers.push_back(transfer);
    }
    SortBySteps(schedule);
    SCOPED_TRACE(seed);
    accepted += Agree(topology, schedule, 1 + static_cast<size_t>(below(6))).verified() ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 5);
}

// Steps of more transfers than are kept, and enough for several threads.
TEST(VerifyStreamTest, LargeStepsOnAnyNumberOfThreads) {
  const Topology topology = hand::Complete(40);
  Schedule schedule = hand::Empty(
      topology, hand::MustMake(CollectiveKind::kAllGather, topology.num_ranks()), 2, 700);
  for (LinkId link : topology.Links())
    for (int32_t unit = 0; unit < 700; ++unit)
      schedule.transfers.push_back(
          {ShardId{topology.tail(link).value}, link, unit, unit + 1, 0, TransferOp::kCopy});
  ASSERT_GT(schedule.transfers.size(), size_t{1} << 20);
  EXPECT_TRUE(Agree(topology, schedule, 1 << 16).verified());
  // Sent on in the step in which it came, long after it was delivered, and a second time.
  Transfer early = schedule.transfers.front();
  early.link = hand::FindLink(topology, topology.head(early.link).value, 39);
  ASSERT_GE(early.link.value, 0);
  schedule.transfers.push_back(early);
  Agree(topology, schedule, 1 << 16);
  std::vector<std::string> messages;
  for (int threads : {1, 2, 5}) {
    SetNumThreads(threads);
    const VerifyReport report = Stream(topology, schedule, 1 << 16);
    ASSERT_EQ(report.num_violations, 2);
    messages.push_back(report.violations[0].message + report.violations[1].message);
  }
  SetNumThreads(0);
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[0], messages[2]);
}

TEST(VerifyStreamTest, JudgesFiles) {
  const Topology topology = *ParseTopology("torus(5,5)");
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, 25);
  const Schedule schedule = *RunSynthesizer(**FindSynthesizer("bfb"), topology, collective, {});
  const std::string path =
      (fs::temp_directory_path() / ("tutti-stream-" + std::to_string(::getpid()) + ".sched"))
          .string();
  ASSERT_TRUE(WriteScheduleFile(path, topology, schedule).has_value());
  const auto reader = ScheduleReader::Open(path);
  ASSERT_TRUE(reader.has_value());
  const Result<VerifyReport> report = VerifyStream(**reader, {}, kAnyMemory);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->verified());
  EXPECT_EQ(report->deliveries, static_cast<int64_t>(schedule.transfers.size()));
  fs::remove(path);
}

TEST(VerifyStreamTest, WhatItCannotJudgeIsRefusedWithTheReason) {
  const Topology ring = hand::Ring(5, false);
  const auto refused = [&ring](const Schedule& schedule, int64_t memory) {
    PiecesReader reader(ring, schedule, 10);
    const Result<VerifyReport> report = VerifyStream(reader, {}, memory);
    return report ? std::string() : report.error().message;
  };
  EXPECT_THAT(refused(hand::RingReduceScatter(ring), kAnyMemory), HasSubstr("it reduces"));
  const Schedule gather = hand::RingAllGather(ring, false);
  EXPECT_THAT(refused(hand::Timed(ring, gather, 1000, LinkModel::kHeld), kAnyMemory),
              HasSubstr("it is timed"));
  EXPECT_THAT(refused(gather, 1 << 20),
              testing::AllOf(HasSubstr("needs 24.0 MiB of memory"), HasSubstr("1.0 MiB are")));
  Schedule other = gather;
  ++other.topology_fingerprint;
  const VerifyReport report = Stream(ring, other);
  ASSERT_EQ(report.num_violations, 1);
  EXPECT_EQ(report.violations[0].kind, Kind::kWrongTopology);
  RequestCancel();
  EXPECT_THAT(refused(gather, kAnyMemory), HasSubstr(CancelledError().message));
  ResetCancel();
}

}  // namespace
}  // namespace tutti
