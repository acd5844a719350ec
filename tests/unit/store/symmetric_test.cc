// Symmetric schedules written out, folded, and in files.
#include "tutti/sched/symmetric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "frame.h"
#include "support/parse.h"
#include "support/text.h"
#include "symmetric_file.h"
#include "tutti/base/file_kind.h"
#include "tutti/synth/symmetric_bfb.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/verify/symmetric.h"

namespace tutti {
namespace {

using test_support::Replaced;

using test_support::Parse;
using ::testing::HasSubstr;
using Kind = CollectiveKind;

struct Made {
  Topology topology;
  Translations translations;
  SymmetricSchedule schedule;
};

Made Make(Topology topology, Kind kind) {
  Result<Translations> translations = FindTranslations(topology);
  EXPECT_TRUE(translations.has_value());
  Result<SymmetricSchedule> schedule =
      MakeSymmetricBfb(topology, *translations, *Collective::Make(kind, topology.num_ranks()), {});
  EXPECT_TRUE(schedule.has_value());
  EXPECT_TRUE(VerifySymmetric(topology, schedule->root.collective, *schedule).verified());
  return {std::move(topology), *std::move(translations), *std::move(schedule)};
}
Made Make(const std::string& expression, Kind kind = Kind::kAllGather) {
  return Make(Parse(expression), kind);
}

Result<SymmetricFile> SymmetricFromBytes(const std::string& bytes) {
  return SymmetricFromBinary(std::as_bytes(std::span(bytes)));
}

std::string ToBytes(const Made& made) {
  const Result<std::string> bytes =
      SymmetricToBinary(made.topology, made.translations, made.schedule);
  EXPECT_TRUE(bytes.has_value()) << (bytes ? "" : bytes.error().message);
  return bytes.value_or("");
}

std::vector<Transfer> Sorted(std::vector<Transfer> transfers) {
  const auto key = [](const Transfer& t) {
    return std::tuple(t.step, t.link, t.shard, t.begin, t.end, t.op);
  };
  std::sort(transfers.begin(), transfers.end(),
            [&key](const Transfer& a, const Transfer& b) { return key(a) < key(b); });
  return transfers;
}

TEST(SymmetricSchedule, WhichCollectives) {
  for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce})
    EXPECT_TRUE(HasSymmetricForm(*Collective::Make(kind, 4)));
  for (Kind kind :
       {Kind::kBroadcast, Kind::kReduce, Kind::kGather, Kind::kScatter, Kind::kAllToAll})
    EXPECT_FALSE(HasSymmetricForm(*Collective::Make(kind, 4)));
  Collective::Options one;
  one.all_reduce_shards = 1;
  EXPECT_FALSE(HasSymmetricForm(*Collective::Make(Kind::kAllReduce, 4, one)));
}

// One-way ring of three: shard 0 goes 0 -> 1 -> 2. Links are 0 -> 1, 1 -> 2, 2 -> 0.
TEST(SymmetricSchedule, OneWayRingByHand) {
  const Made made = Make("uniring(1,3)");
  const std::vector<Transfer> root{{ShardId{0}, LinkId{0}, 0, 1, 0, TransferOp::kCopy},
                                   {ShardId{0}, LinkId{1}, 0, 1, 1, TransferOp::kCopy}};
  EXPECT_EQ(made.schedule.root.transfers, root);
  EXPECT_EQ(CountTransfers(made.schedule), 6);
  const Result<Schedule> whole = Expand(made.translations, made.topology, made.schedule, 6);
  ASSERT_TRUE(whole.has_value());
  const std::vector<Transfer> all{{ShardId{0}, LinkId{0}, 0, 1, 0, TransferOp::kCopy},
                                  {ShardId{1}, LinkId{1}, 0, 1, 0, TransferOp::kCopy},
                                  {ShardId{2}, LinkId{2}, 0, 1, 0, TransferOp::kCopy},
                                  {ShardId{0}, LinkId{1}, 0, 1, 1, TransferOp::kCopy},
                                  {ShardId{1}, LinkId{2}, 0, 1, 1, TransferOp::kCopy},
                                  {ShardId{2}, LinkId{0}, 0, 1, 1, TransferOp::kCopy}};
  EXPECT_EQ(whole->transfers, all);
  const Schedule folded = FoldOntoRank0(made.translations, made.schedule);
  EXPECT_EQ(folded.transfers[1].link, LinkId{0});
  const Result<Schedule> refused = Expand(made.translations, made.topology, made.schedule, 5);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("6 transfers in all; at most 5"));
}

