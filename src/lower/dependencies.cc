#include <algorithm>

#include "lower_internal.h"

namespace tutti::lower {
namespace {

// For one rank: instruction -> for each stream the last instruction known to be done when it is.
class Clocks {
 public:
  explicit Clocks(const RankPlan& rank) : streams_(rank.streams.size()) {
    size_t total = 0;
    for (const Stream& stream : rank.streams) {
      first_.push_back(total);
      total += stream.instructions.size();
    }
    known_.assign(total * streams_, -1);
  }

  int32_t* at(const Dependency& which) {
    const size_t row =
        first_[static_cast<size_t>(which.stream)] + static_cast<size_t>(which.instruction);
    return known_.data() + row * streams_;
  }
  size_t num_streams() const { return streams_; }

 private:
  size_t streams_;
  std::vector<size_t> first_;
  std::vector<int32_t> known_;
};

}  // namespace

void PruneDependencies(const std::vector<Dependency>& order, RankPlan& rank) {
  Clocks clocks(rank);
  std::vector<Dependency> latest, kept;
  for (const Dependency& which : order) {
    Instruction& instruction = rank.streams[static_cast<size_t>(which.stream)]
                                   .instructions[static_cast<size_t>(which.instruction)];
    int32_t* known = clocks.at(which);
    if (which.instruction > 0)
      std::copy_n(clocks.at({which.stream, which.instruction - 1}), clocks.num_streams(), known);

    // The last one a stream, unless program order implies it.
    std::sort(instruction.after.begin(), instruction.after.end(),
              [](const Dependency& a, const Dependency& b) {
                return a.stream != b.stream ? a.stream < b.stream : a.instruction > b.instruction;
              });
    latest.clear();
    for (const Dependency& dep : instruction.after) {
      if (dep.stream == which.stream) continue;
      if (!latest.empty() && latest.back().stream == dep.stream) continue;
      if (known[dep.stream] < dep.instruction) latest.push_back(dep);
    }
    // None that another one waited for.
    kept.clear();
    for (const Dependency& dep : latest) {
      const bool implied = std::any_of(latest.begin(), latest.end(), [&](const Dependency& other) {
        return other.stream != dep.stream && clocks.at(other)[dep.stream] >= dep.instruction;
      });
      if (!implied) kept.push_back(dep);
    }
    for (const Dependency& dep : kept) {
      const int32_t* other = clocks.at(dep);
      for (size_t s = 0; s < clocks.num_streams(); ++s) known[s] = std::max(known[s], other[s]);
    }
    known[which.stream] = which.instruction;
    instruction.after = kept;
  }
}

void DropEmptyStreams(RankPlan& rank) {
  std::vector<int32_t> renamed(rank.streams.size(), -1);
  std::vector<Stream> kept;
  for (size_t s = 0; s < rank.streams.size(); ++s) {
    if (rank.streams[s].instructions.empty()) continue;
    renamed[s] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(rank.streams[s]));
  }
  for (Stream& stream : kept)
    for (Instruction& instruction : stream.instructions)
      for (Dependency& dep : instruction.after)
        dep.stream = renamed[static_cast<size_t>(dep.stream)];
  rank.streams = std::move(kept);
}

}  // namespace tutti::lower
