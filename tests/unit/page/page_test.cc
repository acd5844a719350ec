#include "tutti/page/page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compress.h"
#include "drawn_grid.h"
#include "grouping.h"
#include "json_text.h"
#include "node_places.h"
#include "support/parse.h"
#include "tutti/base/parallel.h"
#include "tutti/base/random.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/page/network_svg.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

using test_support::Parse;

using Json = nlohmann::json;

Schedule MustMake(const Topology& topology, CollectiveKind kind) {
  const Result<Collective> collective = Collective::Make(kind, topology.num_ranks());
  const Result<const Synthesizer*> bfb = FindSynthesizer("bfb");
  Result<Schedule> schedule = RunSynthesizer(**bfb, topology, *collective, {});
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  EXPECT_TRUE(Verify(topology, schedule->collective, *schedule).verified());
  return *std::move(schedule);
}

TEST(PageData, HoldsASmallScheduleNumberForNumber) {  // two ranks send each other their shard
  const Topology pair = Parse("complete(2,bw=1GB/s,alpha=1us)");
  const Result<Collective> all_gather = Collective::Make(CollectiveKind::kAllGather, 2);
  Schedule schedule{.collective = *all_gather, .num_steps = 1};
  schedule.transfers = {{ShardId{0}, LinkId{0}, 0, 1, 0}, {ShardId{1}, LinkId{1}, 0, 1, 0}};
  schedule.topology_fingerprint = pair.Fingerprint();
  ASSERT_TRUE(Verify(pair, schedule.collective, schedule).verified());
  const Result<Bounds> bounds = BoundsOf(pair, schedule.collective);
  SimOptions options{.size_bytes = 2000, .record_messages = true};
  const Result<SimReport> report = Simulate(pair, schedule, options);
  PageData data("test");
  data.AddSchedule(data.AddNetwork(pair), pair, schedule,
                   {.label = "one",
                    .size_bytes = 2000,
                    .bounds = &*bounds,
                    .report = &*report,
                    .options = options,
                    .verified = true});
  const Json json = Json::parse(data.ToJson());
  EXPECT_EQ(json["format"], "tutti-explorer");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["networks"][0]["links"]["tail"], Json({0, 1}));
  EXPECT_EQ(json["networks"][0]["links"]["bandwidth"], Json({1'000'000'000, 1'000'000'000}));
  EXPECT_EQ(json["networks"][0]["links"]["alpha_ps"], Json({1'000'000, 1'000'000}));
  EXPECT_EQ(json["networks"][0]["names"], nullptr);
  const Json& made = json["schedules"][0];
  EXPECT_EQ(made["transfers"]["shard"], Json({0, 1}));
  EXPECT_EQ(made["transfers"]["link"], Json({0, 1}));
  EXPECT_EQ(made["messages"]["start_ps"], Json({0, 0}));
  EXPECT_EQ(made["messages"]["arrive_ps"], Json({2'000'000, 2'000'000}));  // 1 us + 1000 B / 1 GB/s
  EXPECT_EQ(made["messages"]["bytes"], Json({1000, 1000}));
  EXPECT_EQ(made["simulation"]["time_ps"], 2'000'000);
  EXPECT_EQ(made["bound_ps"], 2'000'000);
  EXPECT_EQ(made["bounds"]["cut"]["count"], 1);
  EXPECT_EQ(made["verified"], true);
}

TEST(PageData, MessagesCarryWhatTransfersSay) {
  for (const char* expression : {"torus(3,4)", "dgx1", "genkautz(3,10)", "mesh(2,3,bw=[1,3]GB/s)"})
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
      SCOPED_TRACE(expression);
      const Topology topology = Parse(expression);
      const Schedule schedule = MustMake(topology, kind);
      SimOptions options{.size_bytes = 1 << 20, .record_messages = true};
      const Result<SimReport> report = Simulate(topology, schedule, options);
      PageData data("test");
      data.AddSchedule(
          data.AddNetwork(topology), topology, schedule,
          {.label = "x", .size_bytes = 1 << 20, .report = &*report, .options = options});
      const Json made = Json::parse(data.ToJson())["schedules"][0];
      const Json& messages = made["messages"];
      EXPECT_EQ(made["transfers"]["link"].size(), schedule.transfers.size());
      for (size_t i = 0; i < messages["link"].size(); ++i) {
        const auto first = messages["first"][i].get<size_t>();
        EXPECT_EQ(schedule.transfers[first].link.value, messages["link"][i]);
        EXPECT_EQ(schedule.transfers[first].step, messages["step"][i]);
        EXPECT_LE(messages["start_ps"][i], messages["free_ps"][i]);
        EXPECT_LE(messages["free_ps"][i], messages["arrive_ps"][i]);
        EXPECT_LE(messages["arrive_ps"][i], made["simulation"]["time_ps"]);
      }
    }
}

