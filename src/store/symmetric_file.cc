#include "symmetric_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bytes.h"
#include "corrupt.h"
#include "source.h"
#include "tutti/base/cancel.h"
#include "tutti/sched/structure.h"
#include "tutti/topo/properties.h"
#include "whole_file.h"

namespace tutti {
namespace {

using namespace binary;

// --- Writing

bool HasNames(const Topology& topology) {
  for (NodeId node : topology.Nodes())
    if (topology.node_name(node) != std::to_string(node.value)) return true;
  return false;
}

SymmetricHeader MakeHeader(const Topology& topology, const SymmetricSchedule& schedule) {
  SymmetricHeader header{Schedule{.collective = schedule.root.collective}, {}, 0, {}, {}, {}, {}};
  header.root.units_per_shard = schedule.root.units_per_shard;
  header.root.num_steps = schedule.root.num_steps;
  header.root.topology_fingerprint = schedule.root.topology_fingerprint;
  header.root.algorithm = schedule.root.algorithm;
  header.root.seed = schedule.root.seed;
  header.origin = topology.origin();
  header.num_generators = static_cast<int32_t>(schedule.generators.size());
  const NodeId rank0{0};
  for (LinkId link : topology.OutLinks(rank0))
    header.ports.push_back({topology.head(link).value, topology.spec(link)});
  header.loops.assign(topology.self_loops(rank0).begin(), topology.self_loops(rank0).end());
  header.host_bandwidth = topology.host_bandwidth(rank0);
  if (HasNames(topology))
    for (NodeId node : topology.Nodes()) header.node_names.push_back(topology.node_name(node));
  return header;
}

// What keeps a schedule from being written.
Status CheckWritable(const Topology& topology, const Translations& translations,
                     const SymmetricSchedule& schedule) {
  if (!HasSymmetricForm(schedule.root.collective))
    return InvalidArgument(
        fmt::format("{} has no symmetric form", Name(schedule.root.collective.kind())));
  if (schedule.root.kind != ScheduleKind::kStep)
    return InvalidArgument("a timed schedule has no symmetric form");
  if (const Status fine = CheckStructure(topology, schedule.root); !fine) return fine;
  for (const Transfer& transfer : schedule.root.transfers)
    if (transfer.shard.value != 0)
      return InvalidArgument(
          fmt::format("shard {} in a symmetric schedule, which holds the "
                      "transfers of shard 0 only",
                      transfer.shard.value));
  if (translations.generators() != schedule.generators)
    return InvalidArgument("the translations are not those of the schedule");
  if (schedule.root.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the schedule was made for another network");
  if (!HasOrderedLinks(topology))
    return InvalidArgument("the links of a rank are not in the order head, bandwidth, alpha");
  return {};
}

// Classes and senders in place of links and shards, in an order that makes columns short.
std::vector<Transfer> InClasses(const Topology& topology, const Translations& translations,
                                const Schedule& root) {
  std::vector<Transfer> transfers = root.transfers;
  for (Transfer& transfer : transfers) {
    transfer.shard = ShardId{topology.tail(transfer.link).value};
    transfer.link = LinkId{translations.LinkClass(transfer.link)};
  }
  const auto key = [](const Transfer& t) {
    return std::make_tuple(t.step, t.link.value, t.shard.value, t.begin, t.end, t.op);
  };
  std::sort(transfers.begin(), transfers.end(),
            [&key](const Transfer& a, const Transfer& b) { return key(a) < key(b); });
  return transfers;
}

// Calls write(first, count) for every block of `total` values.
template <class Write>
Status ForEachBlock(size_t total, const Write& write) {
  for (size_t first = 0; first < total; first += kBlockTransfers) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const size_t count = std::min<size_t>(total - first, kBlockTransfers);
    if (Status written = write(first, count); !written) return written;
  }
  return {};
}

Status WriteBlocks(FrameWriter& frame, const std::vector<NodePermutation>& generators,
                   const std::vector<Transfer>& transfers) {
  ColumnEncoder column_encoder;
  std::vector<int64_t> column;
  std::string payload;
  for (const NodePermutation& generator : generators) {
    const Status written = ForEachBlock(generator.size(), [&](size_t first, size_t count) {
      column.clear();
      for (size_t i = first; i < first + count; ++i) column.push_back(generator[i].value);
      payload.clear();
      column_encoder.Append(column, payload);
      return frame.WriteBlock(kGeneratorTag, static_cast<uint32_t>(count), payload);
    });
    if (!written) return written;
  }
  TransferEncoder encoder;
  return ForEachBlock(transfers.size(), [&](size_t first, size_t count) {
    payload.clear();
    encoder.Append(
        count, [&](size_t i) { return int64_t{transfers[first + i].step}; },
        [&](size_t i) -> const Transfer& { return transfers[first + i]; }, payload);
    return frame.WriteBlock(kBlockTag, static_cast<uint32_t>(count), payload);
  });
}

template <class MakeSink>
Status Write(const Topology& topology, const Translations& translations,
             const SymmetricSchedule& schedule, const MakeSink& make_sink) {
  if (const Status fine = CheckWritable(topology, translations, schedule); !fine) return fine;
  const Result<std::string> preamble =
      MakePreamble(kSymmetricVersion, SymmetricHeaderToJson(MakeHeader(topology, schedule)));
  if (!preamble) return tl::unexpected(preamble.error());
  const std::vector<Transfer> transfers = InClasses(topology, translations, schedule.root);
  Result<std::unique_ptr<Sink>> sink = make_sink();
  if (!sink) return tl::unexpected(sink.error());
  FrameWriter frame(std::move(*sink));
  const auto num_ranks = static_cast<uint64_t>(topology.num_ranks());
  const uint64_t need =
      preamble->size() + 4 * (num_ranks * schedule.generators.size() + transfers.size());
  if (const auto have = frame.FreeBytes(); have && need > *have)
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("the disk is too full: up to {} bytes are needed, {} are free", need, *have));
  if (Status begun = frame.Begin(*preamble); !begun) return begun;
  if (Status written = WriteBlocks(frame, schedule.generators, transfers); !written) return written;
  return frame.Finish(transfers.size());
}

// --- Reading

// The network that the generators make of rank 0's ports, and where each of them has gone.
struct Network {
  Topology topology;
  // The link of class c out of rank u is at u * ports + c.
  std::vector<LinkId> link;
};

// [u] is where a product of generators that takes rank 0 to u takes `node`; empty when no product
// reaches some rank. `order`, `parent` and `by` are a tree over the ranks.
class Tree {
 public:
  explicit Tree(const std::vector<NodePermutation>& generators, size_t num_ranks)
      : generators_(generators), from_(num_ranks, -1), by_(num_ranks, 0) {
    from_[0] = 0;
    order_.push_back(0);
    for (size_t next = 0; next < order_.size(); ++next)
      for (size_t g = 0; g < generators.size(); ++g) {
        const int32_t image = generators[g][static_cast<size_t>(order_[next])].value;
        if (from_[static_cast<size_t>(image)] >= 0) continue;
        from_[static_cast<size_t>(image)] = order_[next];
        by_[static_cast<size_t>(image)] = static_cast<uint32_t>(g);
        order_.push_back(image);
      }
  }

