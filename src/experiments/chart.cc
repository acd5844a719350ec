#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "chart_axis.h"
#include "chart_data.h"
#include "chart_heat.h"
#include "chart_svg.h"
#include "tutti/base/xml_text.h"

namespace tutti {
namespace {

constexpr double kTall = 460, kPanel = 300;  // of a chart alone, of a panel
constexpr std::array<const char*, 3> kDashes = {"", "7 3",
                                                "2 3"};  // of series after as many as colours
constexpr int kShapes = 6;

// --- How a series looks ---------------------------------------------------------------------------

struct Look {
  const char* colour = kGrey;
  const char* dash = "5 4";
  int shape = -1;  // -1: no marker
  bool hollow = false;
  size_t place = 0;  // among the series of the figure
};

// By name, in the order of their first appearance.
class Looks {
 public:
  explicit Looks(std::span<const Chart> charts) {
    for (const Chart& chart : charts)
      for (const ChartSeries& series : chart.series)
        if (!series.grey && series.like.empty()) places_.emplace(series.name, places_.size());
  }
  Look Of(const ChartSeries& series) const {
    if (series.grey) return {};
    const auto place = places_.find(series.like.empty() ? series.name : series.like);
    const size_t at = place == places_.end() ? kLooks - 1 : place->second;
    return {kColours[at % kLooks], kDashes[at / kLooks % kDashes.size()],
            static_cast<int>(at % kShapes), !series.like.empty(), at};
  }

 private:
  std::map<std::string, size_t> places_;
};

std::string MarkerWay(int shape, double x, double y, double r) {
  const auto at = [&](double dx, double dy) {
    return SvgNumber(x + dx * r) + " " + SvgNumber(y + dy * r);
  };
  switch (shape) {
    case 0:
      return fmt::format("M{}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", at(-1, 0),
                         fmt::arg("r", SvgNumber(r)), fmt::arg("d", SvgNumber(2 * r)));
    case 1:
      return fmt::format("M{}L{}L{}L{}z", at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9),
                         at(-0.9, 0.9));
    case 2:
      return fmt::format("M{}L{}L{}z", at(0, -1.2), at(1.1, 0.9), at(-1.1, 0.9));
    case 3:
      return fmt::format("M{}L{}L{}L{}z", at(0, -1.3), at(1.3, 0), at(0, 1.3), at(-1.3, 0));
    case 4:
      return fmt::format("M{}L{}L{}z", at(0, 1.2), at(1.1, -0.9), at(-1.1, -0.9));
    default:
      return fmt::format("M{}L{}L{}L{}L{}z", at(0, -1.2), at(1.2, -0.3), at(0.75, 1.1),
                         at(-0.75, 1.1), at(-1.2, -0.3));
  }
}

std::string MarkerInk(const Look& look) {
  return look.hollow
             ? fmt::format("fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"1.5\"", look.colour)
             : fmt::format("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.7\"", look.colour);
}

std::string LineInk(const Look& look) {
  const std::string dash =
      look.dash[0] == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", look.dash);
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{}",
                     look.colour, dash);
}

// Bars have no markers: in grey print they are told apart by white lines and dots on their colours. The first has none.
constexpr std::array<const char*, 5> kTextures = {"M0 7L7 0M-1 1L1 -1M6 8L8 6", "M0 3.5H7",
                                                  "M1.5 1.5h0M5 5h0", "M0 0L7 7M-1 6L1 8M6 -1L8 1",
                                                  "M3.5 0V7"};

std::string BarInk(const Look& look, double gap) {
  if (look.hollow)
    return fmt::format("fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"1.4\"", look.colour);
  const std::string fill = look.place % (kTextures.size() + 1) == 0
                               ? look.colour
                               : fmt::format("url(#bar{})", look.place);
  return fmt::format("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"{}\"", fill, SvgNumber(gap));
}

