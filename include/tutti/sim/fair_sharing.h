// Max-min fair sharing of resources among users that come and go.
//
// Model       A user moves at one rate and takes `share` x rate of each resource that it uses: a
//             flow takes its rate once of every link of its route; a ring of flows that move in lock
//             step takes it once a flow. No user can get more without one of no higher rate getting
//             less, so where each flow is a user, links share fairly by flows.
// Units       bytes/s, as doubles; no randomness.
// Complexity  Update(): O(U log R) for U uses by present users and R resources they use. Add and
//             Remove: O(uses of the user).
// Errors      none: capacities above 0 and shares above 0 are the caller's to give.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tutti {

struct ResourceUse {
  int32_t resource = 0;
  double share = 1;
};

class FairSharing {
 public:
  // A capacity may be infinite; a user of nothing finite gets an infinite rate.
  explicit FairSharing(std::vector<double> capacity);

  // Users are numbered from 0; the number of one that was removed is given again. A resource may
  // be named more than once.
  int32_t Add(std::span<const ResourceUse> uses);
  void Remove(int32_t user);

  // After users came or went: the rates of those present.
  void Update();
  double rate(int32_t user) const { return rate_[static_cast<size_t>(user)]; }

 private:
  using Entry = std::pair<double, int32_t>;  // level, resource
  void CountUsers();
  double LevelOf(size_t resource) const;
  void Settle(int32_t resource, double level);

  std::vector<double> capacity_;
  std::vector<std::vector<ResourceUse>> uses_;  // by user
  std::vector<int32_t> free_, present_;         // numbers of users; present_ in order
  std::vector<double> rate_;
  std::vector<bool> open_;
  std::vector<int32_t> touched_;       // resources that present users use
  std::vector<double> left_, shares_;  // by resource
  std::vector<int32_t> open_users_;    // by resource
  std::vector<int64_t> first_;         // by resource: its users begin there in user_
  std::vector<int32_t> user_;
  std::vector<Entry> heap_;
};

}  // namespace tutti
