#include "tutti/topo/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "claims.h"
#include "tutti/base/file.h"
#include "tutti/base/file_kind.h"
#include "tutti/base/json_text.h"
#include "tutti/base/units.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;
// Written, and wanted, where there are host limits: older readers then say that they know none.
constexpr int64_t kVersionWithHosts = 2;
// Where there is an original, or a name beside the expression.
constexpr int64_t kVersionWithOrigin = 3;
// Where switches reduce.
constexpr int64_t kVersionWithReducing = 4;

// --- Writing -------------------------------------------------------------------------------------

bool HasDefaultNames(const Topology& topology) {
  for (NodeId node : topology.Nodes())
    if (topology.node_name(node) != std::to_string(node.value)) return false;
  return true;
}

// Whether reading `cables` as duplex entries in their order gives the links of `topology` back: the
// reader numbers links by tail, ties in the order of the file.
bool DuplexKeepsOrder(const Topology& topology, const std::vector<Cable>& cables) {
  std::vector<int32_t> next;
  for (NodeId node : topology.Nodes()) {
    const IdRange<LinkId> out = topology.OutLinks(node);
    next.push_back(out.empty() ? 0 : out[0].value);
  }
  for (const Cable& cable : cables) {
    if (!cable.back || topology.spec(cable.there) != topology.spec(*cable.back)) return false;
    for (LinkId link : {cable.there, *cable.back})
      if (next[topology.tail(link).index()]++ != link.value) return false;
  }
  return true;
}

std::optional<int64_t> CommonHostLimit(const Topology& topology) {
  const auto first = topology.host_bandwidth(NodeId{0});
  for (NodeId rank : topology.Ranks())
    if (topology.host_bandwidth(rank) != first) return std::nullopt;
  return first;
}

class Writer {
 public:
  explicit Writer(const Topology& topology)
      : topology_(topology),
        default_names_(HasDefaultNames(topology)),
        common_host_(CommonHostLimit(topology)),
        homogeneous_(topology.num_links() > 0 && topology.is_homogeneous()) {}

  std::string Write(const std::string& source) {
    const std::string& expression = topology_.expression();
    const bool two_names = !expression.empty() && expression != topology_.name();
    const int64_t version = topology_.has_reducing_switches()   ? kVersionWithReducing
                            : two_names || topology_.original() ? kVersionWithOrigin
                            : topology_.has_host_limits()       ? kVersionWithHosts
                                                                : kVersion;
    text_ = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {}", kTopologyFormat, version);
    if (!topology_.name().empty()) text_ += ",\n  \"name\": " + QuotedJson(topology_.name());
    if (two_names) text_ += ",\n  \"expression\": " + QuotedJson(expression);
    if (!source.empty()) text_ += ",\n  \"source\": " + QuotedJson(source);
    WriteNodes();
    if (const auto& grid = topology_.grid())
      text_ += fmt::format(",\n  \"grid\": {{\"dims\": [{}], \"wraps\": {}}}",
                           fmt::join(grid->dims, ", "), grid->wraps);
    if (homogeneous_)
      text_ += ",\n  \"link_defaults\": {" + Spec(topology_.spec(LinkId{0})).substr(2) + "}";
    WriteLinks();
    WriteSelfLoops();
    if (const Topology* original = topology_.original()) {
      text_ += ",\n  \"original\": " + TopologyToJson(*original);
      text_.pop_back();  // the end of its last line
    }
    return text_ + "\n}\n";
  }

 private:
  std::string End(NodeId node) const {
    return default_names_ ? std::to_string(node.value) : QuotedJson(topology_.node_name(node));
  }

  // ", "-separated with a leading ", ".
  static std::string Spec(const LinkSpec& spec) {
    return fmt::format(", \"bandwidth\": \"{}\", \"alpha\": \"{}\"",
                       FormatBandwidth(spec.bandwidth), FormatDurationPs(spec.alpha_ps));
  }
  std::string SpecIfNeeded(const LinkSpec& spec) const { return homogeneous_ ? "" : Spec(spec); }

  // Where not all ranks have the same.
  std::string OwnHostLimit(NodeId node) const {
    if (common_host_ || !topology_.is_rank(node) || !topology_.host_bandwidth(node)) return "";
    return fmt::format(", \"host_bandwidth\": \"{}\"",
                       FormatBandwidth(*topology_.host_bandwidth(node)));
  }

