// The training of a page: docs/formats/explorer-data.md.
#include "json_text.h"
#include "tutti/page/page.h"

namespace tutti {
namespace {

std::string EventsJson(const std::vector<PageTraining::Event>& events) {
  JsonObject out;
  out.AddColumn("activity", events.size(),
                [&](size_t i) { return static_cast<int>(events[i].activity); });
  out.AddColumn("start_ps", events.size(), [&](size_t i) { return events[i].start_ps; });
  out.AddColumn("end_ps", events.size(), [&](size_t i) { return events[i].end_ps; });
  out.AddRaw("name", ArrayOf(events, [](const PageTraining::Event& event) {
               return AsciiJson(event.name);
             }));
  return out.ToString();
}

std::string RowJson(const PageTraining::Row& row, bool with_events) {
  JsonObject out;
  out.AddText("algorithm", row.algorithm);
  out.AddInt("iteration_ps", row.iteration_ps);
  out.AddInt("forward_ps", row.forward_ps);
  out.AddInt("backward_ps", row.backward_ps);
  out.AddInt("tensor_ps", row.tensor_ps);
  out.AddInt("all_to_all_ps", row.all_to_all_ps);
  out.AddInt("exposed_ps", row.exposed_ps);
  out.AddInt("gradients_ps", row.gradients_ps);
  out.AddRaw("events", EventsJson(with_events ? row.events : std::vector<PageTraining::Event>()));
  return out.ToString();
}

}  // namespace

void PageData::AddTraining(int32_t network, const PageTraining& training) {
  int64_t events = 0;
  for (const PageTraining::Row& row : training.rows) events += std::ssize(row.events);
  const bool with_events = events <= kMaxEvents;
  JsonObject out;
  out.AddInt("network", network);
  out.AddText("workload", training.workload);
  out.AddText("how", training.how);
  out.AddText("omitted", with_events
                             ? std::string()
                             : fmt::format("A page does not show each of {} events.", events));
  out.AddRaw("rows", ArrayOf(training.rows, [with_events](const PageTraining::Row& row) {
               return RowJson(row, with_events);
             }));
  views_.emplace_back("training", out.ToString());
}

}  // namespace tutti
