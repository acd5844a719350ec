// Streamed schedules of `ten`: the same bytes as in memory, nothing left of a run that fails, and
// memory asked for before it is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>

#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/synth/ten.h"
#include "tutti/verify/stream.h"
#include "unit/synth/classic_support.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using classic_test::Algorithm;
using test_support::Parse;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kAnyMemory = std::numeric_limits<int64_t>::max();

class TenStreamTest : public testing::Test {
 protected:
  TenStreamTest() {
    std::string name = (fs::temp_directory_path() / "tutti-ten-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~TenStreamTest() override {
    ResetCancel();
    SetNumThreads(0);
    fs::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  bool IsEmpty() const { return fs::is_empty(folder_); }
  OpenSchedule Open(const Topology& topology, const std::string& name) const {
    return [&topology, path = Path(name)](const Schedule& header, int64_t num_transfers) {
      return ScheduleWriter::Open(path, topology, header, static_cast<uint64_t>(num_transfers));
    };
  }

  fs::path folder_;
};

Collective Of(CollectiveKind kind, const Topology& topology) {
  return *Collective::Make(kind, topology.num_ranks());
}

// Also where the bound is not reached, several variants are tried and some go by events.
TEST_F(TenStreamTest, FilesHoldTheBytesOfScheduleMadeInMemory) {
  int above_the_bound = 0;
  for (const char* name : {"ring(2)", "mesh(4,5)", "torus(4,4,4)", "without(mesh(6,6),links=9)",
                           "circulant(11,2,3)", "genkautz(2,11)", "mesh(16,17)"}) {
    const Topology topology = Parse(name);
    for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kBroadcast}) {
      const Collective collective = Of(kind, topology);
      for (int32_t tries : {1, 3, 7}) {
        SCOPED_TRACE(testing::Message() << name << ' ' << Name(kind) << ' ' << tries);
        const SynthOptions options{.chunks = 1 + tries % 3, .seed = 2, .tries = tries};
        const Result<Schedule> whole =
            RunSynthesizer(Algorithm("ten"), topology, collective, options);
        ASSERT_TRUE(whole.has_value());
        ASSERT_TRUE(WriteScheduleFile(Path("whole"), topology, *whole).has_value());
        for (int threads : {1, 3}) {
          SetNumThreads(threads);
          const Result<TenStreamed> streamed =
              StreamTen(topology, collective, options, Open(topology, "streamed"), kAnyMemory);
          ASSERT_TRUE(streamed.has_value()) << streamed.error().message;
          EXPECT_EQ(*ReadFile(Path("streamed")), *ReadFile(Path("whole")));
          EXPECT_EQ(streamed->header.num_steps, whole->num_steps);
          EXPECT_EQ(streamed->num_transfers, static_cast<int64_t>(whole->transfers.size()));
          const Result<TenStreamed> counted =
              StreamTen(topology, collective, options, {}, kAnyMemory);
          ASSERT_TRUE(counted.has_value());
          EXPECT_EQ(counted->header, streamed->header);
        }
        const auto reader = ScheduleReader::Open(Path("streamed"));
        ASSERT_TRUE(reader.has_value());
        const Result<VerifyReport> report = VerifyStream(**reader, {}, kAnyMemory);
        ASSERT_TRUE(report.has_value());
        EXPECT_TRUE(report->verified());
        const Result<Bounds> bounds = ComputeBounds(topology, collective);
        above_the_bound += whole->num_steps > bounds->steps ? 1 : 0;
      }
    }
  }
  EXPECT_GT(above_the_bound, 0);
}

TEST_F(TenStreamTest, AnInterruptedRunLeavesNoFile) {
  const Topology topology = Parse("mesh(12,12)");
  const Collective collective = Of(CollectiveKind::kAllGather, topology);
  RequestCancel();
  const Result<TenStreamed> before =
      StreamTen(topology, collective, {}, Open(topology, "x"), kAnyMemory);
  ASSERT_FALSE(before.has_value());
  EXPECT_EQ(before.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(IsEmpty());
  ResetCancel();

  // In the middle, by way of a writer.
  struct Interrupter : ScheduleWriter {
    std::unique_ptr<ScheduleWriter> writer;
    int calls = 0;
    Status Append(std::span<const Transfer> transfers, std::span<const int64_t> start_ps) override {
      if (++calls == 20) RequestCancel();
      return writer->Append(transfers, start_ps);
    }
    Status Finish() override { return writer->Finish(); }
  };
  const OpenSchedule open = [&](const Schedule& header,
                                int64_t) -> Result<std::unique_ptr<ScheduleWriter>> {
    auto interrupter = std::make_unique<Interrupter>();
    interrupter->writer = *Open(topology, "x")(header, 0);
    return interrupter;
  };
  const Result<TenStreamed> midway = StreamTen(topology, collective, {}, open, kAnyMemory);
  ASSERT_FALSE(midway.has_value());
  EXPECT_EQ(midway.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TenStreamTest, SaysHowMuchMemoryIsNeededBeforeItStarts) {
  const Topology topology = Parse("mesh(100,100)");
  const Collective collective = Of(CollectiveKind::kAllGather, topology);
  // 10,000 lists of 10,000 chunks of two bytes, a bit each, 64 bytes per link, 64 MiB for blocks.
  constexpr int64_t kNeeded = 100'000'000LL * 17 / 8 + 64 * 39'600 + (64 << 20);
  EXPECT_EQ(TenMemoryOf(topology, collective, {}).streamed_bytes, kNeeded);
  EXPECT_EQ(TenMemoryOf(topology, collective, {}).in_memory_bytes,
            kNeeded - (64 << 20) + 100'000'000LL * 32);
  const Result<TenStreamed> made =
      StreamTen(topology, collective, {}, Open(topology, "x"), kNeeded - 1);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(made.error().message, AllOf(HasSubstr("99990000 transfers needs 269.1 MiB of memory"),
                                          HasSubstr("269.1 MiB are available")));
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TenStreamTest, WhatDoesNotGoInRoundsIsRefusedWithTheReason) {
  const auto error = [&](const char* name, CollectiveKind kind, LinkModel model) {
    const Topology topology = Parse(name);
    const Result<TenStreamed> made =
        StreamTen(topology, Of(kind, topology), {.link_model = model}, {}, kAnyMemory);
    return made ? std::string() : made.error().message;
  };
  using Kind = CollectiveKind;
  EXPECT_THAT(error("ring(4)", Kind::kReduceScatter, LinkModel::kHeld),
              HasSubstr("reduce-scatter is made from a whole schedule, reversed"));
  EXPECT_THAT(error("ring(4)", Kind::kAllReduce, LinkModel::kHeld), HasSubstr("all-reduce"));
  EXPECT_THAT(error("ring(4)", Kind::kAllToAll, LinkModel::kHeld), HasSubstr("block by block"));
  EXPECT_THAT(error("mesh(2,3,bw=[10,20]GB/s)", Kind::kAllGather, LinkModel::kHeld),
              HasSubstr("only equal links"));
  EXPECT_THAT(error("ring(4)", Kind::kAllGather, LinkModel::kPipelined),
              HasSubstr("only equal links"));
  EXPECT_GT(AvailableMemoryBytes(), 1 << 20);
}

}  // namespace
}  // namespace tutti
