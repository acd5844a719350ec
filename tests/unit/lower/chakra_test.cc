// Traces are decoded here by a reader of their own, which knows of the writer nothing but the
// numbers of the schema's fields.
#include "tutti/lower/chakra.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers

constexpr uint64_t kCompute = 4, kSend = 5, kReceive = 6;

struct Node {
  uint64_t id = 0, type = 0;
  std::string name;
  std::vector<uint64_t> control, data;
  std::map<std::string, uint64_t> attributes;
};

// Fields of one message, by number; of repeated ones in their order.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : left_(bytes) {
    while (!left_.empty()) {
      const uint64_t key = Varint();
      if (key % 8 == 0) {
        numbers_[key / 8].push_back(Varint());
      } else {
        EXPECT_EQ(key % 8, 2U);
        bytes_[key / 8].push_back(Bytes());
      }
    }
  }
  uint64_t Number(uint64_t field) { return numbers_[field].at(0); }
  std::string Text(uint64_t field) { return std::string(bytes_[field].at(0)); }
  const std::vector<std::string_view>& All(uint64_t field) { return bytes_[field]; }
  const std::map<uint64_t, std::vector<uint64_t>>& numbers() const { return numbers_; }
  std::vector<uint64_t> Packed(uint64_t field) {
    std::vector<uint64_t> values;
    for (std::string_view packed : bytes_[field]) {
      left_ = packed;
      while (!left_.empty()) values.push_back(Varint());
    }
    return values;
  }

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.at(0));
      left_.remove_prefix(1);
      value |= uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
  }
  std::string_view Bytes() {
    const uint64_t size = Varint();
    const std::string_view bytes = left_.substr(0, size);
    EXPECT_EQ(bytes.size(), size);
    left_.remove_prefix(size);
    return bytes;
  }
  std::string_view left_;
  std::map<uint64_t, std::vector<uint64_t>> numbers_;
  std::map<uint64_t, std::vector<std::string_view>> bytes_;
};

std::vector<std::string_view> Messages(std::string_view file) {
  std::vector<std::string_view> messages;
  while (!file.empty()) {
    uint64_t size = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(file.at(0));
      file.remove_prefix(1);
      size |= uint64_t{byte & 127U} << shift;
      if (byte < 128) break;
    }
    messages.push_back(file.substr(0, size));
    file.remove_prefix(size);
  }
  return messages;
}