  bool reaches_all() const { return order_.size() == from_.size(); }
  std::vector<int32_t> ImagesOf(int32_t node) const {
    std::vector<int32_t> images(from_.size());
    images[0] = node;
    for (size_t i = 1; i < order_.size(); ++i) {
      const auto rank = static_cast<size_t>(order_[i]);
      const auto before = static_cast<size_t>(images[static_cast<size_t>(from_[rank])]);
      images[rank] = generators_[by_[rank]][before].value;
    }
    return images;
  }

 private:
  const std::vector<NodePermutation>& generators_;
  std::vector<int32_t> order_, from_;
  std::vector<uint32_t> by_;
};

Result<Network> BuildNetwork(SymmetricHeader& header,
                             const std::vector<NodePermutation>& generators) {
  const int32_t num_ranks = header.root.collective.num_ranks();
  const Tree tree(generators, static_cast<size_t>(num_ranks));
  if (!tree.reaches_all())
    return Corrupt("the generators do not take rank 0 to every rank of the network");
  const size_t num_ports = header.ports.size();
  std::vector<std::vector<int32_t>> heads;
  for (const SymmetricHeader::Port& port : header.ports) heads.push_back(tree.ImagesOf(port.head));

  Topology::Builder builder(num_ranks);
  std::vector<LinkId> link(static_cast<size_t>(num_ranks) * num_ports);
  std::vector<size_t> order(num_ports);
  int32_t next = 0;
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    for (size_t port = 0; port < num_ports; ++port) {
      order[port] = port;
      if (heads[port][r] == rank)
        return Corrupt(fmt::format("port {} of rank {} leads to the rank itself", port, rank));
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t port) {
        const LinkSpec& spec = header.ports[port].spec;
        return std::make_tuple(heads[port][r], spec.bandwidth, spec.alpha_ps, port);
      };
      return key(a) < key(b);
    });
    for (size_t port : order) {
      builder.AddLink(NodeId{rank}, NodeId{heads[port][r]}, header.ports[port].spec);
      link[r * num_ports + port] = LinkId{next++};
    }
    for (const LinkSpec& loop : header.loops) builder.AddLink(NodeId{rank}, NodeId{rank}, loop);
  }
  heads.clear();
  builder.SetNodeNames(std::move(header.node_names));
  builder.SetOrigin(std::move(header.origin));
  if (header.host_bandwidth)
    for (int32_t rank = 0; rank < num_ranks; ++rank)
      builder.SetHostBandwidth(NodeId{rank}, *header.host_bandwidth);
  Result<Topology> topology = std::move(builder).Build();
  if (!topology) return Corrupt("network: " + topology.error().message);
  if (topology->Fingerprint() != header.root.topology_fingerprint)
    return Corrupt("the network is not the one that the fingerprint belongs to");
  return Network{*std::move(topology), std::move(link)};
}

