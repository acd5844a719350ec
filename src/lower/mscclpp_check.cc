// Judges MSCCL++ execution plans.
#include <algorithm>

#include "mscclpp_file.h"
#include "tutti/base/cancel.h"
#include "tutti/lower/mscclpp.h"

namespace tutti {

Result<MscclppVerdict> CheckMscclpp(std::string_view json) {
  MscclppVerdict verdict;
  const Result<lower::PpFile> file = lower::ReadMscclppPlan(json, verdict.faults);
  if (!file) return tl::unexpected(file.error());
  verdict.name = file->name;
  verdict.collective = file->collective;
  verdict.ranks = static_cast<int64_t>(file->ranks.size());
  for (const lower::PpRank& rank : file->ranks)
    verdict.thread_blocks += static_cast<int64_t>(rank.blocks.size());
  verdict.operations = file->num_operations;
  if (verdict.faults.empty())
    verdict.too_large = lower::RunMscclppPlan(*file, verdict.faults).too_large;
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return verdict;
}

}  // namespace tutti
