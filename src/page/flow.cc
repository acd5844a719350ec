// The flows of a page: docs/formats/explorer-data.md.
#include <cmath>

#include "drawn_links.h"
#include "json_text.h"
#include "tutti/page/page.h"

namespace tutti {

void PageData::AddFlow(int32_t network, const Topology& topology, const PageFlow& flow) {
  const std::vector<double> load = OnDrawnLinks(topology, flow.load);
  JsonObject out;
  out.AddInt("network", network);
  out.AddRaw("f", RationalJson(flow.f_lower));
  out.AddRaw("f_upper", RationalJson(flow.f_upper));
  out.AddInt("proven", flow.f_lower == flow.f_upper ? 1 : 0);
  out.AddInt("min_bandwidth", topology.min_bandwidth());
  out.AddInt("demand", flow.demand ? 1 : 0);
  out.AddColumn("load", load.size(), [&](size_t i) { return std::llround(load[i]); });
  const bool apart = !IsGrouped(topology);  // lengths are of single links
  out.AddColumn("length", apart ? flow.length.size() : 0, [&](size_t i) { return flow.length[i]; });
  flows_.push_back(out.ToString());
}

}  // namespace tutti
