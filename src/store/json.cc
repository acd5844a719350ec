#include "json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "corrupt.h"
#include "json_fields.h"
#include "symmetric_file.h"
#include "tutti/base/file_kind.h"
#include "tutti/base/json_text.h"
#include "tutti/sched/structure.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

using Json = nlohmann::json;

constexpr int64_t kJsonVersion = 1;
constexpr int64_t kSymmetricJsonVersion = 2;
constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxDepth = 32;

// --- Reading: transfers go straight into records, the rest (small) into a tree

enum Field { kStep, kStartPs, kShard, kFrom, kTo, kLink, kBegin, kEnd, kOp, kNumFields };
constexpr std::array<std::string_view, kNumFields> kFieldNames{
    "step", "start_ps", "shard", "from", "to", "link", "begin", "end", "op"};

// One transfer as written. Its link may be meant by its ends, so it is resolved in the end.
struct Record {
  int64_t start_ps = 0;
  std::array<int32_t, kNumFields> value{};
  uint32_t present = 0;  // bit f: field f was given

  bool has(Field field) const { return ((present >> field) & 1u) != 0; }
  int32_t operator[](Field field) const { return value[field]; }
};

class Parser : public nlohmann::json_sax<Json> {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json& root() { return root_; }
  const std::vector<Record>& records() const { return records_; }
  bool has_transfers() const { return has_transfers_; }
  const std::string& fault() const { return fault_; }

