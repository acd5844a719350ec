// [mccs] 6.2: what the service costs a collective, beside the same ranks without it.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mccs/local_daemons.h"
#include "mccs/mccs.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/coll/collective.h"
#include "tutti/service/paired_bench.h"

namespace tutti {
namespace mccs_latency {
namespace {

using namespace mccs;

struct Size {
  const char* name;
  int64_t bytes;
  // The paper's loss of bus bandwidth, %, of an all-reduce and an all-gather.
  std::array<const char*, 2> paper;
};
constexpr std::array<Size, 5> kSizes = {{{"8 B", 8, {"", ""}},
                                         {"64 KiB", 64 << 10, {"", ""}},
                                         {"512 KiB", 512 << 10, {"51", "63"}},
                                         {"1 MiB", 1 << 20, {"", ""}},
                                         {"8 MiB", 8 << 20, {"0.75", "9.7"}}}};
constexpr std::array<CollectiveKind, 2> kKinds = {CollectiveKind::kAllReduce,
                                                  CollectiveKind::kAllGather};
constexpr std::array<int32_t, 2> kRanks = {2, 4};

Result<ExperimentResult> RunLatency(const ExperimentOptions& options) {
  constexpr int32_t kBatches = 21;
  constexpr double kUs = 1e6;
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const Result<LocalDaemons> daemons = LocalDaemons::Start(1);
  if (!daemons) return tl::unexpected(daemons.error());
  std::vector<Size> sizes;
  std::vector<int64_t> bytes;
  for (size_t i = 0;
       i<kSizes.size(); i += options.step> 0 ? static_cast<size_t>(options.step) : 1) {
    sizes.push_back(kSizes[i]);
    bytes.push_back(kSizes[i].bytes);
  }
  ResultTable table{
      .title = "A collective under the service and in process",
      .label_name = "collective, ranks, size",
      .columns = {{.name = "service", .unit = "us", .digits = 1, .timed = true},
                  {.name = "in process", .unit = "us", .digits = 1, .timed = true},
                  {.name = "added", .unit = "us", .digits = 1, .timed = true},
                  {.name = "bus bandwidth lost", .unit = "%", .digits = 1, .timed = true},
                  {.name = "the paper's"}}};
  for (size_t k = 0; k < kKinds.size(); ++k)
    for (const int32_t ranks : kRanks) {
      if (!WithinSize(options, ranks)) continue;
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const Result<UniqueId> id = MakeUniqueId(daemons->socket(0));
      if (!id) return tl::unexpected(id.error());
      const Result<std::vector<service::PairedBenchRow>> rows =
          service::RunPairedBench({.socket = daemons->socket(0),
                                   .collective = kKinds[k],
                                   .sizes = bytes,
                                   .ranks = ranks,
                                   .here = ranks,
                                   .batches = kBatches,
                                   .id = *id});
      if (!rows) return tl::unexpected(rows.error());
      for (size_t i = 0; i < rows->size(); ++i) {
        const service::PairedBenchRow& row = (*rows)[i];
        const double lost = 100 * (1 - row.in_process_s / row.service_s);
        table.rows.push_back({fmt::format("{}, {}, {}", Name(kKinds[k]), ranks, sizes[i].name),
                              {Number(row.service_s * kUs), Number(row.in_process_s * kUs),
                               Number((row.service_s - row.in_process_s) * kUs), Number(lost),
                               Word(sizes[i].paper[k])}});
      }
    }
  ExperimentResult result;
  result.tables = {std::move(table)};
  result.notes = {
      fmt::format("Ranks are threads of one process on {} processors, float, in place; the service "
                  "is a daemon with a thread of its own beside them. Both ways run in batches that "
                  "take turns; medians of {} batches. Less than 0: the service is faster.",
                  std::thread::hardware_concurrency(), kBatches),
      "The paper adds 50 to 80 us to a collective; its figures for 512 KB and 8 MB stand beside "
      "ours, of GPUs and another way without the service."};
  return result;
}

}  // namespace
}  // namespace mccs_latency

Experiment MccsLatency() {
  return {"mccs-latency", "[mccs] 6.2", "what the service adds to a collective on one host",
          mccs_latency::RunLatency};
}

}  // namespace tutti
