// Schedules in files: `.sched.json` for people, `.sched` (binary, streams, checksummed, at most 4
// bytes a transfer for large ones) for everything else. A file holds the topology too, so that it
// can be judged alone. Formats: docs/formats/schedule.md.
//
// Model    Transfers of one step (or one start) happen together, so their order carries no meaning:
//          binary files keep the order of steps and starts only, JSON files keep all of it. Reading
//          a binary file and writing it again gives the same transfers in the same order.
// Memory   A reader holds one block of 2^16 transfers, a writer two a thread and 32 at most;
//          whole-file functions hold it all.
// Threads  A writer or reader is for one thread at a time; inside, a writer works on several blocks
//          at once. The bytes do not depend on the number of threads.
// Errors   kIo: the operating system refused: path, permission, a disk that fills up on the way.
//          kResourceExhausted: the free space does not hold what is announced (checked first).
//          kCorrupt: truncated, damaged (checksum), a version this program does not know, or not a
//          schedule (S1 .. S4 of schedule.h), each named with the place in the file.
//          kInvalidArgument: what is to be written breaks S1 .. S4. kCancelled: RequestCancel().
//          Writers write to a temporary name beside the target and rename; a failed or interrupted
//          write leaves the old file as it was. What is structurally fine is read even when the
//          schedule is wrong: the verifier judges that.
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

// The schedule keeps S1 .. S4.
std::string ScheduleToJson(const Topology& topology, const Schedule& schedule);
Result<ScheduleFile> ScheduleFromJson(const std::string& text);
// The bytes of a binary file.
Result<std::string> ScheduleToBinary(const Topology& topology, const Schedule& schedule);
Result<ScheduleFile> ScheduleFromBinary(std::span<const std::byte> bytes);

// Writes block by block: memory is a few blocks however many transfers there are.
class ScheduleWriter {
 public:
  // `header`: a schedule without transfers. `expected_transfers`: for the free-space check, 0 if
  // unknown.
  static Result<std::unique_ptr<ScheduleWriter>> Open(const std::string& path,
                                                      const Topology& topology,
                                                      const Schedule& header,
                                                      uint64_t expected_transfers);
  virtual ~ScheduleWriter() = default;  // without Finish(): removes the temporary file
  // Transfers go on ascending in step or start (S3) from call to call. After an error every further
  // call is one.
  virtual Status Append(std::span<const Transfer> transfers, std::span<const int64_t> start_ps) = 0;
  // Only a finished file appears under its name.
  virtual Status Finish() = 0;
};

// Reads block by block; a JSON file is read whole first.
class ScheduleReader {
 public:
  static Result<std::unique_ptr<ScheduleReader>> Open(const std::string& path);
  virtual ~ScheduleReader() = default;
  virtual const Topology& topology() const = 0;
  virtual const Schedule& header() const = 0;  // without transfers
  virtual uint64_t num_transfers() const = 0;
  // Replaces the vectors by the next block; false at the end, once the whole file is known to be
  // sound.
  virtual Result<bool> Next(std::vector<Transfer>& transfers, std::vector<int64_t>& start_ps) = 0;
};

// The rest of what a reader has to hand out.
Result<ScheduleFile> ReadSchedule(ScheduleReader& reader);

}  // namespace tutti
