// Which plan a call runs: of a schedule library, or the built-in default.
//
// Model       A library is a folder of schedule files, of which those for so many ranks count. Each
//             holds its network, and with it what it takes at any size: of those of a collective (and root) the one that takes least is
//             chosen, exactly; of equal ones the first by file name. Timed schedules are taken to
//             scale with their size. Plans are made on first use and kept.
//             Ranks of one process share what is read, proven and planned.
//             Choices depend on the files, the collective and the size only, so that ranks with
//             the same library agree.
// Complexity  Choosing: O(schedules of the collective).
// Errors      Load: those of the files, and a schedule that the verifier refuses; each names its file.
// Threads     A book: one. Several books, from any threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/lower/plan.h"
#include "tutti/sched/cost.h"
#include "tutti/store/store.h"

namespace tutti {

struct PlannedSchedule {
  std::string name;  // "bfb on complete(4)"
  Plan plan;
  uint64_t digest = 0;  // of the plan
};

class ScheduleBook {
 public:
  // `folder` empty: built-in schedules only.
  static Result<ScheduleBook> Load(const std::string& folder, int32_t num_ranks);

  // The same of files in memory: their names and contents.
  using NamedFile = std::pair<std::string, std::string>;
  static Result<ScheduleBook> Make(const std::vector<NamedFile>& files, int32_t num_ranks);

  // Hash of the files that count, so that ranks can compare their libraries.
  uint64_t digest() const { return digest_; }
  // A file has one of this collective and root.
  bool Holds(CollectiveKind kind, int32_t root) const;
  // The plan of a call over M bytes (docs/glossary.md); `one_host`: all ranks share memory. nullptr: no file has one and no default
  // exists (gather, scatter, all-to-all: direct messages). It lives as long as the book.
  Result<const PlannedSchedule*> Choose(CollectiveKind kind, int32_t root, int64_t size_bytes,
                                        bool one_host);
  // The same, if its plan is made already; nothing: Choose() has to make it.
  std::optional<const PlannedSchedule*> IfMade(CollectiveKind kind, int32_t root,
                                               int64_t size_bytes, bool one_host) const;

 private:
  // A file that is proven.
  struct Entry {
    std::string path;
    ScheduleFile file;
    CostCurve curve;
    uint64_t digest = 0;  // of its bytes
  };
  using SharedPlan = std::shared_ptr<const PlannedSchedule>;
  enum class Length : uint8_t { kShort, kLong };
  using DefaultKey = std::tuple<CollectiveKind, int32_t, Length>;

  static bool Is(const Entry& entry, CollectiveKind kind, int32_t root);
  explicit ScheduleBook(int32_t num_ranks) : num_ranks_(num_ranks) {}
  static Result<std::shared_ptr<const Entry>> Prove(const std::string& path,
                                                    const std::string& bytes, ScheduleFile file);
  // The schedule of a file in a folder: as long as another book of this process has it, it is not read again. Null: it
  // is not for so many ranks.
  static Result<std::shared_ptr<const Entry>> ReadOnce(const std::string& path, int32_t num_ranks);
  void Add(std::shared_ptr<const Entry> entry);
  // The fastest among the files; null: none has one.
  const Entry* BestEntry(CollectiveKind kind, int32_t root, int64_t size_bytes) const;
  static DefaultKey KeyOfDefault(CollectiveKind kind, int32_t root, int64_t size_bytes,
                                 bool one_host);
  Result<PlannedSchedule> MakeDefault(const DefaultKey& key) const;

  int32_t num_ranks_;
  uint64_t digest_ = 0;
  std::vector<std::shared_ptr<const Entry>> entries_;  // by file name
  std::map<const Entry*, SharedPlan> planned_;
  std::map<DefaultKey, SharedPlan> defaults_;
};

}  // namespace tutti
