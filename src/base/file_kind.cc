#include "tutti/base/file_kind.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tutti {
namespace {

struct Entry {
  FileKind kind;
  std::string_view json_format;
  std::string_view begins;  // of files that are neither JSON nor of our binary format
  std::string_view what;
  std::string_view taken_by;  // commands; empty: none
};

// clang-format off
// What ReadJsonFormat() gives for other programs' JSON; no string that it reads holds a bare quote.
constexpr std::string_view kHasGpus = "\"gpus";

constexpr Entry kTable[] = {
    {FileKind::kTopology, kTopologyFormat, "", "a topology", "topo show, synth, compare and flow"},
    {FileKind::kSchedule, kScheduleFormat, "", "a schedule", "verify, cost, sim, lower and run"},
    {FileKind::kSymmetricSchedule, kSymmetricScheduleFormat, "", "a symmetric schedule", "verify, cost, sim, lower and run"},
    {FileKind::kRouting, kRoutingFormat, "", "a routing", "verify, cost, sim and lower"},
    {FileKind::kFlow, kFlowFormat, "", "a flow", "flow --warm-start"},
    {FileKind::kMscclXml, "", "<", "MSCCL XML", "verify and run"},
    {FileKind::kMscclppPlan, kHasGpus, "", "an MSCCL++ plan", "verify and run"},
    {FileKind::kPlanFile, "", "", "a plan", "verify and run"},
    {FileKind::kPlan, "", "plan ", "the text of a plan", ""},
    {FileKind::kRoutes, "", "tutti-route", "the text of routes", ""},
    {FileKind::kWorkload, "", "tutti-workload", "a workload", "train"},
    {FileKind::kDatabase, "", "SQLite format 3", "a database", "design --database"},
    {FileKind::kUnknown, "", "", "nothing that Tutti knows", ""},
};
// clang-format on

const Entry& EntryOf(FileKind kind) {
  for (const Entry& entry : kTable)
    if (entry.kind == kind) return entry;
  return *std::prev(std::end(kTable));
}

constexpr int kEnd = std::char_traits<char>::eof();

// The rest of a string behind its opening quote, escapes as they stand; long ones cut short.
std::string ReadString(std::streambuf& in) {
  constexpr size_t kLongest = 64;
  std::string text;
  for (int c = in.sbumpc(); c != kEnd && c != '"'; c = in.sbumpc()) {
    if (text.size() < kLongest) text += static_cast<char>(c);
    if (c == '\\') in.sbumpc();
  }
  return text;
}

// What the outermost object says under "format", behind its opening brace; kHasGpus where it has the
// key "gpus" before.
std::string ReadJsonFormat(std::streambuf& in) {
  bool key_is_next = true, is_format = false;
  int32_t depth = 1;
  for (int c = in.sbumpc(); c != kEnd && depth > 0; c = in.sbumpc()) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 1) key_is_next = true;
    if (c != '"') continue;
    const std::string text = ReadString(in);
    if (depth > 1) continue;
    if (!key_is_next && is_format) return text;
    if (key_is_next && text == "gpus") return std::string(kHasGpus);
    is_format = key_is_next && text == "format";
    key_is_next = false;
  }
  return {};
}

FileKind KindOfBinary(std::streambuf& in) {
  constexpr FileKind kByVersion[] = {FileKind::kSchedule, FileKind::kSymmetricSchedule,
                                     FileKind::kRouting};
  std::string head(kBinaryMagic.size() + 4, '\0');
  const auto wanted = static_cast<std::streamsize>(head.size());
  const std::streamsize got = in.sgetn(head.data(), wanted);
  if (head.starts_with(kPlanFileMagic)) return FileKind::kPlanFile;
  if (got != wanted || !head.starts_with(kBinaryMagic)) return FileKind::kSchedule;
  uint32_t version = 0;
  for (size_t i = head.size(); i-- > kBinaryMagic.size();)
    version = version << 8 | static_cast<unsigned char>(head[i]);
  return 1 <= version && version <= 3 ? kByVersion[version - 1] : FileKind::kSchedule;
}

// Also the bytes of a byte order mark.
bool IsBlank(int c) {
  constexpr std::string_view kBlank = " \t\r\n\xef\xbb\xbf";
  return c != kEnd && kBlank.find(static_cast<char>(c)) != std::string_view::npos;
}

FileKind KindOf(std::streambuf& in) {
  int c = in.sgetc();
  if (c == static_cast<unsigned char>(kBinaryMagic.front())) return KindOfBinary(in);
  while (IsBlank(c)) c = in.snextc();
  while (c == '#') {  // comments before a workload
    while (c != kEnd && c != '\n') c = in.snextc();
    while (IsBlank(c)) c = in.snextc();
  }
  if (c == '{') {
    in.sbumpc();
    const std::string format = ReadJsonFormat(in);
    for (const Entry& entry : kTable)
      if (!entry.json_format.empty() && entry.json_format == format) return entry.kind;
    return FileKind::kUnknown;
  }
  std::string head(32, '\0');
  head.resize(
      static_cast<size_t>(in.sgetn(head.data(), static_cast<std::streamsize>(head.size()))));
  for (const Entry& entry : kTable)
    if (!entry.begins.empty() && head.starts_with(entry.begins)) return entry.kind;
  return FileKind::kUnknown;
}

}  // namespace

std::string_view Describe(FileKind kind) { return EntryOf(kind).what; }

Result<FileKind> KindOfFile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return FileKind::kUnknown;
  std::filebuf file;
  errno = 0;
  if (file.open(path, std::ios::in | std::ios::binary) == nullptr)
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot open for reading: {}", path, std::strerror(errno)));
  return KindOf(file);
}

FileKind KindOfContents(std::string_view contents) {
  std::stringbuf in{std::string(contents)};
  return KindOf(in);
}

Error WrongKind(const std::string& path, FileKind found, FileKind wanted) {
  const Entry& entry = EntryOf(found);
  std::string who;
  if (found != FileKind::kUnknown)
    who = entry.taken_by.empty() ? "; no command reads it"
                                 : fmt::format("; it is for {}", entry.taken_by);
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} holds {}, not {}{}", path, entry.what, Describe(wanted), who)};
}

}  // namespace tutti
