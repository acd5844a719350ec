// Ranks of `tutti run` that are processes on other hosts, or that a launcher started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "tutti/base/result.h"
#include "tutti/launch/hosts.h"
#include "tutti/launch/job.h"
#include "tutti/launch/processes.h"
#include "tutti/runtime/remote.h"

namespace tutti::cli {

struct RemoteFlags {
  std::string hosts, root, program;
  std::string launch = "ssh -o BatchMode=yes -o ConnectTimeout=10";
  double timeout_s = 30;
};

// --hosts, --launch, --root, --remote-tutti and --timeout.
void AddRemoteFlags(Command& command, RemoteFlags& flags);

// Where a launcher started this process as another rank than the first: is that rank to its end and
// gives the exit code. Nothing: go on.
std::optional<int> ServeIfNotFirst(const RemoteFlags& flags, const std::string& transport);

// Report() of what prevents a run. Where a launcher started this process as the first of several ranks the others, who wait
// for it, are told that there will be none; they say nothing of it.
int ReportForAllRanks(const RemoteFlags& flags, Transport transport, const Error& error);

class RemoteRanks {
 public:
  // Null: the ranks are to be local. Nothing is started yet. `num_ranks` 0: as many as the hosts or the
  // launcher have.
  static Result<std::unique_ptr<RemoteRanks>> Plan(const RemoteFlags& flags, Transport transport,
                                                   int32_t num_ranks);
  RemoteRanks(const RemoteRanks&) = delete;
  RemoteRanks& operator=(const RemoteRanks&) = delete;
  ~RemoteRanks();

  int32_t num_ranks() const { return num_ranks_; }
  // "ranks on 2 hosts", "ranks of Open MPI".
  std::string where() const;
  Status Start();
  // For the runs that follow; it must outlive them.
  Status SetPlan(const tutti::Plan& plan);
  Result<RunReport> Run(const RunOptions& options);

 private:
  RemoteRanks(const RemoteFlags& flags, Transport transport, int32_t num_ranks);
  static Status CheckLocal(int32_t num_ranks);
  Status StartAndGather();
  // `outcome`; an error there has ended the ranks.
  template <class Outcome>
  Outcome Noted(Outcome outcome);
  Status StartHosts(uint16_t port);
  Status StartFirst(uint16_t port);

  RemoteFlags flags_;
  Transport transport_;
  int32_t num_ranks_;
  std::vector<HostRanks> hosts_;
  std::optional<JobRank> job_;
  JobSecret secret_{};
  std::string root_host_;
  uint16_t root_port_ = 0;
  bool failed_ = false;
  HostProcesses processes_;
  std::optional<Coordinator> coordinator_;
};

}  // namespace tutti::cli
