#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tutti/launch/hosts.h"
#include "tutti/launch/job.h"
#include "tutti/launch/processes.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// --- Hosts --------------------------------------------------------------------------------------

TEST(PlaceOnHosts, FillsSlotsInOrder) {
  const auto hosts = PlaceOnHosts("h0:2,h1,h2:4", 5);
  ASSERT_TRUE(hosts.has_value()) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[0].host, "h0");
  EXPECT_EQ((*hosts)[0].first, 0);
  EXPECT_EQ((*hosts)[0].count, 2);
  EXPECT_EQ((*hosts)[1].first, 2);
  EXPECT_EQ((*hosts)[1].count, 1);
  EXPECT_EQ((*hosts)[2].first, 3);
  EXPECT_EQ((*hosts)[2].count, 2);  // of four
}

TEST(PlaceOnHosts, AddressesOfVersion6StandInBrackets) {
  const auto hosts = PlaceOnHosts("[fd00::1]:2,h1,[::1]", 0);
  ASSERT_TRUE(hosts.has_value()) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[0].host, "fd00::1");
  EXPECT_EQ((*hosts)[0].count, 2);
  EXPECT_EQ((*hosts)[2].host, "::1");
  EXPECT_EQ((*hosts)[2].first, 3);
}

TEST(PlaceOnHosts, HostsThatAreNotNeededStayOut) {
  EXPECT_EQ(PlaceOnHosts("a:2,b:2", 2)->size(), 1u);
  EXPECT_EQ(PlaceOnHosts("a:2,b:3", 0)->back().count, 3);  // all slots
}

TEST(PlaceOnHosts, NamesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"", "no list of hosts"},
      {"a,", "ends with a comma"},
      {",a", "no list of hosts"},
      {"a,,b", "no list of hosts"},
      {"a:0", "'0' is no number of ranks"},
      {"a:-1", "'-1' is no number of ranks"},
      {"a:x", "'x' is no number of ranks"},
      {"a:2x", "'2x' is no number of ranks"},
      {"a:99999999999", "no number of ranks"},
      {"a:", "'' is no number of ranks"},
      {"-oProxyCommand=x:4", "no list of hosts"},  // an option of ssh is no host
      {"a b:4", "no list of hosts"},
      {":2", "no list of hosts"},
      {"fd00::1:2", "in brackets"},
      {"::1", "in brackets"},
      {"[fd00::1:2", "in brackets"},
      {"[a]:2", "in brackets"},
      {"[::1]2", "in brackets"},
      {"[::1]:x", "'x' is no number of ranks"},
      {"a:2,b", "4 ranks, but the hosts have room for 3"}};
  for (const auto& [list, message] : table) {
    const auto hosts = PlaceOnHosts(list, 4);
    ASSERT_FALSE(hosts.has_value()) << list;
    EXPECT_EQ(hosts.error().code, ErrorCode::kInvalidArgument) << list;
    EXPECT_THAT(hosts.error().message, HasSubstr(message)) << list;
  }
}

TEST(AddressTowards, LoopbackAndNobody) {
  EXPECT_EQ(AddressTowards("127.0.0.1").value(), "127.0.0.1");
  if (const auto towards = AddressTowards("::1")) {  // where this host has version 6
    EXPECT_EQ(*towards, "::1");
  }
  const auto nobody = AddressTowards("no.such.host.invalid");
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(nobody.error().message, HasSubstr("no.such.host.invalid"));
}

TEST(LaunchWords, PutsTheHostInItsPlace) {
  EXPECT_THAT(LaunchWords("ssh -p 22 {host}", "h1"), ElementsAre("ssh", "-p", "22", "h1"));
  EXPECT_THAT(LaunchWords("  ssh  ", "h1"), ElementsAre("ssh", "h1"));
  EXPECT_THAT(LaunchWords("at={host}:{host} x", "h1"), ElementsAre("at=h1:h1", "x"));
}

// --- Launchers ----------------------------------------------------------------------------------

using Variables = std::map<std::string, std::string>;

