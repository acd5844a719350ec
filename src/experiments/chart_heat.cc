#include "chart_heat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "chart_axis.h"

namespace tutti {
namespace {

// Cividis, so that more is darker on white: light yellow to dark blue.
constexpr std::array<std::array<double, 3>, 5> kHeat = {
    {{254, 232, 56}, {188, 175, 111}, {125, 124, 120}, {66, 78, 108}, {0, 34, 78}}};
constexpr int kTones = 32;

const std::array<double, 3>& HeatStop(size_t i) { return kHeat[std::min(i, kHeat.size() - 1)]; }

std::string HeatColour(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kHeat.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double part = at - static_cast<double>(below);
  std::array<int, 3> rgb{};
  for (size_t k = 0; k < 3; ++k)
    rgb[k] = static_cast<int>(
        std::lround(HeatStop(below)[k] * (1 - part) + HeatStop(below + 1)[k] * part));
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

struct Squares {
  size_t columns, rows;
  double left, top, wide, high;
};

// Names or numbers of columns below and of rows at the left, as many as there is room for.
void DrawCellNames(const HeatMap& heat, const Squares& squares, SvgWriter& svg) {
  const auto name = [](const std::vector<std::string>& names, size_t i) {
    return names.empty() ? std::to_string(i) : names[i];
  };
  double widest = 0;
  for (size_t i = 0; i < squares.columns; ++i)
    widest = std::max(widest, TextWidth(name(heat.column_names, i), kSmall));
  const auto every = [](double needed, double each) {
    return static_cast<size_t>(std::max(1.0, std::ceil(needed / each)));
  };
  for (size_t i = 0; i < squares.columns; i += every(widest + 8, squares.wide))
    svg.Text(squares.left + (static_cast<double>(i) + 0.5) * squares.wide,
             squares.top + squares.high * static_cast<double>(squares.rows) + 15,
             name(heat.column_names, i), kSmall, kSoft, TextAnchor::kMiddle);
  for (size_t i = 0; i < squares.rows; i += every(kSmall + 2, squares.high))
    svg.Text(squares.left - 5, squares.top + (static_cast<double>(i) + 0.5) * squares.high + 4,
             name(heat.row_names, i), kSmall, kSoft, TextAnchor::kEnd);
}

void DrawWords(const HeatMap& heat, const Squares& squares, SvgWriter& svg) {
  std::map<std::string, size_t> places;
  for (const std::string& word : heat.words)
    if (!word.empty()) places.emplace(word, places.size());
  size_t next = 0;
  for (auto& [word, place] : places) place = next++;
  for (size_t i = 0; i < heat.words.size(); ++i) {
    if (heat.words[i].empty()) continue;
    const size_t column = i % squares.columns, row = i / squares.columns;
    const SvgBox cell{squares.left + static_cast<double>(column) * squares.wide,
                      squares.top + static_cast<double>(row) * squares.high, squares.wide,
                      squares.high};
    svg.Rectangle(cell, fmt::format("fill=\"{}\" fill-opacity=\"0.28\" stroke=\"#ffffff\"",
                                    kColours[places[heat.words[i]] % kLooks]));
    svg.Text(cell.left + cell.width / 2, cell.top + cell.height / 2 + 4, heat.words[i],
             std::min(kFont, cell.height * 0.9), kInk, TextAnchor::kMiddle);
  }
}

// A path a tone, of the runs of equal cells in each row.
void DrawTones(const HeatMap& heat, const Squares& squares, SvgWriter& svg) {
  std::array<std::string, kTones> ways;
  const auto tone = [&](size_t i) {
    return heat.cells[i] ? static_cast<int>(std::clamp(*heat.cells[i], 0.0, 1.0) * (kTones - 1e-6))
                         : -1;
  };
  for (size_t i = 0; i < heat.cells.size();) {
    const int of = tone(i);
    size_t end = i + 1;
    while (end < heat.cells.size() && end % squares.columns != 0 && tone(end) == of) ++end;
    if (of >= 0)
      ways[static_cast<size_t>(of)] += fmt::format("M{} {}h{}v1h-{}z", i % squares.columns,
                                                   i / squares.columns, end - i, end - i);
    i = end;
  }
  svg.Add(fmt::format(
      "<g transform=\"translate({} {}) scale({:.6g} {:.6g})\" shape-rendering=\"crispEdges\">\n",
      SvgNumber(squares.left), SvgNumber(squares.top), squares.wide, squares.high));
  for (int of = 0; of < kTones; ++of)
    if (const std::string& way = ways[static_cast<size_t>(of)]; !way.empty())
      svg.Path(way, fmt::format("fill=\"{}\"", HeatColour((of + 0.5) / kTones)));
  svg.Add("</g>\n");
}

}  // namespace

double DrawHeatScale(const HeatMap& heat, double width, double top, SvgWriter* svg) {
  if (svg != nullptr) {
    constexpr double kScale = 180;
    const double left = (width - kScale) / 2;
    for (int tone = 0; tone < kTones; ++tone)
      svg->Rectangle({left + tone * kScale / kTones, top + 4, kScale / kTones + 0.5, 13},
                     fmt::format("fill=\"{}\"", HeatColour((tone + 0.5) / kTones)));
    svg->Text(left - 8, top + 15, heat.low, kFont, kInk, TextAnchor::kEnd);
    svg->Text(left + kScale + 8, top + 15, heat.high, kFont, kInk);
  }
  return 26;
}

void DrawHeatMap(const Chart& chart, const SvgBox& panel, SvgBox rest, SvgWriter& svg) {
  const HeatMap& heat = *chart.heat;
  const size_t cells = heat.words.empty() ? heat.cells.size() : heat.words.size();
  const auto columns = static_cast<size_t>(heat.columns);
  const size_t rows = cells / columns;
  double names = TextWidth(std::to_string(rows), kSmall);
  for (const std::string& name : heat.row_names) names = std::max(names, TextWidth(name, kSmall));
  rest.left += names + 10;
  rest.width -= names + 10 + 14;
  rest.height -= 22;
  // Cells of a network's pairs are squares; others take the room there is.
  const bool square = columns == rows;
  const double side = std::min(rest.width, rest.height);
  const SvgBox plot{rest.left + (square ? (rest.width - side) / 2 : 0), rest.top,
                    square ? side : rest.width, square ? side : rest.height};
  const Squares squares{columns,
                        rows,
                        plot.left,
                        plot.top,
                        plot.width / static_cast<double>(columns),
                        plot.height / static_cast<double>(rows)};
  if (heat.words.empty())
    DrawTones(heat, squares, svg);
  else
    DrawWords(heat, squares, svg);
  svg.Rectangle(plot, "fill=\"none\" stroke=\"#56616e\"");
  DrawCellNames(heat, squares, svg);
  if (!chart.x_label.empty())
    svg.Text(plot.left + plot.width / 2, std::min(panel.bottom() - 5, plot.bottom() + 32),
             chart.x_label, kFont, kInk, TextAnchor::kMiddle);
  if (!chart.y_label.empty())
    svg.Text(plot.left - names - 14, plot.top + plot.height / 2, chart.y_label, kFont, kInk,
             TextAnchor::kMiddle, false, -90);
}

}  // namespace tutti
