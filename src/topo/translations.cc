#include "tutti/topo/translations.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

constexpr int64_t kGrain = 1 << 14;

tl::unexpected<Error> NoTranslations(std::string message) {
  return MakeError(ErrorCode::kInfeasible, std::move(message));
}

// The first i in [0, count) for which holds(i) is false.
template <class Holds>
std::optional<int32_t> FirstFailure(int32_t count, const Holds& holds) {
  std::atomic<int32_t> first = count;
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<int32_t>(begin); i < end && i < first; ++i) {
      if (holds(i)) continue;
      int32_t known = first;
      while (i < known && !first.compare_exchange_weak(known, i)) {
      }
      return;
    }
  });
  if (first == count) return std::nullopt;
  return first.load();
}

bool IsPermutation(const NodePermutation& images, int32_t num_ranks) {
  if (images.size() != static_cast<size_t>(num_ranks)) return false;
  std::vector<bool> seen(images.size());
  for (NodeId image : images) {
    if (image.value < 0 || image.value >= num_ranks || seen[image.index()]) return false;
    seen[image.index()] = true;
  }
  return true;
}

// The links out of every rank in an order that depends on heads and parameters only, but for links
// that are equal in both: those keep the order of their ids.
class OrderedPorts {
 public:
  struct Port {
    uint64_t key;  // head, then number of the parameters
    LinkId link;
    friend bool operator<(const Port& a, const Port& b) {
      return a.key != b.key ? a.key < b.key : a.link < b.link;
    }
  };

  explicit OrderedPorts(const Topology& topology) : topology_(topology) {
    std::map<std::pair<int64_t, int64_t>, uint32_t> index;
    spec_.reserve(static_cast<size_t>(topology.num_links()));
    for (LinkId link : topology.Links()) {
      const auto next = static_cast<uint32_t>(index.size());
      const LinkSpec& spec = topology.spec(link);
      spec_.push_back(index.emplace(std::pair(spec.bandwidth, spec.alpha_ps), next).first->second);
    }
  }

  // Links of `node`, with their heads moved by `images` where those are given.
  void Load(NodeId node, const NodePermutation* images, std::vector<Port>& ports) const {
    ports.clear();
    for (LinkId link : topology_.OutLinks(node)) {
      const NodeId head = topology_.head(link);
      const auto moved = static_cast<uint64_t>((images ? (*images)[head.index()] : head).value);
      ports.push_back({moved << 32 | spec_[link.index()], link});
    }
    std::sort(ports.begin(), ports.end());
  }

 private:
  const Topology& topology_;
  std::vector<uint32_t> spec_;
};

bool SameLoops(const Topology& topology, NodeId a, NodeId b) {
  const auto loops_of = [&topology](NodeId node) {
    std::vector<std::pair<int64_t, int64_t>> loops;
    for (const LinkSpec& loop : topology.self_loops(node))
      loops.emplace_back(loop.bandwidth, loop.alpha_ps);
    std::sort(loops.begin(), loops.end());
    return loops;
  };
  return loops_of(a) == loops_of(b);
}

// Whether the links out of `node`, moved by `images`, are those out of its image. Leaves both lists
// in the same order.
bool LinksFit(const Topology& topology, const OrderedPorts& ordered, const NodePermutation& images,
              NodeId node, std::vector<OrderedPorts::Port>& moved,
              std::vector<OrderedPorts::Port>& there) {
  const NodeId image = images[node.index()];
  if (topology.OutLinks(node).size() != topology.OutLinks(image).size()) return false;
  ordered.Load(node, &images, moved);
  ordered.Load(image, nullptr, there);
  for (size_t i = 0; i < moved.size(); ++i)
    if (moved[i].key != there[i].key) return false;
  return SameLoops(topology, node, image);
}

}  // namespace

Result<Translations> Translations::Make(const Topology& topology,
                                        std::vector<NodePermutation> generators) {
  if (topology.has_switches())
    return NoTranslations("a network with switches has no translations of all its nodes");
  for (NodeId rank : topology.Ranks())
    if (topology.host_bandwidth(rank) != topology.host_bandwidth(NodeId{0}))
      return NoTranslations(fmt::format("rank {} has another host limit than rank 0", rank.value));
  for (size_t g = 0; g < generators.size(); ++g)
    if (!IsPermutation(generators[g], topology.num_ranks()))
      return NoTranslations(fmt::format("generator {} is no permutation of the ranks", g));
  Translations result;
  result.generators_ = std::move(generators);
  result.order_.resize(static_cast<size_t>(topology.num_ranks()));
  if (Status status = result.GrowTree(); !status) return tl::unexpected(status.error());
  if (Status status = result.CheckLinks(topology); !status) return tl::unexpected(status.error());
  if (Status status = result.CheckCommuting(); !status) return tl::unexpected(status.error());
  result.ClassifyLinks(topology);
  return result;
}

