// Output of `ibnetdiscover`: switches and channel adapters with their ports, and what is at the
// other end of each cable. Every cable between two nodes of the file stands there twice.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader.h"
#include "text.h"

namespace tutti::import {
namespace {

// What a lane carries, in units of 0.5 Gbit/s of data.
struct Rate {
  std::string_view name;
  int64_t half_gigabits;
};
constexpr std::array<Rate, 9> kRates{{{"SDR", 4},
                                      {"DDR", 8},
                                      {"QDR", 16},
                                      {"FDR10", 20},
                                      {"FDR", 27},
                                      {"EDR", 50},
                                      {"HDR", 100},
                                      {"NDR", 200},
                                      {"XDR", 400}}};

// "4xHDR" in bytes a second.
std::optional<int64_t> ParseRate(std::string_view word) {
  const size_t x = word.find('x');
  if (x == word.npos) return std::nullopt;
  const auto lanes = Number(word.substr(0, x), 16);
  for (const Rate& rate : kRates)
    if (lanes && *lanes > 0 && rate.name == word.substr(x + 1))
      return *lanes * rate.half_gigabits * 62'500'000;
  return std::nullopt;
}

// The text between the first two quotation marks; `rest` is what follows.
std::optional<std::string_view> Quoted(std::string_view text, std::string_view& rest) {
  const size_t begin = text.find('"');
  if (begin == text.npos) return std::nullopt;
  const size_t end = text.find('"', begin + 1);
  if (end == text.npos) return std::nullopt;
  rest = text.substr(end + 1);
  return text.substr(begin + 1, end - begin - 1);
}

struct IbNode {
  std::string id;  // "S-0c42a1030079a4e8"
  bool is_switch = false;
  std::string description;
  int64_t line = 0;
};

struct IbPort {
  size_t node = 0;
  int64_t number = 0;
  std::string guid = {};
  std::string peer = {};  // id
  int64_t peer_number = 0;
  int64_t bandwidth = 0;
  int64_t line = 0;
};

class IbnetdiscoverReader {
 public:
  IbnetdiscoverReader(std::string_view text, const std::string& source)
      : lines_(text), source_(source) {}

  Result<Facts> Read() {
    for (std::string_view line; lines_.Next(line);) {
      if (line.empty() || line[0] == '#') continue;
      Status status;
      if (line.starts_with("Switch") || line.starts_with("Ca") || line.starts_with("Rt"))
        status = ReadNode(line);
      else if (line[0] == '[')
        status = ReadPort(line);
      if (!status) return tl::unexpected(status.error());
      if (static_cast<int64_t>(ports_.size()) > kMaxFacts)
        return FaultIn(source_, lines_.number(), fmt::format("more than {} ports", kMaxFacts));
    }
    return Join();
  }

 private:
  tl::unexpected<Error> Fault(const std::string& message) const {
    return FaultIn(source_, lines_.number(), message);
  }

  // Switch  41 "S-0c42a1030079a4e8"   # "MF0;leaf01:MQM8700/U1" enhanced port 0 lid 3 lmc 0
  Status ReadNode(std::string_view line) {
    std::string_view rest;
    const auto id = Quoted(line, rest);
    if (!id || id->size() < 3 || id->size() > 40 || !IsNodeName(*id))
      return Fault("wanted the identity of a node such as \"S-0c42a1030079a4e8\"");
    IbNode node{std::string(*id), line.starts_with("Switch"), "", lines_.number()};
    if (const auto text = Quoted(rest, rest)) node.description = Trimmed(*text);
    const auto [first, is_new] = by_id_.emplace(node.id, nodes_.size());
    if (!is_new)
      return Fault(fmt::format("'{}' stands in line {}, too", node.id, nodes_[first->second].line));
    nodes_.push_back(std::move(node));
    return {};
  }

  // [1](c42a103006d8d24)  "S-0c42a1030079a4e8"[1]   # lid 5 lmc 0 "MF0;leaf01" lid 3 4xHDR
  Status ReadPort(std::string_view line) {
    if (nodes_.empty()) return Fault("a port before the first node");
    IbPort port{.node = nodes_.size() - 1, .line = lines_.number()};
    const auto number = Bracket(line);
    if (!number) return Fault("wanted the number of a port such as [1]");
    port.number = *number;
    const size_t quote = line.find('"');
    const size_t open = line.find('(');
    if (open < quote && line.find(')') != line.npos && line.find(')') > open)
      port.guid = Guid(line.substr(open + 1, line.find(')') - open - 1));
    std::string_view rest;
    const auto peer = Quoted(line, rest);
    if (!peer || !IsNodeName(*peer)) return Fault("wanted the other end such as \"S-0c42\"[3]");
    port.peer = *peer;
    const auto peer_number = Bracket(rest);
    if (!peer_number) return Fault("wanted the port at the other end such as [3]");
    port.peer_number = *peer_number;
    for (std::string_view word : Words(line.substr(line.find(*peer))))
      if (const auto rate = ParseRate(word)) port.bandwidth = *rate;
    const auto [first, is_new] = by_port_.emplace(std::pair(port.node, port.number), ports_.size());
    if (!is_new)
      return Fault(
          fmt::format("port {} stands in line {}, too", port.number, ports_[first->second].line));
    ports_.push_back(std::move(port));
    return {};
  }