// What BarInk refers to, of all looks of bars.
void DefineTextures(std::span<const Chart> charts, const Looks& looks, SvgWriter& svg) {
  std::map<size_t, Look> used;
  for (const Chart& chart : charts)
    for (const ChartSeries& series : chart.series)
      if (const Look look = looks.Of(series); !chart.bars.empty() && !look.hollow)
        used.emplace(look.place, look);
  for (const auto& [place, look] : used) {
    const size_t texture = place % (kTextures.size() + 1);
    if (texture == 0) continue;
    svg.Add(fmt::format(
        "<pattern id=\"bar{}\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><rect "
        "width=\"7\" height=\"7\" fill=\"{}\"/><path d=\"{}\" fill=\"none\" stroke=\"#ffffff\" "
        "stroke-width=\"{}\" stroke-opacity=\"0.6\" stroke-linecap=\"round\"/></pattern>\n",
        place, look.colour, kTextures[texture - 1], texture == 3 ? 2 : 1));
  }
}

// --- The legend -------------------------------------------------------------------------------------

enum class Sample : uint8_t { kStroke, kPoint, kBar };
struct Entry {
  std::string name;
  Look look;
  Sample sample;
};

std::vector<Entry> LegendOf(std::span<const Chart> charts, const Looks& looks) {
  std::vector<Entry> entries;
  std::set<std::string> seen;
  for (const Chart& chart : charts)
    for (const ChartSeries& series : chart.series)
      if (!series.name.empty() && seen.insert(series.name).second)
        entries.push_back({series.name, looks.Of(series),
                           !chart.bars.empty() ? Sample::kBar
                           : series.line       ? Sample::kStroke
                                               : Sample::kPoint});
  return entries;
}

constexpr double kSampleWidth = 30, kLegendGap = 22;

// Rows of entries from `top` down; how high they are. Nothing is drawn without `svg`.
double DrawLegend(const std::vector<Entry>& entries, double width, double top, SvgWriter* svg) {
  if (entries.empty()) return 0;
  double x = 16, y = top + kLine;
  for (const Entry& entry : entries) {
    const double wide = kSampleWidth + 6 + TextWidth(entry.name, kFont) + kLegendGap;
    if (x > 16 && x + wide > width) {
      x = 16;
      y += kLine + 2;
    }
    if (svg != nullptr) {
      const double middle = y - 4;
      if (entry.sample == Sample::kBar)
        svg->Rectangle({x + 6, middle - 7, 20, 14}, BarInk(entry.look, 0));
      if (entry.sample == Sample::kStroke)
        svg->Line(x, middle, x + kSampleWidth, middle, LineInk(entry.look));
      if (entry.sample != Sample::kBar && (entry.look.shape >= 0 || entry.sample == Sample::kPoint))
        svg->Path(MarkerWay(std::max(0, entry.look.shape), x + kSampleWidth / 2, middle, 4),
                  MarkerInk(entry.look));
      svg->Text(x + kSampleWidth + 6, y, entry.name, kFont, kInk);
    }
    x += wide;
  }
  return y + 8 - top;
}

// --- Axes and their frame ----------------------------------------------------------------------------

bool InBytes(std::string_view label) {
  return label.find("bytes") != label.npos && label.find("MB") == label.npos;
}

struct Range {
  double low, high;
};

Range RangeOf(const Chart& chart, bool of_x) {
  Range range{INFINITY, -INFINITY};
  for (const ChartSeries& series : chart.series)
    for (const auto& [x, y] : series.points) {
      range.low = std::min(range.low, of_x ? x : y);
      range.high = std::max(range.high, of_x ? x : y);
    }
  return range;
}

