#include "tutti/sim/fair_sharing.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace tutti {
namespace {

// Levels closer than this to each other are one: what rounding leaves.
constexpr double kSame = 1e-12;

}  // namespace

FairSharing::FairSharing(std::vector<double> capacity) : capacity_(std::move(capacity)) {
  left_.resize(capacity_.size());
  shares_.resize(capacity_.size());
  open_users_.resize(capacity_.size());
  first_.resize(capacity_.size());
}

int32_t FairSharing::Add(std::span<const ResourceUse> uses) {
  auto user = static_cast<int32_t>(uses_.size());
  if (free_.empty()) {
    uses_.emplace_back();
    rate_.push_back(0);
    open_.push_back(false);
  } else {
    user = free_.back();
    free_.pop_back();
  }
  uses_[static_cast<size_t>(user)].assign(uses.begin(), uses.end());
  present_.insert(std::lower_bound(present_.begin(), present_.end(), user), user);
  return user;
}

void FairSharing::Remove(int32_t user) {
  present_.erase(std::lower_bound(present_.begin(), present_.end(), user));
  rate_[static_cast<size_t>(user)] = 0;
  free_.push_back(user);
}

void FairSharing::CountUsers() {
  for (const int32_t resource : touched_) open_users_[static_cast<size_t>(resource)] = 0;
  touched_.clear();
  for (const int32_t user : present_)
    for (const ResourceUse& use : uses_[static_cast<size_t>(user)]) {
      const auto resource = static_cast<size_t>(use.resource);
      if (open_users_[resource]++ == 0) {
        touched_.push_back(use.resource);
        left_[resource] = capacity_[resource];
        shares_[resource] = 0;
      }
      shares_[resource] += use.share;
    }
  int64_t total = 0;
  for (const int32_t resource : touched_) {
    first_[static_cast<size_t>(resource)] = total;
    total += open_users_[static_cast<size_t>(resource)];
  }
  user_.resize(static_cast<size_t>(total));
  for (const int32_t user : present_)
    for (const ResourceUse& use : uses_[static_cast<size_t>(user)])
      user_[static_cast<size_t>(first_[static_cast<size_t>(use.resource)]++)] = user;
  for (const int32_t resource : touched_)
    first_[static_cast<size_t>(resource)] -= open_users_[static_cast<size_t>(resource)];
}

double FairSharing::LevelOf(size_t resource) const {
  return std::max(left_[resource], 0.0) / shares_[resource];
}

void FairSharing::Update() {
  CountUsers();
  for (const int32_t user : present_) {
    rate_[static_cast<size_t>(user)] = std::numeric_limits<double>::infinity();
    open_[static_cast<size_t>(user)] = true;
  }
  // The level at which a resource is full only rises when users are settled below it, so an old
  // entry is at most too low and is put back.
  heap_.clear();
  for (const int32_t resource : touched_)
    heap_.emplace_back(LevelOf(static_cast<size_t>(resource)), resource);
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto [level, resource] = heap_.back();
    heap_.pop_back();
    if (open_users_[static_cast<size_t>(resource)] == 0) continue;
    const double now = LevelOf(static_cast<size_t>(resource));
    if (now > level * (1 + kSame)) {
      heap_.emplace_back(now, resource);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      continue;
    }
    Settle(resource, now);
  }
}

void FairSharing::Settle(int32_t resource, double level) {
  const int64_t begin = first_[static_cast<size_t>(resource)];
  // Every use of the resource that was counted; those of users settled earlier are passed over.
  for (int64_t i = begin; open_users_[static_cast<size_t>(resource)] > 0; ++i) {
    const auto user = static_cast<size_t>(user_[static_cast<size_t>(i)]);
    if (!open_[user]) continue;
    open_[user] = false;
    rate_[user] = level;
    for (const ResourceUse& use : uses_[user]) {
      const auto used = static_cast<size_t>(use.resource);
      left_[used] -= level * use.share;
      shares_[used] -= use.share;
      --open_users_[used];
    }
  }
}

}  // namespace tutti