// Breadth first from rank 0.
Status Translations::GrowTree() {
  const size_t num_ranks = order_.size();
  order_.clear();
  order_.reserve(num_ranks);
  order_.push_back(NodeId{0});
  parent_.assign(num_ranks, NodeId{-1});
  by_.assign(num_ranks, -1);
  parent_[0] = NodeId{0};
  for (size_t next = 0; next < order_.size(); ++next)
    for (size_t g = 0; g < generators_.size(); ++g) {
      const NodeId image = generators_[g][order_[next].index()];
      if (parent_[image.index()].value >= 0) continue;
      parent_[image.index()] = order_[next];
      by_[image.index()] = static_cast<int32_t>(g);
      order_.push_back(image);
    }
  if (order_.size() == num_ranks) return {};
  const auto missed = std::find(parent_.begin(), parent_.end(), NodeId{-1});
  return NoTranslations(
      fmt::format("the generators do not take rank 0 to rank {}", missed - parent_.begin()));
}

Status Translations::CheckCommuting() const {
  for (size_t c = 0; c < generators_.size(); ++c) {
    const NodePermutation images = ImagesOf(generators_[c][0]);
    for (size_t g = 0; g < generators_.size(); ++g) {
      const NodePermutation& generator = generators_[g];
      const auto commute = [&](int32_t rank) {
        const auto r = static_cast<size_t>(rank);
        return images[generator[r].index()] == generator[images[r].index()];
      };
      if (const auto failed = FirstFailure(static_cast<int32_t>(images.size()), commute))
        return NoTranslations(
            fmt::format("the generators make several symmetries that take rank 0 to one rank: "
                        "seen at rank {} under generators {} and {}",
                        *failed, c, g));
    }
  }
  return {};
}

Status Translations::CheckLinks(const Topology& topology) const {
  const OrderedPorts ordered(topology);
  for (size_t g = 0; g < generators_.size(); ++g) {
    const auto fits = [&](int32_t rank) {
      thread_local std::vector<OrderedPorts::Port> moved, there;
      return LinksFit(topology, ordered, generators_[g], NodeId{rank}, moved, there);
    };
    if (const auto failed = FirstFailure(topology.num_ranks(), fits))
      return NoTranslations(
          fmt::format("generator {} is no symmetry of the network: it takes rank {} to rank {}, "
                      "and the links out of the one not to those out of the other",
                      g, *failed, generators_[g][static_cast<size_t>(*failed)].value));
  }
  return {};
}

void Translations::ClassifyLinks(const Topology& topology) {
  const OrderedPorts ordered(topology);
  num_classes_ = topology.OutLinks(NodeId{0}).size();
  class_.resize(static_cast<size_t>(topology.num_links()));
  in_link_.assign(class_.size(), LinkId{-1});
  int32_t next_class = 0;
  for (LinkId link : topology.OutLinks(NodeId{0})) class_[link.index()] = next_class++;
  std::vector<OrderedPorts::Port> moved, there;
  for (NodeId rank : order_) {
    if (rank.value != 0) {
      const NodeId parent = parent_[rank.index()];
      const auto by = static_cast<size_t>(by_[rank.index()]);
      TUTTI_CHECK(LinksFit(topology, ordered, generators_[by], parent, moved, there));
      for (size_t i = 0; i < moved.size(); ++i)
        class_[there[i].link.index()] = class_[moved[i].link.index()];
    }
    for (LinkId link : topology.OutLinks(rank)) {
      const size_t at = topology.head(link).index() * static_cast<size_t>(num_classes_) +
                        static_cast<size_t>(class_[link.index()]);
      TUTTI_CHECK(in_link_[at].value < 0);
      in_link_[at] = link;
    }
  }
}

NodePermutation Translations::ImagesOf(NodeId node) const {
  NodePermutation images(order_.size());
  images[0] = node;
  for (size_t i = 1; i < order_.size(); ++i) {
    const size_t rank = order_[i].index();
    images[rank] =
        generators_[static_cast<size_t>(by_[rank])][images[parent_[rank].index()].index()];
  }
  return images;
}

NodePermutation Translations::Inverses() const {
  // With ranks as group elements: (g x)^-1 = x^-1 g^-1, and multiplying by g^-1 from the right is
  // ImagesOf(g^-1).
  std::vector<NodePermutation> after;
  for (const NodePermutation& generator : generators_) {
    const auto back = std::find(generator.begin(), generator.end(), NodeId{0});
    after.push_back(ImagesOf(NodeId{static_cast<int32_t>(back - generator.begin())}));
  }
  NodePermutation inverses(order_.size());
  inverses[0] = NodeId{0};
  for (size_t i = 1; i < order_.size(); ++i) {
    const size_t rank = order_[i].index();
    inverses[rank] = after[static_cast<size_t>(by_[rank])][inverses[parent_[rank].index()].index()];
  }
  return inverses;
}

}  // namespace tutti
