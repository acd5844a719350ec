// PairedBench: how long a collective takes under the service, and between the same ranks without it.
//
// Model       The ranks are threads of this process. Both ways run in batches of about 50 ms that take turns, so that
//             what else the machine does meets both; the median batch counts. Buffers are memory that the service
//             sees: nothing is copied to and fro.
// Units       M in bytes: the whole buffer of an all-reduce, the output of an all-gather; seconds of one collective.
// Effects     Sets TUTTI_SERVICE, by which memory is asked of the service.
// Errors      kInvalidArgument: another collective; those of joining and of a collective.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/communicator.h"

namespace tutti::service {

struct PairedBenchOptions {
  std::string socket;                                      // of the daemon for tenants
  CollectiveKind collective = CollectiveKind::kAllReduce;  // or kAllGather
  std::vector<int64_t> sizes;
  int32_t ranks = 2;
  int32_t first = 0, here = 2;  // ranks of this process: `first` to first + here - 1
  int32_t batches = 11;
  bool alone = false;  // only under the service; needed where ranks are elsewhere, too
  UniqueId id = {};    // of the communicator under the service
};

// Less than 0: not measured.
struct PairedBenchRow {
  int64_t bytes = 0;  // whole elements of every rank
  double service_s = -1, in_process_s = -1;
};

// One row a size, as the first rank here saw them.
Result<std::vector<PairedBenchRow>> RunPairedBench(const PairedBenchOptions& options);

}  // namespace tutti::service
