// The operations of a page: docs/formats/explorer-data.md.
#include <algorithm>
#include <cmath>

#include "json_text.h"
#include "tutti/page/page.h"

namespace tutti {

void PageData::AddOperations(const PageOperations& operations) {
  const auto& all = operations.events;
  const bool whole = std::ssize(all) <= kMaxEvents;
  const size_t count = whole ? all.size() : 0;
  JsonObject out;
  out.AddText("title", operations.title);
  out.AddText("how", operations.how);
  out.AddText("omitted", whole
                             ? std::string()
                             : fmt::format("A page does not show each of {} events.", all.size()));
  out.AddRaw("lanes", ArrayOf(operations.lanes, AsciiJson));
  JsonObject events;
  events.AddColumn("lane", count, [&](size_t i) { return all[i].lane; });
  events.AddColumn("sequence", count, [&](size_t i) { return all[i].sequence; });
  events.AddColumn("waits", count, [&](size_t i) { return all[i].waits ? 1 : 0; });
  events.AddColumn("bytes", count, [&](size_t i) { return all[i].bytes; });
  events.AddColumn("start_ps", count, [&](size_t i) { return all[i].start_ps; });
  events.AddColumn("end_ps", count, [&](size_t i) { return all[i].end_ps; });
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(AsciiJson(all[i].name));
  events.AddRaw("name", ArrayJson(names));
  out.AddRaw("events", events.ToString());
  views_.emplace_back("operations", out.ToString());
}

}  // namespace tutti
