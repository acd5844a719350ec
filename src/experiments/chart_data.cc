#include "chart_data.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxCharts = 256, kMaxValues = 4'000'000;
constexpr int32_t kMaxChartsARow = 16;
constexpr double kLargest = 1e100;

// With so many digits.
double RoundedTo(double value, int digits) {
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}
double AsX(double value) { return RoundedTo(value, 10); }
double AsY(double value) { return RoundedTo(value, 6); }

Json HeatJson(const HeatMap& heat) {
  Json out{{"columns", heat.columns}, {"low", heat.low}, {"high", heat.high}};
  out["column_names"] = heat.column_names;
  out["row_names"] = heat.row_names;
  if (!heat.words.empty()) {
    out["words"] = heat.words;
    return out;
  }
  Json& cells = out["cells"] = Json::array();
  for (const std::optional<double>& cell : heat.cells)
    cells.push_back(cell ? Json(AsY(*cell)) : Json(nullptr));
  return out;
}

Json ChartJson(const Chart& chart) {
  Json out{{"title", chart.title},
           {"x", chart.x_label},
           {"y", chart.y_label},
           {"log_x", chart.log_x},
           {"log_y", chart.log_y}};
  out["y_min"] = chart.y_min ? Json(AsY(*chart.y_min)) : Json(nullptr);
  out["bars"] = chart.bars;
  out["beside"] = chart.beside;
  Json& all = out["series"] = Json::array();
  for (const ChartSeries& series : chart.series) {
    Json xs = Json::array(), ys = Json::array();
    for (const auto& [x, y] : series.points) {
      xs.push_back(AsX(x));
      ys.push_back(AsY(y));
    }
    all.push_back({{"name", series.name},
                   {"line", series.line},
                   {"grey", series.grey},
                   {"like", series.like},
                   {"px", std::move(xs)},
                   {"py", std::move(ys)}});
  }
  if (chart.heat) out["heat"] = HeatJson(*chart.heat);
  return out;
}

// Numbers of a JSON array; nullopt where one is none.
std::optional<std::vector<double>> Numbers(const Json& array) {
  if (!array.is_array()) return std::nullopt;
  std::vector<double> out;
  for (const Json& one : array) {
    if (!one.is_number()) return std::nullopt;
    out.push_back(one.get<double>());
  }
  return out;
}

HeatMap HeatOf(const Json& json) {
  HeatMap heat{.columns = json.at("columns").get<int32_t>(),
               .cells = {},
               .column_names = json.at("column_names").get<std::vector<std::string>>(),
               .row_names = json.at("row_names").get<std::vector<std::string>>(),
               .words = json.value("words", std::vector<std::string>{}),
               .low = json.at("low").get<std::string>(),
               .high = json.at("high").get<std::string>()};
  if (json.contains("cells"))
    for (const Json& cell : json.at("cells"))
      heat.cells.push_back(cell.is_null() ? std::nullopt : std::optional(cell.get<double>()));
  return heat;
}

// Throws what the library throws for another shape.
Chart ChartOf(const Json& json) {
  Chart chart{.title = json.at("title").get<std::string>(),
              .x_label = json.at("x").get<std::string>(),
              .y_label = json.at("y").get<std::string>(),
              .log_x = json.at("log_x").get<bool>(),
              .log_y = json.at("log_y").get<bool>()};
  if (!json.at("y_min").is_null()) chart.y_min = json.at("y_min").get<double>();
  chart.bars = json.at("bars").get<std::vector<std::string>>();
  chart.beside = json.at("beside").get<bool>();
  for (const Json& one : json.at("series")) {
    ChartSeries series{.name = one.at("name").get<std::string>(),
                       .line = one.at("line").get<bool>(),
                       .grey = one.at("grey").get<bool>(),
                       .like = one.at("like").get<std::string>()};
    const auto xs = Numbers(one.at("px")), ys = Numbers(one.at("py"));
    if (xs && ys && xs->size() == ys->size())
      for (size_t i = 0; i < xs->size(); ++i) series.points.emplace_back((*xs)[i], (*ys)[i]);
    chart.series.push_back(std::move(series));
  }
  if (json.contains("heat")) chart.heat = HeatOf(json.at("heat"));
  return chart;
}

