// Changes of strategy that an operator asks for while collectives run.
#include <map>
#include <utility>

#include "tutti/coll/collective.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "world.h"

namespace tutti::histories {
namespace {

// One that is proven, by network and algorithm; texts are made once a process.
const std::string& ScheduleText(const std::string& network, const char* algorithm) {
  static std::map<std::string, std::string> made;
  std::string& text = made[network + algorithm];
  if (!text.empty()) return text;
  const Result<Topology> topology = ParseTopology(network);
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllReduce, topology->num_ranks(), {});
  const auto synthesizer = FindSynthesizer(algorithm);
  const Result<Schedule> schedule = RunSynthesizer(**synthesizer, *topology, *collective, {});
  return text = ScheduleToJson(*topology, *schedule);
}

}  // namespace

Json World::DrawStrategy(const Group& group, bool& is_valid) {
  Json request = {{"command", "reconfigure"}, {"communicator", group.label}};
  const int32_t ranks = group.num_ranks;
  is_valid = true;
  if (Chance(8)) {
    is_valid = false;
    if (Chance(50))
      request["flows"] = {{{"from", 0}, {"to", ranks}}};
    else
      request["schedules"] = {
          {{"name", "foreign"},
           {"text", ScheduleText(fmt::format("complete({})", ranks + 1), "bfb")}}};
    return request;
  }
  if (Chance(60)) {
    const bool ring = ranks >= 3 && Chance(50);
    request["schedules"] = {
        {{"name", ring ? "ring" : "bfb"},
         {"text", ring ? ScheduleText(fmt::format("ring({})", ranks), "ring")
                       : ScheduleText(fmt::format("complete({})", ranks), "bfb")}}};
  }
  if (Chance(60)) {
    Json flows = Json::array();
    const auto routes = static_cast<uint64_t>(network_.routes);
    const auto ports = [](uint64_t route) {
      return Json{SimulatedKernel::kFirstRoutePort + route * SimulatedKernel::kPortsARoute,
                  SimulatedKernel::kPortsARoute};
    };
    for (int32_t from = 0; from < ranks; ++from)
      for (int32_t to = 0; to < ranks; ++to) {
        if (from == to || Chance(30)) continue;
        const uint64_t route = Draw(routes);
        Json others = Json::array();
        for (uint64_t each = 1; each < routes; ++each)
          others.push_back(ports((route + each) % routes));
        flows.push_back({{"from", from}, {"to", to}, {"ports", ports(route)}, {"others", others}});
      }
    if (!flows.empty()) request["flows"] = flows;
  }
  return request;
}

void World::Reconfigure(Group& group) {
  Core* core = Enter(group.root_host, [this, &group] { Reconfigure(group); });
  if (core == nullptr) return;
  bool is_valid = true;
  const Json request = DrawStrategy(group, is_valid);
  Note("a change of {} is asked for", group.label);
  Change& change = changes_.emplace_back();
  change.host = group.root_host;
  change.life = hosts_[static_cast<size_t>(group.root_host)].life;
  ++pending_;
  core->Answer(request.dump(), [this, &change, is_valid](const std::string& text) {
    --pending_;
    if (std::exchange(change.is_answered, true)) return Break("H3: a request is answered twice");
    const Json answer = Json::parse(text);
    Note("the change: {}", text.substr(0, text.find("\"seconds\"")));
    if (!answer.contains("error")) {
      ++outcome_.changes;
      if (!is_valid) Break("H3: an impossible change is made");
      return;
    }
    ++outcome_.refused_changes;
    const std::string why = answer["error"];
    bool is_expected = !is_valid || dies();
    for (const char* known :
         {"busy", "not all its ranks have joined", "have left", "there is no communicator"})
      is_expected = is_expected || why.find(known) != std::string::npos;
    if (!is_expected) Break("H3: a change is refused: " + why);
  });
  Wake(group.root_host);
}

void World::PlanChanges() {
  for (Group& group : groups_)
    for (uint64_t left = Draw(4); left > 0; --left)
      kernel_->At(After((Chance(90) ? 20 * kMs : 0) + DrawNs(90 * kMs)),
                  [this, &group] { Reconfigure(group); });
}

}  // namespace tutti::histories
