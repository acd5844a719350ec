// --to nccl-graph
#include "tutti/lower/nccl_graph.h"

#include "formats.h"

namespace tutti::lower {
namespace {

const FormatOption kBox{"box", "Whose file, counted from 0", "0"};
const FormatOption kNics{"nics", "NICs a box, shared by its GPUs in order; 0: one a GPU", "0"};
const FormatOption kPathIntra{"path-intra",
                              "NCCL's class of the paths inside a box",
                              "NVL",
                              {"NVL", "PIX", "PXB", "PHB", "SYS"}};
const FormatOption kPathInter{
    "path-inter", "NCCL's class of the paths to NICs", "PIX", {"PIX", "PXB", "PXN", "PHB", "SYS"}};

Result<LoweredText> LowerToNcclGraph(const Topology& topology, const Schedule& schedule,
                                     const FormatOptionValues& values) {
  constexpr int32_t kMost = 1 << 20;
  const Result<int32_t> box_ranks = values.Count(kBoxRanks, 0, kMost);
  if (!box_ranks) return tl::unexpected(box_ranks.error());
  const Result<int32_t> box = values.Count(kBox, 0, kMost);
  if (!box) return tl::unexpected(box.error());
  const Result<int32_t> nics = values.Count(kNics, 0, kMost);
  if (!nics) return tl::unexpected(nics.error());
  Result<NcclGraph> graph = ToNcclGraph(topology, schedule,
                                        {.box_ranks = *box_ranks,
                                         .box = *box,
                                         .nics = *nics,
                                         .path_intra = values.Text(kPathIntra),
                                         .path_inter = values.Text(kPathInter)});
  if (!graph) return tl::unexpected(graph.error());
  return LoweredText{std::move(graph->xml), {}, false, {}, {}, std::move(graph->note)};
}

}  // namespace

LoweringFormat NcclGraphFormat() {
  return {.name = "nccl-graph",
          .description = "NCCL graph XML: the orders of GPUs of rings and trees",
          .extension = ".xml",
          .options = {&kBoxRanks, &kBox, &kNics, &kPathIntra, &kPathInter},
          .schedule = LowerToNcclGraph};
}

}  // namespace tutti::lower
