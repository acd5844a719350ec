// Routings as binary files, and which of both formats a file is in.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "binary.h"
#include "bytes.h"
#include "column.h"
#include "corrupt.h"
#include "frame.h"
#include "json_fields.h"
#include "routing_json.h"
#include "source.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/store/routing_store.h"

namespace tutti {
namespace {

using namespace binary;

// --- Writing

// With groups it follows from them.
bool HoldsDemand(const Routing& routing) {
  return !routing.demand.empty() && routing.groups.empty();
}

class Writer {
 public:
  Writer(std::unique_ptr<Sink> sink, const Topology& topology, const Routing& routing)
      : frame_(std::move(sink)), topology_(topology), routing_(routing) {}

  Status Write(const std::string& preamble) {
    if (Status begun = frame_.Begin(preamble); !begun) return begun;
    if (HoldsDemand(routing_))
      if (Status written = WriteColumns(kDemandTag, routing_.demand); !written) return written;
    NodeId source{0};
    int64_t pair = 0;
    std::vector<int64_t> pairs, weights, lengths, layers, ports;
    const auto flush = [&]() -> Status {
      if (pairs.empty()) return {};
      payload_.clear();
      for (const auto* column : {&pairs, &weights, &lengths, &layers})
        encoder_.Append(*column, payload_);
      const auto count = static_cast<uint32_t>(pairs.size());
      if (Status written = frame_.WriteBlock(kPathTag, count, payload_); !written) return written;
      if (Status written = WriteColumns(kHopTag, ports); !written) return written;
      for (auto* column : {&pairs, &weights, &lengths, &layers, &ports}) column->clear();
      return {};
    };
    for (int64_t p = 0; p < routing_.num_paths(); ++p) {
      const auto path = static_cast<size_t>(p);
      while (routing_.first_path[static_cast<size_t>(pair) + 1] <= p) ++pair;
      source = NodeId{static_cast<int32_t>(pair / routing_.num_ranks)};
      pairs.push_back(pair);
      weights.push_back(routing_.weight[path]);
      lengths.push_back(routing_.first_hop[path + 1] - routing_.first_hop[path]);
      layers.push_back(routing_.num_layers > 0 ? routing_.layer[path] : 0);
      NodeId at = source;
      for (const LinkId link : routing_.Hops(PathId{static_cast<int32_t>(p)})) {
        if (topology_.tail(link) != at)
          return InvalidArgument(fmt::format("path {} of the routing is no chain of links", p));
        ports.push_back(link.value - topology_.OutLinks(at)[0].value);
        at = topology_.head(link);
      }
      if (pairs.size() < kBlockTransfers) continue;
      if (CancelRequested()) return tl::unexpected(CancelledError());
      if (Status flushed = flush(); !flushed) return flushed;
    }
    if (Status flushed = flush(); !flushed) return flushed;
    return frame_.Finish(static_cast<uint64_t>(routing_.num_paths()));
  }

 private:
  Status WriteColumns(uint32_t tag, const std::vector<int64_t>& values) {
    for (size_t first = 0; first < values.size(); first += kBlockTransfers) {
      const size_t count = std::min<size_t>(values.size() - first, kBlockTransfers);
      payload_.clear();
      encoder_.Append(std::span(values).subspan(first, count), payload_);
      if (Status written = frame_.WriteBlock(tag, static_cast<uint32_t>(count), payload_); !written)
        return written;
    }
    return {};
  }

  FrameWriter frame_;
  const Topology& topology_;
  const Routing& routing_;
  ColumnEncoder encoder_;
  std::string payload_;
};

template <class MakeSink>
Status WriteBinary(const Topology& topology, const Routing& routing, const MakeSink& make_sink) {
  if (Status walkable = CheckWalkable(topology, routing); !walkable) return walkable;
  std::string header = OpenRoutingHeader(topology, routing, false);
  header += fmt::format(",\n\"has_demand\": {}\n}}\n", HoldsDemand(routing) ? "true" : "false");
  const Result<std::string> preamble = MakePreamble(kRoutingVersion, header);
  if (!preamble) return tl::unexpected(preamble.error());
  Result<std::unique_ptr<Sink>> sink = make_sink();
  if (!sink) return tl::unexpected(sink.error());
  return Writer(*std::move(sink), topology, routing).Write(*preamble);
}

// --- Reading

class Reader {
 public:
  Reader(BlockReader& blocks, RoutingFile& file)
      : blocks_(blocks), topology_(file.topology), routing_(file.routing) {}