TEST(PageData, AnExecutionIsShownAsASimulationIs) {
  const Topology pair = Parse("complete(2,bw=1GB/s,alpha=1us)");
  const Schedule schedule = MustMake(pair, CollectiveKind::kAllGather);
  PageData data("test");
  const int32_t network = data.AddNetwork(pair);
  EXPECT_EQ(data.AddNetwork(pair), network);
  data.AddExecuted(
      network, pair, schedule, {.label = "x", .size_bytes = 2000},
      {{.from = 1, .to = 0, .start_s = 2e-6, .end_s = 5e-6, .busy_s = 1e-6, .bytes = 1000},
       {.from = 0, .to = 1, .start_s = 1e-6, .end_s = 4e-6, .busy_s = 2e-6, .bytes = 1000}});
  const Json json = Json::parse(data.ToJson());
  ASSERT_EQ(json["networks"].size(), 1);
  const Json& made = json["schedules"][0];
  EXPECT_EQ(made["simulation"]["mode"], "executed");
  EXPECT_EQ(made["simulation"]["time_ps"], 5'000'000);
  EXPECT_EQ(made["simulation"]["max_in_flight"], 2);
  EXPECT_EQ(made["simulation"]["use"]["busy_ps"], Json({2'000'000, 1'000'000}));
  EXPECT_EQ(made["messages"]["link"], Json({0, 1}));  // by start
  EXPECT_EQ(made["messages"]["start_ps"], Json({1'000'000, 2'000'000}));
  EXPECT_FALSE(made.contains("transfers"));
}

TEST(PageData, AnExecutionThroughSwitchesIsBetweenPairsOfRanks) {
  const Topology star = Parse("switch(3)");
  const Schedule schedule{.collective = *Collective::Make(CollectiveKind::kAllGather, 3)};
  PageData data("test");
  data.AddExecuted(data.AddNetwork(star), star, schedule, {.label = "x", .size_bytes = 3},
                   {{.from = 2, .to = 0, .end_s = 1}, {.from = 0, .to = 1, .end_s = 1}});
  const Json json = Json::parse(data.ToJson());
  ASSERT_EQ(json["networks"].size(), 2);
  EXPECT_EQ(json["networks"][1]["nodes"], 3);
  EXPECT_EQ(json["networks"][1]["links"]["tail"], Json({0, 2}));
  EXPECT_EQ(json["schedules"][0]["network"], 1);
}

TEST(PageData, AComparisonIsItsCurvesAndRows) {
  const Topology pair = Parse("complete(2)");
  PageData data("test");
  data.AddComparison(data.AddNetwork(pair), {.collective = CollectiveKind::kAllReduce,
                                             .how = "simulated",
                                             .bus_factor = 1,
                                             .rows = {{"ring", 1024, 2e-6, 3e-6, 1e-6, 2}},
                                             .curves = {{"ring", {1024, 2048}, {2e-6, 4e-6}}},
                                             .bound = {"bound", {1024, 2048}, {1e-6, 2e-6}},
                                             .best = {{"ring", 1}},
                                             .missing = {{"rhd", "why"}}});
  const Json made = Json::parse(data.ToJson())["comparison"];
  EXPECT_EQ(made["collective"], "all-reduce");
  EXPECT_EQ(made["rows"][0]["time_ps"], 2'000'000);
  EXPECT_EQ(made["rows"][0]["steps"], 2);
  EXPECT_EQ(made["curves"][0]["time_ps"], Json({2'000'000, 4'000'000}));
  EXPECT_EQ(made["bound"]["size_bytes"], Json({1024, 2048}));
  EXPECT_EQ(made["best"][0], Json({{"algorithm", "ring"}, {"from_bytes", 1}}));
  EXPECT_EQ(made["missing"][0]["reason"], "why");
}