Result<NodePermutation> ReadGenerator(BlockReader& blocks, ColumnDecoder& decoder,
                                      int32_t num_ranks) {
  NodePermutation generator;
  std::vector<bool> seen;
  std::vector<int64_t> column;
  while (generator.size() < static_cast<size_t>(num_ranks)) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (blocks.done()) return Corrupt("the file ends within its generators");
    const Result<uint32_t> count = blocks.Read(kGeneratorTag);
    if (!count) return tl::unexpected(count.error());
    column.resize(*count);
    std::string_view rest = blocks.payload();
    if (!decoder.Take(rest, column) || !rest.empty())
      return blocks.Corrupt("its column does not decode");
    if (generator.size() + *count > static_cast<size_t>(num_ranks))
      return blocks.Corrupt("a generator of more numbers than there are ranks");
    seen.resize(static_cast<size_t>(num_ranks));
    for (int64_t image : column) {
      if (image < 0 || image >= num_ranks || seen[static_cast<size_t>(image)])
        return blocks.Corrupt("a generator that is no permutation of the ranks");
      seen[static_cast<size_t>(image)] = true;
      generator.push_back(NodeId{static_cast<int32_t>(image)});
    }
    blocks.Advance();
  }
  return generator;
}

Status ReadTransfers(BlockReader& blocks, const Network& network, size_t num_ports,
                     Schedule& root) {
  TransferChecker checker(network.topology, root);
  TransferDecoder decoder;
  std::vector<Transfer> transfers;
  while (!blocks.done()) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Result<uint32_t> count = blocks.Read(kBlockTag);
    if (!count) return tl::unexpected(count.error());
    if (const Status decoded = decoder.Decode(blocks, *count, transfers, nullptr); !decoded)
      return decoded;
    for (Transfer& transfer : transfers) {
      const int32_t sender = transfer.shard.value, port = transfer.link.value;
      if (sender < 0 || sender >= network.topology.num_ranks() || port < 0 ||
          port >= static_cast<int32_t>(num_ports))
        return blocks.Corrupt(
            fmt::format("port {} of rank {}: the network has {} ports at each of "
                        "{} ranks",
                        port, sender, num_ports, network.topology.num_ranks()));
      transfer.shard = ShardId{0};
      transfer.link =
          network.link[static_cast<size_t>(sender) * num_ports + static_cast<size_t>(port)];
      if (!checker.Accept(transfer, 0))
        return blocks.Corrupt("a transfer: " + checker.Explain(transfer, 0));
    }
    root.transfers.insert(root.transfers.end(), transfers.begin(), transfers.end());
    blocks.Advance();
  }
  return blocks.CheckEnd(root.transfers.size());
}

