#include "tutti/lower/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tutti/base/hash.h"

namespace tutti {
namespace {

constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 32;  // magic, version, length and checksum of the rest
constexpr size_t kMaxNameBytes = 256;
// Scratch slots of unknown shards take no bytes in the file.
constexpr int32_t kMaxUnnamedScratch = 1 << 20;
// An offset or count beyond it could overflow where it is added to another.
constexpr int64_t kMaxUnits = int64_t{1} << 56;

uint64_t ChecksumOf(std::string_view body) {
  Fnv1a hash;
  hash.AddBytes(body);
  return hash.value();
}

bool HasRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}
bool Reads(OpCode op) { return op != OpCode::kRecv; }
bool Writes(OpCode op) { return op != OpCode::kSend; }

// --- Writing ------------------------------------------------------------------------------------

void AppendWord(uint64_t word, std::string& to) {
  for (int i = 0; i < 8; ++i) to += static_cast<char>(word >> (8 * i) & 0xff);
}

// Seven bits a byte, the lowest first; the eighth says that more follow.
void AppendNumber(int64_t number, std::string& to) {
  auto left = static_cast<uint64_t>(number);
  for (; left >= 0x80; left >>= 7) to += static_cast<char>((left & 0x7f) | 0x80);
  to += static_cast<char>(left);
}

template <class T>
void AppendList(const std::vector<T>& list, std::string& to) {
  AppendNumber(static_cast<int64_t>(list.size()), to);
  for (const T& each : list) AppendNumber(each, to);
}

void AppendOperand(const Operand& operand, std::string& to) {
  AppendNumber(static_cast<int64_t>(operand.buffer), to);
  AppendNumber(operand.offset, to);
}

void AppendStream(const Stream& stream, std::string& to) {
  AppendNumber(int64_t{stream.send_peer} + 1, to);
  AppendNumber(int64_t{stream.recv_peer} + 1, to);
  AppendNumber(stream.channel, to);
  AppendNumber(static_cast<int64_t>(stream.instructions.size()), to);
  for (const Instruction& each : stream.instructions) {
    AppendNumber(static_cast<int64_t>(each.op), to);
    if (Reads(each.op)) AppendOperand(each.src, to);
    if (Writes(each.op)) AppendOperand(each.dst, to);
    AppendNumber(each.count, to);
    AppendNumber(each.step, to);
    AppendNumber(static_cast<int64_t>(each.after.size()), to);
    for (const Dependency& after : each.after) {
      AppendNumber(after.stream, to);
      AppendNumber(after.instruction, to);
    }
  }
}

// Added to the number of a collective that is done within groups.
constexpr int32_t kOfGroups = 16;

void AppendCollective(const Collective& collective, std::string& to) {
  AppendNumber(static_cast<int64_t>(collective.kind()) + (collective.has_groups() ? kOfGroups : 0),
               to);
  AppendNumber(collective.num_ranks(), to);
  if (collective.has_root()) AppendNumber(collective.root_position(), to);
  if (collective.kind() == CollectiveKind::kAllReduce)
    AppendNumber(collective.one_shard_each() ? 1 : 0, to);
  if (collective.has_groups()) {
    AppendNumber(collective.others() == Others::kIdle ? 1 : 0, to);
    AppendNumber(static_cast<int64_t>(collective.groups().size()), to);
    for (const Collective::Group& group : collective.groups()) {
      AppendNumber(group.size(), to);
      for (const NodeId rank : group.members) AppendNumber(rank.value, to);
    }
  }
  if (collective.kind() != CollectiveKind::kAllToAllV) return;
  AppendNumber(collective.weight_of_size(), to);
  for (const int64_t demand : collective.demand()) AppendNumber(demand, to);
}

std::string BodyOf(const Plan& plan) {
  std::string body;
  AppendCollective(plan.collective, body);
  AppendNumber(plan.units_per_shard, body);
  AppendNumber(plan.num_channels, body);
  AppendNumber(static_cast<int64_t>(plan.algorithm.size()), body);
  body += plan.algorithm;
  for (const RankPlan& rank : plan.ranks) {
    for (const int32_t slots : {rank.input_slots, rank.output_slots, rank.scratch_slots})
      AppendNumber(slots, body);
    for (const auto* weights : {&rank.input_weights, &rank.output_weights, &rank.scratch_weights})
      AppendList(*weights, body);
    AppendList(rank.scratch_shards, body);
    AppendNumber(static_cast<int64_t>(rank.streams.size()), body);
    for (const Stream& stream : rank.streams) AppendStream(stream, body);
  }
  return body;
}

// --- Reading ------------------------------------------------------------------------------------

// After a fault every read gives 0 and no list has entries, so that readers run to their end.
class PlanReader {
 public:
  explicit PlanReader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return !fault_.empty(); }
  Error error() const { return {ErrorCode::kCorrupt, "plan file: " + fault_}; }
  size_t left() const { return failed() ? 0 : bytes_.size() - at_; }

