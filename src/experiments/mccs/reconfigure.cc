// How long a change of schedules takes while collectives run, and that no byte is wrong through a thousand of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mccs/local_daemons.h"
#include "mccs/mccs.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/random.h"
#include "tutti/communicator.h"
#include "tutti/store/store.h"
#include "tutti/synth/given_rings.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace mccs_reconfigure {
namespace {

using namespace mccs;
using Json = nlohmann::json;

constexpr int32_t kHosts = 4, kRanks = 8;
constexpr int32_t kChanges = 1000;
constexpr int64_t kElements = 16384;  // 64 KiB of int32

struct NamedSchedule {
  std::string name, text;
};

Result<NamedSchedule> Make(const std::string& network, std::string_view algorithm) {
  const Result<Topology> topology = ParseTopology(network);
  if (!topology) return tl::unexpected(topology.error());
  const auto collective = Collective::Make(CollectiveKind::kAllReduce, kRanks, {});
  const auto synthesizer = FindSynthesizer(algorithm);
  if (!collective || !synthesizer) return InvalidArgument(network);
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
  if (!schedule) return tl::unexpected(schedule.error());
  return NamedSchedule{fmt::format("{} on {}", algorithm, network),
                       ScheduleToJson(*topology, *schedule)};
}

// One to three rings in any order.
Result<NamedSchedule> MakeRings(int32_t number, Random& random) {
  const Result<Topology> topology = ParseTopology(fmt::format("complete({},parallel=3)", kRanks));
  if (!topology) return tl::unexpected(topology.error());
  const auto collective = Collective::Make(CollectiveKind::kAllReduce, kRanks, {});
  if (!collective) return tl::unexpected(collective.error());
  std::vector<std::vector<NodeId>> rings(1 + random.Below(3));
  for (std::vector<NodeId>& ring : rings) {
    for (int32_t rank = 0; rank < kRanks; ++rank) ring.push_back(NodeId{rank});
    for (size_t i = ring.size(); i > 1; --i) std::swap(ring[i - 1], ring[random.Below(i)]);
  }
  const Result<Schedule> schedule = ScheduleOverRings(*topology, *collective, rings, {});
  if (!schedule) return tl::unexpected(schedule.error());
  return NamedSchedule{fmt::format("rings {}", number), ScheduleToJson(*topology, *schedule)};
}

Result<std::vector<NamedSchedule>> MakeSchedules(Random& random) {
  constexpr int32_t kRings = 12;
  std::vector<NamedSchedule> schedules;
  for (const auto& [network, algorithm] :
       {std::pair("ring(8)", "ring"), std::pair("ring(8)", "bfb"), std::pair("hypercube(3)", "bfb"),
        std::pair("torus(2,4)", "bfb")}) {
    Result<NamedSchedule> made = Make(network, algorithm);
    if (!made) return tl::unexpected(made.error());
    schedules.push_back(std::move(*made));
  }
  for (int32_t i = 0; i < kRings; ++i) {
    Result<NamedSchedule> made = MakeRings(i, random);
    if (!made) return tl::unexpected(made.error());
    schedules.push_back(std::move(*made));
  }
  return schedules;
}

struct Counts {
  std::atomic<bool> over = false;
  std::atomic<int64_t> calls = 0, wrong = 0;
  std::atomic<int32_t> joined = 0;
};

// All-reduces without a pause, every element checked, until rank 0 says that it is over.
Status RunRank(const std::string& socket, const UniqueId& id, int32_t rank, Counts& counts) {
  constexpr double kPatience_s = 60;
  Result<Communicator> ranks =
      Communicator::Join(id, kRanks, rank, {.timeout_s = kPatience_s, .service = socket});
  if (!ranks) return tl::unexpected(ranks.error());
  ++counts.joined;
  std::vector<int32_t> in(kElements), out(kElements);
  for (int32_t call = 0;; ++call) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = rank * 7 + call + static_cast<int32_t>(i);
    in[0] = rank == 0 && counts.over ? 1 : 0;
    if (Status done =
            ranks->AllReduce(in.data(), out.data(), kElements, DataType::kInt32, ReduceOp::kSum);
        !done)
      return done;
    constexpr int32_t kOfRanks = 7 * kRanks * (kRanks - 1) / 2;
    for (size_t i = 1; i < out.size(); ++i)
      if (out[i] != kOfRanks + kRanks * (call + static_cast<int32_t>(i))) ++counts.wrong;
    ++counts.calls;
    if (out[0] != 0) return {};
  }
}

struct Times {
  std::vector<double> hold_ms, command_ms;
};