Result<SymmetricFile> Read(Source& source, const Front& front) {
  Result<SymmetricHeader> header = SymmetricHeaderFromJson(front.text);
  if (!header) return Within("header", header.error());
  const Result<Trailer> trailer = ReadTrailer(source, front);
  if (!trailer) return tl::unexpected(trailer.error());
  BlockReader blocks(source, front, *trailer);
  SymmetricSchedule schedule{header->root, {}};
  ColumnDecoder decoder;
  for (int32_t g = 0; g < header->num_generators; ++g) {
    Result<NodePermutation> generator =
        ReadGenerator(blocks, decoder, schedule.root.collective.num_ranks());
    if (!generator) return tl::unexpected(generator.error());
    schedule.generators.push_back(*std::move(generator));
  }
  Result<Network> network = BuildNetwork(*header, schedule.generators);
  if (!network) return tl::unexpected(network.error());
  if (const Status read = ReadTransfers(blocks, *network, header->ports.size(), schedule.root);
      !read)
    return tl::unexpected(read.error());
  return SymmetricFile{std::move(network->topology), std::move(schedule)};
}

Result<SymmetricFile> Read(Source& source) {
  const Result<Front> front = ReadFront(source);
  if (!front) return tl::unexpected(front.error());
  if (front->version != kSymmetricVersion)
    return Corrupt(
        fmt::format("version {} of the format holds whole schedules; a symmetric one is "
                    "in version {}",
                    front->version, kSymmetricVersion));
  return Read(source, *front);
}

}  // namespace

Status WriteSymmetricFile(const std::string& path, const Topology& topology,
                          const Translations& translations, const SymmetricSchedule& schedule) {
  if (path.ends_with(".json"))
    return InvalidArgument(path + ": a symmetric schedule has no JSON form; use another ending");
  const Status written =
      Write(topology, translations, schedule, [&path] { return OpenFileSink(path); });
  if (!written && written.error().code == ErrorCode::kInvalidArgument)
    return Within(path, written.error());
  return written;
}

Result<std::string> SymmetricToBinary(const Topology& topology, const Translations& translations,
                                      const SymmetricSchedule& schedule) {
  std::string bytes;
  const Status written =
      Write(topology, translations, schedule,
            [&bytes]() -> Result<std::unique_ptr<Sink>> { return MakeStringSink(&bytes); });
  if (!written) return tl::unexpected(written.error());
  return bytes;
}

Result<SymmetricFile> SymmetricFromBinary(std::span<const std::byte> bytes) {
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Read(*MakeMemorySource(view));
}

Result<SymmetricFile> ReadSymmetricFile(const std::string& path) {
  const Result<std::unique_ptr<Source>> source = OpenPathSource(path);
  if (!source) return tl::unexpected(source.error());
  Result<SymmetricFile> file = Read(**source);
  if (!file) return Within(path, file.error());
  return file;
}

namespace binary {

Result<std::unique_ptr<ScheduleReader>> OpenExpanded(Source& source, const Front& front) {
  Result<SymmetricFile> file = Read(source, front);
  if (!file) return tl::unexpected(file.error());
  const Result<Translations> translations =
      Translations::Make(file->topology, file->schedule.generators);
  if (!translations)
    return Corrupt("no symmetries of the network: " + translations.error().message);
  Result<Schedule> whole =
      Expand(*translations, file->topology, file->schedule, kMaxExpandedTransfers);
  if (!whole) return tl::unexpected(whole.error());
  return MakeWholeFileReader({std::move(file->topology), *std::move(whole)});
}

}  // namespace binary
}  // namespace tutti