TEST(SymmetricFile, ComesBackAsItWas) {
  for (const char* expression :
       {"ring(1)", "ring(2)", "ring(5)", "torus(4,3,2)", "torus(3,4,bw=[1,2]GB/s,alpha=[1,9]us)",
        "uniring(3,4)", "hypercube(6)", "bipartite(3)", "torus(3,3,parallel=2)",
        "cayley(7,3,2,1,0,0,1)", "degree(ring(5),2)", "torus(40,41,10)",
        "unwind(switch(5),degree=2)"})
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce}) {
      SCOPED_TRACE(testing::Message() << expression << " " << Name(kind));
      const Made made = Make(expression, kind);
      const std::string bytes = ToBytes(made);
      const Result<SymmetricFile> file = SymmetricFromBytes(bytes);
      ASSERT_TRUE(file.has_value()) << file.error().message;
      EXPECT_EQ(file->topology.ToText(), made.topology.ToText());
      EXPECT_EQ(file->topology.name(), made.topology.name());
      EXPECT_EQ(file->topology.expression(), made.topology.expression());
      EXPECT_EQ(file->topology.grid(), made.topology.grid());
      ASSERT_EQ(file->topology.original() == nullptr, made.topology.original() == nullptr);
      if (made.topology.original() != nullptr) {
        EXPECT_EQ(file->topology.original()->ToText(), made.topology.original()->ToText());
      }
      EXPECT_EQ(file->topology.Fingerprint(), made.topology.Fingerprint());
      SymmetricSchedule read = file->schedule, written = made.schedule;
      read.root.transfers = Sorted(read.root.transfers);
      written.root.transfers = Sorted(written.root.transfers);
      EXPECT_EQ(read, written);
      const Result<Translations> again = Translations::Make(file->topology, read.generators);
      ASSERT_TRUE(again.has_value());
      EXPECT_EQ(*SymmetricToBinary(file->topology, *again, file->schedule), bytes);
    }
}

// 82,000 ranks in fewer bytes than one of them has transfers, network included.
TEST(SymmetricFile, IsSmall) {
  const Made made = Make("torus(40,41,50)");
  EXPECT_LT(ToBytes(made).size(), made.schedule.root.transfers.size());
}

// Names, ports without a link, links in an order of their own.
TEST(SymmetricFile, KeepsWhatPeopleCallIt) {
  Topology::Builder builder(3);
  for (int32_t i = 0; i < 3; ++i) {
    builder.AddLink(NodeId{i}, NodeId{(i + 2) % 3}, {.bandwidth = 7});
    builder.AddLink(NodeId{i}, NodeId{(i + 1) % 3}, {.bandwidth = 9, .alpha_ps = 3});
    builder.AddLink(NodeId{i}, NodeId{i}, {.bandwidth = 5});
  }
  builder.SetNodeNames({"a", "b \"quoted\"", "\xc3\xa9"});
  builder.SetName("a ring");
  const Topology unordered = *std::move(builder).Build();
  ASSERT_FALSE(HasOrderedLinks(unordered));
  const Made refused = Make(unordered, Kind::kAllGather);
  const auto no = SymmetricToBinary(refused.topology, refused.translations, refused.schedule);
  ASSERT_FALSE(no.has_value());
  EXPECT_THAT(no.error().message, HasSubstr("not in the order head, bandwidth, alpha"));

  std::vector<LinkId> link_map;
  Topology ordered = OrderLinks(unordered, &link_map);
  EXPECT_TRUE(HasOrderedLinks(ordered));
  for (LinkId link : ordered.Links()) {
    EXPECT_EQ(ordered.head(link), unordered.head(link_map[link.index()]));
    EXPECT_EQ(ordered.spec(link), unordered.spec(link_map[link.index()]));
  }
  const Made made = Make(std::move(ordered), Kind::kAllGather);
  const Result<SymmetricFile> file = SymmetricFromBytes(ToBytes(made));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->topology.ToText(), made.topology.ToText());
  for (NodeId node : made.topology.Nodes())
    EXPECT_EQ(file->topology.node_name(node), made.topology.node_name(node));
}

