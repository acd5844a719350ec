#include "policies/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

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
  } catch (...) {
    return InvalidArgument(fmt::format("policy {} failed and does not say why", policy.name));
  }
  return output;
}

namespace {

// What a policy works on when nobody may wait for it any more.
struct Asked {
  Asked(const Policy& of, const PolicyInput& given, std::shared_ptr<const ClusterView> shared)
      : policy(of), view(std::move(shared)), input(given) {
    input.view = view.get();
  }
  const Policy policy;
  const std::shared_ptr<const ClusterView> view;
  PolicyInput input;
  std::promise<Result<PolicyOutput>> answer;
  bool is_over = false;  // under the mutex of GivenUp
};

// Policies that were given up and have not ended, by their function.
class GivenUp {
 public:
  bool Has(const Policy& policy) {
    const std::lock_guard lock(mutex_);
    return running_.count(policy.choose_routes) > 0;
  }
  // False: it has just ended.
  bool Add(const Asked& asked) {
    const std::lock_guard lock(mutex_);
    if (asked.is_over) return false;
    running_.insert(asked.policy.choose_routes);
    return true;
  }
  void End(Asked& asked) {
    const std::lock_guard lock(mutex_);
    asked.is_over = true;
    running_.erase(asked.policy.choose_routes);
  }

 private:
  std::mutex mutex_;
  std::set<decltype(Policy::choose_routes)> running_;
};

GivenUp& PoliciesGivenUp() {
  static auto* const all = new GivenUp;  // threads may outlive everything else
  return *all;
}

}  // namespace

Result<PolicyOutput> DecideWithin(const Policy& policy, const PolicyInput& input,
                                  std::shared_ptr<const ClusterView> view, double patience_s) {
  GivenUp& given_up = PoliciesGivenUp();
  if (given_up.Has(policy))
    return MakeError(ErrorCode::kPeerFailed,
                     fmt::format("policy {} still works on an earlier question", policy.name));
  const auto asked = std::make_shared<Asked>(policy, input, std::move(view));
  std::future<Result<PolicyOutput>> answer = asked->answer.get_future();
  try {
    std::thread([asked, &given_up] {
      Result<PolicyOutput> output = Decide(asked->policy, asked->input);
      given_up.End(*asked);
      asked->answer.set_value(std::move(output));
    }).detach();
  } catch (const std::system_error& fault) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("a thread for policy {}: {}", policy.name, fault.what()));
  }
  const bool in_time =
      answer.wait_for(std::chrono::duration<double>(patience_s)) == std::future_status::ready;
  if (in_time || !given_up.Add(*asked)) return answer.get();
  return MakeError(ErrorCode::kPeerFailed,
                   fmt::format("policy {} has not answered within {} s", policy.name, patience_s));
}

}  // namespace tutti
