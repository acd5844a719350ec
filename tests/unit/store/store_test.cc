#include "tutti/store/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "bytes.h"
#include "support/text.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "unit/sched/sched_testing.h"

namespace tutti {
namespace {

using test_support::Replaced;

namespace fs = std::filesystem;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string name = (fs::temp_directory_path() / "tutti-store-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~StoreTest() override {
    ResetCancel();
    fs::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  size_t NumFiles() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

std::string Bytes(const Topology& topology, const Schedule& schedule) {
  return Must(ScheduleToBinary(topology, schedule));
}
Result<ScheduleFile> FromBytes(const std::string& bytes) {
  return ScheduleFromBinary(std::as_bytes(std::span(bytes)));
}

// What a binary file keeps: the order within one step or start is free.
Schedule Canonical(Schedule schedule) {
  std::vector<size_t> order(schedule.transfers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) {
    const Transfer& t = schedule.transfers[i];
    const int64_t time = schedule.start_ps.empty() ? t.step : schedule.start_ps[i];
    return std::make_tuple(time, t.link, t.shard, t.begin, t.end, t.op);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  Schedule result = schedule;
  for (size_t i = 0; i < order.size(); ++i) {
    result.transfers[i] = schedule.transfers[order[i]];
    if (!schedule.start_ps.empty()) result.start_ps[i] = schedule.start_ps[order[i]];
  }
  return result;
}

void ExpectError(const Status& status, ErrorCode code, const std::string& words) {
  ASSERT_FALSE(status.has_value()) << words;
  EXPECT_EQ(status.error().code, code) << status.error().message;
  EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
}
template <class T>
void ExpectError(const Result<T>& result, ErrorCode code, const std::string& words) {
  ExpectError(result ? Status() : Status(tl::unexpected(result.error())), code, words);
}

// --- Worked example

TEST(StoreJsonTest, FigureOneReadsAsPeopleWouldWriteIt) {
  const Topology topology = K22();
  const std::string text = ScheduleToJson(topology, K22AllGather(topology));
  for (
      const char* line :
      {"\"format\": \"tutti-schedule\",\n\"version\": 1,",
       "\"collective\": {\"kind\": \"all-gather\", \"ranks\": 4}", "\"steps\": 2,",
       "{\"step\": 0, \"shard\": 0, \"from\": 0, \"to\": 2, \"link\": 0, \"begin\": 0, \"end\": 2, "
       "\"op\": \"copy\"},\n",
       "{\"step\": 1, \"shard\": 3, \"from\": 1, \"to\": 2, \"link\": 2, \"begin\": 1, \"end\": 2, "
       "\"op\": \"copy\"}\n]\n}\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
  const ScheduleFile file = Must(ScheduleFromJson(text));
  EXPECT_EQ(file.schedule, K22AllGather(topology));
  EXPECT_EQ(file.topology.ToText(), topology.ToText());
}

// --- Single faults: each row changes one thing of figure 1

TEST(StoreJsonTest, NamesTheFault) {
  const Topology topology = K22();
  const std::string good = ScheduleToJson(topology, K22AllGather(topology));
  const std::string transfer =
      "{\"step\": 0, \"shard\": 0, \"from\": 0, \"to\": 2, \"link\": 0, \"begin\": 0, \"end\": 2, "
      "\"op\": \"copy\"}";
  struct Case {
    std::string what, by, message;
  };
  const std::vector<Case> cases{
      {"\"format\": \"tutti-schedule\"", "\"format\": \"x\"", "this is no schedule"},
      {"\"version\": 1", "\"version\": 2", "version 2 of the JSON schedule format is unknown"},
      {"\"version\": 1", "\"version\": 1, \"more\": 3", "unknown key 'more'"},
      {"\"version\": 1", "\"version\": 1, \"version\": 1", "'version' is there twice"},
      {"\"kind\": \"step\"", "\"kind\": \"stepped\"", "accepted are step, timed"},
      {"\"kind\": \"step\"", "\"kind\": \"timed\"", "lacks the key 'size_bytes'"},
      {"\"steps\": 2", "\"steps\": -1", "steps = -1; accepted are whole numbers 0 .. 2147483647"},
      {"\"steps\": 2", "\"steps\": 2.0", "steps = 2.0"},
      {"\"steps\": 2", "\"steps\": 1", "transfers[8]: step 1 is outside [0, 1)"},
      {"\"steps\": 2,\n", "", "lacks the key 'steps'"},
      {"\"units_per_shard\": 2", "\"units_per_shard\": 0", "units_per_shard = 0"},
      {"\"units_per_shard\": 2", "\"units_per_shard\": 1",
       "transfers[0]: [0, 2) is no interval of a shard of 1 units"},
      {"\"all-gather\", \"ranks\": 4", "\"all-together\", \"ranks\": 4", "accepted are all-gather"},
      {"\"all-gather\", \"ranks\": 4", "\"all-gather\", \"ranks\": 5",
       "the collective has 5 ranks, the topology 4"},
      {"\"all-gather\", \"ranks\": 4", "\"all-gather\", \"ranks\": 0", "collective has ranks = 0"},
      {"\"all-gather\", \"ranks\": 4", "\"all-gather\", \"ranks\": 4, \"root\": 1",
       "collective has an unknown key 'root'"},
      {"\"all-gather\", \"ranks\": 4", "\"broadcast\", \"ranks\": 4, \"root\": 4",
       "root 4 is not a rank"},
      {"\"all-gather\", \"ranks\": 4", "\"all-to-allv\", \"ranks\": 4", "lacks the key 'demand'"},
      {"\"all-gather\", \"ranks\": 4", "\"all-to-allv\", \"ranks\": 4, \"demand\": [[1]]",
       "4 rows of 4 whole numbers"},
      {"\"seed\": 0", "\"seed\": -1", "seed"},
      {"\"topology_fingerprint\": \"", "\"topology_fingerprint\": \"x", "16 hexadecimal digits"},
      {"\"topology\": {", "\"topology\": 7, \"x\": {", "topology"},
      {transfer, "7", "transfers[0] must be an object"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"from\": 0, \"to\": 1}",
       "transfers[0]: no link leads from 0 to 1"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"from\": 0}", "transfers[0]: it must name its link"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"from\": 9, \"to\": 1}",
       "transfers[0]: from 9 is outside [0, 4)"},
      {transfer, "{\"step\": 0, \"link\": 0}", "transfers[0] lacks the field 'shard'"},
      {transfer, "{\"shard\": 0, \"link\": 0}", "transfers[0] lacks the field 'step'"},
      {transfer, "{\"step\": 0, \"shard\": 4, \"link\": 0}",
       "transfers[0]: shard 4 is outside [0, 4)"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 8}",
       "transfers[0]: link 8 is outside [0, 8)"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 0, \"from\": 1}",
       "transfers[0]: link 0 leads from 0 to 2, not from 1 to 2"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 0, \"start_ps\": 1}",
       "a step schedule has no start_ps"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 0, \"via\": 1}", "unknown field 'via'"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 0, \"link\": 0}",
       "transfers[0].link is there twice"},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 0, \"op\": \"add\"}",
       "transfers[0].op must be \"copy\" or \"reduce\""},
      {transfer, "{\"step\": 0, \"shard\": 0, \"link\": 0, \"op\": 1}", "transfers[0].op must be"},
      {transfer, "{\"step\": 0, \"shard\": \"0\", \"link\": 0}",
       "transfers[0].shard must be a whole number in range"},
      {transfer, "{\"step\": 0, \"shard\": 3000000000, \"link\": 0}", "transfers[0].shard must be"},
      {transfer, "{\"step\": 0, \"shard\": 1e400, \"link\": 0}", "syntax error"},
      {transfer, "{\"step\": 1, \"shard\": 0, \"link\": 0}",
       "transfers[1]: step 0 comes after step 1"},
      {transfer, transfer + transfer, "syntax error at line "},
      {"\"transfers\": [", "\"chunks\": [", "unknown key 'chunks'"},
      {"\n]\n}\n", "\n]\n", "syntax error"},
  };
  ASSERT_TRUE(ScheduleFromJson(good).has_value());
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.what + " -> " + bad.by);
    ExpectError(ScheduleFromJson(Replaced(good, bad.what, bad.by)), ErrorCode::kCorrupt,
                bad.message);
  }
  ExpectError(ScheduleFromJson("[[1], 2]"), ErrorCode::kCorrupt, "the file must be an object");
  ExpectError(ScheduleFromJson(std::string(100000, '[')), ErrorCode::kCorrupt, "nested deeper");
  ExpectError(ScheduleFromJson("{\"transfers\": []}"), ErrorCode::kCorrupt, "no schedule");
}

TEST(StoreJsonTest, EndsMayStandForTheLinkAndWholeShardsForIntervals) {
  const Topology topology = K22();
  const std::string good = ScheduleToJson(topology, K22AllGather(topology));
  const std::string transfer =
      "{\"step\": 0, \"shard\": 0, \"from\": 0, \"to\": 2, \"link\": 0, \"begin\": 0, \"end\": 2, "
      "\"op\": \"copy\"}";
  for (const char* shorter : {"{\"step\": 0, \"shard\": 0, \"from\": 0, \"to\": 2}",
                              "{\"link\": 0, \"step\": 0, \"shard\": 0}"})
    EXPECT_EQ(Must(ScheduleFromJson(Replaced(good, transfer, shorter))).schedule,
              K22AllGather(topology));
  // Between parallel links the file must choose.
  Topology::Builder builder(2);
  builder.AddDuplex(Node(0), Node(1), {});
  builder.AddDuplex(Node(0), Node(1), {});
  const Topology doubled = Must(std::move(builder).Build());
  Schedule schedule = EmptySchedule(doubled, CollectiveKind::kAllGather);
  schedule.num_steps = 1;
  schedule.transfers = {{ShardId{0}, LinkId{1}, 0, 1, 0, TransferOp::kCopy}};
  ExpectError(ScheduleFromJson(Replaced(ScheduleToJson(doubled, schedule), "\"to\": 1, \"link\": 1",
                                        "\"to\": 1")),
              ErrorCode::kCorrupt, "both link 0 and link 1 lead from 0 to 1; name one");
}

TEST(StoreJsonTest, AnotherTopologysFingerprintLoadsForTheVerifierToJudge) {
  const Topology topology = K22();
  Schedule schedule = K22AllGather(topology);
  schedule.topology_fingerprint ^= 5;
  EXPECT_EQ(Must(ScheduleFromJson(ScheduleToJson(topology, schedule))).schedule, schedule);
}

// --- Round trips

TEST(StoreBinaryTest, BothFormatsKeepRandomSchedules) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomTopology(random);
    const Schedule schedule = RandomSchedule(random, topology, 50);
    const ScheduleFile json = Must(ScheduleFromJson(ScheduleToJson(topology, schedule)));
    EXPECT_EQ(json.schedule, schedule);
    EXPECT_EQ(json.topology.ToText(), topology.ToText());
    const std::string bytes = Bytes(topology, schedule);
    const ScheduleFile binary = Must(FromBytes(bytes));
    EXPECT_EQ(binary.schedule, Canonical(schedule));
    EXPECT_EQ(binary.topology.ToText(), topology.ToText());
    EXPECT_EQ(Bytes(binary.topology, binary.schedule), bytes);
  }
}

