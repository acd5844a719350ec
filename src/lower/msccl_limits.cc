#include <fmt/format.h>

#include <map>

#include "msccl_file.h"

namespace tutti {

Result<MscclDialect> ParseMscclDialect(std::string_view name) {
  for (const MscclDialect dialect :
       {MscclDialect::kMsccl, MscclDialect::kExecutorNccl, MscclDialect::kRccl})
    if (lower::ReaderOf(dialect).name == name) return dialect;
  return InvalidArgument(
      fmt::format("unknown dialect '{}'; accepted are msccl, executor-nccl, rccl", name));
}

}  // namespace tutti

namespace tutti::lower {

const MscclReader& ReaderOf(MscclDialect dialect) {
  static constexpr std::array<MscclReader, 3> kReaders{{
      {"msccl", 32, 256, 216, 215, false, "reduce_scatter", false},
      {"executor-nccl", 32, 64, 1024, 127, true, "reducescatter", true},
      {"rccl", 128, 64, 64, 63, true, "reducescatter", true},
  }};
  return kReaders[static_cast<size_t>(dialect)];
}

std::string_view CollOf(const MscclReader& reader, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "allgather";
    case CollectiveKind::kReduceScatter:
      return reader.reduce_scatter;
    case CollectiveKind::kAllReduce:
      return "allreduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kGather:
      return reader.gathers ? "gather" : "";
    case CollectiveKind::kScatter:
      return reader.gathers ? "scatter" : "";
    case CollectiveKind::kAllToAll:
      return "alltoall";
    case CollectiveKind::kAllToAllV:
      break;
  }
  return "";
}

namespace {

class ExcessFinder {
 public:
  ExcessFinder(const MscclFile& file, const MscclReader& reader) : file_(file), reader_(reader) {}

  std::vector<MscclExcess> Find() {
    Check(MscclLimit::kChannels, file_.nchannels, reader_.max_channels, "algo: channels");
    Check(MscclLimit::kOffset, file_.nchunksperloop, kMscclMaxOffset + 1,
          "algo: chunks (16-bit offsets)");
    Check(MscclLimit::kNodes, static_cast<int64_t>(file_.gpus.size()), kMscclMaxChildren, "gpus");
    for (size_t g = 0; g < file_.gpus.size(); ++g) CheckGpu(g);
    return std::move(found_);
  }

 private:
  void Check(MscclLimit limit, int64_t value, int64_t most, const std::string& what) {
    if (value <= most) return;
    found_.push_back(
        {limit, fmt::format("{} takes at most {} {}, got {}", reader_.name, most, what, value)});
  }

  void CheckGpu(size_t g) {
    const MscclGpu& gpu = file_.gpus[g];
    const std::string where = fmt::format(" (gpu {})", g);
    Check(MscclLimit::kThreadBlocks, static_cast<int64_t>(gpu.tbs.size()), reader_.max_tbs,
          "thread blocks" + where);
    for (const int64_t chunks : gpu.chunks)
      Check(MscclLimit::kOffset, chunks, kMscclMaxOffset + 1,
            "chunks a buffer (16-bit offsets)" + where);
    auto nodes = static_cast<int64_t>(1 + file_.gpus.size() + gpu.tbs.size());
    std::map<int64_t, std::pair<int64_t, int64_t>> peers;  // sends, receives of a channel
    for (size_t t = 0; t < gpu.tbs.size(); ++t) {
      const MscclThreadBlock& tb = gpu.tbs[t];
      nodes += static_cast<int64_t>(tb.steps.size());
      peers[tb.chan].first += tb.send >= 0 ? 1 : 0;
      peers[tb.chan].second += tb.recv >= 0 ? 1 : 0;
      CheckSteps(tb, fmt::format(" (gpu {} tb {})", g, t));
    }
    Check(MscclLimit::kNodes, nodes, kMscclMaxNodes, "XML nodes a gpu" + where);
    for (const auto& [channel, count] : peers) {
      const std::string which = fmt::format(" (gpu {} channel {})", g, channel);
      Check(MscclLimit::kPeers, count.first, kMscclMaxPeers, "send peers a channel" + which);
      Check(MscclLimit::kPeers, count.second, kMscclMaxPeers, "receive peers a channel" + which);
    }
  }

  void CheckSteps(const MscclThreadBlock& tb, const std::string& where) {
    Check(MscclLimit::kSteps, static_cast<int64_t>(tb.steps.size()), reader_.max_steps,
          "steps a thread block" + where);
    int64_t depid = 0, offset = 0, count = 0;
    for (const MscclStep& step : tb.steps) {
      depid = std::max(depid, step.depid);
      offset = std::max({offset, step.src.offset, step.dst.offset});
      count = std::max(count, step.cnt);
    }
    Check(MscclLimit::kDependency, depid, reader_.max_depid, "as depid" + where);
    Check(MscclLimit::kOffset, offset, kMscclMaxOffset, "as offset" + where);
    Check(MscclLimit::kCount, count, kMscclMaxCount, "as cnt" + where);
  }

  const MscclFile& file_;
  const MscclReader& reader_;
  std::vector<MscclExcess> found_;
};

}  // namespace

std::vector<MscclExcess> FindExcess(const MscclFile& file, const MscclReader& reader) {
  return ExcessFinder(file, reader).Find();
}

}  // namespace tutti::lower
