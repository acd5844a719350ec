#include "tutti/page/network_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "grouping.h"
#include "node_places.h"
#include "tutti/base/units.h"
#include "tutti/base/xml_text.h"

namespace tutti {
namespace {

constexpr int32_t kMaxGroupsDrawn = 128;

struct DrawnNode {
  std::string name;
  bool is_switch = false;
};

// All links between two nodes, or where they carry unlike much each way those of one direction.
struct Cable {
  int32_t tail = 0, head = 0;
  int64_t bandwidth = 0;  // each way together
  bool both_ways = true;
};

struct Drawing {
  std::vector<DrawnNode> nodes;  // ranks first
  int32_t ranks = 0;
  std::optional<DrawnGrid> grid;
  bool grouped = false;
  std::vector<Cable> cables;
};

std::vector<Cable> CablesOf(const std::map<std::pair<int32_t, int32_t>, int64_t>& sums) {
  std::vector<Cable> cables;
  for (const auto& [ends, bandwidth] : sums) {
    const auto back = sums.find({ends.second, ends.first});
    const bool both = back != sums.end() && back->second == bandwidth;
    if (both && ends.first > ends.second) continue;  // drawn from the other end
    cables.push_back({ends.first, ends.second, bandwidth, both});
  }
  return cables;
}

Drawing DrawingOf(const Topology& topology) {
  Drawing drawing;
  drawing.grouped = topology.num_nodes() > kMaxNodesDrawn || topology.num_links() > kMaxLinksDrawn;
  std::vector<int32_t> place(static_cast<size_t>(topology.num_nodes()));
  if (drawing.grouped) {
    Grouping grouping = GroupNodes(topology, kMaxGroupsDrawn);
    place = std::move(grouping.group_of);
    if (grouping.grid) drawing.grid = DrawnGrid{*grouping.grid, {}};
    for (std::string& name : grouping.names) drawing.nodes.push_back({std::move(name)});
    drawing.ranks = grouping.num_groups();
  } else {
    for (const NodeId node : topology.Nodes()) {
      place[node.index()] = node.value;
      drawing.nodes.push_back({topology.node_name(node), !topology.is_rank(node)});
    }
    drawing.ranks = topology.num_ranks();
    drawing.grid = DrawnGridOf(topology);
  }
  std::map<std::pair<int32_t, int32_t>, int64_t> sums;
  for (const LinkId link : topology.Links()) {
    const int32_t tail = place[topology.tail(link).index()];
    const int32_t head = place[topology.head(link).index()];
    if (tail != head) sums[{tail, head}] += topology.bandwidth(link);
  }
  drawing.cables = CablesOf(sums);
  return drawing;
}

// --- Speeds --------------------------------------------------------------------------------------

struct Style {
  const char* color;
  double width;
};
// From slow to fast: also told apart by width, in grey print.
constexpr std::array<Style, 6> kStyles{{{"#9aa5b1", 1.0},
                                        {"#2f9fd6", 1.6},
                                        {"#0072b2", 2.3},
                                        {"#009e73", 3.1},
                                        {"#d55e00", 4.0},
                                        {"#7a1f1f", 5.0}}};

struct SpeedClass {
  int64_t from = 0, to = 0;  // bandwidths
  int64_t cables = 0;
  Style style{};
};

// One for each speed, or where there are too many neighbours in order together.
std::vector<SpeedClass> ClassesOf(const std::vector<Cable>& cables) {
  std::map<int64_t, int64_t> counts;
  for (const Cable& cable : cables) ++counts[cable.bandwidth];
  const size_t classes = std::min(counts.size(), kStyles.size());
  std::vector<SpeedClass> out(classes);
  size_t at = 0;
  for (const auto& [bandwidth, count] : counts) {
    SpeedClass& one = out[at++ * classes / counts.size()];
    if (one.cables == 0) one.from = bandwidth;
    one.to = bandwidth;
    one.cables += count;
  }
  constexpr std::array<std::array<size_t, 6>, 6> kWhich{
      {{2}, {0, 2}, {0, 2, 4}, {0, 1, 2, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}}};
  for (size_t i = 0; i < classes; ++i) out[i].style = kStyles[kWhich[classes - 1][i]];
  return out;
}

size_t ClassOf(const std::vector<SpeedClass>& classes, int64_t bandwidth) {
  size_t at = 0;
  while (classes[at].to < bandwidth) ++at;
  return at;
}

// --- The picture ---------------------------------------------------------------------------------

class Painter {
 public:
  explicit Painter(const Topology& topology)
      : topology_(topology), drawing_(DrawingOf(topology)), classes_(ClassesOf(drawing_.cables)) {
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (const Cable& cable : drawing_.cables) pairs.insert(std::minmax({cable.tail, cable.head}));
    places_ = PlaceNodes(static_cast<int32_t>(drawing_.nodes.size()), drawing_.ranks, drawing_.grid,
                         {pairs.begin(), pairs.end()});
    Measure();
  }

