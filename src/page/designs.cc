// The designs of a page: docs/formats/explorer-data.md.
#include "json_text.h"
#include "tutti/page/page.h"

namespace tutti {
namespace {

void AddKnown(std::string_view key, const std::optional<double>& value, JsonObject& out) {
  if (value) out.AddReal(key, *value);
}

std::string DesignJson(const PageDesigns::Row& row) {
  JsonObject out;
  out.AddText("recipe", row.recipe);
  out.AddText("algorithm", row.algorithm);
  out.AddInt("network", row.network);
  out.AddInt("tl", row.tl);
  out.AddRaw("tb", RationalJson(row.tb));
  out.AddInt("diameter", row.diameter);
  out.AddInt("bidirectional", row.bidirectional ? 1 : 0);
  out.AddRaw("reasons", ArrayOf(row.reasons, AsciiJson));
  if (row.time_s) out.AddInt("time_ps", Picoseconds(*row.time_s));
  AddKnown("f_lower", row.f_lower, out);
  AddKnown("f_upper", row.f_upper, out);
  return out.ToString();
}

}  // namespace

void PageData::AddDesigns(const PageDesigns& designs) {
  JsonObject out;
  out.AddInt("ranks", designs.ranks);
  out.AddInt("degree", designs.degree);
  out.AddText("collective", Name(designs.collective));
  out.AddInt("one_way", designs.one_way ? 1 : 0);
  out.AddInt("tl_bound", designs.tl_bound);
  out.AddRaw("tb_bound", RationalJson(designs.tb_bound));
  if (designs.bound_s) out.AddInt("bound_ps", Picoseconds(*designs.bound_s));
  out.AddInt("best", designs.best);
  out.AddRaw("rows", ArrayOf(designs.rows, DesignJson));
  views_.emplace_back("designs", out.ToString());
}

}  // namespace tutti
