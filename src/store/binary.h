// The fixed parts of the binary formats of schedules, versions 1 and 2, and of routings, version 3.
// Layout: docs/formats/schedule.md, docs/formats/routing.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "column.h"
#include "tutti/base/file_kind.h"
#include "tutti/base/result.h"
#include "tutti/store/store.h"

namespace tutti::binary {

inline constexpr std::string_view kMagic = kBinaryMagic;
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kSymmetricVersion = 2;       // sched/symmetric.h
inline constexpr uint32_t kRoutingVersion = 3;         // sched/routing_store.h
inline constexpr uint32_t kDemandTag = 0x444e4d44;     // "DMND"
inline constexpr uint32_t kPathTag = 0x48544150;       // "PATH"
inline constexpr uint32_t kHopTag = 0x53504f48;        // "HOPS"
inline constexpr uint32_t kBlockTag = 0x4b434c42;      // "BLCK"
inline constexpr uint32_t kGeneratorTag = 0x524e4547;  // "GENR"
inline constexpr uint32_t kTrailerTag = 0x444e4554;    // "TEND"
inline constexpr size_t kPreambleBytes = 40;           // magic .. checksum of the preamble
inline constexpr size_t kBlockHeaderBytes = 32;
inline constexpr size_t kTrailerBytes = 40;
inline constexpr size_t kChecksumBytes = 8;
inline constexpr uint32_t kBlockTransfers = 1u << 16;
inline constexpr size_t kMaxBlocksAtOnce = 32;  // in memory, on machines of many cores
inline constexpr uint64_t kColumns = 6;
inline constexpr uint64_t kMaxPayloadBytes = kColumns * MaxColumnBytes(kBlockTransfers);
// A header of more text than this is refused: a topology of ten million links has less.
inline constexpr uint64_t kMaxHeaderTextBytes = uint64_t{1} << 31;

// Where bytes of a file come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t size() const = 0;
  // Exactly `count` bytes from `offset`; fewer is an error.
  virtual Status ReadAt(uint64_t offset, size_t count, std::string& out) = 0;
};

// `source` starts with kMagic. Errors do not name the file.
Result<std::unique_ptr<ScheduleReader>> OpenReader(std::unique_ptr<Source> source);

}  // namespace tutti::binary
