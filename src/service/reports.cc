#include "reports.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "instruction_name.h"
#include "operator_ports.h"
#include "tutti/base/clock.h"
#include "tutti/base/units.h"
#include "tutti/runtime/remote.h"

namespace tutti::service {
namespace {

using Json = nlohmann::json;

Json ErrorOf(const std::string& what) { return {{"error", what}}; }

constexpr double kNsASecond = 1e9;
double Seconds(int64_t ns) { return static_cast<double>(ns) / kNsASecond; }

// null: always open. `busy`: those that it follows.
Json ToJson(const Gate& gate, bool busy) {
  if (!gate.has_windows() && !gate.follows()) return nullptr;
  return {{"period_ns", gate.windows().period_ns}, {"phase_ns", gate.windows().phase_ns},
          {"length_ns", gate.windows().length_ns}, {"holds", NameOf(gate.windows().holds)},
          {"patience_ns", gate.patience_ns()},     {"busy", busy},
          {"given_up", gate.has_given_up()}};
}

Json NotRunning(const std::string& label) {
  return ErrorOf(fmt::format("{}: not all its ranks have joined, or it has failed", label));
}

// Of a request; none: what it wants held is neither.
std::optional<GateHolds> HoldsOf(const Json& request) {
  if (!request.contains("holds")) return GateHolds::kSends;
  return request["holds"].is_string() ? GateHoldsOf(request["holds"].get<std::string>())
                                      : std::nullopt;
}
constexpr const char* kWantedHolds = "holds: wanted sends or launches";

// [a, b], both of them not below 0.
std::optional<std::array<uint64_t, 2>> PairOf(const Json& json) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
      !json[1].is_number_unsigned())
    return std::nullopt;
  return std::array<uint64_t, 2>{json[0].get<uint64_t>(), json[1].get<uint64_t>()};
}

// null: no flow is pinned.
Json FlowsOf(const std::string& table) {
  return table.empty() ? Json() : Json::parse(table, nullptr, false)["flows"];
}

// Ways that were left because nothing came back, and by which nothing comes yet.
Json LostPathsOf(const PathWatch& watch) {
  Json paths = Json::array();
  for (const PathWatch::Lost& lost : watch.lost()) {
    const bool is_unknown = lost.way.ports.count == 0;
    if (!lost.is_cut && !is_unknown) continue;
    Json path = {{"from", lost.from},
                 {"to", lost.way.peer},
                 {"channel", lost.way.channel},
                 {"target", lost.way.to.ToText()},
                 {"silent_s", lost.way.silent_s},
                 {"seconds", Seconds(NowNs() - lost.since_ns)}};
    if (!is_unknown) path["ports"] = {lost.way.ports.first, lost.way.ports.count};
    paths.push_back(std::move(path));
  }
  return paths;
}

Json ToJson(const ServiceCommunicator& communicator) {
  Json ranks = Json::array();
  for (const auto& rank : communicator.local())
    ranks.push_back({{"rank", rank->rank},
                     {"issued", rank->issued},
                     {"completed", rank->completed},
                     {"running", rank->running ? rank->running->Text() : ""},
                     {"device", rank->device},
                     {"left", rank->owner == nullptr}});
  return {{"communicator", communicator.id().Label()},
          {"tenant", communicator.tenant().options.name},
          {"ranks", communicator.num_ranks()},
          {"root", communicator.id().root.ToText()},
          {"state", communicator.phase()},
          {"epoch", communicator.epoch()},
          {"strategy", communicator.strategy()},
          {"connections", communicator.connections()},
          {"gates", ToJson(communicator.gate(), communicator.makes_way())},
          {"flows", FlowsOf(communicator.flows())},
          {"lost_paths", LostPathsOf(communicator.path_watch())},
          {"paths_lost", communicator.path_watch().total()},
          {"error", communicator.has_failed() ? communicator.why_failed().message : ""},
          {"local_ranks", ranks}};
}

// `here`: what this daemon, which others reach at `address`, has of it, if anything.
Json NoRoot(const ServiceCommunicator* here, const std::string& address, const std::string& label) {
  if (here == nullptr) return ErrorOf(fmt::format("there is no communicator '{}' here", label));
  // Its first rank is on its way to the root, or its last one has left it.
  if (here->id().root.ToText() == address)
    return ErrorOf(
        fmt::format("{}: {}", label,
                    here->is_over() ? "its ranks have left" : "not all its ranks have joined"));
  return ErrorOf(fmt::format("the root of {} is the daemon at {}: ask there", label,
                             here->id().root.ToText()));
}