TEST(StoreBinaryTest, ReversedAllToAllVKeepsWhatMStandsFor) {
  const Topology topology = Ring(3, true);
  Collective::Options options;
  options.demand = {0, 9, 9, 1, 0, 0, 0, 0, 0};
  Schedule schedule{Must(Collective::Make(CollectiveKind::kAllToAllV, 3, options)).Reversed()};
  EXPECT_EQ(schedule.collective.weight_of_size(), 18);
  EXPECT_EQ(Must(FromBytes(Bytes(topology, schedule))).schedule, schedule);
}

TEST_F(StoreTest, WriteAndReadChooseTheFormatByName) {
  const Topology topology = K22();
  for (const char* name : {"a.sched.json", "a.sched", "b"}) {
    ASSERT_TRUE(WriteScheduleFile(Path(name), topology, K22AllGather(topology)).has_value());
    const ScheduleFile file = Must(ReadScheduleFile(Path(name)));
    const bool json = std::string(name).ends_with("json");
    const Schedule schedule = K22AllGather(topology);
    EXPECT_EQ(file.schedule, json ? schedule : Canonical(schedule));
    EXPECT_EQ(Must(ReadFile(Path(name)))[0], json ? '{' : '\x89');
  }
  // Also under the other's name.
  fs::rename(Path("a.sched"), Path("c.json"));
  EXPECT_TRUE(ReadScheduleFile(Path("c.json")).has_value());
}