ChartAxis XAxisOf(const Chart& chart, double left, double right) {
  Range range = RangeOf(chart, true);
  if (chart.log_x) {
    const double room = std::pow(range.high / range.low, 0.025);
    range = room > 1 ? Range{range.low / room, range.high * room}
                     : Range{range.low / 2, range.high * 2};
  } else {
    const double room = range.high > range.low ? (range.high - range.low) * 0.02 : 1;
    range = {range.low == 0 ? 0 : range.low - room, range.high + room};
  }
  return {range.low, range.high, chart.log_x, left, right};
}

ChartAxis YAxisOf(const Chart& chart, double bottom, double top) {
  Range range = RangeOf(chart, false);
  if (chart.y_min && (!chart.log_y || *chart.y_min > 0)) range.low = *chart.y_min;
  range.high = std::max(range.high, range.low);
  if (chart.log_y) {
    const double room = std::max(1.04, std::pow(range.high / range.low, 0.05));
    return {range.low / (chart.y_min ? 1 : room), range.high * room, true, bottom, top};
  }
  const double room = range.high > range.low ? (range.high - range.low) * 0.06
                                             : std::max(1.0, std::abs(range.high) * 0.1);
  const double low = chart.y_min || range.low == 0                   ? range.low
                     : range.low > 0 && range.low < 0.3 * range.high ? 0
                                                                     : range.low - room;
  return {low, range.high + room, false, bottom, top};
}

// Of an axis that is so high.
size_t MostTicks(double height) { return static_cast<size_t>(std::max(5.0, height / 42)); }

// The values themselves where they are few, or every so many powers of two.
std::vector<AxisTick> XTicks(const Chart& chart, const ChartAxis& axis) {
  const bool bytes = InBytes(chart.x_label);
  const double width = axis.to - axis.from;
  const auto most = static_cast<size_t>(std::max(3.0, width / 62));
  std::set<double> values;
  for (const ChartSeries& series : chart.series)
    for (const auto& point : series.points) {
      values.insert(point.first);
      if (values.size() > 4 * most) break;
    }
  bool powers = chart.log_x && values.size() > 1;
  for (const double value : values)
    powers = powers && std::exp2(std::round(std::log2(value))) == value;
  const std::vector<double> all(values.begin(), values.end());
  if (powers && all.size() <= 4 * most) return TicksAt(all, most, bytes);
  if (chart.log_x && all.size() <= most) {
    // Those that do not run into the one before.
    std::vector<AxisTick> out;
    double free = -INFINITY;
    for (const AxisTick& tick : TicksAt(all, most, bytes)) {
      const double half = TextWidth(tick.text, kSmall) / 2 + 3, at = axis.At(tick.value);
      if (at - half < free) continue;
      free = at + half;
      out.push_back(tick);
    }
    return out;
  }
  return TicksOf(axis, most, bytes);
}

void DrawFrame(const SvgBox& plot, const std::vector<AxisTick>& xs, const ChartAxis* x,
               const std::vector<AxisTick>& ys, const ChartAxis& y, SvgWriter& svg) {
  std::string grid;
  for (const AxisTick& tick : ys)
    grid += fmt::format("M{} {}H{}", SvgNumber(plot.left), SvgNumber(y.At(tick.value)),
                        SvgNumber(plot.right()));
  if (x != nullptr)
    for (const AxisTick& tick : xs)
      grid += fmt::format("M{} {}V{}", SvgNumber(x->At(tick.value)), SvgNumber(plot.top),
                          SvgNumber(plot.bottom()));
  if (!grid.empty()) svg.Path(grid, "stroke=\"#e1e5ea\" fill=\"none\"");
  svg.Path(fmt::format("M{} {}V{}H{}", SvgNumber(plot.left), SvgNumber(plot.top),
                       SvgNumber(plot.bottom()), SvgNumber(plot.right())),
           "stroke=\"#56616e\" fill=\"none\"");
  for (const AxisTick& tick : ys)
    svg.Text(plot.left - 6, y.At(tick.value) + 4, tick.text, kSmall, kSoft, TextAnchor::kEnd);
  if (x != nullptr)
    for (const AxisTick& tick : xs)
      svg.Text(x->At(tick.value), plot.bottom() + 17, tick.text, kSmall, kSoft,
               TextAnchor::kMiddle);
}

