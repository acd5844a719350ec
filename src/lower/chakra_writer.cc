#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "moves.h"
#include "protobuf.h"
#include "tutti/lower/chakra.h"

namespace tutti {
namespace {

using lower::Move;
using lower::Moves;

// The schema's numbers.
namespace node {
constexpr uint32_t kId = 1, kName = 2, kType = 3, kCtrlDeps = 4, kDataDeps = 5, kAttribute = 10;
constexpr uint64_t kCompute = 4, kSend = 5, kReceive = 6;
}  // namespace node
namespace attribute {
constexpr uint32_t kName = 1, kInt32 = 7, kInt64 = 9, kBool = 27;
}
constexpr uint32_t kMetadataVersion = 1;
constexpr std::string_view kSchemaVersion = "0.0.4";

constexpr int32_t kNobody = -1;  // wrote it: the rank's own input

struct Message {
  int32_t connection = 0;
  int64_t start = 0, finish = 0;
  std::vector<const Move*> parts;
  int64_t bytes = 0;
  int32_t tag = 0;
};

// What travels together, in order of its start.
std::vector<Message> MessagesOf(const Schedule& schedule, const Moves& moves) {
  std::map<std::tuple<int64_t, int32_t, int64_t, size_t>, Message> grouped;
  const bool alone = schedule.kind == ScheduleKind::kTimed;
  for (size_t i = 0; i < moves.all.size(); ++i) {
    const Move& move = moves.all[i];
    Message& message = grouped[{move.start, move.connection, move.finish, alone ? i : 0}];
    message.connection = move.connection;
    message.start = move.start;
    message.finish = move.finish;
    message.parts.push_back(&move);
  }
  std::vector<Message> messages;
  std::map<std::pair<NodeId, NodeId>, int32_t> next_tag;  // parallel links share a pair's
  messages.reserve(grouped.size());
  for (auto& [key, message] : grouped) {
    message.tag = next_tag[moves.connections[static_cast<size_t>(message.connection)]]++;
    messages.push_back(std::move(message));
  }
  return messages;
}

// kInvalidArgument: too many bytes for a number of 64 bits.
Status CountBytes(const Schedule& schedule, int64_t size_bytes, std::vector<Message>& messages) {
  for (Message& message : messages) {
    Rational bytes;
    for (const Move* part : message.parts)
      bytes = bytes + schedule.collective.ShardBytes(part->shard, size_bytes) *
                          Rational(part->end - part->begin, schedule.units_per_shard);
    const std::optional<int64_t> whole = bytes.Ceil().Num64();
    if (!whole) return InvalidArgument("--size is too large: a message has more than 2^63 bytes");
    message.bytes = *whole;
  }
  return {};
}

// One rank's trace as it grows, and who wrote what the rank holds.
class Trace {
 public:
  Trace(size_t units, std::string_view name) : writers_(units, kNobody) {
    std::string metadata;
    lower::AppendBytes(metadata, kMetadataVersion, kSchemaVersion);
    lower::AppendDelimited(text_, metadata);
    name_ = name;
  }

  int32_t AddMessage(bool sends, int32_t peer, const Message& message,
                     const std::vector<int32_t>& data, const std::vector<int32_t>& control) {
    std::string attributes;
    AddAttribute(attributes, sends ? "comm_dst" : "comm_src", attribute::kInt32,
                 static_cast<uint64_t>(peer));
    AddAttribute(attributes, "comm_size", attribute::kInt64, static_cast<uint64_t>(message.bytes));
    AddAttribute(attributes, "comm_tag", attribute::kInt32, static_cast<uint64_t>(message.tag));
    return AddNode(
        sends ? node::kSend : node::kReceive,
        fmt::format("{} {} {} {}", name_, sends ? "send to" : "receive from", peer, message.tag),
        data, control, attributes);
  }

  int32_t AddReduction(const std::vector<int32_t>& data) {
    return AddNode(node::kCompute, name_ + " reduce", data, {}, {});
  }

  // Without one the simulator finds nothing to start with.
  void AddSomething() {
    if (next_ == 0) AddNode(node::kCompute, name_ + " nothing to do", {}, {}, {});
  }

