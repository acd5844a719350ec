// tutti design: the page of --html.
#include <utility>

#include "design.h"

namespace tutti::cli {
namespace {

// Networks of a page together; the frontier's first come first.
constexpr int64_t kMaxDrawnLinks = 400'000;

PageDesigns::Row RowOf(const ShownDesigns& shown, size_t i) {
  const Design& design = shown.designs[i];
  const DesignCost cost = shown.CostOf(design);
  PageDesigns::Row row{.recipe = design.recipe,
                       .algorithm = design.algorithm,
                       .tl = cost.tl,
                       .diameter = design.diameter,
                       .tb = cost.tb,
                       .bidirectional = design.bidirectional,
                       .reasons = design.reasons};
  if (!shown.sizes.empty()) row.time_s = shown.seconds[i].ToDouble();
  if (shown.flows.empty()) return row;
  row.f_lower = shown.flows[i].lower.ToDouble();
  row.f_upper = shown.flows[i].upper.ToDouble();
  return row;
}

}  // namespace

Status WriteDesignPage(const DesignFlags& flags, const ShownDesigns& shown) {
  if (!flags.html.given()) return {};
  const DesignCost bound = BoundOf(shown, flags);
  const Design& first = shown.designs.front();
  PageDesigns designs{.ranks = first.ranks,
                      .degree = first.degree,
                      .collective = shown.costed(),
                      .one_way = flags.one_way,
                      .tl_bound = bound.tl,
                      .tb_bound = bound.tb};
  if (!shown.sizes.empty()) designs.bound_s = shown.bound_seconds.ToDouble();
  if (shown.best) designs.best = static_cast<int32_t>(*shown.best);
  PageData data("design");
  int64_t links = 0;
  for (size_t i = 0; i < shown.designs.size(); ++i) {
    designs.rows.push_back(RowOf(shown, i));
    const Result<Topology> topology = NetworkWithLinks(shown.designs[i].recipe, shown.link);
    if (!topology) return tl::unexpected(topology.error());
    links += topology->num_links();
    if (i == 0 || links <= kMaxDrawnLinks) designs.rows.back().network = data.AddNetwork(*topology);
  }
  data.AddDesigns(designs);
  return flags.html.Write(data);
}

}  // namespace tutti::cli
