#include "tutti/base/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestHint(std::string_view word, std::span<const std::string_view> accepted) {
  constexpr size_t kNearest = 3, kChanges = 3, kLongest = 30, kShortestPart = 3;
  word = word.substr(0, kLongest);
  std::vector<std::pair<size_t, std::string_view>> near;
  for (std::string_view name : accepted) {
    size_t distance = EditDistance(word, name);
    if (word.size() >= kShortestPart && name.find(word) != name.npos)
      distance = std::min<size_t>(distance, 1);
    if (distance <= kChanges && distance < name.size()) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), kNearest));
  std::string hint;
  for (const auto& candidate : near) {
    hint += hint.empty() ? "; nearest: " : ", ";
    hint += candidate.second;
  }
  return hint;
}

}  // namespace tutti