double Widest(const std::vector<AxisTick>& ticks) {
  double wide = 0;
  for (const AxisTick& tick : ticks) wide = std::max(wide, TextWidth(tick.text, kSmall));
  return wide;
}

std::vector<std::string> TitleLines(const Chart& chart, double width) {
  return Wrapped(chart.title, kTitle * kBold, width - 24);
}

// The title above, with room for `lines` of it, the names of axes beside; what is left for the plot and its ticks.
SvgBox DrawTitles(const Chart& chart, const SvgBox& panel, size_t lines, SvgWriter& svg) {
  SvgBox rest = panel;
  double top = panel.top;
  for (const std::string& line : TitleLines(chart, panel.width)) {
    svg.Text(panel.left + 12, top + kLine, line, kTitle, kInk, TextAnchor::kStart, true);
    top += kLine + 1;
  }
  const double high = static_cast<double>(lines) * (kLine + 1);
  rest.top += high;
  rest.height -= high;
  rest.top += 10;
  rest.height -= 16;
  if (!chart.x_label.empty()) rest.height -= kLine + 2;
  if (!chart.y_label.empty()) {
    rest.left += kLine + 4;
    rest.width -= kLine + 4;
  }
  return rest;
}

void DrawAxisNames(const Chart& chart, const SvgBox& panel, const SvgBox& plot, SvgWriter& svg) {
  if (!chart.x_label.empty())
    svg.Text(plot.left + plot.width / 2, panel.bottom() - 7, chart.x_label, kFont, kInk,
             TextAnchor::kMiddle);
  if (chart.y_label.empty()) return;
  const double x = panel.left + 15, y = plot.top + plot.height / 2;
  const std::vector<std::string> lines = Wrapped(chart.y_label, kFont, panel.height - 10);
  svg.Text(x, y, lines.size() > 1 ? chart.y_label : lines[0],
           lines.size() > 1 ? kFont * (panel.height - 10) / TextWidth(chart.y_label, kFont) : kFont,
           kInk, TextAnchor::kMiddle, false, -90);
}

// --- Lines and points -----------------------------------------------------------------------------------

using Spot = std::pair<double, double>;

std::vector<Spot> SpotsOf(const ChartSeries& series, const ChartAxis& x, const ChartAxis& y,
                          const SvgBox& plot) {
  std::vector<Spot> spots;
  for (const auto& [px, py] : series.points)
    spots.emplace_back(x.At(px), std::clamp(y.At(py), plot.top, plot.bottom()));
  return spots;
}

void DrawPath(const std::vector<Spot>& spots, const Look& look, SvgWriter& svg) {
  std::string way;
  Spot before{-1e9, -1e9};
  for (size_t i = 0; i < spots.size(); ++i) {
    const bool near = std::abs(spots[i].first - before.first) < 0.4 &&
                      std::abs(spots[i].second - before.second) < 0.4;
    if (near && i + 1 < spots.size()) continue;
    way += fmt::format("{}{} {}", way.empty() ? "M" : "L", SvgNumber(spots[i].first),
                       SvgNumber(spots[i].second));
    before = spots[i];
  }
  svg.Path(way, LineInk(look));
}

// On a line where they are no closer than that; all points of what has no line.
void DrawMarkers(const std::vector<Spot>& spots, const Look& look, bool line, SvgWriter& svg) {
  constexpr double kApart = 26;
  constexpr size_t kMany = 250;
  if (!line && spots.size() > kMany) {
    std::string dots;
    for (const auto& [x, y] : spots) dots += fmt::format("M{} {}h0", SvgNumber(x), SvgNumber(y));
    return svg.Path(
        dots,
        fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"3.2\" stroke-linecap=\"round\"",
                    look.colour));
  }
  if (line && look.shape < 0) return;
  std::string way;
  double free = -INFINITY;
  for (const auto& [x, y] : spots) {
    if (line && x < free) continue;
    free = x + (spots.size() > 24 ? 2 * kApart : 7);
    way += MarkerWay(std::max(0, look.shape), x, y, line ? 3.4 : 3.6);
  }
  svg.Path(way, MarkerInk(look));
}