TEST(SymmetricFile, RefusesToWriteWhatIsNoSymmetricSchedule) {
  const Made good = Make("torus(3,3)");
  struct Case {
    std::function<void(SymmetricSchedule&)> break_it;
    const char* words;
  };
  const std::vector<Case> cases{
      {[](SymmetricSchedule& s) { s.root.transfers[3].shard = ShardId{1}; }, "shard 1"},
      {[](SymmetricSchedule& s) { s.root.transfers[3].link = LinkId{99}; }, "link 99"},
      {[](SymmetricSchedule& s) { s.root.topology_fingerprint ^= 1; }, "another network"},
      {[](SymmetricSchedule& s) { s.generators.pop_back(); }, "not those of the schedule"},
      {[](SymmetricSchedule& s) { s.root.collective = *Collective::Make(Kind::kBroadcast, 9); },
       "broadcast has no symmetric form"},
      {[](SymmetricSchedule& s) { s.root.kind = ScheduleKind::kTimed; }, "timed"}};
  for (const Case& one : cases) {
    SymmetricSchedule broken = good.schedule;
    one.break_it(broken);
    const auto bytes = SymmetricToBinary(good.topology, good.translations, broken);
    ASSERT_FALSE(bytes.has_value()) << one.words;
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(bytes.error().message, HasSubstr(one.words));
  }
}

