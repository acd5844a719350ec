// tutti lower
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common.h"
#include "files.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/lower/formats.h"
#include "tutti/store/routing_store.h"
#include "tutti/store/store.h"
#include "tutti/verify/routing.h"

namespace tutti::cli {
namespace {

struct LowerFlags {
  std::string path, format, output;
  // By name of the option: those of all formats.
  std::map<std::string_view, std::string> values;
  std::map<std::string_view, bool> switches;
};

FormatOptionValues ValuesOf(const LowerFlags& flags) {
  FormatOptionValues values;
  for (const auto& [name, value] : flags.values) values.Set(name, value);
  for (const auto& [name, on] : flags.switches) values.Set(name, on ? "on" : "");
  return values;
}

// "--to a or --to b".
std::string NamesOf(bool routings) {
  std::string names;
  for (const LoweringFormat& format : LoweringFormats())
    if ((format.routing != nullptr) == routings)
      names += fmt::format("{}--to {}", names.empty() ? "" : " or ", format.name);
  return names;
}

Result<LoweredText> LowerRouting(const LowerFlags& flags, const LoweringFormat& format) {
  if (format.routing == nullptr)
    return InvalidArgument(
        fmt::format("{} holds a routing; it is lowered {}", flags.path, NamesOf(true)));
  const Result<RoutingFile> file = ReadRoutingFile(flags.path);
  if (!file) return tl::unexpected(file.error());
  const RoutingReport report = CheckRouting(file->topology, file->routing);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible, "the routing is not correct (nothing was written): " +
                                                 report.violations.front().message);
  return format.routing(file->topology, file->routing, ValuesOf(flags));
}

Result<LoweredText> LowerSchedule(const LowerFlags& flags, const LoweringFormat& format) {
  if (format.schedule == nullptr)
    return InvalidArgument(
        fmt::format("{} holds a schedule; --to {} is for routings", flags.path, flags.format));
  const Result<ScheduleFile> file = ReadScheduleFile(flags.path);
  if (!file) return tl::unexpected(file.error());
  if (file->schedule.collective.has_groups() && !format.groups) {
    std::string takers;
    for (const LoweringFormat& each : LoweringFormats())
      if (each.groups) takers += fmt::format("{}--to {}", takers.empty() ? "" : " or ", each.name);
    return InvalidArgument(
        fmt::format("{} is of groups of ranks, which --to {} has no words for; it is lowered {}",
                    flags.path, flags.format, takers));
  }
  return format.schedule(file->topology, file->schedule, ValuesOf(flags));
}

// The files that come of it: one, or several beside each other.
std::vector<std::pair<std::string, std::string>> FilesFrom(LoweredText& lowered,
                                                           const std::string& output) {
  std::vector<std::pair<std::string, std::string>> files;
  if (lowered.files.empty()) files.emplace_back(output, std::move(lowered.text));
  for (auto& [suffix, bytes] : lowered.files) files.emplace_back(output + suffix, std::move(bytes));
  return files;
}

// All or none of them, as far as files that were there before allow.
Status WriteFiles(const std::vector<std::pair<std::string, std::string>>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    const Status written = WriteFileAtomically(files[i].first, files[i].second);
    if (written) continue;
    while (i > 0) std::remove(files[--i].first.c_str());
    return written;
  }
  return {};
}

int Lower(const Program& program, const LowerFlags& flags) {
  const Result<FileKind> kind = KindOfInput(
      flags.path, {FileKind::kSchedule, FileKind::kSymmetricSchedule, FileKind::kRouting});
  if (!kind) return Report(kind.error());
  if (const Status kept = KeepInputs(flags.output, {flags.path}); !kept)
    return Report(kept.error());
  const LoweringFormat& format = *FindLoweringFormat(flags.format);
  Result<LoweredText> lowered =
      *kind == FileKind::kRouting ? LowerRouting(flags, format) : LowerSchedule(flags, format);
  if (!lowered) return Report(lowered.error());
  if (CancelRequested()) return Report(CancelledError());
  const auto files = FilesFrom(*lowered, flags.output);
  size_t bytes = 0;
  for (const auto& [path, content] : files) {
    if (const Status kept = KeepInputs(path, {flags.path}); !kept) return Report(kept.error());
    bytes += content.size();
  }
  if (const Status written = WriteFiles(files); !written) return Report(written.error());
  Json out{{"format", flags.format}, {"output", flags.output}, {"bytes", bytes}};
  if (!lowered->files.empty()) out["files"] = files.size();
  for (const auto& [key, value] : lowered->details) out[key] = value;
  if (lowered->judged) out["verified"] = true;
  if (!lowered->note.empty()) out["note"] = lowered->note;
  if (program.json)
    Print(out);
  else if (flags.output != "/dev/stdout") {
    fmt::print("{} written to {} ({} bytes){}\n", flags.format,
               lowered->files.empty()
                   ? flags.output
                   : fmt::format("{} .. {}", files.front().first, files.back().first),
               bytes, lowered->judged ? ", checked as " + lowered->judged_as : "");
    if (!lowered->note.empty()) fmt::print("note: {}\n", lowered->note);
  }
  return kDone;
}

std::string HelpOfFormats() {
  std::string help;
  for (const bool routings : {false, true}) {
    help += routings ? "; of routings" : "Of schedules";
    bool first = true;
    for (const LoweringFormat& format : LoweringFormats()) {
      if ((format.routing != nullptr) != routings) continue;
      help += fmt::format("{} {} ({})", first ? "" : ",", format.name, format.description);
      first = false;
    }
  }
  return help;
}

void AddOptionsOfFormats(Command& command, LowerFlags& flags) {
  for (const FormatOption* option : LoweringFormatOptions()) {
    const std::string flag = fmt::format("--{}", option->name);
    if (option->is_switch) {
      command.AddFlag(flag, flags.switches[option->name], std::string(option->description));
      continue;
    }
    std::string& value = flags.values[option->name] = option->fallback;
    Option added = command.AddOption(flag, value, std::string(option->description)).ShowDefault();
    if (!option->words.empty()) added.OneOf({option->words.begin(), option->words.end()});
  }
}

}  // namespace

void AddLower(Program& program) {
  auto flags = std::make_shared<LowerFlags>();
  Command command = program.AddCommand(
      program.line.root(), "lower", "Write a schedule or routing in the format of a real runtime",
      "tutti lower torus.sched --to msccl-xml --dialect rccl -o torus.xml");
  command.AddOption("file", flags->path, "Schedule or routing file").Required();
  std::vector<std::string> names;
  for (const LoweringFormat& format : LoweringFormats()) names.emplace_back(format.name);
  command.AddOption("--to,--format", flags->format, HelpOfFormats()).Required().OneOf(names);
  command.AddOption("-o,--output", flags->output, "File to write").Required();
  AddOptionsOfFormats(command, *flags);
  command.Runs([&program, flags] { return Lower(program, *flags); });
}

}  // namespace tutti::cli
