// Networks drawn at random that spread well: random regular graphs and lifts of the complete graph.
//
// Method      A regular graph is drawn by the pairing model (every rank has `degree` points, a
//             shuffled list of all points is read two by two), and what joins a rank to itself or
//             twice to another is set right by exchanging ends with cables drawn at random. Above
//             half of the possible degree the cables that are *not* there are drawn that way.
//             Draws that are not connected are drawn again.
// Reference   [Bollobas 1980], [McKay, Wormald 1990] for pairing and exchanges; Jellyfish [Singla
//             et al. 2012]; Xpander [Valadarsky et al. 2016], 3: random lifts of the complete
//             graph.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "families/family.h"
#include "tutti/base/random.h"
#include "tutti/graph/distance.h"

namespace tutti::topo {
namespace {

constexpr int kDraws = 1000;

using Ends = std::pair<int32_t, int32_t>;

template <class Item>
void Shuffle(std::vector<Item>& items, Random& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.Below(i)]);
}

std::vector<int32_t> ShuffledFrom(int64_t first, int64_t count, Random& random) {
  std::vector<int32_t> items;
  for (int64_t i = 0; i < count; ++i) items.push_back(static_cast<int32_t>(first + i));
  Shuffle(items, random);
  return items;
}

bool IsConnected(int64_t ranks, const std::vector<Ends>& cables) {
  std::vector<Digraph::Arc> arcs;
  for (const auto& [a, b] : cables) {
    arcs.emplace_back(NodeId{a}, NodeId{b});
    arcs.emplace_back(NodeId{b}, NodeId{a});
  }
  return CheckStronglyConnected(Digraph(static_cast<int32_t>(ranks), arcs)).strongly_connected;
}

Draft WithCables(Draft draft, const std::vector<Ends>& cables, const LinkSpec& spec) {
  for (const auto& [a, b] : cables) draft.AddCable(a, b, spec);
  return draft;
}

// Pairs of the points of all ranks while the faulty ones among them are set right.
class Pairing {
 public:
  Pairing(int64_t ranks, int64_t degree, Random& random)
      : random_(random), neighbours_(static_cast<size_t>(ranks)) {
    std::vector<int32_t> points;
    for (int64_t rank = 0; rank < ranks; ++rank)
      points.insert(points.end(), static_cast<size_t>(degree), static_cast<int32_t>(rank));
    Shuffle(points, random_);
    for (size_t i = 0; i + 1 < points.size(); i += 2) {
      cables_.emplace_back(points[i], points[i + 1]);
      Count(cables_.back(), +1);
    }
  }

  // False where exchanges get nowhere.
  bool SetRight() {
    constexpr int kTries = 1000;  // for each faulty cable
    for (size_t i = 0; i < cables_.size(); ++i)
      for (int tries = 0; IsFaulty(cables_[i]); ++tries) {
        if (tries == kTries) return false;
        Exchange(cables_[i], cables_[random_.Below(cables_.size())]);
      }
    return true;
  }
  const std::vector<Ends>& cables() const { return cables_; }
  const std::vector<int32_t>& NeighboursOf(int64_t rank) const {
    return neighbours_[static_cast<size_t>(rank)];
  }

 private:
  bool IsFaulty(const Ends& cable) const {
    return cable.first == cable.second || Times(cable.first, cable.second) > 1;
  }
  std::ptrdiff_t Times(int32_t a, int32_t b) const {
    const std::vector<int32_t>& list = neighbours_[static_cast<size_t>(a)];
    return std::count(list.begin(), list.end(), b);
  }
  void Count(const Ends& cable, int change) {
    for (const auto& [at, other] : {cable, Ends{cable.second, cable.first}}) {
      std::vector<int32_t>& list = neighbours_[static_cast<size_t>(at)];
      if (change > 0) {
        list.push_back(other);
      } else {
        *std::find(list.begin(), list.end(), other) = list.back();
        list.pop_back();
      }
    }
  }
  // a - b and c - d become a - c and b - d, where neither is there yet.
  void Exchange(Ends& one, Ends& other) {
    if (random_.Below(2) == 0) std::swap(other.first, other.second);
    const Ends left{one.first, other.first}, right{one.second, other.second};
    if (left.first == left.second || right.first == right.second) return;
    if (Times(left.first, left.second) > 0 || Times(right.first, right.second) > 0) return;
    if (left == right || left == Ends{right.second, right.first}) return;
    Count(one, -1);
    Count(other, -1);
    one = left;
    other = right;
    Count(one, +1);
    Count(other, +1);
  }

