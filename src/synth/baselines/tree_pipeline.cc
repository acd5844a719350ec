#include "baselines/tree_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "classic/common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/topo/properties.h"

namespace tutti::baselines {
namespace {

constexpr int64_t kMaxTransfers = std::numeric_limits<int32_t>::max();

// Steps in which each link is busy.
class Slots {
 public:
  explicit Slots(int32_t num_links) : busy_(static_cast<size_t>(num_links)) {}

  // Takes the first free step from `ready` on.
  int32_t Take(LinkId link, int32_t ready) {
    std::vector<bool>& busy = busy_[link.index()];
    auto step = static_cast<size_t>(ready);
    while (step < busy.size() && busy[step]) ++step;
    if (step >= busy.size()) busy.resize(step + 1, false);
    busy[step] = true;
    return static_cast<int32_t>(step);
  }

 private:
  std::vector<std::vector<bool>> busy_;
};

struct Pipeline {
  const Topology& topology;
  const std::vector<LinkId>& twin;
  Slots slots;
  std::vector<Transfer> transfers = {};

  void Add(LinkId link, int32_t unit, int32_t step, TransferOp op) {
    transfers.push_back({.shard = ShardId{0},
                         .link = link,
                         .begin = unit,
                         .end = unit + 1,
                         .step = step,
                         .op = op});
  }

  // Returns when the last rank has the result.
  int32_t Run(const Tree& tree, int32_t unit) {
    std::vector<int32_t> ready(static_cast<size_t>(topology.num_ranks()), 0);
    for (auto link = tree.down.rbegin(); link != tree.down.rend(); ++link) {
      const LinkId up = twin[link->index()];
      const int32_t step = slots.Take(up, ready[topology.tail(up).index()]);
      int32_t& parent = ready[topology.head(up).index()];
      parent = std::max(parent, step + 1);
      Add(up, unit, step, TransferOp::kReduce);
    }
    int32_t end = 0;
    for (LinkId link : tree.down) {
      const int32_t step = slots.Take(link, ready[topology.tail(link).index()]);
      ready[topology.head(link).index()] = step + 1;
      end = std::max(end, step + 1);
      Add(link, unit, step, TransferOp::kCopy);
    }
    return end;
  }
};

}  // namespace

Result<Schedule> MakeTreeAllReduce(std::string_view algorithm, const Topology& topology,
                                   const Collective& collective, const SynthOptions& options,
                                   const std::vector<std::vector<Tree>>& alternatives) {
  if (collective.num_shards() != 1)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes all-reduce over one shard, not over N", algorithm));
  const std::optional<std::vector<LinkId>> twin = ReverseLinks(topology);
  if (!twin || topology.has_switches())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' needs ranks whose links all have a reverse of the same "
                                 "bandwidth and alpha; '{}' has others",
                                 algorithm, topology.name()));
  const auto trees = static_cast<int32_t>(alternatives.front().size());
  TUTTI_CHECK(trees > 0);
  int32_t fallback = trees;
  if (options.chunks == 0) {
    int32_t depth = 0;
    for (int32_t t = 0; t < trees; ++t) {
      Pipeline trial{topology, *twin, Slots(topology.num_links())};
      depth = std::max(depth, trial.Run(alternatives[0][static_cast<size_t>(t)], 0));
    }
    fallback = trees * classic::PipelineChunks(topology, options.size_bytes / trees, depth,
                                               options.element_bytes);
  }
  const Result<int32_t> chunks =
      classic::ChunksOf(options, fallback, trees, algorithm, fmt::format("{} trees", trees));
  if (!chunks) return tl::unexpected(chunks.error());
  if (int64_t{*chunks} * 2 * topology.num_ranks() > kMaxTransfers)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} chunks on {} ranks are more than 2^31 transfers", *chunks,
                                 topology.num_ranks()));
  Pipeline pipeline{topology, *twin, Slots(topology.num_links())};
  const int32_t each = *chunks / trees;
  for (int32_t chunk = 0; chunk < each; ++chunk) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const auto which = static_cast<size_t>(chunk) % alternatives.size();
    for (int32_t t = 0; t < trees; ++t)
      pipeline.Run(alternatives[which][static_cast<size_t>(t)], t * each + chunk);
  }
  return classic::FinishSchedule(topology, collective, *chunks, std::move(pipeline.transfers),
                                 algorithm, options.seed);
}

}  // namespace tutti::baselines
