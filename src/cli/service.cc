// tutti service: what operators ask of a daemon.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common.h"
#include "html.h"
#include "service_answer.h"
#include "service_bench.h"
#include "service_load.h"
#include "service_page.h"
#include "service_policy.h"
#include "tutti/base/cancel.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/service/daemon.h"
#include "tutti/store/store.h"

namespace tutti::cli {
namespace {

struct ServiceFlags {
  std::string admin, communicator, tenant, output, memory, flows;
  std::vector<std::string> schedules;
  int32_t weight = 0, processes = 0, ranks = 0, times = 0, chunks_ms = 0;
  HtmlFlag html;
};

Result<Json> Ask(const ServiceFlags& flags, const Json& request) {
  return AskService(flags.admin.empty() ? service::DefaultFolder() + "/admin.sock" : flags.admin,
                    request);
}

void PrintTable(const Json& rows, const std::vector<std::pair<std::string, std::string>>& columns,
                const std::string& none) {
  if (rows.empty()) {
    fmt::print("{}\n", none);
    return;
  }
  std::vector<std::string> header;
  for (const auto& [key, title] : columns) header.push_back(title);
  Table table(header, Table::Last::kProse);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, title] : columns) cells.push_back(Cell(row.at(key)));
    table.AddRow(cells);
  }
  fmt::print("{}", table.ToString());
}

void PrintStatus(const Json& status) {
  for (const auto& [key, value] : status.items()) fmt::print("{:14} {}\n", key, Cell(value));
}

void PrintTenants(const Json& answer) {
  PrintTable(answer["tenants"],
             {{"tenant", "tenant"},
              {"weight", "weight"},
              {"processes", "processes"},
              {"ranks", "ranks"},
              {"memory_bytes", "memory (B)"},
              {"memory_bytes_quota", "quota (B)"},
              {"operations", "operations"},
              {"bytes", "bytes"},
              {"refused", "refused"}},
             "no tenant has come");
}

void PrintCommunicators(const Json& answer) {
  PrintTable(answer["communicators"],
             {{"communicator", "communicator"},
              {"tenant", "tenant"},
              {"ranks", "ranks"},
              {"root", "root"},
              {"state", "state"},
              {"epoch", "epoch"},
              {"connections", "connections"},
              {"strategy", "strategy"},
              {"error", "error"}},
             "no communicators");
}

void PrintPending(const Json& answer) {
  for (const Json& of : answer["pending"]) {
    fmt::print("{}\n", of["communicator"].get<std::string>());
    for (const Json& rank : of["waiting"])
      fmt::print("  rank {} ({}) waits for {:.1f} s in operation {}: {}\n", Cell(rank["rank"]),
                 Cell(rank["host"]), rank["seconds"].get<double>(), Cell(rank["operation"]),
                 Cell(rank["call"]));
    for (const Json& rank : of["missing"])
      fmt::print("  rank {}{} {}\n", Cell(rank["rank"]),
                 Cell(rank["host"]).empty() ? "" : " (" + Cell(rank["host"]) + ")",
                 Cell(rank["why"]));
  }
  if (answer["pending"].empty()) fmt::print("nothing waits\n");
  for (const Json& of : answer["elsewhere"])
    fmt::print("{}: ask the daemon at {}\n", Cell(of["communicator"]), Cell(of["root"]));
}

int RunTrace(const Program& program, const ServiceFlags& flags) {
  if (flags.output.empty() && !flags.html.given())
    return Report({ErrorCode::kInvalidArgument,
                   "neither -o nor --html says where the trace is to be written"});
  if (const Status apart = flags.html.Check({}, flags.output); !apart) return Report(apart.error());
  Json request{{"command", "trace"}, {"communicator", flags.communicator}};
  if (flags.chunks_ms > 0) request["chunks_ms"] = flags.chunks_ms;
  const Result<Json> answer = Ask(flags, request);
  if (!answer) return Report(answer.error());
  if (!flags.output.empty())
    if (const Status written = WriteFileAtomically(flags.output, answer->dump() + "\n"); !written)
      return Report(written.error());
  const size_t events = answer->at("traceEvents").size();
  if (flags.html.given()) {
    PageData data("service trace");
    data.AddOperations(OperationsOf(flags.communicator, *answer));
    if (const Status written = flags.html.Write(data); !written) return Report(written.error());
  }
  if (program.json) {
    Print(
        {{"written", flags.output.empty() ? flags.html.path() : flags.output}, {"events", events}});
  } else {
    if (!flags.output.empty())
      fmt::print("wrote {} ({} events, for chrome://tracing)\n", flags.output, events);
    fmt::print("{}", flags.html.Text());
  }
  return kDone;
}