  Status Read(bool has_demand) {
    const auto ranks = static_cast<size_t>(topology_.num_ranks());
    if (has_demand) {
      if (Status read = ReadColumns(kDemandTag, ranks * ranks, routing_.demand); !read) return read;
      for (const int64_t entry : routing_.demand)
        if (entry < 0) return Corrupt("the demand matrix has a negative entry");
    }
    routing_.first_path.assign(1, 0);
    routing_.first_hop.assign(1, 0);
    while (!blocks_.done()) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      if (Status read = ReadPaths(); !read) return read;
    }
    routing_.first_path.resize(ranks * ranks + 1, routing_.num_paths());
    return blocks_.CheckEnd(routing_.weight.size());
  }

 private:
  Status ReadPaths() {
    const Result<uint32_t> count = blocks_.Read(kPathTag);
    if (!count) return tl::unexpected(count.error());
    std::vector<int64_t> pairs(*count), weights(*count), lengths(*count), layers(*count);
    std::string_view rest = blocks_.payload();
    for (auto* column : {&pairs, &weights, &lengths, &layers})
      if (!decoder_.Take(rest, *column)) return blocks_.Corrupt("its columns do not decode");
    if (!rest.empty()) return blocks_.Corrupt("its columns do not decode");
    const auto pair_count = int64_t{routing_.num_ranks} * routing_.num_ranks;
    size_t num_hops = 0;
    for (size_t i = 0; i < *count; ++i) {
      if (pairs[i] < static_cast<int64_t>(routing_.first_path.size()) - 1 || pairs[i] >= pair_count)
        return blocks_.Corrupt(fmt::format("pair {} out of order or range", pairs[i]));
      if (weights[i] < 1) return blocks_.Corrupt(fmt::format("a weight of {}", weights[i]));
      if (lengths[i] < 1 || lengths[i] > topology_.num_nodes())
        return blocks_.Corrupt(fmt::format("a path of {} hops", lengths[i]));
      if (layers[i] < 0 || layers[i] >= std::max(routing_.num_layers, 1))
        return blocks_.Corrupt(fmt::format("layer {} of {}", layers[i], routing_.num_layers));
      num_hops += static_cast<size_t>(lengths[i]);
      routing_.first_path.resize(static_cast<size_t>(pairs[i]) + 1, routing_.num_paths());
      routing_.weight.push_back(weights[i]);
      if (routing_.num_layers > 0) routing_.layer.push_back(static_cast<int16_t>(layers[i]));
    }
    blocks_.Advance();
    std::vector<int64_t> ports;
    if (Status read = ReadColumns(kHopTag, num_hops, ports); !read) return read;
    return FollowPorts(pairs, lengths, ports);
  }

  Status FollowPorts(const std::vector<int64_t>& pairs, const std::vector<int64_t>& lengths,
                     const std::vector<int64_t>& ports) {
    size_t next = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      NodeId at{static_cast<int32_t>(pairs[i] / routing_.num_ranks)};
      for (int64_t hop = 0; hop < lengths[i]; ++hop) {
        const IdRange<LinkId> links = topology_.OutLinks(at);
        const int64_t port = ports[next++];
        if (port < 0 || port >= links.size())
          return Corrupt(fmt::format("path {}, hop {}: node {} has no link {}",
                                     routing_.first_hop.size() - 1, hop, at.value, port));
        routing_.hops.push_back(links[static_cast<int32_t>(port)]);
        at = topology_.head(routing_.hops.back());
      }
      routing_.first_hop.push_back(static_cast<int64_t>(routing_.hops.size()));
    }
    return {};
  }

