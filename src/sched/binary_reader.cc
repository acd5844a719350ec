#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "binary.h"
#include "bytes.h"
#include "json.h"
#include "structure.h"
#include "tutti/base/cancel.h"

namespace tutti::binary {
namespace {

tl::unexpected<Error> Corrupt(std::string message) {
  return MakeError(ErrorCode::kCorrupt, std::move(message));
}

struct Trailer {
  uint64_t num_transfers, num_blocks, chain;
};

// The text of the header and where the blocks start. Grows with what is really there, never with
// what a length claims.
Result<std::string> Inflate(const std::string& frame, uint64_t text_bytes) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  std::string text;
  std::string piece(std::min<uint64_t>(ZSTD_DStreamOutSize(), text_bytes + 1), '\0');
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0)
      return Corrupt(fmt::format("the header does not decompress: {}", ZSTD_getErrorName(left)));
    text.append(piece, 0, out.pos);
    if (text.size() > text_bytes || (left != 0 && in.pos == in.size && out.pos < out.size))
      return Corrupt("the header has another length than it says");
    if (left == 0) break;
  }
  if (text.size() != text_bytes || in.pos != in.size)
    return Corrupt("the header has another length than it says");
  return text;
}

struct Front {
  std::string text;
  uint64_t end;    // where the blocks start
  uint64_t chain;  // of the bytes before
};

Result<Front> ReadFront(Source& source) {
  const auto truncated = [&source] {
    return Corrupt(
        fmt::format("truncated: the file ends at byte {}, inside its header", source.size()));
  };
  if (source.size() < kPreambleBytes) return truncated();
  std::string bytes;
  if (const Status read = source.ReadAt(0, kPreambleBytes, bytes); !read)
    return tl::unexpected(read.error());
  const uint32_t version = GetU32(bytes.data() + 8);
  if (bytes.compare(0, kMagic.size(), kMagic) != 0) return Corrupt("this is no binary schedule");
  // Before the checksum: another version may keep it elsewhere.
  if (version != kVersion)
    return Corrupt(
        fmt::format("version {} of the binary schedule format is unknown; this program "
                    "reads version {}",
                    version, kVersion));
  if (GetU64(bytes.data() + 32) != Checksum(std::string_view(bytes).substr(0, 32)))
    return Corrupt("damaged: the checksum at byte 32 does not fit bytes 0 .. 31");
  const uint64_t text_bytes = GetU64(bytes.data() + 16), frame_bytes = GetU64(bytes.data() + 24);
  if (GetU32(bytes.data() + 12) != 0) return Corrupt("unknown flags at byte 12; accepted is 0");
  if (text_bytes > kMaxHeaderTextBytes)
    return Corrupt(
        fmt::format("a header of {} bytes is longer than {}", text_bytes, kMaxHeaderTextBytes));
  const uint64_t room = source.size() - kPreambleBytes;
  if (room < kChecksumBytes || frame_bytes > room - kChecksumBytes) return truncated();
  std::string frame;
  if (const Status read = source.ReadAt(kPreambleBytes, frame_bytes + kChecksumBytes, frame); !read)
    return tl::unexpected(read.error());
  const uint64_t chain = Checksum(bytes += frame);
  const uint64_t checksum = GetU64(frame.data() + frame_bytes);
  frame.resize(frame_bytes);
  if (checksum != Checksum(frame))
    return Corrupt(fmt::format("damaged: the checksum at byte {} does not fit the header",
                               kPreambleBytes + frame_bytes));
  Result<std::string> text = Inflate(frame, text_bytes);
  if (!text) return tl::unexpected(text.error());
  return Front{std::move(*text), kPreambleBytes + frame_bytes + kChecksumBytes, chain};
}

