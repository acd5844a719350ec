#include <fmt/format.h>

#include <string>
#include <vector>

#include "ten/policy.h"

namespace tutti::ten {

std::span<const Policy* const> Policies() {
  // One line a policy.
  static const std::vector<const Policy*> kTable = {
      &ArrivalPolicy(),
      &RarestPolicy(),
      &FarthestPolicy(),
      &RandomPolicy(),
  };
  return kTable;
}

Result<const Policy*> FindPolicy(std::string_view name) {
  std::string accepted;
  for (const Policy* policy : Policies()) {
    if (policy->name == name) return policy;
    accepted += accepted.empty() ? "" : ", ";
    accepted += policy->name;
  }
  return InvalidArgument(fmt::format("unknown policy '{}'; accepted are {}", name, accepted));
}

}  // namespace tutti::ten
