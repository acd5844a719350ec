#include "chart.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace tutti {
namespace {

Chart Small() {
  return {.title = "Ada's chart",
          .x_label = "ranks N",
          .y_label = "time (us)",
          .series = {{.name = "one", .points = {{1, 2}, {2, 4.5}}},
                     {.name = "two", .line = false, .points = {{1, 1}, {2, 1e-9}}}}};
}

TEST(ChartTest, TheScriptHoldsTitlesPointsAndStyles) {
  const std::string script = GnuplotScript(std::vector{Small()});
  for (const char* part : {"'Ada''s chart'", "set xlabel 'ranks N'", "set ylabel 'time (us)'",
                           "$series0 << EOD\n1 2\n2 4.5\nEOD\n", "2 1e-09", "with lines",
                           "with points", "title 'one'", "unset logscale y"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
  EXPECT_EQ(script.find("multiplot"), std::string::npos);
}

// More series than colours: no two look alike, as lines or as points.
TEST(ChartTest, TwentyFourSeriesAreAllDifferent) {
  for (const bool line : {true, false}) {
    Chart chart{.title = "many", .x_label = "x", .y_label = "y"};
    for (int k = 0; k < 24; ++k)
      chart.series.push_back(
          {.name = "series " + std::to_string(k), .line = line, .points = {{1, k}, {2, k + 1}}});
    const std::string script = GnuplotScript(std::vector{chart});
    std::set<std::string> looks;
    for (size_t at = script.find(" using 1:2 "); at != script.npos;
         at = script.find(" using 1:2 ", at + 1))
      looks.insert(script.substr(at, script.find(" title", at) - at));
    EXPECT_EQ(looks.size(), chart.series.size()) << script;
    const Result<std::string> svg = DrawSvg(std::vector{chart});
    if (!svg && svg.error().code == ErrorCode::kNotFound) GTEST_SKIP() << svg.error().message;
    EXPECT_TRUE(svg.has_value()) << svg.error().message;
  }
}

TEST(ChartTest, SeveralChartsStandBelowEachOther) {
  Chart logarithmic = Small();
  logarithmic.log_y = true;
  const std::string script = GnuplotScript(std::vector{Small(), logarithmic});
  for (const char* part : {"size 960,960", "multiplot layout 2,1", "set logscale y", "$series3"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

Chart Heat() {
  return {.title = "loads",
          .x_label = "to",
          .y_label = "from",
          .heat = HeatMap{.columns = 2, .cells = {std::nullopt, 0.5, 1.0, 0.0}}};
}

TEST(ChartTest, HeatMapsStandSeveralInARow) {
  const std::string script = GnuplotScript(std::vector{Heat(), Heat(), Small()}, 2);
  for (const char* part :
       {"size 640,640", "multiplot layout 2,2", "$heat0 << EOD\nNaN 0.5\n1 0\nEOD\n",
        "set xrange [-0.5:1.5]", "plot $heat1 matrix with image", "$series2"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

Chart Bars() {
  return {.title = "parts",
          .x_label = "",
          .y_label = "time",
          .series = {{.name = "low", .points = {{0, 1}, {1, 2}}},
                     {.name = "high", .points = {{0, 3}, {1, 0.5}}}},
          .bars = {"one", "two"}};
}

TEST(ChartTest, BarsLieOnEachOther) {
  const std::string script = GnuplotScript(std::vector{Bars(), Small()});
  EXPECT_NE(script.find("1 4\n2 2.5\nEOD"), std::string::npos) << script;
  EXPECT_NE(script.find("('one' 0, 'two' 1)"), std::string::npos);
  // The higher one is drawn first.
  EXPECT_LT(script.find("title 'high'"), script.find("title 'low'"));
  EXPECT_LT(script.find("norotate"), script.find("$series1"));
  const Result<std::string> svg = DrawSvg(std::vector{Bars()});
  if (!svg && svg.error().code == ErrorCode::kNotFound) GTEST_SKIP() << svg.error().message;
  ASSERT_TRUE(svg.has_value()) << svg.error().message;
  EXPECT_NE(svg->find(">two<"), std::string::npos);
}

TEST(ChartTest, ABarWithoutOneOfItsPartsIsRefused) {
  Chart chart = Bars();
  chart.series[1].points.pop_back();
  const Result<std::string> svg = DrawSvg(std::vector{chart});
  ASSERT_FALSE(svg.has_value());
  EXPECT_EQ(svg.error().message, "'high' of 'parts' has 1 points for 2 bars");
}

TEST(ChartTest, BothAxesCanBeLogarithmic) {
  Chart chart = Small();
  EXPECT_NE(GnuplotScript(std::vector{chart}).find("unset logscale x"), std::string::npos);
  chart.log_x = true;
  EXPECT_NE(GnuplotScript(std::vector{chart}).find("\nset logscale x"), std::string::npos);
}

TEST(ChartTest, GnuplotDrawsHeatMapsWithSharpCells) {
  Chart large = Heat();
  large.heat = HeatMap{.columns = 40, .cells = {}};
  large.heat->cells.assign(1600, 0.5);
  const Result<std::string> svg = DrawSvg(std::vector{Heat(), large}, 2);
  if (!svg && svg.error().code == ErrorCode::kNotFound) GTEST_SKIP() << svg.error().message;
  ASSERT_TRUE(svg.has_value()) << svg.error().message;
  for (const char* part : {"loads", "from", "image-rendering:pixelated", "data:image/png"})
    EXPECT_NE(svg->find(part), std::string::npos) << part;
  // The small one is drawn cell by cell.
  EXPECT_EQ(svg->find("data:image/png"), svg->rfind("data:image/png"));
}

TEST(ChartTest, AHeatMapThatIsNoRectangleIsRefused) {
  for (const HeatMap& heat : {HeatMap{.columns = 2, .cells = {0.5, 0.5, 0.5}},
                              HeatMap{.columns = 0, .cells = {0.5}}, HeatMap{.columns = 3}}) {
    Chart chart = Heat();
    chart.heat = heat;
    const Result<std::string> svg = DrawSvg(std::vector{chart});
    ASSERT_FALSE(svg.has_value());
    EXPECT_EQ(svg.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(svg.error().message.find("'loads'"), std::string::npos);
  }
}

TEST(ChartTest, GnuplotDrawsIt) {
  const Result<std::string> svg = DrawSvg(std::vector{Small()});
  if (!svg && svg.error().code == ErrorCode::kNotFound) GTEST_SKIP() << svg.error().message;
  ASSERT_TRUE(svg.has_value()) << svg.error().message;
  for (const char* part : {"<svg", "Ada's chart", "ranks N", "time (us)", "one", "two", "</svg>"})
    EXPECT_NE(svg->find(part), std::string::npos) << part;
  EXPECT_EQ(*svg, *DrawSvg(std::vector{Small()}));
}

TEST(ChartTest, NothingToDrawIsSaid) {
  EXPECT_EQ(DrawSvg({}).error().code, ErrorCode::kInvalidArgument);
  Chart empty = Small();
  empty.series[1].points.clear();
  const Result<std::string> svg = DrawSvg(std::vector{empty});
  ASSERT_FALSE(svg.has_value());
  EXPECT_NE(svg.error().message.find("'two' of 'Ada's chart' is empty"), std::string::npos);
}

TEST(ChartTest, AMissingGnuplotIsNamed) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const Result<std::string> svg = DrawSvg(std::vector{Small()});
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(svg.has_value());
  EXPECT_EQ(svg.error().code, ErrorCode::kNotFound);
  EXPECT_NE(svg.error().message.find("gnuplot-nox"), std::string::npos);
}

}  // namespace
}  // namespace tutti