int RunReconfigure(const Program& program, const ServiceFlags& flags) {
  Json request{{"command", "reconfigure"}, {"communicator", flags.communicator}};
  request["schedules"] = Json::array();
  for (const std::string& path : flags.schedules) {
    const Result<ScheduleFile> file = ReadScheduleFile(path);
    if (!file) return Report(file.error());
    request["schedules"].push_back({{"name", path.substr(path.rfind('/') + 1)},
                                    {"text", ScheduleToJson(file->topology, file->schedule)}});
  }
  if (!flags.flows.empty()) {
    const Result<std::string> text = ReadFile(flags.flows);
    if (!text) return Report(text.error());
    const Json table = Json::parse(*text, nullptr, false);
    if (!table.is_object() || !table.contains("flows"))
      return Report({ErrorCode::kCorrupt,
                     flags.flows + ": no JSON object with \"flows\" (docs/formats/service.md)"});
    request["flows"] = table["flows"];
  }
  const Result<Json> answer = Ask(flags, request);
  if (!answer) return Report(answer.error());
  if (program.json)
    Print(*answer);
  else
    fmt::print("{} runs {}; launches were held for {}, all took {}\n", flags.communicator,
               flags.schedules.empty() ? "the built-in schedules" : "the new schedules",
               Seconds(answer->at("hold_s").get<double>()),
               Seconds(answer->at("seconds").get<double>()));
  return kDone;
}

int RunQuota(const Program& program, const ServiceFlags& flags) {
  Json request{{"command", "quota"}, {"tenant", flags.tenant}};
  if (flags.weight > 0) request["weight"] = flags.weight;
  if (flags.processes > 0) request["processes"] = flags.processes;
  if (flags.ranks > 0) request["ranks"] = flags.ranks;
  if (!flags.memory.empty()) {
    const Result<int64_t> bytes = ParseSizeBytes(flags.memory);
    if (!bytes) return Report({bytes.error().code, "--memory: " + bytes.error().message});
    request["memory_bytes"] = *bytes;
  }
  return ShowAnswer(program, Ask(flags, request), PrintTenants);
}

// Rates between two looks.
int RunTop(const Program& program, const ServiceFlags& flags) {
  constexpr double kPeriod_s = 1;
  std::map<std::string, std::pair<int64_t, int64_t>> before;  // operations, bytes
  for (int32_t look = 0; look <= flags.times && !CancelRequested(); ++look) {
    const Result<Json> answer = Ask(flags, {{"command", "tenants"}});
    if (!answer) return Report(answer.error());
    Json rows = Json::array();
    for (const Json& tenant : answer->at("tenants")) {
      const std::string name = tenant["tenant"];
      const std::pair now(tenant["operations"].get<int64_t>(), tenant["bytes"].get<int64_t>());
      const auto last = before.count(name) > 0 ? before[name] : now;
      before[name] = now;
      rows.push_back({{"tenant", name},
                      {"operations_per_s", static_cast<double>(now.first - last.first) / kPeriod_s},
                      {"bytes_per_s", static_cast<double>(now.second - last.second) / kPeriod_s},
                      {"ranks", tenant["ranks"]},
                      {"memory_bytes", tenant["memory_bytes"]}});
    }
    if (look > 0 && program.json) {
      Print({{"tenants", rows}});
    } else if (look > 0) {
      Table table({"tenant", "operations/s", "rate", "ranks", "memory (B)"});
      for (const Json& row : rows)
        table.AddRow({row["tenant"], fmt::format("{:.0f}", row["operations_per_s"].get<double>()),
                      BytesPerSecond(row["bytes_per_s"].get<double>()), Cell(row["ranks"]),
                      Cell(row["memory_bytes"])});
      fmt::print("{}\n", table.ToString());
      std::fflush(stdout);
    }
    if (look < flags.times) std::this_thread::sleep_for(std::chrono::duration<double>(kPeriod_s));
  }
  return kDone;
}

}  // namespace