  std::string Paint() {
    Add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
        "font-family=\"system-ui, sans-serif\">\n",
        width_, Height());
    const std::string name = topology_.name().empty() ? "an unnamed network" : topology_.name();
    Add("<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        EscapedXml(name));
    Add("<text x=\"{:.0f}\" y=\"26\" font-size=\"17\" font-weight=\"600\">{}</text>\n", kMargin,
        EscapedXml(Shortened(name, kTitleLength)));
    Add("<text x=\"{:.0f}\" y=\"46\" font-size=\"13\" fill=\"#5b6470\">{}</text>\n", kMargin,
        Summary());
    PaintCables();
    PaintNodes();
    PaintLegend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  static constexpr double kMargin = 24, kTop = 70, kLegendLine = 20;
  static constexpr size_t kTitleLength = 90, kLabelLength = 14;

  template <class... Arguments>
  void Add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }

  static std::string Shortened(const std::string& text, size_t most) {
    return text.size() <= most ? text : text.substr(0, most - 3) + "...";
  }

  // The size of the picture and of its nodes.
  void Measure() {
    const bool layers = places_.kind == NodePlaces::Kind::kLayers;
    std::map<int64_t, double> in_row;  // nodes, by height
    for (const double y : places_.y) ++in_row[std::llround(y * 1e6)];
    double widest = 0;
    for (const auto& [y, count] : in_row) widest = std::max(widest, count);
    const auto count = static_cast<double>(drawing_.nodes.size());
    if (layers) {
      width_ = std::clamp(widest * 54, 480.0, 1600.0);
      height_ = 130.0 * static_cast<double>(in_row.size() - 1) + 60;
    } else {
      width_ = std::clamp(90 * std::sqrt(count) + 160, 420.0, 1100.0);
      const auto [top, bottom] = std::minmax_element(places_.y.begin(), places_.y.end());
      height_ = std::max((width_ - 2 * kMargin - 40) * (*bottom - *top), 40.0);
      first_y_ = *top;
    }
    const double room = layers ? (width_ - 2 * kMargin) / widest : Nearest();
    radius_ = std::clamp(0.36 * room, 2.0, 15.0);
    for (const double y : places_.y)
      label_room_.push_back(layers ? (width_ - 2 * kMargin) / in_row[std::llround(y * 1e6)] : room);
  }

  // Between the two nodes nearest to each other, or a usual distance where many are.
  double Nearest() const {
    const double scale = width_ - 2 * kMargin - 40;
    double least = 1;
    constexpr size_t kMaxCompared = 400;
    const size_t count = std::min(places_.x.size(), kMaxCompared);
    for (size_t a = 0; a < count; ++a)
      for (size_t b = a + 1; b < count; ++b)
        least =
            std::min(least, std::hypot(places_.x[a] - places_.x[b], places_.y[a] - places_.y[b]));
    return least * scale;
  }

  double Height() const {
    return kTop + height_ + 40 + kLegendLine * static_cast<double>(classes_.size()) + 64;
  }

