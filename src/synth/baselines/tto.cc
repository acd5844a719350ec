// tto: all-reduce on a 2-D mesh over three trees from three corners, a third of the data each.
//
// Model       On R x C ranks, links written as they lead away from the root:
//               T0  from (0, 0):         down column 0, then right along every row
//               T1  from (0, C-1):       left along row 0, down columns 1 .. C-1, in rows 1 .. R-2
//                                        left from column 1 into column 0
//               T2  from (R-1, C-1):     left along row R-1, then up every column
//             No two share a link: T0 has all links to the right and those down column 0, T2 all
//             up and those to the left in row R-1, T1 others down and to the left. T1 leaves out
//             the corner (R-1, 0): a corner has two links into it, so that three trees that share
//             none cannot all reach it unless it is a root, and there are four corners. All-reduce
//             must serve that corner too: its chunks of T1 come in turns over the link of T0 and
//             that of T2. Every rank is as near to each root as the mesh allows. Chunks go up and
//             down as a pipeline (baselines/tree_pipeline.h).
// Cost        Going up and down, the three trees load a link at most twice a round of three chunks,
//             and the links at that corner 2.5 times: about 5/6 M over one link, and M / 3 * 2
//             without that corner.
// Reference   [tto], whose abstract says: three disjoint trees, different steps at the same time,
//             overlapping chunks; [tacos] section VII: from ranks on the border. The paper's text
//             is not public; roots, T0, T2 and the corner left out are as in a public simulator of
//             its scheme. Deviations: T1 there descends a diagonal, with links of the same
//             directions, on squares only; the corner takes no part there.
#include <fmt/format.h>

#include <utility>

#include "baselines/tree_pipeline.h"
#include "classic/link_index.h"
#include "registry.h"

namespace tutti {
namespace baselines {
namespace {

constexpr std::string_view kTto = "tto";

class Mesh {
 public:
  Mesh(const Topology& topology, int32_t rows, int32_t columns)
      : links_(topology.graph()), rows_(rows), columns_(columns) {}

  int32_t rows() const { return rows_; }
  int32_t columns() const { return columns_; }
  NodeId At(int32_t row, int32_t column) const { return NodeId{row * columns_ + column}; }
  // False where there is no such link.
  bool Add(Tree& tree, NodeId from, NodeId to) const {
    const std::span<const LinkId> between = links_.Between(from, to);
    if (between.empty()) return false;
    tree.down.push_back(between.front());
    return true;
  }

 private:
  classic::LinkIndex links_;
  int32_t rows_, columns_;
};

bool AddColumnsThenRows(const Mesh& mesh, Tree& tree) {  // T0
  bool whole = true;
  for (int32_t row = 1; row < mesh.rows(); ++row)
    whole = mesh.Add(tree, mesh.At(row - 1, 0), mesh.At(row, 0)) && whole;
  for (int32_t row = 0; row < mesh.rows(); ++row)
    for (int32_t column = 1; column < mesh.columns(); ++column)
      whole = mesh.Add(tree, mesh.At(row, column - 1), mesh.At(row, column)) && whole;
  return whole;
}

bool AddRowsThenColumns(const Mesh& mesh, Tree& tree) {  // T2
  const int32_t last = mesh.rows() - 1;
  bool whole = true;
  for (int32_t column = mesh.columns() - 2; column >= 0; --column)
    whole = mesh.Add(tree, mesh.At(last, column + 1), mesh.At(last, column)) && whole;
  for (int32_t column = 0; column < mesh.columns(); ++column)
    for (int32_t row = last - 1; row >= 0; --row)
      whole = mesh.Add(tree, mesh.At(row + 1, column), mesh.At(row, column)) && whole;
  return whole;
}

bool AddComb(const Mesh& mesh, bool corner_from_above, Tree& tree) {  // T1
  const int32_t last = mesh.rows() - 1;
  bool whole = true;
  for (int32_t column = mesh.columns() - 2; column >= 0; --column)
    whole = mesh.Add(tree, mesh.At(0, column + 1), mesh.At(0, column)) && whole;
  for (int32_t column = 1; column < mesh.columns(); ++column)
    for (int32_t row = 1; row <= last; ++row)
      whole = mesh.Add(tree, mesh.At(row - 1, column), mesh.At(row, column)) && whole;
  for (int32_t row = 1; row < last; ++row)
    whole = mesh.Add(tree, mesh.At(row, 1), mesh.At(row, 0)) && whole;
  const NodeId neighbour = corner_from_above ? mesh.At(last - 1, 0) : mesh.At(last, 1);
  return mesh.Add(tree, neighbour, mesh.At(last, 0)) && whole;
}

Result<Schedule> SynthesizeTto(const Topology& topology, const Collective& collective,
                               const SynthOptions& options) {
  std::vector<int32_t> lengths;
  if (topology.grid() && !topology.grid()->wraps)
    for (int32_t length : topology.grid()->dims)
      if (length > 1) lengths.push_back(length);
  const auto none = [&] {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' needs a mesh of two dimensions of at least 2, without "
                                 "wrap-around; '{}' is none",
                                 kTto, topology.name()));
  };
  if (lengths.size() != 2) return none();
  const Mesh mesh(topology, lengths[0], lengths[1]);
  std::vector<std::vector<Tree>> alternatives;
  for (bool corner_from_above : {true, false}) {
    std::vector<Tree> trees(3, Tree{NodeId{0}, {}});
    trees[1].root = mesh.At(0, mesh.columns() - 1);
    trees[2].root = mesh.At(mesh.rows() - 1, mesh.columns() - 1);
    if (!AddColumnsThenRows(mesh, trees[0]) || !AddComb(mesh, corner_from_above, trees[1]) ||
        !AddRowsThenColumns(mesh, trees[2]))
      return none();
    alternatives.push_back(std::move(trees));
  }
  return MakeTreeAllReduce(kTto, topology, collective, options, alternatives);
}

}  // namespace
}  // namespace baselines

Synthesizer TtoSynthesizer() {
  return {.name = baselines::kTto,
          .description = "TTO: three trees from three corners of a 2-D mesh",
          .collectives = {CollectiveKind::kAllReduce},
          .synthesize = baselines::SynthesizeTto,
          .one_shard_all_reduce = true,
          .chunk_choice = true};
}

}  // namespace tutti
