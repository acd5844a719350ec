#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "binary.h"
#include "frame.h"
#include "json.h"
#include "structure.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

using namespace binary;

class BinaryWriter : public ScheduleWriter {
 public:
  // `where` stands before every message that the sink does not make.
  BinaryWriter(std::unique_ptr<Sink> sink, std::string where, const Topology& topology,
               const Schedule& header)
      : frame_(std::move(sink)),
        where_(std::move(where)),
        timed_(header.kind == ScheduleKind::kTimed),
        checker_(topology, header) {
    pending_.reserve(kBlockTransfers);
  }

  Status Begin(const std::string& preamble, uint64_t expected_transfers);
  Status Append(std::span<const Transfer> transfers, std::span<const int64_t> start_ps) override;
  Status Finish() override;

 private:
  struct Pending {
    int64_t time;
    Transfer transfer;
  };

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
  std::vector<Pending> pending_;
  TransferEncoder encoder_;
  std::string payload_;
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
    if (pending_.size() < kBlockTransfers) continue;
    if (const Status flushed = Flush(); !flushed) return flushed;
  }
  return {};
}

Status BinaryWriter::Flush() {
  if (pending_.empty()) return {};
  if (CancelRequested()) return tl::unexpected(CancelledError());
  // The order within one step or start is free; this one makes columns short.
  const auto before = [](const Pending& a, const Pending& b) {
    const auto key = [](const Pending& p) {
      const Transfer& t = p.transfer;
      return std::make_tuple(p.time, t.link.value, t.shard.value, t.begin, t.end, t.op);
    };
    return key(a) < key(b);
  };
  if (!std::is_sorted(pending_.begin(), pending_.end(), before))
    std::sort(pending_.begin(), pending_.end(), before);

  payload_.clear();
  encoder_.Append(
      pending_.size(), [this](size_t i) { return pending_[i].time; },
      [this](size_t i) -> const Transfer& { return pending_[i].transfer; }, payload_);

  const auto count = static_cast<uint32_t>(pending_.size());
  num_transfers_ += count;
  pending_.clear();
  return frame_.WriteBlock(kBlockTag, count, payload_);
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
