#include "chunk_search.h"

#include <algorithm>

#include "tutti/base/index.h"
#include "tutti/base/random.h"

namespace tutti::stored_search {
namespace {

class Search {
 public:
  Search(const SmallDigraph& graph, const std::vector<int>& loads, uint64_t seed)
      : graph_(&graph),
        pricer_(graph, static_cast<int>(loads.size())),
        loads_(loads),
        rng_(seed),
        load_(loads.size() * Index(graph.num_links()), 0),
        weight_(load_.size(), 1),
        cost_(load_.size()) {}

  std::optional<std::vector<Tree>> Run(int chunks, int64_t rounds) {
    for (int root = 0; root < graph_->num_nodes(); ++root)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        trees_.push_back(Best(root));
        Count(trees_.back(), 1);
      }
    for (int64_t round = 0; round < rounds; ++round) {
      std::vector<int> full;
      for (int slot = 0; slot < static_cast<int>(load_.size()); ++slot)
        if (load_[Index(slot)] > Limit(slot)) {
          full.push_back(slot);
          weight_[Index(slot)] += 0.1;
        }
      if (full.empty()) return trees_;
      const int slot = full[rng_.Below(full.size())];
      std::vector<size_t> users;
      for (size_t i = 0; i < trees_.size(); ++i)
        if (Uses(trees_[i], slot)) users.push_back(i);
      Tree& tree = trees_[users[rng_.Below(users.size())]];
      Count(tree, -1);
      tree = Best(tree.root);
      Count(tree, 1);
    }
    return std::nullopt;
  }

 private:
  int Limit(int slot) const { return loads_[Index(slot / graph_->num_links())]; }
  int Slot(const Tree& tree, int node) const {
    return (tree.step[Index(node)] - 1) * graph_->num_links() + tree.link[Index(node)];
  }
  bool Uses(const Tree& tree, int slot) const {
    const int node = graph_->head(slot % graph_->num_links());
    return node != tree.root && Slot(tree, node) == slot;
  }
  void Count(const Tree& tree, int by) {
    for (int node = 0; node < graph_->num_nodes(); ++node)
      if (node != tree.root) load_[Index(Slot(tree, node))] += by;
  }
  Tree Best(int root) {
    for (int slot = 0; slot < static_cast<int>(load_.size()); ++slot) {
      const bool is_full = load_[Index(slot)] >= Limit(slot);
      // Free links differ by chance only, so that equal trees are not always the same one.
      cost_[Index(slot)] =
          is_full ? weight_[Index(slot)] : 1e-6 * static_cast<double>(rng_.Below(1000));
    }
    double total = 0;
    return pricer_.Cheapest(root, cost_, &total);
  }

  const SmallDigraph* graph_;
  TreePricer pricer_;
  std::vector<int> loads_;
  Random rng_;
  std::vector<Tree> trees_;
  std::vector<int> load_;
  std::vector<double> weight_, cost_;
};

}  // namespace

std::optional<std::vector<Tree>> FindWholeChunks(const SmallDigraph& graph, int chunks,
                                                 const std::vector<int>& loads, uint64_t seed,
                                                 int64_t rounds) {
  return Search(graph, loads, seed).Run(chunks, rounds);
}

}  // namespace tutti::stored_search
