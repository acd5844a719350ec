#include <fmt/format.h>

#include <utility>

#include "binary.h"
#include "frame.h"
#include "json.h"
#include "symmetric_file.h"
#include "tutti/base/cancel.h"
#include "tutti/sched/structure.h"

namespace tutti::binary {
namespace {

class BinaryReader : public ScheduleReader {
 public:
  BinaryReader(std::unique_ptr<Source> source, ScheduleFile file, const Front& front,
               const Trailer& trailer)
      : source_(std::move(source)),
        file_(std::move(file)),
        trailer_(trailer),
        checker_(file_.topology, file_.schedule),
        blocks_(*source_, front, trailer) {}

  const Topology& topology() const override { return file_.topology; }
  const Schedule& header() const override { return file_.schedule; }
  uint64_t num_transfers() const override { return trailer_.num_transfers; }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) override;

 private:
  Status Decode(uint32_t count, std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps);

  std::unique_ptr<Source> source_;
  ScheduleFile file_;
  Trailer trailer_;
  TransferChecker checker_;
  BlockReader blocks_;
  uint64_t transfers_read_ = 0;
  TransferDecoder decoder_;
};

Result<bool> BinaryReader::Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) {
  transfers.clear();
  start_ps.clear();
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (blocks_.done()) {
    if (const Status end = blocks_.CheckEnd(transfers_read_); !end)
      return tl::unexpected(end.error());
    return false;
  }
  const Result<uint32_t> count = blocks_.Read(kBlockTag);
  if (!count) return tl::unexpected(count.error());
  if (const Status decoded = Decode(*count, transfers, start_ps); !decoded)
    return tl::unexpected(decoded.error());
  blocks_.Advance();
  transfers_read_ += *count;
  return true;
}

Status BinaryReader::Decode(uint32_t count, std::vector<Transfer>& transfers,
                            std::vector<int64_t>& start_ps) {
  const bool timed = file_.schedule.kind == ScheduleKind::kTimed;
  if (const Status decoded =
          decoder_.Decode(blocks_, count, transfers, timed ? &start_ps : nullptr);
      !decoded)
    return decoded;
  for (size_t i = 0; i < count; ++i) {
    const int64_t start = timed ? start_ps[i] : 0;
    if (!checker_.Accept(transfers[i], start))
      return blocks_.Corrupt(fmt::format("transfer {}: {}", transfers_read_ + i,
                                         checker_.Explain(transfers[i], start)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ScheduleReader>> OpenReader(std::unique_ptr<Source> source) {
  const Result<Front> front = ReadFront(*source);
  if (!front) return tl::unexpected(front.error());
  if (front->version == kSymmetricVersion) return OpenExpanded(*source, *front);
  if (front->version == kRoutingVersion)
    return MakeError(ErrorCode::kCorrupt, "this file holds a routing, not a schedule");
  Result<ScheduleFile> file = HeaderFromJson(front->text);
  if (!file) return Within("header", file.error());
  const Result<Trailer> trailer = ReadTrailer(*source, *front);
  if (!trailer) return tl::unexpected(trailer.error());
  return std::make_unique<BinaryReader>(std::move(source), std::move(*file), *front, *trailer);
}

}  // namespace tutti::binary