// Enough for three blocks, all-gather-like: every rank sends random chunks of random shards.
Schedule ManyTransfers(const Topology& topology, size_t count, int32_t steps, int32_t units) {
  Random random(7);
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllGather);
  schedule.num_steps = steps;
  schedule.units_per_shard = units;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<int32_t>(random.Below(static_cast<uint64_t>(units)));
    const auto step = static_cast<int32_t>(i * static_cast<size_t>(steps) / count);
    schedule.transfers.push_back(
        {ShardId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_ranks())))},
         LinkId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_links())))},
         begin, begin + 1, step, TransferOp::kCopy});
  }
  return schedule;
}

TEST_F(StoreTest, StreamsBlockByBlock) {
  const Topology topology = Ring(64, true);
  const Schedule schedule = ManyTransfers(topology, 150'000, 9, 8);
  const std::string at_once = Bytes(topology, schedule);
  ASSERT_TRUE(WriteScheduleFile(Path("at_once.sched"), topology, schedule).has_value());
  EXPECT_EQ(Must(ReadFile(Path("at_once.sched"))), at_once);
  auto writer = Must(ScheduleWriter::Open(Path("piecemeal.sched"), topology, schedule, 0));
  for (size_t at = 0; at < schedule.transfers.size(); at += 777) {
    const size_t count = std::min<size_t>(777, schedule.transfers.size() - at);
    ASSERT_TRUE(writer->Append(std::span(schedule.transfers).subspan(at, count), {}).has_value());
  }
  EXPECT_FALSE(fs::exists(Path("piecemeal.sched")));
  ASSERT_TRUE(writer->Finish().has_value());
  EXPECT_EQ(Must(ReadFile(Path("piecemeal.sched"))), at_once);

  auto reader = Must(ScheduleReader::Open(Path("piecemeal.sched")));
  EXPECT_EQ(reader->num_transfers(), schedule.transfers.size());
  EXPECT_TRUE(reader->header().transfers.empty());
  EXPECT_EQ(reader->topology().Fingerprint(), topology.Fingerprint());
  std::vector<Transfer> block;
  std::vector<int64_t> start_ps;
  size_t total = 0, blocks = 0;
  for (; Must(reader->Next(block, start_ps)); ++blocks) total += block.size();
  EXPECT_EQ(total, schedule.transfers.size());
  EXPECT_EQ(blocks, 3u);
  EXPECT_FALSE(Must(reader->Next(block, start_ps)));
  EXPECT_TRUE(block.empty());
}

TEST(StoreBinaryTest, LargeFilesTakeAtMostFourBytesATransfer) {
  const Topology topology = Ring(1024, true);
  // The worst case: nothing about link, shard or chunk can be guessed.
  const Schedule schedule = ManyTransfers(topology, 1 << 18, 10, 64);
  const size_t empty = [&] {
    Schedule header = schedule;
    header.transfers.clear();
    return Bytes(topology, header).size();
  }();
  const size_t payload = Bytes(topology, schedule).size() - empty;
  EXPECT_LE(payload, 4 * schedule.transfers.size());
}

TEST_F(StoreTest, JsonFilesStreamToo) {
  const Topology topology = K22();
  ASSERT_TRUE(WriteScheduleFile(Path("a.json"), topology, K22AllGather(topology)).has_value());
  auto reader = Must(ScheduleReader::Open(Path("a.json")));
  EXPECT_EQ(reader->num_transfers(), 16u);
  std::vector<Transfer> block;
  std::vector<int64_t> start_ps;
  EXPECT_TRUE(Must(reader->Next(block, start_ps)));
  EXPECT_EQ(block, K22AllGather(topology).transfers);
  EXPECT_FALSE(Must(reader->Next(block, start_ps)));
}

// --- Golden files: version 1 stays readable

TEST(StoreGolden, Version1StaysReadable) {
  const Topology topology = K22();
  Schedule expected = Canonical(K22AllGather(topology));
  expected.seed = 42;
  for (const char* name : {"tests/data/sched/k22_v1.sched", "tests/data/sched/k22_v1.sched.json"}) {
    const ScheduleFile file = Must(ReadScheduleFile(name));
    EXPECT_EQ(file.schedule, expected) << name;
    EXPECT_EQ(file.topology.ToText(), topology.ToText()) << name;
  }
}

// --- Damage

TEST(StoreBinaryTest, EveryFlippedByteIsFound) {
  Random random(3);
  const Topology topology = Ring(3, true);
  const Schedule schedule = ManyTransfers(topology, 40, 3, 5);
  const std::string good = Bytes(topology, schedule);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + random.Below(255)));
    const Result<ScheduleFile> read = FromBytes(bad);
    ASSERT_FALSE(read.has_value()) << "byte " << at;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << read.error().message;
  }
}

