// An MSCCL++ execution plan as read: references resolved to ranks, buffers and channels of a rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/plan.h"

namespace tutti::lower {

// Limits of the runtime.
inline constexpr size_t kPpMaxOperations = 64, kPpMaxChannels = 16, kPpMaxChannelsOfOperation = 8,
                        kPpMaxLocalBuffers = 2;
inline constexpr int64_t kPpMaxBarriers = 16, kPpMaxSemaphores = 16;

enum class PpChannelType : uint8_t { kMemory, kPort, kSwitch, kNone };

// How an operation treats its buffers, of which the table in mscclpp_reader.cc has one row a name.
enum class PpKind : uint8_t {
  kNop,
  kBarrier,
  kSignal,
  kWait,
  kFlush,
  kAcquire,
  kRelease,
  kPipeline,
  kMove,    // dst[i] = src[i]
  kReduce,  // every dst = the reduction of all src
};

struct PpOperationName {
  std::string_view name;
  PpKind kind;
  bool relaxed = false, signals = false, flushes = false;
  // Where each list of references points: 'l' local, 'r' remote, 'p' packets in local scratch, 'P'
  // packets in remote scratch, 'm' multicast; the last letter stands for all that follow. Empty:
  // the list must be empty.
  std::string_view src = {}, dst = {};
  bool single = false;  // one source and one destination only
};

struct PpReference {
  char role = 'l';
  std::vector<int32_t> ranks;  // one, or the group of a multicast
  Buffer buffer = Buffer::kInput;
  int64_t index = 0, size = 0;  // chunks
};

struct PpOperation {
  const PpOperationName* name = nullptr;
  PpChannelType type = PpChannelType::kNone;
  std::vector<int32_t> channels;  // numbers at the rank
  std::vector<PpReference> src, dst;
  int64_t slice = 0, slices = 1;
  int64_t barrier = -1, barrier_blocks = 0;
  std::vector<int32_t> semaphores;
  int64_t pipeline_chunks = 0;
  std::vector<PpOperation> inner;
};

struct PpBlock {
  std::vector<PpOperation> operations;
};

struct PpRank {
  std::array<int64_t, 3> chunks{};            // of input, output, scratch
  std::array<std::vector<int32_t>, 2> peers;  // of memory and port channels, by number
  std::vector<int64_t> semaphores;            // initial values
  std::vector<PpBlock> blocks;
};

struct PpFile {
  std::string name, collective, protocol;
  bool in_place = false;
  std::vector<PpRank> ranks;
  int64_t num_operations = 0;  // those within pipelines too
};

// "gpu 0 tb 1 op 3".
std::string PpWhere(size_t rank, size_t block, size_t operation);

// What its runtime would refuse goes to `faults`. Errors: no JSON (kCorrupt), no plan, too large.
Result<PpFile> ReadMscclppPlan(std::string_view json, std::vector<PlanFault>& faults);

inline constexpr int64_t kPpPiecesOfChunk = 2;  // that a pipeline moves one by one, here
// What whoever lowers a schedule can do about a limit.
inline constexpr const char* kFewerChunks =
    "a schedule of fewer chunks may fit (synth --chunks N, or --trees N with forest)";

// What a plan turned out to do: how its chunks are cut, and the root where there is one.
struct PpMeaning {
  int64_t cells_per_chunk = 1, chunks_per_slot = 1;
  int32_t root = 0;
};
struct PpOutcome {
  std::optional<PpMeaning> meaning;  // nothing where it cannot be run
  bool too_large = false;            // to judge, as the last fault says
};
// Runs a plan in which ReadMscclppPlan found no fault.
PpOutcome RunMscclppPlan(const PpFile& file, std::vector<PlanFault>& faults);

}  // namespace tutti::lower
