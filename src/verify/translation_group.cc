#include "translation_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "tutti/base/parallel.h"

namespace tutti::verify {
namespace {

using Map = std::vector<NodeId>;
using OptionalFault = std::optional<std::string>;

// Where a link leads and what it is.
using Port = std::tuple<int32_t, int64_t, int64_t>;

std::vector<Port> PortsOf(const Topology& topology, NodeId node, const Map* moved) {
  std::vector<Port> ports;
  for (LinkId link : topology.OutLinks(node)) {
    const NodeId head = topology.head(link);
    ports.emplace_back(moved == nullptr ? head.value : (*moved)[head.index()].value,
                       topology.bandwidth(link), topology.alpha_ps(link));
  }
  std::sort(ports.begin(), ports.end());
  return ports;
}

// The least rank for which `fails` is true.
template <class Fails>
std::optional<int32_t> LeastFailure(int32_t num_ranks, const Fails& fails) {
  std::optional<int32_t> least;
  std::mutex mutex;
  ParallelFor(num_ranks, 4096, [&](int64_t begin, int64_t end) {
    for (auto rank = static_cast<int32_t>(begin); rank < end; ++rank) {
      if (!fails(NodeId{rank})) continue;
      const std::lock_guard lock(mutex);
      if (!least || rank < *least) least = rank;
      return;
    }
  });
  return least;
}

OptionalFault FaultOfOne(const Topology& topology, size_t number, const Map& map) {
  std::vector<char> hit(static_cast<size_t>(topology.num_ranks()), 0);
  if (map.size() != hit.size())
    return fmt::format("generator {} maps {} ranks, the network has {}", number, map.size(),
                       hit.size());
  for (size_t rank = 0; rank < map.size(); ++rank) {
    const int32_t image = map[rank].value;
    if (image < 0 || image >= topology.num_ranks() || hit[static_cast<size_t>(image)] != 0)
      return fmt::format("generator {} maps rank {} to {}, which is no rank or an image already",
                         number, rank, image);
    hit[static_cast<size_t>(image)] = 1;
  }
  const auto broken = LeastFailure(topology.num_ranks(), [&](NodeId rank) {
    return PortsOf(topology, rank, &map) != PortsOf(topology, map[rank.index()], nullptr);
  });
  if (!broken) return std::nullopt;
  return fmt::format(
      "generator {} maps rank {} to rank {}, but the links out of the one not to "
      "those out of the other",
      number, *broken, map[static_cast<size_t>(*broken)].value);
}

// One way to write every rank as a product of generators applied to rank 0: the last generator
// applied, and the rank before it. In the order found, which begins with rank 0.
struct GeneratorWord {
  int32_t rank, before;
  uint32_t generator;
};

std::vector<GeneratorWord> WordsOf(const std::vector<Map>& generators, size_t num_ranks) {
  std::vector<char> seen(num_ranks, 0);
  std::vector<GeneratorWord> words{{0, 0, 0}};
  seen[0] = 1;
  for (size_t done = 0; done < words.size(); ++done)
    for (uint32_t g = 0; g < generators.size(); ++g) {
      const int32_t from = words[done].rank;
      const int32_t to = generators[g][static_cast<size_t>(from)].value;
      if (seen[static_cast<size_t>(to)] != 0) continue;
      seen[static_cast<size_t>(to)] = 1;
      words.push_back({to, from, g});
    }
  return words;
}

// The only map with 0 -> start that may commute with all generators.
Map Continue(const std::vector<GeneratorWord>& words, const std::vector<Map>& generators,
             NodeId start) {
  Map map(words.size());
  map[0] = start;
  for (size_t i = 1; i < words.size(); ++i) {
    const NodeId before = map[static_cast<size_t>(words[i].before)];
    map[static_cast<size_t>(words[i].rank)] = generators[words[i].generator][before.index()];
  }
  return map;
}

}  // namespace

OptionalFault FaultOfTranslations(const Topology& topology, const std::vector<Map>& generators) {
  for (size_t g = 0; g < generators.size(); ++g)
    if (OptionalFault fault = FaultOfOne(topology, g, generators[g])) return fault;
  const auto num_ranks = static_cast<size_t>(topology.num_ranks());
  const std::vector<GeneratorWord> words = WordsOf(generators, num_ranks);
  if (words.size() != num_ranks)
    return fmt::format("the generators take rank 0 to {} of {} ranks only", words.size(),
                       num_ranks);
  for (size_t c = 0; c < generators.size(); ++c) {
    const Map continued = Continue(words, generators, generators[c][0]);
    for (size_t g = 0; g < generators.size(); ++g) {
      const auto differ = LeastFailure(topology.num_ranks(), [&](NodeId rank) {
        return continued[generators[g][rank.index()].index()] !=
               generators[g][continued[rank.index()].index()];
      });
      if (differ)
        return fmt::format(
            "two different products of generators take rank 0 to one rank: it shows at rank {} "
            "under generators {} and {}",
            *differ, c, g);
    }
  }
  return std::nullopt;
}

}  // namespace tutti::verify
