// An MSCCL algorithm file as data, what each reader accepts, and reading and writing it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/lower/msccl_xml.h"

namespace tutti::lower {

// What a step does; kMscclOps says what each needs.
struct MscclOp {
  std::string_view name;
  bool receives, sends, reads, writes, reads_dst;
};
inline constexpr std::array<MscclOp, 9> kMscclOps{{
    {"s", false, true, true, false, false},
    {"r", true, false, false, true, false},
    {"rcs", true, true, false, true, false},
    {"rrs", true, true, true, false, false},
    {"rrc", true, false, true, true, false},
    {"rrcs", true, true, true, true, false},
    {"cpy", false, false, true, true, false},
    {"re", false, false, true, true, true},
    {"nop", false, false, false, false, false},
}};
inline constexpr size_t kMscclReduce = 7, kMscclNop = 8;  // indices into it

struct MscclStep {
  size_t op = kMscclNop;
  Operand src{Buffer::kInput, -1}, dst{Buffer::kOutput, -1};  // in chunks; -1: none
  int64_t cnt = 0;
  int64_t depid = -1, deps = -1;
  bool hasdep = false;
};

struct MscclThreadBlock {
  int64_t send = -1, recv = -1, chan = 0;
  std::vector<MscclStep> steps;
};

struct MscclGpu {
  std::array<int64_t, 3> chunks{};  // i, o, s
  std::vector<MscclThreadBlock> tbs;
};

struct MscclFile {
  std::string name, proto, coll;
  int64_t nchannels = 1, nchunksperloop = 1;
  int64_t min_bytes = 0, max_bytes = 0;
  bool in_place = false, out_of_place = false;
  std::vector<MscclGpu> gpus;
};

// What a reader accepts; docs/formats/msccl-xml.md has the table.
struct MscclReader {
  std::string_view name;
  int64_t max_channels, max_steps, max_tbs;
  int64_t max_depid;
  bool reads_outofplace;  // outofplace, minBytes, maxBytes required; the file begins with <algo
  std::string_view reduce_scatter;
  bool gathers;  // knows gather and scatter
};
const MscclReader& ReaderOf(MscclDialect dialect);
// The reader's word for a collective; empty where it has none.
std::string_view CollOf(const MscclReader& reader, CollectiveKind kind);

inline constexpr int64_t kMscclMaxCount = 71;  // chunks per step
inline constexpr int64_t kMscclMaxOffset = 32767;
inline constexpr int64_t kMscclMaxNodes = 4096;  // a gpu keeps
inline constexpr int64_t kMscclMaxPeers = 32;    // sends, and receives, of a gpu a channel
inline constexpr int64_t kMscclMaxChildren = 1024;
inline constexpr int32_t kMscclQueue = 2;  // messages in flight with protocol Simple

enum class MscclLimit {
  kChannels,
  kSteps,
  kThreadBlocks,
  kDependency,
  kPeers,
  kNodes,
  kOffset,
  kCount
};
struct MscclExcess {
  MscclLimit limit;
  std::string message;
};
// Every limit of the reader that the file exceeds.
std::vector<MscclExcess> FindExcess(const MscclFile& file, const MscclReader& reader);

// What a file says that it does: the collective and its root, and how its buffers are cut.
struct MscclMeaning {
  Collective collective;
  int64_t chunks_per_slot = 1;
};
// Judges a file that was read without faults; nothing where its collective is not defined.
std::optional<MscclMeaning> JudgeMsccl(const MscclFile& file, const MscclReader& reader,
                                       std::vector<PlanFault>& faults);

std::string WriteMsccl(const MscclFile& file);
// Faults of format go to `faults`; the file is whole when there are none. kCorrupt: not XML.
Result<MscclFile> ReadMsccl(std::string_view xml, const MscclReader& reader,
                            std::vector<PlanFault>& faults);

}  // namespace tutti::lower
