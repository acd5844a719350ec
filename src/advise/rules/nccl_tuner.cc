// --to nccl-tuner: the table that our plug-in for NCCL reads (src/nccl_tuner/table.h).
#include <fmt/format.h>

#include "rule_formats.h"

namespace tutti::rules {
namespace {

std::string_view NcclName(CollectiveKind kind) {
  if (kind == CollectiveKind::kAllReduce) return "allreduce";
  return kind == CollectiveKind::kAllGather ? "allgather" : "reducescatter";
}

Result<std::string> WriteNcclTuner(const RuleFormat& format,
                                   const std::vector<CollectiveRules>& rules, std::string_view) {
  std::string text =
      "tutti-nccl-table 1\n# collective ranks nodes from to algorithm protocol channels\n";
  size_t rows = 0;
  for (const CollectiveRules& one : rules)
    for (size_t i = 0; i < one.sizes.size(); ++i, ++rows)
      text += fmt::format(
          "{} {} {} {} {} {} * *\n", NcclName(one.kind), one.ranks,
          one.nodes == 0 ? "*" : std::to_string(one.nodes), one.sizes[i].from_bytes,
          i + 1 < one.sizes.size() ? std::to_string(one.sizes[i + 1].from_bytes - 1) : "*",
          format.Find(one.kind, one.sizes[i].ours)->theirs);
  constexpr size_t kMaxRows = 4096;  // that the plug-in takes
  if (rows > kMaxRows)
    return InvalidArgument(
        fmt::format("{} rows, but a table for NCCL has at most {}", rows, kMaxRows));
  return text + "end\n";
}

}  // namespace

RuleFormat NcclTunerFormat() {
  using enum CollectiveKind;
  return {.name = "nccl-tuner",
          .description = "a table for Tutti's tuner plug-in, which NCCL loads",
          .extension = ".txt",
          .algorithms = {{kAllReduce, "dbt", "tree"},
                         {kAllReduce, "ring", "ring"},
                         {kAllGather, "ring", "ring"},
                         {kAllGather, "bruck", "pat"},
                         {kReduceScatter, "ring", "ring"},
                         {kReduceScatter, "bruck", "pat"}},
          .write = WriteNcclTuner};
}

}  // namespace tutti::rules
