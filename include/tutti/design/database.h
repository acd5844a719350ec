// Frontiers of many sizes in an SQLite file, made once and asked often.
//
// Model       A file covers, for each of its degrees, all sizes up to a limit: the frontiers of
//             all-gather, reduce-scatter and all-reduce among all networks, and the one among
//             bidirectional networks. It carries the version of its tables and a key of the bases
//             and rules that it was made from.
// Invariants  Written to a temporary name and renamed: readers see the old file or the new one, and
//             keep what they have opened. Several may read and make one at a time.
// Errors      kNotFound: there is no file. kInvalidArgument: what is there was not made here (by
//             SQLite's header and application id); it is neither read nor replaced. kCorrupt: it is
//             ours and damaged (each frontier has a checksum), or empty. kIo: the operating system
//             refuses. A file of other bases or another version is opened but not `current`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/design/finder.h"

namespace tutti {

struct DatabaseCoverage {
  std::vector<int32_t> degrees;
  int32_t max_ranks = 0;
};

class DesignDatabase {
 public:
  static Result<std::unique_ptr<DesignDatabase>> Open(const std::string& path);
  // Searches all that `coverage` says (FindAllFrontiers) and writes it to `path`, whose folder is
  // made if it is missing. kInvalidArgument: something that is not ours is there, and stays.
  static Status Make(const std::string& path, const DatabaseCoverage& coverage);
  virtual ~DesignDatabase() = default;

  // Made by this program from the bases and rules it has now.
  virtual bool current() const = 0;
  virtual const DatabaseCoverage& coverage() const = 0;
  // What FindFrontier says; nullopt where the file does not cover the question. An empty frontier
  // is one: no construction reaches the size. kCorrupt: damaged there.
  virtual Result<std::optional<std::vector<Design>>> Find(int32_t ranks, int32_t degree,
                                                          bool bidirectional_only,
                                                          CollectiveKind collective) = 0;
};

}  // namespace tutti
