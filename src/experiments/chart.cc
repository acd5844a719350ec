#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tutti/base/process.h"

namespace tutti {
namespace {

constexpr int kWidth = 960, kHeight = 480;  // of one chart that has a row for itself, in SVG units
constexpr int kSquare = 320;                // side of one of several in a row
// Told apart by people who see few colours, too; dark enough for thin lines on white.
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000", "#7a4f9e"};
// Of heat maps: bright where much is, on the black of no cell; the order of grey is the same.
constexpr const char* kHeat = "0 '#414487', 0.35 '#22a884', 0.7 '#7ad151', 1 '#fde725'";
constexpr const char* kGrey = "#aaaaaa";
constexpr const char* kGrid = "set grid linecolor '#dddddd' linetype 1\n";
// Of the series that come after as many as there are colours, and again after those.
constexpr std::array<int, 3> kShapes = {7, 9, 5};  // full circle, triangle and square
constexpr std::array<const char*, 3> kDashes = {"solid", "(8,4)", "(2,3)"};

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

// A few numbers at the side of a small square.
size_t TicsEvery(size_t cells) {
  constexpr size_t kTics = 4;
  return std::max<size_t>(1, cells / kTics);
}

void AppendHeatMap(const HeatMap& heat, int block, std::string& script) {
  const auto columns = static_cast<size_t>(heat.columns);
  script += fmt::format("$heat{} << EOD\n", block);
  for (size_t i = 0; i < heat.cells.size(); ++i) {
    script += heat.cells[i] ? fmt::format("{:.4g}", *heat.cells[i]) : std::string("NaN");
    script += (i + 1) % columns == 0 ? '\n' : ' ';
  }
  const size_t rows = heat.cells.size() / columns;
  // Drawn cell by cell they stay sharp in every viewer, which is too much for many.
  constexpr std::ptrdiff_t kMaxDrawn = 1500;
  const auto drawn = std::count_if(heat.cells.begin(), heat.cells.end(),
                                   [](const auto& cell) { return cell.has_value(); });
  script += fmt::format(
      "EOD\n"
      "set object 1 rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb '#000000' fillstyle "
      "solid noborder\n"
      "set size square\nset margins 5,5,3,2\nset ylabel offset 2\nunset grid\nset xtics {}\nset "
      "ytics {}\n"
      "set xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\n"
      "plot $heat{} matrix with image{} notitle\n"
      "unset object 1\nset size nosquare\nset margins -1,-1,-1,-1\nset ylabel offset 0\n{}set "
      "xtics autofreq\nset ytics "
      "autofreq\n"
      "set xrange [*:*]\n",
      TicsEvery(columns), TicsEvery(rows), columns - 1, rows - 1, block,
      drawn <= kMaxDrawn ? " pixels" : "", kGrid);
}

// The place of each name among the coloured series of all charts.
using Places = std::map<std::string, size_t>;
size_t PlaceOf(const std::string& name, Places& places) {
  return places.emplace(name, places.size()).first->second;
}

// Each series is drawn as high as it and those below it together, the highest first.
void AppendBars(const Chart& chart, int block, Places& places, std::string& script) {
  script += fmt::format("$bars{} << EOD\n", block);
  for (size_t bar = 0; bar < chart.bars.size(); ++bar) {
    double height = 0;
    for (const ChartSeries& series : chart.series) {
      height += series.points[bar].second;
      script += fmt::format("{}{:.10g}", &series == &chart.series.front() ? "" : " ", height);
    }
    script += '\n';
  }
  script +=
      "EOD\nset boxwidth 0.8\nset style fill solid noborder\nset bmargin 9\nset xtics rotate "
      "by -35 (";
  for (size_t bar = 0; bar < chart.bars.size(); ++bar)
    script += fmt::format("{}{} {}", bar == 0 ? "" : ", ", Quoted(chart.bars[bar]), bar);
  script += fmt::format(")\nset xrange [-0.6:{}.6]\nset yrange [0:*]\n", chart.bars.size() - 1);
  std::string plots;
  for (const ChartSeries& series : chart.series) {
    const std::string plot =
        fmt::format("$bars{} using 0:{} with boxes linecolor rgb '{}' title {}", block,
                    &series - chart.series.data() + 1,
                    kColours[PlaceOf(series.name, places) % kColours.size()], Quoted(series.name));
    plots = plots.empty() ? plot : plot + ", " + plots;
  }
  script += "plot " + plots +
            "\nset xtics norotate autofreq\nset bmargin -1\nset xrange [*:*]\nset yrange [*:*]\n";
}

Status CheckDrawable(const Chart& chart) {
  if (chart.heat) {
    const HeatMap& heat = *chart.heat;
    if (heat.columns < 1 || heat.cells.empty() ||
        heat.cells.size() % static_cast<size_t>(heat.columns) != 0)
      return InvalidArgument(fmt::format("the heat map '{}' has {} cells in {} columns",
                                         chart.title, heat.cells.size(), heat.columns));
    return {};
  }
  for (const ChartSeries& series : chart.series)
    if (!chart.bars.empty() && series.points.size() != chart.bars.size())
      return InvalidArgument(fmt::format("'{}' of '{}' has {} points for {} bars", series.name,
                                         chart.title, series.points.size(), chart.bars.size()));
  for (const ChartSeries& series : chart.series)
    if (series.points.empty())
      return InvalidArgument(
          fmt::format("nothing to draw: '{}' of '{}' is empty", series.name, chart.title));
  return {};
}

// Cells are few and large: a viewer should not smooth them.
std::string WithSharpImages(const std::string& svg) {
  constexpr std::string_view kImage = "<image ";
  std::string out;
  size_t begin = 0;
  for (size_t at; (at = svg.find(kImage, begin)) != svg.npos; begin = at + kImage.size()) {
    out.append(svg, begin, at - begin);
    out += "<image style='image-rendering:pixelated' ";
  }
  return out.append(svg, begin);
}

// On a logarithmic axis the values themselves where they are few and short: gnuplot labels powers
// of ten only, and there may be one or none.
std::string XAxis(const Chart& chart) {
  constexpr size_t kMost = 9;
  constexpr double kShort = 1e5;
  std::set<double> values;
  for (const ChartSeries& series : chart.series)
    for (const auto& point : series.points) values.insert(point.first);
  if (!chart.log_x || values.size() > kMost || *values.rbegin() >= kShort)
    return "set xtics autofreq\nset xrange [*:*]\nset autoscale xfix\n";
  return fmt::format("set xtics ({:.10g})\nset xrange [{:.10g}:{:.10g}]\n", fmt::join(values, ", "),
                     *values.begin() * 0.999, *values.rbegin() * 1.001);
}

}  // namespace

std::string GnuplotScript(std::span<const Chart> charts, int32_t charts_a_row) {
  const int count = static_cast<int>(charts.size());
  const int rows = (count + charts_a_row - 1) / charts_a_row;
  std::string script = fmt::format(
      "set terminal svg size {},{} font 'sans-serif,15' linewidth 1.5 noenhanced background "
      "'#ffffff'\n"
      "set encoding utf8\n"
      "set border 3 linecolor '#666666'\n"
      "set tics nomirror\n"
      "set autoscale xfix\n"
      "{}"
      "set key outside right top reverse Left samplen 2\n"
      "set palette maxcolors 32 defined ({})\n"
      "set cbrange [0:1]\n",
      charts_a_row == 1 ? kWidth : kSquare * charts_a_row,
      (charts_a_row == 1 ? kHeight : kSquare) * rows, kGrid, kHeat);
  if (count > 1) script += fmt::format("set multiplot layout {},{}\n", rows, charts_a_row);
  int block = 0;
  Places places;
  for (const Chart& chart : charts) {
    script += fmt::format("set title {}\nset xlabel {}\nset ylabel {}\n", Quoted(chart.title),
                          Quoted(chart.x_label), Quoted(chart.y_label));
    if (chart.heat) {
      script += "unset logscale\n";
      AppendHeatMap(*chart.heat, block++, script);
      continue;
    }
    if (!chart.bars.empty()) {
      script += "unset logscale\n";
      AppendBars(chart, block++, places, script);
      continue;
    }
    script += chart.log_x ? "set logscale x\n" : "unset logscale x\n";
    script += XAxis(chart);
    script += chart.log_y ? "set logscale y\n" : "unset logscale y\n";
    script += chart.y_min ? fmt::format("set yrange [{:.10g}:*]\n", *chart.y_min)
                          : std::string("set yrange [*:*]\n");
    std::string plots;
    for (const ChartSeries& series : chart.series) {
      script += fmt::format("$series{} << EOD\n", block);
      for (const auto& point : series.points)
        script += fmt::format("{:.10g} {:.10g}\n", point.first, point.second);
      script += "EOD\n";
      const char* colour = kGrey;
      size_t round = 0;
      if (!series.grey) {
        const size_t index = PlaceOf(series.name, places);
        colour = kColours[index % kColours.size()];
        round = index / kColours.size();
      }
      plots += plots.empty() ? "plot " : ", ";
      plots += fmt::format(
          "$series{} using 1:2 {} linecolor rgb '{}' title {}", block++,
          series.line ? fmt::format("with lines dashtype {}", kDashes[round % kDashes.size()])
                      : fmt::format("with points pointtype {} pointsize 0.5",
                                    kShapes[round % kShapes.size()]),
          colour, Quoted(series.name));
    }
    script += plots + "\n";
  }
  if (count > 1) script += "unset multiplot\n";
  return script;
}

Result<std::string> DrawSvg(std::span<const Chart> charts, int32_t charts_a_row) {
  for (const Chart& chart : charts)
    if (const Status drawable = CheckDrawable(chart); !drawable)
      return tl::unexpected(drawable.error());
  if (charts.empty()) return InvalidArgument("nothing to draw: this result has no chart");
  std::string svg, complaints;
  const Result<ProcessEnd> end =
      RunProcess({"gnuplot", "-"},
                 [&](std::string_view line, ProcessStream stream) {
                   (stream == ProcessStream::kOutput ? svg : complaints).append(line).append("\n");
                 },
                 {.input = GnuplotScript(charts, charts_a_row), .package = "gnuplot-nox"});
  if (!end) return tl::unexpected(end.error());
  if (!end->ok() || svg.find("</svg>") == svg.npos)
    return MakeError(ErrorCode::kIo, "gnuplot failed: " + complaints.substr(0, 500));
  return WithSharpImages(svg);
}

}  // namespace tutti
