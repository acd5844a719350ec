#include "routing_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "corrupt.h"
#include "json_fields.h"
#include "tutti/base/file_kind.h"
#include "tutti/base/memory.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

using Json = nlohmann::json;

constexpr int64_t kRoutingJsonVersion = 1;
constexpr int64_t kMaxLayers = std::numeric_limits<int16_t>::max();

bool HasParallelLinks(const Topology& topology) {
  std::vector<int32_t> seen_from(static_cast<size_t>(topology.num_nodes()), -1);
  for (const LinkId link : topology.Links()) {
    int32_t& seen = seen_from[topology.head(link).index()];
    if (seen == topology.tail(link).value) return true;
    seen = topology.tail(link).value;
  }
  return false;
}

// --- Reading paths

class PathReader {
 public:
  PathReader(const Topology& topology, Routing& routing) : topology_(topology), routing_(routing) {}

  Status Read(const Json& paths) {
    if (!paths.is_array()) return Corrupt("paths must be a list");
    const auto ranks = static_cast<int64_t>(topology_.num_ranks());
    int64_t pair = 0;
    routing_.first_path.push_back(0);
    routing_.first_hop.push_back(0);
    for (size_t i = 0; i < paths.size(); ++i) {
      Fields fields(paths[i], fmt::format("paths[{}]", i));
      const int64_t from = fields.Integer("from", 0, ranks - 1);
      const int64_t to = fields.Integer("to", 0, ranks - 1);
      routing_.weight.push_back(fields.Integer("weight", 1, std::numeric_limits<int64_t>::max()));
      fields.Accept({"from", "to", "weight", "nodes", "links", "layer"});
      if (fields.ok() && from * ranks + to < pair)
        fields.Fault("comes before the pair of the path before it; pairs ascend in from, then to");
      ReadLayer(fields);
      ReadHops(fields, from);
      if (!fields.ok()) return Corrupt(fields.fault());
      for (; pair < from * ranks + to; ++pair)
        routing_.first_path.push_back(static_cast<int64_t>(i));
      routing_.first_hop.push_back(static_cast<int64_t>(routing_.hops.size()));
    }
    for (; pair < ranks * ranks; ++pair)
      routing_.first_path.push_back(static_cast<int64_t>(paths.size()));
    return {};
  }

 private:
  void ReadLayer(Fields& fields) {
    if (routing_.num_layers > 0)
      routing_.layer.push_back(
          static_cast<int16_t>(fields.Integer("layer", 0, routing_.num_layers - 1)));
    else if (fields.has("layer"))
      fields.Fault("has a layer, but the file has no num_layers");
  }

  void ReadHops(Fields& fields, int64_t from) {
    if (!fields.ok()) return;
    if (fields.has("links")) {
      const Json& links = fields.Get("links");
      if (!links.is_array() || links.empty()) return fields.Fault("has links that are no list");
      for (const Json& link : links) {
        if (!Fields::IsWithin(link, 0, topology_.num_links() - 1))
          return fields.Fault(
              fmt::format("names a link outside 0 .. {}", topology_.num_links() - 1));
        routing_.hops.push_back(LinkId{link.get<int32_t>()});
      }
    }
    if (fields.has("nodes") || !fields.has("links")) ReadNodes(fields, from);
  }

  void ReadNodes(Fields& fields, int64_t from) {
    const Json& nodes = fields.Get("nodes");
    if (!fields.ok()) return;
    if (!nodes.is_array() || nodes.size() < 2)
      return fields.Fault("has nodes that are no list of at least two");
    for (const Json& node : nodes)
      if (!Fields::IsWithin(node, 0, topology_.num_nodes() - 1))
        return fields.Fault(fmt::format("names a node outside 0 .. {}", topology_.num_nodes() - 1));
    if (nodes[0].get<int64_t>() != from) return fields.Fault("does not start at 'from'");
    const bool has_links = fields.has("links");
    const size_t before = static_cast<size_t>(routing_.first_hop.back());
    if (has_links && routing_.hops.size() - before != nodes.size() - 1)
      return fields.Fault("has nodes and links that do not fit each other");
    for (size_t i = 0; i + 1 < nodes.size(); ++i) {
      const NodeId tail{nodes[i].get<int32_t>()}, head{nodes[i + 1].get<int32_t>()};
      if (has_links) {
        const LinkId link = routing_.hops[before + i];
        if (topology_.tail(link) != tail || topology_.head(link) != head)
          return fields.Fault("has nodes and links that do not fit each other");
        continue;
      }
      std::vector<LinkId> links;
      for (const LinkId link : topology_.OutLinks(tail))
        if (topology_.head(link) == head) links.push_back(link);
      if (links.size() != 1)
        return fields.Fault(fmt::format(
            "goes from node {} to node {}, between which there are {} links{}", tail.value,
            head.value, links.size(), links.empty() ? "" : "; name them in 'links'"));
      routing_.hops.push_back(links[0]);
    }
  }