  void WriteNodes() {
    if (common_host_)
      text_ += fmt::format(",\n  \"host_bandwidth\": \"{}\"", FormatBandwidth(*common_host_));
    if (default_names_ && (common_host_ || !topology_.has_host_limits()) &&
        !topology_.has_reducing_switches()) {
      text_ += fmt::format(",\n  \"ranks\": {},\n  \"switches\": {}", topology_.num_ranks(),
                           topology_.num_nodes() - topology_.num_ranks());
      return;
    }
    text_ += ",\n  \"nodes\": [";
    for (NodeId node : topology_.Nodes())
      text_ += fmt::format(
          "{}\n    {{\"name\": {}, \"kind\": \"{}\"{}{}}}", node.value == 0 ? "" : ",",
          QuotedJson(topology_.node_name(node)), topology_.is_rank(node) ? "rank" : "switch",
          OwnHostLimit(node),
          !topology_.is_rank(node) && topology_.reduces(node) ? ", \"reduces\": true" : "");
    text_ += "\n  ]";
  }

  void WriteLinks() {
    text_ += ",\n  \"links\": [";
    const std::vector<Cable> cables = CablesOf(topology_);
    const bool duplex = DuplexKeepsOrder(topology_, cables);
    bool first = true;
    const auto write = [&](LinkId link) {
      text_ += fmt::format("{}\n    {{\"from\": {}, \"to\": {}{}{}}}", first ? "" : ",",
                           End(topology_.tail(link)), End(topology_.head(link)),
                           duplex ? ", \"duplex\": true" : "", SpecIfNeeded(topology_.spec(link)));
      first = false;
    };
    if (duplex)
      for (const Cable& cable : cables) write(cable.there);
    else
      for (LinkId link : topology_.Links()) write(link);
    text_ += first ? "]" : "\n  ]";
  }

  void WriteSelfLoops() {
    bool first = true;
    for (NodeId node : topology_.Nodes())
      for (const LinkSpec& loop : topology_.self_loops(node)) {
        text_ += fmt::format("{}\n    {{\"node\": {}{}}}", first ? ",\n  \"self_loops\": [" : ",",
                             End(node), SpecIfNeeded(loop));
        first = false;
      }
    if (!first) text_ += "\n  ]";
  }

  const Topology& topology_;
  const bool default_names_;
  const std::optional<int64_t> common_host_;  // of every rank
  const bool homogeneous_;                    // one link_defaults instead of numbers at every link
  std::string text_;
};

// --- Reading -------------------------------------------------------------------------------------

tl::unexpected<Error> Fault(const std::string& path, const std::string& message) {
  return InvalidArgument(path + ": " + message);
}

// What was found, short.
std::string Found(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

// Reads past everything but the keys of objects, of which it finds one that stands twice: the tree
// that the library makes keeps the last and says nothing. (A parse callback could tell, too, but
// takes quadratic time on long lists.)
class DuplicateKeyFinder final : public nlohmann::json_sax<Json> {
 public:
  const std::optional<std::string>& found() const { return found_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) found_ = Found(Json(key));
    return !found_;
  }
  // Faults of syntax are reported by the parse that follows.
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::optional<std::string> found_;
};

