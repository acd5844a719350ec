// "[HOSTS=]PATH": which hosts the box of a file stands for.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "merge.h"
#include "reader.h"
#include "tutti/import/import.h"

namespace tutti {
namespace {

struct Argument {
  std::string hosts;  // "": not given
  std::string path;
};

// A path may hold a '=' itself.
Argument Split(const std::string& text) {
  std::error_code ignored;
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || std::filesystem::exists(text, ignored))
    return {"", text};
  const std::string_view view = text;
  return {std::string(view.substr(0, equals)), std::string(view.substr(equals + 1))};
}

// "logs/node0.txt" is of node0.
std::string HostOfPath(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name.resize(std::min(name.size(), name.find('.')));
  return import::IsNodeName(name) ? name : "host";
}

// Hosts that cables name and no box describes, in the order in which they come up.
std::vector<std::string> OtherHosts(const std::vector<Facts>& files) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (const Facts& file : files)
    for (const BoxFacts& box : file.boxes)
      if (box.host != "*") seen.insert(import::ShortName(box.host));
  for (const Facts& file : files)
    for (const CableFact& cable : file.cables)
      for (const CableEnd* end : {&cable.a, &cable.b})
        if (!end->is_switch && seen.insert(import::ShortName(end->node)).second)
          hosts.push_back(end->node);
  return hosts;
}

// The one box of the file for each of the hosts. GUIDs are those of one machine.
Status CopyBox(Facts& file, const std::vector<std::string>& hosts) {
  constexpr size_t kMaxClasses = size_t{1} << 28;
  const BoxFacts box = file.boxes[0];
  if (box.classes.size() > kMaxClasses / hosts.size())
    return InvalidArgument(fmt::format("{}: {} hosts of {} GPUs and NICs each are too many",
                                       file.source, hosts.size(), box.num_devices()));
  file.boxes.clear();
  for (const std::string& host : hosts) {
    file.boxes.push_back(box);
    file.boxes.back().host = host;
    if (hosts.size() > 1)
      for (NicFact& nic : file.boxes.back().nics) nic.guid.clear();
  }
  return {};
}

// Cables of a file that does not name its own host.
bool HasNamelessEnds(const Facts& file) {
  return std::any_of(file.cables.begin(), file.cables.end(),
                     [](const CableFact& cable) { return cable.a.node.empty(); });
}

Status NameEnds(Facts& file, const Argument& argument) {
  std::string host = HostOfPath(argument.path);
  if (!argument.hosts.empty()) {
    const Result<std::vector<std::string>> hosts = ExpandHostList(argument.hosts);
    if (!hosts) return tl::unexpected(hosts.error());
    if (hosts->size() != 1 || argument.hosts == "*")
      return InvalidArgument(fmt::format("{}: the cables are those of one host, and '{}=' is not",
                                         argument.path, import::Shown(argument.hosts)));
    host = hosts->front();
  }
  for (CableFact& cable : file.cables)
    if (cable.a.node.empty()) cable.a.node = host;
  return {};
}

Status NameBox(Facts& file, const Argument& argument) {
  if (HasNamelessEnds(file)) return NameEnds(file, argument);
  if (argument.hosts.empty()) {
    for (BoxFacts& box : file.boxes)
      if (box.host.empty()) box.host = HostOfPath(argument.path);
    return {};
  }
  if (file.boxes.size() != 1)
    return InvalidArgument(
        fmt::format("{}: '{}=' stands before a file that describes no single "
                    "host, but {}",
                    argument.path, import::Shown(argument.hosts), file.format));
  if (argument.hosts == "*") {
    file.boxes[0].host = argument.hosts;
    return {};
  }
  const Result<std::vector<std::string>> hosts = ExpandHostList(argument.hosts);
  if (!hosts) return tl::unexpected(hosts.error());
  return CopyBox(file, *hosts);
}

}  // namespace

Result<std::vector<Facts>> ReadFactFiles(const std::vector<std::string>& arguments) {
  std::vector<Facts> files;
  int64_t boxes = 0;
  for (const std::string& text : arguments) {
    const Argument argument = Split(text);
    Result<Facts> facts = ReadFacts(argument.path);
    if (!facts) return tl::unexpected(facts.error());
    if (Status status = NameBox(*facts, argument); !status) return tl::unexpected(status.error());
    boxes += static_cast<int64_t>(facts->boxes.size());
    files.push_back(*std::move(facts));
  }
  const std::vector<std::string> others = OtherHosts(files);
  for (Facts& file : files) {
    if (file.boxes.empty() || file.boxes[0].host != "*") continue;
    if (others.empty())
      return InvalidArgument(fmt::format(
          "{}: '*=' stands for hosts that other files name, and there are none", file.source));
    if (Status status = CopyBox(file, others); !status) return tl::unexpected(status.error());
    boxes += static_cast<int64_t>(others.size());
  }
  if (boxes > kMaxFacts) return InvalidArgument(fmt::format("more than {} hosts", kMaxFacts));
  return files;
}

}  // namespace tutti
