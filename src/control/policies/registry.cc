#include "policies/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <string>

#include "policies/parts.h"
#include "tutti/base/nearest.h"

namespace tutti {
namespace {

constexpr int32_t kMaxRings = 1024;
constexpr int32_t kMaxWeight = 1'000'000;

Status CheckJob(const PolicyJob& job, const ClusterView& view) {
  if (job.ranks.empty()) return InvalidArgument(fmt::format("job {} has no ranks", job.id));
  std::vector<int32_t> ranks = job.ranks;
  std::sort(ranks.begin(), ranks.end());
  if (ranks.front() < 0 || ranks.back() >= view.num_ranks())
    return InvalidArgument(fmt::format("job {} names rank {}, wanted 0 to {}", job.id,
                                       ranks.front() < 0 ? ranks.front() : ranks.back(),
                                       view.num_ranks() - 1));
  if (const auto twice = std::adjacent_find(ranks.begin(), ranks.end()); twice != ranks.end())
    return InvalidArgument(fmt::format("job {} names rank {} twice", job.id, *twice));
  if (job.weight < 1 || job.weight > kMaxWeight)
    return InvalidArgument(
        fmt::format("job {} has weight {}, wanted 1 to {}", job.id, job.weight, kMaxWeight));
  if (job.deadline_ns < 0 || job.guaranteed < 0 || job.tenant < -1)
    return InvalidArgument(
        fmt::format("job {} has deadline {}, guarantee {} and tenant {}, wanted 0 or more, 0 or "
                    "more and -1 or more",
                    job.id, job.deadline_ns, job.guaranteed, job.tenant));
  return {};
}

Status CheckInput(const PolicyInput& input) {
  if (input.channels < 0 || input.channels > kMaxRings)
    return InvalidArgument(fmt::format("{} channels, wanted 0 to {}", input.channels, kMaxRings));
  if (!input.background.empty() &&
      input.background.size() != static_cast<size_t>(input.view->num_links()))
    return InvalidArgument(fmt::format("background of {} links, wanted {}", input.background.size(),
                                       input.view->num_links()));
  if (input.reserved_routes < 0 || input.reserved_from < 1)
    return InvalidArgument(
        fmt::format("{} routes reserved for classes from {}, wanted 0 or more "
                    "and 1 or more",
                    input.reserved_routes, input.reserved_from));
  std::set<int32_t> ids;
  for (const PolicyJob& job : input.jobs) {
    if (Status status = CheckJob(job, *input.view); !status) return status;
    if (!ids.insert(job.id).second)
      return InvalidArgument(fmt::format("two jobs have the number {}", job.id));
  }
  return {};
}

}  // namespace

std::span<const Policy> Policies() {
  // One line a policy.
  // clang-format off
  static const std::vector<Policy> kTable = {
      RandomRingPolicy(),
      NamedRingPolicy(),
      LocalityRingPolicy(),
      FairFlowPolicy(),
      PriorityFlowPolicy(),
      WeightedPolicy(),
      DeadlinePolicy(),
      AdmissionPolicy(),
  };
  // clang-format on
  return kTable;
}

Result<const Policy*> FindPolicy(std::string_view name) {
  std::vector<std::string_view> names;
  std::string accepted;
  for (const Policy& policy : Policies()) {
    if (policy.name == name) return &policy;
    names.push_back(policy.name);
    accepted += accepted.empty() ? "" : ", ";
    accepted += policy.name;
  }
  return MakeError(ErrorCode::kNotFound, fmt::format("unknown policy '{}'{}; accepted are {}", name,
                                                     NearestHint(name, names), accepted));
}

Result<PolicyOutput> DecideRings(const Policy& policy, const PolicyInput& input) {
  if (Status status = CheckInput(input); !status) return tl::unexpected(status.error());
  return WithRings(input, policy.rings);
}

Result<PolicyOutput> Decide(const Policy& policy, const PolicyInput& input) {
  Result<PolicyOutput> output = DecideRings(policy, input);
  if (!output) return output;
  // A provider's own code: what it throws is its answer.
  try {
    if (Status status = policy.choose_routes(input, *output); !status)
      return tl::unexpected(status.error());
  } catch (const std::exception& fault) {
    return InvalidArgument(fmt::format("policy {} failed: {}", policy.name, fault.what()));
  }
  return output;
}

}  // namespace tutti