bool IsUpright(const std::vector<Spot>& spots) {
  return spots.size() > 1 && std::all_of(spots.begin(), spots.end(), [&](const Spot& spot) {
           return spot.first == spots.front().first;
         });
}

// Whether a line comes into a box.
bool Crosses(const std::vector<Spot>& spots, const SvgBox& box) {
  for (size_t i = 0; i < spots.size(); ++i) {
    const auto& [x0, y0] = spots[i == 0 ? 0 : i - 1];
    const auto& [x1, y1] = spots[i];
    const double left = std::max(box.left, std::min(x0, x1)),
                 right = std::min(box.right(), std::max(x0, x1));
    if (left > right) continue;
    const auto at = [&, x0 = x0, y0 = y0, x1 = x1, y1 = y1](double x) {
      return x1 == x0 ? y0 : y0 + (x - x0) / (x1 - x0) * (y1 - y0);
    };
    const double a = x1 == x0 ? y0 : at(left), b = x1 == x0 ? y1 : at(right);
    if (std::max(a, b) >= box.top && std::min(a, b) <= box.bottom()) return true;
  }
  return false;
}

// Beside upright lines, all at the foot of the plot or all at its head, on that side of each: where other lines come
// in least.
void NameUprights(const Chart& chart, const std::vector<std::vector<Spot>>& spots,
                  const SvgBox& plot, SvgWriter& svg) {
  struct Placed {
    SvgBox box;
    const std::string* name;
  };
  const auto place = [&](bool head) {
    std::pair<int, std::vector<Placed>> found;
    for (size_t i = 0; i < spots.size(); ++i) {
      const std::string& name = chart.series[i].name;
      if (name.empty() || !IsUpright(spots[i])) continue;
      const double wide = TextWidth(name, kFont), x = spots[i].front().first,
                   top = head ? plot.top + 2 : plot.bottom() - 21;
      const auto in_the_way = [&](const SvgBox& box) {
        int count = box.left < plot.left || box.right() > plot.right() ? 1 : 0;
        for (size_t k = 0; k < spots.size(); ++k) count += k != i && Crosses(spots[k], box) ? 1 : 0;
        for (const Placed& other : found.second)
          count += other.box.left < box.right() && box.left < other.box.right() ? 1 : 0;
        return count;
      };
      const SvgBox right{x + 4, top, wide + 4, 17}, left{x - 8 - wide, top, wide + 4, 17};
      const bool to_the_left = in_the_way(left) < in_the_way(right);
      found.second.push_back({to_the_left ? left : right, &name});
      found.first += in_the_way(found.second.back().box) - 1;  // but for itself
    }
    return found;
  };
  const auto foot = place(false), head = place(true);
  for (const Placed& one : head.first < foot.first ? head.second : foot.second)
    svg.Text(one.box.left + 2, one.box.bottom() - 4, *one.name, kFont, kSoft);
}