  // The number in the bracket that the text begins with.
  static std::optional<int64_t> Bracket(std::string_view text) {
    const size_t close = text.find(']');
    if (text.empty() || text[0] != '[' || close == text.npos) return std::nullopt;
    return Number(text.substr(1, close - 1), 1 << 16);
  }

  static std::string Guid(std::string_view text) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    const std::string digits = Lower(text);
    if (digits.empty() || digits.size() > 16 ||
        digits.find_first_not_of("0123456789abcdef") != digits.npos)
      return "";
    return std::string(16 - digits.size(), '0') + digits;
  }

  // "MF0;leaf01:MQM8700/U1" is leaf01; what is called as others are, or not at all, gets its GUID.
  void NameSwitches() {
    std::map<std::string, int> uses;
    names_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].is_switch) continue;
      std::string_view text = nodes_[i].description;
      if (text.find(';') != text.npos) text.remove_prefix(text.find(';') + 1);
      text = text.substr(0, text.find(':'));
      if (IsNodeName(text)) names_[i] = text;
      ++uses[names_[i]];
    }
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].is_switch && (names_[i].empty() || uses[names_[i]] > 1))
        names_[i] += (names_[i].empty() ? "" : "-") + nodes_[i].id;
  }

  static bool IsAggregation(const IbNode& node) {
    return node.description.find("Aggregation Node") != std::string::npos;
  }

  CableEnd EndOf(const IbPort& port) const {
    const IbNode& node = nodes_[port.node];
    if (node.is_switch) return {.node = names_[port.node]};
    const std::vector<std::string_view> words = Words(node.description);
    CableEnd end{.is_switch = false};
    end.node = !words.empty() && IsNodeName(words[0]) ? std::string(words[0]) : node.id;
    if (words.size() > 1 && IsNodeName(words[1])) end.nic = words[1];
    end.adapter = Guid(std::string_view(node.id).substr(2));
    end.guid = !port.guid.empty() ? port.guid : end.adapter;
    return end;
  }

  Result<Facts> Join() {
    if (ports_.empty()) return FaultIn(source_, 0, "no cable stands there");
    NameSwitches();
    Facts facts{.source = source_, .format = "ibnetdiscover"};
    int64_t aggregation = 0;
    for (const IbPort& port : ports_) {
      const auto fault = [&](const std::string& what) { return FaultIn(source_, port.line, what); };
      const auto peer = by_id_.find(port.peer);
      if (peer == by_id_.end())
        return fault(fmt::format("the file ends without the node '{}'", Shown(port.peer)));
      const auto back = by_port_.find(std::pair(peer->second, port.peer_number));
      if (back == by_port_.end())
        return fault(
            fmt::format("'{}' does not name its port {}", Shown(port.peer), port.peer_number));
      const IbPort& other = ports_[back->second];
      if (other.peer != nodes_[port.node].id || other.peer_number != port.number)
        return fault(fmt::format("line {} has another cable at this port", other.line));
      if (other.node == port.node && other.number == port.number)
        return fault("a cable from a port to itself");
      if (other.line < port.line) continue;
      if (other.bandwidth != port.bandwidth && other.bandwidth > 0 && port.bandwidth > 0)
        return fault(fmt::format("line {} gives the cable another rate", other.line));
      if (IsAggregation(nodes_[port.node]) || IsAggregation(nodes_[other.node])) {
        ++aggregation;
        continue;
      }
      facts.cables.push_back({.a = EndOf(port),
                              .b = EndOf(other),
                              .bandwidth = std::max(port.bandwidth, other.bandwidth),
                              .place = {source_, port.line}});
    }
    if (aggregation > 0)
      facts.notes.push_back(
          fmt::format("{}: {} aggregation nodes are left out", source_, aggregation));
    return facts;
  }

  Lines lines_;
  const std::string& source_;
  std::vector<IbNode> nodes_;
  std::vector<IbPort> ports_;
  std::vector<std::string> names_;  // of switches
  std::map<std::string, size_t> by_id_;
  std::map<std::pair<size_t, int64_t>, size_t> by_port_;
};

}  // namespace

bool LooksLikeIbnetdiscover(std::string_view text) {
  Lines lines(text.substr(0, 1 << 16));
  for (std::string_view line; lines.Next(line);)
    if (line.find("\"S-") != line.npos || line.find("\"H-") != line.npos) return true;
  return false;
}

Result<Facts> ReadIbnetdiscover(std::string_view text, const std::string& source) {
  return IbnetdiscoverReader(text, source).Read();
}

}  // namespace tutti::import
