#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "binary.h"
#include "frame.h"
#include "json.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/sched/structure.h"

namespace tutti {
namespace {

using namespace binary;

struct Pending {
  int64_t time;
  Transfer transfer;
};

// One block on its way into bytes. Each works on its own, so that several may at once.
class BlockEncoder {
 public:
  // Sorts `transfers`; their columns are then the payload.
  void Encode(std::span<Pending> transfers);
  std::string_view payload() const { return payload_; }

 private:
  TransferEncoder encoder_;
  std::string payload_;
};

void BlockEncoder::Encode(std::span<Pending> transfers) {
  // The order within one step or start is free; this one makes columns short.
  const auto before = [](const Pending& a, const Pending& b) {
    const auto key = [](const Pending& p) {
      const Transfer& t = p.transfer;
      return std::make_tuple(p.time, t.link.value, t.shard.value, t.begin, t.end, t.op);
    };
    return key(a) < key(b);
  };
  if (!std::is_sorted(transfers.begin(), transfers.end(), before))
    std::sort(transfers.begin(), transfers.end(), before);
  payload_.clear();
  encoder_.Append(
      transfers.size(), [&](size_t i) { return transfers[i].time; },
      [&](size_t i) -> const Transfer& { return transfers[i].transfer; }, payload_);
}

// Blocks that are encoded at once: two a thread, so that none waits long for the slowest.
size_t BlocksAtOnce() {
  const auto threads = static_cast<size_t>(NumThreads());
  return threads == 1 ? 1 : std::min(2 * threads, kMaxBlocksAtOnce);
}

class BinaryWriter : public ScheduleWriter {
 public:
  // `where` stands before every message that the sink does not make.
  BinaryWriter(std::unique_ptr<Sink> sink, std::string where, const Topology& topology,
               const Schedule& header)
      : frame_(std::move(sink)),
        where_(std::move(where)),
        timed_(header.kind == ScheduleKind::kTimed),
        checker_(topology, header),
        encoders_(BlocksAtOnce()) {}

  Status Begin(const std::string& preamble, uint64_t expected_transfers);
  Status Append(std::span<const Transfer> transfers, std::span<const int64_t> start_ps) override;
  Status Finish() override;

 private:
  Status Add(std::span<const Transfer> transfers, std::span<const int64_t> start_ps);
  Status Flush();
  // A writer that failed once stays failed: the file would have a gap.
  Status Fail(Status status) {
    failed_ = true;
    return status;
  }

  FrameWriter frame_;
  std::string where_;
  bool timed_;
  TransferChecker checker_;
  std::vector<BlockEncoder> encoders_;
  std::vector<Pending> pending_;  // of the blocks to come
  uint64_t num_transfers_ = 0;
  bool failed_ = false, finished_ = false;
};

Status BinaryWriter::Begin(const std::string& preamble, uint64_t expected_transfers) {
  const uint64_t each = timed_ ? 8 : 4;
  const uint64_t most = (std::numeric_limits<uint64_t>::max() - preamble.size()) / each;
  const uint64_t need = preamble.size() + each * std::min(expected_transfers, most);
  const std::optional<uint64_t> have = frame_.FreeBytes();
  if (have && need > *have)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{}the disk is too full: {} transfers need up to {} bytes, {} "
                                 "are free",
                                 where_, expected_transfers, need, *have));
  return frame_.Begin(preamble);
}

Status BinaryWriter::Append(std::span<const Transfer> transfers,
                            std::span<const int64_t> start_ps) {
  if (failed_ || finished_)
    return InvalidArgument(where_ + "nothing can be appended to a failed or finished file");
  if (start_ps.size() != (timed_ ? transfers.size() : 0))
    return Fail(
        InvalidArgument(fmt::format("{}{} start times for {} transfers of a {} schedule", where_,
                                    start_ps.size(), transfers.size(), timed_ ? "timed" : "step")));
  const Status added = Add(transfers, start_ps);
  return added ? added : Fail(added);
}