TEST(PageData, DesignsKeepExactCosts) {
  PageData data("test");
  const int32_t network = data.AddNetwork(Parse("ring(3)"));
  data.AddDesigns({.ranks = 3,
                   .degree = 2,
                   .tl_bound = 2,
                   .tb_bound = Rational(4, 3),
                   .rows = {{.recipe = "ring(3)",
                             .algorithm = "bfb",
                             .network = network,
                             .tl = 2,
                             .diameter = 1,
                             .tb = Rational(4, 3),
                             .reasons = {"why"},
                             .time_s = 1e-6}}});
  const Json made = Json::parse(data.ToJson())["designs"];
  EXPECT_EQ(made["tb_bound"]["exact"], "4/3");
  EXPECT_EQ(made["best"], -1);
  EXPECT_FALSE(made.contains("bound_ps"));
  EXPECT_EQ(made["rows"][0]["tb"], made["tb_bound"]);
  EXPECT_EQ(made["rows"][0]["time_ps"], 1'000'000);
  EXPECT_EQ(made["rows"][0]["reasons"], Json({"why"}));
  EXPECT_FALSE(made["rows"][0].contains("f_lower"));
}

TEST(PageData, AFlowIsALoadAndALengthALink) {
  const Topology pair = Parse("complete(2,bw=1GB/s)");
  PageData data("test");
  data.AddFlow(data.AddNetwork(pair), pair,
               {Rational(1, 2), Rational(1), false, {5e8, 1e9}, {3, 4}});
  const Json made = Json::parse(data.ToJson())["flows"][0];
  EXPECT_EQ(made["f"]["exact"], "1/2");
  EXPECT_EQ(made["proven"], 0);
  EXPECT_EQ(made["load"], Json({500'000'000, 1'000'000'000}));
  EXPECT_EQ(made["length"], Json({3, 4}));
  EXPECT_EQ(made["min_bandwidth"], 1'000'000'000);
}

TEST(PageData, AFlowOfALargeNetworkIsSummedUp) {
  const Topology torus = Parse("torus(80,80,bw=1GB/s)");
  PageData data("test");
  const auto links = static_cast<size_t>(torus.num_links());
  data.AddFlow(data.AddNetwork(torus), torus,
               {Rational(1), Rational(1), false, std::vector<double>(links, 1e9),
                std::vector<int64_t>(links, 1)});
  const Json json = Json::parse(data.ToJson());
  const Json& made = json["flows"][0];
  EXPECT_EQ(made["load"], json["networks"][0]["groups"]["bandwidth"]);  // every link is full
  EXPECT_TRUE(made["length"].empty());
}

TEST(PageData, TrainingIsItsEvents) {
  using Activity = PageTraining::Activity;
  PageTraining training{.workload = "w", .how = "x"};
  training.rows.push_back({.algorithm = "ring", .iteration_ps = 30, .exposed_ps = 10});
  training.rows[0].events = {{Activity::kCompute, "a<b", 0, 20},
                             {Activity::kAllReduce, "c", 20, 30}};
  const auto made = [&training] {
    PageData data("test");
    data.AddTraining(data.AddNetwork(Parse("ring(3)")), training);
    return Json::parse(data.ToJson())["training"];
  };
  const Json whole = made();
  EXPECT_EQ(whole["rows"][0]["iteration_ps"], 30);
  EXPECT_EQ(whole["rows"][0]["events"]["activity"], Json({0, 2}));
  EXPECT_EQ(whole["rows"][0]["events"]["end_ps"], Json({20, 30}));
  EXPECT_EQ(whole["rows"][0]["events"]["name"], Json({"a<b", "c"}));
  EXPECT_EQ(whole["omitted"], "");
  training.rows[0].events.resize(PageData::kMaxEvents + 1);
  EXPECT_TRUE(made()["rows"][0]["events"]["name"].empty());
  EXPECT_NE(made()["omitted"], "");
}

TEST(PageData, OneRankHasNothingToDo) {
  const Topology topology = Parse("mesh(1)");
  PageData data("test");
  const int32_t network = data.AddNetwork(topology);
  const Result<Collective> collective = Collective::Make(CollectiveKind::kAllGather, 1);
  const Result<Bounds> bounds = BoundsOf(topology, *collective);
  data.AddLimit(network, topology, CollectiveKind::kAllGather, *bounds);
  data.AddSchedule(network, topology, Schedule{.collective = *collective},
                   {.label = "x", .size_bytes = 1});
  const Json json = Json::parse(data.ToJson());
  EXPECT_EQ(json["networks"][0]["links"]["tail"], Json::array());
  EXPECT_EQ(json["schedules"][0]["transfers_total"], 0);
  EXPECT_FALSE(json["schedules"][0].contains("simulation"));
}

TEST(PageData, LargeNetworksAreGroups) {
  for (const char* expression : {"torus(80,80)", "hypercube(13)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    PageData data("test");
    data.AddNetwork(topology);
    const Json network = Json::parse(data.ToJson())["networks"][0];
    EXPECT_FALSE(network.contains("links"));
    const Json& groups = network["groups"];
    EXPECT_LE(groups["names"].size(), size_t{PageData::kMaxGroups});
    int64_t nodes = 0, links = 0;
    for (const Json& count : groups["nodes"]) nodes += count.get<int64_t>();
    for (const Json& count : groups["links"]) links += count.get<int64_t>();
    EXPECT_EQ(nodes, topology.num_nodes());
    EXPECT_LE(links, topology.num_links());
    EXPECT_GT(links, 0);
  }
}

TEST(Grouping, CoversEveryNodeAndLeavesNoGroupEmpty) {
  for (const char* expression : {"torus(5,7)", "mesh(2,3,4)", "ring(9)", "switch(6)", "dgx_h100(2)",
                                 "fat_tree(4)", "random_regular(3,14,seed=2)", "mesh(1)"})
    for (const int32_t most : {1, 2, 5, 8, 100}) {
      SCOPED_TRACE(fmt::format("{} {}", expression, most));
      const Topology topology = Parse(expression);
      const Grouping grouping = GroupNodes(topology, most);
      ASSERT_EQ(grouping.group_of.size(), static_cast<size_t>(topology.num_nodes()));
      EXPECT_LE(grouping.num_groups(), most);
      std::vector<int32_t> sizes(grouping.names.size());
      for (const int32_t group : grouping.group_of) ++sizes.at(static_cast<size_t>(group));
      EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 0), 0);
    }
}

TEST(NodePlaces, AreInTheUnitSquareAndApart) {
  using Kind = NodePlaces::Kind;
  const std::vector<std::pair<std::string, Kind>> cases = {
      {"torus(3,4)", Kind::kGrid},
      {"mesh(2,3,4)", Kind::kGrid},
      {"ring(7)", Kind::kCircle},
      {"dgx1", Kind::kCircle},
      {"switch(5)", Kind::kLayers},
      {"fat_tree(4)", Kind::kLayers},
      {"genkautz(3,30)", Kind::kForces},
      {"mesh(1)", Kind::kGrid},
      {"torus(3,2,3,2)", Kind::kGrid},
      {"without(torus(4,4),links=2,seed=1)", Kind::kGrid},
      {"without(torus(4,5),nodes=3,seed=2)", Kind::kGrid}};
  for (const auto& [expression, kind] : cases) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    std::vector<std::pair<int32_t, int32_t>> cables;
    for (const LinkId link : topology.Links())
      cables.emplace_back(topology.tail(link).value, topology.head(link).value);
    const NodePlaces places =
        PlaceNodes(topology.num_nodes(), topology.num_ranks(), DrawnGridOf(topology), cables);
    EXPECT_EQ(places.kind, kind);
    std::set<std::pair<int64_t, int64_t>> taken;
    for (size_t i = 0; i < places.x.size(); ++i) {
      EXPECT_GE(std::min(places.x[i], places.y[i]), -1e-9);
      EXPECT_LE(std::max(places.x[i], places.y[i]), 1 + 1e-9);
      taken.emplace(std::llround(places.x[i] * 1e4), std::llround(places.y[i] * 1e4));
    }
    EXPECT_EQ(taken.size(), static_cast<size_t>(topology.num_nodes()));
  }
}

TEST(DrawnGrid, IsKeptByWhatIsLeftOfATorus) {
  const auto grid =
      DrawnGridOf(Parse("without(without(torus(4,5),nodes=3,seed=2),links=1,seed=1)"));
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->shape, (GridShape{{4, 5}, true}));
  EXPECT_EQ(grid->at.size(), 17U);
  EXPECT_TRUE(DrawnGridOf(Parse("torus(3,3)"))->at.empty());
  EXPECT_EQ(DrawnGridOf(Parse("without(mesh(3,3),link=0-1)"))->shape, (GridShape{{3, 3}, false}));
  for (const char* other :
       {"genkautz(3,9)", "without(genkautz(3,9),links=1,seed=1)", "fat_tree(4)"})
    EXPECT_FALSE(DrawnGridOf(Parse(other)).has_value()) << other;
}

// A name is what a file says: it must be true of the links.
TEST(DrawnGrid, IsNotBelievedWhereLinksSayOtherwise) {
  const auto named = [](const std::string& name, int32_t head) {
    Topology::Builder builder(9);
    builder.SetName(name);
    for (int32_t node = 0; node < 9; ++node)
      builder.AddDuplex(NodeId{node}, NodeId{(node + 1) % 9}, {});
    if (head >= 0) builder.AddDuplex(NodeId{0}, NodeId{head}, {});
    return *std::move(builder).Build();
  };
  EXPECT_FALSE(DrawnGridOf(named("without(torus(3,3),links=1)", -1)).has_value());
  EXPECT_TRUE(DrawnGridOf(named("without(torus(9),links=1)", -1)).has_value());
  EXPECT_FALSE(DrawnGridOf(named("without(torus(9),links=1)", 4)).has_value());
  for (const char* name :
       {"without(torus(99999,99999,99999),links=1)", "without(torus(3,2),links=1)",
        "without(torus(", "without(torus(0,9))", "without(torus(x,9))"})
    EXPECT_FALSE(DrawnGridOf(named(name, -1)).has_value()) << name;
}

TEST(DrawnGrid, NeighboursAreOneStepApart) {
  const GridShape torus{{3, 4}, true}, mesh{{3, 4}, false};
  EXPECT_TRUE(AreNeighbours(torus, 0, 3) && AreNeighbours(torus, 0, 8) &&
              AreNeighbours(mesh, 5, 6));
  EXPECT_FALSE(AreNeighbours(mesh, 0, 3) || AreNeighbours(torus, 0, 5) ||
               AreNeighbours(torus, 2, 2));
}

TEST(NodePlaces, BoxesStandAboveTheirSwitchAndBelowTheRails) {
  // Two boxes of two ranks behind switches 4 and 5; rails 6 and 7 join the first and the second.
  const NodePlaces places = PlaceNodes(
      8, 4, std::nullopt, {{0, 4}, {1, 4}, {2, 5}, {3, 5}, {0, 6}, {2, 6}, {1, 7}, {3, 7}});
  for (const size_t rank : {0U, 1U, 2U, 3U}) {
    EXPECT_LT(places.y[rank], places.y[rank < 2 ? 4 : 5]);
    EXPECT_GT(places.y[rank], places.y[6]);
  }
  EXPECT_EQ(places.x[4], (places.x[0] + places.x[1]) / 2);
  EXPECT_GT(places.x[2] - places.x[1], places.x[1] - places.x[0]);
}

// How often `part` stands in `text`.
size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(NetworkSvg, DrawsANodeARankAndALineACable) {
  const std::string svg = NetworkSvg(Parse("mesh(2,3,bw=[1,3]GB/s)"));
  EXPECT_EQ(Count(svg, "<circle"), 6U);
  EXPECT_EQ(Count(svg, "<path d=\"M") - 4, 7U);  // of those, two arrow heads and two of the legend
  EXPECT_NE(svg.find(">1GB/s: 3 lines<"), std::string::npos);
  EXPECT_NE(svg.find(">3GB/s: 4 lines<"), std::string::npos);
  EXPECT_EQ(svg.find("marker-end"), std::string::npos);  // all cables are two-way
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(NetworkSvg(Parse("mesh(2,3,bw=[1,3]GB/s)")), svg);
}

TEST(NetworkSvg, LinksOfOneWayAreArrows) {
  const Topology topology = Parse("genkautz(2,7)");
  EXPECT_GT(Count(NetworkSvg(topology), "marker-end"), 0U);
  EXPECT_EQ(Count(NetworkSvg(Parse("switch(4)")), "<rect x="), 1U);  // a switch is a square
}

TEST(NetworkSvg, LargeNetworksAreGroups) {
  const std::string svg = NetworkSvg(Parse("torus(80,80)"));
  EXPECT_NE(svg.find("drawn as "), std::string::npos);
  EXPECT_LT(svg.size(), 200'000U);
}

TEST(NetworkSvg, NamesAreTextAndNoMarkup) {
  Topology::Builder builder(2);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  builder.SetNodeNames({"<script>alert(1)</script>", "\xff\"&"});
  builder.SetName("</title><a href=\"x\">");
  const Result<Topology> topology = std::move(builder).Build();
  ASSERT_TRUE(topology.has_value());
  const std::string svg = NetworkSvg(*topology);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<a "), std::string::npos);
  EXPECT_EQ(svg.find('\xff'), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
}

TEST(JsonText, EscapesWhatFilesNameThemselves) {
  EXPECT_EQ(QuotedJson("</script>\"\n"), R"("</script>\"\n")");
  EXPECT_TRUE(Json::accept(QuotedJson("\xff\xfe")));
  JsonObject object;
  object.AddReal("x", 1.0 / 0.0);
  object.AddColumn("y", 3, [](size_t i) { return static_cast<int64_t>(i) - 1; });
  EXPECT_EQ(object.ToString(), R"({"x":null,"y":[-1,0,1]})");
}

TEST(MakePage, IsTheTemplateWithTheDataInItsPlace) {
  const std::string hostile = R"({"name":"</script><script>alert(1)</script>"})";
  const Result<std::string> page = MakePage(hostile);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->find("alert(1)"), std::string::npos);
  EXPECT_NE(page->find(fmt::format("data-bytes=\"{}\"", hostile.size())), std::string::npos);
  EXPECT_EQ(page->find("<!--tutti-data-->"), std::string::npos);
  EXPECT_EQ(*MakePage(hostile), *page);
  EXPECT_NE(ExplorerTemplate().find("<!--tutti-data-->"), std::string_view::npos);
}

std::string Decompressed(const std::string& compressed, size_t size) {
  std::string text(size + 1, '\0');  // one more than there may be
  auto written = static_cast<uLongf>(text.size());
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &written,
                       reinterpret_cast<const Bytef*>(compressed.data()),
                       static_cast<uLong>(compressed.size())),
            Z_OK);
  text.resize(written);
  return text;
}

