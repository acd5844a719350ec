#include "tutti/runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "hand_plans.h"
#include "run.h"
#include "support/shared_memory.h"
#include "support/text.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr DataType kAllTypes[] = {DataType::kFloat32,  DataType::kFloat64, DataType::kFloat16,
                                  DataType::kBfloat16, DataType::kInt32,   DataType::kInt64,
                                  DataType::kUint8};
constexpr ReduceOp kAllOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                ReduceOp::kAvg};

RunOptions Quick(int64_t size_bytes) {
  RunOptions options;
  options.size_bytes = size_bytes;
  options.warmup = 0;
  options.iterations = 2;
  return options;
}

// Small pieces, so that small buffers are worked on in many tiles too.
RunMode Tiled(int64_t piece_bytes) {
  RunMode mode;
  mode.tuning.piece_bytes = piece_bytes;
  return mode;
}

void ExpectRight(const Plan& plan, const RunOptions& options, const RunMode& mode = {}) {
  const Result<RunReport> report = RunPlanAs(plan, options, mode);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->wrong, 0);
}

void ExpectError(const Plan& plan, const RunOptions& options, ErrorCode code,
                 const std::string& message) {
  const Result<RunReport> report = RunPlan(plan, options);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, code);
  EXPECT_THAT(report.error().message, HasSubstr(message));
}

void ExpectNoChildren() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// --- Worked examples ----------------------------------------------------------------------------

TEST(ExecutorTest, TwoRanksExchangeABufferInPlace) {
  // Each rank overwrites what the other one still has to read: one of the two has to save it.
  for (const int64_t size : {4, 4096, 1 << 20})
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(size);
      RunOptions options = Quick(size);
      options.in_place = in_place;
      ExpectRight(ExchangeAllReduce(2), options);
    }
}

