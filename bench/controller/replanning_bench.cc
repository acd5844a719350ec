// How long it takes to plan for what is left of a network when a link between switches is lost: routes for all flows of one
// communicator by `ffa`, an all-reduce over its ring, and the judge. Figures to reach: 10 ms with 64 ranks, 200 ms
// with 1,024. `routes`, `schedule` and `judge` are the parts of it, in ms.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/control/policy.h"
#include "tutti/controller/cluster_config.h"
#include "tutti/controller/controller.h"
#include "tutti/synth/given_rings.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

// Milliseconds since `from`, which becomes now.
double SecondsSince(std::chrono::steady_clock::time_point& from) {
  const auto now = std::chrono::steady_clock::now();
  const double ms = std::chrono::duration<double, std::milli>(now - from).count();
  from = now;
  return ms;
}

void BM_Replan(benchmark::State& state) {
  const auto boxes = state.range(0) / 8;
  const ClusterView view = *ClusterView::Make(*ParseTopology(
      "cluster(boxes=" + std::to_string(boxes) + ",gpus=8,nics=8,nic=200Gbit/s,fabric=spine_leaf(" +
      std::to_string(boxes / 4) + ",4),oversubscription=2)"));
  PolicyInput input;
  input.view = &view;
  input.channels = 1;
  input.jobs.resize(1);
  for (int32_t rank = 0; rank < view.num_ranks(); ++rank) input.jobs[0].ranks.push_back(rank);
  // The first route out of the first rack is lost.
  input.background.resize(static_cast<size_t>(view.num_links()));
  for (const LinkId link : view.Route(view.RouteSet(0, view.num_ranks() - 1), 0))
    input.background[link.index()] = 1'000'000'000'000'000;
  const Policy* const policy = *FindPolicy("ffa");
  double routes = 0, schedules = 0, judging = 0;
  for (auto _ : state) {
    auto lap = std::chrono::steady_clock::now();
    const Result<PolicyOutput> output = Decide(*policy, input);
    if (!output) return state.SkipWithError(output.error().message.c_str());
    routes += SecondsSince(lap);
    Topology::Builder builder(view.num_ranks());
    std::vector<std::vector<NodeId>> rings;
    for (const std::vector<int32_t>& ring : output->jobs[0].rings) {
      std::vector<NodeId>& order = rings.emplace_back();
      for (size_t i = 0; i < ring.size(); ++i) {
        order.push_back(NodeId{ring[i]});
        builder.AddLink(NodeId{ring[i]}, NodeId{ring[(i + 1) % ring.size()]},
                        {.bandwidth = 12'500'000'000});
      }
    }
    const Result<Topology> network = std::move(builder).Build();
    const Collective all_reduce = *Collective::Make(CollectiveKind::kAllReduce, view.num_ranks());
    const Result<Schedule> schedule = ScheduleOverRings(*network, all_reduce, rings, {});
    if (!schedule) return state.SkipWithError(schedule.error().message.c_str());
    schedules += SecondsSince(lap);
    if (!Verify(*network, all_reduce, *schedule).verified())
      return state.SkipWithError("it is wrong");
    judging += SecondsSince(lap);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["routes"] = routes / runs;
  state.counters["schedule"] = schedules / runs;
  state.counters["judge"] = judging / runs;
}
// A daemon that says of its host what a communicator of all ranks has there; the first one has lost a route.
class ImitatedDaemon final : public controller::DaemonLink {
 public:
  ImitatedDaemon(int64_t host, int64_t hosts) : host_(host), hosts_(hosts) {}
  Result<std::string> Ask(const std::string& request) override {
    if (request.find("status") != std::string::npos)
      return fmt::format(R"({{"address": "10.0.0.{}:1"}})", host_ + 1);
    std::string ranks;
    for (int64_t device = 0; device < kDevices; ++device)
      ranks += fmt::format(R"({}{{"rank": {}, "device": {}, "left": false}})",
                           device == 0 ? "" : ", ", host_ * kDevices + device, device);
    const std::string lost =
        host_ > 0 ? ""
                  : fmt::format(R"({{"from": 0, "to": {}, "channel": 0, "ports": [50000, 100]}})",
                                hosts_ * kDevices - 1);
    return fmt::format(
        R"({{"communicators": [{{"communicator": "c", "tenant": "t", "state": "active", )"
        R"("strategy": "built-in", "epoch": 0, "ranks": {}, "root": "10.0.0.1:1", "flows": null, )"
        R"("lost_paths": [{}], "local_ranks": [{}]}}]}})",
        hosts_ * kDevices, lost, ranks);
  }

 private:
  static constexpr int64_t kDevices = 8;
  int64_t host_, hosts_;
};

// All that a controller does when it hears of a lost link between switches, but for asking daemons: rings on the routes that
// are left, and a schedule for the network that is left, three collectives, each proven.
void BM_DecideForWhatIsLeft(benchmark::State& state) {
  const int64_t boxes = state.range(0) / 8;
  std::string hosts;
  std::vector<std::unique_ptr<controller::DaemonLink>> links;
  for (int64_t box = 0; box < boxes; ++box) {
    hosts += fmt::format(R"({}{{"name": "h{}"}})", box == 0 ? "" : ", ", box);
    links.push_back(std::make_unique<ImitatedDaemon>(box, boxes));
  }
  Result<controller::ClusterConfig> config = controller::ParseClusterConfig(fmt::format(
      R"J({{"topology": "cluster(boxes={},gpus=8,nics=8,nic=200Gbit/s,fabric=spine_leaf(2,4),)J"
      R"J(oversubscription=2)", )J"
      R"("hosts": [{}], "routes": [{{"ports": [50000, 100]}}, {{"ports": [50100, 100]}}, )"
      R"({{"ports": [50200, 100]}}, {{"ports": [50300, 100]}}], "channels": 1}})",
      boxes, hosts));
  if (!config) return state.SkipWithError(config.error().message.c_str());
  controller::Controller controller(*std::move(config), std::move(links));
  const controller::Inventory inventory = controller.Look();
  const controller::PolicyChoice choice = controller.config().policy;
  for (auto _ : state) {
    const Result<controller::Decision> decision = controller.Decide(inventory, choice);
    if (!decision) return state.SkipWithError(decision.error().message.c_str());
    if (decision->changes.size() != 1) return state.SkipWithError("it decides nothing");
    state.SetLabel(decision->changes.front().strategy.rings.empty() ? "for what is left" : "rings");
  }
}
BENCHMARK(BM_DecideForWhatIsLeft)
    ->Arg(16)
    ->Arg(32)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

BENCHMARK(BM_Replan)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
