// Candidates for translations. Whatever is proposed here is checked by Translations::Make, so a
// wrong guess costs time and nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "syntax.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/translations.h"

namespace tutti {
namespace {

using topo::SyntaxNode;

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

// A call of the expression language as text again; nullopt where it names a file.
std::optional<std::string> Print(const SyntaxNode& node) {
  if (node.kind == SyntaxNode::Kind::kPath) return std::nullopt;
  std::string items;
  for (const SyntaxNode& item : node.items) {
    const std::optional<std::string> text = Print(item);
    if (!text) return std::nullopt;
    if (!items.empty()) items += ",";
    if (!item.keyword.empty()) items += item.keyword + "=";
    items += *text;
  }
  if (node.kind == SyntaxNode::Kind::kList) return "[" + items + "]" + node.text;
  return node.has_parentheses ? node.text + "(" + items + ")" : node.text;
}

// What an expression suggests. Sizes are those of a network that exists, so products stay within
// kMaxNodes.
class FromExpression {
 public:
  std::optional<Candidate> Of(const SyntaxNode& node) const {
    if (node.kind != SyntaxNode::Kind::kCall) return std::nullopt;
    const std::vector<int64_t> sizes = SizesOf(node);
    const std::vector<const SyntaxNode*> operands = OperandsOf(node);
    const std::string& name = node.text;
    if (name == "transpose" || name == "bidirectional")
      return operands.size() == 1 ? Of(*operands[0]) : std::nullopt;
    if (name == "product" || name == "power" || name == "degree")
      return OfProduct(name, operands, sizes);
    for (int64_t size : sizes)
      if (size < 1 || size > kMaxNodes) return std::nullopt;
    if (name == "bipartite" && sizes.size() == 1) return Limited(TwoSides(sizes[0]));
    if (name == "twisted_torus" && sizes.size() >= 2 && Fits(sizes)) return TwistedGrid(sizes);
    std::vector<int64_t> dims;
    if (name == "torus") dims = sizes;
    if (name == "hypercube" && sizes.size() == 1 && sizes[0] <= kMostDigits)
      dims.assign(static_cast<size_t>(sizes[0]), 2);
    if (name == "hamming" && sizes.size() == 2 && sizes[0] <= kMostDigits)
      dims.assign(static_cast<size_t>(sizes[0]), sizes[1]);
    if (!dims.empty()) return Fits(dims) ? std::optional(Grid(dims)) : std::nullopt;
    return OfNetwork(node);
  }

 private:
  static constexpr int64_t kMostDigits = 20;  // 2^20 nodes

  static std::optional<Candidate> Limited(Candidate candidate) {
    if (candidate.size > kMaxNodes) return std::nullopt;
    return candidate;
  }

  static bool Fits(const std::vector<int64_t>& dims) {
    int64_t size = 1;
    for (int64_t dim : dims) {
      size *= dim;
      if (size > kMaxNodes) return false;
    }
    return true;
  }

  static std::vector<int64_t> SizesOf(const SyntaxNode& node) {
    std::vector<int64_t> sizes;
    for (const SyntaxNode& item : node.items)
      if (item.keyword.empty() && item.kind == SyntaxNode::Kind::kWord && item.text.size() <= 7 &&
          item.text.find_first_not_of("0123456789") == std::string::npos)
        sizes.push_back(std::stoll(item.text));
    return sizes;
  }

  static std::vector<const SyntaxNode*> OperandsOf(const SyntaxNode& node) {
    std::vector<const SyntaxNode*> operands;
    for (const SyntaxNode& item : node.items)
      if (item.keyword.empty() && item.kind == SyntaxNode::Kind::kCall) operands.push_back(&item);
    return operands;
  }

  std::optional<Candidate> OfProduct(const std::string& name,
                                     const std::vector<const SyntaxNode*>& operands,
                                     const std::vector<int64_t>& sizes) const {
    std::optional<Candidate> all;
    const auto append = [&all](std::optional<Candidate> factor) {
      if (!factor || (all && all->size * factor->size > kMaxNodes)) return false;
      all = all ? Product(*all, *factor) : std::move(*factor);
      return true;
    };
    for (const SyntaxNode* operand : operands)
      if (!append(Of(*operand))) return std::nullopt;
    if (name == "product" || !all || sizes.size() != 1 || sizes[0] < 1) return all;
    // degree(G,n): the n ranks that stand in place of one are exchanged freely.
    if (name == "degree")
      return sizes[0] <= kMaxNodes && append(Rotation(sizes[0])) ? all : std::nullopt;
    const Candidate base = *all;
    for (int64_t i = 1; i < sizes[0]; ++i)
      if (!append(base)) return std::nullopt;
    return all;
  }

  // A factor by itself. The whole expression is the network that is being looked at, for which
  // everything else is tried anyway.
  std::optional<Candidate> OfNetwork(const SyntaxNode& node) const {
    if (&node == whole_) return std::nullopt;
    const std::optional<std::string> text = Print(node);
    if (!text) return std::nullopt;
    const Result<Topology> network = ParseTopology(*text, {.allow_files = false});
    if (!network) return std::nullopt;
    const Result<Translations> found = FindTranslations(*network);
    if (!found) return std::nullopt;
    return Candidate{network->num_ranks(), found->generators()};
  }

 public:
  explicit FromExpression(const SyntaxNode* whole) : whole_(whole) {}

 private:
  const SyntaxNode* whole_;
};

std::optional<Candidate> OfName(const Topology& topology) {
  const Result<SyntaxNode> expression = topo::ParseSyntax(topology.name());
  if (!expression) return std::nullopt;
  return FromExpression(&*expression).Of(*expression);
}

std::optional<Candidate> OfGrid(const Topology& topology) {
  if (!topology.grid()) return std::nullopt;
  return Grid({topology.grid()->dims.begin(), topology.grid()->dims.end()});
}

std::optional<Candidate> OfRotation(const Topology& topology) {
  return Rotation(topology.num_ranks());
}

}  // namespace

Result<Translations> FindTranslations(const Topology& topology) {
  if (topology.has_switches())
    return MakeError(ErrorCode::kInfeasible,
                     "a network with switches has no translations of all its nodes");
  for (const auto& propose : {OfName, OfGrid, OfRotation}) {
    std::optional<Candidate> candidate = propose(topology);
    if (!candidate || candidate->size != topology.num_ranks()) continue;
    Result<Translations> found = Translations::Make(topology, std::move(candidate->generators));
    if (found) return found;
  }
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("no group of translations is known for '{}': tried what its expression and its "
                  "grid suggest and a rotation of its ranks",
                  topology.name()));
}

}  // namespace tutti
