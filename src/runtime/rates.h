// What nccl-tests prints of a time.
#pragma once

#include "tutti/coll/collective.h"
#include "tutti/runtime/executor.h"

namespace tutti {

// Fills count, algbw and busbw from size_bytes and time_s.
inline void FillRates(const Collective& collective, int64_t element_bytes, RunReport& report) {
  // It counts the elements of one shard where ranks hold different ones.
  const bool whole = collective.one_shard_each() || collective.kind() == CollectiveKind::kAllReduce;
  report.count = report.size_bytes / element_bytes / (whole ? 1 : collective.largest_group());
  if (report.time_s > 0) report.algbw = static_cast<double>(report.size_bytes) / report.time_s;
  report.busbw = report.algbw * collective.BusFactor().ToDouble();
}

}  // namespace tutti
