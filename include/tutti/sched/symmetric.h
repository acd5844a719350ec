// SymmetricSchedule: what the shard of one rank does, and a group of translations that tells what
// all others do. n ranks cost as much as one shard's transfers, not n times that.
//
// Model       Rank 0's shard 0 travels as the transfers of `root` say; the translation that takes
//             rank 0 to u takes them to those of shard u, with the same intervals, steps and
//             operations. All-gather, reduce-scatter and all-reduce over as many shards as ranks.
//             Link e carries in step t what the links of its class together carry for shard 0,
//             since each of them is taken to e by one translation (topo/translations.h).
// Invariants  (makers keep them; readers of files and the verifier check them)
//             Y1  `root` keeps S1 .. S4 of schedule.h as a step schedule, and all its shards are 0.
//             Y2  `generators` are those of a Translations of the topology.
// Complexity  24 bytes a transfer of one shard, 4 bytes per rank and generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/topo/translations.h"

namespace tutti {

struct SymmetricSchedule {
  Schedule root;  // its collective is that of all ranks
  std::vector<NodePermutation> generators;

  friend bool operator==(const SymmetricSchedule&, const SymmetricSchedule&) = default;
};

// The collectives that have a symmetric form.
bool HasSymmetricForm(const Collective& collective);

// How many transfers the whole schedule has.
int64_t CountTransfers(const SymmetricSchedule& schedule);

// The same loads with the link of each transfer replaced by the one of its class that leaves rank
// 0: AnalyticCost and AnalyticSeconds of the result are those of the whole schedule.
Schedule FoldOntoRank0(const Translations& translations, const SymmetricSchedule& schedule);

// The whole schedule, in order of steps, within a step of the root's transfers.
// kResourceExhausted: more than `transfers_limit`.
Result<Schedule> Expand(const Translations& translations, const Topology& topology,
                        const SymmetricSchedule& schedule, int64_t transfers_limit);

struct SymmetricFile {
  Topology topology;
  SymmetricSchedule schedule;
};

// Binary files only, of version 2 (docs/formats/schedule.md). The file holds the generators and the
// ports of rank 0, from which the network follows; `topology` has its links in canonical order
// (OrderLinks of topo/properties.h). Errors as in store.h.
Status WriteSymmetricFile(const std::string& path, const Topology& topology,
                          const Translations& translations, const SymmetricSchedule& schedule);
Result<SymmetricFile> ReadSymmetricFile(const std::string& path);
// The bytes of a file.
Result<std::string> SymmetricToBinary(const Topology& topology, const Translations& translations,
                                      const SymmetricSchedule& schedule);
Result<SymmetricFile> SymmetricFromBinary(std::span<const std::byte> bytes);

// ReadScheduleFile (store.h) reads such a file as the whole schedule, up to this many transfers.
inline constexpr int64_t kMaxExpandedTransfers = int64_t{1} << 26;

}  // namespace tutti