Result<std::optional<JobRank>> Find(const Variables& variables) {
  return FindJob([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                         {"PMIX_NAMESPACE", "1234"}};

TEST(FindJob, ReadsWhatEachLauncherSays) {
  const auto open_mpi = Find(kOpenMpi).value();
  ASSERT_TRUE(open_mpi.has_value());
  EXPECT_EQ(open_mpi->launcher, "Open MPI");
  EXPECT_EQ(open_mpi->rank, 3);
  EXPECT_EQ(open_mpi->num_ranks, 8);
  EXPECT_TRUE(open_mpi->one_host);
  EXPECT_EQ(open_mpi->root_host, "127.0.0.1");

  const auto hydra = Find({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}}).value();
  ASSERT_TRUE(hydra.has_value());
  EXPECT_EQ(hydra->launcher, "Hydra");
  EXPECT_FALSE(hydra->one_host);
  EXPECT_EQ(hydra->root_host, "");

  const auto torchrun = Find({{"RANK", "1"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_WORLD_SIZE", "1"},
                              {"MASTER_ADDR", "10.0.0.7"},
                              {"MASTER_PORT", "29500"}})
                            .value();
  ASSERT_TRUE(torchrun.has_value());
  EXPECT_EQ(torchrun->root_host, "10.0.0.7");

  const auto slurm =
      Find({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_STEP_NUM_NODES", "1"}})
          .value();
  ASSERT_TRUE(slurm.has_value());
  EXPECT_EQ(slurm->launcher, "Slurm");
  EXPECT_TRUE(slurm->one_host);
}

TEST(FindJob, MpirunInsideOfSlurmComesFirst) {
  Variables both = kOpenMpi;
  both["SLURM_PROCID"] = "0";
  both["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_EQ(Find(both).value()->launcher, "Open MPI");
}

TEST(FindJob, NothingWithoutALauncher) {
  EXPECT_FALSE(Find({}).value().has_value());
  // Somebody's own, and a batch script of Slurm.
  EXPECT_FALSE(Find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).value().has_value());
  EXPECT_FALSE(Find({{"RANK", "1"}}).value().has_value());
}

TEST(FindJob, RanksOfAJobAgreeWhereToMeet) {
  Variables other_rank = kOpenMpi;
  other_rank["OMPI_COMM_WORLD_RANK"] = "4";
  Variables other_job = kOpenMpi;
  other_job["PMIX_NAMESPACE"] = "1235";
  EXPECT_EQ(Find(kOpenMpi).value()->Port(), Find(other_rank).value()->Port());
  EXPECT_NE(Find(kOpenMpi).value()->identity, Find(other_job).value()->identity);
  std::set<uint16_t> ports;
  for (int i = 0; i < 1000; ++i) {
    other_job["PMIX_NAMESPACE"] = std::to_string(i);
    const uint16_t port = Find(other_job).value()->Port();
    EXPECT_GE(port, 20'000);
    EXPECT_LT(port, 32'000);
    ports.insert(port);
  }
  EXPECT_GT(ports.size(), 900u);
}

TEST(FindJob, NamesTheVariableThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"OMPI_COMM_WORLD_RANK", "8"},   {"OMPI_COMM_WORLD_RANK", "-1"},
      {"OMPI_COMM_WORLD_RANK", "x"},   {"OMPI_COMM_WORLD_SIZE", "0"},
      {"OMPI_COMM_WORLD_SIZE", ""},    {"OMPI_COMM_WORLD_LOCAL_SIZE", "many"},
      {"OMPI_COMM_WORLD_SIZE", "8.5"}, {"OMPI_COMM_WORLD_RANK", "99999999999999"}};
  for (const auto& [name, value] : table) {
    Variables variables = kOpenMpi;
    variables[name] = value;
    const auto job = Find(variables);
    ASSERT_FALSE(job.has_value()) << name << "=" << value;
    EXPECT_THAT(job.error().message, HasSubstr("Open MPI: " + name + "='" + value + "'"));
  }
}

// --- Processes ----------------------------------------------------------------------------------

TEST(HostProcesses, HearsAndJudgesThem) {
  std::map<std::string, std::string> heard;
  HostProcesses processes(
      [&](const std::string& host, std::string_view line) { heard[host] += line; });
  processes.Start("a", {"cat"}, "secret");
  processes.Start("b", {"sh", "-c", "echo why >&2; exit 3"}, "");
  processes.Wait();
  EXPECT_EQ(heard["a"], "secret");
  const Status health = processes.health();
  ASSERT_FALSE(health.has_value());
  EXPECT_EQ(health.error().message, "host b: 'sh' ended with status 3: why");
  EXPECT_FALSE(processes.was_killed());
  HostProcesses killed([](const std::string&, std::string_view) {});
  killed.Start("c", {"sh", "-c", "kill -9 $$"}, "");
  killed.Wait();
  EXPECT_TRUE(killed.was_killed());
  EXPECT_EQ(killed.health().error().message, "host c: 'sh' ended with signal 9");
}

TEST(HostProcesses, EndsWhatDoesNotEnd) {
  HostProcesses processes([](const std::string&, std::string_view) {});
  processes.Start("a", {"sleep", "1000"}, "");
  processes.Finish(0.05);
  ASSERT_FALSE(processes.health().has_value());
  HostProcesses none([](const std::string&, std::string_view) {});
  none.Start("a", {"/no/such/program"}, "");
  none.Wait();
  EXPECT_EQ(none.health().error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tutti