Result<Times> Change(const LocalDaemons& daemons, const std::vector<NamedSchedule>& schedules,
                     int32_t changes, Random& random) {
  constexpr double kMs = 1e3;
  const Result<std::string> comms =
      service::AskDaemon(daemons.admin(0), Json{{"command", "comms"}}.dump());
  if (!comms) return tl::unexpected(comms.error());
  const Json label = Json::parse(*comms).at("communicators").at(0).at("communicator");
  Times times;
  size_t last = schedules.size();
  for (int32_t change = 0; change < changes && !CancelRequested(); ++change) {
    size_t next = random.Below(schedules.size());
    if (next == last) next = (next + 1) % schedules.size();
    last = next;
    const Json request{
        {"command", "reconfigure"},
        {"communicator", label},
        {"schedules", {{{"name", schedules[next].name}, {"text", schedules[next].text}}}}};
    const Result<std::string> text = service::AskDaemon(daemons.admin(0), request.dump());
    if (!text) return tl::unexpected(text.error());
    const Json answer = Json::parse(*text);
    if (answer.contains("error"))
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("change {}: {}", change, answer["error"].get<std::string>()));
    times.hold_ms.push_back(kMs * answer.at("hold_s").get<double>());
    times.command_ms.push_back(kMs * answer.at("seconds").get<double>());
  }
  return times;
}

double PercentileOf(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(percent / 100 * static_cast<double>(values.size() - 1))];
}

Result<ExperimentResult> RunReconfigure(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  const auto changes = static_cast<int32_t>(kChanges / std::max<int64_t>(1, options.step));
  Random random(1);
  const Result<std::vector<NamedSchedule>> schedules = MakeSchedules(random);
  if (!schedules) return tl::unexpected(schedules.error());
  const Result<LocalDaemons> daemons = LocalDaemons::Start(kHosts);
  if (!daemons) return tl::unexpected(daemons.error());
  const Result<UniqueId> id = MakeUniqueId(daemons->socket(0));
  if (!id) return tl::unexpected(id.error());
  Counts counts;
  std::vector<Status> ends(kRanks);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      ends[static_cast<size_t>(rank)] = RunRank(daemons->socket(rank % kHosts), *id, rank, counts);
      if (!ends[static_cast<size_t>(rank)]) counts.over = true;
    });
  while (counts.joined < kRanks && !counts.over) std::this_thread::yield();
  Result<Times> times = Times{};
  if (!counts.over) times = Change(*daemons, *schedules, changes, random);
  counts.over = true;
  for (std::thread& thread : threads) thread.join();
  for (const Status& end : ends)
    if (!end) return tl::unexpected(end.error());
  if (!times) return tl::unexpected(times.error());
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable table{.title = "Changes of schedules while collectives run",
                    .label_name = "what",
                    .columns = {{.name = "median", .unit = "ms", .digits = 2, .timed = true},
                                {.name = "99 %", .unit = "ms", .digits = 2, .timed = true},
                                {.name = "longest", .unit = "ms", .digits = 2, .timed = true}}};
  for (const auto& [name, values] : {std::pair("launches held", &times->hold_ms),
                                     std::pair("command to its answer", &times->command_ms)})
    table.rows.push_back({name,
                          {Number(PercentileOf(*values, 50)), Number(PercentileOf(*values, 99)),
                           Number(PercentileOf(*values, 100))}});
  ResultTable bytes{.title = "What the ranks saw",
                    .label_name = "what",
                    .columns = {{.name = "how many", .timed = true}},
                    .rows = {{"changes", {Number(static_cast<double>(times->hold_ms.size()))}},
                             {"all-reduces", {Number(static_cast<double>(counts.calls) / kRanks)}},
                             {"wrong elements", {Number(static_cast<double>(counts.wrong))}}}};
  ExperimentResult result;
  result.tables = {std::move(table), std::move(bytes)};
  result.notes = {fmt::format(
      "{} daemons and {} ranks, threads on {} processors that speak over the loopback interface; "
      "all-reduces of 64 KiB without a pause, each element of each checked. Each change is to "
      "another of {} schedules, drawn by chance: judged, lowered, connected, switched to. The "
      "command is answered when the old connections have drained.",
      kHosts, kRanks, std::thread::hardware_concurrency(), schedules->size())};
  return result;
}

}  // namespace
}  // namespace mccs_reconfigure

Experiment MccsReconfigure() {
  return {"mccs-reconfigure", "[mccs] 4.2", "a thousand changes of schedules while collectives run",
          mccs_reconfigure::RunReconfigure};
}

}  // namespace tutti
