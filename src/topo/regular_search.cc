#include "regular_search.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tutti/base/random.h"
#include "tutti/topo/symmetry.h"

namespace tutti::topo {
namespace {

constexpr int64_t kBudget = 20'000'000;  // links looked at: a fraction of a second
constexpr int kAttempts = 64;            // for each generator
constexpr int kRestarts = 4;

// First `b`, then `a`.
NodePermutation After(const NodePermutation& a, const NodePermutation& b) {
  NodePermutation result;
  result.reserve(b.size());
  for (NodeId node : b) result.push_back(a[node.index()]);
  return result;
}

NodePermutation InverseOf(const NodePermutation& a) {
  NodePermutation result(a.size());
  for (size_t node = 0; node < a.size(); ++node)
    result[a[node].index()] = NodeId{static_cast<int32_t>(node)};
  return result;
}

// Random products of symmetries, and one symmetry that takes rank 0 to each rank.
class Symmetries {
 public:
  Symmetries(std::vector<NodePermutation> generators, size_t num_ranks)
      : pool_(std::move(generators)), to_(num_ranks), random_(1) {
    NodePermutation identity(num_ranks);
    for (size_t node = 0; node < num_ranks; ++node)
      identity[node] = NodeId{static_cast<int32_t>(node)};
    to_[0] = identity;
    std::vector<size_t> order{0};
    for (size_t next = 0; next < order.size(); ++next)
      for (const NodePermutation& generator : pool_) {
        const size_t image = generator[order[next]].index();
        if (!to_[image].empty()) continue;
        to_[image] = After(generator, to_[order[next]]);
        order.push_back(image);
      }
    constexpr size_t kPool = 10, kMixing = 60;
    const size_t given = pool_.size();
    while (pool_.size() < kPool) pool_.push_back(pool_[pool_.size() % given]);
    for (size_t i = 0; i < kMixing; ++i) Mix();
  }

  // One that takes rank 0 to `rank`.
  NodePermutation Draw(size_t rank) {
    const NodePermutation& any = Mix();
    return After(to_[rank], After(InverseOf(to_[any[0].index()]), any));
  }

 private:
  // Product replacement ([Celler, Leedham-Green et al. 1995]).
  const NodePermutation& Mix() {
    const auto i = static_cast<size_t>(random_.Below(pool_.size()));
    const auto other = static_cast<size_t>(random_.Below(pool_.size() - 1));
    const size_t j = other + (other >= i ? 1 : 0);
    pool_[i] = random_.Below(2) == 0 ? After(pool_[i], pool_[j]) : After(pool_[j], pool_[i]);
    return pool_[i];
  }

  std::vector<NodePermutation> pool_, to_;
  Random random_;
};

// The elements of a group by where they take rank 0; empty where none goes. Empty altogether when
// two of them go to one rank.
std::vector<NodePermutation> Close(const std::vector<NodePermutation>& generators,
                                   const NodePermutation& identity) {
  std::vector<NodePermutation> element(identity.size());
  element[0] = identity;
  std::vector<size_t> order{0};
  for (size_t next = 0; next < order.size(); ++next)
    for (const NodePermutation& generator : generators) {
      NodePermutation product = After(generator, element[order[next]]);
      NodePermutation& known = element[product[0].index()];
      if (!known.empty() && known != product) return {};
      if (!known.empty()) continue;
      order.push_back(product[0].index());
      known = std::move(product);
    }
  return element;
}

std::optional<std::vector<NodePermutation>> Grow(Symmetries& symmetries,
                                                 const NodePermutation& identity) {
  std::vector<NodePermutation> generators;
  std::vector<NodePermutation> element = Close(generators, identity);
  for (;;) {
    const auto missed = std::find_if(element.begin(), element.end(),
                                     [](const NodePermutation& one) { return one.empty(); });
    if (missed == element.end()) return generators;
    const auto rank = static_cast<size_t>(missed - element.begin());
    bool grown = false;
    for (int attempt = 0; attempt < kAttempts && !grown; ++attempt) {
      generators.push_back(symmetries.Draw(rank));
      std::vector<NodePermutation> closed = Close(generators, identity);
      grown = !closed.empty();
      if (grown)
        element = std::move(closed);
      else
        generators.pop_back();
    }
    if (!grown) return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<NodePermutation>> SearchTranslations(const Topology& topology) {
  if (topology.has_switches() || topology.num_ranks() > kMaxSearchedRanks) return std::nullopt;
  const NodeOrbits orbits = FindNodeOrbits(topology, kBudget);
  if (orbits.num_orbits() != 1 || orbits.generators.empty()) return std::nullopt;
  std::vector<NodePermutation> maps;
  for (const Isomorphism& generator : orbits.generators) maps.push_back(generator.node_map);
  NodePermutation identity;
  for (NodeId rank : topology.Ranks()) identity.push_back(rank);
  Symmetries symmetries(std::move(maps), identity.size());
  for (int restart = 0; restart < kRestarts; ++restart)
    if (auto found = Grow(symmetries, identity)) return found;
  return std::nullopt;
}

}  // namespace tutti::topo