  // `total` numbers, which are there: memory follows what is read.
  Status ReadColumns(uint32_t tag, size_t total, std::vector<int64_t>& values) {
    while (values.size() < total) {
      if (blocks_.done()) return Corrupt("the file ends within a list of numbers");
      const Result<uint32_t> count = blocks_.Read(tag);
      if (!count) return tl::unexpected(count.error());
      if (*count > total - values.size()) return blocks_.Corrupt("more numbers than announced");
      const size_t first = values.size();
      values.resize(first + *count);
      std::string_view rest = blocks_.payload();
      if (!decoder_.Take(rest, std::span(values).subspan(first)) || !rest.empty())
        return blocks_.Corrupt("its column does not decode");
      blocks_.Advance();
    }
    return {};
  }

  BlockReader& blocks_;
  const Topology& topology_;
  Routing& routing_;
  ColumnDecoder decoder_;
};

Result<RoutingFile> ReadBinary(Source& source) {
  const Result<Front> front = ReadFront(source);
  if (!front) return tl::unexpected(front.error());
  if (front->version != kRoutingVersion)
    return Corrupt("this file holds a schedule, not a routing");
  Result<nlohmann::json> root = ParseJson(front->text);
  if (!root) return Within("header", root.error());
  if (!root->is_object() || !root->contains("has_demand") || !(*root)["has_demand"].is_boolean())
    return Corrupt("header: lacks the key 'has_demand', true or false");
  const bool has_demand = (*root)["has_demand"].get<bool>();
  root->erase("has_demand");
  Result<RoutingFile> file = ReadRoutingHeader(*root, false);
  if (!file) return Within("header", file.error());
  const Result<Trailer> trailer = ReadTrailer(source, *front);
  if (!trailer) return tl::unexpected(trailer.error());
  if (trailer->num_transfers > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    return Corrupt(fmt::format("{} paths are too many", trailer->num_transfers));
  BlockReader blocks(source, *front, *trailer);
  if (has_demand && !file->routing.groups.empty())
    return Corrupt("it has groups, which say what the demand is, and a demand");
  if (const Status read = Reader(blocks, *file).Read(has_demand); !read)
    return tl::unexpected(read.error());
  return file;
}

Result<RoutingFile> ReadPath(const std::string& path) {
  const Result<std::unique_ptr<Source>> source = OpenPathSource(path);
  if (!source) return tl::unexpected(source.error());
  std::string first;
  if ((*source)->size() > 0)
    if (const Status read = (*source)->ReadAt(0, 1, first); !read)
      return tl::unexpected(read.error());
  if (!first.empty() && first[0] == kMagic[0]) return ReadBinary(**source);
  std::string text;
  if (const Status read = (*source)->ReadAt(0, (*source)->size(), text); !read)
    return tl::unexpected(read.error());
  return RoutingFromJson(text);
}

}  // namespace

Status WriteRoutingFile(const std::string& path, const Topology& topology, const Routing& routing) {
  if (path.ends_with(".json")) {
    const Result<std::string> text = RoutingToJson(topology, routing);
    return text ? WriteFileAtomically(path, *text) : Within(path, text.error());
  }
  const Status written = WriteBinary(topology, routing, [&path] { return OpenFileSink(path); });
  if (!written && written.error().code == ErrorCode::kInvalidArgument)
    return Within(path, written.error());
  return written;
}

Result<RoutingFile> ReadRoutingFile(const std::string& path) {
  try {
    Result<RoutingFile> file = ReadPath(path);
    if (!file && file.error().code == ErrorCode::kCorrupt) return Within(path, file.error());
    return file;
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kResourceExhausted, path + ": out of memory");
  }
}

Result<std::string> RoutingToBinary(const Topology& topology, const Routing& routing) {
  std::string bytes;
  const Status written =
      WriteBinary(topology, routing,
                  [&bytes]() -> Result<std::unique_ptr<Sink>> { return MakeStringSink(&bytes); });
  if (!written) return tl::unexpected(written.error());
  return bytes;
}

Result<RoutingFile> RoutingFromBinary(std::span<const std::byte> bytes) {
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return ReadBinary(*MakeMemorySource(view));
}

}  // namespace tutti
