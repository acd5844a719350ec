// Slurm's hostlists: names with ranges in brackets, joined by commas.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "reader.h"
#include "text.h"
#include "tutti/import/import.h"

namespace tutti {
namespace {

tl::unexpected<Error> Bad(std::string_view text, const std::string& what) {
  return InvalidArgument(fmt::format("hostlist '{}': {}", import::Shown(text), what));
}

// Parts between commas that stand outside of brackets.
Result<std::vector<std::string_view>> Parts(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) return Bad(text, "brackets do not match");
      inside = c == '[';
    }
    if (c != ',' || (inside && i < text.size())) continue;
    if (i == begin) return Bad(text, "an empty name");
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (inside) return Bad(text, "brackets do not match");
  return parts;
}

// Each of `stems` with each number of "1-3,07" behind it.
Result<std::vector<std::string>> WithNumbers(std::string_view part, std::string_view ranges,
                                             const std::vector<std::string>& stems, int64_t most) {
  std::vector<std::string> names;
  for (const std::string& stem : stems) {
    for (size_t begin = 0; begin <= ranges.size();) {
      const size_t end = std::min(ranges.find(',', begin), ranges.size());
      const std::string_view range = ranges.substr(begin, end - begin);
      const size_t dash = range.find('-');
      const std::string_view low = range.substr(0, dash);
      const auto first = import::Number(low, 1'000'000'000);
      const auto last =
          dash == range.npos ? first : import::Number(range.substr(dash + 1), 1'000'000'000);
      if (!first || !last || *last < *first || low.size() > 10)
        return Bad(part, fmt::format("'{}' is no range such as 1-4", import::Shown(range)));
      if (static_cast<int64_t>(names.size()) + *last - *first + 1 > most)
        return Bad(part, fmt::format("more than {} names", most));
      for (int64_t i = *first; i <= *last; ++i)
        names.push_back(stem + fmt::format("{:0{}}", i, low.size()));
      begin = end + 1;
    }
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> ExpandHostList(std::string_view text, int64_t most) {
  const Result<std::vector<std::string_view>> parts = Parts(text);
  if (!parts) return tl::unexpected(parts.error());
  std::vector<std::string> all;
  for (const std::string_view part : *parts) {
    std::vector<std::string> names{""};
    for (std::string_view rest = part; !rest.empty();) {
      const size_t open = rest.find('[');
      for (std::string& name : names) name += rest.substr(0, open);
      if (open == rest.npos) break;
      const size_t close = rest.find(']', open);
      Result<std::vector<std::string>> more =
          WithNumbers(part, rest.substr(open + 1, close - open - 1), names,
                      most - static_cast<int64_t>(all.size()));
      if (!more) return more;
      names = *std::move(more);
      rest.remove_prefix(close + 1);
    }
    for (std::string& name : names) {
      if (!import::IsNodeName(name)) return Bad(part, "a name that is not printable");
      all.push_back(std::move(name));
    }
    if (static_cast<int64_t>(all.size()) > most)
      return Bad(part, fmt::format("more than {} names", most));
  }
  return all;
}

}  // namespace tutti