  void Fail(std::string_view what) {
    if (!failed()) fault_ = fmt::format("byte {}: {}", kHeaderBytes + at_, what);
  }

  int64_t Number(std::string_view what, int64_t least, int64_t most) {
    const size_t start = at_;
    uint64_t value = 0;
    for (int shift = 0; !failed(); shift += 7) {
      if (at_ == bytes_.size()) {
        Fail(fmt::format("it ends in {}", what));
        return 0;
      }
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift == 63 || (byte == 0 && shift > 0)) {
        Fail(fmt::format("{} is longer than it needs to be", what));
        return 0;
      }
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    const auto number = static_cast<int64_t>(value);
    if (!failed() && number >= least && number <= most) return number;
    at_ = failed() ? at_ : start;
    Fail(fmt::format("{} is {}; accepted is {} to {}", what, number, least, most));
    return 0;
  }
  int32_t Int(std::string_view what, int32_t least, int32_t most) {
    return static_cast<int32_t>(Number(what, least, most));
  }
  // A count of things that take at least `bytes` bytes each.
  size_t Count(std::string_view what, size_t bytes) {
    const int64_t most = static_cast<int64_t>(left() / bytes);
    return static_cast<size_t>(Number(what, 0, most));
  }
  std::string_view Text(size_t length) {
    if (length > left()) {
      Fail("it ends in a name");
      return {};
    }
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  std::string fault_;
};

constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxLong = std::numeric_limits<int64_t>::max();

template <class T>
std::vector<T> ReadList(PlanReader& reader, std::string_view what, int64_t most) {
  std::vector<T> list(reader.Count(what, 1));
  for (T& each : list) each = static_cast<T>(reader.Number(what, 0, most));
  return list;
}

Operand ReadOperand(PlanReader& reader) {
  Operand operand;
  operand.buffer = static_cast<Buffer>(reader.Int("a buffer", 0, 2));
  operand.offset = reader.Number("an offset", 0, kMaxUnits);
  return operand;
}

Instruction ReadInstruction(PlanReader& reader) {
  Instruction instruction;
  instruction.op = static_cast<OpCode>(reader.Int("an opcode", 0, 3));
  if (Reads(instruction.op)) instruction.src = ReadOperand(reader);
  if (Writes(instruction.op)) instruction.dst = ReadOperand(reader);
  instruction.count = reader.Number("a count", 0, kMaxUnits);
  instruction.step = reader.Int("a step", 0, kMaxInt);
  instruction.after.resize(reader.Count("the number of dependencies", 2));
  for (Dependency& after : instruction.after) {
    after.stream = reader.Int("a dependency's stream", 0, kMaxInt);
    after.instruction = reader.Int("a dependency's instruction", 0, kMaxInt);
  }
  return instruction;
}

Stream ReadStream(PlanReader& reader, int32_t num_ranks) {
  Stream stream;
  stream.send_peer = reader.Int("a peer to send to", 0, num_ranks) - 1;
  stream.recv_peer = reader.Int("a peer to receive from", 0, num_ranks) - 1;
  stream.channel = reader.Int("a channel", 0, kMaxInt);
  constexpr size_t kMinInstruction = 6;
  const size_t count = reader.Count("the number of instructions", kMinInstruction);
  for (size_t i = 0; i < count && !reader.failed(); ++i)
    stream.instructions.push_back(ReadInstruction(reader));
  return stream;
}

RankPlan ReadRank(PlanReader& reader, const Collective& collective) {
  RankPlan rank;
  rank.input_slots = reader.Int("the number of input slots", 0, collective.num_shards());
  rank.output_slots = reader.Int("the number of output slots", 0, collective.num_shards());
  rank.scratch_slots = reader.Int("the number of scratch slots", 0, kMaxInt);
  for (auto* weights : {&rank.input_weights, &rank.output_weights, &rank.scratch_weights})
    *weights = ReadList<int64_t>(reader, "a weight", kMaxLong);
  rank.scratch_shards =
      ReadList<int32_t>(reader, "a scratch slot's shard", collective.num_shards() - 1);
  const auto named = static_cast<int32_t>(rank.scratch_shards.size());
  if (named == 0 ? rank.scratch_slots > kMaxUnnamedScratch : rank.scratch_slots != named)
    reader.Fail(fmt::format("{} scratch slots name {} shards", rank.scratch_slots, named));
  constexpr size_t kMinStream = 4;
  const size_t count = reader.Count("the number of streams", kMinStream);
  for (size_t s = 0; s < count && !reader.failed(); ++s)
    rank.streams.push_back(ReadStream(reader, collective.num_ranks()));
  return rank;
}

void ReadGroups(PlanReader& reader, int32_t ranks, Collective::Options& options) {
  options.others = reader.Int("what other ranks do", 0, 1) == 1 ? Others::kIdle : Others::kForward;
  constexpr size_t kMinGroup = 3;  // its size and two ranks
  const size_t groups = reader.Count("the number of groups", kMinGroup);
  if (groups == 0 && !reader.failed()) reader.Fail("it has no group");
  for (size_t g = 0; g < groups && !reader.failed(); ++g) {
    const size_t members = reader.Count("the size of a group", 1);
    std::vector<NodeId>& group = options.groups.emplace_back();
    for (size_t i = 0; i < members && !reader.failed(); ++i)
      group.push_back(NodeId{reader.Int("a rank of a group", 0, std::max(1, ranks) - 1)});
  }
}

Result<Collective> ReadCollective(PlanReader& reader) {
  const int32_t code = reader.Int("the collective", 0, kOfGroups + 8);
  if (code > 8 && code < kOfGroups)
    reader.Fail(fmt::format("the collective is {}; accepted is 0 to 8, of groups 16 to 24", code));
  const auto kind = static_cast<CollectiveKind>(code % kOfGroups);
  if (reader.failed()) return tl::unexpected(reader.error());
  constexpr size_t kMinRank = 8;
  const auto ranks = static_cast<int32_t>(
      reader.Number("the number of ranks", 1,
                    std::min<int64_t>(kMaxInt, static_cast<int64_t>(reader.left() / kMinRank))));
  Collective::Options options;
  if (HasRoot(kind)) options.root = reader.Int("the root", 0, std::max(1, ranks) - 1);
  if (kind == CollectiveKind::kAllReduce)
    options.all_reduce_shards = reader.Int("the shards of an all-reduce", ranks == 1 ? 1 : 0, 1);
  if (code >= kOfGroups) ReadGroups(reader, ranks, options);
  if (kind == CollectiveKind::kAllToAllV && !reader.failed()) {
    options.weight_of_size = reader.Number("the weight of M", 1, kMaxLong);
    const auto entries = static_cast<size_t>(ranks) * static_cast<size_t>(ranks);
    if (entries > reader.left()) reader.Fail("it ends in the demand");
    options.demand.resize(reader.failed() ? 0 : entries);
    for (int64_t& demand : options.demand) demand = reader.Number("a demand", 0, kMaxLong);
  }
  if (reader.failed()) return tl::unexpected(reader.error());
  Result<Collective> collective = Collective::Make(kind, ranks, std::move(options));
  if (!collective)
    return MakeError(ErrorCode::kCorrupt, "plan file: " + collective.error().message);
  return collective;
}

Result<std::string_view> BodyOf(std::string_view bytes) {
  const auto corrupt = [](std::string text) {
    return MakeError(ErrorCode::kCorrupt, "plan file: " + std::move(text));
  };
  if (bytes.substr(0, kPlanFileMagic.size()) != kPlanFileMagic.substr(0, bytes.size()))
    return corrupt("it does not begin as one");
  if (bytes.size() < kHeaderBytes)
    return corrupt(fmt::format("it ends after {} bytes, within its header", bytes.size()));
  const auto word = [bytes](size_t at) {
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
    return value;
  };
  if (word(8) != kVersion)
    return corrupt(
        fmt::format("it is of version {}; this program reads version {}", word(8), kVersion));
  const std::string_view body = bytes.substr(kHeaderBytes);
  if (word(16) != body.size())
    return corrupt(fmt::format("{} bytes follow its header, which says {}", body.size(), word(16)));
  if (word(24) != ChecksumOf(body)) return corrupt("it is damaged: its checksum is another");
  return body;
}

}  // namespace

