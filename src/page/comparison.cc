// The comparison of a page: docs/formats/explorer-data.md.
#include "json_text.h"
#include "tutti/page/page.h"

namespace tutti {
namespace {

std::string CurveJson(const PageCurve& curve) {
  JsonObject out;
  out.AddText("name", curve.name);
  out.AddColumn("size_bytes", curve.size_bytes.size(),
                [&](size_t i) { return curve.size_bytes[i]; });
  out.AddColumn("time_ps", curve.time_s.size(),
                [&](size_t i) { return Picoseconds(curve.time_s[i]); });
  return out.ToString();
}

std::string ComparedJson(const PageComparison::Row& row) {
  JsonObject out;
  out.AddText("algorithm", row.algorithm);
  out.AddInt("size_bytes", row.size_bytes);
  out.AddInt("time_ps", Picoseconds(row.time_s));
  out.AddInt("analytic_ps", Picoseconds(row.analytic_s));
  out.AddInt("bound_ps", Picoseconds(row.bound_s));
  out.AddInt("steps", row.steps);
  return out.ToString();
}

std::string RangeJson(const PageComparison::Range& range) {
  JsonObject out;
  out.AddText("algorithm", range.algorithm);
  out.AddInt("from_bytes", range.from_bytes);
  return out.ToString();
}

std::string MissingJson(const std::pair<std::string, std::string>& missing) {
  JsonObject out;
  out.AddText("algorithm", missing.first);
  out.AddText("reason", missing.second);
  return out.ToString();
}

}  // namespace

void PageData::AddComparison(int32_t network, const PageComparison& comparison) {
  JsonObject out;
  out.AddInt("network", network);
  out.AddText("collective", Name(comparison.collective));
  out.AddText("how", comparison.how);
  out.AddReal("bus_factor", comparison.bus_factor);
  out.AddRaw("rows", ArrayOf(comparison.rows, ComparedJson));
  out.AddRaw("curves", ArrayOf(comparison.curves, CurveJson));
  out.AddRaw("bound", CurveJson(comparison.bound));
  out.AddRaw("best", ArrayOf(comparison.best, RangeJson));
  out.AddRaw("missing", ArrayOf(comparison.missing, MissingJson));
  views_.emplace_back("comparison", out.ToString());
}

}  // namespace tutti