  const Topology& topology_;
  Routing& routing_;
};

}  // namespace

Status CheckWalkable(const Topology& topology, const Routing& routing) {
  const auto ascends = [](const std::vector<int64_t>& offsets, size_t size, size_t last) {
    return offsets.size() == size && offsets.front() == 0 &&
           offsets.back() == static_cast<int64_t>(last) &&
           std::is_sorted(offsets.begin(), offsets.end());
  };
  const auto ranks = static_cast<size_t>(topology.num_ranks());
  if (routing.num_ranks != topology.num_ranks())
    return InvalidArgument(fmt::format("a routing of {} ranks on a network of {}",
                                       routing.num_ranks, topology.num_ranks()));
  if (!routing.demand.empty() && routing.demand.size() != ranks * ranks)
    return InvalidArgument("the demand matrix of the routing has the wrong size");
  if (!routing.groups.empty()) {
    const Result<Collective> collective = CollectiveOf(routing);
    if (!collective) return tl::unexpected(collective.error());
    if (routing.demand != DemandOfGroups(*collective))
      return InvalidArgument("the demand of the routing is not that of its groups");
  }
  if (!ascends(routing.first_path, ranks * ranks + 1, routing.weight.size()) ||
      !ascends(routing.first_hop, routing.weight.size() + 1, routing.hops.size()))
    return InvalidArgument("the paths of the routing break R1 or R2");
  if (routing.layer.size() != (routing.num_layers > 0 ? routing.weight.size() : 0))
    return InvalidArgument("the layers of the routing break R4");
  for (const LinkId link : routing.hops)
    if (link.value < 0 || link.value >= topology.num_links())
      return InvalidArgument(
          fmt::format("the routing names a link {} of {}", link.value, topology.num_links()));
  return {};
}

std::string OpenRoutingHeader(const Topology& topology, const Routing& routing, bool with_demand) {
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"algorithm\": {},\n\"seed\": {},\n"
      "\"units_per_demand\": {},\n\"topology_fingerprint\": \"{:016x}\",\n",
      kRoutingFormat, kRoutingJsonVersion,
      Json(routing.algorithm).dump(-1, ' ', false, Json::error_handler_t::replace), routing.seed,
      routing.units_per_demand, routing.topology_fingerprint);
  if (routing.num_layers > 0) text += fmt::format("\"num_layers\": {},\n", routing.num_layers);
  if (!routing.groups.empty()) text += GroupsToJson(routing.groups) + ",\n";
  if (with_demand && !routing.demand.empty() && routing.groups.empty()) {
    const auto ranks = static_cast<size_t>(routing.num_ranks);
    text += "\"demand\": [";
    for (size_t s = 0; s < ranks; ++s) {
      const auto row = routing.demand.begin() + static_cast<std::ptrdiff_t>(s * ranks);
      text += fmt::format("{}[{}]", s == 0 ? "\n" : ",\n",
                          fmt::join(row, row + static_cast<std::ptrdiff_t>(ranks), ", "));
    }
    text += "],\n";
  }
  std::string topology_text = TopologyToJson(topology);
  topology_text.erase(topology_text.find_last_not_of(" \n") + 1);
  return text + fmt::format("\"topology\": {}", topology_text);
}

