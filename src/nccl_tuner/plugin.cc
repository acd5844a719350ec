// The symbols that NCCL looks up.
//
// Environment TUTTI_NCCL_TABLE: path of the table (table.h).
// Errors      NCCL keeps its own choices wherever there is no table or a bad one, and its log says
//             file, line and reason. Init never fails: a communicator is not to be lost for a table.
// IMPORTANT   All ranks must have the same table, or they wait for each other for ever. What was
//             read is logged with a checksum of its bytes, which must be the same everywhere.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "nccl_abi.h"
#include "table.h"
#include "tutti/base/hash.h"

namespace tutti::nccl_tuner {
namespace {

constexpr const char* kName = "Tutti";
constexpr const char* kVariable = "TUTTI_NCCL_TABLE";

void Say(Logger logger, int level, const char* file, int line, const std::string& text) {
  if (logger != nullptr) logger(level, kLogTuning, file, line, "%s", text.c_str());
}

// At most one byte more than a table may have. False: not readable.
bool ReadFile(const char* path, std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), std::fclose);
  if (file == nullptr) return false;
  text.resize(kMaxTableBytes + 1);
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return std::ferror(file.get()) == 0;
}

uint64_t Checksum(const std::string& text) {
  Fnv1a sum;
  sum.AddBytes(text);
  return sum.value();
}

std::string Hexadecimal(uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(value >> shift) & 0xf];
  return text;
}

// nullptr: NCCL's own choices.
std::unique_ptr<Decisions> Load(size_t ranks, size_t nodes, Logger logger) {
  const char* path = std::getenv(kVariable);
  if (path == nullptr || *path == '\0') {
    Say(logger, kLogWarn, __FILE__, __LINE__,
        std::string(kName) + ": " + kVariable +
            " names no table; the choices of NCCL are not changed");
    return nullptr;
  }
  const std::string kept = "; the choices of NCCL are not changed";
  std::string text;
  if (!ReadFile(path, text)) {
    Say(logger, kLogWarn, path, 0,
        std::string(kName) + ": " + path + ": cannot be read (" + kVariable + ")" + kept);
    return nullptr;
  }
  const ReadTable table = ParseTable(text);
  if (table.bad_line != 0) {
    Say(logger, kLogWarn, path, table.bad_line,
        std::string(kName) + ": " + path + ":" + std::to_string(table.bad_line) + ": " +
            table.reason + kept);
    return nullptr;
  }
  auto decisions = std::make_unique<Decisions>(table.rows, ranks, nodes);
  Say(logger, kLogInfo, path, 0,
      std::string(kName) + ": " + path + ", checksum " + Hexadecimal(Checksum(text)) + ": " +
          std::to_string(table.rows.size()) + " rows, " + std::to_string(decisions->num_ranges()) +
          " ranges for " + std::to_string(ranks) + " ranks on " + std::to_string(nodes) + " nodes");
  return decisions;
}

int Init(size_t ranks, size_t nodes, Logger logger, void** context) {
  if (context == nullptr) return kSuccess;
  *context = nullptr;
  try {
    *context = Load(ranks, nodes, logger).release();
  } catch (...) {  // no memory: as without a table
    if (logger != nullptr)
      logger(kLogWarn, kLogTuning, __FILE__, __LINE__, "%s", "Tutti: no memory for the table");
  }
  return kSuccess;
}

extern "C" {

int InitV4(size_t ranks, size_t nodes, Logger logger, void** context) {
  return Init(ranks, nodes, logger, context);
}

int InitV5(void** context, uint64_t, size_t ranks, size_t nodes, Logger logger, void*, void*) {
  return Init(ranks, nodes, logger, context);
}

int Info(void* context, int function, size_t bytes, int, float** times, int algorithms,
         int protocols, int, int* channels) {
  if (context == nullptr || times == nullptr) return kSuccess;
  const Choice choice = static_cast<const Decisions*>(context)->Find(function, bytes);
  if (choice.algorithm < 0 || choice.algorithm >= algorithms) return kSuccess;
  float* const of_algorithm =
      reinterpret_cast<float*>(times) + ptrdiff_t{choice.algorithm} * protocols;
  int protocol = choice.protocol;
  if (protocol < 0)
    for (int p = 0; p < protocols; ++p)
      if (of_algorithm[p] >= 0 && (protocol < 0 || of_algorithm[p] < of_algorithm[protocol]))
        protocol = p;
  if (protocol < 0 || protocol >= protocols || of_algorithm[protocol] < 0) return kSuccess;
  of_algorithm[protocol] = 0;
  if (choice.channels > 0 && channels != nullptr) *channels = choice.channels;
  return kSuccess;
}

int Destroy(void* context) {
  delete static_cast<Decisions*>(context);
  return kSuccess;
}

}  // extern "C"
}  // namespace
}  // namespace tutti::nccl_tuner

#define TUTTI_EXPORT extern "C" __attribute__((visibility("default")))

TUTTI_EXPORT const tutti::nccl_tuner::TunerV4 ncclTunerPlugin_v4;
TUTTI_EXPORT const tutti::nccl_tuner::TunerV5 ncclTunerPlugin_v5;
TUTTI_EXPORT const tutti::nccl_tuner::TunerV6 ncclTunerPlugin_v6, ncclTunerPlugin_v7;

namespace {
using tutti::nccl_tuner::Destroy, tutti::nccl_tuner::Info, tutti::nccl_tuner::InitV4,
    tutti::nccl_tuner::InitV5, tutti::nccl_tuner::kName;
}

const tutti::nccl_tuner::TunerV4 ncclTunerPlugin_v4{kName, InitV4, Info, Destroy};
const tutti::nccl_tuner::TunerV5 ncclTunerPlugin_v5{kName, InitV5, Info, Destroy};
const tutti::nccl_tuner::TunerV6 ncclTunerPlugin_v6{kName, InitV5, Info, Destroy, nullptr};
const tutti::nccl_tuner::TunerV6 ncclTunerPlugin_v7{kName, InitV5, Info, Destroy, nullptr};
