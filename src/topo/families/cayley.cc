// Cayley digraphs of metacyclic groups.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "families/family.h"
#include "tutti/topo/metacyclic.h"

namespace tutti {

Result<MetacyclicGroup> MetacyclicGroup::Make(int64_t m, int64_t k, int64_t r) {
  if (m < 1 || k < 1)
    return InvalidArgument(fmt::format("the group Z_{} x| Z_{}: wanted m, k >= 1", m, k));
  if (m > kMaxNodes || k > kMaxNodes || m * k > kMaxNodes)
    return InvalidArgument(
        fmt::format("the group Z_{} x| Z_{}: at most {} elements are accepted", m, k, kMaxNodes));
  const int64_t most = std::max<int64_t>(1, m - 1);
  if (r < 1 || r > most)
    return InvalidArgument(fmt::format("got r = {}, wanted 1 <= r <= {}", r, most));
  MetacyclicGroup group;
  group.m_ = static_cast<int32_t>(m);
  group.k_ = static_cast<int32_t>(k);
  group.r_ = static_cast<int32_t>(r);
  int64_t power = 1 % m;
  for (int64_t b = 0; b < k; ++b) {
    group.power_.push_back(static_cast<int32_t>(power));
    power = power * r % m;
  }
  if (power != 1 % m)
    return InvalidArgument(
        fmt::format("{}^{} = {} modulo {}, wanted r^k = 1 modulo m", r, k, power, m));
  return group;
}

int32_t MetacyclicGroup::Multiply(int32_t x, int32_t y) const {
  const int32_t b = B(x);
  const int64_t turned = int64_t{power_[static_cast<size_t>(b)]} * A(y);
  return Element(static_cast<int32_t>((A(x) + turned) % m_), (b + B(y)) % k_);
}

int32_t MetacyclicGroup::Inverse(int32_t x) const {
  // (a, b) (c, d) = (0, 0) for d = -b and c = -r^-b a = -r^d a.
  const int32_t d = (k_ - B(x)) % k_;
  const int64_t turned = int64_t{power_[static_cast<size_t>(d)]} * A(x) % m_;
  return Element(static_cast<int32_t>((m_ - turned) % m_), d);
}

namespace topo {
namespace {

// How many ranks words in the generators reach from rank 0.
int32_t ReachedFromIdentity(const MetacyclicGroup& group, const std::vector<int32_t>& generators) {
  std::vector<char> seen(static_cast<size_t>(group.size()), 0);
  std::vector<int32_t> order{0};
  seen[0] = 1;
  for (size_t next = 0; next < order.size(); ++next)
    for (int32_t generator : generators) {
      const int32_t head = group.Multiply(order[next], generator);
      if (seen[static_cast<size_t>(head)]) continue;
      seen[static_cast<size_t>(head)] = 1;
      order.push_back(head);
    }
  return static_cast<int32_t>(order.size());
}

}  // namespace

// Dimension i is the i-th generator.
Result<Draft> BuildCayley(const FamilyCall& call) {
  if (call.sizes.size() % 2 == 0)
    return call.FaultOfSize(call.sizes.size() - 1,
                            "a generator is two numbers a,b, and this one lacks its b");
  const int64_t m = call.sizes[0], k = call.sizes[1];
  for (size_t i = 0; i < 2; ++i)
    if (Status status = call.CheckSize(i, 1); !status) return tl::unexpected(status.error());
  const size_t degree = (call.sizes.size() - 3) / 2;
  const int64_t ranks = SaturatingMul(m, k);
  Result<Draft> draft =
      call.Start(ranks, 0, SaturatingMul(ranks, static_cast<int64_t>(degree)), degree);
  if (!draft) return draft;
  const Result<MetacyclicGroup> group = MetacyclicGroup::Make(m, k, call.sizes[2]);
  if (!group) return call.FaultOfSize(2, group.error().message);

  std::vector<int32_t> generators;
  for (size_t i = 3; i < call.sizes.size(); i += 2) {
    if (Status status = call.CheckSize(i, 0, m - 1); !status) return tl::unexpected(status.error());
    if (Status status = call.CheckSize(i + 1, 0, k - 1); !status)
      return tl::unexpected(status.error());
    const int32_t generator = group->Element(static_cast<int32_t>(call.sizes[i]),
                                             static_cast<int32_t>(call.sizes[i + 1]));
    if (generator == 0)
      return call.FaultOfSize(i, "the generator (0,0) is the identity: every rank to itself");
    if (std::find(generators.begin(), generators.end(), generator) != generators.end())
      return call.FaultOfSize(i, fmt::format("the generator ({},{}) stands there twice, which "
                                             "would be parallel links; for those say parallel=2",
                                             call.sizes[i], call.sizes[i + 1]));
    generators.push_back(generator);
  }
  if (const int32_t reached = ReachedFromIdentity(*group, generators); reached < ranks)
    return call.Fault(fmt::format(
        "not connected: the generators make a subgroup of {} of the {} elements", reached, ranks));
  for (int32_t rank = 0; rank < ranks; ++rank)
    for (size_t i = 0; i < degree; ++i)
      draft->AddLink(rank, group->Multiply(rank, generators[i]), call.links.Link(i));
  return draft;
}

}  // namespace topo
}  // namespace tutti
