// The fabric that a user describes where no file does: rails(...), spine_leaf(L,S), switch.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "merge.h"
#include "reader.h"
#include "text.h"
#include "tutti/base/units.h"

namespace tutti {
namespace {

__extension__ using Wide = __int128;

constexpr int64_t kMaxSwitches = 1 << 16;

tl::unexpected<Error> Unknown(std::string_view text) {
  return InvalidArgument(fmt::format(
      "fabric '{}'; accepted are rails(count=C,spines=S), spine_leaf(LEAVES,SPINES) and switch, "
      "each with nic=400Gbit/s behind",
      import::Shown(text)));
}

Status ReadArgument(std::string_view argument, size_t place, GivenFabric& fabric) {
  const size_t equals = argument.find('=');
  const std::string_view key = equals == argument.npos ? "" : argument.substr(0, equals);
  const std::string_view value = equals == argument.npos ? argument : argument.substr(equals + 1);
  if (key == "nic") {
    const Result<int64_t> bandwidth = ParseBandwidth(value);
    if (!bandwidth) return Within("nic", bandwidth.error());
    if (*bandwidth < 1) return InvalidArgument("nic=0, wanted more");
    fabric.nic_bandwidth = *bandwidth;
    return {};
  }
  const bool rails = fabric.kind == GivenFabric::Kind::kRails;
  const bool leaves = fabric.kind == GivenFabric::Kind::kSpineLeaf && key.empty();
  int64_t* const to = (rails && key == "count") || (leaves && place == 0)    ? &fabric.lower
                      : (rails && key == "spines") || (leaves && place == 1) ? &fabric.upper
                                                                             : nullptr;
  const auto number = import::Number(value, kMaxSwitches);
  if (to == nullptr || !number || *number < 1) return Unknown(argument);
  *to = *number;
  return {};
}

}  // namespace

Result<GivenFabric> ParseGivenFabric(std::string_view text) {
  GivenFabric fabric;
  const size_t open = text.find('(');
  const std::string_view name = text.substr(0, open);
  if (name == "rails")
    fabric.kind = GivenFabric::Kind::kRails;
  else if (name == "spine_leaf")
    fabric.kind = GivenFabric::Kind::kSpineLeaf;
  else if (name != "switch")
    return Unknown(text);
  if (open != text.npos) {
    if (text.back() != ')') return Unknown(text);
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    for (size_t place = 0; !rest.empty(); ++place) {
      const size_t comma = rest.find(',');
      if (Status status = ReadArgument(import::Trimmed(rest.substr(0, comma)), place, fabric);
          !status)
        return Within(fmt::format("fabric '{}'", import::Shown(text)), status.error());
      rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    }
  }
  if (fabric.kind == GivenFabric::Kind::kSpineLeaf && (fabric.lower == 0 || fabric.upper == 0))
    return Unknown(text);
  return fabric;
}

namespace import {
namespace {

using Kind = GivenFabric::Kind;

// A rail, a leaf, or the one switch.
struct Low {
  Net::Node node = 0;
  int64_t below = 0;  // what comes in from the NICs
};

std::string NameOf(const GivenFabric& fabric, int64_t i) {
  if (fabric.kind == Kind::kSwitch) return "network";
  return fmt::format("{}{}", fabric.kind == Kind::kRails ? "rail" : "leaf", i);
}

// How many rails or leaves, or why not so many.
Result<int64_t> CountLows(const std::vector<Box>& boxes, const GivenFabric& fabric) {
  int64_t most = 0;
  for (const Box& box : boxes)
    most = std::max<int64_t>(most, std::count_if(box.is_used.begin(), box.is_used.end(),
                                                 [](char one) { return one != 0; }));
  const auto num_boxes = static_cast<int64_t>(boxes.size());
  if (most == 0) return InvalidArgument("--fabric: no box has a NIC that a GPU uses");
  if (fabric.kind == Kind::kSwitch) return 1;
  if (fabric.kind == Kind::kRails && fabric.lower > most)
    return InvalidArgument(
        fmt::format("--fabric: {} rails, but no box uses more than {} NICs", fabric.lower, most));
  if (fabric.kind == Kind::kSpineLeaf && fabric.lower > num_boxes)
    return InvalidArgument(
        fmt::format("--fabric: {} leaves for {} boxes", fabric.lower, num_boxes));
  return fabric.lower == 0 ? most : fabric.lower;
}

void SayGiven(const GivenFabric& fabric, int64_t lower, Ledger& ledger) {
  std::string text = "one switch";
  if (fabric.kind != Kind::kSwitch)
    text = fmt::format("{} {}{}", lower, fabric.kind == Kind::kRails ? "rails" : "leaves",
                       fabric.upper > 0 ? fmt::format(" below {} spines", fabric.upper) : "");
  ledger.provenance.push_back({"network", std::move(text), "given"});
}

void AddSpines(const GivenFabric& fabric, const std::vector<Low>& lows, const MergeOptions& options,
               Net& net) {
  for (int64_t s = 0; s < fabric.upper; ++s) {
    const Net::Node spine = net.AddSwitch(fmt::format("spine{}", s));
    for (const Low& low : lows) {
      const auto share = static_cast<int64_t>(Wide{low.below} * options.oversubscription_den /
                                              options.oversubscription_num / fabric.upper);
      if (share > 0) net.AddCable(low.node, spine, share);
    }
  }
}

}  // namespace

// Rail i modulo their number has the i-th used NICs of all boxes; a leaf has boxes that follow each
// other.
Status AddGivenFabric(const std::vector<Box>& boxes, const MergeOptions& options, Net& net,
                      Ledger& ledger) {
  const GivenFabric& fabric = *options.fabric;
  const Result<int64_t> lower = CountLows(boxes, fabric);
  if (!lower) return tl::unexpected(lower.error());
  const bool rails = fabric.kind == Kind::kRails;
  std::vector<Low> lows;
  for (int64_t i = 0; i < *lower; ++i) lows.push_back({net.AddSwitch(NameOf(fabric, i)), 0});
  for (size_t b = 0; b < boxes.size(); ++b) {
    int64_t number = 0;
    for (size_t nic = 0; nic < boxes[b].facts.nics.size(); ++nic) {
      if (boxes[b].is_used[nic] == 0) continue;
      const int64_t at =
          rails ? number++ % *lower : static_cast<int64_t>(b) * *lower / std::ssize(boxes);
      Low& low = lows[static_cast<size_t>(at)];
      net.AddCable(boxes[b].ports[nic], low.node, boxes[b].facts.nics[nic].bandwidth);
      low.below = SaturatingAdd(low.below, boxes[b].facts.nics[nic].bandwidth);
    }
  }
  SayGiven(fabric, *lower, ledger);
  AddSpines(fabric, lows, options, net);
  return {};
}

}  // namespace import
}  // namespace tutti