// Every bit of a small file, and every length of it.
TEST(SymmetricFile, DamageIsFoundWhereverItIs) {
  const std::string bytes = ToBytes(Make("torus(2,3)"));
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const Result<SymmetricFile> file = SymmetricFromBytes(damaged);
      ASSERT_FALSE(file.has_value()) << "byte " << at << " bit " << bit;
      EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
    }
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(SymmetricFromBytes(bytes.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(SymmetricFromBytes(bytes + "x").has_value());
}

// A file whose checksums are right and whose contents are not.
class Forged {
 public:
  explicit Forged(const Made& made) {
    header.root = made.schedule.root;
    header.root.transfers.clear();
    header.origin = made.topology.origin();
    for (LinkId link : made.topology.OutLinks(NodeId{0}))
      header.ports.push_back({made.topology.head(link).value, made.topology.spec(link)});
    header.num_generators = static_cast<int32_t>(made.schedule.generators.size());
    for (const NodePermutation& generator : made.schedule.generators) {
      generators.emplace_back();
      for (NodeId image : generator) generators.back().push_back(image.value);
    }
    for (Transfer transfer : made.schedule.root.transfers) {
      transfer.shard = ShardId{made.topology.tail(transfer.link).value};
      transfer.link = LinkId{made.translations.LinkClass(transfer.link)};
      transfers.push_back(transfer);
    }
  }

  std::string Bytes() const {
    using namespace binary;
    std::string bytes;
    FrameWriter frame(MakeStringSink(&bytes));
    const std::string text = header_text.empty() ? SymmetricHeaderToJson(header) : header_text;
    EXPECT_TRUE(frame.Begin(*MakePreamble(kSymmetricVersion, text)).has_value());
    ColumnEncoder encoder;
    for (const std::vector<int64_t>& generator : generators) {
      std::string payload;
      encoder.Append(generator, payload);
      EXPECT_TRUE(frame.WriteBlock(kGeneratorTag, static_cast<uint32_t>(generator.size()), payload)
                      .has_value());
    }
    std::string payload;
    TransferEncoder().Append(
        transfers.size(), [&](size_t i) { return int64_t{transfers[i].step}; },
        [&](size_t i) -> const Transfer& { return transfers[i]; }, payload);
    EXPECT_TRUE(
        frame.WriteBlock(kBlockTag, static_cast<uint32_t>(transfers.size()), payload).has_value());
    EXPECT_TRUE(frame.Finish(announced < 0 ? transfers.size() : static_cast<uint64_t>(announced))
                    .has_value());
    return bytes;
  }

  SymmetricHeader header{
      Schedule{.collective = *Collective::Make(Kind::kAllGather, 1)}, {}, 0, {}, {}, {}, {}};
  std::string header_text;
  std::vector<std::vector<int64_t>> generators;
  std::vector<Transfer> transfers;
  int64_t announced = -1;
};

TEST(SymmetricFile, ForgedContentsAreRefused) {
  const Made good = Make("torus(2,3)");
  EXPECT_TRUE(SymmetricFromBytes(Forged(good).Bytes()).has_value());
  const std::string text = SymmetricHeaderToJson(Forged(good).header);
  struct Case {
    std::function<void(Forged&)> forge;
    const char* words;
  };
  const auto header = [&text](const std::string& from, const std::string& to) {
    return [&text, from, to](Forged& f) { f.header_text = Replaced(text, from, to); };
  };
  const std::vector<Case> cases{
      {[](Forged& f) { f.generators[0][5] = f.generators[0][4]; }, "no permutation"},
      {[](Forged& f) { f.generators[0][5] = 6; }, "no permutation"},
      {[](Forged& f) { f.generators[0][5] = -1; }, "no permutation"},
      {[](Forged& f) { f.generators[0].push_back(6); }, "more numbers than there are ranks"},
      {[](Forged& f) { f.generators.pop_back(); }, "this is no block"},
      {[](Forged& f) { f.generators.push_back(f.generators[0]); }, "this is no block"},
      {[](Forged& f) {
         f.generators.pop_back();
         f.header.num_generators = 1;
       },
       "do not take rank 0 to every rank"},
      {[](Forged& f) { f.header.ports[0].head = 0; }, "leads to the rank itself"},
      {[](Forged& f) { f.header.ports[0].spec.bandwidth += 1; }, "fingerprint"},
      {[](Forged& f) { f.header.ports.pop_back(); }, ""},
      {[](Forged& f) { f.header.ports.clear(); }, "disconnected"},
      {[](Forged& f) { f.header.ports[0].spec.bandwidth = int64_t{1} << 60; }, "bandwidth"},
      {[](Forged& f) {
         f.header.node_names = {"one", "name"};
       },
       "node names"},
      {[](Forged& f) {
         f.header.origin.grid = GridShape{{2, 2}, true};
       },
       "grid"},
      {[](Forged& f) { f.transfers[0].shard = ShardId{6}; }, "port"},
      {[](Forged& f) { f.transfers[0].link = LinkId{3}; }, "port 3 of rank"},
      {[](Forged& f) { f.transfers[0].end = 99; }, "a transfer"},
      {[](Forged& f) { f.transfers[0].step = 2; }, "a transfer"},
      {[](Forged& f) { f.announced = 3; }, "the trailer announces 3 transfers"},
      {header("\"tutti-symmetric-schedule\"", "\"tutti-schedule\""), "format"},
      {header("\"version\": 2", "\"version\": 3"), "version"},
      {header("\"kind\": \"all-gather\"", "\"kind\": \"broadcast\""), "no symmetric form"},
      {header("\"ranks\": 6", "\"ranks\": 2000000"), "at most 1048576"},
      {header("\"ranks\": 6", "\"ranks\": 7"), ""},
      {header("\"generators\": 2", "\"generators\": 3"), "this is no block"},
      {header("\"to\": 1", "\"to\": 6"), "to = 6"},
      {header("\"to\": 1", "\"to\": 1, \"x\": 1"), "unknown key 'x'"},
      {header("\"network\": {", "\"network\": {\"x\": 1, "), "unknown key 'x'"},
      {header("\"ports\": [", "\"ports\": 5, \"y\": ["), "is no list"},
      {header("\"dims\": [2, 3]", "\"dims\": [0, 3]"), "wrong dimension"},
      {header("\"wraps\": true", "\"wraps\": 1"), "neither true nor false"},
      {header("\"steps\"", "\"transfers\": [], \"steps\""), "must not hold transfers"},
      {header("{", "{{"), "syntax error"},
  };
  for (const Case& one : cases) {
    Forged forged(good);
    one.forge(forged);
    const Result<SymmetricFile> file = SymmetricFromBytes(forged.Bytes());
    ASSERT_FALSE(file.has_value()) << one.words;
    EXPECT_EQ(file.error().code, ErrorCode::kCorrupt) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr(one.words));
  }
}