  // Those who wrote the units, each once, ascending.
  void AddWriters(size_t begin, size_t end, std::vector<int32_t>& nodes) const {
    for (size_t unit = begin; unit < end; ++unit)
      if (writers_[unit] != kNobody) nodes.push_back(writers_[unit]);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  void SetWriter(size_t begin, size_t end, int32_t node) {
    std::fill(writers_.begin() + static_cast<ptrdiff_t>(begin),
              writers_.begin() + static_cast<ptrdiff_t>(end), node);
  }

  std::string&& Take() && { return std::move(text_); }

 private:
  static void AddAttribute(std::string& out, std::string_view name, uint32_t type, uint64_t value) {
    std::string one;
    lower::AppendBytes(one, attribute::kName, name);
    lower::AppendNumber(one, type, value);
    lower::AppendBytes(out, node::kAttribute, one);
  }

  int32_t AddNode(uint64_t type, std::string_view name, const std::vector<int32_t>& data,
                  const std::vector<int32_t>& control, const std::string& attributes) {
    std::string one;
    lower::AppendNumber(one, node::kId, static_cast<uint64_t>(next_));
    lower::AppendBytes(one, node::kName, name);
    lower::AppendNumber(one, node::kType, type);
    lower::AppendNumbers(one, node::kCtrlDeps, control);
    lower::AppendNumbers(one, node::kDataDeps, data);
    AddAttribute(one, "is_cpu_op", attribute::kBool, 0);
    one += attributes;
    lower::AppendDelimited(text_, one);
    return next_++;
  }

  std::string text_, name_;
  std::vector<int32_t> writers_;  // by unit of all shards
  int32_t next_ = 0;
};

class ChakraWriter {
 public:
  ChakraWriter(const Schedule& schedule, const Moves& moves, const ChakraOptions& options)
      : schedule_(schedule), moves_(moves), options_(options) {
    const size_t units = static_cast<size_t>(schedule.collective.num_shards()) *
                         static_cast<size_t>(schedule.units_per_shard);
    traces_.assign(static_cast<size_t>(schedule.collective.num_ranks()),
                   Trace(units, schedule.algorithm.empty() ? "schedule" : schedule.algorithm));
    last_send_.assign(moves.connections.size(), kNobody);
  }

  // In one step all leave before any arrives; at one time all arrive before any leaves.
  std::vector<std::string> Write(const std::vector<Message>& messages) && {
    const bool timed = schedule_.kind == ScheduleKind::kTimed;
    std::vector<std::tuple<int64_t, bool, size_t, bool>> events;
    for (size_t i = 0; i < messages.size(); ++i) {
      events.emplace_back(messages[i].start, timed, i, true);
      events.emplace_back(messages[i].finish, !timed, i, false);
    }
    std::sort(events.begin(), events.end());
    for (const auto& [time, second, i, leaves] : events)
      leaves ? Send(messages[i]) : Receive(messages[i]);
    std::vector<std::string> files;
    for (Trace& trace : traces_) {
      trace.AddSomething();
      files.push_back(std::move(trace).Take());
    }
    return files;
  }

 private:
  std::pair<size_t, size_t> UnitsOf(const Move& move) const {
    const size_t first = move.shard.index() * static_cast<size_t>(schedule_.units_per_shard);
    return {first + static_cast<size_t>(move.begin), first + static_cast<size_t>(move.end)};
  }

  void Send(const Message& message) {
    const auto& [from, to] = moves_.connections[static_cast<size_t>(message.connection)];
    Trace& trace = traces_[from.index()];
    std::vector<int32_t> data, control;
    for (const Move* part : message.parts) {
      const auto [begin, end] = UnitsOf(*part);
      trace.AddWriters(begin, end, data);
    }
    int32_t& last = last_send_[static_cast<size_t>(message.connection)];
    if (options_.in_order && last != kNobody) control.push_back(last);
    last = trace.AddMessage(true, to.value, message, data, control);
  }

  void Receive(const Message& message) {
    const auto& [from, to] = moves_.connections[static_cast<size_t>(message.connection)];
    Trace& trace = traces_[to.index()];
    const int32_t received = trace.AddMessage(false, from.value, message, {}, {});
    std::vector<int32_t> reads{received};
    for (const Move* part : message.parts) {
      const auto [begin, end] = UnitsOf(*part);
      if (part->op == TransferOp::kReduce) trace.AddWriters(begin, end, reads);
    }
    const bool reduces = std::any_of(message.parts.begin(), message.parts.end(),
                                     [](const Move* m) { return m->op == TransferOp::kReduce; });
    const int32_t reduction = reduces ? trace.AddReduction(reads) : received;
    for (const Move* part : message.parts) {
      const auto [begin, end] = UnitsOf(*part);
      trace.SetWriter(begin, end, part->op == TransferOp::kReduce ? reduction : received);
    }
  }

  const Schedule& schedule_;
  const Moves& moves_;
  const ChakraOptions& options_;
  std::vector<Trace> traces_;
  std::vector<int32_t> last_send_;  // by connection
};

}  // namespace

Result<std::vector<std::string>> ToChakra(const Topology& topology, const Schedule& schedule,
                                          const ChakraOptions& options) {
  if (options.size_bytes < 1) return InvalidArgument("--size must be at least 1 byte");
  constexpr int64_t kMaxChakraCells = int64_t{1} << 28;
  const int64_t cells = int64_t{schedule.collective.num_shards()} * schedule.units_per_shard;
  if (cells > kMaxChakraCells / std::max(1, schedule.collective.num_ranks()))
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} shards of {} units at each of {} ranks are too many to trace",
                                 schedule.collective.num_shards(), schedule.units_per_shard,
                                 schedule.collective.num_ranks()));
  const Result<Moves> moves = lower::MovesOf(topology, schedule);
  if (!moves) return tl::unexpected(moves.error());
  std::vector<Message> messages = MessagesOf(schedule, *moves);
  if (const Status counted = CountBytes(schedule, options.size_bytes, messages); !counted)
    return tl::unexpected(counted.error());
  return ChakraWriter(schedule, *moves, options).Write(messages);
}

}  // namespace tutti