TEST(ExecutorTest, RecursiveDoublingOverSixteenRanks) {
  ExpectRight(ExchangeAllReduce(16), Quick(100'000));
}

TEST(ExecutorTest, RingAllGatherOverAnyNumberOfRanks) {
  for (const int32_t n : {1, 2, 3, 8, 16})
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(n);
      RunOptions options = Quick(30'011);
      options.in_place = in_place;
      ExpectRight(RingAllGather(n), options);
      ExpectRight(RingAllGather(n), options, Tiled(100));
    }
}

TEST(ExecutorTest, UnitsMayHaveDifferentLengths) {
  for (const int64_t shard : {1, 2, 3, 4, 10'001})
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(shard);
      RunOptions options = Quick(8 * shard);
      options.type = DataType::kUint8;
      options.in_place = in_place;
      ExpectRight(DoublingAllGather(8), options);
      ExpectRight(DoublingAllGather(8), options, Tiled(64));
    }
}

TEST(ExecutorTest, RingAllReduceInEveryTypeAndOperation) {
  const Plan plan = RingAllReduce(4);
  for (const DataType type : kAllTypes)
    for (const ReduceOp op : kAllOps)
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(std::string(Name(type)) + " " + std::string(Name(op)));
        RunOptions options = Quick(40'000);
        options.type = type;
        options.op = op;
        options.in_place = in_place;
        ExpectRight(plan, options, Tiled(512));
      }
}

TEST(ExecutorTest, SizesAreRoundedDownToWholeElementsAShard) {
  RunOptions options = Quick(103);
  const RunReport odd = RunPlan(RingAllReduce(3), options).value();
  EXPECT_EQ(odd.size_bytes, 96);  // 8 floats a shard
  EXPECT_EQ(odd.count, 24);
  options.size_bytes = 0;
  const RunReport least = RunPlan(RingAllGather(3), options).value();
  EXPECT_EQ(least.size_bytes, 12);
  EXPECT_EQ(least.count, 1);  // nccl-tests counts a shard of an all-gather
  EXPECT_EQ(least.wrong, 0);
}

TEST(ExecutorTest, BandwidthsAreOfTheTimeMeasured) {
  const RunReport report = RunPlan(RingAllReduce(4), Quick(4096)).value();
  EXPECT_GT(report.time_s, 0);
  EXPECT_DOUBLE_EQ(report.algbw, 4096 / report.time_s);
  EXPECT_DOUBLE_EQ(report.busbw, report.algbw * 1.5);
}

TEST(ExecutorTest, WithoutACheckNothingIsCalledRight) {
  RunOptions options = Quick(4096);
  options.check = false;
  EXPECT_EQ(RunPlan(RingAllReduce(2), options)->wrong, -1);
}

TEST(ExecutorTest, RanksMayBeThreads) {
  RunMode mode = Tiled(256);
  mode.in_threads = true;
  RunOptions options = Quick(20'000);
  options.iterations = 5;
  for (const bool in_place : {false, true}) {
    options.in_place = in_place;
    ExpectRight(RingAllReduce(5), options, mode);
    ExpectRight(RingAllGather(5), options, mode);
    ExpectRight(ExchangeAllReduce(4), options, mode);
  }
}

// --- The check finds what is wrong
// -----------------------------------------------------------------

TEST(ExecutorTest, AWrongPlanHasWrongElements) {
  Plan lost = RingAllReduce(2);  // the reduction at rank 0 becomes a copy of what arrives
  lost.ranks[0].streams[1].instructions[0].op = OpCode::kRecv;
  EXPECT_GT(RunPlan(lost, Quick(8000))->wrong, 0);

  Plan untouched = RingAllGather(2);  // the own shard is never copied to the output
  untouched.ranks[1].streams[0].instructions.erase(
      untouched.ranks[1].streams[0].instructions.begin());
  untouched.ranks[1].streams[0].instructions[0].src = In(0);
  EXPECT_EQ(RunPlan(untouched, Quick(8000))->wrong, 1000);

  Plan misplaced = RingAllGather(3);
  std::swap(misplaced.ranks[2].streams[0].instructions[2].dst,
            misplaced.ranks[2].streams[0].instructions[4].dst);
  EXPECT_GT(RunPlan(misplaced, Quick(12'000))->wrong, 0);
}

TEST(ExecutorTest, AChangedInputIsWrongOutOfPlace) {
  Plan plan = RingAllGather(2);
  plan.ranks[0].streams[0].instructions.push_back(Copy(In(0), Out(1)));
  const RunReport report = RunPlan(plan, Quick(8000)).value();
  EXPECT_GE(report.wrong, 990);  // some of 1000 random elements may agree by chance
}

// --- Faults -------------------------------------------------------------------------------------

TEST(ExecutorTest, ADeadRankIsNamedAndNothingStaysBehind) {
  const std::set<std::string> before = SharedMemoryNames();
  for (const int64_t at : {0, 3, 9}) {
    SCOPED_TRACE(at);
    const RunMode mode{.death = {.rank = 2, .at_instruction = at}};
    const Result<RunReport> report = RunPlanAs(RingAllReduce(4), Quick(1 << 16), mode);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kPeerFailed);
    EXPECT_THAT(report.error().message, testing::HasSubstr("rank 2 was killed by signal 9"));
    ExpectNoChildren();
  }
  EXPECT_THAT(LeftInSharedMemory(before), testing::IsEmpty());
}

TEST(ExecutorTest, ARunThatWaitsForEverSaysWhereEachRankIs) {
  Plan plan = RingAllReduce(2);  // both first sends wait for their own last receive
  for (RankPlan& rank : plan.ranks) rank.streams[0].instructions[0].after = {{1, 1}};
  RunOptions options = Quick(64);
  options.hang_timeout_s = 2;  // enough for the ranks to begin
  ExpectError(plan, options, ErrorCode::kPeerFailed,
              "rank 0 waits at stream 0 instruction 0 (send to rank 1), stream 1 instruction 0 "
              "(receive from rank 1); rank 1 waits");
  ExpectNoChildren();
}

// How many processes that `parent` started are set up as ranks: they ignore interrupts from then on.
int RanksOf(pid_t parent) {
  int ranks = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    std::ifstream status(entry.path() / "status");
    pid_t started_by = 0;
    uint64_t ignored = 0;
    for (std::string word; status >> word;) {
      if (word == "PPid:") status >> started_by;
      if (word == "SigIgn:") status >> std::hex >> ignored;
    }
    if (started_by == parent && (ignored >> (SIGHUP - 1) & 1) != 0) ++ranks;
  }
  return ranks;
}

TEST(ExecutorTest, RanksDieWithTheProcessThatStartedThem) {
  // Orphans become children of this process, which can then count them.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    RunOptions options = Quick(1 << 20);
    options.iterations = 100'000'000;
    options.check = false;
    std::thread tell([&ready] {
      while (RanksOf(getpid()) < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      (void)!write(ready[1], "x", 1);
    });
    (void)RunPlan(RingAllReduce(3), options);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  int killed = 0, status = 0;
  for (int tries = 0; tries < 6000; ++tries) {
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0) break;
    if (ended > 0) killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(killed, 4);  // three ranks and their parent
  ExpectNoChildren();
  close(ready[0]);
  close(ready[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ExecutorTest, CancelEndsTheRun) {
  RunOptions options = Quick(1 << 20);
  options.iterations = 1'000'000;
  std::thread cancel([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    RequestCancel();
  });
  const Result<RunReport> report = RunPlan(RingAllReduce(3), options);
  cancel.join();
  ResetCancel();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  ExpectNoChildren();
}

TEST(ExecutorTest, BuffersThatDoNotFitAreRefusedWithFigures) {
  ExpectError(RingAllReduce(2), Quick(int64_t{1} << 50), ErrorCode::kResourceExhausted,
              "bytes of memory, ");
  ExpectError(RingAllReduce(2), Quick(INT64_MAX), ErrorCode::kResourceExhausted, "2^62");
}

struct BadPlan {
  const char* name;
  void (*spoil)(Plan&);
  const char* message;
};
class ExecutorRejects : public testing::TestWithParam<BadPlan> {};

TEST_P(ExecutorRejects, NamesTheFault) {
  Plan plan = RingAllReduce(3);
  GetParam().spoil(plan);
  ExpectError(plan, Quick(1000), ErrorCode::kInvalidArgument, GetParam().message);
}

Stream& StreamAt(Plan& plan, size_t rank, size_t stream) {
  return plan.ranks[rank].streams[stream];
}

INSTANTIATE_TEST_SUITE_P(
    All, ExecutorRejects,
    testing::Values(
        BadPlan{"RankMissing", [](Plan& plan) { plan.ranks.pop_back(); },
                "instructions for 2 ranks, its collective 3"},
        BadPlan{"SlotsMissing", [](Plan& plan) { plan.ranks[1].output_slots = 2; },
                "rank 1: all-reduce gives it 3 input and 3 output slots, the plan 3 and 2"},
        BadPlan{"PeerOutside", [](Plan& plan) { StreamAt(plan, 0, 0).send_peer = 3; },
                "rank 0 stream 0 sends to rank 3"},
        BadPlan{"PeerIsSelf", [](Plan& plan) { StreamAt(plan, 2, 1).recv_peer = 2; },
                "rank 2 stream 1 receives from rank 2"},
        BadPlan{"SendWithoutPeer", [](Plan& plan) { StreamAt(plan, 0, 0).send_peer = -1; },
                "rank 0 stream 0 instruction 0: a send in a stream without a peer"},
        BadPlan{"TwoStreamsOnOneEnd", [](Plan& plan) { StreamAt(plan, 0, 1).send_peer = 1; },
                "rank 0: streams 0 and 1 both send to rank 1 on channel 0"},
        BadPlan{"OutOfBuffer",
                [](Plan& plan) { StreamAt(plan, 1, 0).instructions[0].src.offset = 3; },
                "rank 1 stream 0 instruction 0: units 3 to 4 are outside a buffer of 3 units"},
        BadPlan{"NegativeCount",
                [](Plan& plan) { StreamAt(plan, 1, 0).instructions[0].count = -1; },
                "count is negative"},
        BadPlan{"CountsDiffer", [](Plan& plan) { StreamAt(plan, 1, 0).instructions[1].count = 0; },
                "connection 1 -> 2 channel 0: message 1 is sent with 0 units, received with 1"},
        BadPlan{"MessageMissing", [](Plan& plan) { StreamAt(plan, 1, 0).instructions.pop_back(); },
                "connection 1 -> 2 channel 0: 3 messages are sent and 4 received"},
        BadPlan{"DependencyMissing",
                [](Plan& plan) {
                  StreamAt(plan, 0, 0).instructions[1].after = {{1, 4}};
                },
                "rank 0 stream 0 instruction 1: it waits for stream 1 instruction 4"},
        BadPlan{"OtherUnitOfTheShard",
                [](Plan& plan) {
                  plan.units_per_shard = 2;
                  StreamAt(plan, 0, 0).instructions[0].src.offset = 1;
                },
                "rank 1 stream 1 instruction 0: one side starts at unit 1 of a shard, the other at "
                "unit 0"},
        BadPlan{"NoUnits", [](Plan& plan) { plan.units_per_shard = 0; }, "a shard has 0 units"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(ExecutorTest, RejectsWrongOptions) {
  RunOptions options = Quick(-1);
  ExpectError(RingAllReduce(2), options, ErrorCode::kInvalidArgument, "size is negative: -1");
  options = Quick(1);
  options.iterations = 0;
  ExpectError(RingAllReduce(2), options, ErrorCode::kInvalidArgument, "iterations");
}

// --- Traces
// -----------------------------------------------------------------------------------------

TEST(ExecutorTest, TheTraceHasEveryInstructionOfTheLastIteration) {
  const Plan plan = RingAllReduce(3);
  RunOptions options = Quick(3000);
  options.record_trace = true;
  const RunReport report = RunPlan(plan, options).value();
  EXPECT_EQ(report.trace.size(), 3u * 8u);
  for (const RunEvent& event : report.trace) {
    EXPECT_GE(event.start_s, 0);
    EXPECT_LE(event.start_s, event.end_s);
  }
  const auto json = nlohmann::json::parse(ToChromeTrace(plan, report));
  size_t names = 0, spans = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "M") ++names;
    if (event.at("ph") != "X") continue;
    const RunEvent& recorded = report.trace[spans++];
    EXPECT_EQ(event.at("pid"), recorded.rank);
    EXPECT_EQ(event.at("tid"), recorded.stream);
    EXPECT_EQ(event.at("args").at("instruction"), recorded.instruction);
    EXPECT_DOUBLE_EQ(event.at("ts"), recorded.start_s * 1e6);
  }
  EXPECT_EQ(names, 3u * (1 + 2));  // a process a rank, a thread a stream
  EXPECT_EQ(spans, report.trace.size());

  const Result<RunReport> read = FromChromeTrace(ToChromeTrace(plan, report), plan);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->size_bytes, report.size_bytes);
  ASSERT_EQ(read->trace.size(), report.trace.size());
  double end_s = 0;
  for (size_t i = 0; i < read->trace.size(); ++i) {
    const RunEvent &got = read->trace[i], &written = report.trace[i];
    EXPECT_EQ(std::tuple(got.rank, got.stream, got.instruction),
              std::tuple(written.rank, written.stream, written.instruction));
    EXPECT_NEAR(got.start_s, written.start_s, 1e-12);
    EXPECT_NEAR(got.end_s, written.end_s, 1e-12);
    end_s = std::max(end_s, got.end_s);
  }
  EXPECT_EQ(read->time_s, end_s);
}

TEST(ExecutorTest, TracesOfAnythingElseAreRefused) {
  const Plan plan = RingAllReduce(2);
  const std::string header = R"("otherData":{"executed":"all-reduce","algorithm":")" +
                             plan.algorithm + R"(","size_bytes":8})";
  const auto with = [&header](const std::string& event) {
    return R"({"traceEvents":[)" + event + "]," + header + "}";
  };
  const int32_t step = plan.ranks[0].streams[0].instructions[0].step;
  const std::string good =
      R"({"ph":"X","pid":0,"tid":0,"ts":1,"dur":2,"args":{"instruction":0,"step":)" +
      std::to_string(step) + "}}";
  const Result<RunReport> read = FromChromeTrace(with(good), plan);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->trace.size(), 1u);
  EXPECT_DOUBLE_EQ(read->time_s, 3e-6);

  const auto changed = [&](const std::string& from, const std::string& to) {
    return with(test_support::Replaced(good, from, to));
  };
  const std::pair<std::string, std::string> bad[] = {
      {"", "no JSON of a trace"},
      {with(good).substr(0, 40), "no JSON of a trace"},
      {R"({"traceEvents":{}})", "no JSON of a trace"},
      {R"({"traceEvents":[]})", "no trace of an execution"},
      {R"({"traceEvents":[],"otherData":{"executed":"broadcast"}})", "another schedule"},
      {R"({"traceEvents":[],"otherData":{"executed":"all-reduce","algorithm":"x"}})",
       "another schedule"},
      {test_support::Replaced(with(good), "\"size_bytes\":8", "\"size_bytes\":0.5"), "size_bytes"},
      {changed("\"pid\":0", "\"pid\":2"), "event 1 is of no instruction"},
      {changed("\"pid\":0", "\"pid\":-1"), "event 1 is of no instruction"},
      {changed("\"tid\":0", "\"tid\":\"0\""), "event 1 is of no instruction"},
      {changed("\"instruction\":0", "\"instruction\":999"), "event 1 is of no instruction"},
      {changed("\"ts\":1", "\"ts\":-1"), "event 1 is of no instruction"},
      {changed("\"dur\":2", "\"dur\":1e13"), "event 1 is of no instruction"},
      {changed("\"args\"", "\"arguments\""), "event 1 is of no instruction"},
  };
  for (const auto& [text, message] : bad) {
    const Result<RunReport> refused = FromChromeTrace(text, plan);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_THAT(refused.error().message, testing::HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace tutti
