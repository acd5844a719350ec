#include "service_policy.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "common.h"
#include "service_answer.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/service/daemon.h"

namespace tutti::cli {
namespace {

struct ServicePolicyFlags {
  std::string controller, policy, communicator, preferred, background, routes, holds = "sends";
  std::vector<std::string> victims;
  bool by_size = false, rings_only = false, follow = false;
  int32_t channels = -1, reserved_routes = -1, reserved_from = -1;
};

Result<Json> Ask(const ServicePolicyFlags& flags, const Json& request) {
  return AskService(
      flags.controller.empty() ? service::DefaultFolder() + "/controller.sock" : flags.controller,
      request);
}

std::string Join(const Json& list) {
  std::string text;
  for (const Json& value : list) text += (text.empty() ? "" : " ") + Cell(value);
  return text;
}

Status AddChoice(const ServicePolicyFlags& flags, Json& request) {
  if (!flags.policy.empty()) request["policy"] = flags.policy;
  if (flags.channels >= 0) request["channels"] = flags.channels;
  if (flags.reserved_routes >= 0) request["reserved_routes"] = flags.reserved_routes;
  if (flags.reserved_from >= 0) request["reserved_from"] = flags.reserved_from;
  if (flags.by_size || flags.rings_only) request["by_size"] = flags.by_size;
  if (flags.background.empty()) return {};
  const Result<std::string> text = ReadFile(flags.background);
  if (!text) return tl::unexpected(text.error());
  request["background"] = Json::parse(*text, nullptr, false);
  if (!request["background"].is_object())
    return MakeError(ErrorCode::kCorrupt, flags.background + ": is no JSON object");
  return {};
}

void PrintState(const Json& answer) {
  fmt::print("policy {}\n", Cell(answer["policy"]));
  Table hosts({"host", "address", "error"}, Table::Last::kProse);
  for (const Json& host : answer["hosts"])
    hosts.AddRow({Cell(host["host"]), Cell(host["address"]), Cell(host["error"])});
  fmt::print("{}", hosts.ToString());
  if (answer["communicators"].empty()) {
    fmt::print("no communicators\n");
    return;
  }
  Table table({"communicator", "tenant", "state", "ranks", "pinned flows", "strategy"},
              Table::Last::kProse);
  for (const Json& communicator : answer["communicators"]) {
    int64_t pinned = 0;
    for (const Json& flow : communicator["flows"])
      if (flow["route"].is_number()) ++pinned;
    table.AddRow({Cell(communicator["communicator"]), Cell(communicator["tenant"]),
                  Cell(communicator["state"]), std::to_string(communicator["ranks"].size()),
                  fmt::format("{} of {}", pinned, communicator["flows"].size()),
                  Cell(communicator["strategy"])});
  }
  fmt::print("{}", table.ToString());
}

void PrintPolicies(const Json& answer) {
  Table table({"policy", "what it does"}, Table::Last::kProse);
  for (const Json& policy : answer["policies"])
    table.AddRow({Cell(policy["policy"]), Cell(policy["summary"])});
  fmt::print("{}", table.ToString());
}

void PrintApplied(const Json& answer) {
  for (const Json& applied : answer["applied"])
    if (const std::string error = applied["error"]; error.empty())
      fmt::print("{}: in force after {}, held for {}\n", Cell(applied["communicator"]),
                 Seconds(applied["seconds"].get<double>()),
                 Seconds(applied["hold_s"].get<double>()));
    else
      fmt::print("{}: {}\n", Cell(applied["communicator"]), error);
}

void PrintDecision(const Json& answer) {
  Table table({"communicator", "tenant", "rings", "changes", "routes of its flows"},
              Table::Last::kProse);
  for (const Json& strategy : answer["strategies"])
    table.AddRow({Cell(strategy["communicator"]), Cell(strategy["tenant"]),
                  std::to_string(strategy["rings"].size()),
                  strategy["new"].get<bool>() ? "yes" : "no", Join(strategy["routes"])});
  fmt::print("{}", answer["strategies"].empty() ? "no communicators\n" : table.ToString());
  const auto excess = answer["largest_excess"].get<int64_t>();
  if (excess > 0)
    fmt::print("the fullest link is asked for {} more than it carries\n",
               BytesPerSecond(static_cast<double>(excess)));
  for (const Json& tenant : answer["certificate"])
    fmt::print(
        "{} has at least {} B/s{}{}\n", Cell(tenant["tenant"]), Cell(tenant["share"]),
        Cell(tenant["link"]).empty() ? " (it uses no link)" : ", least on " + Cell(tenant["link"]),
        tenant["guaranteed"] == 0 ? "" : "; guaranteed " + Cell(tenant["guaranteed"]));
  for (const Json& fault : answer["certificate_faults"])
    fmt::print("not isolated: {}\n", Cell(fault));
  for (const Json& left_out : answer["left_out"]) fmt::print("left out: {}\n", Cell(left_out));
  PrintApplied(answer);
}

void PrintReasons(const Json& answer) {
  for (const Json& flow : answer["flows"]) {
    fmt::print("rank {} -> {} channel {} ({} -> {}), asks for {}\n", Cell(flow["from"]),
               Cell(flow["to"]), Cell(flow["channel"]), Cell(flow["from_name"]),
               Cell(flow["to_name"]), BytesPerSecond(flow["demand"].get<double>()));
    if (flow["routes"].empty()) fmt::print("  there is one route\n");
    for (const Json& route : flow["routes"]) {
      const auto excess = route["excess"].get<int64_t>();
      fmt::print("  route {}: {} would {} {}{}{}\n", Cell(route["route"]), Cell(route["fullest"]),
                 excess > 0 ? "lack" : "have to spare",
                 BytesPerSecond(static_cast<double>(excess > 0 ? excess : -excess)),
                 route["reserved"].get<bool>() ? ", reserved for higher classes" : "",
                 route["chosen"].get<bool>() ? "  <- taken" : "");
    }
  }
}

void PrintWindows(const Json& answer) {
  constexpr double kNsASecond = 1e9;
  const auto seconds = [&](const char* key) {
    return Seconds(answer[key].get<double>() / kNsASecond);
  };
  if (answer.contains("follows"))
    fmt::print("others are silent while {} communicates, at most {} at a stretch\n",
               Cell(answer["follows"]), seconds("patience_ns"));
  else if (answer["period_ns"] == 0)
    fmt::print("all may always send\n");
  else
    fmt::print("period {}, of which others may send {} (sends {}, guard {})\n",
               seconds("period_ns"), seconds("victims_ns"), seconds("length_ns"),
               seconds("guard_ns"));
}

int WhetherApplied(const Json& answer) {
  for (const Json& applied : answer.at("applied"))
    if (!applied["error"].get<std::string>().empty()) return kAnswerIsNo;
  return kDone;
}

int Apply(const Program& program, const ServicePolicyFlags& flags, bool dry_run) {
  Json request{{"command", "apply"}, {"dry_run", dry_run}};
  if (const Status added = AddChoice(flags, request); !added) return Report(added.error());
  const Result<Json> answer = Ask(flags, request);
  const int shown = ShowAnswer(program, answer, PrintDecision);
  return shown == kDone ? WhetherApplied(*answer) : shown;
}

// What an operator decides for one communicator.
int Install(const Program& program, const ServicePolicyFlags& flags) {
  const Result<std::string> text = ReadFile(flags.routes);
  if (!text) return Report(text.error());
  Json request = Json::parse(*text, nullptr, false);
  if (!request.is_object())
    return Report({ErrorCode::kCorrupt, flags.routes + ": is no JSON object"});
  for (const auto& [key, value] : request.items())
    if (key != "rings" && key != "route" && key != "routes")
      return Report({ErrorCode::kInvalidArgument,
                     fmt::format("{}: {}: there are rings, route and routes", flags.routes, key)});
  request["command"] = "install";
  request["communicator"] = flags.communicator;
  const Result<Json> answer = Ask(flags, request);
  const int shown = ShowAnswer(program, answer, PrintApplied);
  return shown == kDone ? WhetherApplied(*answer) : shown;
}

// How a policy is to choose.
void AddChoiceOptions(Command& command, ServicePolicyFlags& flags) {
  command
      .AddOption("--channels", flags.channels,
                 "Rings a communicator; 0: as many as routes times its ranks in a host")
      .Within(0, 1024);
  command
      .AddOption("--reserved-routes", flags.reserved_routes,
                 "How many routes, from the first on, are for preferred classes (pfa)")
      .Within(0, 1 << 20);
  command.AddOption("--reserved-from", flags.reserved_from, "The least of these classes")
      .Within(1, 1 << 20);
  command.AddFlag("--by-size", flags.by_size,
                  "Beside rings schedules of few steps, for the sizes at which they take less");
  command.AddFlag("--rings-only", flags.rings_only, "Rings at every size, again");
  command.AddOption(
      "--background", flags.background,
      "File with the traffic of others by link, bytes/s: {\"leaf0 -> spine1\": 9000000}; "
      "flows are fitted beside it");
}

}  // namespace

void AddServicePolicy(Program& program, Command service) {
  Command policy = service.AddCommand(
      "policy", "Ask the controller of the cluster: who uses which links, and why");
  policy.NeedsSubcommand();
  const auto add = [&](const std::string& name, const std::string& description,
                       const std::string& example) {
    auto flags = std::make_shared<ServicePolicyFlags>();
    Command command = program.AddCommand(policy, name, description, example);
    command.AddOption("--controller", flags->controller,
                      "Socket of the controller; else $XDG_RUNTIME_DIR/tutti/controller.sock or "
                      "/run/tutti/controller.sock");
    return std::pair(command, flags);
  };
  {
    auto [command, flags] =
        add("show", "Hosts, communicators, and what is in force", "tutti service policy show");
    command.Runs([&program, flags = flags] {
      return ShowAnswer(program, Ask(*flags, {{"command", "show"}}), PrintState);
    });
  }
  {
    auto [command, flags] = add("list", "The policies that there are", "tutti service policy list");
    command.Runs([&program, flags = flags] {
      return ShowAnswer(program, Ask(*flags, {{"command", "policies"}}), PrintPolicies);
    });
  }
  for (const bool dry_run : {false, true}) {
    auto [command, flags] =
        dry_run ? add("simulate", "What a policy would change, without changing it",
                      "tutti service policy simulate pfa --reserved-routes 1")
                : add("apply",
                      "Decide by a policy, and have all communicators do so while their "
                      "collectives run; it holds from then on",
                      "tutti service policy apply ffa");
    command.AddOption("policy", flags->policy, "As 'list' calls it; else the one that holds");
    AddChoiceOptions(command, *flags);
    command.Runs(
        [&program, flags = flags, dry_run = dry_run] { return Apply(program, *flags, dry_run); });
  }
  {
    auto [command, flags] =
        add("explain", "Why the flows of a communicator take the routes that they take",
            "tutti service policy explain c-1a2b3c4d");
    command.AddOption("communicator", flags->communicator, "As 'show' calls it").Required();
    AddChoiceOptions(command, *flags);
    command.Runs([&program, flags = flags] {
      Json request{{"command", "explain"}, {"communicator", flags->communicator}};
      if (const Status added = AddChoice(*flags, request); !added) return Report(added.error());
      return ShowAnswer(program, Ask(*flags, request), PrintReasons);
    });
  }
  {
    auto [command, flags] = add(
        "install", "Have one communicator use given rings and routes, until a policy is applied",
        "tutti service policy install c-1a2b3c4d --routes routes.json");
    command.AddOption("communicator", flags->communicator, "As 'show' calls it").Required();
    command
        .AddOption(
            "--routes", flags->routes,
            "JSON file: routes of single flows (a list of from, to, channel, route), route (of all "
            "others; else the network decides), rings (else by locality)")
        .Required();
    command.Runs([&program, flags = flags] { return Install(program, *flags); });
  }
  {
    auto [command, flags] =
        add("windows",
            "Keep communicators silent while a preferred one sends, as its trace predicts or its "
            "daemons say; without --preferred all may always send again",
            "tutti service policy windows c-5e6f7a8b --preferred c-1a2b3c4d");
    command.AddOption("communicators", flags->victims, "Those that keep silent").Required();
    command.AddOption("--preferred", flags->preferred, "The one that finds the network idle");
    command.AddFlag("--follow", flags->follow,
                    "By what its daemons say, collective by collective: it needs no period, and "
                    "hosts no common clock");
    command
        .AddOption("--holds", flags->holds,
                   "What waits: sends (every byte), or launches (collectives that have not begun; "
                   "those that have go on to their end)")
        .OneOf({"sends", "launches"});
    command.Runs([&program, flags = flags] {
      if (flags->follow && flags->preferred.empty())
        return Report({ErrorCode::kInvalidArgument, "--follow: needs --preferred"});
      const Json request{{"command", "windows"},
                         {"preferred", flags->preferred},
                         {"victims", flags->victims},
                         {"follow", flags->follow},
                         {"holds", flags->holds}};
      return ShowAnswer(program, Ask(*flags, request), PrintWindows);
    });
  }
}

}  // namespace tutti::cli
