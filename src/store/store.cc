#include "tutti/store/store.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "binary.h"
#include "source.h"
#include "tutti/base/file.h"
#include "tutti/sched/structure.h"
#include "whole_file.h"

namespace tutti {
namespace {

using binary::Source;

// JSON is parsed in memory, some four times the text: about 40 million transfers.
constexpr uint64_t kMaxJsonBytes = uint64_t{1} << 32;

bool IsJsonPath(const std::string& path) { return path.ends_with(".json"); }

bool IsBinary(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == binary::kMagic.front();
}

Error Prefix(const std::string& path, const Error& error) {
  return {error.code, path + ": " + error.message};
}

// Names the file in every error of a reader.
class NamedReader : public ScheduleReader {
 public:
  NamedReader(std::string path, std::unique_ptr<ScheduleReader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  const Topology& topology() const override { return reader_->topology(); }
  const Schedule& header() const override { return reader_->header(); }
  uint64_t num_transfers() const override { return reader_->num_transfers(); }
  Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) override {
    Result<bool> more = reader_->Next(transfers, start_ps);
    if (!more) return tl::unexpected(Prefix(path_, more.error()));
    return more;
  }

 private:
  std::string path_;
  std::unique_ptr<ScheduleReader> reader_;
};

// By the first byte of what is there. Errors do not name the file.
Result<std::unique_ptr<ScheduleReader>> OpenSource(std::unique_ptr<Source> source) {
  std::string text;
  if (source->size() == 0) return MakeError(ErrorCode::kCorrupt, "the file is empty");
  if (const Status read = source->ReadAt(0, 1, text); !read) return tl::unexpected(read.error());
  if (IsBinary(text)) return binary::OpenReader(std::move(source));
  if (source->size() > kMaxJsonBytes)
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("{} bytes that are no binary schedule; JSON is read up to {} bytes",
                    source->size(), kMaxJsonBytes));
  if (const Status read = source->ReadAt(0, source->size(), text); !read)
    return tl::unexpected(read.error());
  Result<ScheduleFile> file = ScheduleFromJson(text);
  if (!file) return tl::unexpected(file.error());
  return MakeWholeFileReader(std::move(*file));
}

}  // namespace

Result<ScheduleFile> ReadSchedule(ScheduleReader& reader) {
  ScheduleFile file{reader.topology(), reader.header()};
  Schedule& schedule = file.schedule;
  std::vector<Transfer> transfers;
  std::vector<int64_t> start_ps;
  try {
    schedule.transfers.reserve(reader.num_transfers());
    if (schedule.kind == ScheduleKind::kTimed) schedule.start_ps.reserve(reader.num_transfers());
    for (;;) {
      const Result<bool> more = reader.Next(transfers, start_ps);
      if (!more) return tl::unexpected(more.error());
      if (!*more) return file;
      schedule.transfers.insert(schedule.transfers.end(), transfers.begin(), transfers.end());
      schedule.start_ps.insert(schedule.start_ps.end(), start_ps.begin(), start_ps.end());
    }
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} transfers of {} bytes do not fit into memory",
                                 reader.num_transfers(), sizeof(Transfer)));
  }
}

Status WriteScheduleFile(const std::string& path, const Topology& topology,
                         const Schedule& schedule) {
  if (IsJsonPath(path)) {
    if (const Status fine = CheckStructure(topology, schedule); !fine)
      return tl::unexpected(Prefix(path, fine.error()));
    return WriteFileAtomically(path, ScheduleToJson(topology, schedule));
  }
  auto writer = ScheduleWriter::Open(path, topology, schedule, schedule.transfers.size());
  if (!writer) return tl::unexpected(writer.error());
  if (const Status written = (*writer)->Append(schedule.transfers, schedule.start_ps); !written)
    return written;
  return (*writer)->Finish();
}

Result<std::unique_ptr<ScheduleReader>> ScheduleReader::Open(const std::string& path) {
  Result<std::unique_ptr<Source>> source = binary::OpenPathSource(path);
  if (!source) return tl::unexpected(source.error());
  const uint64_t size = (*source)->size();
  try {
    Result<std::unique_ptr<ScheduleReader>> reader = OpenSource(std::move(*source));
    if (!reader) return tl::unexpected(Prefix(path, reader.error()));
    return std::make_unique<NamedReader>(path, std::move(*reader));
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{}: {} bytes do not fit into memory", path, size));
  }
}

Result<ScheduleFile> ReadScheduleFile(const std::string& path) {
  const Result<std::unique_ptr<ScheduleReader>> reader = ScheduleReader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  return ReadSchedule(**reader);
}

Result<ScheduleFile> ScheduleFromBinary(std::span<const std::byte> bytes) {
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<std::unique_ptr<ScheduleReader>> reader =
      binary::OpenReader(binary::MakeMemorySource(view));
  if (!reader) return tl::unexpected(reader.error());
  return ReadSchedule(**reader);
}

}  // namespace tutti
