// World: hosts, their daemons, ranks and controllers of one history: history.h says what happens there.
//
// Files       world.cc: hosts and their daemons, and the history itself; groups.cc: communicators and what they run; faults.cc:
//             what is lost, stands still or dies, and the rules that are broken on purpose; changes.cc: changes of strategy that
//             an operator asks for; controllers.cc: those of a controller; checks.cc: whether what was promised was kept.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "barrier.h"
#include "core.h"
#include "history.h"
#include "simulated_kernel.h"
#include "simulated_rank.h"
#include "tutti/base/hash.h"
#include "tutti/base/random.h"

namespace tutti::histories {

using Core = service::Daemon::Core;
using Json = nlohmann::json;
using service::BarrierEvent;
using service::BarrierPhase;
using service::BarrierState;
using service::BarrierStep;

inline constexpr uint16_t kControlPort = 7'600;
inline constexpr int32_t kNics = 3;
inline constexpr int64_t kUs = 1'000;

enum class Death : uint8_t {
  kNone,
  kRank,
  kDaemon,
  kDaemonThatComesAgain,
  kHost,
  kEarlyLeave,
  kWrongCall,
};

class World {
 public:
  explicit World(const HistoryOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  HistoryOutcome Run();

  SimulatedKernel& kernel() { return *kernel_; }
  uint64_t Draw(uint64_t below) { return random_.Below(below); }
  bool Chance(uint64_t of_hundred) { return Draw(100) < of_hundred; }
  int64_t DrawNs(int64_t below) { return static_cast<int64_t>(Draw(static_cast<uint64_t>(below))); }
  // The daemon of that host, which the calls that follow are made in; null: there is none, or it stands still (then `again` is
  // called when it goes on).
  Core* Enter(int32_t host, const std::function<void()>& again);
  void Wake(int32_t host);
  void Break(const std::string& what) {
    if (outcome_.broken.empty()) outcome_.broken = fmt::format("at {:.3f} ms: {}", Ms(), what);
  }
  template <class... Args>
  void Note(fmt::format_string<Args...> text, Args&&... args) {
    const bool prints = options_.prints;
    const std::string line = fmt::format(text, std::forward<Args>(args)...);
    digest_.AddWord(kernel_->now_ns());
    for (const char c : line) digest_.AddWord(c);
    if (prints) fmt::print("{:10.3f} {}\n", Ms(), line);
  }
  HistoryOutcome& outcome() { return outcome_; }
  // Whether what a rank is told says what has died.
  void CheckCulprit(const SimulatedRank& rank, const std::string& why);
  void RankIsOver() { --active_; }
  void Regrouped(SimulatedRank& rank, const Result<tutti::Regrouped>& become, bool grows);
  bool dies() const { return death_ != Death::kNone; }
  BarrierStep OnBarrier(const BarrierState& state, const BarrierEvent& event);

 private:
  struct Host {
    std::unique_ptr<Core> core;
    int64_t step_ns = 0;  // 0: none is planned
    int64_t stands_still_until_ns = 0;
    int64_t news_ns = 0;  // the last
    size_t descriptors = 0;
    int32_t life = 0;
  };
  struct Change {
    int32_t host = 0, life = 0;
    bool is_answered = false;
  };
  class Link;

  double Ms() const {
    return static_cast<double>(kernel_->now_ns() - SimulatedKernel::kStartNs) * 1e-6;
  }
  int64_t After(int64_t ns) const { return kernel_->now_ns() + ns; }
  static std::string Token(const std::string& tenant) { return "token of " + tenant; }
  void StartDaemon(int32_t host);
  void EndDaemon(int32_t host, bool silently);
  void ScheduleStep(int32_t host, int64_t at_ns);
  void Step(int32_t host);
  Group& AddGroup(const std::string& tenant, const UniqueId& id, int32_t num_ranks);
  SimulatedRank& AddRank(Group& group, int32_t rank, int32_t host, int64_t joins_ns);
  void MakeGroup(const std::string& tenant);
  std::vector<Planned> DrawProgram(int32_t num_ranks, uint64_t most);
  void PlanFaults();
  void PlanRingFaults();
  void PlanDeath();
  void LetDie();
  void PlanChanges();
  void Reconfigure(Group& group);
  Json DrawStrategy(const Group& group, bool& is_valid);
  void PlanControllers();
  void RunController(int32_t asks, uint64_t again);
  void NoteState();
  // What was promised and is not so when all ranks are over.
  void CheckEnd();
  // What some daemon still has that it did not begin with; empty: nothing.
  std::string WhatIsLeft();
  void RunUntil(int64_t ns);
  void Settle();
  void BreakARule();

  HistoryOptions options_;
  Random random_;
  std::unique_ptr<SimulatedKernel> kernel_;
  NetworkOptions network_;
  std::vector<Host> hosts_;
  std::deque<Group> groups_;
  std::deque<SimulatedRank> ranks_;
  std::map<std::string, Group*> regrouped_;  // by unique id
  std::deque<Change> changes_;
  int64_t active_ = 0;   // ranks that are not over
  int64_t pending_ = 0;  // what others still have to do
  bool by_controller_ = false, controller_runs_ = false;
  // What dies, and when
  Death death_ = Death::kNone;
  SimulatedRank* victim_ = nullptr;
  int32_t victim_host_ = -1;
  std::optional<BarrierPhase> in_phase_;  // kFailed: draining
  uint64_t times_in_phase_ = 0;
  int64_t died_ns_ = 0;
  bool noisy_ = false;  // ways are lost, daemons stand still: nothing is said about time
  Fnv1a digest_;
  HistoryOutcome outcome_;
};

}  // namespace tutti::histories