// Over all ranks: who has not come to what others wait for.
Json PendingOf(const std::string& label, const RootPart& root) {
  Json waiting = Json::array(), missing = Json::array();
  for (size_t rank = 0; rank < root.progress().size(); ++rank) {
    const RootPart::Progress& progress = root.progress()[rank];
    if (progress.waits_ns > 0)
      waiting.push_back({{"rank", rank},
                         {"host", root.HostOf(rank)},
                         {"operation", progress.completed + 1},
                         {"call", progress.what},
                         {"seconds", Seconds(progress.waits_ns)}});
    else if (const std::string why = root.WhyMissing(rank); !why.empty() && !root.has_left(rank))
      missing.push_back({{"rank", rank}, {"host", root.HostOf(rank)}, {"why", why}});
  }
  if (waiting.empty() && missing.empty()) return nullptr;
  return {{"communicator", label}, {"waiting", waiting}, {"missing", missing}};
}

}  // namespace

void Reports::Answer(const std::string& text, AdminReply reply) {
  // What is nested deeper is left out: it could not even be printed.
  constexpr int kMaxDepth = 64;
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  const Json request = Json::parse(text, is_shallow, false);
  for (const char* key : {"communicator", "tenant"})
    if (request.is_object() && request.contains(key) && !request[key].is_string())
      return reply(
          ErrorOf(fmt::format("{}: got {}, wanted a name", key, request[key].type_name())).dump());
  const std::string command =
      request.is_object() && request.contains("command") && request["command"].is_string()
          ? request["command"].get<std::string>()
          : "";
  if (command == "reconfigure") return Reconfigure(request, reply);
  if (command == "trace" && request.contains("chunks_ms")) return TraceChunks(request, reply);
  if (command == "gates") return reply(SetGates(request).dump());
  if (command == "follow") return reply(Follow(request).dump());
  if (command == "announce") return reply(Announce(request).dump());
  reply(
      (command == "status"    ? Status()
       : command == "tenants" ? Tenants()
       : command == "comms"   ? Communicators()
       : command == "pending" ? Pending()
       : command == "trace"   ? Trace(request)
       : command == "quota"
           ? SetQuota(request)
           : ErrorOf(fmt::format("command '{}': there are status, tenants, comms, pending, trace, "
                                 "quota, gates, follow, announce and reconfigure",
                                 command)))
          .dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json Reports::Status() const {
  int64_t operations = 0, bytes = 0;
  for (const auto& tenant : core_.tenants_) {
    operations += tenant->operations;
    bytes += tenant->bytes;
  }
  return {{"host", core_.host_},
          {"address", core_.address()},
          {"socket", core_.options_.socket},
          {"process", getpid()},
          {"uptime_s", Seconds(NowNs() - core_.started_ns_)},
          {"tenants", core_.tenants_.size()},
          {"processes", core_.sessions_.size()},
          {"communicators", core_.communicators_.size()},
          {"operations", operations},
          {"bytes", bytes},
          {"metrics", core_.ports_->metrics_address()},
          {"ras", core_.ports_->ras_address()},
          {"rounds", core_.rounds_},
          {"sleeps", core_.sleeps_}};
}

Json Reports::Tenants() const {
  Json tenants = Json::array();
  for (const auto& tenant : core_.tenants_)
    tenants.push_back({{"tenant", tenant->options.name},
                       {"weight", tenant->options.weight},
                       {"processes", tenant->processes},
                       {"processes_quota", tenant->options.processes},
                       {"ranks", tenant->ranks},
                       {"ranks_quota", tenant->options.ranks},
                       {"memory_bytes", tenant->memory_bytes.load()},
                       {"memory_bytes_quota", tenant->options.memory_bytes},
                       {"operations", tenant->operations},
                       {"bytes", tenant->bytes},
                       {"refused", tenant->refused}});
  return {{"tenants", tenants}};
}

Json Reports::Communicators() const {
  Json all = Json::array();
  for (const auto& [secret, communicator] : core_.communicators_)
    all.push_back(ToJson(*communicator));
  return {{"communicators", all}};
}

Json Reports::Pending() const {
  Json pending = Json::array(), elsewhere = Json::array();
  for (const auto& [secret, root] : core_.roots_)
    if (Json of_root = PendingOf(CommunicatorId{secret, {}}.Label(), *root); !of_root.is_null())
      pending.push_back(std::move(of_root));
  for (const auto& [secret, communicator] : core_.communicators_)
    if (core_.roots_.count(secret) == 0)
      elsewhere.push_back({{"communicator", communicator->id().Label()},
                           {"root", communicator->id().root.ToText()}});
  return {{"pending", pending}, {"elsewhere", elsewhere}};
}

Json Reports::Trace(const Json& request) const {
  const std::string label = request.value("communicator", "");
  const ServiceCommunicator* communicator = core_.FindCommunicator(label);
  if (communicator == nullptr)
    return ErrorOf(fmt::format("there is no communicator '{}' here", label));
  return TraceOf(*communicator, false);
}

void Reports::TraceChunks(const Json& request, const AdminReply& reply) {
  constexpr int64_t kMostMs = 60'000, kNsAMs = 1'000'000;
  const Json& asked = request["chunks_ms"];
  const int64_t ms = asked.is_number_integer() ? asked.get<int64_t>() : 0;
  if (ms < 1 || ms > kMostMs)
    return reply(
        ErrorOf(fmt::format("chunks_ms: got {}, wanted 1 to {}", asked.dump(), kMostMs)).dump());
  const std::string label = request.value("communicator", "");
  ServiceCommunicator* communicator = core_.FindCommunicator(label);
  if (communicator == nullptr)
    return reply(ErrorOf(fmt::format("there is no communicator '{}' here", label)).dump());
  const auto tell = [&core = core_, communicator, reply] {
    reply(Reports(core).TraceOf(*communicator, true).dump());
  };
  const int64_t now_ns = NowNs();
  if (!communicator->TraceChunks(now_ns, now_ns + ms * kNsAMs, tell))
    reply(ErrorOf(fmt::format("busy: chunks of {} are being traced", label)).dump());
}

Json Reports::TraceOf(const ServiceCommunicator& communicator, bool with_chunks) const {
  Json events = Json::array();
  constexpr double kNsAUs = 1e3;
  const auto event = [&](const TraceRecord& record, std::string name, int64_t from, int64_t to) {
    events.push_back(
        {{"name", std::move(name)},
         {"cat", "collective"},
         {"ph", "X"},
         {"ts", static_cast<double>(from) / kNsAUs},
         {"dur", static_cast<double>(to - from) / kNsAUs},
         {"pid", core_.host_},
         {"tid", record.rank},
         {"args",
          {{"sequence", record.sequence}, {"epoch", record.epoch}, {"bytes", record.bytes}}}});
  };
  const ChunkTrace& chunks = communicator.chunks();
  for (const TraceRecord& record : communicator.trace()) {
    if (with_chunks && record.completed_ns < chunks.begun_ns()) continue;
    if (record.launched_ns > record.posted_ns)
      event(record, "waits for its turn", record.posted_ns, record.launched_ns);
    event(record, record.Text(), record.launched_ns, record.completed_ns);
  }
  Json trace = {{"realtime_offset_us", static_cast<double>(RealNowNs() - NowNs()) / kNsAUs}};
  if (with_chunks) {
    for (const ExecutedChunk& chunk : chunks.chunks())
      events.push_back({{"name", InstructionName(chunk.op, chunk.peer)},
                        {"cat", "chunk"},
                        {"ph", "X"},
                        {"ts", static_cast<double>(chunk.start_ns) / kNsAUs},
                        {"dur", static_cast<double>(chunk.end_ns - chunk.start_ns) / kNsAUs},
                        {"pid", fmt::format("{} rank {}", core_.host_, chunk.rank)},
                        {"tid", chunk.stream},
                        {"args",
                         {{"operation", chunk.operation},
                          {"epoch", chunk.epoch},
                          {"instruction", chunk.instruction}}}});
    trace["chunks_left_out"] = chunks.left_out();
  }
  trace["traceEvents"] = std::move(events);
  return trace;
}

Json Reports::SetQuota(const Json& request) {
  const std::string name = request.value("tenant", "");
  for (const auto& tenant : core_.tenants_) {
    if (tenant->options.name != name) continue;
    TenantOptions changed = tenant->options;
    const auto take = [&](const char* key, auto& field, int64_t most) -> std::string {
      if (!request.contains(key)) return "";
      if (!request[key].is_number_integer() || request[key].get<int64_t>() < 1 ||
          request[key].get<int64_t>() > most)
        return fmt::format("{}: got {}, wanted 1 to {}", key, request[key].dump(), most);
      field = static_cast<std::decay_t<decltype(field)>>(request[key].get<int64_t>());
      return "";
    };
    constexpr int64_t kMaxWeight = 64, kMaxCount = 1 << 20;
    for (const std::string& fault :
         {take("weight", changed.weight, kMaxWeight),
          take("memory_bytes", changed.memory_bytes, INT64_MAX),
          take("processes", changed.processes, kMaxCount), take("ranks", changed.ranks, kMaxCount)})
      if (!fault.empty()) return ErrorOf(fault);
    tenant->options = changed;
    return Tenants();
  }
  return ErrorOf(fmt::format("there is no tenant '{}' here", name));
}

Json Reports::SetGates(const Json& request) {
  const std::string label = request.value("communicator", "");
  RootPart* root = core_.FindRoot(label);
  if (root == nullptr) return NoRoot(core_.FindCommunicator(label), core_.address(), label);
  const auto field = [&request](const char* key) -> int64_t {
    if (!request.contains(key)) return 0;
    return request[key].is_number_integer() ? request[key].get<int64_t>() : -1;
  };
  const std::optional<GateHolds> holds = HoldsOf(request);
  if (!holds) return ErrorOf(kWantedHolds);
  const GateWindows windows{field("period_ns"), field("phase_ns"), field("length_ns"), *holds};
  if (!windows.AreValid())
    return ErrorOf(fmt::format(
        "period_ns {}, phase_ns {}, length_ns {}: wanted a period of 0 (always open), or "
        "0 < length <= period and 0 <= phase < period",
        windows.period_ns, windows.phase_ns, windows.length_ns));
  if (!root->SetGates(windows)) return NotRunning(label);
  return {{"communicator", label}, {"period_ns", windows.period_ns}};
}

Json Reports::Follow(const Json& request) {
  const std::string label = request.value("communicator", "");
  RootPart* root = core_.FindRoot(label);
  if (root == nullptr) return NoRoot(core_.FindCommunicator(label), core_.address(), label);
  const Json patience = request.value("patience_ns", Json());
  if (!patience.is_number_integer() || patience.get<int64_t>() <= 0)
    return ErrorOf("patience_ns: wanted nanoseconds, at least 1");
  const std::optional<GateHolds> holds = HoldsOf(request);
  if (!holds) return ErrorOf(kWantedHolds);
  const FollowKey key = DrawSecret();
  Json daemons = Json::array();
  for (const Endpoint& daemon : root->Follow(key, patience.get<int64_t>(), *holds))
    daemons.push_back({daemon.address.v4(), daemon.port});
  if (daemons.empty()) return NotRunning(label);
  return {{"communicator", label}, {"key", key}, {"daemons", daemons}};
}

Json Reports::Announce(const Json& request) {
  const std::string label = request.value("communicator", "");
  RootPart* root = core_.FindRoot(label);
  if (root == nullptr) return NoRoot(core_.FindCommunicator(label), core_.address(), label);
  const Json given = request.value("followers", Json());
  const char* const wanted =
      "followers: wanted a list of {key, daemons}, as the answers to 'follow' have them";
  if (!given.is_array()) return ErrorOf(wanted);
  std::vector<Follower> followers;
  for (const Json& follower : given) {
    const Json none;
    const auto key = PairOf(follower.is_object() ? follower.value("key", none) : none);
    const Json daemons = follower.is_object() ? follower.value("daemons", none) : none;
    if (!key || !daemons.is_array()) return ErrorOf(wanted);
    for (const Json& daemon : daemons) {
      const auto at = PairOf(daemon);
      if (!at || (*at)[0] > UINT32_MAX || (*at)[1] > UINT16_MAX) return ErrorOf(wanted);
      followers.push_back(
          {.key = *key,
           .daemon = {static_cast<uint32_t>((*at)[0]), static_cast<uint16_t>((*at)[1])}});
    }
  }
  if (!root->Announce(followers)) return NotRunning(label);
  return {{"communicator", label}, {"followers", followers.size()}};
}

void Reports::Reconfigure(const Json& request, const AdminReply& reply) {
  const std::string label = request.value("communicator", "");
  RootPart* root = core_.FindRoot(label);
  if (root == nullptr)
    return reply(NoRoot(core_.FindCommunicator(label), core_.address(), label).dump());
  StrategyFiles files;
  if (request.contains("flows") && request["flows"].is_array())
    files.flows = Json{{"flows", request["flows"]}}.dump();
  if (request.contains("schedules") && request["schedules"].is_array())
    for (const Json& file : request["schedules"])
      if (file.is_object() && file.contains("name") && file["name"].is_string() &&
          file.contains("text") && file["text"].is_string())
        files.schedules.emplace_back(file["name"], file["text"]);
  const int64_t asked_ns = NowNs();
  DaemonMetrics& metrics = core_.metrics_;
  root->Reconfigure(files, [reply, label, asked_ns, &metrics](const Result<int64_t>& hold_ns) {
    metrics.Count(hold_ns);
    if (!hold_ns)
      return reply(ErrorOf(fmt::format("{}: {}", label, hold_ns.error().message)).dump());
    reply(Json{{"communicator", label},
               {"hold_s", Seconds(*hold_ns)},
               {"seconds", Seconds(NowNs() - asked_ns)}}
              .dump());
  });
}

}  // namespace tutti::service
