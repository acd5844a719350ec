// All ranks of a plan in one process, with buffers in plain memory: what the tests of connections
// run the same plans over. Results are judged by what the collective means.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "interpreter.h"
#include "pattern.h"
#include "program.h"
#include "shared_connection.h"
#include "slot_map.h"
#include "tutti/runtime/executor.h"

namespace tutti {

struct CallOptions {
  int64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  int64_t piece_bytes = 256 * 1024;
  TilesOf tiles_of = TilesOf::kSlots;
  Pattern::Values values = Pattern::Values::kExact;
};

class RanksInMemory {
 public:
  RanksInMemory(const Plan& plan, const CallOptions& options)
      : plan_(plan),
        options_(options),
        slots_(
            SlotMap::ForCount(plan, options.count, SizeOf(options.type), options.in_place).value()),
        program_(MakeProgram(plan, slots_, options.piece_bytes, options.tiles_of).value()),
        pattern_(options.type, options.op, plan.collective.reduces(), plan.collective.num_ranks(),
                 {}, options.values) {
    for (int32_t rank = 0; rank < num_ranks(); ++rank) {
      Bind(rank);
      const size_t streams = program_.ranks[static_cast<size_t>(rank)].streams.size();
      executed_.emplace_back(std::max<size_t>(1, streams));
    }
  }

  int32_t num_ranks() const { return plan_.collective.num_ranks(); }
  const Program& program() const { return program_; }
  const Binding& binding(int32_t rank) const { return bindings_[static_cast<size_t>(rank)]; }

  // Inputs; outputs are the opposite of what they have to become.
  void Fill() {
    for (int32_t rank = 0; rank < num_ranks(); ++rank) {
      ForEachResult(rank, [&](std::byte* data, const std::byte* expected, int64_t at, int64_t n) {
        pattern_.FillInverted(data, expected, at, n);
      });
      for (int32_t slot = 0; slot < slots_.NumSlots(rank, Buffer::kInput); ++slot)
        pattern_.Fill(At(rank, Buffer::kInput, slot), pattern_.Contribution(rank),
                      PositionOf(InputShard(plan_.collective, NodeId{rank}, slot)),
                      slots_.SlotElements(rank, Buffer::kInput, slot));
    }
  }
  int64_t CountWrongOf(int32_t rank) {
    int64_t wrong = 0;
    ForEachResult(rank, [&](std::byte* data, const std::byte* expected, int64_t at, int64_t n) {
      wrong += pattern_.Differing(data, expected, at, n);
    });
    return wrong;
  }
  int64_t CountWrong() {
    int64_t wrong = 0;
    for (int32_t rank = 0; rank < num_ranks(); ++rank) wrong += CountWrongOf(rank);
    return wrong;
  }
  // The bytes of all results.
  std::vector<std::byte> ResultsOf(int32_t rank) {
    std::vector<std::byte> bytes;
    ForEachResult(rank, [&](std::byte* data, const std::byte*, int64_t, int64_t n) {
      bytes.insert(bytes.end(), data, data + n * slots_.element_bytes());
    });
    return bytes;
  }
  std::vector<std::byte> Results() {
    std::vector<std::byte> bytes;
    for (int32_t rank = 0; rank < num_ranks(); ++rank) {
      const std::vector<std::byte> of_rank = ResultsOf(rank);
      bytes.insert(bytes.end(), of_rank.begin(), of_rank.end());
    }
    return bytes;
  }
  Interpreter MakeInterpreter(int32_t rank, std::vector<StreamEnds> ends) {
    const Interpreter::Call call{.type = options_.type,
                                 .op = options_.op,
                                 .reduces = plan_.collective.reduces(),
                                 .num_ranks = num_ranks()};
    return {program_,        rank,
            binding(rank),   call,
            std::move(ends), executed_[static_cast<size_t>(rank)].data()};
  }