Status CheckHeat(const Chart& chart, size_t& values) {
  const HeatMap& heat = *chart.heat;
  const size_t cells = heat.words.empty() ? heat.cells.size() : heat.words.size();
  values += cells;
  if (heat.columns < 1 || cells == 0 || cells % static_cast<size_t>(heat.columns) != 0)
    return InvalidArgument(fmt::format("the heat map '{}' has {} cells in {} columns", chart.title,
                                       cells, heat.columns));
  const size_t columns = static_cast<size_t>(heat.columns), rows = cells / columns;
  if ((!heat.column_names.empty() && heat.column_names.size() != columns) ||
      (!heat.row_names.empty() && heat.row_names.size() != rows))
    return InvalidArgument(
        fmt::format("the heat map '{}' has {} columns and {} rows, but {} and "
                    "{} names of them",
                    chart.title, columns, rows, heat.column_names.size(), heat.row_names.size()));
  for (const std::optional<double>& cell : heat.cells)
    if (cell && !std::isfinite(*cell))
      return InvalidArgument(fmt::format("a cell of '{}' is no number", chart.title));
  return {};
}

// A number, and none that would leave the range of what is computed of it.
bool IsDrawable(double value) { return std::isfinite(value) && std::abs(value) <= kLargest; }

Status CheckSeries(const Chart& chart, const ChartSeries& series) {
  if (!chart.bars.empty() && series.points.size() != chart.bars.size())
    return InvalidArgument(fmt::format("'{}' of '{}' has {} points for {} bars", series.name,
                                       chart.title, series.points.size(), chart.bars.size()));
  if (series.points.empty())
    return InvalidArgument(
        fmt::format("nothing to draw: '{}' of '{}' is empty", series.name, chart.title));
  for (const auto& [x, y] : series.points) {
    if (!IsDrawable(x) || !IsDrawable(y))
      return InvalidArgument(fmt::format("a point of '{}' of '{}' is no number that can be drawn",
                                         series.name, chart.title));
    if ((chart.log_x && x < 1 / kLargest) || (chart.log_y && y < 1 / kLargest))
      return InvalidArgument(
          fmt::format("'{}' of '{}' has the point ({:g}, {:g}) on a logarithmic axis", series.name,
                      chart.title, x, y));
  }
  return {};
}

}  // namespace

Status CheckDrawable(std::span<const Chart> charts, int32_t charts_a_row) {
  if (charts.empty()) return InvalidArgument("nothing to draw: this result has no chart");
  if (charts.size() > kMaxCharts || charts_a_row < 1 || charts_a_row > kMaxChartsARow)
    return InvalidArgument(fmt::format("{} charts, {} a row; drawn are at most {}, {} a row",
                                       charts.size(), charts_a_row, kMaxCharts, kMaxChartsARow));
  size_t values = 0;
  for (const Chart& chart : charts) {
    if (chart.y_min && !IsDrawable(*chart.y_min))
      return InvalidArgument(fmt::format("the axis of '{}' begins at no number", chart.title));
    if (chart.heat) {
      if (const Status status = CheckHeat(chart, values); !status) return status;
      continue;
    }
    if (chart.series.empty())
      return InvalidArgument(fmt::format("nothing to draw: '{}' has no series", chart.title));
    for (const ChartSeries& series : chart.series) {
      values += series.points.size();
      if (const Status status = CheckSeries(chart, series); !status) return status;
    }
  }
  if (values > kMaxValues)
    return InvalidArgument(
        fmt::format("{} values to draw; a figure has at most {}", values, kMaxValues));
  return {};
}

std::string ChartsJson(std::span<const Chart> charts, int32_t charts_a_row) {
  Json out{{"format", "tutti-charts"}, {"version", 1}, {"charts_a_row", charts_a_row}};
  Json& all = out["charts"] = Json::array();
  for (const Chart& chart : charts) all.push_back(ChartJson(chart));
  return out.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<DrawnCharts> ParseChartsJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != "tutti-charts")
    return InvalidArgument("its data is no object of format tutti-charts");
  if (json.value("version", Json()) != 1)
    return InvalidArgument(fmt::format("its data has version {}; this program reads version 1",
                                       json.value("version", Json()).dump()));
  DrawnCharts out;
  try {
    out.charts_a_row = json.at("charts_a_row").get<int32_t>();
    for (const Json& chart : json.at("charts")) out.charts.push_back(ChartOf(chart));
  } catch (const Json::exception& error) {
    return InvalidArgument(fmt::format("its data is damaged: {}", error.what()));
  }
  if (const Status drawable = CheckDrawable(out.charts, out.charts_a_row); !drawable)
    return tl::unexpected(drawable.error());
  return out;
}

}  // namespace tutti