void AddService(Program& program) {
  Command service = program.line.root().AddCommand(
      "service", "Operate the daemon of this host, tuttid: tenants, communicators, schedules");
  service.NeedsSubcommand();
  const auto add = [&](const std::string& name, const std::string& description,
                       const std::string& example) {
    auto flags = std::make_shared<ServiceFlags>();
    Command command = program.AddCommand(service, name, description, example);
    command.AddOption(
        "--admin", flags->admin,
        "Socket of the daemon for operators; else $XDG_RUNTIME_DIR/tutti/admin.sock or "
        "/run/tutti/admin.sock");
    return std::pair(command, flags);
  };
  const auto add_report = [&](const std::string& name, const std::string& description,
                              AnswerPrinter print) {
    auto [command, flags] = add(name, description, "tutti service " + name);
    command.Runs([&program, flags = flags, name, print] {
      return ShowAnswer(program, Ask(*flags, {{"command", name}}), print);
    });
  };
  add_report("status", "What the daemon is and has done", PrintStatus);
  add_report("tenants", "Tenants: what each has taken of what it may", PrintTenants);
  add_report("comms", "Communicators with ranks on this host: state, strategy, connections",
             PrintCommunicators);
  add_report(
      "pending",
      "Which ranks wait in which operation, and which have not called it; of the communicators "
      "whose root is here",
      PrintPending);
  {
    auto [command, flags] = add("trace", "The last operations of a communicator, as a Chrome trace",
                                "tutti service trace c-1a2b3c4d -o trace.json");
    command.AddOption("communicator", flags->communicator, "As 'comms' calls it").Required();
    command.AddOption("-o,--output", flags->output, "File to write; needed without --html");
    command
        .AddOption("--chunks", flags->chunks_ms,
                   "Milliseconds from now on in which each chunk of its operations is traced, too")
        .Within(1, 60'000);
    flags->html.AddTo(command);
    command.Runs([&program, flags = flags] { return RunTrace(program, *flags); });
  }
  AddServiceBench(program, service);
  AddServiceLoad(program, service);
  AddServicePolicy(program, service);
  {
    auto [command, flags] =
        add("top", "Operations and bytes a second of each tenant", "tutti service top --times 10");
    flags->times = 1;
    command.AddOption("--times", flags->times, "How often to look, a second apart")
        .ShowDefault()
        .Within(1, 1 << 20);
    command.Runs([&program, flags = flags] { return RunTop(program, *flags); });
  }
  {
    auto [command, flags] = add(
        "reconfigure",
        "Have a communicator run other schedules, from its next operation on; those running end "
        "undisturbed",
        "tutti service reconfigure c-1a2b3c4d ring.sched");
    command.AddOption("communicator", flags->communicator, "As 'comms' calls it").Required();
    command.AddOption("schedules", flags->schedules,
                      "Files with schedules for its ranks, judged first; none: the built-in ones");
    command.AddOption(
        "--flows", flags->flows,
        "File that says from and to which addresses, and from which ports, connections "
        "run (docs/formats/service.md)");
    command.Runs([&program, flags = flags] { return RunReconfigure(program, *flags); });
  }
  {
    auto [command, flags] = add("quota", "Change what a tenant may take; what it has stays",
                                "tutti service quota blue --weight 4 --memory 16GiB");
    command.AddOption("tenant", flags->tenant, "Its name").Required();
    command.AddOption("--weight", flags->weight, "Its share of turns beside others'").Within(1, 64);
    command.AddOption("--memory", flags->memory, "Service memory, in bytes or as 16GiB");
    command.AddOption("--processes", flags->processes, "Processes").Within(1, 1 << 20);
    command.AddOption("--ranks", flags->ranks, "Ranks on this host").Within(1, 1 << 20);
    command.Runs([&program, flags = flags] { return RunQuota(program, *flags); });
  }
}

}  // namespace tutti::cli