Status BinaryWriter::Add(std::span<const Transfer> transfers, std::span<const int64_t> start_ps) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  for (size_t i = 0; i < transfers.size(); ++i) {
    const int64_t start = timed_ ? start_ps[i] : 0;
    if (!checker_.Accept(transfers[i], start))
      return InvalidArgument(fmt::format("{}transfer {}: {}", where_,
                                         num_transfers_ + pending_.size(),
                                         checker_.Explain(transfers[i], start)));
    pending_.push_back({timed_ ? start : transfers[i].step, transfers[i]});
    if (pending_.size() < encoders_.size() * kBlockTransfers) continue;
    if (const Status flushed = Flush(); !flushed) return flushed;
  }
  return {};
}

Status BinaryWriter::Flush() {
  if (pending_.empty()) return {};
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const size_t num_blocks = (pending_.size() + kBlockTransfers - 1) / kBlockTransfers;
  const auto block = [this](size_t i) {
    const size_t first = i * kBlockTransfers;
    return std::span(pending_).subspan(first,
                                       std::min<size_t>(kBlockTransfers, pending_.size() - first));
  };
  ParallelFor(static_cast<int64_t>(num_blocks), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      encoders_[i].Encode(block(i));
  });
  for (size_t i = 0; i < num_blocks; ++i) {
    const auto count = static_cast<uint32_t>(block(i).size());
    const Status written = frame_.WriteBlock(kBlockTag, count, encoders_[i].payload());
    if (!written) return written;
    num_transfers_ += count;
  }
  pending_.clear();
  return {};
}

Status BinaryWriter::Finish() {
  if (failed_ || finished_)
    return InvalidArgument(where_ + "a failed or finished file cannot be finished");
  if (const Status flushed = Flush(); !flushed) return Fail(flushed);
  if (const Status finished = frame_.Finish(num_transfers_); !finished) return Fail(finished);
  finished_ = true;
  return {};
}

// `where` as in BinaryWriter; `make_sink` is called when nothing else can fail but writing.
template <class MakeSink>
Result<std::unique_ptr<ScheduleWriter>> OpenWriter(const std::string& where,
                                                   const Topology& topology, const Schedule& header,
                                                   uint64_t expected_transfers,
                                                   const MakeSink& make_sink) {
  const auto named = [&where](const Error& error) {
    return MakeError(error.code, where + error.message);
  };
  if (const Status fine = CheckHeader(topology, header); !fine) return named(fine.error());
  const Result<std::string> preamble = MakePreamble(kVersion, HeaderToJson(topology, header));
  if (!preamble) return named(preamble.error());
  Result<std::unique_ptr<Sink>> sink = make_sink();
  if (!sink) return tl::unexpected(sink.error());
  auto writer = std::make_unique<BinaryWriter>(std::move(*sink), where, topology, header);
  if (const Status begun = writer->Begin(*preamble, expected_transfers); !begun)
    return tl::unexpected(begun.error());
  return writer;
}

}  // namespace

Result<std::unique_ptr<ScheduleWriter>> ScheduleWriter::Open(const std::string& path,
                                                             const Topology& topology,
                                                             const Schedule& header,
                                                             uint64_t expected_transfers) {
  return OpenWriter(path + ": ", topology, header, expected_transfers,
                    [&path] { return OpenFileSink(path); });
}

Result<std::string> ScheduleToBinary(const Topology& topology, const Schedule& schedule) {
  std::string bytes;
  const auto writer =
      OpenWriter("", topology, schedule, 0,
                 [&bytes]() -> Result<std::unique_ptr<Sink>> { return MakeStringSink(&bytes); });
  if (!writer) return tl::unexpected(writer.error());
  if (const Status done = (*writer)->Append(schedule.transfers, schedule.start_ps); !done)
    return tl::unexpected(done.error());
  if (const Status done = (*writer)->Finish(); !done) return tl::unexpected(done.error());
  return bytes;
}

}  // namespace tutti
