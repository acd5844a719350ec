// Plans written by hand, one instruction after the other, for tests of what runs them.
#pragma once

#include <utility>
#include <vector>

#include "tutti/lower/plan.h"

namespace tutti {

inline Collective MakeCollective(CollectiveKind kind, int32_t ranks,
                                 Collective::Options options = {}) {
  return Collective::Make(kind, ranks, std::move(options)).value();
}

inline Plan EmptyPlan(Collective collective) {
  Plan plan{std::move(collective), 1, 1, "by-hand", {}};
  plan.ranks.resize(static_cast<size_t>(plan.collective.num_ranks()));
  return plan;
}

inline Instruction Send(Operand src, int64_t count = 1) {
  return {OpCode::kSend, src, {}, count, {}, 0};
}
inline Instruction Recv(Operand dst, int64_t count = 1) {
  return {OpCode::kRecv, {}, dst, count, {}, 0};
}
inline Instruction Reduce(Operand dst, Operand src, int64_t count = 1) {
  return {OpCode::kRecvReduce, src, dst, count, {}, 0};
}
inline Instruction Copy(Operand dst, Operand src, int64_t count = 1) {
  return {OpCode::kCopy, src, dst, count, {}, 0};
}
inline Operand In(int64_t offset) { return {Buffer::kInput, offset}; }
inline Operand Out(int64_t offset) { return {Buffer::kOutput, offset}; }

// Everything in one stream a rank: own shard to its place, then N - 1 times to the right.
inline Plan RingAllGather(int32_t n) {
  Plan plan = EmptyPlan(MakeCollective(CollectiveKind::kAllGather, n));
  for (int32_t r = 0; r < n; ++r) {
    RankPlan& rank = plan.ranks[static_cast<size_t>(r)];
    rank.input_slots = 1;
    rank.output_slots = n;
    Stream stream{n > 1 ? (r + 1) % n : -1, n > 1 ? (r + n - 1) % n : -1, 0, {}};
    stream.instructions.push_back(Copy(Out(r), In(0)));
    for (int32_t t = 0; t + 1 < n; ++t) {
      stream.instructions.push_back(Send(Out((r - t + n) % n)));
      stream.instructions.push_back(Recv(Out((r - t - 1 + n) % n)));
    }
    rank.streams.push_back(std::move(stream));
  }
  return plan;
}

// Reduce-scatter and all-gather around a ring, with sends and receives in streams of their own.
inline Plan RingAllReduce(int32_t n) {
  Plan plan = EmptyPlan(MakeCollective(CollectiveKind::kAllReduce, n));
  for (int32_t r = 0; r < n; ++r) {
    RankPlan& rank = plan.ranks[static_cast<size_t>(r)];
    rank.input_slots = rank.output_slots = n;
    Stream sends{(r + 1) % n, -1, 0, {}};
    Stream receives{-1, (r + n - 1) % n, 0, {}};
    const auto slot = [n, r](int32_t back) { return (r - back + 2 * n) % n; };
    for (int32_t t = 0; t + 1 < n; ++t) {  // partial sums
      sends.instructions.push_back(Send(t == 0 ? In(slot(0)) : Out(slot(t))));
      if (t > 0) sends.instructions.back().after = {{1, t - 1}};
      receives.instructions.push_back(Reduce(Out(slot(t + 1)), In(slot(t + 1))));
    }
    for (int32_t t = 0; t + 1 < n; ++t) {  // results
      sends.instructions.push_back(Send(Out(slot(t - 1))));
      sends.instructions.back().after = {{1, n - 2 + t}};
      receives.instructions.push_back(Recv(Out(slot(t))));
      // The partial sum that stood here went out with the send of step t.
      receives.instructions.back().after = {{0, t}};
    }
    rank.streams = {std::move(sends), std::move(receives)};
  }
  return plan;
}

// Recursive doubling over a power of two of ranks: in each round two ranks exchange all they have,
// each over the very buffer that the other reads.
inline Plan ExchangeAllReduce(int32_t n) {
  Plan plan = EmptyPlan(MakeCollective(CollectiveKind::kAllReduce, n,
                                       {.root = 0, .all_reduce_shards = 1, .demand = {}}));
  for (int32_t r = 0; r < n; ++r) {
    RankPlan& rank = plan.ranks[static_cast<size_t>(r)];
    rank.input_slots = rank.output_slots = 1;
    Dependency last{0, 0};
    rank.streams.push_back({-1, -1, 0, {Copy(Out(0), In(0))}});
    for (int32_t bit = 1; bit < n; bit *= 2) {
      Stream stream{r ^ bit, r ^ bit, 0, {Send(Out(0)), Reduce(Out(0), Out(0))}};
      stream.instructions[0].after = {last};
      last = {static_cast<int32_t>(rank.streams.size()), 1};
      rank.streams.push_back(std::move(stream));
    }
  }
  return plan;
}

// Recursive doubling of shards cut into three units: messages run over several slots, and a shard
// that three does not divide has units of different lengths.
inline Plan DoublingAllGather(int32_t n) {
  Plan plan = EmptyPlan(MakeCollective(CollectiveKind::kAllGather, n));
  plan.units_per_shard = 3;
  for (int32_t r = 0; r < n; ++r) {
    RankPlan& rank = plan.ranks[static_cast<size_t>(r)];
    rank.input_slots = 1;
    rank.output_slots = n;
    Dependency last{0, 0};
    rank.streams.push_back({-1, -1, 0, {Copy(Out(3 * r), In(0), 3)}});
    for (int32_t bit = 1; bit < n; bit *= 2) {
      const int32_t mine = r / bit * bit, theirs = mine ^ bit;
      // In two messages, the second from the middle of the first shard on.
      Stream stream{r ^ bit, r ^ bit, 0, {}};
      stream.instructions = {Send(Out(3 * mine)), Send(Out(3 * mine + 1), 3 * bit - 1),
                             Recv(Out(3 * theirs)), Recv(Out(3 * theirs + 1), 3 * bit - 1)};
      stream.instructions[0].after = {last};
      last = {static_cast<int32_t>(rank.streams.size()), 3};
      rank.streams.push_back(std::move(stream));
    }
  }
  return plan;
}

}  // namespace tutti
