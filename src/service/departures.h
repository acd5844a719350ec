// Departures: the ranks of a communicator that have left it, and how far each had come: what says which commands of
// others can still end.
//
// Model       All ranks call the same collectives in the same order, so their numbers tell of each whether one that has left
//             took part. Messages are of two ranks: they are counted from each to each. What a rank had completed when it left
//             ends at the others, too: its daemon goes on sending.
// Complexity  One look over those that have left a command, and over its messages.
// Threads     Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command.h"

namespace tutti::service {

// What a rank has completed.
struct RankProgress {
  struct Messages {
    uint64_t sent = 0, received = 0;
    friend bool operator==(const Messages&, const Messages&) = default;
  };
  uint64_t collectives = 0;              // commands of all ranks
  std::map<int32_t, Messages> messages;  // of the other commands, by peer

  void Add(const Command& completed);
  // Whether the other one, of the same rank, tells nothing that this one does not.
  bool Covers(const RankProgress& other) const {
    return collectives >= other.collectives && messages.size() >= other.messages.size();
  }

  // As words of a frame: collectives, then peer, sent and received of each.
  void AppendTo(std::vector<int64_t>& words) const;
  // Nothing: words that no AppendTo() has made.
  static std::optional<RankProgress> FromWords(std::span<const int64_t> words);
  friend bool operator==(const RankProgress&, const RankProgress&) = default;
};

class Departures {
 public:
  // False: it is known. One whose daemon has gone since it left is told of again, as if it had completed nothing: what it had
  // sent may be lost.
  bool Add(int32_t rank, const RankProgress& completed, const std::string& why);
  // Why the next command of `rank` can never end; nothing: it can, as far as those are concerned that have left.
  std::optional<std::string> WhyNever(int32_t rank, const RankProgress& completed,
                                      const Command& next) const;
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

}  // namespace tutti::service
