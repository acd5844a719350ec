// Strategy: which plan a communicator's calls run in an epoch: by collective and size, of schedule files that
// were judged, or the built-in default (communicator/schedules.h); and which way its connections take.
//
// Threads     Any: the daemon's thread asks, the planner's makes.
// Errors      Make: a file that is no schedule, is for another number of ranks, or that the judge refuses; those
//             of the flow table. Make and Prepare: kResourceExhausted where there is no memory left.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective_call.h"
#include "flow_table.h"
#include "schedules.h"
#include "tutti/base/result.h"

namespace tutti::service {

// As an operator or a controller gives it.
struct StrategyFiles {
  std::vector<ScheduleBook::NamedFile> schedules = {};
  std::string flows = {};  // flow_table.h
};

class Strategy {
 public:
  static Result<std::shared_ptr<Strategy>> Make(const StrategyFiles& files, int32_t num_ranks) try {
    Result<ScheduleBook> book = ScheduleBook::Make(files.schedules, num_ranks);
    if (!book) return tl::unexpected(book.error());
    Result<FlowTable> flows = FlowTable::Parse(files.flows, num_ranks);
    if (!flows) return tl::unexpected(flows.error());
    return std::shared_ptr<Strategy>(
        new Strategy(std::move(*book), std::move(*flows), files, num_ranks));
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  // Null: messages without a plan. Nothing: Prepare() has to make it.
  std::optional<const PlannedSchedule*> IfMade(const CollectiveCall& call, bool one_host) const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::nullopt;
    return book_.IfMade(call.kind, call.root, SizeOfCall(call), one_host);
  }
  Status Prepare(const CollectiveCall& call, bool one_host) try {
    const std::lock_guard lock(mutex_);
    const auto made = book_.Choose(call.kind, call.root, SizeOfCall(call), one_host);
    if (!made) return tl::unexpected(made.error());
    return {};
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  // No file of a provider's says what runs.
  bool is_built_in() const { return is_built_in_; }
  const FlowTable& flows() const { return flows_; }
  // As it was given.
  const std::string& flows_text() const { return flows_text_; }
  // "built-in", or the names of its files.
  std::string Describe() const { return description_; }

 private:
  Strategy(ScheduleBook book, FlowTable flows, const StrategyFiles& files, int32_t num_ranks)
      : book_(std::move(book)),
        flows_(std::move(flows)),
        flows_text_(files.flows),
        num_ranks_(num_ranks),
        is_built_in_(files.schedules.empty()) {
    for (const auto& [name, bytes] : files.schedules)
      description_ += (description_.empty() ? "" : ", ") + name;
    if (is_built_in_) description_ = "built-in";
    if (!flows_.empty()) description_ += fmt::format(", {} flows", flows_.size());
  }
  // Thrown in the planner's thread it would end the daemon.
  static tl::unexpected<Error> NoMemory() {
    return MakeError(ErrorCode::kResourceExhausted, "the daemon has no memory left for a plan");
  }
  int64_t SizeOfCall(const CollectiveCall& call) const {
    return ElementsOf(call, num_ranks_) * SizeOf(call.type);
  }

  mutable std::mutex mutex_;
  ScheduleBook book_;
  FlowTable flows_;
  std::string flows_text_;
  int32_t num_ranks_;
  bool is_built_in_;
  std::string description_;
};

}  // namespace tutti::service
