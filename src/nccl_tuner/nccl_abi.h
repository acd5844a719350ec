// What NCCL and a tuner plug-in agree upon, versions 4 to 7 of the interface: the facts that this
// plug-in needs, in its own words.
//
// Model       NCCL looks up `ncclTunerPlugin_v7`, then `_v6`, ... and takes the first that is
//             there: a struct of a name and functions. A communicator has a context of its own,
//             made by init. Before each collective NCCL asks collective_info, which may write into
//             a table of predicted times, float[algorithms][protocols] in one piece although it is
//             declared as float**: the least time wins. A negative one stands for what is
//             impossible there, and stays as it is.
// Sizes       Those of nccl-tests: of all-gather and reduce-scatter the larger buffer.
// Errors      Every function returns 0 for success. Others make NCCL take its own choice.
// Reference   src/include/plugin/tuner/ of NCCL 2.32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::nccl_tuner {

inline constexpr int kSuccess = 0;

// Levels of the logger.
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogTuning = 0x40;

inline constexpr int kNumFunctions = 5;   // broadcast .. all-reduce, which have an algorithm
inline constexpr int kNumAlgorithms = 7;  // tree .. PAT
inline constexpr int kNumProtocols = 3;   // LL, LL128, Simple

extern "C" {

using Logger = void (*)(int level, unsigned long subsystem, const char* file, int line,
                        const char* format, ...);
using CollectiveInfo = int (*)(void* context, int function, size_t bytes, int operations,
                               float** times, int algorithms, int protocols, int registered,
                               int* channels);
using Finalize = int (*)(void* context);

struct TunerV4 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  CollectiveInfo collective_info;
  Finalize destroy;
};

// The last two arguments of init, NVLink domains and constants of NCCL's model that may be changed,
// are pointers to structs that this plug-in does not look into.
struct TunerV5 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger logger,
              void* domains, void* constants);
  CollectiveInfo collective_info;
  Finalize finalize;
};

// Version 7 has other constants and is else the same.
struct TunerV6 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger logger,
              void* domains, void* constants);
  CollectiveInfo collective_info;
  Finalize finalize;
  // nullptr: NCCL's own.
  int (*chunk_size)(void* context, int function, size_t bytes, int algorithm, int protocol,
                    int channels, size_t* chunk_bytes);
};

}  // extern "C"
}  // namespace tutti::nccl_tuner