  Random& random_;
  std::vector<Ends> cables_;
  std::vector<std::vector<int32_t>> neighbours_;
};

// Connected or not; nothing where the exchanges got stuck.
std::optional<std::vector<Ends>> DrawRegular(int64_t ranks, int64_t degree, Random& random) {
  const bool dense = 2 * degree > ranks - 1;
  Pairing pairing(ranks, dense ? ranks - 1 - degree : degree, random);
  if (!pairing.SetRight()) return std::nullopt;
  if (!dense) return pairing.cables();
  std::vector<Ends> cables;
  for (int64_t a = 0; a < ranks; ++a) {
    std::vector<char> absent(static_cast<size_t>(ranks), 0);
    for (int32_t b : pairing.NeighboursOf(a)) absent[static_cast<size_t>(b)] = 1;
    for (int64_t b = a + 1; b < ranks; ++b)
      if (!absent[static_cast<size_t>(b)])
        cables.emplace_back(static_cast<int32_t>(a), static_cast<int32_t>(b));
  }
  return cables;
}

// With degree 2 only a ring is connected.
std::vector<Ends> RingOver(const std::vector<int32_t>& order) {
  std::vector<Ends> cables;
  for (size_t i = 0; i < order.size(); ++i)
    cables.emplace_back(order[i], order[(i + 1) % order.size()]);
  return cables;
}

tl::unexpected<Error> NotConnected(const FamilyCall& call) {
  return call.Fault(fmt::format("none of {} draws was connected; try another seed", kDraws));
}

uint64_t SeedOf(const FamilyCall& call) {
  return static_cast<uint64_t>(call.options[0].value_or(1));
}

}  // namespace

Result<Draft> BuildRandomRegular(const FamilyCall& call) {
  if (Status status = call.CheckSize(1, 2); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0], ranks = call.sizes[1];
  if (Status status = call.CheckSize(0, ranks == 2 ? 1 : 2, ranks - 1); !status)
    return tl::unexpected(status.error());
  if (degree % 2 == 1 && ranks % 2 == 1)
    return call.FaultOfSize(
        0, fmt::format("degree {} of {} ranks: one of the two must be even", degree, ranks));
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), 1);
  if (!draft) return draft;
  Random random(SeedOf(call));
  if (degree == 2 && ranks > 2)
    return WithCables(*std::move(draft), RingOver(ShuffledFrom(0, ranks, random)),
                      call.links.Link(0));
  for (int i = 0; i < kDraws; ++i) {
    const std::optional<std::vector<Ends>> cables = DrawRegular(ranks, degree, random);
    if (cables && IsConnected(ranks, *cables))
      return WithCables(*std::move(draft), *cables, call.links.Link(0));
  }
  return NotConnected(call);
}

// Rank g k + i is the i-th copy of vertex g of the complete graph.
Result<Draft> BuildXpander(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0], copies = call.sizes[1];
  if (degree == 1 && copies > 1)
    return call.FaultOfSize(1, fmt::format("got {}, wanted 1: with degree 1 no more than 2 ranks "
                                           "are connected",
                                           copies));
  const int64_t groups = SaturatingAdd(degree, 1);
  const int64_t ranks = SaturatingMul(groups, copies);
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), 1);
  if (!draft) return draft;
  Random random(SeedOf(call));
  if (degree == 2) {
    std::vector<int32_t> order(static_cast<size_t>(ranks));
    for (int64_t g = 0; g < groups; ++g) {
      const std::vector<int32_t> shuffled = ShuffledFrom(g * copies, copies, random);
      for (size_t i = 0; i < shuffled.size(); ++i)
        order[i * static_cast<size_t>(groups) + static_cast<size_t>(g)] = shuffled[i];
    }
    return WithCables(*std::move(draft), RingOver(order), call.links.Link(0));
  }
  for (int i = 0; i < kDraws; ++i) {
    std::vector<Ends> cables;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t h = g + 1; h < groups; ++h) {
        const std::vector<int32_t> partner = ShuffledFrom(h * copies, copies, random);
        for (size_t c = 0; c < partner.size(); ++c)
          cables.emplace_back(static_cast<int32_t>(g * copies) + static_cast<int32_t>(c),
                              partner[c]);
      }
    if (IsConnected(ranks, cables))
      return WithCables(*std::move(draft), cables, call.links.Link(0));
  }
  return NotConnected(call);
}

}  // namespace tutti::topo
