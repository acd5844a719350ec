#include "tutti/controller/requests.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "background.h"
#include "config_fields.h"
#include "tutti/ipc/socket.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;
using service::ConfigFields;

Json ErrorOf(const std::string& what) { return {{"error", what}}; }

Json RouteJson(int32_t route) { return route == kByEcmp ? Json("ecmp") : Json(route); }

Json ToJson(const CommunicatorState& communicator, const ClusterConfig& config) {
  Json ranks = Json::array();
  for (const int32_t rank : communicator.ranks)
    ranks.push_back(rank < 0 ? Json() : Json(config.topology.node_name(NodeId{rank})));
  Json flows = Json::array();
  for (const FlowInForce& flow : communicator.flows)
    flows.push_back({{"from", flow.from},
                     {"to", flow.to},
                     {"channel", flow.channel},
                     {"route", RouteJson(flow.route)}});
  return {{"communicator", communicator.label},
          {"tenant", communicator.tenant},
          {"state", communicator.state},
          {"strategy", communicator.strategy},
          {"epoch", communicator.epoch},
          {"ranks", ranks},
          {"flows", flows}};
}

Json ToJson(const PolicyChoice& choice) {
  return {{"policy", choice.name},
          {"channels", choice.channels},
          {"reserved_routes", choice.reserved_routes},
          {"reserved_from", choice.reserved_from},
          {"seed", choice.seed},
          {"by_size", choice.by_size}};
}

Json ToJson(const Decision& decision) {
  Json changes = Json::array();
  for (const StrategyChange& change : decision.changes) {
    Json routes = Json::array();
    for (const int32_t route : change.strategy.routes) routes.push_back(RouteJson(route));
    changes.push_back({{"communicator", change.label},
                       {"tenant", change.tenant},
                       {"rings", change.strategy.rings},
                       {"routes", routes},
                       {"new", change.is_new}});
  }
  Json certificate = Json::array();
  for (const TenantCertificate& tenant : decision.certificate)
    certificate.push_back({{"tenant", tenant.tenant},
                           {"link", tenant.link},
                           {"share", tenant.share.ToString()},
                           {"guaranteed", tenant.guaranteed}});
  return {{"policy", decision.policy},
          {"certificate", certificate},
          {"certificate_faults", decision.certificate_faults},
          {"strategies", changes},
          {"largest_excess", decision.largest_excess},
          {"left_out", decision.left_out}};
}

Json ToJson(const Applied& applied) {
  return {{"communicator", applied.label},
          {"hold_s", applied.hold_s},
          {"seconds", applied.seconds},
          {"error", applied.error}};
}

Json ToJson(const FlowReason& reason) {
  Json routes = Json::array();
  for (const RouteReason& route : reason.routes)
    routes.push_back({{"route", route.route},
                      {"excess", route.excess},
                      {"fullest", route.fullest},
                      {"chosen", route.chosen},
                      {"reserved", route.reserved}});
  return {{"from", reason.from},       {"to", reason.to},
          {"channel", reason.channel}, {"from_name", reason.from_name},
          {"to_name", reason.to_name}, {"demand", reason.demand},
          {"routes", routes}};
}

Status ReadRoutesOf(const Json& routes, std::vector<FlowInForce>& read) {
  if (!routes.is_array()) return InvalidArgument("routes: is no list");
  constexpr int32_t kMost = 1 << 20;
  for (size_t i = 0; i < routes.size(); ++i) {
    const std::string place = fmt::format("routes[{}].", i);
    if (!routes[i].is_object()) return InvalidArgument(place + "is no object");
    FlowInForce& flow = read.emplace_back();
    flow.route = -2;
    flow.from = flow.to = -1;
    ConfigFields fields(routes[i], place);
    fields.TakeCount("from", 0, kMost, flow.from);
    fields.TakeCount("to", 0, kMost, flow.to);
    fields.TakeCount("channel", 0, kMost, flow.channel);
    fields.TakeCount("route", 0, kMost, flow.route);
    if (Status finished = fields.Finish(); !finished) return finished;
    if (flow.from < 0 || flow.to < 0 || flow.route < 0)
      return InvalidArgument(place + "needs from, to and route");
  }
  return {};
}

}  // namespace

