// Candidates for translations. Whatever is proposed here is checked by Translations::Make, so a
// wrong guess costs time and nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "regular_search.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/metacyclic.h"
#include "tutti/topo/translations.h"

namespace tutti {
namespace {

// A group by its generators, on `size` ranks.
struct Candidate {
  int64_t size = 1;
  std::vector<NodePermutation> generators;
};

template <class Image>
NodePermutation MakePermutation(int64_t size, const Image& image) {
  NodePermutation images;
  images.reserve(static_cast<size_t>(size));
  for (int64_t node = 0; node < size; ++node)
    images.push_back(NodeId{static_cast<int32_t>(image(node))});
  return images;
}

// All ranks by one.
Candidate Rotation(int64_t size) {
  Candidate candidate{size, {}};
  if (size > 1)
    candidate.generators.push_back(
        MakePermutation(size, [size](int64_t node) { return (node + 1) % size; }));
  return candidate;
}

// Pairs (slow, fast), numbered row-major, each part moved on its own.
Candidate Product(const Candidate& slow, const Candidate& fast) {
  Candidate product{slow.size * fast.size, {}};
  for (const NodePermutation& generator : slow.generators)
    product.generators.push_back(MakePermutation(product.size, [&](int64_t node) {
      const auto part = static_cast<size_t>(node / fast.size);
      return generator[part].value * fast.size + node % fast.size;
    }));
  for (const NodePermutation& generator : fast.generators)
    product.generators.push_back(MakePermutation(product.size, [&](int64_t node) {
      const auto part = static_cast<size_t>(node % fast.size);
      return node - node % fast.size + generator[part].value;
    }));
  return product;
}

// One step along each dimension, around its end.
Candidate Grid(const std::vector<int64_t>& dims) {
  Candidate grid;
  for (int64_t dim : dims) grid.size *= dim;
  int64_t stride = grid.size;
  for (int64_t dim : dims) {
    stride /= dim;
    if (dim == 1) continue;
    grid.generators.push_back(MakePermutation(grid.size, [&](int64_t node) {
      return node + (node / stride % dim + 1 < dim ? stride : stride - dim * stride);
    }));
  }
  return grid;
}

// One step along each dimension of a twisted torus (families/grids.cc says how it is wired).
Candidate TwistedGrid(const std::vector<int64_t>& dims) {
  Candidate grid = Grid(dims);
  const int64_t k = *std::min_element(dims.begin(), dims.end());
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  grid.generators.clear();
  for (size_t d = 0; d < dims.size(); ++d)
    grid.generators.push_back(MakePermutation(grid.size, [&](int64_t node) {
      const int64_t position = node / strides[d] % dims[d];
      if (position + 1 < dims[d]) return node + strides[d];
      int64_t next = node - position * strides[d];
      for (size_t e = 0; e < dims.size() && dims[d] == k; ++e)
        if (dims[e] != k) next += (node / strides[e] % dims[e] < k ? k : -k) * strides[e];
      return next;
    }));
  return grid;
}

// The sides of a bipartite network: both turned, and exchanged.
Candidate TwoSides(int64_t side) { return Product(Rotation(2), Rotation(side)); }

// What an expression suggests. Its sizes are not those of a network that exists, so each is checked
// before anything is made of it.
class FromExpression {
 public:
  explicit FromExpression(const ExpressionTree& whole) : whole_(whole) {}

  std::optional<Candidate> Propose() const { return Of(whole_); }

 private:
  std::optional<Candidate> Of(const ExpressionTree& tree) const {
    const std::string& name = tree.family;
    const std::vector<int64_t>& sizes = tree.sizes;
    if (name == "transpose" || name == "bidirectional")
      return tree.operands.size() == 1 ? Of(tree.operands[0]) : std::nullopt;
    if (name == "product" || name == "power" || name == "degree") return OfProduct(tree);
    if (name == "bipartite" && sizes.size() == 1 && Fits({2, sizes[0]})) return TwoSides(sizes[0]);
    if (name == "cayley" && sizes.size() >= 3) return OfCayley(sizes[0], sizes[1], sizes[2]);
    if (name == "twisted_torus" && sizes.size() >= 2 && Fits(sizes)) return TwistedGrid(sizes);
    std::vector<int64_t> dims;
    if (name == "torus") dims = sizes;
    if (name == "hypercube" && sizes.size() == 1 && Fits(sizes))
      dims.assign(static_cast<size_t>(sizes[0]), 2);
    if (name == "hamming" && sizes.size() == 2 && Fits(sizes))
      dims.assign(static_cast<size_t>(sizes[0]), sizes[1]);
    if (!dims.empty()) return Fits(dims) ? std::optional(Grid(dims)) : std::nullopt;
    return OfNetwork(tree);
  }

