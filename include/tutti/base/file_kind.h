// What a file holds, told by its contents: its name decides nothing.
//
// Model       Binary files start with kBinaryMagic and a version, JSON files have the key "format"
//             in their outermost object, texts and XML are told by how they begin. What is damaged
//             or nothing of Tutti's is kUnknown, or the kind whose reader says best what is wrong.
// Complexity  A few bytes; of JSON up to its key "format", which Tutti writes first.
// Errors      kIo: cannot be opened, with the path and the operating system's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/result.h"

namespace tutti {

enum class FileKind : uint8_t {
  kUnknown,
  kTopology,
  kSchedule,
  kSymmetricSchedule,
  kRouting,
  kFlow,
  kMscclXml,
  kMscclppPlan,  // JSON without "format": told by its key "gpus"
  kPlanFile,     // `lower --to plan-file`
  kPlan,         // text of `lower --to plan`
  kRoutes,       // text of `lower --to routes-per-rank` and `route-tables`
  kWorkload,     // of training
  kDatabase,     // SQLite
};

// As PNG's: catches files that went through a text conversion or lost their eighth bit. Behind it
// stands the version, 32 bits, low byte first: 1 a schedule, 2 a symmetric one, 3 a routing.
inline constexpr std::string_view kBinaryMagic = "\x89TTS\r\n\x1a\n";

inline constexpr std::string_view kPlanFileMagic = "\x89TTP\r\n\x1a\n";

// The value of "format" in JSON.
inline constexpr std::string_view kTopologyFormat = "tutti-topology";
inline constexpr std::string_view kScheduleFormat = "tutti-schedule";
inline constexpr std::string_view kSymmetricScheduleFormat = "tutti-symmetric-schedule";
inline constexpr std::string_view kRoutingFormat = "tutti-routing";
inline constexpr std::string_view kFlowFormat = "tutti-flow";

// "a routing"; "nothing that Tutti knows".
std::string_view Describe(FileKind kind);

// A pipe or a device is kUnknown: looking would take away what it holds.
Result<FileKind> KindOfFile(const std::string& path);
FileKind KindOfContents(std::string_view contents);

// kInvalidArgument: what the file at `path` holds, what was wanted instead, and which commands take
// it.
Error WrongKind(const std::string& path, FileKind found, FileKind wanted);

}  // namespace tutti