Result<Trailer> ReadTrailer(Source& source, uint64_t first_block) {
  const auto fault = [&source](const char* what) {
    return Corrupt(fmt::format("truncated or never finished: {} (the file has {} bytes)", what,
                               source.size()));
  };
  if (source.size() < first_block + kTrailerBytes) return fault("no room for a trailer");
  std::string bytes;
  if (const Status read = source.ReadAt(source.size() - kTrailerBytes, kTrailerBytes, bytes); !read)
    return tl::unexpected(read.error());
  if (GetU32(bytes.data()) != kTrailerTag) return fault("it does not end with a trailer");
  if (GetU64(bytes.data() + 32) != Checksum(std::string_view(bytes).substr(0, 32)))
    return Corrupt(fmt::format("damaged: the checksum at byte {} does not fit the trailer",
                               source.size() - kChecksumBytes));
  const Trailer trailer{GetU64(bytes.data() + 8), GetU64(bytes.data() + 16),
                        GetU64(bytes.data() + 24)};
  const uint64_t room = (source.size() - first_block - kTrailerBytes) / kBlockHeaderBytes;
  if (GetU32(bytes.data() + 4) != 0 || trailer.num_blocks > room ||
      trailer.num_transfers < trailer.num_blocks ||
      trailer.num_transfers > trailer.num_blocks * kBlockTransfers)
    return Corrupt(fmt::format("the trailer cannot be: {} transfers in {} blocks and {} bytes",
                               trailer.num_transfers, trailer.num_blocks, source.size()));
  return trailer;
}

class BinaryReader : public ScheduleReader {
 public:
  BinaryReader(std::unique_ptr<Source> source, ScheduleFile file, const Front& front,
               const Trailer& trailer)
      : source_(std::move(source)),
        file_(std::move(file)),
        trailer_(trailer),
        checker_(file_.topology, file_.schedule),
        at_(front.end),
        chain_(front.chain) {}

  const Topology& topology() const override { return file_.topology; }
  const Schedule& header() const override { return file_.schedule; }
  uint64_t num_transfers() const override { return trailer_.num_transfers; }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) override;

 private:
  uint64_t blocks_end() const { return source_->size() - kTrailerBytes; }
  Result<uint32_t> ReadBlock();
  Status CheckEnd() const;
  Status Decode(uint32_t count, std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps);

  std::unique_ptr<Source> source_;
  ScheduleFile file_;
  Trailer trailer_;
  TransferChecker checker_;
  uint64_t at_, chain_;
  uint64_t block_ = 0, transfers_read_ = 0;
  std::string head_, payload_;
  ColumnDecoder decoder_;
  std::vector<int64_t> column_;
};

// Leaves the payload of the next block in payload_ and returns its number of transfers.
Result<uint32_t> BinaryReader::ReadBlock() {
  const auto damaged = [this](const char* what) {
    return Corrupt(fmt::format("block {} at byte {}: {}", block_, at_, what));
  };
  const uint64_t room = blocks_end() - at_;
  if (room < kBlockHeaderBytes) return damaged("truncated");
  if (const Status read = source_->ReadAt(at_, kBlockHeaderBytes, head_); !read)
    return tl::unexpected(read.error());
  const char* head = head_.data();
  const uint32_t count = GetU32(head + 4);
  const uint64_t payload_bytes = GetU64(head + 16);
  if (GetU32(head) != kBlockTag) return damaged("damaged: this is no block");
  if (payload_bytes > kMaxPayloadBytes) return damaged("damaged: its length cannot be");
  if (payload_bytes > room - kBlockHeaderBytes) return damaged("truncated");
  if (const Status read = source_->ReadAt(at_ + kBlockHeaderBytes, payload_bytes, payload_); !read)
    return tl::unexpected(read.error());
  const uint64_t checksum = GetU64(head + 24);
  if (checksum != Checksum(payload_, Checksum(std::string_view(head_).substr(0, 24))))
    return damaged("damaged: its checksum does not fit");
  if (GetU64(head + 8) != block_) return damaged("it is not the next block");
  if (count < 1 || count > kBlockTransfers) return damaged("its number of transfers cannot be");
  chain_ = checksum ^ xxh64::RotateLeft(chain_, 1);
  return count;
}