std::vector<Node> Decode(const std::string& file) {
  std::vector<Node> nodes;
  bool first = true;
  for (std::string_view message : Messages(file)) {
    Fields fields(message);
    if (std::exchange(first, false)) {
      EXPECT_EQ(fields.Text(1), "0.0.4");
      continue;
    }
    Node node{fields.Number(1), fields.Number(3), fields.Text(2),
              fields.Packed(4), fields.Packed(5), {}};
    for (std::string_view attribute : fields.All(10)) {
      Fields one(attribute);
      EXPECT_EQ(one.numbers().size(), 1U);  // one value
      node.attributes[one.Text(1)] = one.numbers().begin()->second.at(0);
    }
    nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::vector<Node>> MustTrace(const Topology& topology, const Schedule& schedule,
                                         const ChakraOptions& options) {
  const Result<std::vector<std::string>> files = ToChakra(topology, schedule, options);
  EXPECT_TRUE(files.has_value()) << files.error().message;
  std::vector<std::vector<Node>> ranks;
  for (const std::string& file : *files) ranks.push_back(Decode(file));
  return ranks;
}

// Dependencies are numbers of earlier nodes, so there is no cycle within a rank; sends and receives
// are the same messages; and all nodes of all ranks come to run. The bytes sent.
uint64_t CheckTraces(const std::vector<std::vector<Node>>& ranks) {
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;  // from, to, tag, bytes
  std::set<Key> sent, received;
  uint64_t bytes = 0;
  for (uint64_t rank = 0; rank < ranks.size(); ++rank)
    for (const Node& node : ranks[rank]) {
      EXPECT_EQ(node.id, static_cast<uint64_t>(&node - ranks[rank].data()));
      for (uint64_t before : node.data) EXPECT_LT(before, node.id);
      for (uint64_t before : node.control) EXPECT_LT(before, node.id);
      if (node.type == kCompute) continue;
      const uint64_t tag = node.attributes.at("comm_tag"), size = node.attributes.at("comm_size");
      if (node.type == kSend) {
        EXPECT_TRUE(sent.emplace(rank, node.attributes.at("comm_dst"), tag, size).second);
        bytes += size;
      } else {
        EXPECT_EQ(node.type, kReceive);
        EXPECT_TRUE(received.emplace(node.attributes.at("comm_src"), rank, tag, size).second);
      }
    }
  EXPECT_EQ(sent, received);
  std::vector<std::vector<bool>> done(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) done[r].resize(ranks[r].size());
  std::set<Key> under_way;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < ranks.size(); ++r)
      for (const Node& node : ranks[r]) {
        bool ready = !done[r][node.id];
        for (uint64_t before : node.data) ready = ready && done[r][before];
        for (uint64_t before : node.control) ready = ready && done[r][before];
        if (ready && node.type == kReceive)
          ready =
              under_way.contains({node.attributes.at("comm_src"), r, node.attributes.at("comm_tag"),
                                  node.attributes.at("comm_size")});
        if (!ready) continue;
        if (node.type == kSend)
          under_way.emplace(r, node.attributes.at("comm_dst"), node.attributes.at("comm_tag"),
                            node.attributes.at("comm_size"));
        moved = done[r][node.id] = true;
      }
  }
  for (size_t r = 0; r < ranks.size(); ++r)
    for (size_t i = 0; i < ranks[r].size(); ++i) EXPECT_TRUE(done[r][i]) << r << " " << i;
  return bytes;
}

TEST(ChakraTest, WorkedExample) {
  const Topology ring = UniRing(3);
  const Schedule schedule = RingAllGather(ring);
  const auto ranks = MustTrace(ring, schedule, {.size_bytes = 300});
  ASSERT_EQ(ranks.size(), 3U);
  for (uint64_t r = 0; r < 3; ++r) {
    // In step 0 its own shard goes, in step 1 what step 0 brought.
    ASSERT_EQ(ranks[r].size(), 4U);
    const uint64_t next = (r + 1) % 3, last = (r + 2) % 3;
    const std::vector<uint64_t> types{kSend, kReceive, kSend, kReceive}, tags{0, 0, 1, 1};
    for (size_t i = 0; i < 4; ++i) {
      const Node& node = ranks[r][i];
      EXPECT_EQ(node.type, types[i]);
      EXPECT_EQ(node.attributes.at("comm_size"), 100U);
      EXPECT_EQ(node.attributes.at("comm_tag"), tags[i]);
      EXPECT_EQ(node.attributes.at("is_cpu_op"), 0U);
      EXPECT_EQ(node.attributes.at(i % 2 == 0 ? "comm_dst" : "comm_src"), i % 2 == 0 ? next : last);
      EXPECT_EQ(node.data, i == 2 ? std::vector<uint64_t>{1} : std::vector<uint64_t>{});
      EXPECT_TRUE(node.control.empty());
    }
    EXPECT_EQ(ranks[r][0].name, "by-hand send to " + std::to_string(next) + " 0");
  }
  const auto in_order = MustTrace(ring, schedule, {.size_bytes = 300, .in_order = true});
  EXPECT_EQ(in_order[0][2].control, (std::vector<uint64_t>{0}));
}

TEST(ChakraTest, BytesOfTheFirstNode) {
  const Topology ring = UniRing(2);
  const std::string file = ToChakra(ring, RingAllGather(ring), {.size_bytes = 600})->at(0);
  // Metadata: field 1, 5 characters. Node: id 0, a name of 19, type 5, three attributes.
  EXPECT_EQ(file.substr(0, 8), std::string("\x07\x0a\x05"
                                           "0.0.4"));
  EXPECT_EQ(file.substr(9, 4), std::string("\x08\x00\x12\x13", 4));
  EXPECT_NE(file.find(std::string("\x0a\x09"
                                  "comm_size\x48\xac\x02")),
            std::string::npos);
}

