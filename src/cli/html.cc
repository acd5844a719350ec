#include "html.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "files.h"
#include "tutti/base/file.h"

namespace tutti::cli {

void HtmlFlag::AddTo(Command command) {
  command.AddOption(
      "--html", path_,
      "Also write one self-contained page that shows it; opens from disk in a browser "
      "(docs/guide/explore.md)");
}

Status HtmlFlag::Check(const std::vector<std::string>& inputs,
                       const std::string& other_output) const {
  if (!given()) return {};
  namespace fs = std::filesystem;
  if (!other_output.empty() &&
      fs::path(path_).lexically_normal() == fs::path(other_output).lexically_normal())
    return InvalidArgument(
        fmt::format("--html {} is also what another option (-o, --trace, --cables) writes", path_));
  return KeepInputs(path_, inputs);
}

Status HtmlFlag::Refuse(const std::string& what) const {
  if (!given()) return {};
  return InvalidArgument(fmt::format("--html shows schedules that are kept whole; {}", what));
}

Status HtmlFlag::Write(const PageData& data) const {
  return given() ? WritePage(path_, data) : Status();
}

std::string HtmlFlag::Text() const {
  return given() ? fmt::format("page in {}: open it in a browser\n", path_) : "";
}

Status WritePage(const std::string& path, const PageData& data) {
  const Result<std::string> page = MakePage(data.ToJson());
  if (!page) return tl::unexpected(page.error());
  return WriteFileAtomically(path, *page);
}

Status AddToPage(PageData& data, const Topology& topology, const Schedule& schedule,
                 PageSchedule facts) {
  facts.options.size_bytes = facts.size_bytes;
  facts.options.record_messages = true;
  const Result<SimReport> report = Simulate(topology, schedule, facts.options);
  if (!report && report.error().code == ErrorCode::kCancelled)
    return tl::unexpected(report.error());
  if (report)
    facts.report = &*report;
  else
    facts.note = "Not simulated: " + report.error().message;
  data.AddSchedule(data.AddNetwork(topology), topology, schedule, facts);
  return {};
}

void AddVerdict(const VerifyReport& report, PageSchedule& facts) {
  facts.verified = report.verified();
  facts.num_faults = report.num_violations;
  for (const Violation& violation : report.violations)
    facts.faults.push_back(
        {std::string(Name(violation.kind)), violation.message, violation.transfer});
}

}  // namespace tutti::cli