class Requests::Handler {
 public:
  explicit Handler(Controller controller)
      : controller_(std::move(controller)), choice_(controller_.config().policy) {}

  Json Handle(const Json& request);
  std::vector<std::string> FollowChanges();

 private:
  Json Show();
  Json Policies() const;
  Json Apply(const Json& request);
  Json Install(const Json& request);
  Json Explain(const Json& request);
  Json Windows(const Json& request);
  Result<PolicyChoice> ChoiceOf(const Json& request) const;

  Controller controller_;
  PolicyChoice choice_;
  std::vector<std::string> decided_;  // labels, and what was lost then
  std::string lost_;                  // links, as they were last told
};

Requests::Requests(Controller controller)
    : handler_(std::make_unique<Handler>(std::move(controller))) {}
Requests::~Requests() = default;

std::string Requests::Answer(const std::string& request) {
  const Json json = Json::parse(request, nullptr, false);
  const std::lock_guard lock(mutex_);
  Json answer;
  try {
    answer = handler_->Handle(json);
  } catch (const Json::exception& fault) {
    answer = ErrorOf(fmt::format("a daemon's answer is not understood: {}", fault.what()));
  }
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> Requests::FollowChanges() {
  const std::lock_guard lock(mutex_);
  return handler_->FollowChanges();
}

Json Requests::Handler::Handle(const Json& request) {
  if (!request.is_object()) return ErrorOf("the request is no JSON object");
  const std::string command =
      request.contains("command") && request["command"].is_string() ? request["command"] : Json("");
  if (command == "show") return Show();
  if (command == "policies") return Policies();
  if (command == "apply") return Apply(request);
  if (command == "install") return Install(request);
  if (command == "explain") return Explain(request);
  if (command == "windows") return Windows(request);
  return ErrorOf(fmt::format(
      "command '{}': there are show, policies, apply, install, explain and windows", command));
}

Json Requests::Handler::Show() {
  const Inventory inventory = controller_.Look();
  Json hosts = Json::array(), communicators = Json::array();
  for (const HostState& host : inventory.hosts)
    hosts.push_back({{"host", host.name}, {"address", host.address}, {"error", host.error}});
  for (const CommunicatorState& communicator : inventory.communicators)
    communicators.push_back(ToJson(communicator, controller_.config()));
  Json shown = ToJson(choice_);
  shown["hosts"] = hosts;
  shown["communicators"] = communicators;
  return shown;
}

Json Requests::Handler::Policies() const {
  Json policies = Json::array();
  for (const Policy& policy : tutti::Policies())
    policies.push_back({{"policy", policy.name}, {"summary", policy.summary}});
  return {{"policies", policies}};
}

Result<PolicyChoice> Requests::Handler::ChoiceOf(const Json& request) const {
  PolicyChoice choice = choice_;
  ConfigFields fields(request, "");
  for (const char* other : {"command", "dry_run", "communicator"}) fields.Leave(other);
  fields.Take("policy", choice.name);
  fields.TakeCount("channels", 0, 1024, choice.channels);
  fields.TakeCount("reserved_routes", 0, 1 << 20, choice.reserved_routes);
  fields.TakeCount("reserved_from", 1, 1 << 20, choice.reserved_from);
  fields.TakeCount("seed", 0, INT64_MAX, choice.seed);
  fields.Take("by_size", choice.by_size);
  Json background;
  fields.Take("background", background);
  if (Status read = fields.Finish(); !read) return tl::unexpected(read.error());
  if (background.is_null()) return choice;
  Result<std::vector<int64_t>> loads = ReadBackground(background, controller_.config().view);
  if (!loads) return tl::unexpected(loads.error());
  choice.background = std::move(*loads);
  return choice;
}

Json Requests::Handler::Apply(const Json& request) {
  const Result<PolicyChoice> choice = ChoiceOf(request);
  if (!choice) return ErrorOf(choice.error().message);
  if (request.contains("dry_run") && !request["dry_run"].is_boolean())
    return ErrorOf("dry_run: wanted true or false");
  const Result<Decision> decision = controller_.Decide(controller_.Look(), *choice);
  if (!decision) return ErrorOf(decision.error().message);
  Json answer = ToJson(*decision);
  answer["applied"] = Json::array();
  if (request.value("dry_run", false)) return answer;
  choice_ = *choice;
  for (const Applied& applied : controller_.Apply(*decision))
    answer["applied"].push_back(ToJson(applied));
  return answer;
}

Json Requests::Handler::Install(const Json& request) {
  std::string label;
  OwnStrategy own;
  Json routes = Json::array();
  ConfigFields fields(request, "");
  fields.Leave("command");
  fields.Take("communicator", label);
  fields.Take("rings", own.rings);
  fields.TakeCount("route", 0, 1 << 20, own.route);
  fields.Take("routes", routes);
  if (Status read = fields.Finish(); !read) return ErrorOf(read.error().message);
  if (Status read = ReadRoutesOf(routes, own.routes); !read) return ErrorOf(read.error().message);
  if (own.rings.empty() && own.routes.empty()) return ErrorOf("neither rings nor routes");
  const Result<Applied> applied = controller_.Install(controller_.Look(), label, own);
  if (!applied) return ErrorOf(applied.error().message);
  return {{"applied", Json::array({ToJson(*applied)})}};
}

Json Requests::Handler::Explain(const Json& request) {
  const Result<PolicyChoice> choice = ChoiceOf(request);
  if (!choice) return ErrorOf(choice.error().message);
  if (!request.contains("communicator") || !request["communicator"].is_string())
    return ErrorOf("communicator: wanted its name");
  const std::string label = request["communicator"];
  const Result<Decision> decision = controller_.Decide(controller_.Look(), *choice);
  if (!decision) return ErrorOf(decision.error().message);
  const auto reasons = controller_.Explain(*decision, label, *choice);
  if (!reasons) return ErrorOf(reasons.error().message);
  Json flows = Json::array();
  for (const FlowReason& reason : *reasons) flows.push_back(ToJson(reason));
  return {{"policy", choice->name}, {"flows", flows}};
}

Json Requests::Handler::Windows(const Json& request) {
  std::string preferred;
  std::vector<std::string> victims;
  int64_t clock_error_ns = 1'000'000, probe_ns = 1'000'000'000, patience_ns = 1'000'000'000;
  bool follow = false;
  std::string holds = NameOf(service::GateHolds::kSends);
  ConfigFields fields(request, "");
  fields.Leave("command");
  fields.Take("preferred", preferred);
  fields.Take("victims", victims);
  fields.TakeCount("clock_error_ns", 0, int64_t{1} << 40, clock_error_ns);
  fields.TakeCount("probe_ns", 1'000'000, 60'000'000'000, probe_ns);
  fields.Take("follow", follow);
  fields.Take("holds", holds);
  fields.TakeCount("patience_ns", 1, int64_t{1} << 40, patience_ns);
  if (Status read = fields.Finish(); !read) return ErrorOf(read.error().message);
  if (victims.empty()) return ErrorOf("victims: is empty");
  const std::optional<service::GateHolds> held = service::GateHoldsOf(holds);
  if (!held) return ErrorOf(fmt::format("holds: got '{}', wanted sends or launches", holds));
  const Inventory inventory = controller_.Look();
  if (preferred.empty()) {
    if (Status cleared = controller_.ClearWindows(inventory, victims); !cleared)
      return ErrorOf(cleared.error().message);
    return {{"period_ns", 0}};
  }
  if (follow) {
    if (Status set = controller_.Follow(inventory, preferred, victims, patience_ns, *held); !set)
      return ErrorOf(set.error().message);
    return {{"period_ns", 0}, {"follows", preferred}, {"patience_ns", patience_ns}};
  }
  const Result<TrafficWindows> windows =
      controller_.SetWindows(inventory, preferred, victims, clock_error_ns, probe_ns, *held);
  if (!windows) return ErrorOf(windows.error().message);
  return {{"period_ns", windows->period_ns},
          {"length_ns", windows->length_ns},
          {"phase_ns", windows->phase_ns},
          {"guard_ns", windows->guard_ns},
          {"victims_ns", windows->victims_ns()}};
}

std::vector<std::string> Requests::Handler::FollowChanges() {
  std::vector<std::string> lines, labels;
  const Inventory inventory = controller_.Look();
  for (const CommunicatorState& communicator : inventory.communicators)
    if (communicator.is_complete()) labels.push_back(communicator.label);
  // Where routes are lost, or come back, all is decided again.
  std::string lost;
  const std::vector<bool> lost_links = LostLinks(controller_.config(), inventory);
  for (size_t link = 0; link < lost_links.size(); ++link)
    if (lost_links[link])
      lost += (lost.empty() ? "" : ", ") +
              controller_.config().view.link_name(LinkId{static_cast<int32_t>(link)});
  if (lost != lost_) lines.push_back(lost.empty() ? "all links are back" : "lost: " + lost);
  lost_ = lost;
  if (!lost.empty()) labels.push_back("without " + lost);
  if (labels == decided_) return lines;
  const Result<Decision> decision = controller_.Decide(inventory, choice_);
  if (!decision) return {fmt::format("policy {}: {}", choice_.name, decision.error().message)};
  bool all = true;
  for (const Applied& applied : controller_.Apply(*decision)) {
    all = all && applied.error.empty();
    lines.push_back(applied.error.empty()
                        ? fmt::format("{}: {} in force", applied.label, choice_.name)
                        : fmt::format("{}: {}", applied.label, applied.error));
  }
  if (all) decided_ = std::move(labels);
  return lines;
}

// --- The socket ----------------------------------------------------------------------------------

namespace {

constexpr size_t kMaxRequest = size_t{1} << 20;
constexpr int kLookUpMs = 100;

// A line in, a line out. Gives up when `stops`, or when the asker says nothing for a second.
void ServeOne(const ipc::Descriptor& socket, Requests& requests) {
  constexpr int kPatienceMs = 1000;
  std::string request;
  std::array<char, 65536> part;
  while (request.empty() || request.back() != '\n') {
    pollfd ready{socket.fd(), POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) <= 0) return;
    const ssize_t size = recv(socket.fd(), part.data(), part.size(), 0);
    if (size <= 0 || request.size() > kMaxRequest) return;
    request.append(part.data(), static_cast<size_t>(size));
  }
  const std::string answer = requests.Answer(request) + "\n";
  for (size_t done = 0; done < answer.size();) {
    const ssize_t size =
        send(socket.fd(), answer.data() + done, answer.size() - done, MSG_NOSIGNAL);
    if (size <= 0) return;
    done += static_cast<size_t>(size);
  }
}

}  // namespace

Status ServeRequests(const std::string& socket, Requests& requests,
                     const std::function<void()>& ready, const std::function<bool()>& stops) {
  const Result<ipc::Descriptor> listener =
      ipc::Listen(socket, ipc::SocketKind::kStream, ipc::OpenTo::kOwner);
  if (!listener) return tl::unexpected(listener.error());
  ready();
  while (!stops()) {
    pollfd comes{listener->fd(), POLLIN, 0};
    if (poll(&comes, 1, kLookUpMs) <= 0) continue;
    const ipc::Descriptor asker(accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC));
    // Who does not read its answer keeps nobody else waiting.
    const timeval patience{.tv_sec = 1, .tv_usec = 0};
    if (asker.is_open() &&
        setsockopt(asker.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0)
      ServeOne(asker, requests);
  }
  return {};
}

}  // namespace tutti::controller
