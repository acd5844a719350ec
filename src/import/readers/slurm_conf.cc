// Slurm's topology.conf: SwitchName= with Nodes= or Switches= (topology/tree), BlockName= with
// Nodes= (topology/block). LinkSpeed is a number without a unit that Slurm does not use: left out.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "reader.h"
#include "text.h"
#include "tutti/import/import.h"

namespace tutti::import {
namespace {

class SlurmConfReader {
 public:
  SlurmConfReader(std::string_view text, const std::string& source)
      : lines_(text), source_(source) {
    facts_ = {.source = source, .format = "slurm-conf", .is_tree = true};
  }

  Result<Facts> Read() {
    std::string whole;
    int64_t begun = 0;
    for (std::string_view line; lines_.Next(line);) {
      line = Trimmed(line.substr(0, line.find('#')));
      if (whole.empty()) begun = lines_.number();
      const bool goes_on = !line.empty() && line.back() == '\\';
      if (goes_on) line.remove_suffix(1);
      whole += std::string(line) + " ";
      if (goes_on) continue;
      if (Status status = ReadEntry(whole, begun); !status) return tl::unexpected(status.error());
      whole.clear();
    }
    if (Status status = ReadEntry(whole, begun); !status) return tl::unexpected(status.error());
    if (facts_.cables.empty()) return FaultIn(source_, 0, "no switch with nodes or switches");
    return std::move(facts_);
  }

 private:
  Status ReadEntry(const std::string& line, int64_t number) {
    std::string name, nodes, switches;
    bool has_name = false;
    for (std::string_view word : Words(line)) {
      const size_t equals = word.find('=');
      const std::string key = Lower(word.substr(0, equals));
      if (equals == word.npos)
        return FaultIn(source_, number, fmt::format("found '{}', wanted KEY=VALUE", Shown(word)));
      const std::string value(word.substr(equals + 1));
      if (key == "switchname" || key == "blockname") {
        if (has_name) return FaultIn(source_, number, "two names in one line");
        has_name = true;
        if (key == "blockname") facts_.is_blocks = true;
        name = value;
      } else if (key == "nodes") {
        nodes = value;
      } else if (key == "switches") {
        switches = value;
      } else if (key != "linkspeed" && key != "blocksizes") {
        return FaultIn(source_, number,
                       fmt::format("unknown key '{}'; known: SwitchName, BlockName, Nodes, "
                                   "Switches, LinkSpeed, BlockSizes",
                                   Shown(word.substr(0, equals))));
      }
    }
    if (!has_name) {
      if (!nodes.empty() || !switches.empty())
        return FaultIn(source_, number, "Nodes= or Switches= without SwitchName=");
      return {};
    }
    if (!IsNodeName(name))
      return FaultIn(source_, number, fmt::format("'{}' is no name of a switch", Shown(name)));
    const auto [first, is_new] = seen_.emplace(name, number);
    if (!is_new)
      return FaultIn(source_, number,
                     fmt::format("switch '{}' stands in line {}, too", name, first->second));
    if (nodes.empty() && switches.empty())
      return FaultIn(source_, number,
                     fmt::format("switch '{}' has neither Nodes= nor Switches=", name));
    if (Status status = AddBelow(nodes, false, name, number); !status) return status;
    return AddBelow(switches, true, name, number);
  }

  Status AddBelow(const std::string& list, bool is_switch, const std::string& above,
                  int64_t number) {
    if (list.empty()) return {};
    const Result<std::vector<std::string>> names =
        ExpandHostList(list, kMaxFacts - static_cast<int64_t>(facts_.cables.size()));
    if (!names) return FaultIn(source_, number, names.error().message);
    if (const std::optional<std::string> twice = NamedTwice(*names))
      return FaultIn(source_, number,
                     fmt::format("'{}' stands below '{}' twice", *twice, Shown(above)));
    for (const std::string& name : *names) {
      if (is_switch && name == above)
        return FaultIn(source_, number, fmt::format("switch '{}' is below itself", Shown(name)));
      facts_.cables.push_back({.a = {.node = name, .is_switch = is_switch},
                               .b = {.node = above},
                               .place = {source_, number}});
    }
    return {};
  }

  Lines lines_;
  const std::string& source_;
  std::map<std::string, int64_t> seen_;
  Facts facts_;
};

}  // namespace

bool LooksLikeSlurmConf(std::string_view text) {
  Lines lines(text.substr(0, 1 << 16));
  for (std::string_view line; lines.Next(line);) {
    const std::string lower = Lower(Trimmed(line));
    if (lower.starts_with("switchname=") || lower.starts_with("blockname=")) return true;
  }
  return false;
}

Result<Facts> ReadSlurmConf(std::string_view text, const std::string& source) {
  return SlurmConfReader(text, source).Read();
}

}  // namespace tutti::import