Result<RoutingFile> ReadRoutingHeader(const Json& root, bool with_paths) {
  Fields fields(root, "");
  if (!fields.ok()) return Corrupt(fields.fault());
  if (!fields.has("format") || fields.Get("format") != kRoutingFormat)
    return Corrupt(fmt::format("this is no routing: \"format\" must be \"{}\"", kRoutingFormat));
  const int64_t version = fields.Integer("version", 1, std::numeric_limits<int64_t>::max());
  if (fields.ok() && version != kRoutingJsonVersion)
    return Corrupt(
        fmt::format("version {} of the routing format is unknown; this program reads "
                    "version {}",
                    version, kRoutingJsonVersion));
  const Json& topology_json = fields.Get("topology");
  if (!fields.ok()) return Corrupt(fields.fault());
  Result<Topology> topology = TopologyFromJson(topology_json.dump());
  if (!topology) return Corrupt("topology: " + topology.error().message);

  const int64_t table = 8 * int64_t{topology->num_ranks()} * topology->num_ranks();
  if (const Status fits =
          CheckMemory(fmt::format("the table of the pairs of {} ranks", topology->num_ranks()),
                      table, AvailableMemoryBytes());
      !fits)
    return tl::unexpected(fits.error());

  Routing routing;
  routing.num_ranks = topology->num_ranks();
  routing.units_per_demand =
      fields.Integer("units_per_demand", 1, std::numeric_limits<int64_t>::max());
  if (fields.has("algorithm")) routing.algorithm = fields.String("algorithm");
  if (fields.has("seed")) {
    const Json& seed = fields.Get("seed");
    if (!seed.is_number_unsigned()) fields.Fault("has a seed that is no number 0 .. 2^64 - 1");
    if (fields.ok()) routing.seed = seed.get<uint64_t>();
  }
  if (fields.has("num_layers"))
    routing.num_layers = static_cast<int32_t>(fields.Integer("num_layers", 1, kMaxLayers));
  routing.topology_fingerprint = topology->Fingerprint();
  if (fields.has("topology_fingerprint")) {
    const Result<uint64_t> given = ParseFingerprint(fields.String("topology_fingerprint"));
    if (fields.ok() && !given) return tl::unexpected(given.error());
    if (given) routing.topology_fingerprint = *given;
  }
  if (fields.has("demand")) {
    Result<std::vector<int64_t>> demand =
        ParseDemand(fields.Get("demand"), "demand", static_cast<size_t>(topology->num_ranks()));
    if (!demand) return tl::unexpected(demand.error());
    routing.demand = *std::move(demand);
  }
  if (fields.has("groups")) {
    Result<std::vector<std::vector<NodeId>>> groups =
        ParseGroups(fields.Get("groups"), "groups", topology->num_ranks());
    if (!groups) return tl::unexpected(groups.error());
    if (fields.has("demand"))
      return Corrupt("it has groups, which say what the demand is, and a demand");
    routing.groups = *std::move(groups);
    const Result<Collective> collective = CollectiveOf(routing);
    if (!collective) return Corrupt("groups: " + collective.error().message);
    routing.demand = DemandOfGroups(*collective);
  }
  std::vector<std::string_view> keys{
      "format", "version",          "algorithm",  "groups",   "seed",
      "demand", "units_per_demand", "num_layers", "topology", "topology_fingerprint"};
  if (with_paths) keys.push_back("paths");
  fields.Accept(keys);
  if (!fields.ok()) return Corrupt(fields.fault());
  return RoutingFile{*std::move(topology), std::move(routing)};
}

Result<std::string> RoutingToJson(const Topology& topology, const Routing& routing) {
  if (const Status walkable = CheckWalkable(topology, routing); !walkable)
    return tl::unexpected(walkable.error());
  std::string text = OpenRoutingHeader(topology, routing, true) + ",\n\"paths\": [";
  const bool with_links = HasParallelLinks(topology);
  const auto out = std::back_inserter(text);
  const char* separator = "\n";
  for (const NodeId source : topology.Ranks())
    for (const NodeId destination : topology.Ranks())
      for (const PathId path : routing.Paths(source, destination)) {
        fmt::format_to(out, "{}{{\"from\": {}, \"to\": {}, \"weight\": {}", separator, source.value,
                       destination.value, routing.weight[path.index()]);
        separator = ",\n";
        std::vector<int32_t> nodes{source.value}, links;
        bool chain = true;
        for (const LinkId link : routing.Hops(path)) {
          chain = chain && topology.tail(link).value == nodes.back();
          nodes.push_back(topology.head(link).value);
          links.push_back(link.value);
        }
        if (chain) fmt::format_to(out, ", \"nodes\": [{}]", fmt::join(nodes, ", "));
        if (with_links || !chain) fmt::format_to(out, ", \"links\": [{}]", fmt::join(links, ", "));
        if (routing.num_layers > 0)
          fmt::format_to(out, ", \"layer\": {}", routing.layer[path.index()]);
        text += "}";
      }
  return text + "\n]\n}\n";
}

Result<RoutingFile> RoutingFromJson(const std::string& text) {
  const Result<Json> root = ParseJson(text);
  if (!root) return tl::unexpected(root.error());
  Result<RoutingFile> file = ReadRoutingHeader(*root, true);
  if (!file) return file;
  if (!root->contains("paths")) return Corrupt("the file lacks the key 'paths'");
  if (const Status read = PathReader(file->topology, file->routing).Read((*root)["paths"]); !read)
    return tl::unexpected(read.error());
  return file;
}

}  // namespace tutti
