// Runs plans on ranks that are processes of their own, on this host or any other.
//
// Model       One coordinator, and one process a rank that calls ServeRank(). Ranks need nothing but the
//             coordinator's address and the secret: the plan travels to them. They make TCP connections
//             along the plan's edges and no others, and each has only its own buffers.
//             Time: every rank measures its own part of an iteration, from the barrier that begins it
//             to its end; an iteration takes what the slowest rank took. Ranks leave a barrier one
//             message apart, which is what such a time may be wrong by.
// Trust       Who knows the secret is a rank. Nothing is encrypted.
// Errors      Everybody ends when one does: kPeerFailed names the rank, its host and why. A rank that
//             says nothing for kSilence_s, or a run in which no rank gets on for
//             RunOptions::hang_timeout_s, is such an end.
// Threads     One each.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/base/result.h"
#include "tutti/lower/plan.h"
#include "tutti/runtime/executor.h"

namespace tutti {

using JobSecret = std::array<uint64_t, 2>;
JobSecret DrawSecret();
std::string ToText(const JobSecret& secret);  // 32 hexadecimal digits
Result<JobSecret> ParseSecret(std::string_view text);

struct RemoteRankOptions {
  std::string host;  // of the coordinator
  uint16_t port = 0;
  int32_t rank = 0, num_ranks = 1;
  JobSecret secret{};
  double patience_s = 30;  // for the coordinator to be there
};

// Is this rank until the coordinator ends the job. kCancelled: the coordinator ended it because of
// another rank, or RequestCancel() was called.
Status ServeRank(const RemoteRankOptions& options);

// In the place of a rank that ended without a word, perhaps before it could greet: the coordinator names it, and why. Returns when
// the coordinator has ended, or after half a second: launchers end all ranks where one does, the first perhaps before it
// has said so.
void ReportEndOfRank(RemoteRankOptions options, const std::string& why);

struct CoordinatorOptions {
  std::string host =
      "0.0.0.0";      // the address of this host to listen at; "::": all, of both versions
  uint16_t port = 0;  // 0: any
  int32_t num_ranks = 1;
  JobSecret secret{};
  double patience_s = 30;  // for all ranks to be there
  // After a failure before all are there: for those that others started, to be told so rather than to look for the
  // coordinator until their own patience ends. 0: nobody is waited for.
  double late_ranks_s = 0;
};

class Coordinator {
 public:
  static constexpr double kSilence_s = 5;

  // What stands for all addresses of this host, of every version of IP that it has.
  static const char* AnyHost();
  static Result<Coordinator> Listen(const CoordinatorOptions& options);
  Coordinator(Coordinator&&) noexcept;
  Coordinator& operator=(Coordinator&&) noexcept;
  ~Coordinator();  // ends the ranks

  uint16_t port() const;
  // Waits for all ranks. `processes`, whether those that were started are well, is asked now and then, and later where a rank
  // has ended: an error there is the end, or says why.
  Status Gather(const std::function<Status()>& processes);
  // Gives the ranks the plan of the runs that follow; it must outlive them.
  Status SetPlan(const Plan& plan);
  // One run of that plan; options.transport is what the ranks were started with. The trace of ranks on
  // several hosts is on the coordinator's clock: each rank's clock is read over and over, and the answer
  // that came soonest counts, wrong by half of the time it took at most.
  Result<RunReport> Run(const RunOptions& options);

 private:
  class Job;
  explicit Coordinator(std::unique_ptr<Job> job);
  std::unique_ptr<Job> job_;
};

// The size that Run() would run, or why it would refuse, but for memory.
Result<int64_t> SizeThatRunsRemotely(const Plan& plan, const RunOptions& options);

}  // namespace tutti
