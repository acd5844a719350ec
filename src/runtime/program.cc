#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

std::string Where(int32_t rank, size_t stream, size_t instruction) {
  return fmt::format("rank {} stream {} instruction {}", rank, stream, instruction);
}

bool Reads(OpCode op) { return op != OpCode::kRecv; }
bool Writes(OpCode op) { return op != OpCode::kSend; }
bool Receives(OpCode op) { return op == OpCode::kRecv || op == OpCode::kRecvReduce; }

class Compiler {
 public:
  // `cuts_units`: a segment has one unit.
  Compiler(const Plan& plan, const SlotMap& slots, bool cuts_units)
      : plan_(plan), slots_(slots), cuts_units_(cuts_units) {}

  Result<Program> Run(int64_t piece_bytes) {
    if (plan_.units_per_shard < 1)
      return InvalidArgument(fmt::format("a shard has {} units", plan_.units_per_shard));
    program_.units = plan_.units_per_shard;
    program_.element_bytes = slots_.element_bytes();
    program_.ranks.resize(plan_.ranks.size());
    Status status = Connect();
    if (status) status = MatchMessages();
    for (int32_t rank = 0; status && rank < NumRanks(); ++rank) status = CompileRank(rank);
    if (!status) return tl::unexpected(status.error());
    ChooseTiles(piece_bytes);
    return std::move(program_);
  }

 private:
  struct Send {
    int32_t stream = 0, instruction = 0, ordinal = 0;
    int32_t first_unit = 0, last_unit = 0;  // within the slot
  };

  int32_t NumRanks() const { return static_cast<int32_t>(plan_.ranks.size()); }
  const Stream& StreamOf(int32_t rank, int32_t stream) const {
    return plan_.ranks[static_cast<size_t>(rank)].streams[static_cast<size_t>(stream)];
  }
  RankProgram& ProgramOf(int32_t rank) { return program_.ranks[static_cast<size_t>(rank)]; }

  // One connection for each (sender, receiver, channel), with exactly one stream at either end.
  Status Connect();
  Status JoinEnd(int32_t rank, int32_t stream, bool sends);
  // Both ends of each connection agree on the number of messages and their counts.
  Status MatchMessages();
  Status CheckOperand(int32_t rank, const Operand& operand, int64_t count) const;
  Status CheckInstruction(int32_t rank, const Stream& stream, const Instruction& instruction) const;
  Status CompileRank(int32_t rank);
  Status CompileInstruction(int32_t rank, int32_t stream, int32_t index);
  Status AddSegments(int32_t rank, const Instruction& instruction, int32_t remote_rank,
                     const Operand& remote);
  // A copy from where it copies to, in place.
  bool MovesNothing(int32_t rank, const Instruction& instruction) const;
  void AddResults(int32_t rank);
  void IndexSends(int32_t rank);
  void AddHazards(int32_t rank, int32_t stream, int32_t index);
  void ChooseTiles(int64_t piece_bytes);

  // The memory of a slot: in place, an input slot is the output slot it coincides with.
  size_t MemoryOf(int32_t rank, Buffer buffer, int32_t slot) const {
    const int32_t inputs = slots_.NumSlots(rank, Buffer::kInput);
    const int32_t outputs = slots_.NumSlots(rank, Buffer::kOutput);
    if (buffer == Buffer::kInput) {
      const int32_t alias = slots_.AliasOfInput(rank, slot);
      return static_cast<size_t>(alias < 0 ? slot : inputs + alias);
    }
    return static_cast<size_t>(buffer == Buffer::kOutput ? inputs + slot : inputs + outputs + slot);
  }
  // Calls visit(memory, first_unit, last_unit) for each slot an operand touches.
  template <class Visit>
  void ForEachSlot(int32_t rank, const Operand& operand, int64_t count, Visit visit) const {
    for (int64_t done = 0; done < count;) {
      const int64_t unit = operand.offset + done;
      const int64_t slot = unit / program_.units;
      const int64_t first = unit % program_.units;
      const int64_t last = std::min<int64_t>(program_.units, first + count - done);
      visit(MemoryOf(rank, operand.buffer, static_cast<int32_t>(slot)), static_cast<int32_t>(first),
            static_cast<int32_t>(last));
      done += last - first;
    }
  }

