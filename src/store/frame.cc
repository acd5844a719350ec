#include "frame.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "bytes.h"
#include "corrupt.h"

namespace tutti::binary {
namespace {

constexpr int kHeaderLevel = 3;

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

// The text of the header. Grows with what is really there, never with what a length claims.
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

}  // namespace

Result<std::unique_ptr<Sink>> OpenFileSink(const std::string& path) {
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return tl::unexpected(file.error());
  return std::make_unique<FileSink>(std::move(*file));
}

std::unique_ptr<Sink> MakeStringSink(std::string* out) { return std::make_unique<StringSink>(out); }

Result<std::string> MakePreamble(uint32_t version, const std::string& header_text) {
  std::string frame(ZSTD_compressBound(header_text.size()), '\0');
  const size_t length = ZSTD_compress(frame.data(), frame.size(), header_text.data(),
                                      header_text.size(), kHeaderLevel);
  if (ZSTD_isError(length) != 0)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("cannot compress the header: {}", ZSTD_getErrorName(length)));
  frame.resize(length);
  std::string out(kMagic);
  PutU32(out, version);
  PutU32(out, 0);
  PutU64(out, header_text.size());
  PutU64(out, frame.size());
  PutU64(out, Checksum(out));
  out += frame;
  PutU64(out, Checksum(frame));
  return out;
}

Status FrameWriter::Begin(const std::string& preamble) {
  chain_ = Checksum(preamble);
  return sink_->Write(preamble);
}

Status FrameWriter::WriteBlock(uint32_t tag, uint32_t count, std::string_view payload) {
  block_.clear();
  PutU32(block_, tag);
  PutU32(block_, count);
  PutU64(block_, num_blocks_);
  PutU64(block_, payload.size());
  const uint64_t checksum = Checksum(payload, Checksum(block_));
  PutU64(block_, checksum);
  block_ += payload;
  chain_ = checksum ^ std::rotl(chain_, 1);
  ++num_blocks_;
  return sink_->Write(block_);
}

Status FrameWriter::Finish(uint64_t num_transfers) {
  std::string trailer;
  PutU32(trailer, kTrailerTag);
  PutU32(trailer, 0);
  PutU64(trailer, num_transfers);
  PutU64(trailer, num_blocks_);
  PutU64(trailer, chain_);
  PutU64(trailer, Checksum(trailer));
  if (Status written = sink_->Write(trailer); !written) return written;
  return sink_->Commit();
}

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
  if (version != kVersion && version != kSymmetricVersion && version != kRoutingVersion)
    return Corrupt(
        fmt::format("version {} of the binary schedule format is unknown; this program "
                    "reads versions {} and {}, and routings of version {}",
                    version, kVersion, kSymmetricVersion, kRoutingVersion));
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
  return Front{version, std::move(*text), kPreambleBytes + frame_bytes + kChecksumBytes, chain};
}

Result<Trailer> ReadTrailer(Source& source, const Front& front) {
  const auto fault = [&source](const char* what) {
    return Corrupt(fmt::format("truncated or never finished: {} (the file has {} bytes)", what,
                               source.size()));
  };
  if (source.size() < front.end + kTrailerBytes) return fault("no room for a trailer");
  std::string bytes;
  if (const Status read = source.ReadAt(source.size() - kTrailerBytes, kTrailerBytes, bytes); !read)
    return tl::unexpected(read.error());
  if (GetU32(bytes.data()) != kTrailerTag) return fault("it does not end with a trailer");
  if (GetU64(bytes.data() + 32) != Checksum(std::string_view(bytes).substr(0, 32)))
    return Corrupt(fmt::format("damaged: the checksum at byte {} does not fit the trailer",
                               source.size() - kChecksumBytes));
  const Trailer trailer{GetU64(bytes.data() + 8), GetU64(bytes.data() + 16),
                        GetU64(bytes.data() + 24)};
  const uint64_t room = (source.size() - front.end - kTrailerBytes) / kBlockHeaderBytes;
  // Blocks of version 1 hold transfers, all of them at least one.
  const bool too_few = front.version == kVersion && trailer.num_transfers < trailer.num_blocks;
  if (GetU32(bytes.data() + 4) != 0 || trailer.num_blocks > room || too_few ||
      trailer.num_transfers > trailer.num_blocks * kBlockTransfers)
    return Corrupt(fmt::format("the trailer cannot be: {} transfers in {} blocks and {} bytes",
                               trailer.num_transfers, trailer.num_blocks, source.size()));
  return trailer;
}

tl::unexpected<Error> BlockReader::Corrupt(const std::string& what) const {
  return MakeError(ErrorCode::kCorrupt, fmt::format("block {} at byte {}: {}", block_, at_, what));
}

Result<uint32_t> BlockReader::Read(uint32_t tag) {
  const uint64_t room = blocks_end() - at_;
  if (room < kBlockHeaderBytes) return Corrupt("truncated");
  if (const Status read = source_.ReadAt(at_, kBlockHeaderBytes, head_); !read)
    return tl::unexpected(read.error());
  const char* head = head_.data();
  const uint32_t count = GetU32(head + 4);
  const uint64_t payload_bytes = GetU64(head + 16);
  if (GetU32(head) != tag) return Corrupt("damaged: this is no block");
  if (payload_bytes > kMaxPayloadBytes) return Corrupt("damaged: its length cannot be");
  if (payload_bytes > room - kBlockHeaderBytes) return Corrupt("truncated");
  if (const Status read = source_.ReadAt(at_ + kBlockHeaderBytes, payload_bytes, payload_); !read)
    return tl::unexpected(read.error());
  checksum_ = GetU64(head + 24);
  if (checksum_ != Checksum(payload_, Checksum(std::string_view(head_).substr(0, 24))))
    return Corrupt("damaged: its checksum does not fit");
  if (GetU64(head + 8) != block_) return Corrupt("it is not the next block");
  if (count < 1 || count > kBlockTransfers) return Corrupt("its number of transfers cannot be");
  return count;
}

void BlockReader::Advance() {
  chain_ = checksum_ ^ std::rotl(chain_, 1);
  at_ += kBlockHeaderBytes + payload_.size();
  ++block_;
}

Status BlockReader::CheckEnd(uint64_t transfers_read) const {
  if (at_ != blocks_end() || block_ != trailer_.num_blocks ||
      transfers_read != trailer_.num_transfers)
    return tutti::Corrupt(fmt::format(
        "the trailer announces {} transfers in {} blocks, there are {} in "
        "{} up to byte {} of {}",
        trailer_.num_transfers, trailer_.num_blocks, transfers_read, block_, at_, blocks_end()));
  if (chain_ != trailer_.chain) return tutti::Corrupt("the trailer belongs to other blocks");
  return {};
}

Status TransferDecoder::Decode(const BlockReader& block, uint32_t count,
                               std::vector<Transfer>& transfers, std::vector<int64_t>* start_ps) {
  transfers.assign(count, {});
  if (start_ps != nullptr) start_ps->resize(count);
  column_.resize(count);
  std::string_view rest = block.payload();
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
                     if (start_ps != nullptr) {
                       (*start_ps)[i] = v;
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
  if (!all || !rest.empty()) return block.Corrupt("its columns do not decode");
  if (!fits) return block.Corrupt("a number in its columns is out of range");
  return {};
}

}  // namespace tutti::binary
