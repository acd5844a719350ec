// Schedules in files: `.sched.json` for people, `.sched` (binary, streams, checksummed, at most 4
// bytes a transfer for large ones) for everything else. A file holds the topology too, so that it
// can be judged alone. Formats: docs/formats/schedule.md.
//
// Errors   kIo: path, permission, full disk (the need is compared with the free space first).
//          kCorrupt: truncated, damaged (checksum), or a version this program does not know, each
//          named with the place in the file. Writers write to a temporary name beside the target
//          and rename; a failed or interrupted write leaves the old file as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct ScheduleFile {
  Topology topology;
  Schedule schedule;
};

// By the ending of the path: `.json` is JSON, anything else binary.
Status WriteScheduleFile(const std::string& path, const Topology& topology,
                         const Schedule& schedule);
// By the first bytes of the file.
Result<ScheduleFile> ReadScheduleFile(const std::string& path);

std::string ScheduleToJson(const Topology& topology, const Schedule& schedule);
Result<ScheduleFile> ScheduleFromJson(const std::string& text);
Result<ScheduleFile> ScheduleFromBinary(std::span<const std::byte> bytes);

// Writes block by block: memory is one block however many transfers there are.
class ScheduleWriter {
 public:
  // `header`: a schedule without transfers. `expected_transfers`: for the free-space check, 0 if
  // unknown.
  static Result<std::unique_ptr<ScheduleWriter>> Open(const std::string& path,
                                                      const Topology& topology,
                                                      const Schedule& header,
                                                      uint64_t expected_transfers);
  virtual ~ScheduleWriter() = default;  // without Finish(): removes the temporary file
  virtual Status Append(std::span<const Transfer> transfers, std::span<const int64_t> start_ps) = 0;
  virtual Status Finish() = 0;
};

// Reads block by block.
class ScheduleReader {
 public:
  static Result<std::unique_ptr<ScheduleReader>> Open(const std::string& path);
  virtual ~ScheduleReader() = default;
  virtual const Topology& topology() const = 0;
  virtual const Schedule& header() const = 0;  // without transfers
  virtual uint64_t num_transfers() const = 0;
  // Replaces the vectors by the next block; false at the end.
  virtual Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) = 0;
};

}  // namespace tutti
