// --to routes-per-rank, --to route-tables
#include "tutti/lower/routes.h"

#include "formats.h"

namespace tutti::lower {
namespace {

template <Result<std::string> (*kWrite)(const Topology&, const Routing&)>
Result<LoweredText> ToText(const Topology& topology, const Routing& routing,
                           const FormatOptionValues&) {
  Result<std::string> text = kWrite(topology, routing);
  if (!text) return tl::unexpected(text.error());
  return LoweredText{std::move(*text), {}, false, {}, {}};
}

}  // namespace

LoweringFormat RoutesPerRankFormat() {
  return {.name = "routes-per-rank",
          .description = "the paths of each block, for source-routed networks",
          .extension = ".txt",
          .options = {},
          .routing = ToText<ToRoutesPerRank>};
}

LoweringFormat RouteTablesFormat() {
  return {.name = "route-tables",
          .description = "routes link by link, for networks that forward by table",
          .extension = ".txt",
          .options = {},
          .routing = ToText<ToRouteTables>};
}

}  // namespace tutti::lower