  const Plan& plan_;
  const SlotMap& slots_;
  const bool cuts_units_;
  Program program_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> connection_ids_;
  // By connection: instructions that send, of the sender's stream.
  std::vector<std::vector<int32_t>> sends_;
  std::vector<std::vector<Send>> sends_from_;  // of the rank being compiled, by memory
};

Status Compiler::JoinEnd(int32_t rank, int32_t stream, bool sends) {
  const Stream& end = StreamOf(rank, stream);
  const int32_t peer = sends ? end.send_peer : end.recv_peer;
  if (peer == -1) return {};
  if (peer < 0 || peer >= NumRanks() || peer == rank)
    return InvalidArgument(fmt::format("rank {} stream {} {} rank {}, which is no other rank", rank,
                                       stream, sends ? "sends to" : "receives from", peer));
  const int32_t sender = sends ? rank : peer;
  const int32_t receiver = sends ? peer : rank;
  const auto [at, is_new] = connection_ids_.try_emplace(
      std::tuple(sender, receiver, end.channel), static_cast<int32_t>(program_.connections.size()));
  if (is_new)
    program_.connections.push_back({.sender = sender,
                                    .receiver = receiver,
                                    .channel = end.channel,
                                    .sender_stream = -1,
                                    .receiver_stream = -1});
  ConnectionProgram& connection = program_.connections[static_cast<size_t>(at->second)];
  int32_t& mine = sends ? connection.sender_stream : connection.receiver_stream;
  if (mine != -1)
    return InvalidArgument(fmt::format("rank {}: streams {} and {} both {} rank {} on channel {}",
                                       rank, mine, stream, sends ? "send to" : "receive from", peer,
                                       end.channel));
  mine = stream;
  StreamProgram& compiled = ProgramOf(rank).streams[static_cast<size_t>(stream)];
  (sends ? compiled.outgoing : compiled.incoming) = at->second;
  return {};
}

Status Compiler::Connect() {
  for (int32_t rank = 0; rank < NumRanks(); ++rank) {
    const auto& streams = plan_.ranks[static_cast<size_t>(rank)].streams;
    ProgramOf(rank).streams.resize(streams.size());
    for (size_t s = 0; s < streams.size(); ++s) {
      for (const bool sends : {true, false}) {
        const Status joined = JoinEnd(rank, static_cast<int32_t>(s), sends);
        if (!joined) return joined;
      }
      for (size_t i = 0; i < streams[s].instructions.size(); ++i) {
        const Status checked = CheckInstruction(rank, streams[s], streams[s].instructions[i]);
        if (!checked) return Within(Where(rank, s, i), checked.error());
      }
    }
  }
  return {};
}

Status Compiler::CheckOperand(int32_t rank, const Operand& operand, int64_t count) const {
  if (operand.buffer > Buffer::kScratch)
    return InvalidArgument(
        fmt::format("buffer {} is none of 0, 1, 2", static_cast<int>(operand.buffer)));
  const int64_t units = int64_t{slots_.NumSlots(rank, operand.buffer)} * plan_.units_per_shard;
  if (operand.offset < 0 || count > units || operand.offset > units - count)
    return InvalidArgument(fmt::format("units {} to {} are outside a buffer of {} units",
                                       operand.offset, operand.offset + count, units));
  return {};
}

Status Compiler::CheckInstruction(int32_t rank, const Stream& stream,
                                  const Instruction& instruction) const {
  if (instruction.op > OpCode::kCopy)
    return InvalidArgument(
        fmt::format("opcode {} is none of 0, 1, 2, 3", static_cast<int>(instruction.op)));
  if (instruction.count < 0)
    return InvalidArgument(fmt::format("the count is negative: {}", instruction.count));
  if (instruction.op == OpCode::kSend && stream.send_peer == -1)
    return InvalidArgument("a send in a stream without a peer to send to");
  if (Receives(instruction.op) && stream.recv_peer == -1)
    return InvalidArgument("a receive in a stream without a peer to receive from");
  Status checked;
  if (Reads(instruction.op)) checked = CheckOperand(rank, instruction.src, instruction.count);
  if (checked && Writes(instruction.op))
    checked = CheckOperand(rank, instruction.dst, instruction.count);
  if (!checked) return checked;
  const auto& streams = plan_.ranks[static_cast<size_t>(rank)].streams;
  for (const Dependency& after : instruction.after) {
    const bool there = after.stream >= 0 && static_cast<size_t>(after.stream) < streams.size() &&
                       after.instruction >= 0 &&
                       static_cast<size_t>(after.instruction) <
                           streams[static_cast<size_t>(after.stream)].instructions.size();
    if (!there)
      return InvalidArgument(
          fmt::format("it waits for stream {} instruction {}, which is not there", after.stream,
                      after.instruction));
  }
  return {};
}

Status Compiler::MatchMessages() {
  sends_.resize(program_.connections.size());
  for (size_t c = 0; c < program_.connections.size(); ++c) {
    ConnectionProgram& connection = program_.connections[c];
    const std::string name = fmt::format("connection {} -> {} channel {}", connection.sender,
                                         connection.receiver, connection.channel);
    std::vector<int64_t> counts;  // of the receives
    if (connection.receiver_stream != -1) {
      for (const auto& each :
           StreamOf(connection.receiver, connection.receiver_stream).instructions)
        if (Receives(each.op)) counts.push_back(each.count);
    }
    if (connection.sender_stream != -1) {
      const Stream& stream = StreamOf(connection.sender, connection.sender_stream);
      for (size_t i = 0; i < stream.instructions.size(); ++i)
        if (stream.instructions[i].op == OpCode::kSend)
          sends_[c].push_back(static_cast<int32_t>(i));
      for (size_t k = 0; k < std::min(counts.size(), sends_[c].size()); ++k) {
        const int64_t sent = stream.instructions[static_cast<size_t>(sends_[c][k])].count;
        if (sent != counts[k])
          return InvalidArgument(fmt::format(
              "{}: message {} is sent with {} units, received with {}", name, k, sent, counts[k]));
      }
    }
    if (counts.size() != sends_[c].size())
      return InvalidArgument(fmt::format("{}: {} messages are sent and {} received", name,
                                         sends_[c].size(), counts.size()));
    connection.messages = static_cast<int32_t>(counts.size());
  }
  return {};
}

void Compiler::IndexSends(int32_t rank) {
  const RankPlan& rank_plan = plan_.ranks[static_cast<size_t>(rank)];
  const int32_t slots = slots_.NumSlots(rank, Buffer::kInput) +
                        slots_.NumSlots(rank, Buffer::kOutput) +
                        slots_.NumSlots(rank, Buffer::kScratch);
  sends_from_.assign(static_cast<size_t>(slots), {});
  for (size_t s = 0; s < rank_plan.streams.size(); ++s) {
    int32_t ordinal = 0;
    for (size_t i = 0; i < rank_plan.streams[s].instructions.size(); ++i) {
      const Instruction& send = rank_plan.streams[s].instructions[i];
      if (send.op != OpCode::kSend) continue;
      ForEachSlot(rank, send.src, send.count, [&](size_t memory, int32_t first, int32_t last) {
        sends_from_[memory].push_back(
            {static_cast<int32_t>(s), static_cast<int32_t>(i), ordinal, first, last});
      });
      ++ordinal;
    }
  }
}

void Compiler::AddHazards(int32_t rank, int32_t stream, int32_t index) {
  const Instruction& writer = StreamOf(rank, stream).instructions[static_cast<size_t>(index)];
  std::vector<std::pair<int32_t, int32_t>> found;
  ForEachSlot(rank, writer.dst, writer.count, [&](size_t memory, int32_t first, int32_t last) {
    for (const Send& send : sends_from_[memory]) {
      const bool overlap = send.first_unit < last && first < send.last_unit;
      const bool later = send.stream == stream && send.instruction > index;
      if (overlap && !later)
        found.emplace_back(ProgramOf(rank).streams[static_cast<size_t>(send.stream)].outgoing,
                           send.ordinal);
    }
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (const auto& [connection, ordinal] : found)
    ProgramOf(rank).hazards.push_back({connection, ordinal});
}

// Cuts an instruction at the ends of slots. `remote` is where the other side's data lie.
Status Compiler::AddSegments(int32_t rank, const Instruction& instruction, int32_t remote_rank,
                             const Operand& remote) {
  struct Side {
    int32_t rank = 0;
    const Operand* operand = nullptr;
    SlotAddress Segment::*start = nullptr;  // null: the other rank's
  };
  std::vector<Side> sides;
  if (remote_rank >= 0) sides.push_back({remote_rank, &remote, nullptr});
  if (Reads(instruction.op)) sides.push_back({rank, &instruction.src, &Segment::src});
  if (Writes(instruction.op)) sides.push_back({rank, &instruction.dst, &Segment::dst});
  const int64_t units = program_.units;
  for (int64_t done = 0; done < instruction.count;) {
    Segment segment;
    for (const Side& side : sides) {
      const int64_t unit = side.operand->offset + done;
      const auto slot = static_cast<int32_t>(unit / units);
      const auto first = static_cast<int32_t>(unit % units);
      const int64_t elements = slots_.SlotElements(side.rank, side.operand->buffer, slot);
      if (&side != &sides.front() && first != segment.first_unit)
        return InvalidArgument(
            fmt::format("one side starts at unit {} of a shard, the other at unit {}",
                        segment.first_unit, first));
      if (&side != &sides.front() && elements != segment.elements)
        return InvalidArgument(fmt::format("one side's slot has {} elements, the other's {}",
                                           segment.elements, elements));
      segment.first_unit = first;
      segment.elements = elements;
      if (side.start == nullptr) continue;
      const Buffer buffer = side.operand->buffer;
      segment.*
          side.start = {slots_.SlotStart(side.rank, buffer, slot) * slots_.element_bytes(), buffer};
    }
    segment.last_unit =
        static_cast<int32_t>(std::min<int64_t>(cuts_units_ ? segment.first_unit + 1 : units,
                                               segment.first_unit + instruction.count - done));
    done += segment.last_unit - segment.first_unit;
    ProgramOf(rank).segments.push_back(segment);
  }
  return {};
}

bool Compiler::MovesNothing(int32_t rank, const Instruction& instruction) const {
  if (instruction.op != OpCode::kCopy) return false;
  const auto places = [this, rank, &instruction](const Operand& operand) {
    std::vector<std::pair<size_t, int32_t>> found;
    ForEachSlot(rank, operand, instruction.count, [&found](size_t memory, int32_t first, int32_t) {
      found.emplace_back(memory, first);
    });
    return found;
  };
  return places(instruction.src) == places(instruction.dst);
}

// Neighbouring slots become one range.
void Compiler::AddResults(int32_t rank) {
  const Collective& collective = plan_.collective;
  std::vector<ResultRange>& results = ProgramOf(rank).results;
  const int64_t size = slots_.element_bytes();
  for (int32_t slot = 0; slot < slots_.NumSlots(rank, Buffer::kOutput); ++slot) {
    const ShardId shard = OutputShard(collective, NodeId{rank}, slot);
    if (!collective.destinations(shard).Contains(NodeId{rank})) continue;
    const int64_t offset = slots_.SlotStart(rank, Buffer::kOutput, slot) * size;
    const int64_t elements = slots_.SlotElements(rank, Buffer::kOutput, slot);
    const bool follows =
        !results.empty() && results.back().offset + results.back().elements * size == offset;
    if (follows)
      results.back().elements += elements;
    else
      results.push_back({offset, elements});
  }
}

Status Compiler::CompileInstruction(int32_t rank, int32_t stream, int32_t index) {
  const Instruction& instruction = StreamOf(rank, stream).instructions[static_cast<size_t>(index)];
  RankProgram& program = ProgramOf(rank);
  StreamProgram& compiled = program.streams[static_cast<size_t>(stream)];
  int32_t remote_rank = -1;
  Operand remote;
  if (Receives(instruction.op)) {
    const auto c = static_cast<size_t>(compiled.incoming);
    const ConnectionProgram& connection = program_.connections[c];
    const auto k = static_cast<size_t>(compiled.num_receives++);
    remote_rank = connection.sender;
    remote = StreamOf(connection.sender, connection.sender_stream)
                 .instructions[static_cast<size_t>(sends_[c][k])]
                 .src;
  }
  Step step;
  step.op = instruction.op;
  step.first_segment = static_cast<int32_t>(program.segments.size());
  const Status added = AddSegments(rank, instruction, remote_rank, remote);
  if (!added) return added;
  step.last_segment = static_cast<int32_t>(program.segments.size());
  step.first_wait = static_cast<int32_t>(program.waits.size());
  program.waits.insert(program.waits.end(), instruction.after.begin(), instruction.after.end());
  step.last_wait = static_cast<int32_t>(program.waits.size());
  step.first_hazard = static_cast<int32_t>(program.hazards.size());
  if (Writes(instruction.op) && !MovesNothing(rank, instruction)) AddHazards(rank, stream, index);
  step.last_hazard = static_cast<int32_t>(program.hazards.size());
  if (instruction.op == OpCode::kSend) {
    compiled.sends.push_back(static_cast<int32_t>(program.steps.size()));
    ++compiled.num_sends;
  }
  program.steps.push_back(step);
  return {};
}

Status Compiler::CompileRank(int32_t rank) {
  const RankPlan& rank_plan = plan_.ranks[static_cast<size_t>(rank)];
  IndexSends(rank);
  AddResults(rank);
  for (size_t s = 0; s < rank_plan.streams.size(); ++s) {
    StreamProgram& compiled = ProgramOf(rank).streams[s];
    compiled.first_step = static_cast<int32_t>(ProgramOf(rank).steps.size());
    compiled.num_steps = static_cast<int32_t>(rank_plan.streams[s].instructions.size());
    for (int32_t i = 0; i < compiled.num_steps; ++i) {
      const Status done = CompileInstruction(rank, static_cast<int32_t>(s), i);
      if (!done) return Within(Where(rank, s, static_cast<size_t>(i)), done.error());
    }
  }
  return {};
}

void Compiler::ChooseTiles(int64_t piece_bytes) {
  const auto bytes = [this](const RankProgram& program, const Step& step, int64_t tiles) {
    int64_t elements = 0;
    for (int32_t s = step.first_segment; s < step.last_segment; ++s) {
      const Segment& segment = program.segments[static_cast<size_t>(s)];
      const int64_t in_tile = (segment.elements + tiles - 1) / tiles;
      elements += Scale(segment.last_unit - segment.first_unit, in_tile, program_.units) + 1;
    }
    return elements * slots_.element_bytes();
  };
  int64_t largest = 0;
  for (const RankProgram& program : program_.ranks)
    for (const Step& step : program.steps) largest = std::max(largest, bytes(program, step, 1));
  // More tiles than 2^30 would make pieces of a byte out of the largest buffers there are.
  program_.tiles = std::clamp<int64_t>(largest / piece_bytes, 1, int64_t{1} << 30);
  for (ConnectionProgram& connection : program_.connections) {
    if (connection.sender_stream == -1) continue;
    const RankProgram& program = ProgramOf(connection.sender);
    for (const int32_t send : program.streams[static_cast<size_t>(connection.sender_stream)].sends)
      connection.largest_message =
          std::max(connection.largest_message,
                   bytes(program, program.steps[static_cast<size_t>(send)], program_.tiles));
  }
}

}  // namespace

Result<Program> MakeProgram(const Plan& plan, const SlotMap& slots, int64_t piece_bytes,
                            TilesOf tiles_of) {
  Result<Program> program = Compiler(plan, slots, false).Run(piece_bytes);
  // In one tile both cuts are the same, and in one unit their segments are.
  if (tiles_of == TilesOf::kUnits && program && program->tiles > 1 && program->units > 1)
    program = Compiler(plan, slots, true).Run(piece_bytes);
  if (program) program->tiles_of = tiles_of;
  return program;
}

}  // namespace tutti