TEST(StoreBinaryTest, EveryTruncationAndEveryExtraByteIsFound) {
  const Topology topology = Ring(3, true);
  const std::string good = Bytes(topology, ManyTransfers(topology, 40, 3, 5));
  for (size_t length = 0; length < good.size(); ++length) {
    const Result<ScheduleFile> read = FromBytes(good.substr(0, length));
    ASSERT_FALSE(read.has_value()) << length;
    EXPECT_NE(read.error().message.find("truncated"), std::string::npos) << read.error().message;
  }
  for (size_t at = 0; at <= good.size(); ++at)
    EXPECT_FALSE(FromBytes(good.substr(0, at) + "x" + good.substr(at)).has_value()) << at;
}

TEST(StoreBinaryTest, BlocksThatAreLostOrSwappedAreFound) {
  const Topology topology = Ring(4, true);
  const std::string good = Bytes(topology, ManyTransfers(topology, 3 << 16, 1, 5));
  std::vector<size_t> starts;
  for (size_t at = good.find("BLCK"); at != good.npos; at = good.find("BLCK", at + 1))
    starts.push_back(at);
  ASSERT_EQ(starts.size(), 3u);
  const std::string head = good.substr(0, starts[0]);
  const std::string a = good.substr(starts[0], starts[1] - starts[0]);
  const std::string b = good.substr(starts[1], starts[2] - starts[1]);
  const std::string tail = good.substr(starts[2]);
  EXPECT_TRUE(FromBytes(head + a + b + tail).has_value());
  ExpectError(FromBytes(head + b + a + tail), ErrorCode::kCorrupt, "not the next block");
  EXPECT_FALSE(FromBytes(head + a + tail).has_value());
  EXPECT_FALSE(FromBytes(head + a + b + b + tail).has_value());
  // A trailer of a file with as many transfers and blocks.
  const std::string other = Bytes(topology, ManyTransfers(topology, 3 << 16, 1, 4));
  ExpectError(FromBytes(good.substr(0, good.size() - 40) + other.substr(other.size() - 40)),
              ErrorCode::kCorrupt, "belongs to other blocks");
}