// As a column of a page: numbers that grow by little.
std::string NumbersAsText(size_t bytes) {
  Random rng(bytes);
  std::string text;
  for (int64_t number = 0; text.size() < bytes; number += static_cast<int64_t>(rng.Below(100)))
    text += std::to_string(number) + ",";
  text.resize(bytes);
  return text;
}

TEST(Compress, IsOneStreamWhateverTheNumberOfPiecesAndThreads) {
  constexpr size_t kPiece = size_t{1} << 19;
  for (const size_t bytes :
       {size_t{0}, size_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 5 * kPiece + 12'345}) {
    const std::string text = NumbersAsText(bytes);
    SetNumThreads(1);
    const Result<std::string> one = Compress(text);
    SetNumThreads(0);
    const Result<std::string> many = Compress(text);
    ASSERT_TRUE(one.has_value() && many.has_value());
    EXPECT_EQ(*one, *many);
    EXPECT_EQ(Decompressed(*one, bytes), text) << bytes;
  }
}

TEST(Compress, APieceRefersBackIntoTheOneBefore) {
  constexpr size_t kPiece = size_t{1} << 19;
  std::string text = NumbersAsText(kPiece);
  const size_t alone = Compress(text)->size();
  text += text.substr(kPiece - 20'000);  // what the window still holds
  EXPECT_LT(Compress(text)->size(), alone + 1'000);
}

}  // namespace
}  // namespace tutti
