// What both versions of the binary schedule format share: preamble and header, checksummed blocks
// under a tag, a trailer that ties them together. Layout: docs/formats/schedule.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binary.h"
#include "column.h"
#include "tutti/base/file.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti::binary {

// --- Writing

// Where bytes of a file go.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status Write(std::string_view bytes) = 0;
  virtual Status Commit() = 0;
  virtual std::optional<uint64_t> FreeBytes() const = 0;
};
Result<std::unique_ptr<Sink>> OpenFileSink(const std::string& path);
std::unique_ptr<Sink> MakeStringSink(std::string* out);

Result<std::string> MakePreamble(uint32_t version, const std::string& header_text);

class FrameWriter {
 public:
  explicit FrameWriter(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  std::optional<uint64_t> FreeBytes() const { return sink_->FreeBytes(); }
  Status Begin(const std::string& preamble);
  Status WriteBlock(uint32_t tag, uint32_t count, std::string_view payload);
  Status Finish(uint64_t num_transfers);

 private:
  std::unique_ptr<Sink> sink_;
  std::string block_;
  uint64_t num_blocks_ = 0, chain_ = 0;
};

// The columns of a block of transfers.
class TransferEncoder {
 public:
  // time_of(i), transfer_of(i) for i < count. Appends to `out`.
  template <class TimeOf, class TransferOf>
  void Append(size_t count, const TimeOf& time_of, const TransferOf& transfer_of,
              std::string& out) {
    const auto append = [&](const auto& value_of) {
      column_.clear();
      for (size_t i = 0; i < count; ++i) column_.push_back(value_of(i));
      encoder_.Append(column_, out);
    };
    append(time_of);
    append([&](size_t i) { return int64_t{transfer_of(i).link.value}; });
    append([&](size_t i) { return int64_t{transfer_of(i).shard.value}; });
    append([&](size_t i) { return int64_t{transfer_of(i).begin}; });
    append([&](size_t i) { return int64_t{transfer_of(i).units()}; });
    append([&](size_t i) { return static_cast<int64_t>(transfer_of(i).op); });
  }

 private:
  ColumnEncoder encoder_;
  std::vector<int64_t> column_;
};

// --- Reading

struct Front {
  uint32_t version;
  std::string text;  // the header
  uint64_t end;      // where the blocks start
  uint64_t chain;    // of the bytes before
};
// A frame of a version that this program knows.
Result<Front> ReadFront(Source& source);

struct Trailer {
  uint64_t num_transfers, num_blocks, chain;
};
Result<Trailer> ReadTrailer(Source& source, const Front& front);

class BlockReader {
 public:
  // `source` must outlive this.
  BlockReader(Source& source, const Front& front, const Trailer& trailer)
      : source_(source), trailer_(trailer), at_(front.end), chain_(front.chain) {}

  bool done() const { return block_ == trailer_.num_blocks; }
  // Leaves the payload of the next block in payload() and returns its number of values.
  Result<uint32_t> Read(uint32_t tag);
  // Goes on to the block behind; without it Read() reads the same one.
  void Advance();
  std::string_view payload() const { return payload_; }
  // kCorrupt: "block 3 at byte 512: what".
  tl::unexpected<Error> Corrupt(const std::string& what) const;
  // Once done(): whether the blocks are those that the trailer announces.
  Status CheckEnd(uint64_t transfers_read) const;

 private:
  uint64_t blocks_end() const { return source_.size() - kTrailerBytes; }

  Source& source_;
  Trailer trailer_;
  uint64_t at_, chain_;
  uint64_t block_ = 0, checksum_ = 0;
  std::string head_, payload_;
};

class TransferDecoder {
 public:
  // The transfers of the block that has just been read; their times go to `start_ps` where it is
  // given and are steps otherwise. Only that every number fits its type is checked.
  Status Decode(const BlockReader& block, uint32_t count, std::vector<Transfer>& transfers,
                std::vector<int64_t>* start_ps);

 private:
  ColumnDecoder decoder_;
  std::vector<int64_t> column_;
};

}  // namespace tutti::binary
