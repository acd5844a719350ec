#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "binary.h"
#include "bytes.h"
#include "json.h"
#include "structure.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"

namespace tutti {
namespace {

using namespace binary;

constexpr int kHeaderLevel = 3;

Result<std::string> Preamble(const std::string& header_text) {
  std::string frame(ZSTD_compressBound(header_text.size()), '\0');
  const size_t length = ZSTD_compress(frame.data(), frame.size(), header_text.data(),
                                      header_text.size(), kHeaderLevel);
  if (ZSTD_isError(length) != 0)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("cannot compress the header: {}", ZSTD_getErrorName(length)));
  frame.resize(length);
  std::string out(kMagic);
  PutU32(out, kVersion);
  PutU32(out, 0);
  PutU64(out, header_text.size());
  PutU64(out, frame.size());
  PutU64(out, Checksum(out));
  out += frame;
  PutU64(out, Checksum(frame));
  return out;
}

class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status Write(std::string_view bytes) = 0;
  virtual Status Commit() = 0;
  virtual std::optional<uint64_t> FreeBytes() const = 0;
};

class FileSink : public Sink {
 public:
  explicit FileSink(AtomicFile file) : file_(std::move(file)) {}
  Status Write(std::string_view bytes) override { return file_.Write(bytes); }
  Status Commit() override { return file_.Commit(); }
  std::optional<uint64_t> FreeBytes() const override { return file_.FreeBytes(); }

 private:
  AtomicFile file_;
};

class StringSink : public Sink {
 public:
  explicit StringSink(std::string* out) : out_(out) {}
  Status Write(std::string_view bytes) override {
    out_->append(bytes);
    return {};
  }
  Status Commit() override { return {}; }
  std::optional<uint64_t> FreeBytes() const override { return std::nullopt; }

 private:
  std::string* out_;
};

class BinaryWriter : public ScheduleWriter {
 public:
  // `where` stands before every message that the sink does not make.
  BinaryWriter(std::unique_ptr<Sink> sink, std::string where, const Topology& topology,
               const Schedule& header)
      : sink_(std::move(sink)),
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

  std::unique_ptr<Sink> sink_;
  std::string where_;
  bool timed_;
  TransferChecker checker_;
  std::vector<Pending> pending_;
  std::vector<int64_t> column_;
  ColumnEncoder encoder_;
  std::string payload_, block_;
  uint64_t num_transfers_ = 0, num_blocks_ = 0, chain_ = 0;
  bool failed_ = false, finished_ = false;
};

Status BinaryWriter::Begin(const std::string& preamble, uint64_t expected_transfers) {
  const uint64_t each = timed_ ? 8 : 4;
  const uint64_t most = (std::numeric_limits<uint64_t>::max() - preamble.size()) / each;
  const uint64_t need = preamble.size() + each * std::min(expected_transfers, most);
  const std::optional<uint64_t> have = sink_->FreeBytes();
  if (have && need > *have)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{}the disk is too full: {} transfers need up to {} bytes, {} "
                                 "are free",
                                 where_, expected_transfers, need, *have));
  chain_ = Checksum(preamble);
  return sink_->Write(preamble);
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
  const auto append_column = [this](const auto& value_of) {
    column_.clear();
    for (const Pending& p : pending_) column_.push_back(value_of(p));
    encoder_.Append(column_, payload_);
  };
  append_column([](const Pending& p) { return p.time; });
  append_column([](const Pending& p) { return int64_t{p.transfer.link.value}; });
  append_column([](const Pending& p) { return int64_t{p.transfer.shard.value}; });
  append_column([](const Pending& p) { return int64_t{p.transfer.begin}; });
  append_column([](const Pending& p) { return int64_t{p.transfer.units()}; });
  append_column([](const Pending& p) { return static_cast<int64_t>(p.transfer.op); });

  block_.clear();
  PutU32(block_, kBlockTag);
  PutU32(block_, static_cast<uint32_t>(pending_.size()));
  PutU64(block_, num_blocks_);
  PutU64(block_, payload_.size());
  const uint64_t checksum = Checksum(payload_, Checksum(block_));
  PutU64(block_, checksum);
  block_ += payload_;
  chain_ = checksum ^ xxh64::RotateLeft(chain_, 1);
  ++num_blocks_;
  num_transfers_ += pending_.size();
  pending_.clear();
  return sink_->Write(block_);
}

Status BinaryWriter::Finish() {
  if (failed_ || finished_)
    return InvalidArgument(where_ + "a failed or finished file cannot be finished");
  if (const Status flushed = Flush(); !flushed) return Fail(flushed);
  std::string trailer;
  PutU32(trailer, kTrailerTag);
  PutU32(trailer, 0);
  PutU64(trailer, num_transfers_);
  PutU64(trailer, num_blocks_);
  PutU64(trailer, chain_);
  PutU64(trailer, Checksum(trailer));
  if (const Status written = sink_->Write(trailer); !written) return Fail(written);
  finished_ = true;
  return sink_->Commit();
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
  const Result<std::string> preamble = Preamble(HeaderToJson(topology, header));
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
                    [&path]() -> Result<std::unique_ptr<Sink>> {
                      Result<AtomicFile> file = AtomicFile::Create(path);
                      if (!file) return tl::unexpected(file.error());
                      return std::make_unique<FileSink>(std::move(*file));
                    });
}

Result<std::string> ScheduleToBinary(const Topology& topology, const Schedule& schedule) {
  std::string bytes;
  const auto writer = OpenWriter(
      "", topology, schedule, 0,
      [&bytes]() -> Result<std::unique_ptr<Sink>> { return std::make_unique<StringSink>(&bytes); });
  if (!writer) return tl::unexpected(writer.error());
  if (const Status done = (*writer)->Append(schedule.transfers, schedule.start_ps); !done)
    return tl::unexpected(done.error());
  if (const Status done = (*writer)->Finish(); !done) return tl::unexpected(done.error());
  return bytes;
}

}  // namespace tutti
