#include "plans.h"

#include <algorithm>

#include "tutti/base/check.h"

namespace tutti::calibrate {
namespace {

class PlanBuilder {
 public:
  PlanBuilder(int32_t ranks, int64_t size)
      : ranks_(ranks),
        size_(size),
        demand_(static_cast<size_t>(ranks) * static_cast<size_t>(ranks)),
        streams_(static_cast<size_t>(ranks)) {}

  // A message, sent and received in streams of their own.
  void Add(int32_t from, int32_t to, int64_t bytes) {
    At(from, to) = bytes;
    StreamsOf(from).push_back({to, -1, 0, {Send(to)}});
    StreamsOf(to).push_back({-1, from, 0, {Receive(from)}});
  }
  // The same, with an answer of one byte that `to` sends when it has received.
  void AddAnswered(int32_t from, int32_t to, int64_t bytes) {
    At(from, to) = bytes;
    At(to, from) = 1;
    StreamsOf(from).push_back({to, -1, 0, {Send(to)}});
    StreamsOf(from).push_back({-1, to, 0, {Receive(to)}});
    StreamsOf(to).push_back({from, from, 0, {Receive(from), Send(from)}});
  }

  Plan Build(const char* name) && {
    Result<Collective> collective = Collective::Make(CollectiveKind::kAllToAllV, ranks_,
                                                     {.demand = demand_, .weight_of_size = size_});
    TUTTI_CHECK(collective.has_value());
    Plan plan{std::move(*collective), 1, 1, name, {}};
    plan.ranks.resize(static_cast<size_t>(ranks_));
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      RankPlan& of_rank = plan.ranks[static_cast<size_t>(rank)];
      of_rank.input_slots = of_rank.output_slots = ranks_;
      for (int32_t peer = 0; peer < ranks_; ++peer) {
        of_rank.input_weights.push_back(At(rank, peer));
        of_rank.output_weights.push_back(At(peer, rank));
      }
      of_rank.streams = std::move(StreamsOf(rank));
    }
    return plan;
  }

 private:
  static Instruction Send(int32_t slot) {
    return {OpCode::kSend, {Buffer::kInput, slot}, {}, 1, {}, 0};
  }
  static Instruction Receive(int32_t slot) {
    return {OpCode::kRecv, {}, {Buffer::kOutput, slot}, 1, {}, 0};
  }
  int64_t& At(int32_t from, int32_t to) {
    return demand_[static_cast<size_t>(from) * static_cast<size_t>(ranks_) +
                   static_cast<size_t>(to)];
  }
  std::vector<Stream>& StreamsOf(int32_t rank) { return streams_[static_cast<size_t>(rank)]; }

  int32_t ranks_;
  int64_t size_;
  std::vector<int64_t> demand_;
  std::vector<std::vector<Stream>> streams_;
};

}  // namespace

std::vector<std::vector<Pair>> Tournament(int32_t ranks) {
  // One stands still, the others go round; with an odd number who meets nobody rests.
  const int32_t seats = ranks + ranks % 2;
  std::vector<std::vector<Pair>> rounds;
  for (int32_t round = 0; round + 1 < seats; ++round) {
    std::vector<Pair>& pairs = rounds.emplace_back();
    const auto at = [&](int32_t seat) {
      return seat == 0 ? seats - 1 : (round + seat - 1) % (seats - 1);
    };
    for (int32_t seat = 0; seat < seats / 2; ++seat) {
      const int32_t a = at(seat), b = at(seats - 1 - seat);
      if (a < ranks && b < ranks) pairs.push_back({std::min(a, b), std::max(a, b)});
    }
  }
  return rounds;
}

Plan PingPlan(int32_t ranks, const std::vector<Pair>& pairs, int64_t bytes) {
  PlanBuilder builder(ranks, bytes);
  for (const Pair& pair : pairs) builder.AddAnswered(pair.first, pair.second, bytes);
  return std::move(builder).Build("ping");
}

Plan FanOutPlan(int32_t ranks, int32_t rank, int64_t bytes) {
  PlanBuilder builder(ranks, bytes);
  for (int32_t peer = 0; peer < ranks; ++peer)
    if (peer != rank) builder.Add(rank, peer, bytes);
  return std::move(builder).Build("fan-out");
}

Plan FanInPlan(int32_t ranks, int32_t rank, int64_t bytes) {
  PlanBuilder builder(ranks, bytes);
  for (int32_t peer = 0; peer < ranks; ++peer)
    if (peer != rank) builder.Add(peer, rank, bytes);
  return std::move(builder).Build("fan-in");
}

Plan ShufflePlan(int32_t ranks, int64_t bytes) {
  PlanBuilder builder(ranks, bytes);
  for (int32_t from = 0; from < ranks; ++from)
    for (int32_t to = 0; to < ranks; ++to)
      if (to != from) builder.Add(from, to, bytes);
  return std::move(builder).Build("shuffle");
}

}  // namespace tutti::calibrate
