// TuningDatabase: what is remembered of a cluster between runs: its calibrated cost model and the
// measured best algorithm for a number of ranks, ranks per node and size class. A small text file.
//
// Format      The first line is "tutti-mpi 1"; then, in any order, one record per line:
//               model LIBRARY inside=LATENCY,FLOW,NODE between=LATENCY,FLOW,NODE send=S receive=S
//                 copy=S,BYTE eager=LONGEST,BYTE (in one line); after the figures of a path may
//                 stand ",assumed" or ",crowded" (Origin)
//               best LIBRARY ranks=P per-node=Q block=BYTES algorithm=NAME seconds=S own=S
//             Blank lines and lines that begin with # are skipped. LIBRARY is openmpi, mpich or
//             smpi; `block` is a power of two, the upper end of the class of mean block sizes
//             (block/2, block]; `own` is what the native algorithm took beside it. A model at most
//             once per library, a best at most once for (library, ranks, per-node, block).
// Units       Seconds, and seconds per byte.
// Invariants  (numbered in the tests)
//               M1  Parse(Format(database)) == database, and Format sorts, so that equal databases
//                   are equal bytes
//               M2  a file is the old one or the new one at any moment; of two writers none loses
//                   its records
// Errors      kCorrupt with the line and what is accepted there; kIo with the path.
// Threads     A TuningDatabase is a value; UpdateTuningDatabase may run in any number of processes
//             at once.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/base/result.h"
#include "tutti/tune/cost_model.h"

namespace tutti::tune {

// k: mean blocks of more than 2^(k-1), at most 2^k bytes; 0: at most one byte.
int SizeClassOf(double mean_bytes);
inline constexpr int kMaxSizeClass = 40;

struct Situation {
  Library library = Library::kOpenMpi;
  int ranks = 1;
  int largest_node = 1;
  int size_class = 0;

  friend auto operator<=>(const Situation&, const Situation&) = default;
};

struct Measured {
  Algorithm algorithm;  // never auto
  double seconds = 0;
  double native_seconds = 0;

  friend bool operator==(const Measured&, const Measured&) = default;
};

struct TuningDatabase {
  std::map<Library, CostModel> models;
  std::map<Situation, Measured> best;

  // Records of `newer` take the place of ours.
  void Merge(const TuningDatabase& newer);

  friend bool operator==(const TuningDatabase&, const TuningDatabase&) = default;
};

Result<TuningDatabase> ParseTuningDatabase(std::string_view text);
std::string FormatTuningDatabase(const TuningDatabase& database);

// Where the file lies, given the environment's TUTTI_MPI_FILE, XDG_CONFIG_HOME and HOME (null where
// unset): the first; tutti/mpi in the second; .config/tutti/mpi in the third; "" without any.
std::string TuningDatabasePath(const char* chosen, const char* config_home, const char* home);

// nullopt where there is no such file; an empty one remembers nothing. kInvalidArgument: something
// else than a regular file.
Result<std::optional<TuningDatabase>> ReadTuningDatabase(const std::string& path);

// Merges `newer` into the file under a lock (PATH.lock) and replaces it; makes the file, and the
// folder it lies in, where they are not there. A file that cannot be read is left alone.
Status UpdateTuningDatabase(const std::string& path, const TuningDatabase& newer);

}  // namespace tutti::tune