  std::pair<double, double> At(int32_t node) const {
    const auto i = static_cast<size_t>(node);
    if (places_.kind == NodePlaces::Kind::kLayers)
      return {kMargin + places_.x[i] * (width_ - 2 * kMargin),
              kTop + 20 + places_.y[i] * (height_ - 40)};
    const double scale = width_ - 2 * kMargin - 40;
    return {kMargin + 20 + places_.x[i] * scale, kTop + 20 + (places_.y[i] - first_y_) * scale};
  }

  std::string Summary() const {
    const int32_t switches = topology_.num_nodes() - topology_.num_ranks();
    std::string text =
        fmt::format("{} rank{}", topology_.num_ranks(), topology_.num_ranks() == 1 ? "" : "s");
    if (switches > 0) text += fmt::format(", {} switch{}", switches, switches == 1 ? "" : "es");
    text += fmt::format(", {} directed link{}", topology_.num_links(),
                        topology_.num_links() == 1 ? "" : "s");
    if (drawing_.grouped)
      text += fmt::format("; drawn as {} groups of nodes", drawing_.nodes.size());
    return text;
  }

  // Whether it goes around a grid, so that it would hide those between.
  bool GoesAround(const Cable& cable) const {
    if (!drawing_.grid || !drawing_.grid->shape.wraps || places_.kind != NodePlaces::Kind::kGrid)
      return false;
    int32_t a = drawing_.grid->PlaceOf(cable.tail), b = drawing_.grid->PlaceOf(cable.head);
    for (size_t i = drawing_.grid->shape.dims.size(); i-- > 0;) {
      const int32_t side = drawing_.grid->shape.dims[i];
      if (std::abs(a % side - b % side) > 1) return true;
      a /= side;
      b /= side;
    }
    return false;
  }

  void PaintCables() {
    Add("<defs>\n");
    for (size_t i = 0; i < classes_.size(); ++i)
      Add("<marker id=\"arrow{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"{:.1f}\" "
          "markerHeight=\"{:.1f}\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8 "
          "L8 4 L0 7.2 Z\" fill=\"{}\"/></marker>\n",
          i, ArrowSize(), ArrowSize(), classes_[i].style.color);
    Add("</defs>\n<g fill=\"none\" stroke-linecap=\"round\">\n");
    for (const Cable& cable : drawing_.cables) PaintCable(cable);
    Add("</g>\n");
  }

  double ArrowSize() const { return std::clamp(radius_ * 0.8, 4.0, 9.0); }

  void PaintCable(const Cable& cable) {
    const size_t which = ClassOf(classes_, cable.bandwidth);
    const Style& style = classes_[which].style;
    const auto [ax, ay] = At(cable.tail);
    const auto [bx, by] = At(cable.head);
    const double length = std::max(std::hypot(bx - ax, by - ay), 1e-6);
    const double nx = -(by - ay) / length, ny = (bx - ax) / length;
    const double bow = GoesAround(cable) ? -std::min(0.14 * length, 44.0)
                       : cable.both_ways ? 0
                                         : 0.06 * length + 2;
    const double cx = (ax + bx) / 2 + nx * bow, cy = (ay + by) / 2 + ny * bow;
    // An arrow ends at the rim of its node.
    const double end = std::max(std::hypot(bx - cx, by - cy), 1e-6);
    const double back = cable.both_ways ? 0 : std::min(radius_ + 1, end * 0.8) / end;
    const double width = std::max(0.5, style.width * std::min(1.0, radius_ / 7));
    const double ex = bx - (bx - cx) * back, ey = by - (by - cy) * back;
    Add("<path d=\"M{:.1f} {:.1f} ", ax, ay);
    if (bow == 0)
      Add("L{:.1f} {:.1f}\"", ex, ey);
    else
      Add("Q{:.1f} {:.1f} {:.1f} {:.1f}\"", cx, cy, ex, ey);
    Add(" stroke=\"{}\" stroke-width=\"{:.1f}\"", style.color, width);
    if (!cable.both_ways) Add(" marker-end=\"url(#arrow{})\"", which);
    Add("/>\n");
  }

