#include "tutti/coll/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tutti/base/units.h"

namespace tutti {

Result<std::vector<int64_t>> ParseDemandText(std::string_view text, std::string_view name) {
  constexpr std::string_view kSeparators = ",; \t\r\n";
  std::vector<int64_t> demand;
  size_t line = 1;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\n') ++line;
    if (kSeparators.find(text[i]) != std::string_view::npos) {
      ++i;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kSeparators, i), text.size());
    const Result<int64_t> bytes = ParseSizeBytes(text.substr(i, end - i));
    if (!bytes) return Within(fmt::format("{}:{}", name, line), bytes.error());
    demand.push_back(*bytes);
    i = end;
  }
  return demand;
}

}  // namespace tutti