// The names of lines at their ends, of upright ones beside them.
void DrawEnds(const Chart& chart, const std::vector<std::vector<Spot>>& spots, const Looks& looks,
              const SvgBox& plot, SvgWriter& svg) {
  NameUprights(chart, spots, plot, svg);
  std::vector<double> wanted;
  std::vector<size_t> named;
  for (size_t i = 0; i < spots.size(); ++i) {
    if (chart.series[i].name.empty() || IsUpright(spots[i])) continue;
    named.push_back(i);
    wanted.push_back(spots[i].back().second);
  }
  const std::vector<double> heights = SpreadOut(wanted, kLine, plot.top + 4, plot.bottom());
  for (size_t k = 0; k < named.size(); ++k) {
    const ChartSeries& series = chart.series[named[k]];
    const Look look = looks.Of(series);
    const Spot end = spots[named[k]].back();
    svg.Line(end.first + 5, end.second, plot.right() + 12, heights[k],
             fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"0.8\" stroke-opacity=\"0.7\"",
                         look.colour));
    svg.Text(plot.right() + 16, heights[k] + 4, series.name, kFont,
             series.grey ? kSoft : look.colour, TextAnchor::kStart, !series.grey);
  }
}

void DrawLines(const Chart& chart, const SvgBox& panel, SvgBox plot, bool labels,
               const Looks& looks, SvgWriter& svg) {
  double names = 0;
  const auto upright = [](const ChartSeries& series) {
    return series.points.size() > 1 && series.points.front().first == series.points.back().first;
  };
  if (labels)
    for (const ChartSeries& series : chart.series)
      if (!upright(series)) names = std::max(names, TextWidth(series.name, kFont * kBold));
  plot.height -= 22;
  const ChartAxis y = YAxisOf(chart, plot.bottom(), plot.top);
  const std::vector<AxisTick> ys = TicksOf(y, MostTicks(plot.height), InBytes(chart.y_label));
  const double wide = Widest(ys) + 12;
  plot.left += wide;
  plot.width -= wide + (labels ? names + 22 : 22);
  const ChartAxis x = XAxisOf(chart, plot.left, plot.right());
  DrawFrame(plot, XTicks(chart, x), &x, ys, y, svg);
  DrawAxisNames(chart, panel, plot, svg);
  std::vector<std::vector<Spot>> spots;
  for (const ChartSeries& series : chart.series) spots.push_back(SpotsOf(series, x, y, plot));
  // What is grey is something to compare with: under the others.
  for (const bool grey : {true, false})
    for (size_t i = 0; i < spots.size(); ++i) {
      const ChartSeries& series = chart.series[i];
      if (series.grey != grey) continue;
      if (series.line) DrawPath(spots[i], looks.Of(series), svg);
      DrawMarkers(spots[i], looks.Of(series), series.line, svg);
    }
  if (labels) DrawEnds(chart, spots, looks, plot, svg);
}

// --- Bars ----------------------------------------------------------------------------------------------

// Names below the bars: in lines where they fit, aslant where not. How high they are; nothing is drawn without `svg`.
double DrawBarNames(const Chart& chart, const SvgBox& plot, double slot, SvgWriter* svg) {
  size_t most = 1;
  bool fits = true;
  double longest = 0;
  for (const std::string& name : chart.bars) {
    const std::vector<std::string> lines = Wrapped(name, kSmall, slot - 4);
    most = std::max(most, lines.size());
    longest = std::max(longest, TextWidth(name, kSmall));
    for (const std::string& line : lines) fits = fits && TextWidth(line, kSmall) <= slot - 2;
  }
  fits = fits && most <= 3;
  for (size_t bar = 0; svg != nullptr && bar < chart.bars.size(); ++bar) {
    const double x = plot.left + slot * (static_cast<double>(bar) + 0.5);
    double y = plot.bottom() + 15;
    if (!fits) {
      svg->Text(x + 3, y - 1, chart.bars[bar], kSmall, kSoft, TextAnchor::kEnd, false, -38);
      continue;
    }
    for (const std::string& line : Wrapped(chart.bars[bar], kSmall, slot - 4)) {
      svg->Text(x, y, line, kSmall, kSoft, TextAnchor::kMiddle);
      y += kLine - 3;
    }
  }
  return fits ? 8 + static_cast<double>(most) * (kLine - 3) : 14 + 0.63 * longest;
}

