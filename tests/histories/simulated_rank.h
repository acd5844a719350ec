// SimulatedRank: a rank of a tenant, which calls its communicator's program and knows what every element must be; its daemon
// calls it back, as it would a process's session.
//
// Checked     H1 and H2 of history.h, in what its daemon tells it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "service_communicator.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/communicator.h"

namespace tutti::histories {

class World;

// One operation of a program, as all ranks are to call it.
struct Planned {
  bool is_exchange = false;  // of blocks round the ranks
  int32_t exchangers =
      0;  // the first so many, and no other rank calls it; 0: all, as in all-to-all-v
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t count = 1;
  int32_t root = 0;
};

class SimulatedRank;

// A communicator, over all daemons.
struct Group {
  std::string tenant;
  UniqueId id;
  std::string label;
  int32_t number = 0, num_ranks = 0, root_host = 0;
  std::vector<Planned> program;
  std::vector<SimulatedRank*> ranks;  // those that were made, by rank; null: not yet
  std::vector<std::optional<uint32_t>>
      epochs;  // of each operation, once some rank has completed it
  bool shrinks = false;
  bool is_touched = false;  // by what died
  bool came_of_regrouping = false;
  int32_t grows_by = 0;
};

class SimulatedRank final : public service::RankOwner {
 public:
  enum class Stage : uint8_t { kToJoin, kJoining, kRuns, kComplete, kFailed, kOver };

  SimulatedRank(World& world, Group& group, int32_t rank, int32_t host)
      : world_(world), group_(group), rank_(rank), host_(host) {}

  void Join();
  void Issue();
  void Leave(const std::string& why);
  // Its process, or its daemon, has ended; the daemon hears of it where it is there.
  void Die(bool daemon_hears);
  void AskToRegroup(const RegroupAsk& ask);

  void Joined(uint32_t line) override;
  void JoinRefused(uint32_t line, const Error& why) override;
  void Completed(uint32_t line, uint64_t completed, uint32_t epoch) override;
  void Failed(uint32_t line, const Error& why) override;

  Group& group() const { return group_; }
  int32_t rank() const { return rank_; }
  int32_t host() const { return host_; }
  Stage stage() const { return stage_; }
  bool has_died() const { return has_died_; }
  bool has_completed() const { return completed_ == Program().size(); }
  bool has_failed() const { return failed_; }
  std::string Name() const {
    return fmt::format("{} ({} of {} on H{})", rank_, group_.label, group_.tenant, host_);
  }
  std::string Where() const {
    constexpr std::array<const char*, 6> kNames = {"to join",  "joining", "running",
                                                   "complete", "failed",  "over"};
    return fmt::format("rank {}: {}, {} of {} operations completed, {} issued", Name(),
                       kNames[static_cast<size_t>(stage_)], completed_, Program().size(), issued_);
  }

  uint64_t leaves_after = std::numeric_limits<uint64_t>::max();  // operations that it takes part in
  uint64_t calls_wrongly = std::numeric_limits<uint64_t>::max();  // in the group's program
  uint64_t depth = 1;  // operations issued and not completed
  int64_t pause_ns = 0;
  // Of what it waits for since then: to be told of a death within a second.
  int64_t called_ns = 0;

 private:
  struct Buffers {
    std::vector<int32_t> input, output;
  };
  int32_t Value(uint64_t operation, int32_t of, int64_t index) const {
    constexpr int64_t kModulus = 1'000;
    return static_cast<int32_t>(
        (group_.number * 7 + static_cast<int64_t>(operation) * 31 + of * int64_t{17} + index * 3) %
        kModulus);
  }
  // What it takes part in of its group's program, by number there.
  const std::vector<uint64_t>& Program() const;
  uint64_t NumToComplete() const { return std::min<uint64_t>(Program().size(), leaves_after); }
  int32_t NumExchangers(uint64_t operation) const {
    const int32_t some = group_.program[operation].exchangers;
    return some > 0 ? some : group_.num_ranks;
  }
  service::Command MakeCommand(uint64_t operation);
  std::string WhatIsWrong(uint64_t nth) const;
  void Later(int64_t most_ns, void (SimulatedRank::*what)());
  void GoOn();
  void End(const Error& why);
  void LeaveWell() { Leave("it left with operations unfinished"); }
  void Shrink() { AskToRegroup({}); }

  World& world_;
  Group& group_;
  int32_t rank_, host_;
  Stage stage_ = Stage::kToJoin;
  bool has_died_ = false, failed_ = false, issuing_ = false;
  service::ServiceCommunicator* communicator_ = nullptr;
  uint64_t issued_ = 0, completed_ = 0;
  uint32_t epoch_ = 0;
  mutable std::vector<uint64_t> program_;
  std::deque<Buffers> buffers_;  // others may read from them until all is over
};

}  // namespace tutti::histories