Result<Json> ParseJson(const std::string& text) {
  DuplicateKeyFinder finder;
  Json::sax_parse(text, &finder);
  if (finder.found())
    return InvalidArgument(fmt::format("the key {} stands twice in one object", *finder.found()));
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    // The library quotes what it found, which may be no text at all.
    std::string message = fmt::format("no valid JSON: {}", e.what());
    std::replace_if(
        message.begin(), message.end(), [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
    return MakeError(ErrorCode::kCorrupt, std::move(message));
  }
}

Status CheckKeys(const Json& object, const std::string& path,
                 const std::vector<std::string_view>& accepted) {
  if (!object.is_object()) return Fault(path, "found " + Found(object) + ", wanted an object");
  for (const auto& [key, value] : object.items())
    if (std::find(accepted.begin(), accepted.end(), key) == accepted.end())
      return Fault(path, fmt::format("unknown key {}; accepted: {}", Found(Json(key)),
                                     fmt::join(accepted, ", ")));
  return {};
}

Result<int64_t> ReadInteger(const Json& value, const std::string& path, int64_t least,
                            int64_t most) {
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= static_cast<uint64_t>(most) &&
                              static_cast<int64_t>(value.get<uint64_t>()) >= least
                        : value.is_number_integer() && value.get<int64_t>() >= least &&
                              value.get<int64_t>() <= most;
  if (!fits)
    return Fault(path, fmt::format("found {}, wanted a whole number within {} .. {}", Found(value),
                                   least, most));
  return value.get<int64_t>();
}

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  Result<Topology> Read() {
    if (Status status = ReadHeader(); !status) return tl::unexpected(status.error());
    if (Status status = ReadNodes(); !status) return tl::unexpected(status.error());
    Topology::Builder builder(num_ranks_, num_nodes() - num_ranks_);
    if (Status status = ReadCommonHostLimit(); !status) return tl::unexpected(status.error());
    if (Status status = ReadDefaults(); !status) return tl::unexpected(status.error());
    if (Status status = ReadLinks(builder); !status) return tl::unexpected(status.error());
    if (Status status = ReadSelfLoops(builder); !status) return tl::unexpected(status.error());
    if (Status status = ReadGrid(builder); !status) return tl::unexpected(status.error());
    // Said here, before a few bytes make a million nodes.
    if (num_nodes() > 1 && num_links_ < num_nodes())
      return Fault("$.links", fmt::format("the network is disconnected: {} directed links cannot "
                                          "join {} nodes",
                                          num_links_, num_nodes()));
    for (const auto& [rank, bandwidth] : host_limits_) builder.SetHostBandwidth(rank, bandwidth);
    for (NodeId node : reducing_) builder.SetReduces(node);
    builder.SetNodeNames(std::move(names_));
    if (Status status = ReadOrigin(builder); !status) return tl::unexpected(status.error());
    Result<Topology> topology = std::move(builder).Build();
    if (!topology) return topology;
    return topo::CheckClaims(*std::move(topology));
  }

 private:
  int32_t num_nodes() const { return num_nodes_; }

  Status ReadHeader() {
    if (!json_.is_object()) return Fault("$", "found " + Found(json_) + ", wanted an object");
    if (json_.value("format", Json()) != Json(kTopologyFormat))
      return MakeError(ErrorCode::kCorrupt,
                       fmt::format("$.format: found {}, wanted \"{}\"",
                                   json_.contains("format") ? Found(json_["format"]) : "nothing",
                                   kTopologyFormat));
    const Json version = json_.value("version", Json());
    knows_reducing_ = version == Json(kVersionWithReducing);
    knows_origin_ = knows_reducing_ || version == Json(kVersionWithOrigin);
    knows_hosts_ = knows_origin_ || version == Json(kVersionWithHosts);
    if (version != Json(kVersion) && !knows_hosts_)
      return MakeError(ErrorCode::kCorrupt,
                       fmt::format("$.version: found {}, this reader knows versions {} to {}",
                                   json_.contains("version") ? Found(json_["version"]) : "nothing",
                                   kVersion, kVersionWithReducing));
    std::vector<std::string_view> accepted{"format",  "version",       "name",  "source",
                                           "comment", "nodes",         "ranks", "switches",
                                           "grid",    "link_defaults", "links", "self_loops"};
    if (knows_hosts_) accepted.insert(accepted.end(), {"host_bandwidth", "host_bandwidth_Bps"});
    if (knows_origin_) accepted.insert(accepted.end(), {"expression", "original"});
    if (Status status = CheckKeys(json_, "$", accepted); !status) return status;
    for (const char* key : {"name", "source", "comment", "expression"})
      if (json_.contains(key) && !json_[key].is_string())
        return Fault(fmt::format("$.{}", key), "found " + Found(json_[key]) + ", wanted a string");
    return {};
  }

  Status ReadNodes() {
    if (!json_.contains("nodes")) return ReadNodeCounts();
    if (json_.contains("ranks") || json_.contains("switches"))
      return Fault("$", "nodes excludes ranks and switches");
    const Json& nodes = json_["nodes"];
    if (!nodes.is_array() || nodes.size() > static_cast<size_t>(kMaxNodes))
      return Fault("$.nodes", fmt::format("wanted a list of at most {} nodes", kMaxNodes));
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string path = fmt::format("$.nodes[{}]", i);
      std::vector<std::string_view> accepted{"name", "kind"};
      if (knows_hosts_) accepted.insert(accepted.end(), {"host_bandwidth", "host_bandwidth_Bps"});
      if (knows_reducing_) accepted.emplace_back("reduces");
      if (Status status = CheckKeys(nodes[i], path, accepted); !status) return status;
      for (const char* key : {"name", "kind"})
        if (!nodes[i].contains(key) || !nodes[i][key].is_string())
          return Fault(path, fmt::format("wanted the field {}, a string", key));
      std::string name = nodes[i]["name"];
      const std::string kind = nodes[i]["kind"];
      if (kind != "rank" && kind != "switch")
        return Fault(path + ".kind",
                     "found " + Found(nodes[i]["kind"]) + ", wanted \"rank\" or \"switch\"");
      if (kind == "rank" && static_cast<size_t>(num_ranks_) < i)
        return Fault(path + ".kind", "a rank behind a switch; ranks come first");
      if (kind == "rank") ++num_ranks_;
      std::optional<int64_t> limit;
      if (Status status = ReadHostLimit(nodes[i], path, limit); !status) return status;
      if (limit && kind == "switch")
        return Fault(path, "a switch has no host, so no host_bandwidth");
      if (limit) own_host_limits_.push_back({NodeId{static_cast<int32_t>(i)}, *limit});
      if (nodes[i].contains("reduces")) {
        const Json& reduces = nodes[i]["reduces"];
        if (!reduces.is_boolean())
          return Fault(path + ".reduces", "found " + Found(reduces) + ", wanted true or false");
        if (kind == "rank")
          return Fault(path + ".reduces", "every rank reduces; only switches say whether they do");
        if (reduces.get<bool>()) reducing_.push_back(NodeId{static_cast<int32_t>(i)});
      }
      if (!by_name_.emplace(name, static_cast<int32_t>(i)).second)
        return Fault(path + ".name", "the name " + Found(nodes[i]["name"]) + " is taken");
      names_.push_back(std::move(name));
    }
    num_nodes_ = static_cast<int32_t>(names_.size());
    return {};
  }

  Status ReadNodeCounts() {
    if (!json_.contains("ranks")) return Fault("$", "wanted the field nodes, or ranks");
    const Result<int64_t> ranks = ReadInteger(json_["ranks"], "$.ranks", 1, kMaxNodes);
    if (!ranks) return tl::unexpected(ranks.error());
    const Result<int64_t> switches =
        json_.contains("switches")
            ? ReadInteger(json_["switches"], "$.switches", 0, kMaxNodes - *ranks)
            : Result<int64_t>(0);
    if (!switches) return tl::unexpected(switches.error());
    num_ranks_ = static_cast<int32_t>(*ranks);
    num_nodes_ = static_cast<int32_t>(*ranks + *switches);
    return {};
  }

  // A node by number or by name.
  Result<NodeId> ReadNode(const Json& object, const char* key, const std::string& path) const {
    if (!object.contains(key)) return Fault(path, fmt::format("wanted the field {}", key));
    const Json& value = object[key];
    const std::string at = path + "." + key;
    if (value.is_number()) {
      const Result<int64_t> node = ReadInteger(value, at, 0, num_nodes() - 1);
      if (!node) return tl::unexpected(node.error());
      return NodeId{static_cast<int32_t>(*node)};
    }
    if (value.is_string())
      if (const auto found = by_name_.find(value.get<std::string>()); found != by_name_.end())
        return NodeId{found->second};
    return Fault(at, "found " + Found(value) + ", wanted the name or the number of a node");
  }

  // `text_key` with a unit or `integer_key` without; what is absent comes from `out`.
  static Status ReadQuantity(const Json& object, const std::string& path, const char* text_key,
                             const char* integer_key, Result<int64_t> (*parse)(std::string_view),
                             int64_t least, int64_t most, std::optional<int64_t>& out) {
    if (object.contains(text_key) && object.contains(integer_key))
      return Fault(path, fmt::format("{} and {} exclude each other", text_key, integer_key));
    if (object.contains(integer_key)) {
      const Result<int64_t> value =
          ReadInteger(object[integer_key], path + "." + integer_key, least, most);
      if (!value) return tl::unexpected(value.error());
      out = *value;
    } else if (object.contains(text_key)) {
      const Json& value = object[text_key];
      const std::string at = path + "." + text_key;
      if (!value.is_string())
        return Fault(at, fmt::format("found {}, wanted a string with a unit (or {})", Found(value),
                                     integer_key));
      const Result<int64_t> parsed = parse(value.get<std::string>());
      if (!parsed) return Fault(at, parsed.error().message);
      if (*parsed < least || *parsed > most)
        return Fault(at, fmt::format("{} is outside {} .. {}", Found(value), least, most));
      out = *parsed;
    }
    return {};
  }

  struct PartialSpec {
    std::optional<int64_t> bandwidth, alpha_ps;
  };

  static Status ReadPartialSpec(const Json& object, const std::string& path, PartialSpec& spec) {
    if (Status status = ReadQuantity(object, path, "bandwidth", "bandwidth_Bps", ParseBandwidth, 1,
                                     kMaxBandwidth, spec.bandwidth);
        !status)
      return status;
    return ReadQuantity(object, path, "alpha", "alpha_ps", ParseDurationPs, 0, kMaxAlphaPs,
                        spec.alpha_ps);
  }

  Result<LinkSpec> ReadSpec(const Json& object, const std::string& path) const {
    PartialSpec spec = defaults_;
    if (Status status = ReadPartialSpec(object, path, spec); !status)
      return tl::unexpected(status.error());
    if (!spec.bandwidth)
      return Fault(path, "wanted the field bandwidth (or bandwidth_Bps, or link_defaults)");
    if (!spec.alpha_ps)
      return Fault(path, "wanted the field alpha (or alpha_ps, or link_defaults)");
    return LinkSpec{*spec.bandwidth, *spec.alpha_ps};
  }

  static Status ReadHostLimit(const Json& object, const std::string& path,
                              std::optional<int64_t>& limit) {
    return ReadQuantity(object, path, "host_bandwidth", "host_bandwidth_Bps", ParseBandwidth, 1,
                        kMaxBandwidth, limit);
  }

  // For every rank that gives none itself.
  Status ReadCommonHostLimit() {
    std::optional<int64_t> limit;
    if (Status status = ReadHostLimit(json_, "$", limit); !status) return status;
    if (limit)
      for (NodeId rank : IdRange<NodeId>{0, num_ranks_}) host_limits_.push_back({rank, *limit});
    host_limits_.insert(host_limits_.end(), own_host_limits_.begin(), own_host_limits_.end());
    return {};
  }

  Status ReadDefaults() {
    if (!json_.contains("link_defaults")) return {};
    const Json& object = json_["link_defaults"];
    if (Status status = CheckKeys(object, "$.link_defaults",
                                  {"bandwidth", "bandwidth_Bps", "alpha", "alpha_ps"});
        !status)
      return status;
    return ReadPartialSpec(object, "$.link_defaults", defaults_);
  }

  Status CountLink(const std::string& path, int64_t more) {
    num_links_ += more;
    if (num_links_ > kMaxLinks)
      return Fault(path, fmt::format("more than {} links, which is the most", kMaxLinks));
    return {};
  }

  Status ReadLinks(Topology::Builder& builder) {
    if (!json_.contains("links")) return Fault("$", "wanted the field links");
    const Json& links = json_["links"];
    if (!links.is_array()) return Fault("$.links", "found " + Found(links) + ", wanted a list");
    for (size_t i = 0; i < links.size(); ++i) {
      const Json& object = links[i];
      const std::string path = fmt::format("$.links[{}]", i);
      if (Status status = CheckKeys(
              object, path,
              {"from", "to", "duplex", "bandwidth", "bandwidth_Bps", "alpha", "alpha_ps"});
          !status)
        return status;
      const Result<NodeId> from = ReadNode(object, "from", path);
      if (!from) return tl::unexpected(from.error());
      const Result<NodeId> to = ReadNode(object, "to", path);
      if (!to) return tl::unexpected(to.error());
      if (*from == *to) return Fault(path, "a link to itself; those belong into self_loops");
      const Result<LinkSpec> spec = ReadSpec(object, path);
      if (!spec) return tl::unexpected(spec.error());
      const bool has_duplex = object.contains("duplex");
      if (has_duplex && !object["duplex"].is_boolean())
        return Fault(path + ".duplex",
                     "found " + Found(object["duplex"]) + ", wanted true or false");
      const bool duplex = has_duplex && object["duplex"].get<bool>();
      if (Status status = CountLink(path, duplex ? 2 : 1); !status) return status;
      builder.AddLink(*from, *to, *spec);
      if (duplex) builder.AddLink(*to, *from, *spec);
    }
    return {};
  }

  Status ReadSelfLoops(Topology::Builder& builder) {
    if (!json_.contains("self_loops")) return {};
    const Json& loops = json_["self_loops"];
    if (!loops.is_array())
      return Fault("$.self_loops", "found " + Found(loops) + ", wanted a list");
    for (size_t i = 0; i < loops.size(); ++i) {
      const std::string path = fmt::format("$.self_loops[{}]", i);
      if (Status status = CheckKeys(loops[i], path,
                                    {"node", "bandwidth", "bandwidth_Bps", "alpha", "alpha_ps"});
          !status)
        return status;
      const Result<NodeId> node = ReadNode(loops[i], "node", path);
      if (!node) return tl::unexpected(node.error());
      const Result<LinkSpec> spec = ReadSpec(loops[i], path);
      if (!spec) return tl::unexpected(spec.error());
      if (Status status = CountLink(path, 1); !status) return status;
      builder.AddLink(*node, *node, *spec);
    }
    return {};
  }

  Status ReadGrid(Topology::Builder& builder) const {
    if (!json_.contains("grid")) return {};
    const Json& grid = json_["grid"];
    if (Status status = CheckKeys(grid, "$.grid", {"dims", "wraps"}); !status) return status;
    if (!grid.contains("dims") || !grid["dims"].is_array() || grid["dims"].empty())
      return Fault("$.grid", "wanted the field dims, a list of at least one number");
    if (!grid.contains("wraps") || !grid["wraps"].is_boolean())
      return Fault("$.grid", "wanted the field wraps, true or false");
    GridShape shape{{}, grid["wraps"].get<bool>()};
    int64_t size = 1;
    for (size_t i = 0; i < grid["dims"].size(); ++i) {
      const Result<int64_t> dim =
          ReadInteger(grid["dims"][i], fmt::format("$.grid.dims[{}]", i), 1, num_ranks_ / size);
      if (!dim) return tl::unexpected(dim.error());
      size *= *dim;
      shape.dims.push_back(static_cast<int32_t>(*dim));
    }
    if (size != num_ranks_)
      return Fault("$.grid.dims", fmt::format("{} positions for {} ranks", size, num_ranks_));
    builder.SetGrid(std::move(shape));
    return {};
  }

  // Where no expression is given the name may be one.
  Status ReadOrigin(Topology::Builder& builder) const {
    const auto text = [this](const char* key, const char* other) -> std::string {
      for (const char* one : {key, other})
        if (const std::string found = json_.value(one, ""); !found.empty()) return found;
      return "";
    };
    builder.SetName(text("name", "expression"));
    builder.SetExpression(text("expression", "name"));
    if (!json_.contains("original")) return {};
    const Json& json = json_["original"];
    if (json.is_object() && json.contains("original"))
      return Fault("$.original", "unknown key \"original\": no network is unwound twice");
    Result<Topology> original = Reader(json).Read();
    if (!original) return Within("$.original", original.error());
    builder.SetOriginal(std::make_shared<const Topology>(*std::move(original)));
    return {};
  }

  const Json& json_;
  int32_t num_ranks_ = 0, num_nodes_ = 0;
  int64_t num_links_ = 0;
  // The version of the file does.
  bool knows_hosts_ = false, knows_origin_ = false, knows_reducing_ = false;
  std::vector<std::pair<NodeId, int64_t>> own_host_limits_, host_limits_;
  std::vector<NodeId> reducing_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> by_name_;
  PartialSpec defaults_;
};

}  // namespace

std::string TopologyToJson(const Topology& topology, const std::string& source) {
  return Writer(topology).Write(source);
}

Result<Topology> TopologyFromJson(const std::string& text) {
  const Result<Json> json = ParseJson(text);
  if (!json) return tl::unexpected(json.error());
  return Reader(*json).Read();
}

Result<Topology> ReadTopologyFile(const std::string& path) {
  const Result<FileKind> kind = KindOfFile(path);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind != FileKind::kTopology && *kind != FileKind::kUnknown)
    return tl::unexpected(WrongKind(path, *kind, FileKind::kTopology));
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  Result<Topology> topology = TopologyFromJson(*text);
  if (!topology) return Within(path, topology.error());
  return topology;
}

Status WriteTopologyFile(const std::string& path, const Topology& topology) {
  return WriteFileAtomically(path, TopologyToJson(topology));
}

}  // namespace tutti