Result<std::string> PlanToFile(const Plan& plan) {
  const std::string body = BodyOf(plan);
  std::string bytes(kPlanFileMagic);
  for (const uint64_t word : {kVersion, uint64_t{body.size()}, ChecksumOf(body)})
    AppendWord(word, bytes);
  bytes += body;
  // What cannot be read must not be written.
  const Result<Plan> read = PlanFromFile(bytes);
  if (!read) return InvalidArgument("a plan that no file can hold: " + read.error().message);
  return bytes;
}

Result<Plan> PlanFromFile(std::string_view bytes) {
  const Result<std::string_view> body = BodyOf(bytes);
  if (!body) return tl::unexpected(body.error());
  PlanReader reader(*body);
  Result<Collective> collective = ReadCollective(reader);
  if (!collective) return tl::unexpected(collective.error());
  Plan plan{std::move(*collective), 1, 1, {}, {}};
  plan.units_per_shard = reader.Int("the units of a shard", 1, kMaxInt);
  plan.num_channels = reader.Int("the number of channels", 1, kMaxInt);
  plan.algorithm = reader.Text(
      static_cast<size_t>(reader.Number("the length of a name", 0, int64_t{kMaxNameBytes})));
  for (int32_t rank = 0; rank < plan.collective.num_ranks() && !reader.failed(); ++rank)
    plan.ranks.push_back(ReadRank(reader, plan.collective));
  if (!reader.failed() && reader.left() > 0)
    reader.Fail(fmt::format("{} bytes too many", reader.left()));
  if (reader.failed()) return tl::unexpected(reader.error());
  return plan;
}

}  // namespace tutti
