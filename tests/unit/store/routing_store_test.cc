#include "tutti/store/routing_store.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/text.h"
#include "tutti/base/file.h"
#include "tutti/base/file_kind.h"
#include "tutti/base/random.h"
#include "tutti/route/router.h"
#include "tutti/store/store.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/routing.h"

namespace tutti {
namespace {

using testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

RoutingFile MustMake(const std::string& expression, const char* router,
                     const RouterOptions& options = {}) {
  Topology topology = *ParseTopology(expression);
  Routing routing = RunRouter(*FindRouter(router), topology, options)->routing;
  return {std::move(topology), std::move(routing)};
}

TEST(RoutingStore, BothFormatsKeepEverything) {
  RouterOptions with_demand;
  for (int64_t i = 0; i < 36; ++i) with_demand.demand.push_back(i % 5 * 1'000'000'007);
  RoutingFile layered = MustMake("uniring(2,5)", "ewsp");
  layered.routing.num_layers = 3;
  for (int64_t i = 0; i < layered.routing.num_paths(); ++i)
    layered.routing.layer.push_back(static_cast<int16_t>(i % 3));
  const RoutingFile files[] = {MustMake("genkautz(4,50)", "mcf"),
                               MustMake("switch(6)", "pmcf", with_demand), MustMake("dgx1", "sssp"),
                               std::move(layered)};
  for (const auto& [topology, routing] : files) {
    SCOPED_TRACE(topology.name());
    const std::string json = *RoutingToJson(topology, routing);
    const Result<RoutingFile> from_json = RoutingFromJson(json);
    ASSERT_TRUE(from_json.has_value()) << from_json.error().message;
    EXPECT_EQ(from_json->routing, routing);
    EXPECT_EQ(from_json->topology.ToText(), topology.ToText());
    EXPECT_EQ(*RoutingToJson(from_json->topology, from_json->routing), json);

    const std::string binary = *RoutingToBinary(topology, routing);
    const Result<RoutingFile> from_binary = RoutingFromBinary(Bytes(binary));
    ASSERT_TRUE(from_binary.has_value()) << from_binary.error().message;
    EXPECT_EQ(from_binary->routing, routing);
    EXPECT_TRUE(CheckRouting(from_binary->topology, from_binary->routing).verified());
    EXPECT_LT(binary.size(), json.size());
  }
}

TEST(RoutingStore, BlocksFillAndGoOn) {
  // More than one block of paths, and of hops.
  const RoutingFile file = MustMake("ring(260)", "sssp");
  ASSERT_GT(file.routing.num_paths(), 1 << 16);
  const Result<RoutingFile> again =
      RoutingFromBinary(Bytes(*RoutingToBinary(file.topology, file.routing)));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->routing, file.routing);
}

TEST(RoutingStore, FilesByEndingAndByTheirFirstBytes) {
  const std::filesystem::path folder = test_support::OwnPath("routing_store");
  std::filesystem::create_directories(folder);
  const RoutingFile file = MustMake("ring(4)", "ewsp");
  for (const char* name : {"a.routes", "a.routes.json", "other.bin"}) {
    const std::string path = folder / name;
    ASSERT_TRUE(WriteRoutingFile(path, file.topology, file.routing).has_value());
    EXPECT_EQ(KindOfFile(path), FileKind::kRouting) << name;
    const Result<RoutingFile> read = ReadRoutingFile(path);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->routing, file.routing);
  }
  const Result<ScheduleFile> schedule = ReadScheduleFile(folder / "a.routes");
  ASSERT_FALSE(schedule.has_value());
  EXPECT_THAT(schedule.error().message, HasSubstr("holds a routing, not a schedule"));
  const Result<RoutingFile> other = ReadRoutingFile("tests/data/sched/k22_v1.sched");
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, HasSubstr("holds a schedule, not a routing"));
  EXPECT_EQ(ReadRoutingFile(folder / "missing.routes").error().code, ErrorCode::kIo);
  const Status nowhere = WriteRoutingFile(folder / "no" / "x.routes", file.topology, file.routing);
  EXPECT_FALSE(nowhere.has_value());
  std::filesystem::remove_all(folder);
}

// Version 1 of the format as it was written first; must stay readable.
TEST(RoutingStore, ReadsStoredFiles) {
  const Result<RoutingFile> binary = ReadRoutingFile("tests/data/sched/ring4_v3.routes");
  ASSERT_TRUE(binary.has_value()) << binary.error().message;
  const Result<RoutingFile> json = ReadRoutingFile("tests/data/sched/ring4_v1.routes.json");
  ASSERT_TRUE(json.has_value()) << json.error().message;
  EXPECT_EQ(binary->routing, json->routing);
  EXPECT_TRUE(CheckRouting(json->topology, json->routing).verified());
  EXPECT_EQ(RoutingRate(json->topology, json->routing), Rational(1, 2));
}

