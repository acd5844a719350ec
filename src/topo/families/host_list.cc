#include "families/host_list.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "syntax.h"
#include "tutti/base/file.h"

namespace tutti::topo {
namespace {

constexpr int64_t kMaxSlots = 1 << 20;

std::optional<int64_t> Slots(std::string_view text) {
  int64_t slots = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (fault != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return 1 <= slots && slots <= kMaxSlots ? std::optional(slots) : std::nullopt;
}

bool IsName(std::string_view text) {
  constexpr std::string_view kPunctuation = "(),=[]\":";
  if (text.empty()) return false;
  for (char c : text)
    if (c <= 0x20 || c >= 0x7f || kPunctuation.find(c) != kPunctuation.npos) return false;
  return true;
}

// What is wrong with the line, or nothing.
std::string ReadLine(const std::string& line, std::optional<ListedHost>& host) {
  std::istringstream words(line.substr(0, line.find('#')));
  for (std::string word; words >> word;) {
    if (!host) {
      const size_t colon = word.find(':');
      host.emplace(ListedHost{word.substr(0, colon), std::nullopt});
      if (!IsName(host->name)) return fmt::format("'{}' is no name of a host", Shown(word));
      if (colon == word.npos) continue;
      host->slots = Slots(std::string_view(word).substr(colon + 1));
      if (!host->slots) return fmt::format("'{}': wanted 1 to {} slots", Shown(word), kMaxSlots);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == word.npos || (key != "slots" && key != "max_slots" && key != "max-slots"))
      return fmt::format("'{}': wanted slots=N or max_slots=N behind a host", Shown(word));
    const auto slots = Slots(std::string_view(word).substr(equals + 1));
    if (!slots) return fmt::format("'{}': wanted 1 to {} slots", Shown(word), kMaxSlots);
    if (key == "slots" && host->slots) return "the slots stand there twice";
    if (key == "slots") host->slots = slots;
  }
  return "";
}

}  // namespace

Result<std::vector<ListedHost>> ParseHostList(const std::string& text, const std::string& path,
                                              int64_t max_hosts) {
  std::vector<ListedHost> hosts;
  std::unordered_map<std::string, int> seen;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::optional<ListedHost> host;
    std::string fault = ReadLine(line, host);
    if (fault.empty() && host) {
      const auto [first, is_new] = seen.emplace(host->name, number);
      if (!is_new)
        fault = fmt::format("host '{}' stands in line {}, too", Shown(host->name), first->second);
      if (static_cast<int64_t>(hosts.size()) >= max_hosts)
        fault = fmt::format("more than {} hosts", max_hosts);
      hosts.push_back(*std::move(host));
    }
    if (!fault.empty())
      return MakeError(ErrorCode::kCorrupt, fmt::format("{}:{}: {}", Shown(path), number, fault));
  }
  if (hosts.empty())
    return MakeError(ErrorCode::kCorrupt, fmt::format("{}: no host stands there", Shown(path)));
  return hosts;
}

Result<std::vector<ListedHost>> ReadHostList(const std::string& path, int64_t max_hosts) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  return ParseHostList(*text, path, max_hosts);
}

}  // namespace tutti::topo