  static bool Fits(const std::vector<int64_t>& dims) {
    int64_t size = 1;
    for (int64_t dim : dims) {
      if (dim < 1 || dim > kMaxNodes / size) return false;
      size *= dim;
    }
    return true;
  }

  // Ranks are the elements; what generates the group multiplies from the left.
  static std::optional<Candidate> OfCayley(int64_t m, int64_t k, int64_t r) {
    const Result<MetacyclicGroup> group = MetacyclicGroup::Make(m, k, r);
    if (!group) return std::nullopt;
    Candidate candidate{group->size(), {}};
    for (const int32_t element :
         {group->Element(m > 1 ? 1 : 0, 0), group->Element(0, k > 1 ? 1 : 0)})
      if (element != 0)
        candidate.generators.push_back(MakePermutation(group->size(), [&](int64_t node) {
          return group->Multiply(element, static_cast<int32_t>(node));
        }));
    return candidate;
  }

  std::optional<Candidate> OfProduct(const ExpressionTree& tree) const {
    std::vector<Candidate> factors;
    for (const ExpressionTree& operand : tree.operands) {
      std::optional<Candidate> factor = Of(operand);
      if (!factor) return std::nullopt;
      factors.push_back(*std::move(factor));
    }
    if (tree.family != "product") {
      if (factors.size() != 1 || tree.sizes.size() != 1) return std::nullopt;
      const int64_t times = tree.sizes[0];
      if (times < 1 || times > kMaxNodes) return std::nullopt;
      // degree(G,n): the n ranks that stand in place of one are exchanged freely.
      if (tree.family == "degree") factors.push_back(Rotation(times));
      if (tree.family == "power") factors.resize(static_cast<size_t>(times), factors[0]);
    }
    Candidate all;
    for (const Candidate& factor : factors) {
      if (!Fits({all.size, factor.size})) return std::nullopt;
      all = Product(all, factor);
    }
    return all;
  }

  // A factor by itself. The whole expression is the network that is being looked at, for which
  // everything else is tried anyway.
  std::optional<Candidate> OfNetwork(const ExpressionTree& tree) const {
    if (&tree == &whole_) return std::nullopt;
    const Result<Topology> network = ParseTopology(tree.text, {.allow_files = false});
    if (!network) return std::nullopt;
    const Result<Translations> found = FindTranslations(*network);
    if (!found) return std::nullopt;
    return Candidate{network->num_ranks(), found->generators()};
  }

  const ExpressionTree& whole_;
};

std::optional<Candidate> OfExpression(const Topology& topology) {
  const Result<ExpressionTree> expression = ParseExpressionTree(topology.expression());
  if (!expression) return std::nullopt;
  return FromExpression(*expression).Propose();
}

std::optional<Candidate> OfGrid(const Topology& topology) {
  if (!topology.grid()) return std::nullopt;
  return Grid({topology.grid()->dims.begin(), topology.grid()->dims.end()});
}

std::optional<Candidate> OfRotation(const Topology& topology) {
  return Rotation(topology.num_ranks());
}

std::optional<Candidate> OfSearch(const Topology& topology) {
  std::optional<std::vector<NodePermutation>> found = topo::SearchTranslations(topology);
  if (!found) return std::nullopt;
  return Candidate{topology.num_ranks(), *std::move(found)};
}

}  // namespace

Result<Translations> FindTranslations(const Topology& topology) {
  if (topology.has_switches())
    return MakeError(ErrorCode::kInfeasible,
                     "a network with switches has no translations of all its nodes");
  for (const auto& propose : {OfExpression, OfGrid, OfRotation, OfSearch}) {
    std::optional<Candidate> candidate = propose(topology);
    if (!candidate || candidate->size != topology.num_ranks()) continue;
    Result<Translations> found = Translations::Make(topology, std::move(candidate->generators));
    if (found) return found;
  }
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("no group of translations is known for '{}': tried what its expression and its "
                  "grid suggest, a rotation of its ranks{}",
                  topology.name(),
                  topology.num_ranks() <= topo::kMaxSearchedRanks
                      ? ", groups of its symmetries drawn at random"
                      : ""));
}

}  // namespace tutti