Status BinaryReader::CheckEnd() const {
  if (at_ != blocks_end() || block_ != trailer_.num_blocks ||
      transfers_read_ != trailer_.num_transfers)
    return Corrupt(fmt::format(
        "the trailer announces {} transfers in {} blocks, there are {} in "
        "{} up to byte {} of {}",
        trailer_.num_transfers, trailer_.num_blocks, transfers_read_, block_, at_, blocks_end()));
  if (chain_ != trailer_.chain) return Corrupt("the trailer belongs to other blocks");
  return {};
}

Result<bool> BinaryReader::Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) {
  transfers.clear();
  start_ps.clear();
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (block_ == trailer_.num_blocks) {
    if (const Status end = CheckEnd(); !end) return tl::unexpected(end.error());
    return false;
  }
  const Result<uint32_t> count = ReadBlock();
  if (!count) return tl::unexpected(count.error());
  if (const Status decoded = Decode(*count, transfers, start_ps); !decoded)
    return tl::unexpected(decoded.error());
  at_ += kBlockHeaderBytes + payload_.size();
  transfers_read_ += *count;
  ++block_;
  return true;
}

Status BinaryReader::Decode(uint32_t count, std::vector<Transfer>& transfers,
                            std::vector<int64_t>& start_ps) {
  const bool timed = file_.schedule.kind == ScheduleKind::kTimed;
  transfers.resize(count);
  start_ps.resize(timed ? count : 0);
  column_.resize(count);
  std::string_view rest = payload_;
  const auto corrupt = [this](const std::string& what) {
    return Corrupt(fmt::format("block {} at byte {}: {}", block_, at_, what));
  };
  // Hands value i of the next column to set(transfer i, value); false where it is no column.
  const auto take = [&](const auto& set) {
    if (!decoder_.Take(rest, column_)) return false;
    for (size_t i = 0; i < count; ++i) set(i, column_[i]);
    return true;
  };
  bool fits = true;
  const auto narrow = [&fits](int64_t value) {
    fits = fits && value == static_cast<int32_t>(value);
    return static_cast<int32_t>(value);
  };
  const bool all = take([&](size_t i, int64_t v) {
                     if (timed) {
                       start_ps[i] = v;
                     } else {
                       transfers[i].step = narrow(v);
                     }
                   }) &&
                   take([&](size_t i, int64_t v) { transfers[i].link.value = narrow(v); }) &&
                   take([&](size_t i, int64_t v) { transfers[i].shard.value = narrow(v); }) &&
                   take([&](size_t i, int64_t v) { transfers[i].begin = narrow(v); }) &&
                   take([&](size_t i, int64_t v) {
                     // Outside this range begin + v is no int32_t whatever begin is.
                     const bool sane = std::numeric_limits<int32_t>::min() <= v &&
                                       v <= int64_t{2} * std::numeric_limits<int32_t>::max();
                     fits = fits && sane;
                     transfers[i].end = narrow(sane ? transfers[i].begin + v : 0);
                   }) &&
                   take([&](size_t i, int64_t v) {
                     fits = fits && (v == 0 || v == 1);
                     transfers[i].op = v == 1 ? TransferOp::kReduce : TransferOp::kCopy;
                   });
  if (!all || !rest.empty()) return corrupt("its columns do not decode");
  if (!fits) return corrupt("a number in its columns is out of range");
  for (size_t i = 0; i < count; ++i) {
    const int64_t start = timed ? start_ps[i] : 0;
    if (!checker_.Accept(transfers[i], start))
      return corrupt(fmt::format("transfer {}: {}", transfers_read_ + i,
                                 checker_.Explain(transfers[i], start)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ScheduleReader>> OpenReader(std::unique_ptr<Source> source) {
  const Result<Front> front = ReadFront(*source);
  if (!front) return tl::unexpected(front.error());
  Result<ScheduleFile> file = HeaderFromJson(front->text);
  if (!file) return Within("header", file.error());
  const Result<Trailer> trailer = ReadTrailer(*source, front->end);
  if (!trailer) return tl::unexpected(trailer.error());
  return std::make_unique<BinaryReader>(std::move(source), std::move(*file), *front, *trailer);
}

}  // namespace tutti::binary
