#include "tutti/lower/routes.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace tutti {
namespace {

Status CheckOrigin(const Topology& topology, const Routing& routing) {
  if (routing.num_ranks == topology.num_ranks() &&
      routing.topology_fingerprint == topology.Fingerprint())
    return {};
  return InvalidArgument(
      fmt::format("the routing was made for another network than '{}'", topology.name()));
}

std::string Head(std::string_view format, const Topology& topology, const Routing& routing) {
  return fmt::format("{} 1\nnetwork {:016x} {}\nranks {} links {} chunks {} layers {}\n", format,
                     topology.Fingerprint(), topology.name(), topology.num_ranks(),
                     topology.num_links(), routing.units_per_demand, routing.num_layers);
}

int32_t LayerOf(const Routing& routing, PathId path) {
  return routing.num_layers > 0 ? routing.layer[path.index()] : 0;
}

// What arrives over a link, or starts at a rank, and where it goes on.
struct Entry {
  int32_t source, destination, number;
  LinkId next;  // -1: it has arrived
  int32_t layer;
};

void AppendEntries(const std::vector<Entry>& entries, std::string& text) {
  for (const Entry& entry : entries)
    fmt::format_to(
        std::back_inserter(text), "{} {} {} {} {}\n", entry.source, entry.destination, entry.number,
        entry.next.value < 0 ? std::string("here") : std::to_string(entry.next.value), entry.layer);
}

}  // namespace

Result<std::string> ToRoutesPerRank(const Topology& topology, const Routing& routing) {
  if (const Status fits = CheckOrigin(topology, routing); !fits)
    return tl::unexpected(fits.error());
  std::string text = Head("tutti-routes-per-rank", topology, routing);
  const auto out = std::back_inserter(text);
  for (const NodeId source : topology.Ranks()) {
    fmt::format_to(out, "rank {}\n", source.value);
    for (const NodeId destination : topology.Ranks()) {
      int64_t chunk = 0;
      for (const PathId path : routing.Paths(source, destination)) {
        const int64_t weight = routing.weight[path.index()];
        fmt::format_to(out, "{} {} {} {} ports", destination.value, chunk, chunk + weight,
                       LayerOf(routing, path));
        chunk += weight;
        for (const LinkId link : routing.Hops(path))
          fmt::format_to(out, " {}", link.value - topology.OutLinks(topology.tail(link))[0].value);
        text += "\n";
      }
    }
  }
  return text;
}

Result<std::string> ToRouteTables(const Topology& topology, const Routing& routing) {
  if (const Status fits = CheckOrigin(topology, routing); !fits)
    return tl::unexpected(fits.error());
  std::vector<std::vector<Entry>> start(static_cast<size_t>(topology.num_ranks()));
  std::vector<std::vector<Entry>> arrive(static_cast<size_t>(topology.num_links()));
  for (const NodeId source : topology.Ranks())
    for (const NodeId destination : topology.Ranks()) {
      const IdRange<PathId> paths = routing.Paths(source, destination);
      for (const PathId path : paths) {
        const int32_t number = path.value - paths[0].value, layer = LayerOf(routing, path);
        std::vector<Entry>* at = &start[source.index()];
        for (const LinkId link : routing.Hops(path)) {
          at->push_back({source.value, destination.value, number, link, layer});
          at = &arrive[link.index()];
        }
        at->push_back({source.value, destination.value, number, LinkId{-1}, layer});
      }
    }
  std::string text = Head("tutti-route-tables", topology, routing);
  for (size_t rank = 0; rank < start.size(); ++rank) {
    text += fmt::format("rank {}\n", rank);
    AppendEntries(start[rank], text);
  }
  for (const LinkId link : topology.Links()) {
    text += fmt::format("link {} from {} to {}\n", link.value, topology.tail(link).value,
                        topology.head(link).value);
    AppendEntries(arrive[link.index()], text);
  }
  return text;
}

}  // namespace tutti