class SymmetricFiles : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "tutti_symmetric_" + std::to_string(getpid());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
};

TEST_F(SymmetricFiles, AreReadAsWholeSchedulesToo) {
  const Made made = Make("torus(3,4)");
  const std::string path = Path("t.sched");
  ASSERT_TRUE(
      WriteSymmetricFile(path, made.topology, made.translations, made.schedule).has_value());
  EXPECT_EQ(KindOfFile(path), FileKind::kSymmetricSchedule);
  const Result<SymmetricFile> file = ReadSymmetricFile(path);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const Result<ScheduleFile> whole = ReadScheduleFile(path);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  const Result<Schedule> expanded =
      Expand(made.translations, made.topology, made.schedule, kMaxExpandedTransfers);
  EXPECT_EQ(Sorted(whole->schedule.transfers), Sorted(expanded->transfers));
  EXPECT_TRUE(Verify(whole->topology, whole->schedule.collective, whole->schedule).verified());
  // And back to an ordinary file, which is none of these.
  ASSERT_TRUE(WriteScheduleFile(Path("w.sched"), whole->topology, whole->schedule).has_value());
  EXPECT_EQ(KindOfFile(Path("w.sched")), FileKind::kSchedule);
  const Result<SymmetricFile> no = ReadSymmetricFile(Path("w.sched"));
  ASSERT_FALSE(no.has_value());
  EXPECT_THAT(no.error().message, HasSubstr("version 1 of the format holds whole schedules"));
}

TEST_F(SymmetricFiles, RefusedPathsAndContents) {
  const Made made = Make("ring(4)");
  const Status json =
      WriteSymmetricFile(Path("t.json"), made.topology, made.translations, made.schedule);
  ASSERT_FALSE(json.has_value());
  EXPECT_THAT(json.error().message, HasSubstr("no JSON form"));
  EXPECT_FALSE(
      WriteSymmetricFile(Path("no/such/t.sched"), made.topology, made.translations, made.schedule)
          .has_value());
  EXPECT_FALSE(ReadSymmetricFile(Path("nothing")).has_value());
  std::ofstream(Path("short")) << "\x89TTS";
  EXPECT_THAT(ReadSymmetricFile(Path("short")).error().message, HasSubstr(Path("short")));
}

TEST_F(SymmetricFiles, TooLargeToWriteOut) {
  const Made made = Make("torus(30,30,30)");
  const std::string path = Path("large.sched");
  ASSERT_TRUE(
      WriteSymmetricFile(path, made.topology, made.translations, made.schedule).has_value());
  const Result<ScheduleFile> whole = ReadScheduleFile(path);
  ASSERT_FALSE(whole.has_value());
  EXPECT_EQ(whole.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(whole.error().message, HasSubstr("at most 67108864"));
}

// The file of the first version of the format: later programs read it.
TEST(SymmetricFile, StoredFileOfVersion2) {
  const Result<SymmetricFile> file = ReadSymmetricFile("tests/data/sched/torus23_v2.sched");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->topology.ToText(), Parse("torus(2,3)").ToText());
  EXPECT_TRUE(
      VerifySymmetric(file->topology, file->schedule.root.collective, file->schedule).verified());
  EXPECT_EQ(file->schedule.root.transfers.size(), 7u);
}

}  // namespace
}  // namespace tutti
