#include "families/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "syntax.h"
#include "tutti/base/units.h"

namespace tutti::topo {
namespace {

using Names = std::unordered_map<std::string_view, int32_t>;

// "a-b", where names may hold a '-' themselves.
Result<std::pair<int32_t, int32_t>> EndsOf(const Names& names, const NamedCable& one,
                                           std::string_view ends) {
  std::vector<std::pair<int32_t, int32_t>> found;
  for (size_t at = ends.find('-'); at != ends.npos; at = ends.find('-', at + 1)) {
    const auto a = names.find(ends.substr(0, at)), b = names.find(ends.substr(at + 1));
    if (a != names.end() && b != names.end()) found.emplace_back(a->second, b->second);
  }
  if (found.size() == 1) return found[0];
  return FaultAt(one.column, fmt::format("override={}: {}", Shown(one.text),
                                         found.empty() ? "no two nodes of the network are called so"
                                                       : "several pairs of nodes are called so"));
}

}  // namespace

Status ApplyOverrides(const std::vector<NamedCable>& overrides, Draft& draft) {
  Names names;
  for (size_t node = 0; node < draft.names.size(); ++node)
    names.emplace(draft.names[node], static_cast<int32_t>(node));
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const NamedCable& one : overrides) {
    const auto fault = [&one](const std::string& what) {
      return FaultAt(one.column, fmt::format("override={}: {}", Shown(one.text), what));
    };
    const size_t colon = one.text.rfind(':');
    if (colon == one.text.npos)
      return fault("wanted two nodes and a bandwidth such as leaf0-spine1:50GB/s");
    const auto ends = EndsOf(names, one, std::string_view(one.text).substr(0, colon));
    if (!ends) return tl::unexpected(ends.error());
    const Result<int64_t> bandwidth = ParseBandwidth(one.text.substr(colon + 1));
    if (!bandwidth) return fault(bandwidth.error().message);
    if (*bandwidth < 1 || *bandwidth > kMaxBandwidth)
      return fault(fmt::format("the bandwidth is outside 1 .. {}", kMaxBandwidth));
    if (!seen.insert(std::minmax(ends->first, ends->second)).second)
      return fault("this cable stands there twice");
    bool any = false;
    for (DraftLink& link : draft.links)
      if (std::minmax(link.tail, link.head) == std::minmax(ends->first, ends->second)) {
        link.spec.bandwidth = *bandwidth;
        any = true;
      }
    if (!any) return fault("no link joins them");
  }
  return {};
}

}  // namespace tutti::topo
