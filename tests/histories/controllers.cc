// Controllers, as they are shipped, which decide and die.
#include <array>
#include <memory>
#include <utility>

#include "tutti/controller/controller.h"
#include "world.h"

namespace tutti::histories {

// How a controller asks a daemon. It dies after so many questions, the last of which is asked and its answer not heard.
class World::Link final : public controller::DaemonLink {
 public:
  Link(World& world, int32_t host, int32_t& asks) : world_(world), host_(host), asks_(asks) {}

  Result<std::string> Ask(const std::string& request) override {
    if (asks_ <= 0) return MakeError(ErrorCode::kPeerFailed, "the controller has died");
    struct Heard {
      bool is_over = false;
      std::string answer;
    };
    const auto heard = std::make_shared<Heard>();
    Send(request, [heard](const std::string& text) {
      heard->is_over = true;
      heard->answer = text;
    });
    if (--asks_ == 0) return MakeError(ErrorCode::kPeerFailed, "the controller has died");
    // Others go on meanwhile.
    const int64_t until = world_.After(5 * kSecond);
    while (!heard->is_over && world_.kernel().now_ns() < until && world_.outcome_.broken.empty() &&
           world_.kernel().RunNext()) {
    }
    if (!heard->is_over) return MakeError(ErrorCode::kPeerFailed, "the daemon does not answer");
    return heard->answer;
  }

 private:
  void Send(const std::string& request, const std::function<void(const std::string&)>& reply) {
    constexpr int64_t kWayNs = 50 * kUs;
    World& world = world_;
    const int32_t host = host_;
    world.kernel().At(world.After(kWayNs), [&world, host, request, reply] {
      Core* core = world.Enter(host, [] {});
      if (core == nullptr) return;
      core->Answer(request, reply);
      world.Wake(host);
    });
  }

  World& world_;
  int32_t host_;
  int32_t& asks_;
};

void World::RunController(int32_t asks, uint64_t again) {
  if (std::exchange(controller_runs_, true)) {  // of two at once the other one waits
    kernel_->At(After(5 * kMs), [this, asks, again] { RunController(asks, again); });
    return;
  }
  Json config = {{"topology", fmt::format("cluster(boxes={},gpus={},nics={},nic=100Mbit/s,"
                                          "fabric=spine_leaf(2,2),oversubscription=2)",
                                          network_.hosts, kNics, kNics)},
                 {"hosts", Json::array()},
                 {"routes", Json::array()}};
  for (int32_t route = 0; route < 2; ++route)
    config["routes"].push_back(
        {{"ports",
          {SimulatedKernel::kFirstRoutePort + route * SimulatedKernel::kPortsARoute,
           SimulatedKernel::kPortsARoute}}});
  std::vector<std::unique_ptr<controller::DaemonLink>> links;
  for (int32_t host = 0; host < network_.hosts; ++host) {
    Json nics = Json::array();
    for (int32_t nic = 0; nic < kNics; ++nic)
      nics.push_back(fmt::format("10.0.{}.{}", host, nic + 1));
    config["hosts"].push_back(
        {{"name", fmt::format("H{}", host)}, {"admin", "none"}, {"nics", nics}});
    links.push_back(std::make_unique<Link>(*this, host, asks));
  }
  auto parsed = controller::ParseClusterConfig(config.dump());
  if (!parsed) return Break("the configuration: " + parsed.error().message);
  Note("a controller comes");
  controller::Controller controller(std::move(*parsed), std::move(links), {.at_once = 1});
  const controller::Inventory inventory = controller.Look();
  constexpr std::array kPolicies = {"ffa", "locality-ring", "weighted"};
  const auto decided = controller.Decide(inventory, {.name = kPolicies[Draw(kPolicies.size())]});
  if (decided) {
    for (const controller::Applied& applied : controller.Apply(*decided)) {
      Note("the controller changes {}: {}", applied.label, applied.error);
      if (applied.error.empty()) ++outcome_.changes;
    }
  } else {
    Break("the controller decides nothing: " + decided.error().message);
  }
  controller_runs_ = false;
  --pending_;
}

void World::PlanControllers() {
  // The last one lives long enough.
  constexpr int32_t kAll = 1'000;
  for (uint64_t left = 1 + Draw(2), all = left; left > 0; --left) {
    ++pending_;
    const int32_t asks = left < all ? 1 + static_cast<int32_t>(Draw(12)) : kAll;
    kernel_->At(After(DrawNs(100 * kMs) + (left == all ? 20 * kMs : 0)),
                [this, asks, left] { RunController(asks, left); });
  }
}

}  // namespace tutti::histories
