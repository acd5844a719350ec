// Regrouping: the ranks that are left of a communicator agree who they are, after some have gone or are to be left out.
//
// Model       Ranks *ask*, and one of them (or one of their daemons) leads: the lowest that is there. For the leader a
//             rank is *present* where it has asked; *gone* where its own host says that it has ended (a connection
//             to it is refused, or its daemon says so); else *missing*: it has not asked yet, or the network is cut.
// Rule        Those present go on if they are more than half of all that are not gone, or half of them with the
//             lowest one. Whatever cuts the network, no two groups of one communicator can both go on: each knows
//             only such as gone that are, so that two groups would need more ranks than are left.
//             Who is left out by name and has not gone counts as missing.
// Descent     A leader may end after it has told its decision to some: these belong to the new communicator from then
//             on, whether it comes to be or not, and carry the decision to those they meet who have not heard it
//             (meeting.h).
// Errors      kPeerFailed: too few are present, or they ask for different things.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/communicator.h"

namespace tutti {

// What a rank asks for; all have to ask for the same, but for the id.
struct RegroupAsk {
  static constexpr size_t kMaxExcluded = 256;

  std::vector<int32_t> excluded = {};  // to be left out: in order, once each
  int32_t grows_to = 0;                // ranks with those that join by `id`; 0: only those present
  std::optional<UniqueId> id = {};     // of a grow, from one of the ranks

  std::string Text() const;  // "to shrink without rank 3"
};

// What becomes of a rank.
struct Regrouped {
  UniqueId id;
  int32_t num_ranks = 0, rank = 0;
  // By rank of the new one, what they were: ascending, without those that join by the id of a grow. None: not told.
  std::vector<int32_t> survivors = {};

  // The same, for who was `rank`. Nothing: none of it.
  std::optional<Regrouped> For(int32_t rank) const;
};

std::string Encode(const RegroupAsk& ask);
// Nothing: no such bytes.
std::optional<RegroupAsk> DecodeAsk(std::string_view bytes);
std::string Encode(const Regrouped& regrouped);
std::optional<Regrouped> DecodeRegrouped(std::string_view bytes);

// What the leader knows of the ranks.
class Roll {
 public:
  explicit Roll(int32_t num_ranks) : seen_(static_cast<size_t>(num_ranks)) {}

  // kInvalidArgument: it asks for something else than those before, or is left out by them.
  Status Enter(int32_t rank, const RegroupAsk& ask);
  void SetMissing(int32_t rank) { seen_[static_cast<size_t>(rank)] = Seen::kMissing; }
  void SetGone(int32_t rank) { seen_[static_cast<size_t>(rank)] = Seen::kGone; }
  bool is_missing(int32_t rank) const { return seen_[static_cast<size_t>(rank)] == Seen::kMissing; }
  bool is_gone(int32_t rank) const { return seen_[static_cast<size_t>(rank)] == Seen::kGone; }
  bool is_excluded(int32_t rank) const;
  // OK: those present may go on, by the rule.
  Status MayGoOn() const;
  // The ranks present, in order; where MayGoOn().
  std::vector<int32_t> Survivors() const;
  // What the i-th survivor becomes, with the id that was given, else with `made`. kInvalidArgument: a grow without an id, or
  // to fewer ranks.
  Result<Regrouped> BecomeOf(size_t survivor, const std::optional<UniqueId>& made) const;
  bool needs_id() const { return !ask_ || ask_->grows_to == 0; }

 private:
  enum class Seen : uint8_t { kMissing, kPresent, kGone };
  std::vector<Seen> seen_;
  std::optional<RegroupAsk> ask_;  // the first
  int32_t first_ = 0;              // whose that is
};

}  // namespace tutti