  bool null() override { return Value(Json()); }
  bool boolean(bool value) override { return Value(Json(value)); }
  bool number_integer(int64_t value) override {
    return where_ == kTree ? Value(Json(value)) : Number(value);
  }
  bool number_unsigned(uint64_t value) override {
    if (where_ == kTree) return Value(Json(value));
    return value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
               ? WrongType()
               : Number(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string&) override { return Value(Json(value)); }
  bool string(std::string& value) override {
    if (where_ == kTree) return Value(Json(std::move(value)));
    const bool is_op = value == "copy" || value == "reduce";
    if (where_ != kTransfer || field_ != kOp || !is_op) return WrongType();
    return Set(value == "reduce" ? 1 : 0);
  }
  bool binary(Json::binary_t&) override { return Fail("binary values are not accepted"); }

  bool start_object(size_t) override {
    if (where_ == kTransfer) return WrongType();
    if (where_ == kTree) return Open(Json::object());
    where_ = kTransfer;
    record_ = Record();
    return true;
  }
  bool end_object() override {
    if (where_ != kTransfer) return Close();
    where_ = kTransfers;
    records_.push_back(record_);
    return true;
  }
  bool start_array(size_t) override {
    if (where_ == kTree && open_.size() == 1 && key_ == "transfers") {
      if (has_transfers_) return Fail("the key 'transfers' is there twice");
      has_transfers_ = true;
      where_ = kTransfers;
      return true;
    }
    return where_ == kTree ? Open(Json::array()) : WrongType();
  }
  bool end_array() override {
    if (where_ == kTree) return Close();
    where_ = kTree;
    return true;
  }
  bool key(std::string& name) override {
    if (where_ == kTree) {
      if (open_.back()->contains(name))
        return Fail(fmt::format("the key '{}' is there twice", name));
      key_ = std::move(name);
      return true;
    }
    const auto at = std::find(kFieldNames.begin(), kFieldNames.end(), name);
    if (at == kFieldNames.end())
      return Fail(fmt::format("transfers[{}]: unknown field '{}'; accepted are {}", records_.size(),
                              name, fmt::join(kFieldNames, ", ")));
    field_ = static_cast<Field>(at - kFieldNames.begin());
    if (record_.has(field_))
      return Fail(fmt::format("transfers[{}].{} is there twice", records_.size(), name));
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    const std::string_view before = text_.substr(0, position);
    const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
    return Fail(fmt::format("syntax error at line {}, column {}",
                            1 + std::count(before.begin(), before.end(), '\n'),
                            before.size() - line_start));
  }

 private:
  enum Where { kTree, kTransfers, kTransfer };

  bool Fail(std::string message) {
    fault_ = std::move(message);
    return false;
  }
  bool WrongType() {
    if (where_ == kTransfers)
      return Fail(fmt::format("transfers[{}] must be an object", records_.size()));
    return Fail(fmt::format("transfers[{}].{} must be {}", records_.size(), kFieldNames[field_],
                            field_ == kOp ? "\"copy\" or \"reduce\"" : "a whole number in range"));
  }

  // Puts a value into the innermost open container of the tree; nullptr where that fails.
  Json* Insert(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (!parent.is_array()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool Value(Json value) {
    if (where_ != kTree) return WrongType();
    Insert(std::move(value));
    return true;
  }
  bool Open(Json container) {
    if (open_.size() == kMaxDepth)
      return Fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    open_.push_back(Insert(std::move(container)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  bool Number(int64_t value) {
    if (where_ != kTransfer || field_ == kOp) return WrongType();
    if (field_ == kStartPs) {
      record_.start_ps = value;
      return Set(0);
    }
    if (value < -kMaxInt32 || value > kMaxInt32) return WrongType();
    return Set(static_cast<int32_t>(value));
  }
  bool Set(int32_t value) {
    record_.value[field_] = value;
    record_.present |= 1u << field_;
    return true;
  }

  std::string_view text_;
  Where where_ = kTree;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  bool has_transfers_ = false;
  std::vector<Record> records_;
  Record record_;
  Field field_ = kStep;
  std::string fault_;
};

// --- The tree

Result<Collective> ReadCollective(const Json& json) {
  Fields fields(json, "collective");
  const std::string kind_name = fields.String("kind");
  const auto num_ranks = static_cast<int32_t>(fields.Integer("ranks", 1, kMaxInt32));
  if (!fields.ok()) return Corrupt(fields.fault());
  const Result<CollectiveKind> kind = ParseCollectiveKind(kind_name);
  if (!kind) return Corrupt("collective.kind: " + kind.error().message);
  std::vector<std::string_view> keys{"kind", "ranks", "groups", "others"};
  Collective::Options options;
  if (fields.has("groups")) {
    Result<std::vector<std::vector<NodeId>>> groups =
        ParseGroups(fields.Get("groups"), "collective.groups", num_ranks);
    if (!groups) return tl::unexpected(groups.error());
    options.groups = *std::move(groups);
  }
  if (fields.has("others")) {
    const std::string others = fields.String("others");
    if (fields.ok() && others != "idle")
      fields.Fault(fmt::format("has others '{}', wanted \"idle\" or no such key", others));
    options.others = Others::kIdle;
  }
  switch (*kind) {
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      keys.push_back("root");
      if (fields.has("root"))
        options.root = static_cast<int32_t>(fields.Integer("root", 0, kMaxInt32));
      break;
    case CollectiveKind::kAllReduce:
      keys.push_back("shards");
      if (fields.has("shards"))
        options.all_reduce_shards = static_cast<int32_t>(fields.Integer("shards", 1, kMaxInt32));
      break;
    case CollectiveKind::kAllToAllV: {
      keys.insert(keys.end(), {"demand", "weight_of_size"});
      if (fields.has("weight_of_size"))
        options.weight_of_size =
            fields.Integer("weight_of_size", 1, std::numeric_limits<int64_t>::max());
      const Json& rows = fields.Get("demand");
      if (!fields.ok()) return Corrupt(fields.fault());
      Result<std::vector<int64_t>> demand =
          ParseDemand(rows, "collective.demand", static_cast<size_t>(num_ranks));
      if (!demand) return tl::unexpected(demand.error());
      options.demand = std::move(*demand);
      break;
    }
    default:
      break;
  }
  fields.Accept(keys);
  if (!fields.ok()) return Corrupt(fields.fault());
  Result<Collective> collective = Collective::Make(*kind, num_ranks, std::move(options));
  if (!collective) return Corrupt("collective: " + collective.error().message);
  return collective;
}

Status CheckVersion(Fields& fields) {
  if (!fields.ok()) return Corrupt(fields.fault());
  if (!fields.has("format") || fields.Get("format") != kScheduleFormat)
    return Corrupt(fmt::format("this is no schedule: \"format\" must be \"{}\"", kScheduleFormat));
  const int64_t version = fields.Integer("version", 1, std::numeric_limits<int64_t>::max());
  if (fields.ok() && version != kJsonVersion)
    return Corrupt(
        fmt::format("version {} of the JSON schedule format is unknown; this program "
                    "reads version {}",
                    version, kJsonVersion));
  return fields.ok() ? Status() : Corrupt(fields.fault());
}

// The keys `algorithm` and `seed`.
void ReadOrigin(Fields& fields, Schedule& header) {
  if (fields.has("algorithm")) header.algorithm = fields.String("algorithm");
  if (!fields.has("seed")) return;
  const Json& seed = fields.Get("seed");
  if (!seed.is_number_unsigned()) fields.Fault("has a seed that is no number 0 .. 2^64 - 1");
  if (fields.ok()) header.seed = seed.get<uint64_t>();
}

Result<ScheduleFile> ReadHeader(const Json& root) {
  Fields fields(root, "");
  if (const Status version = CheckVersion(fields); !version) return tl::unexpected(version.error());
  Result<Collective> collective = ReadCollective(fields.Get("collective"));
  if (fields.ok() && !collective) return tl::unexpected(collective.error());
  const bool timed = fields.OneOf("kind", {"step", "timed"}) == 1;
  const auto units = static_cast<int32_t>(fields.Integer("units_per_shard", 1, kMaxInt32));
  const Json& topology_json = fields.Get("topology");
  if (!fields.ok()) return Corrupt(fields.fault());
  Result<Topology> topology = TopologyFromJson(topology_json.dump());
  if (!topology) return Corrupt("topology: " + topology.error().message);

  Schedule header{.collective = std::move(*collective)};
  header.kind = timed ? ScheduleKind::kTimed : ScheduleKind::kStep;
  header.units_per_shard = units;
  if (timed) {
    header.size_bytes = fields.Integer("size_bytes", 0, std::numeric_limits<int64_t>::max());
    header.link_model = fields.OneOf("link_model", {"held", "pipelined"}) == 1
                            ? LinkModel::kPipelined
                            : LinkModel::kHeld;
  } else {
    header.num_steps = static_cast<int32_t>(fields.Integer("steps", 0, kMaxInt32));
  }
  ReadOrigin(fields, header);
  header.topology_fingerprint = topology->Fingerprint();
  if (fields.has("topology_fingerprint")) {
    const Result<uint64_t> given = ParseFingerprint(fields.String("topology_fingerprint"));
    if (fields.ok() && !given) return tl::unexpected(given.error());
    if (given) header.topology_fingerprint = *given;
  }
  std::vector<std::string_view> keys{"format",   "version",         "algorithm",
                                     "seed",     "collective",      "kind",
                                     "topology", "units_per_shard", "topology_fingerprint"};
  if (timed) keys.insert(keys.end(), {"size_bytes", "link_model"});
  if (!timed) keys.push_back("steps");
  fields.Accept(keys);
  if (!fields.ok()) return Corrupt(fields.fault());
  if (const Status fine = CheckHeader(*topology, header); !fine)
    return Corrupt(fine.error().message);
  return ScheduleFile{std::move(*topology), std::move(header)};
}

// --- The header of a symmetric schedule

Result<LinkSpec> ReadSpec(Fields& fields) {
  LinkSpec spec;
  spec.bandwidth = fields.Integer("bandwidth_Bps", 1, std::numeric_limits<int64_t>::max());
  spec.alpha_ps = fields.Integer("alpha_ps", 0, std::numeric_limits<int64_t>::max());
  if (!fields.ok()) return Corrupt(fields.fault());
  return spec;
}

const Json& ListAt(Fields& fields, const char* key) {
  static const Json kNone = Json::array();
  if (!fields.has(key)) return kNone;
  const Json& list = fields.Get(key);
  if (!list.is_array()) fields.Fault(fmt::format("has a '{}' that is no list", key));
  return list.is_array() ? list : kNone;
}

// What describes the network: `ranks` of it have the ports of rank 0.
Status ReadNetwork(const Json& json, int32_t num_ranks, SymmetricHeader& header) {
  Fields fields(json, "network");
  // Nobody edits a file of checksums by hand: what it says of its network held when it was written.
  if (fields.has("name")) header.origin.name = fields.String("name");
  header.origin.expression =
      fields.has("expression") ? fields.String("expression") : header.origin.name;
  if (!ParseExpressionTree(header.origin.expression)) header.origin.expression.clear();
  if (fields.has("host_bandwidth_Bps"))
    header.host_bandwidth =
        fields.Integer("host_bandwidth_Bps", 1, std::numeric_limits<int64_t>::max());
  if (fields.has("original")) {
    Result<Topology> original = TopologyFromJson(fields.Get("original").dump());
    if (!original) return Within("network.original", original.error());
    header.origin.original = std::make_shared<const Topology>(*std::move(original));
  }
  for (const Json& item : ListAt(fields, "ports")) {
    Fields port(item, "network.ports");
    SymmetricHeader::Port read;
    read.head = static_cast<int32_t>(port.Integer("to", 0, num_ranks - 1));
    const Result<LinkSpec> spec = ReadSpec(port);
    port.Accept({"to", "bandwidth_Bps", "alpha_ps"});
    if (!spec || !port.ok()) return Corrupt(port.fault());
    read.spec = *spec;
    header.ports.push_back(read);
  }
  for (const Json& item : ListAt(fields, "self_loops")) {
    Fields loop(item, "network.self_loops");
    const Result<LinkSpec> spec = ReadSpec(loop);
    loop.Accept({"bandwidth_Bps", "alpha_ps"});
    if (!spec || !loop.ok()) return Corrupt(loop.fault());
    header.loops.push_back(*spec);
  }
  for (const Json& name : ListAt(fields, "node_names")) {
    if (!name.is_string()) return Corrupt("network.node_names holds what is no string");
    header.node_names.push_back(name.get<std::string>());
  }
  if (fields.has("grid")) {
    Fields grid(fields.Get("grid"), "network.grid");
    header.origin.grid.emplace();
    for (const Json& dim : ListAt(grid, "dims")) {
      if (!Fields::IsWithin(dim, 1, num_ranks))
        return Corrupt("network.grid has a wrong dimension");
      header.origin.grid->dims.push_back(dim.get<int32_t>());
    }
    const Json& wraps = grid.Get("wraps");
    if (grid.ok() && !wraps.is_boolean()) grid.Fault("has a wraps that is neither true nor false");
    grid.Accept({"dims", "wraps"});
    if (!grid.ok()) return Corrupt(grid.fault());
    header.origin.grid->wraps = wraps.get<bool>();
  }
  fields.Accept({"name", "expression", "ports", "self_loops", "node_names", "grid",
                 "host_bandwidth_Bps", "original"});
  if (!fields.ok()) return Corrupt(fields.fault());
  return {};
}

Result<SymmetricHeader> ReadSymmetricHeader(const Json& root) {
  Fields fields(root, "");
  fields.OneOf("format", {kSymmetricScheduleFormat});
  fields.Integer("version", kSymmetricJsonVersion, kSymmetricJsonVersion);
  Result<Collective> collective = ReadCollective(fields.Get("collective"));
  if (fields.ok() && !collective) return tl::unexpected(collective.error());
  if (fields.ok() && !HasSymmetricForm(*collective))
    return Corrupt(fmt::format("collective: {} has no symmetric form", Name(collective->kind())));
  const auto units = static_cast<int32_t>(fields.Integer("units_per_shard", 1, kMaxInt32));
  const auto steps = static_cast<int32_t>(fields.Integer("steps", 0, kMaxInt32));
  const auto generators = static_cast<int32_t>(fields.Integer("generators", 0, kMaxInt32));
  const Result<uint64_t> fingerprint = ParseFingerprint(fields.String("topology_fingerprint"));
  const Json& network = fields.Get("network");
  fields.Accept({"format", "version", "algorithm", "seed", "collective", "units_per_shard", "steps",
                 "generators", "topology_fingerprint", "network"});
  if (!fields.ok()) return Corrupt(fields.fault());
  if (!fingerprint) return tl::unexpected(fingerprint.error());
  SymmetricHeader header{Schedule{.collective = std::move(*collective)}, {}, 0, {}, {}, {}, {}};
  header.root.units_per_shard = units;
  header.root.num_steps = steps;
  header.root.topology_fingerprint = *fingerprint;
  header.num_generators = generators;
  ReadOrigin(fields, header.root);
  if (!fields.ok()) return Corrupt(fields.fault());
  const int32_t num_ranks = header.root.collective.num_ranks();
  if (num_ranks > kMaxNodes)
    return Corrupt(fmt::format("{} ranks; at most {} are accepted", num_ranks, kMaxNodes));
  if (const Status read = ReadNetwork(network, num_ranks, header); !read)
    return tl::unexpected(read.error());
  const auto ports = static_cast<int64_t>(header.ports.size() + header.loops.size());
  if (ports > kMaxLinks / num_ranks)
    return Corrupt(
        fmt::format("{} ports of {} ranks are more than {} links", ports, num_ranks, kMaxLinks));
  return header;
}

// --- Transfers

// The link that a record means, or what is wrong.
Result<LinkId> ResolveLink(const Topology& topology, const Record& record) {
  for (Field field : {kFrom, kTo})
    if (record.has(field) && (record[field] < 0 || record[field] >= topology.num_nodes()))
      return Corrupt(fmt::format("{} {} is outside [0, {})", kFieldNames[field], record[field],
                                 topology.num_nodes()));
  if (record.has(kLink)) {
    const LinkId link{record[kLink]};
    if (link.value < 0 || link.value >= topology.num_links())
      return Corrupt(fmt::format("link {} is outside [0, {})", link.value, topology.num_links()));
    const int32_t tail = topology.tail(link).value, head = topology.head(link).value;
    if ((record.has(kFrom) && record[kFrom] != tail) || (record.has(kTo) && record[kTo] != head))
      return Corrupt(fmt::format("link {} leads from {} to {}, not from {} to {}", link.value, tail,
                                 head, record.has(kFrom) ? record[kFrom] : tail,
                                 record.has(kTo) ? record[kTo] : head));
    return link;
  }
  if (!record.has(kFrom) || !record.has(kTo))
    return Corrupt("it must name its link, or both its ends as from and to");
  std::optional<LinkId> found;
  for (LinkId link : topology.OutLinks(NodeId{record[kFrom]})) {
    if (topology.head(link).value != record[kTo]) continue;
    if (found)
      return Corrupt(fmt::format("both link {} and link {} lead from {} to {}; name one",
                                 found->value, link.value, record[kFrom], record[kTo]));
    found = link;
  }
  if (!found)
    return Corrupt(fmt::format("no link leads from {} to {}", record[kFrom], record[kTo]));
  return *found;
}

Status AppendTransfers(ScheduleFile& file, const std::vector<Record>& records) {
  Schedule& schedule = file.schedule;
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  const Field time = timed ? kStartPs : kStep;
  TransferChecker checker(file.topology, schedule);
  schedule.transfers.reserve(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    for (Field needed : {kShard, time})
      if (!record.has(needed))
        return Corrupt(fmt::format("transfers[{}] lacks the field '{}'", i, kFieldNames[needed]));
    if (record.has(timed ? kStep : kStartPs))
      return Corrupt(fmt::format("transfers[{}]: a {} schedule has no {}", i,
                                 timed ? "timed" : "step", timed ? "step" : "start_ps"));
    const Result<LinkId> link = ResolveLink(file.topology, record);
    if (!link) return Corrupt(fmt::format("transfers[{}]: {}", i, link.error().message));
    const Transfer transfer{
        ShardId{record[kShard]}, *link,
        record[kBegin],          record.has(kEnd) ? record[kEnd] : schedule.units_per_shard,
        record[kStep],           record[kOp] == 1 ? TransferOp::kReduce : TransferOp::kCopy};
    if (!checker.Accept(transfer, record.start_ps))
      return Corrupt(
          fmt::format("transfers[{}]: {}", i, checker.Explain(transfer, record.start_ps)));
    schedule.transfers.push_back(transfer);
    if (timed) schedule.start_ps.push_back(record.start_ps);
  }
  return {};
}

Result<ScheduleFile> Read(std::string_view text, bool with_transfers) {
  Parser parser(text);
  if (!Json::sax_parse(text.begin(), text.end(), &parser)) return Corrupt(parser.fault());
  Result<ScheduleFile> file = ReadHeader(parser.root());
  if (!file) return file;
  if (parser.has_transfers() != with_transfers)
    return Corrupt(with_transfers ? "the file lacks the key 'transfers'"
                                  : "the header must not hold transfers");
  if (const Status appended = AppendTransfers(*file, parser.records()); !appended)
    return tl::unexpected(appended.error());
  return file;
}

// --- Writing

std::string CollectiveToJson(const Collective& collective) {
  std::string text = fmt::format("{{\"kind\": \"{}\", \"ranks\": {}", Name(collective.kind()),
                                 collective.num_ranks());
  if (collective.has_root()) text += fmt::format(", \"root\": {}", collective.root_position());
  if (collective.kind() == CollectiveKind::kAllReduce &&
      (!collective.has_groups() || collective.one_shard_each()))
    text += fmt::format(", \"shards\": {}", collective.has_groups() ? 1 : collective.num_shards());
  if (collective.has_groups()) {
    std::vector<std::vector<NodeId>> groups;
    for (const Collective::Group& group : collective.groups()) groups.push_back(group.members);
    text += ", " + GroupsToJson(groups);
    if (collective.others() == Others::kIdle) text += ", \"others\": \"idle\"";
  }
  if (collective.kind() == CollectiveKind::kAllToAllV) {
    text += fmt::format(", \"weight_of_size\": {}, \"demand\": [", collective.weight_of_size());
    const auto n = static_cast<size_t>(collective.num_ranks());
    for (size_t s = 0; s < n; ++s) {
      const int64_t* row = collective.demand().data() + s * n;
      text += fmt::format("{}\n  [{}]", s == 0 ? "" : ",", fmt::join(row, row + n, ", "));
    }
    text += "]";
  }
  return text + "}";
}

// The object of the header, still open.
std::string OpenHeader(const Topology& topology, const Schedule& header) {
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"algorithm\": {},\n\"seed\": {},\n"
      "\"collective\": {},\n",
      kScheduleFormat, kJsonVersion, QuotedJson(header.algorithm), header.seed,
      CollectiveToJson(header.collective));
  if (header.kind == ScheduleKind::kTimed) {
    text += fmt::format("\"kind\": \"timed\",\n\"size_bytes\": {},\n\"link_model\": \"{}\",\n",
                        header.size_bytes,
                        header.link_model == LinkModel::kHeld ? "held" : "pipelined");
  } else {
    text += fmt::format("\"kind\": \"step\",\n\"steps\": {},\n", header.num_steps);
  }
  std::string topology_text = TopologyToJson(topology);
  topology_text.erase(topology_text.find_last_not_of(" \n") + 1);
  text += fmt::format(
      "\"units_per_shard\": {},\n\"topology_fingerprint\": \"{:016x}\",\n\"topology\": {}",
      header.units_per_shard, header.topology_fingerprint, topology_text);
  return text;
}

std::string SpecToJson(const LinkSpec& spec) {
  return fmt::format("\"bandwidth_Bps\": {}, \"alpha_ps\": {}", spec.bandwidth, spec.alpha_ps);
}

}  // namespace

std::string SymmetricHeaderToJson(const SymmetricHeader& header) {
  const Schedule& root = header.root;
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"algorithm\": {},\n\"seed\": {},\n"
      "\"collective\": {},\n\"steps\": {},\n\"units_per_shard\": {},\n\"generators\": {},\n"
      "\"topology_fingerprint\": \"{:016x}\",\n\"network\": {{\"name\": {},\n\"ports\": [",
      kSymmetricScheduleFormat, kSymmetricJsonVersion, QuotedJson(root.algorithm), root.seed,
      CollectiveToJson(root.collective), root.num_steps, root.units_per_shard,
      header.num_generators, root.topology_fingerprint, QuotedJson(header.origin.name));
  for (size_t i = 0; i < header.ports.size(); ++i)
    text += fmt::format("{}{{\"to\": {}, {}}}", i == 0 ? "" : ", ", header.ports[i].head,
                        SpecToJson(header.ports[i].spec));
  text += "]";
  if (!header.loops.empty()) {
    text += ",\n\"self_loops\": [";
    for (size_t i = 0; i < header.loops.size(); ++i)
      text += fmt::format("{}{{{}}}", i == 0 ? "" : ", ", SpecToJson(header.loops[i]));
    text += "]";
  }
  const TopologyOrigin& origin = header.origin;
  if (origin.expression != origin.name)
    text += ",\n\"expression\": " + QuotedJson(origin.expression);
  if (origin.grid)
    text += fmt::format(",\n\"grid\": {{\"dims\": [{}], \"wraps\": {}}}",
                        fmt::join(origin.grid->dims, ", "), origin.grid->wraps);
  if (header.host_bandwidth)
    text += fmt::format(",\n\"host_bandwidth_Bps\": {}", *header.host_bandwidth);
  if (origin.original) text += ",\n\"original\": " + TopologyToJson(*origin.original);
  if (!header.node_names.empty()) {
    text += ",\n\"node_names\": [";
    for (size_t i = 0; i < header.node_names.size(); ++i)
      text += (i == 0 ? "" : ", ") + QuotedJson(header.node_names[i]);
    text += "]";
  }
  return text + "}\n}\n";
}

Result<nlohmann::json> ParseJson(std::string_view text) {
  Parser parser(text);
  if (!Json::sax_parse(text.begin(), text.end(), &parser)) return Corrupt(parser.fault());
  if (parser.has_transfers()) return Corrupt("the key 'transfers' is of schedules only");
  return std::move(parser.root());
}

Result<std::vector<int64_t>> ParseDemand(const Json& rows, std::string_view where,
                                         size_t num_ranks) {
  std::vector<int64_t> demand;
  const std::string shape =
      fmt::format("{} must be {} rows of {} whole numbers", where, num_ranks, num_ranks);
  if (!rows.is_array() || rows.size() != num_ranks) return Corrupt(shape);
  for (const Json& row : rows) {
    if (!row.is_array() || row.size() != num_ranks) return Corrupt(shape);
    for (const Json& entry : row) {
      if (!Fields::IsWithin(entry, 0, std::numeric_limits<int64_t>::max())) return Corrupt(shape);
      demand.push_back(entry.get<int64_t>());
    }
  }
  return demand;
}

Result<std::vector<std::vector<NodeId>>> ParseGroups(const Json& lists, std::string_view where,
                                                     int32_t num_ranks) {
  const std::string shape =
      fmt::format("{} must be lists of at least 2 ranks of 0 .. {} each", where, num_ranks - 1);
  std::vector<std::vector<NodeId>> groups;
  if (!lists.is_array() || lists.empty()) return Corrupt(shape);
  for (const Json& list : lists) {
    if (!list.is_array() || list.size() < 2) return Corrupt(shape);
    std::vector<NodeId>& members = groups.emplace_back();
    for (const Json& rank : list) {
      if (!Fields::IsWithin(rank, 0, num_ranks - 1)) return Corrupt(shape);
      members.push_back(NodeId{rank.get<int32_t>()});
    }
  }
  return groups;
}

std::string GroupsToJson(const std::vector<std::vector<NodeId>>& groups) {
  std::string text = "\"groups\": [";
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<int32_t> members;
    for (const NodeId rank : groups[g]) members.push_back(rank.value);
    text += fmt::format("{}[{}]", g == 0 ? "" : ", ", fmt::join(members, ", "));
  }
  return text + "]";
}

Result<uint64_t> ParseFingerprint(const std::string& text) {
  uint64_t value = 0;
  const bool hex = text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos;
  if (!hex) return Corrupt("topology_fingerprint must be 16 hexadecimal digits, got " + text);
  for (char c : text) value = value * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

Result<SymmetricHeader> SymmetricHeaderFromJson(std::string_view text) {
  Parser parser(text);
  if (!Json::sax_parse(text.begin(), text.end(), &parser)) return Corrupt(parser.fault());
  if (parser.has_transfers()) return Corrupt("the header must not hold transfers");
  return ReadSymmetricHeader(parser.root());
}

std::string HeaderToJson(const Topology& topology, const Schedule& header) {
  return OpenHeader(topology, header) + "\n}\n";
}

Result<ScheduleFile> HeaderFromJson(std::string_view text) { return Read(text, false); }

std::string ScheduleToJson(const Topology& topology, const Schedule& schedule) {
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  std::string text = OpenHeader(topology, schedule) + ",\n\"transfers\": [";
  const auto out = std::back_inserter(text);
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    text += i == 0 ? "\n" : ",\n";
    if (timed) {
      fmt::format_to(out, "{{\"start_ps\": {}", schedule.start_ps[i]);
    } else {
      fmt::format_to(out, "{{\"step\": {}", transfer.step);
    }
    fmt::format_to(
        out,
        ", \"shard\": {}, \"from\": {}, \"to\": {}, \"link\": {}, \"begin\": {}, \"end\": {}, "
        "\"op\": \"{}\"}}",
        transfer.shard.value, topology.tail(transfer.link).value,
        topology.head(transfer.link).value, transfer.link.value, transfer.begin, transfer.end,
        transfer.op == TransferOp::kCopy ? "copy" : "reduce");
  }
  return text + "\n]\n}\n";
}

Result<ScheduleFile> ScheduleFromJson(const std::string& text) { return Read(text, true); }

}  // namespace tutti
