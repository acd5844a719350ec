#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "rule_formats.h"

namespace tutti {

std::span<const RuleFormat> RuleFormats() {
  // One line a format.
  // clang-format off
  static const std::vector<RuleFormat> kTable = {
      rules::NcclTunerFormat(),
      rules::OpenMpiFormat(),
      rules::OpenMpiJsonFormat(),
      rules::MpichFormat(),
  };
  // clang-format on
  return kTable;
}

const RuleFormat* FindRuleFormat(std::string_view name) {
  for (const RuleFormat& format : RuleFormats())
    if (format.name == name) return &format;
  return nullptr;
}

const LibraryAlgorithm* RuleFormat::Find(CollectiveKind kind, std::string_view ours) const {
  for (const LibraryAlgorithm& algorithm : algorithms)
    if (algorithm.kind == kind && algorithm.ours == ours) return &algorithm;
  return nullptr;
}

std::vector<const LibraryAlgorithm*> RuleFormat::Of(CollectiveKind kind) const {
  std::vector<const LibraryAlgorithm*> found;
  for (const LibraryAlgorithm& algorithm : algorithms)
    if (algorithm.kind == kind) found.push_back(&algorithm);
  return found;
}

std::vector<CollectiveKind> RuleFormat::Collectives() const {
  std::vector<CollectiveKind> kinds;
  for (const LibraryAlgorithm& algorithm : algorithms)
    if (std::find(kinds.begin(), kinds.end(), algorithm.kind) == kinds.end())
      kinds.push_back(algorithm.kind);
  return kinds;
}

Result<std::string> WriteRules(const RuleFormat& format, std::vector<CollectiveRules> rules,
                               std::string_view base) {
  const auto key = [](const CollectiveRules& one) {
    return std::tuple(one.kind, one.ranks, one.nodes);
  };
  std::stable_sort(rules.begin(), rules.end(),
                   [&key](const auto& a, const auto& b) { return key(a) < key(b); });
  for (size_t i = 0; i + 1 < rules.size(); ++i)
    if (key(rules[i]) == key(rules[i + 1]))
      return InvalidArgument(
          fmt::format("two rules for {} among {} ranks{}", Name(rules[i].kind), rules[i].ranks,
                      rules[i].nodes == 0 ? "" : fmt::format(" on {} nodes", rules[i].nodes)));
  return format.write(format, rules, base);
}

}  // namespace tutti