 private:
  int64_t PositionOf(ShardId shard) const { return shard.value * (options_.count + 1); }
  std::byte* At(int32_t rank, Buffer buffer, int32_t slot) const {
    return binding(rank).base[static_cast<size_t>(buffer)] +
           slots_.SlotStart(rank, buffer, slot) * slots_.element_bytes();
  }
  template <class Visit>
  void ForEachResult(int32_t rank, Visit visit) {
    const Collective& collective = plan_.collective;
    for (int32_t slot = 0; slot < slots_.NumSlots(rank, Buffer::kOutput); ++slot) {
      const ShardId shard = OutputShard(collective, NodeId{rank}, slot);
      if (!collective.destinations(shard).Contains(NodeId{rank})) continue;
      const Collective::Ranks from = collective.contributors(shard);
      visit(At(rank, Buffer::kOutput, slot),
            from.all ? pattern_.Reduction() : pattern_.Contribution(from.one.value),
            PositionOf(shard), slots_.SlotElements(rank, Buffer::kOutput, slot));
    }
  }
  std::byte* Take(int64_t bytes) {
    memory_.emplace_back(static_cast<size_t>(bytes) + 8);
    return memory_.back().data();
  }
  void Bind(int32_t rank) {
    const int64_t size = slots_.element_bytes();
    const auto bytes = [&](Buffer buffer) { return slots_.BufferElements(rank, buffer) * size; };
    Binding& binding = bindings_.emplace_back();
    auto& [input, output, scratch] = binding.base;
    if (const auto shift = slots_.InputShift(rank)) {
      const int64_t low = std::min<int64_t>(0, *shift * size);
      const int64_t high = std::max(bytes(Buffer::kOutput), *shift * size + bytes(Buffer::kInput));
      output = Take(high - low) - low;
      input = output + *shift * size;
    } else {
      input = Take(bytes(Buffer::kInput));
      output = Take(bytes(Buffer::kOutput));
    }
    scratch = Take(bytes(Buffer::kScratch));
  }

  const Plan& plan_;
  CallOptions options_;
  SlotMap slots_;
  Program program_;
  Pattern pattern_;
  std::deque<std::vector<std::byte>> memory_;
  std::deque<Binding> bindings_;
  std::deque<std::vector<std::atomic<uint64_t>>> executed_;
};

class NoWaker final : public Waker {
 public:
  void Wake(WaitsFor) override {}
};

// The ends of all connections of all ranks, over shared memory.
class SharedEnds {
 public:
  explicit SharedEnds(const RanksInMemory& ranks) : ends_(static_cast<size_t>(ranks.num_ranks())) {
    const Program& program = ranks.program();
    for (const ConnectionProgram& connection : program.connections) {
      bounces_.emplace_back(static_cast<size_t>(connection.largest_message) * kBounces + 1);
      channels_.push_back({.state = &states_.emplace_back(),
                           .bounces = bounces_.back().data(),
                           .largest_message = connection.largest_message,
                           .program = &program,
                           .sender = connection.sender,
                           .sender_stream = connection.sender_stream,
                           .sender_binding = &ranks.binding(connection.sender),
                           .wake_sender = &waker_,
                           .wake_receiver = &waker_});
    }
  }
  std::vector<StreamEnds> Of(const RanksInMemory& ranks, int32_t rank) {
    std::vector<StreamEnds> ends;
    for (const StreamProgram& stream : ranks.program().ranks[static_cast<size_t>(rank)].streams) {
      StreamEnds& of_stream = ends.emplace_back();
      if (stream.outgoing >= 0) of_stream.outgoing = End(rank, stream.outgoing);
      if (stream.incoming >= 0) of_stream.incoming = End(rank, stream.incoming);
    }
    return ends;
  }

 private:
  Connection* End(int32_t rank, int32_t connection) {
    return &ends_[static_cast<size_t>(rank)].emplace_back(
        channels_[static_cast<size_t>(connection)]);
  }

  NoWaker waker_;
  std::deque<ConnectionState> states_;
  std::deque<std::vector<std::byte>> bounces_;
  std::vector<SharedChannel> channels_;
  std::vector<std::deque<SharedConnection>> ends_;
};

// All ranks in turn in this thread, a round each, with a budget that draw() gives. between() is
// called after each turn of all ranks. False: nothing moved for 1000 turns (or between() forbids).
template <class Draw, class Between>
bool RunInTurns(std::deque<Interpreter>& ranks, Draw draw, Between between) {
  for (Interpreter& rank : ranks) rank.Start();
  for (int64_t stuck = 0; stuck < 1000; ++stuck) {
    size_t over = 0;
    for (Interpreter& rank : ranks) {
      const Interpreter::Outcome outcome = rank.Poll(draw());
      if (outcome == Interpreter::Outcome::kOver) ++over;
      if (outcome == Interpreter::Outcome::kMoved) stuck = 0;
      if (outcome == Interpreter::Outcome::kStuck) rank.SaveWanted();
    }
    if (over == ranks.size()) return true;
    if (between()) stuck = 0;
  }
  return false;
}

}  // namespace tutti
