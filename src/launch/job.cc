#include "tutti/launch/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "tutti/base/hash.h"

namespace tutti {
namespace {

// What a launcher calls it.
struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* ranks_here;  // ranks on this host
  const char* hosts;       // or the number of hosts
  const char* root;        // host of rank 0
  std::initializer_list<const char*> identity;
};

// mpirun inside of a Slurm job comes before Slurm. Of Slurm the variables of a step: a batch script has those of the
// job and is no rank.
const Launcher kLaunchers[] = {
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     nullptr,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr, nullptr, {}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     nullptr,
     "MASTER_ADDR",
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     nullptr,
     "SLURM_STEP_NUM_NODES",
     nullptr,
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

Result<int32_t> NumberIn(const Environment& environment, const char* name, int32_t least,
                         int32_t most) {
  const char* text = environment(name);
  if (text == nullptr) return InvalidArgument(fmt::format("{} is not set", name));
  int32_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  if (error != std::errc() || at != end || value < least || value > most)
    return InvalidArgument(
        fmt::format("{}='{}', wanted a number from {} to {}", name, text, least, most));
  return value;
}

Result<JobRank> JobOf(const Launcher& launcher, const Environment& environment) {
  constexpr int32_t kMostRanks = 1 << 24;
  const Result<int32_t> ranks = NumberIn(environment, launcher.ranks, 1, kMostRanks);
  if (!ranks) return tl::unexpected(ranks.error());
  const Result<int32_t> rank = NumberIn(environment, launcher.rank, 0, *ranks - 1);
  if (!rank) return tl::unexpected(rank.error());
  JobRank job;
  job.launcher = launcher.name;
  job.rank = *rank;
  job.num_ranks = *ranks;
  const char* here = launcher.ranks_here != nullptr ? launcher.ranks_here : launcher.hosts;
  if (environment(here) != nullptr) {
    const Result<int32_t> number = NumberIn(environment, here, 1, kMostRanks);
    if (!number) return tl::unexpected(number.error());
    job.one_host = launcher.ranks_here != nullptr ? *number == *ranks : *number == 1;
  }
  if (launcher.root != nullptr && environment(launcher.root) != nullptr)
    job.root_host = environment(launcher.root);
  if (job.root_host.empty() && job.one_host) job.root_host = "127.0.0.1";
  Fnv1a hash;
  bool known = false;
  for (const char* name : launcher.identity)
    if (const char* value = environment(name); value != nullptr) {
      hash.AddBytes(value);
      hash.AddSeparator();
      known = true;
    }
  // The ranks of a host that know nothing else of their job have a parent in common.
  if (!known) hash.AddWord(getppid());
  job.identity = hash.value();
  return job;
}

}  // namespace

uint16_t JobRank::Port() const {
  // Below the ports that Linux gives to connections by itself (32768 to 60999), of which any may be taken.
  constexpr uint64_t kFirst = 20'000, kPorts = 12'000;
  return static_cast<uint16_t>(kFirst + identity % kPorts);
}

Result<std::optional<JobRank>> FindJob(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (environment(launcher.rank) == nullptr || environment(launcher.ranks) == nullptr) continue;
    Result<JobRank> job = JobOf(launcher, environment);
    if (!job) return Within(launcher.name, job.error());
    return std::optional<JobRank>(std::move(*job));
  }
  return std::optional<JobRank>();
}

}  // namespace tutti