  void PaintNodes() {
    Add("<g stroke=\"#3b4550\" stroke-width=\"{:.1f}\">\n", std::min(1.3, radius_ / 4));
    for (size_t i = 0; i < drawing_.nodes.size(); ++i) {
      const auto [x, y] = At(static_cast<int32_t>(i));
      const DrawnNode& node = drawing_.nodes[i];
      const char* const fill = node.is_switch ? "#56616e" : "#ffffff";
      if (node.is_switch || drawing_.grouped)
        Add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" "
            "fill=\"{}\"><title>{}</title></rect>\n",
            x - radius_, y - radius_, 2 * radius_, 2 * radius_, fill, EscapedXml(node.name));
      else
        Add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"><title>{}</title>"
            "</circle>\n",
            x, y, radius_, fill, EscapedXml(node.name));
    }
    Add("</g>\n<g font-size=\"{:.0f}\" text-anchor=\"middle\" stroke-linejoin=\"round\">\n",
        FontSize());
    for (size_t i = 0; i < drawing_.nodes.size(); ++i) PaintLabel(i);
    Add("</g>\n");
  }

  double FontSize() const { return std::clamp(radius_, 7.0, 12.0); }

  // Inside where it is short, else below what of it stands behind its last point.
  void PaintLabel(size_t i) {
    constexpr double kOfFont = 0.6;  // a letter's width
    if (radius_ < 6) return;
    const DrawnNode& node = drawing_.nodes[i];
    const auto [x, y] = At(static_cast<int32_t>(i));
    const auto wide = [&](const std::string& text) {
      return static_cast<double>(text.size()) * kOfFont * FontSize();
    };
    const std::string whole = Shortened(node.name, kLabelLength);
    const std::string part = Shortened(node.name.substr(node.name.rfind('.') + 1), kLabelLength);
    for (const std::string& text : {node.name, part})
      if (wide(text) <= 2 * radius_ - 2)
        return Add("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", x,
                   y + 0.36 * FontSize(), node.is_switch ? "#ffffff" : "#1a1a1a", EscapedXml(text));
    for (const std::string& text : {whole, part})
      if (wide(text) <= label_room_[i] - 3)
        return Add(
            "<text x=\"{:.1f}\" y=\"{:.1f}\" paint-order=\"stroke\" stroke=\"#ffffff\" "
            "stroke-width=\"3\">{}</text>\n",
            x, y + radius_ + FontSize() + 2, EscapedXml(text));
  }

  void PaintLegend() {
    if (classes_.empty()) return;
    double y = kTop + height_ + 74;
    Add("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"13\" font-weight=\"600\">Between two {}, all "
        "links of one way together</text>\n",
        kMargin, y, drawing_.grouped ? "groups" : "nodes");
    for (const SpeedClass& one : classes_) {
      y += kLegendLine;
      const std::string speed =
          one.from == one.to
              ? ReadableBandwidth(one.from)
              : fmt::format("{} to {}", ReadableBandwidth(one.from), ReadableBandwidth(one.to));
      Add("<path d=\"M{0:.0f} {1:.0f} h44\" stroke=\"{2}\" stroke-width=\"{3:.1f}\"/>"
          "<text x=\"{4:.0f}\" y=\"{5:.0f}\" font-size=\"13\">{6}: {7} line{8}</text>\n",
          kMargin, y - 4, one.style.color, one.style.width, kMargin + 56, y, speed, one.cables,
          one.cables == 1 ? "" : "s");
    }
  }

  const Topology& topology_;
  Drawing drawing_;
  std::vector<SpeedClass> classes_;  // by bandwidth
  NodePlaces places_;
  double width_ = 0, height_ = 0, first_y_ = 0, radius_ = 1;
  std::vector<double> label_room_;  // by node
  std::string text_;
};

}  // namespace

std::string NetworkSvg(const Topology& topology) { return Painter(topology).Paint(); }

}  // namespace tutti
