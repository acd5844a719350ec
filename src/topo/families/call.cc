#include <fmt/format.h>

#include <algorithm>

#include "families/family.h"
#include "syntax.h"

namespace tutti::topo {

tl::unexpected<Error> FamilyCall::Fault(const std::string& message) const {
  return FaultAt(column, fmt::format("{}: {}", family->info.signature, message));
}

tl::unexpected<Error> FamilyCall::FaultOfSize(size_t i, const std::string& message) const {
  return FaultAt(size_columns[i], fmt::format("{}: {}", family->info.signature, message));
}

Status FamilyCall::CheckSize(size_t i, int64_t least, int64_t most) const {
  if (sizes[i] < least)
    return FaultOfSize(i, fmt::format("got {}, wanted at least {}", sizes[i], least));
  if (sizes[i] > most)
    return FaultOfSize(i, fmt::format("got {}, wanted at most {}", sizes[i], most));
  return {};
}

Status FamilyCall::CheckSizes(int64_t least) const {
  for (size_t i = 0; i < sizes.size(); ++i)
    if (Status status = CheckSize(i, least); !status) return status;
  return {};
}

std::optional<int64_t> FamilyCall::option(std::string_view name) const {
  for (size_t i = 0; i < options.size(); ++i)
    if (family->options[i] == name) return options[i];
  return std::nullopt;
}

const SettingValue* FamilyCall::setting(std::string_view name) const {
  for (size_t i = 0; i < settings.size(); ++i)
    if (family->settings[i].name == name && settings[i]) return &*settings[i];
  return nullptr;
}

Result<Draft> FamilyCall::Start(int64_t num_ranks, int64_t num_switches, int64_t num_links,
                                size_t dimensions) const {
  const auto too_many = [this](int64_t got, int64_t most, const char* what) {
    return Fault(got == std::numeric_limits<int64_t>::max()
                     ? fmt::format("too many {}: at most {} are accepted", what, most)
                     : fmt::format("{} {}: at most {} are accepted", got, what, most));
  };
  const int64_t num_nodes = SaturatingAdd(num_ranks, num_switches);
  if (num_nodes > limits.max_nodes) return too_many(num_nodes, limits.max_nodes, "nodes");
  const int64_t all_links = SaturatingMul(num_links, links.parallel);
  if (all_links > limits.max_links) return too_many(all_links, limits.max_links, "links");
  for (const auto* parameter : {&links.bandwidth, &links.alpha_ps})
    if (parameter->is_list && parameter->values.size() != dimensions)
      return FaultAt(parameter->column,
                     fmt::format("a list of {} values for {} with {} dimension{}: wanted one value "
                                 "a dimension, or one for all",
                                 parameter->values.size(), family->info.name, dimensions,
                                 dimensions == 1 ? "" : "s"));
  Draft draft;
  draft.num_ranks = static_cast<int32_t>(num_ranks);
  draft.num_switches = static_cast<int32_t>(num_switches);
  draft.links.reserve(static_cast<size_t>(num_links));
  return draft;
}

}  // namespace tutti::topo