TEST(RoutingStore, DamageIsAlwaysFound) {
  const RoutingFile file = MustMake("genkautz(2,6)", "ewsp");
  const std::string whole = *RoutingToBinary(file.topology, file.routing);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const Result<RoutingFile> read = RoutingFromBinary(Bytes(damaged));
    ASSERT_FALSE(read.has_value()) << at;
    EXPECT_FALSE(read.error().message.empty());
    EXPECT_FALSE(RoutingFromBinary(Bytes(whole.substr(0, at))).has_value()) << at;
  }
}

struct Case {
  const char* from;  // replaced by `to` in a sound file
  const char* to;
  const char* message;
};

TEST(RoutingStore, JsonFaultsAreNamed) {
  const RoutingFile file = MustMake("ring(3)", "native");
  const std::string sound = *RoutingToJson(file.topology, file.routing);
  const Case cases[] = {
      {"tutti-routing", "tutti-sched", "this is no routing"},
      {"\"version\": 1,\n\"algorithm\"", "\"version\": 2,\n\"algorithm\"",
       "version 2 of the routing format is unknown"},
      {"\"units_per_demand\": 1", "\"units_per_demand\": 0", "units_per_demand = 0"},
      {"\"seed\": 1", "\"seed\": -1", "seed that is no number"},
      {"\"paths\"", "\"ways\"", "unknown key 'ways'"},
      {"\"topology\"", "\"topologie\"", "lacks the key 'topology'"},
      {"\"to\": 1, \"weight\": 1", "\"to\": 1, \"weight\": 0", "paths[0] has weight = 0"},
      {"\"from\": 0, \"to\": 1, \"weight\"", "\"from\": 3, \"to\": 1, \"weight\"",
       "paths[0] has from = 3"},
      {"\"nodes\": [0, 1]", "\"nodes\": [0, 7]", "names a node outside 0 .. 2"},
      {"\"nodes\": [0, 1]", "\"nodes\": [0]", "no list of at least two"},
      {"\"nodes\": [0, 1]", "\"nodes\": [1, 0]", "does not start at 'from'"},
      {"\"nodes\": [0, 1]", "\"nodes\": [0, 0]", "between which there are 0 links"},
      {"\"nodes\": [0, 1]", "\"links\": [99]", "names a link outside 0 .. 5"},
      {"\"nodes\": [0, 1]", "\"nodes\": [0, 1], \"links\": [1]", "do not fit each other"},
      {"\"nodes\": [0, 1]", "\"nodes\": [0, 1], \"layer\": 0", "no num_layers"},
      {"\"nodes\": [0, 1]", "\"nodes\": [0, 1], \"hops\": 1", "unknown key 'hops'"},
      {"\"from\": 0, \"to\": 1, \"weight\": 1, \"nodes\": [0, 1]",
       "\"from\": 2, \"to\": 1, \"weight\": 1, \"nodes\": [2, 1]",
       "paths[1] comes before the pair"},
      {"\"from\": 0, \"to\": 1", "\"from\": 0, \"from\": 0, \"to\": 1", "there twice"},
      {"\"paths\": [", "\"paths\": [[],", "paths[0] must be an object"},
      {"\"paths\": [", "\"paths\": [,", "syntax error at line"},
  };
  for (const Case& one : cases) {
    std::string text = sound;
    const size_t at = text.find(one.from);
    ASSERT_NE(at, std::string::npos) << one.from;
    text.replace(at, std::string(one.from).size(), one.to);
    const Result<RoutingFile> read = RoutingFromJson(text);
    ASSERT_FALSE(read.has_value()) << one.to;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(read.error().message, HasSubstr(one.message));
  }
}

TEST(RoutingStore, WritersRefuseWhatCannotBeWalked) {
  RoutingFile file = MustMake("ring(4)", "native");
  Routing broken = file.routing;
  broken.hops[0] = LinkId{static_cast<int32_t>(file.topology.num_links()) - 1};
  EXPECT_THAT(RoutingToBinary(file.topology, broken).error().message,
              HasSubstr("path 0 of the routing is no chain of links"));
  // JSON keeps it for the judge.
  const Result<RoutingFile> kept = RoutingFromJson(*RoutingToJson(file.topology, broken));
  ASSERT_TRUE(kept.has_value()) << kept.error().message;
  EXPECT_FALSE(CheckRouting(kept->topology, kept->routing).verified());
  file.routing.first_path.pop_back();
  EXPECT_EQ(RoutingToJson(file.topology, file.routing).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti
