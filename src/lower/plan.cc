#include "tutti/lower/plan.h"

#include <fmt/format.h>

#include <iterator>

namespace tutti {
namespace {

std::string_view BufferName(Buffer buffer) {
  switch (buffer) {
    case Buffer::kInput:
      return "input";
    case Buffer::kOutput:
      return "output";
    case Buffer::kScratch:
      break;
  }
  return "scratch";
}

void AppendRange(const Operand& operand, int64_t count, std::string& text) {
  fmt::format_to(std::back_inserter(text), "{}[{}, {})", BufferName(operand.buffer), operand.offset,
                 operand.offset + count);
}

void AppendInstruction(const Stream& stream, const Instruction& instruction, std::string& text) {
  switch (instruction.op) {
    case OpCode::kSend:
      text += "send ";
      AppendRange(instruction.src, instruction.count, text);
      fmt::format_to(std::back_inserter(text), " to {}", stream.send_peer);
      break;
    case OpCode::kRecv:
      text += "recv ";
      AppendRange(instruction.dst, instruction.count, text);
      fmt::format_to(std::back_inserter(text), " from {}", stream.recv_peer);
      break;
    case OpCode::kRecvReduce:
      text += "reduce ";
      AppendRange(instruction.dst, instruction.count, text);
      text += " = ";
      AppendRange(instruction.src, instruction.count, text);
      fmt::format_to(std::back_inserter(text), " + from {}", stream.recv_peer);
      break;
    case OpCode::kCopy:
      text += "copy ";
      AppendRange(instruction.dst, instruction.count, text);
      text += " = ";
      AppendRange(instruction.src, instruction.count, text);
      break;
  }
  for (size_t i = 0; i < instruction.after.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}.{}", i == 0 ? " after " : ", ",
                   instruction.after[i].stream, instruction.after[i].instruction);
}

void AppendWeights(std::string_view name, const std::vector<int64_t>& weights, std::string& text) {
  if (weights.empty()) return;
  fmt::format_to(std::back_inserter(text), "  {} weights", name);
  for (const int64_t weight : weights) fmt::format_to(std::back_inserter(text), " {}", weight);
  text += '\n';
}

}  // namespace

std::string PlanToText(const Plan& plan) {
  std::string text = fmt::format("plan {} ranks={} units_per_shard={} channels={} algorithm={}\n",
                                 Name(plan.collective.kind()), plan.ranks.size(),
                                 plan.units_per_shard, plan.num_channels, plan.algorithm);
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankPlan& rank = plan.ranks[r];
    fmt::format_to(std::back_inserter(text), "rank {} input={} output={} scratch={}\n", r,
                   rank.input_slots, rank.output_slots, rank.scratch_slots);
    AppendWeights("input", rank.input_weights, text);
    AppendWeights("output", rank.output_weights, text);
    AppendWeights("scratch", rank.scratch_weights, text);
    for (size_t s = 0; s < rank.streams.size(); ++s) {
      const Stream& stream = rank.streams[s];
      fmt::format_to(std::back_inserter(text), "  stream {} send={} recv={} channel={}\n", s,
                     stream.send_peer, stream.recv_peer, stream.channel);
      for (size_t i = 0; i < stream.instructions.size(); ++i) {
        fmt::format_to(std::back_inserter(text), "    {}: step {} ", i,
                       stream.instructions[i].step);
        AppendInstruction(stream, stream.instructions[i], text);
        text += '\n';
      }
    }
  }
  return text;
}

}  // namespace tutti
