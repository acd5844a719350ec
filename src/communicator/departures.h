// Departures: the ranks of a communicator that have left it, and how far each had come: what says which calls of
// others can still end.
//
// Model       All ranks call the same collectives in the same order, so their numbers tell of each whether one that has left
//             took part. Messages are of two ranks: they are counted from each to each. What a rank had completed when it left
//             ends at the others, too: it, or the daemon of the service that ran it, had sent all of that, or goes on sending.
// Complexity  One look over those that have left a call, and over its messages.
// Threads     Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

// What says who takes part in a call of a rank.
struct CallOfRank {
  bool is_of_all = true;                   // all ranks
  std::span<const Message> messages = {};  // if not
};

// What a rank has completed.
struct RankProgress {
  struct Messages {
    uint64_t sent = 0, received = 0;
    friend bool operator==(const Messages&, const Messages&) = default;
  };
  uint64_t collectives = 0;                   // calls of all ranks; all-to-all-v is one
  std::map<int32_t, Messages> messages = {};  // that only some ranks exchange, by peer

  void Add(const CallOfRank& completed);
  // Whether the other one, of the same rank, tells nothing that this one does not.
  bool Covers(const RankProgress& other) const {
    return collectives >= other.collectives && messages.size() >= other.messages.size();
  }

  Messages MessagesWith(int32_t peer) const {
    const auto found = messages.find(peer);
    return found == messages.end() ? Messages{} : found->second;
  }
  // Of its words, with messages to and from all ranks.
  static constexpr size_t MaxBytes(size_t num_ranks) {
    return (1 + kWordsAPeer * num_ranks) * sizeof(int64_t);
  }
  // As words of a frame: collectives, then peer, sent and received of each.
  void AppendTo(std::vector<int64_t>& words) const;
  // Nothing: words that no AppendTo() has made.
  static std::optional<RankProgress> FromWords(std::span<const int64_t> words);
  friend bool operator==(const RankProgress&, const RankProgress&) = default;

 private:
  static constexpr size_t kWordsAPeer = 3;
};

class Departures {
 public:
  // False: it is known. One whose daemon has gone since it left is told of again, as if it had completed nothing: what it had
  // sent may be lost.
  bool Add(int32_t rank, const RankProgress& completed, const std::string& why);
  // Why the next call of `rank` can never end; nothing: it can, as far as those are concerned that have left.
  std::optional<std::string> WhyNever(int32_t rank, const RankProgress& completed,
                                      const CallOfRank& next) const;
  // Of what WhyNever() said, which may be because another rank left for such a reason itself: the part that names who left first.
  static std::string FirstCause(const std::string& why_never);
  bool empty() const { return left_.empty(); }
  size_t size() const { return left_.size(); }

 private:
  struct Left {
    int32_t rank = 0;
    RankProgress completed;
    std::string why;
  };

  std::vector<Left> left_;  // in the order heard: who left first is why others did
};

}  // namespace tutti