double TallestBar(const Chart& chart) {
  double tallest = 0;
  for (size_t bar = 0; bar < chart.bars.size(); ++bar) {
    double height = 0;
    for (const ChartSeries& series : chart.series)
      height = chart.beside ? std::max(height, series.points[bar].second)
                            : height + series.points[bar].second;
    tallest = std::max(tallest, height);
  }
  return tallest > 0 ? tallest : 1;
}

// Three digits, without an exponent that takes more room than the bar has: "0.986", "1,380".
std::string SumText(double sum) {
  return sum >= 100 ? NumberText(std::round(sum), false) : fmt::format("{:.3g}", sum);
}

void DrawBars(const Chart& chart, const SvgBox& panel, SvgBox plot, const Looks& looks,
              SvgWriter& svg) {
  const double slot_before = (plot.width - 70) / static_cast<double>(chart.bars.size());
  plot.height -= DrawBarNames(chart, plot, slot_before, nullptr);
  const double tallest = TallestBar(chart);
  const ChartAxis y{0, tallest * 1.1, false, plot.bottom(), plot.top};
  const std::vector<AxisTick> ys = TicksOf(y, MostTicks(plot.height), InBytes(chart.y_label));
  // Names that stand aslant begin left of their bars.
  const double aslant = 0.8 * TextWidth(chart.bars.front(), kSmall) + panel.left - plot.left;
  const double wide = std::max(Widest(ys) + 12, aslant - slot_before / 2);
  plot.left += wide;
  plot.width -= wide + 14;
  DrawFrame(plot, {}, nullptr, ys, y, svg);
  DrawAxisNames(chart, panel, plot, svg);
  const double slot = plot.width / static_cast<double>(chart.bars.size());
  const double room = slot * 0.8;
  const double each = chart.beside ? room / static_cast<double>(chart.series.size()) : room;
  for (size_t bar = 0; bar < chart.bars.size(); ++bar) {
    double sum = 0, left = plot.left + slot * static_cast<double>(bar) + (slot - room) / 2,
           top = plot.bottom();
    for (const ChartSeries& series : chart.series) {
      const double value = std::max(0.0, series.points[bar].second);
      const double from = chart.beside ? 0 : sum;
      sum += value;
      top = y.At(from + value);
      if (value > 0)
        svg.Rectangle({left, top, each, y.At(from) - top}, BarInk(looks.Of(series), 0.6));
      if (chart.beside) left += each;
    }
    const std::string total = SumText(sum);
    if (!chart.beside && TextWidth(total, 11) < slot)
      svg.Text(plot.left + slot * (static_cast<double>(bar) + 0.5), top - 4, total, 11, kSoft,
               TextAnchor::kMiddle);
  }
  DrawBarNames(chart, plot, slot, &svg);
}

// --- The figure ------------------------------------------------------------------------------------------

