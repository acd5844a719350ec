// Schedule: who sends which bytes over which link, when.
//
// Model       A list of transfers. Transfer (shard, [begin, end), link, op, time): the tail of the
//             link sends its current value of that interval of the shard to the head, which copies
//             or reduces it. *Step schedules* have global steps 0, 1, ...: what is sent in step t
//             is the state after step t - 1, and all transfers of one step over one link are one
//             message. *Timed schedules* give each transfer a start; it was made for one size, one
//             link model and one set of link parameters.
// Units       Intervals are in 1 / units_per_shard of a shard: exact rationals with one common
//             denominator. Times are whole picoseconds; a transfer of m bytes takes
//             alpha + BandwidthPs(m, bandwidth) to arrive, under both link models.
// Invariants  (makers keep them; readers of files and the verifier check them)
//             S1  units_per_shard >= 1, num_steps >= 0.
//             S2  0 <= shard < collective.num_shards(), 0 <= begin < end <= units_per_shard,
//                 0 <= link < num_links of the topology, 0 <= step < num_steps.
//             S3  Transfers ascend in step (step schedules) or in start_ps (timed schedules).
//             S4  start_ps is empty for step schedules; as long as transfers, and every step 0
//                 and num_steps 0, for timed ones.
// Complexity  24 bytes a transfer, 32 timed.
// Reference   [direct-connect] 3.1: the tuple ((v, C), (u, w), t) is (shard v, chunk C, link u ->
//             w, step t - 1). [tacos] section IV for timed schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

// Held: a message holds its link for alpha + m/bandwidth and has arrived when
// it lets go. Pipelined: it holds the link for m/bandwidth and arrives alpha later.
enum class LinkModel : uint8_t { kHeld, kPipelined };

enum class ScheduleKind : uint8_t { kStep, kTimed };

enum class TransferOp : uint8_t { kCopy, kReduce };

struct Transfer {
  ShardId shard;
  LinkId link;
  int32_t begin = 0, end = 0;  // units
  int32_t step = 0;
  TransferOp op = TransferOp::kCopy;

  int32_t units() const { return end - begin; }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Schedule {
  Collective collective;
  ScheduleKind kind = ScheduleKind::kStep;
  int32_t units_per_shard = 1;
  int32_t num_steps = 0;
  std::vector<Transfer> transfers{};

  // Timed schedules only.
  std::vector<int64_t> start_ps{};
  int64_t size_bytes = 0;  // [M] it was made for
  LinkModel link_model = LinkModel::kHeld;

  // Where it came from.
  uint64_t topology_fingerprint = 0;
  std::string algorithm{};
  uint64_t seed = 0;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Stable counting sort by step, O(transfers + steps): makes S3 true for a step schedule.
void SortBySteps(Schedule& schedule);

// ceil(bytes * 10^12 / bandwidth), exactly; INT64_MAX when that does not fit. bytes >= 0.
int64_t BandwidthPs(const Rational& bytes, int64_t bandwidth);

// The same for the bytes of one transfer of a timed schedule that keeps S2: without fractions
// where 128 bits suffice, for loops over millions of transfers.
int64_t TransferPs(const Schedule& schedule, const Transfer& transfer, int64_t bandwidth);

}  // namespace tutti
