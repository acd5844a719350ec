#include "chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "chart_axis.h"
#include "chart_data.h"

namespace tutti {
namespace {

Chart Small() {
  return {.title = "Ada's <chart>",
          .x_label = "ranks N",
          .y_label = "time (us)",
          .series = {{.name = "one", .points = {{1, 2}, {2, 4.5}}},
                     {.name = "two & more", .points = {{1, 1}, {2, 1e-9}}}}};
}

Chart Bars() {
  return {.title = "parts",
          .x_label = "",
          .y_label = "time",
          .series = {{.name = "low", .points = {{0, 1}, {1, 2}}},
                     {.name = "high", .points = {{0, 3}, {1, 0.63}}}},
          .bars = {"one", "two"}};
}

Chart Heat() {
  return {.title = "loads",
          .x_label = "to",
          .y_label = "from",
          .heat = HeatMap{.columns = 2,
                          .cells = {std::nullopt, 0.5, 1.0, 0.0},
                          .column_names = {},
                          .row_names = {"upper", "lower"},
                          .low = "idle",
                          .high = "full"}};
}

std::string Draw(const std::vector<Chart>& charts, int32_t a_row = 1) {
  const Result<std::string> svg = DrawSvg(charts, a_row);
  EXPECT_TRUE(svg.has_value()) << svg.error().message;
  return svg.value_or("");
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What is drawn, without the data that stands in front of it.
std::string Picture(const std::string& svg) { return svg.substr(svg.find("</metadata>")); }

TEST(ChartTest, LinesHaveTheirNamesAtTheirEndsAndNoLegend) {
  const std::string picture = Picture(Draw({Small()}));
  for (const char* part :
       {">Ada's &lt;chart&gt;<", ">ranks N<", ">time (us)<", ">one<", ">two &amp; more<"})
    EXPECT_EQ(Count(picture, part), 1u) << part << "\n" << picture;
}

TEST(ChartTest, PanelsHaveOneLegend) {
  Chart second = Small();
  second.title = "another";
  const std::string picture = Picture(Draw({Small(), second}));
  EXPECT_EQ(Count(picture, ">one<"), 1u);
  EXPECT_EQ(Count(picture, ">another<"), 1u);
}

TEST(ChartTest, TitlesThatDoNotFitAreWrapped) {
  Chart chart = Small();
  chart.title =
      "Links in use during an all-reduce of 1 GB on a network of a name that is long enough, and "
      "more";
  const std::string picture = Picture(Draw({chart, Small()}));
  EXPECT_EQ(picture.find(chart.title), picture.npos);
  EXPECT_NE(picture.find(">Links in use during"), picture.npos);
  for (const std::string& line : Wrapped(chart.title, 14, 460)) EXPECT_LE(TextWidth(line, 14), 460);
}

// A path of the legend without where it stands: its corners from the first one, and how it is drawn.
std::string LookOf(const std::string& path) {
  const size_t begin = path.find("d=\"M") + 4, end = path.find('"', begin);
  std::istringstream corners(path.substr(begin, end - begin));
  std::string look = path.substr(end);
  double first_x = 0, first_y = 0, x = 0, y = 0;
  char next = 0;
  corners >> first_x >> first_y;
  while (corners >> next && next == 'L' && corners >> x >> y)
    look += " " + std::to_string(std::lround(10 * (x - first_x))) + "," +
            std::to_string(std::lround(10 * (y - first_y)));
  return look;
}

TEST(ChartTest, TwentyFourSeriesAreAllDifferent) {
  for (const bool line : {true, false}) {
    Chart chart{.title = "many", .x_label = "x", .y_label = "y"};
    for (int k = 0; k < 24; ++k)
      chart.series.push_back(
          {.name = "series " + std::to_string(k), .line = line, .points = {{1, k}, {2, k + 1}}});
    const std::string picture = Picture(Draw({chart}));
    std::set<std::string> looks;
    size_t begin = picture.find("<path");
    for (int k = 0; k < 24; ++k) {
      const size_t end = picture.find(">series " + std::to_string(k) + "<");
      ASSERT_NE(end, picture.npos);
      std::string look;
      for (size_t at = picture.find("<path", begin); at < end; at = picture.find("<path", at + 1))
        look += LookOf(picture.substr(at, picture.find('>', at) - at));
      looks.insert(look);
      begin = end;
    }
    EXPECT_EQ(looks.size(), 24u) << picture;
  }
}

TEST(ChartTest, GreyIsOfWhatThereIsToCompareWith) {
  Chart chart = Small();
  chart.series[1].grey = true;
  const std::string picture = Picture(Draw({chart}));
  EXPECT_NE(picture.find("stroke=\"#8a939e\" stroke-width=\"1.8\""), picture.npos);
  EXPECT_EQ(picture.find("#d55e00"), picture.npos);
}

TEST(ChartTest, ManyPointsAreOnePath) {
  Chart chart = Small();
  chart.series[0].line = false;
  chart.series[0].points.clear();
  for (int i = 1; i < 3000; ++i) chart.series[0].points.emplace_back(i, i % 17);
  const std::string svg = Draw({chart});
  EXPECT_EQ(Count(svg, "stroke-linecap=\"round\""), 1u);
}

TEST(ChartTest, BarsLieOnEachOtherAndSayTheirSum) {
  const std::string picture = Picture(Draw({Bars()}));
  for (const char* part : {">one<", ">two<", ">low<", ">high<", ">2.63<"})
    EXPECT_EQ(Count(picture, part), 1u) << part;
  Chart beside = Bars();
  beside.beside = true;
  beside.series[1].like = "low";
  EXPECT_EQ(Count(Picture(Draw({beside})), ">2.63<"), 0u);
  EXPECT_GE(Count(Picture(Draw({beside})), "fill=\"#ffffff\" stroke=\"#0072b2\""), 2u);
}

TEST(ChartTest, SumsOfThousandsStandOverNarrowBars) {
  Chart chart{.title = "polaris", .x_label = "", .y_label = "microseconds"};
  for (const char* name : {"first", "second"}) {
    ChartSeries& series = chart.series.emplace_back(ChartSeries{.name = name});
    for (int bar = 0; bar < 8; ++bar) series.points.emplace_back(bar, 600 + bar);
  }
  for (int bar = 0; bar < 8; ++bar)
    chart.bars.push_back("shared-coalesced:b=" + std::to_string(bar));
  const std::string picture = Picture(Draw({chart, chart}));
  for (int bar = 0; bar < 8; ++bar)
    EXPECT_EQ(Count(picture, ">1,2" + std::to_string(bar / 5) + std::to_string(2 * bar % 10) + "<"),
              2u);
  // However low the plot is that long names leave: ticks enough to read it by.
  for (const char* tick : {">0<", ">500<", ">1,000<"}) EXPECT_EQ(Count(picture, tick), 2u) << tick;
}

TEST(ChartTest, BarsHaveTexturesForGreyPrint) {
  Chart chart{.title = "parts", .x_label = "", .y_label = "time", .bars = {"one"}};
  for (int k = 0; k < 6; ++k)
    chart.series.push_back({.name = "part " + std::to_string(k), .points = {{0, 1 + k}}});
  const std::string picture = Picture(Draw({chart, chart}));
  std::set<std::string> textures;
  for (int k = 1; k < 6; ++k) {
    const std::string id = "bar" + std::to_string(k);
    const size_t at = picture.find("<pattern id=\"" + id + "\"");
    ASSERT_NE(at, picture.npos) << id;
    EXPECT_EQ(Count(picture, "<pattern id=\"" + id + "\""), 1u);
    EXPECT_EQ(Count(picture, "fill=\"url(#" + id + ")\""), 3u) << "a sample and two bars";
    const size_t way = picture.find(" d=\"", at);
    textures.insert(picture.substr(way, picture.find('"', way + 4) - way));
  }
  EXPECT_EQ(textures.size(), 5u);
}

TEST(ChartTest, NamesOfUprightLinesAreWhereNoOtherLineIs) {
  const auto height_of_name = [](double value) {
    const Chart chart{
        .title = "a run",
        .x_label = "seconds",
        .y_label = "relative",
        .y_min = 0,
        .series = {{.name = "A", .points = {{0, 1}, {4, value}, {10, value}}},
                   {.name = "early", .grey = true, .points = {{2, 0}, {2, 1}}},
                   {.name = "others send", .grey = true, .points = {{5, 0}, {5, 1}}}}};
    const std::string picture = Picture(Draw({chart}));
    std::vector<double> found;
    for (const char* name : {">early<", ">others send<"}) {
      const size_t end = picture.find(name), at = picture.rfind(" y=\"", end);
      EXPECT_NE(end, picture.npos);
      found.push_back(std::stod(picture.substr(at + 4)));
    }
    EXPECT_EQ(found[0], found[1]);  // in one line
    return found[0];
  };
  EXPECT_LT(height_of_name(0.02), 100);  // the foot is taken
  EXPECT_GT(height_of_name(1), 300);     // the head is
}

TEST(ChartTest, PlotsOfARowBeginAtOneHeight) {
  Chart longer = Small();
  longer.title = "Links in use during an all-reduce of 1 GB on 3D Torus, and what they are held by";
  for (const std::vector<Chart>& charts : {std::vector{Small(), longer}, {longer, Small()}}) {
    const std::string picture = Picture(Draw(charts, 2));
    std::set<std::string> tops;
    for (size_t end = picture.find("stroke=\"#56616e\" fill=\"none\""); end != picture.npos;
         end = picture.find("stroke=\"#56616e\" fill=\"none\"", end + 1)) {
      const size_t at = picture.find(' ', picture.rfind("d=\"M", end));
      tops.insert(picture.substr(at, picture.find('V', at) - at));
    }
    EXPECT_EQ(tops.size(), 1u);
  }
}

TEST(ChartTest, HeatMapsHaveOneScaleAndTheirNames) {
  const std::string picture = Picture(Draw({Heat(), Heat()}, 2));
  for (const char* part : {">idle<", ">full<"}) EXPECT_EQ(Count(picture, part), 1u) << part;
  for (const char* part : {">upper<", ">lower<", ">to<", ">from<"})
    EXPECT_EQ(Count(picture, part), 2u) << part;
  // Three cells, of three tones; none for the fourth.
  EXPECT_EQ(Count(picture, "h1v1h-1z"), 6u);
}

TEST(ChartTest, CellsOfWordsSayThem) {
  Chart chart = Heat();
  chart.heat->cells.clear();
  chart.heat->words = {"7", "", "8", "7"};
  const std::string picture = Picture(Draw({chart}));
  EXPECT_EQ(Count(picture, ">7<"), 2u);
  EXPECT_EQ(Count(picture, ">idle<"), 0u);  // no scale
}

TEST(ChartTest, FiguresCarryTheirDataAndAreDrawnToTheSameBytes) {
  for (const auto& charts :
       {std::vector{Small()}, std::vector{Bars(), Small()}, std::vector{Heat(), Heat(), Heat()}}) {
    const std::string svg = Draw(charts, 2);
    const Result<DrawnCharts> carried = ChartsOf(svg);
    ASSERT_TRUE(carried.has_value()) << carried.error().message;
    ASSERT_EQ(carried->charts.size(), charts.size());
    EXPECT_EQ(carried->charts_a_row, 2);
    EXPECT_EQ(carried->charts[0].title, charts[0].title);
    if (!charts[0].series.empty()) {
      EXPECT_EQ(carried->charts[0].series[0].points, charts[0].series[0].points);
    }
    if (charts[0].heat) {
      EXPECT_EQ(carried->charts[0].heat->cells, charts[0].heat->cells);
    }
    EXPECT_EQ(Draw(carried->charts, carried->charts_a_row), svg);
  }
}

TEST(ChartProperty, WhateverIsDrawnIsInsideAndDrawnAgainAlike) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::vector<Chart> charts(1 + rng() % 4);
    for (Chart& chart : charts) {
      chart = {.title = std::string(rng() % 200, 'x'),
               .x_label = "x",
               .y_label = "y",
               .log_x = rng() % 2 == 0,
               .log_y = rng() % 2 == 0};
      for (uint64_t k = 0, n = 1 + rng() % 5; k < n; ++k) {
        ChartSeries& series = chart.series.emplace_back(
            ChartSeries{.name = "s" + std::to_string(k), .line = rng() % 3 != 0});
        for (uint64_t i = 0, points = 1 + rng() % 40; i < points; ++i)
          series.points.emplace_back(static_cast<double>(1 + i),
                                     std::pow(10.0, static_cast<double>(rng() % 12) - 6));
      }
    }
    const std::string svg = Draw(charts, 1 + static_cast<int32_t>(rng() % 3));
    const Result<DrawnCharts> carried = ChartsOf(svg);
    ASSERT_TRUE(carried.has_value());
    EXPECT_EQ(Draw(carried->charts, carried->charts_a_row), svg);
    for (const char* bad : {"nan", "inf", "\"-"})
      EXPECT_EQ(Picture(svg).find(bad), std::string::npos) << bad;
  }
}

TEST(ChartAxis, TicksAreRoundNumbers) {
  const auto texts = [](const ChartAxis& axis, size_t most, bool bytes = false) {
    std::vector<std::string> out;
    for (const AxisTick& tick : TicksOf(axis, most, bytes)) out.push_back(tick.text);
    return out;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts({0, 10}, 5), (Texts{"0", "2", "4", "6", "8", "10"}));
  EXPECT_EQ(texts({0.9, 1.31}, 5), (Texts{"0.9", "1", "1.1", "1.2", "1.3"}));
  EXPECT_EQ(texts({1, 2000, true}, 8), (Texts{"1", "10", "100", "1,000"}));
  EXPECT_EQ(texts({1, 20, true}, 8), (Texts{"1", "2", "5", "10", "20"}));
  EXPECT_EQ(texts({1024, 1 << 20, true}, 6, true),
            (Texts{"1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"}));
  EXPECT_EQ(NumberText(1.5e7, true), "15 MB");
  EXPECT_EQ(NumberText(1e-6, false), "1e-6");
  EXPECT_EQ(NumberText(2.5e9, false), "2.5e9");
}

TEST(ChartAxis, LabelsArePushedApartInOrder) {
  EXPECT_EQ(SpreadOut({10, 11, 40}, 10, 0, 50), (std::vector<double>{10, 20, 40}));
  EXPECT_EQ(SpreadOut({49, 50, 50, 50}, 10, 0, 50), (std::vector<double>{20, 30, 40, 50}));
}

struct BadChart {
  const char* name;
  void (*spoil)(Chart&);
  const char* message;
};

TEST(ChartTest, WhatCannotBeDrawnIsNamed) {
  const BadChart kBad[] = {
      {"empty series", [](Chart& c) { c.series[1].points.clear(); },
       "'high' of 'parts' has 0 points for 2 bars"},
      {"a bar without a part", [](Chart& c) { c.series[1].points.pop_back(); },
       "'high' of 'parts' has 1 points for 2 bars"},
      {"no series", [](Chart& c) { c.series.clear(); }, "'parts' has no series"},
      {"an empty line",
       [](Chart& c) {
         c.bars.clear();
         c.series[0].points.clear();
       },
       "nothing to draw: 'low' of 'parts' is empty"},
      {"no number", [](Chart& c) { c.series[0].points[0].second = std::nan(""); },
       "a point of 'low' of 'parts' is no number that can be drawn"},
      {"logarithm of 0", [](Chart& c) { c.log_x = true; },
       "'low' of 'parts' has the point (0, 1) on a logarithmic axis"},
      {"no rectangle",
       [](Chart& c) {
         c.heat =
             HeatMap{.columns = 2, .cells = {0.5, 0.5, 0.5}, .column_names = {}, .row_names = {}};
       },
       "'parts' has 3 cells in 2 columns"},
      {"no columns",
       [](Chart& c) {
         c.heat = HeatMap{.columns = 0, .cells = {0.5}, .column_names = {}, .row_names = {}};
       },
       "1 cells in 0 columns"},
      {"no cells",
       [](Chart& c) {
         c.heat = HeatMap{.columns = 3, .cells = {}, .column_names = {}, .row_names = {}};
       },
       "0 cells in 3 columns"},
      {"too few names",
       [](Chart& c) {
         c.heat =
             HeatMap{.columns = 1, .cells = {0.5, 1.0}, .column_names = {}, .row_names = {"a"}};
       },
       "1 columns and 2 rows, but 0 and 1 names"}};
  for (const BadChart& bad : kBad) {
    SCOPED_TRACE(bad.name);
    Chart chart = Bars();
    bad.spoil(chart);
    const Result<std::string> svg = DrawSvg(std::vector{chart});
    ASSERT_FALSE(svg.has_value());
    EXPECT_EQ(svg.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(svg.error().message.find(bad.message), std::string::npos) << svg.error().message;
  }
  EXPECT_EQ(DrawSvg({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(DrawSvg(std::vector{Bars()}, 0).has_value());
}

TEST(ChartTest, WhatIsNoFigureIsRefused) {
  EXPECT_NE(ChartsOf("<svg></svg>").error().message.find("no data of charts"), std::string::npos);
  const std::string svg = Draw({Small()});
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = svg;
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return ChartsOf(text.replace(at, from.size(), to));
  };
  EXPECT_NE(replaced("tutti-charts", "x").error().message.find("format tutti-charts"),
            std::string::npos);
  EXPECT_NE(
      replaced("&quot;version&quot;:1", "&quot;version&quot;:2").error().message.find("version 2"),
      std::string::npos);
  EXPECT_NE(
      replaced("&quot;log_x&quot;:false", "&quot;log_x&quot;:7").error().message.find("damaged"),
      std::string::npos);
  EXPECT_NE(replaced("&quot;px&quot;:[1.0,2.0", "&quot;px&quot;:[1.0")
                .error()
                .message.find("'one' of 'Ada's <chart>' is empty"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