TEST(ChakraTest, WhatIsReducedIsSentAfterTheReduction) {
  // 0 -> 1 -> 2, each adds its own.
  const Topology path = Path(3);
  Schedule schedule = Empty(path, MustMake(CollectiveKind::kReduce, 3, {.root = 2}));
  Add(schedule, 0, 0, LinkOf(path, 0, 1), TransferOp::kReduce);
  Add(schedule, 1, 0, LinkOf(path, 1, 2), TransferOp::kReduce);
  const auto ranks = MustTrace(path, schedule, {.size_bytes = 7});
  ASSERT_EQ(ranks[1].size(), 3U);
  EXPECT_EQ(ranks[1][0].type, kReceive);
  EXPECT_EQ(ranks[1][1].type, kCompute);
  EXPECT_EQ(ranks[1][1].data, (std::vector<uint64_t>{0}));
  EXPECT_EQ(ranks[1][2].data, (std::vector<uint64_t>{1}));
  EXPECT_EQ(CheckTraces(ranks), 14U);
}

TEST(ChakraTest, RanksWithoutMessagesHaveSomethingToStartWith) {
  const Topology one = MustBuild(Topology::Builder(1));
  const auto ranks =
      MustTrace(one, Empty(one, MustMake(CollectiveKind::kAllGather, 1)), {.size_bytes = 1});
  ASSERT_EQ(ranks.at(0).size(), 1U);
  EXPECT_EQ(ranks[0][0].type, kCompute);
}

TEST(ChakraProperty, TracesOfSynthesizedSchedulesComeToTheirEndAndSendAllBytes) {
  for (const char* network : {"ring(5)", "torus(3,3)", "hypercube(3)", "complete(4)", "dgx1"}) {
    const Result<Topology> topology = ParseTopology(network);
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
          CollectiveKind::kBroadcast, CollectiveKind::kAllToAll})
      for (const char* name : {"ring", "bfb", "direct", "dbt", "ten", "bruck"}) {
        const Synthesizer& synthesizer = **FindSynthesizer(name);
        Collective::Options of_collective;
        if (synthesizer.one_shard_all_reduce && kind == CollectiveKind::kAllReduce)
          of_collective.all_reduce_shards = 1;
        const Collective collective = MustMake(kind, topology->num_ranks(), of_collective);
        const Result<Schedule> schedule = RunSynthesizer(
            synthesizer, *topology, collective,
            OptionsFor(synthesizer, {.size_bytes = int64_t{1} << 20, .element_bytes = 4}));
        if (!schedule) continue;
        SCOPED_TRACE(std::string(network) + " " + std::string(Name(kind)) + " " + name);
        for (const bool in_order : {false, true}) {
          // All parts are whole bytes.
          const int64_t size =
              int64_t{5040} * schedule->collective.num_shards() * schedule->units_per_shard;
          Rational expected;
          for (const Transfer& transfer : schedule->transfers)
            expected += schedule->collective.ShardBytes(transfer.shard, size) *
                        Rational(transfer.units(), schedule->units_per_shard);
          const uint64_t sent = CheckTraces(
              MustTrace(*topology, *schedule, {.size_bytes = size, .in_order = in_order}));
          EXPECT_EQ(Rational(static_cast<int64_t>(sent)), expected);
        }
      }
  }
}

TEST(ChakraTest, BadInput) {
  const Topology ring = UniRing(3);
  const Result<std::vector<std::string>> none = ToChakra(ring, RingAllGather(ring), {});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().message, "--size must be at least 1 byte");
  Schedule large = Empty(ring, MustMake(CollectiveKind::kAllGather, 3), 1 << 30);
  const auto refused = ToChakra(ring, large, {.size_bytes = 1});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
}

}  // namespace
}  // namespace tutti