// The preamble of a binary file with a checksum that fits.
std::string Preamble(uint32_t version, uint64_t text_bytes, uint64_t frame_bytes) {
  std::string bytes = "\x89TTS\r\n\x1a\n";
  PutU32(bytes, version);
  PutU32(bytes, 0);
  PutU64(bytes, text_bytes);
  PutU64(bytes, frame_bytes);
  PutU64(bytes, Checksum(bytes));
  return bytes;
}

TEST(StoreBinaryTest, UnknownVersionsAreRefusedByName) {
  for (uint32_t version : {0u, 4u, 4'000'000'000u})
    ExpectError(FromBytes(Preamble(version, 1, 1)), ErrorCode::kCorrupt,
                "version " + std::to_string(version) + " of the binary schedule format is unknown");
}

TEST(StoreBinaryTest, LengthsAreCheckedBeforeMemoryIsTaken) {
  const uint64_t huge = uint64_t{1} << 62;
  ExpectError(FromBytes(Preamble(1, huge, 10) + "0123456789"), ErrorCode::kCorrupt, "longer than");
  ExpectError(FromBytes(Preamble(1, 100, huge) + "0123456789"), ErrorCode::kCorrupt, "truncated");
  ExpectError(FromBytes(Preamble(1, 100, ~uint64_t{0}) + "0123456789"), ErrorCode::kCorrupt,
              "truncated");
}

TEST_F(StoreTest, FilesThatAreNoScheduleAreRefused) {
  const auto write = [&](const std::string& bytes) {
    std::ofstream(Path("x"), std::ios::binary) << bytes;
    return Path("x");
  };
  ExpectError(ReadScheduleFile(write("")), ErrorCode::kCorrupt, "the file is empty");
  ExpectError(ReadScheduleFile(write("hello")), ErrorCode::kCorrupt, "syntax error at line 1");
  ExpectError(
      ReadScheduleFile(write("\x89PNG\r\n\x1a\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")),
      ErrorCode::kCorrupt, Path("x") + ": this is no binary schedule");
  ASSERT_EQ(::truncate(write("{").c_str(), off_t{5} << 30), 0);
  ExpectError(ReadScheduleFile(Path("x")), ErrorCode::kResourceExhausted, "JSON is read up to");
  ExpectError(ReadScheduleFile(Path("missing")), ErrorCode::kIo, "missing: cannot open");
  ExpectError(ReadScheduleFile(folder_.string()), ErrorCode::kIo, "directory");
}

// --- Writing that fails leaves nothing behind

TEST_F(StoreTest, WrongTransfersAreRefusedByIndex) {
  const Topology topology = K22();
  const Schedule good = K22AllGather(topology);
  for (const char* name : {"x.sched", "x.json"}) {
    Schedule bad = good;
    bad.transfers[5].link = LinkId{8};
    ExpectError(WriteScheduleFile(Path(name), topology, bad), ErrorCode::kInvalidArgument,
                "transfer 5: link 8 is outside [0, 8)");
    bad = good;
    std::swap(bad.transfers[0], bad.transfers[15]);
    ExpectError(WriteScheduleFile(Path(name), topology, bad), ErrorCode::kInvalidArgument,
                "transfer 1: step 0 comes after step 1");
    bad = good;
    bad.start_ps = {1};
    ExpectError(WriteScheduleFile(Path(name), topology, bad), ErrorCode::kInvalidArgument,
                "1 start times for 16 transfers of a step schedule");
    bad = good;
    bad.units_per_shard = 0;
    ExpectError(WriteScheduleFile(Path(name), topology, bad), ErrorCode::kInvalidArgument,
                "units_per_shard");
  }
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(StoreTest, PathsThatCannotBeWrittenAreNamed) {
  const Topology topology = K22();
  const Schedule schedule = K22AllGather(topology);
  for (const char* name : {"none/x.sched", "none/x.json"})
    ExpectError(WriteScheduleFile(Path(name), topology, schedule), ErrorCode::kIo,
                Path(name) + ": cannot open for writing: No such file or directory");
  ExpectError(WriteScheduleFile(folder_.string(), topology, schedule), ErrorCode::kIo,
              folder_.string());
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(StoreTest, AFullDeviceIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Topology topology = K22();
  ExpectError(WriteScheduleFile("/dev/full", topology, K22AllGather(topology)), ErrorCode::kIo,
              "/dev/full: cannot write: No space left on device");
  EXPECT_TRUE(fs::exists("/dev/full"));
}

// Files of this process may not grow beyond `bytes` while this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(StoreTest, ADiskThatFillsUpOnTheWayLeavesTheOldFile) {
  const Topology topology = Ring(64, true);
  const Schedule small = RingAllGather(topology);
  const Schedule large = ManyTransfers(topology, 100'000, 9, 8);
  for (const char* name : {"x.sched", "x.json"}) {
    ASSERT_TRUE(WriteScheduleFile(Path(name), topology, small).has_value());
    const std::string before = Must(ReadFile(Path(name)));
    {
      const FileSizeLimit limit(50'000);
      ExpectError(WriteScheduleFile(Path(name), topology, large), ErrorCode::kIo,
                  Path(name) + ": cannot write: File too large");
    }
    EXPECT_EQ(Must(ReadFile(Path(name))), before);
  }
  EXPECT_EQ(NumFiles(), 2u);
}

TEST_F(StoreTest, AnInterruptionInTheMiddleEndsWriterAndReader) {
  const Topology topology = Ring(64, true);
  const Schedule schedule = ManyTransfers(topology, 150'000, 9, 8);
  ASSERT_TRUE(WriteScheduleFile(Path("old"), topology, schedule).has_value());
  auto writer = Must(ScheduleWriter::Open(Path("new"), topology, schedule, 150'000));
  auto reader = Must(ScheduleReader::Open(Path("old")));
  const std::span<const Transfer> all(schedule.transfers);
  std::vector<Transfer> block;
  std::vector<int64_t> start_ps;
  ASSERT_TRUE(writer->Append(all.first(100'000), {}).has_value());
  ASSERT_TRUE(Must(reader->Next(block, start_ps)));
  RequestCancel();
  ExpectError(writer->Append(all.subspan(100'000), {}), ErrorCode::kCancelled, "interrupted");
  ExpectError(reader->Next(block, start_ps), ErrorCode::kCancelled, "interrupted");
  ResetCancel();
  writer.reset();
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(StoreTest, TheNeedIsComparedWithTheFreeSpaceFirst) {
  const Topology topology = K22();
  for (uint64_t expected : {uint64_t{1} << 60, ~uint64_t{0}})
    ExpectError(ScheduleWriter::Open(Path("x"), topology, K22AllGather(topology), expected),
                ErrorCode::kResourceExhausted, "the disk is too full: " + std::to_string(expected));
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(StoreTest, AnUnfinishedOrInterruptedFileIsRemovedAndTheOldOneKept) {
  const Topology topology = K22();
  const Schedule schedule = K22AllGather(topology);
  ASSERT_TRUE(WriteScheduleFile(Path("x"), topology, schedule).has_value());
  const std::string before = Must(ReadFile(Path("x")));
  {
    auto writer = Must(ScheduleWriter::Open(Path("x"), topology, schedule, 16));
    ASSERT_TRUE(writer->Append(schedule.transfers, {}).has_value());
    EXPECT_EQ(NumFiles(), 2u);
  }
  EXPECT_EQ(NumFiles(), 1u);
  RequestCancel();
  ExpectError(WriteScheduleFile(Path("x"), topology, schedule), ErrorCode::kCancelled,
              "interrupted");
  ResetCancel();
  EXPECT_EQ(NumFiles(), 1u);
  EXPECT_EQ(Must(ReadFile(Path("x"))), before);
}

TEST_F(StoreTest, AFailedWriterStaysFailed) {
  const Topology topology = K22();
  const Schedule schedule = K22AllGather(topology);
  auto writer = Must(ScheduleWriter::Open(Path("x"), topology, schedule, 0));
  ASSERT_TRUE(writer->Append(std::span(schedule.transfers).last(1), {}).has_value());
  ExpectError(writer->Append(schedule.transfers, {}), ErrorCode::kInvalidArgument,
              "transfer 1: step 0 comes after step 1");
  ExpectError(writer->Append({}, {}), ErrorCode::kInvalidArgument, "failed");
  ExpectError(writer->Finish(), ErrorCode::kInvalidArgument, "failed");
  writer.reset();
  EXPECT_EQ(NumFiles(), 0u);
}

// XXH64 of the specification's reference implementation.
TEST(ChecksumTest, IsXxh64) {
  EXPECT_EQ(Checksum(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(Checksum("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(Checksum("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(Checksum("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

}  // namespace
}  // namespace tutti