std::string Drawn(std::span<const Chart> charts, int32_t charts_a_row) {
  const Looks looks(charts);
  const bool alone = charts.size() == 1;
  const bool bars = std::any_of(charts.begin(), charts.end(),
                                [](const Chart& chart) { return !chart.bars.empty(); });
  const bool heat = std::all_of(charts.begin(), charts.end(),
                                [](const Chart& chart) { return chart.heat.has_value(); });
  size_t max_bars = 0;
  for (const Chart& chart : charts) max_bars = std::max(max_bars, chart.bars.size());
  constexpr size_t kFewBars = 8, kFewLines = 12;
  const int32_t asked = charts_a_row;
  if (charts_a_row == 1 && !alone && max_bars <= kFewBars) charts_a_row = 2;
  const Chart& first = charts.front();
  const bool labels = alone && !heat && !bars && first.series.size() <= kFewLines &&
                      std::all_of(first.series.begin(), first.series.end(),
                                  [](const ChartSeries& series) { return series.line; });
  const std::vector<Entry> legend = labels ? std::vector<Entry>{} : LegendOf(charts, looks);
  const bool scale = heat && first.heat->words.empty();
  const double top = 6 + DrawLegend(legend, kFigureWidth, 6, nullptr) +
                     (scale ? DrawHeatScale(*first.heat, kFigureWidth, 6, nullptr) : 0);
  const double wide = kFigureWidth / charts_a_row;
  const double high =
      alone ? kTall
      : heat
          ? std::min(wide + 20, first.heat->columns == static_cast<int32_t>(
                                                           first.heat->cells.size() /
                                                           static_cast<size_t>(first.heat->columns))
                                    ? wide + 20
                                    : kPanel * 0.75)
      : bars && charts_a_row == 1 ? kPanel * 1.25
                                  : kPanel;
  const size_t rows =
      (charts.size() + static_cast<size_t>(charts_a_row) - 1) / static_cast<size_t>(charts_a_row);
  const double height = top + high * static_cast<double>(rows) + 6;

  SvgWriter svg;
  svg.Add(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                  "viewBox=\"0 0 {0} {1}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">\n",
                  SvgNumber(kFigureWidth), SvgNumber(height)));
  svg.Add(fmt::format(
      "<title>{}</title>\n",
      EscapedXml(alone ? first.title
                       : fmt::format("{} and {} more charts", first.title, charts.size() - 1))));
  svg.Add(fmt::format("<metadata>{}</metadata>\n", EscapedXml(ChartsJson(charts, asked))));
  svg.Rectangle({0, 0, kFigureWidth, height}, "fill=\"#ffffff\"");
  DefineTextures(charts, looks, svg);
  if (scale) DrawHeatScale(*first.heat, kFigureWidth, 6, &svg);
  DrawLegend(legend, kFigureWidth, scale ? 32 : 6, &svg);
  for (size_t i = 0; i < charts.size(); ++i) {
    const size_t column = i % static_cast<size_t>(charts_a_row),
                 row = i / static_cast<size_t>(charts_a_row);
    const SvgBox panel{static_cast<double>(column) * wide, top + static_cast<double>(row) * high,
                       wide, high};
    const Chart& chart = charts[i];
    // Plots beside each other begin at one height.
    size_t lines = 1;
    for (size_t k = i - column;
         k < std::min(charts.size(), i - column + static_cast<size_t>(charts_a_row)); ++k)
      lines = std::max(lines, TitleLines(charts[k], wide).size());
    svg.Add("<g>\n");
    const SvgBox plot = DrawTitles(chart, panel, lines, svg);
    if (chart.heat)
      DrawHeatMap(chart, panel, plot, svg);
    else if (!chart.bars.empty())
      DrawBars(chart, panel, plot, looks, svg);
    else
      DrawLines(chart, panel, plot, labels, looks, svg);
    svg.Add("</g>\n");
  }
  svg.Add("</svg>\n");
  return svg.Take();
}

}  // namespace

Result<std::string> DrawSvg(std::span<const Chart> charts, int32_t charts_a_row) {
  if (const Status drawable = CheckDrawable(charts, charts_a_row); !drawable)
    return tl::unexpected(drawable.error());
  // Drawn from what the picture carries, so that drawing it again gives the same.
  const Result<DrawnCharts> carried = ParseChartsJson(ChartsJson(charts, charts_a_row));
  if (!carried) return tl::unexpected(carried.error());
  return Drawn(carried->charts, carried->charts_a_row);
}

Result<DrawnCharts> ChartsOf(std::string_view svg) {
  constexpr std::string_view kBegin = "<metadata>", kEnd = "</metadata>";
  const size_t begin = svg.find(kBegin), end = svg.find(kEnd);
  if (begin == svg.npos || end == svg.npos || end < begin + kBegin.size())
    return InvalidArgument("it carries no data of charts");
  return ParseChartsJson(
      UnescapedXml(svg.substr(begin + kBegin.size(), end - begin - kBegin.size())));
}

}  // namespace tutti
