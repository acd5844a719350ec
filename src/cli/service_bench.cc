#include "service_bench.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "service_answer.h"
#include "tutti/base/units.h"
#include "tutti/communicator.h"
#include "tutti/service/daemon.h"
#include "tutti/service/paired_bench.h"

namespace tutti::cli {
namespace {

struct ServiceBenchFlags {
  std::string socket, collective = "all-reduce", size = "8,1KiB,64KiB,1MiB", id_file;
  int32_t ranks = 2, first = 0, batches = 11;
  std::optional<int32_t> here;
  bool alone = false;
};

using service::PairedBenchRow;

Result<UniqueId> IdOf(const ServiceBenchFlags& flags) {
  if (flags.id_file.empty()) return MakeUniqueId(flags.socket);
  constexpr double kPatience_s = 60;
  return ShareUniqueIdByFile(flags.id_file, flags.first, kPatience_s);
}

void PrintRows(const ServiceBenchFlags& flags, const std::vector<PairedBenchRow>& rows) {
  std::vector<std::string> header = {"size (B)", "time", "algbw"};
  if (!flags.alone) header.insert(header.end(), {"in process", "added"});
  Table table(header);
  for (const PairedBenchRow& row : rows) {
    std::vector<std::string> cells = {
        Count(row.bytes), Seconds(row.service_s),
        BytesPerSecond(static_cast<double>(row.bytes) / row.service_s)};
    if (!flags.alone) {
      cells.push_back(Seconds(row.in_process_s));
      cells.push_back(Seconds(row.service_s - row.in_process_s));
    }
    table.AddRow(cells);
  }
  fmt::print("{}", table.ToString());
}

Json JsonOf(const ServiceBenchFlags& flags, const std::vector<PairedBenchRow>& rows) {
  Json json{{"collective", flags.collective}, {"ranks", flags.ranks}};
  for (const PairedBenchRow& row : rows) {
    Json of{{"bytes", row.bytes}, {"seconds", row.service_s}};
    if (row.in_process_s >= 0) of["in_process_s"] = row.in_process_s;
    json["sizes"].push_back(of);
  }
  return json;
}

int Run(const Program& program, ServiceBenchFlags flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report({sizes.error().code, "--size: " + sizes.error().message});
  const Result<CollectiveKind> kind = TimedCollective(flags.collective);
  if (!kind) return Report(kind.error());
  const int32_t here = flags.here.value_or(flags.ranks - flags.first);
  if (flags.first + here > flags.ranks || here < 1)
    return Report({ErrorCode::kInvalidArgument,
                   fmt::format("ranks {} to {} of {} cannot be here", flags.first,
                               flags.first + here - 1, flags.ranks)});
  if (here < flags.ranks && flags.id_file.empty())
    return Report({ErrorCode::kInvalidArgument, "--id: needed where ranks are elsewhere, too"});
  if (here < flags.ranks) flags.alone = true;
  if (flags.socket.empty()) flags.socket = service::DefaultFolder() + "/tuttid.sock";
  setenv("TUTTI_SERVICE", flags.socket.c_str(), 1);  // whose daemon makes the id in the file
  const Result<UniqueId> id = IdOf(flags);
  if (!id) return Report(id.error());
  const Result<std::vector<PairedBenchRow>> rows =
      service::RunPairedBench({.socket = flags.socket,
                               .collective = *kind,
                               .sizes = *sizes,
                               .ranks = flags.ranks,
                               .first = flags.first,
                               .here = here,
                               .batches = flags.batches,
                               .alone = flags.alone,
                               .id = *id});
  if (!rows) return Report(rows.error());
  if (program.json)
    Print(JsonOf(flags, *rows));
  else
    PrintRows(flags, *rows);
  return kDone;
}

}  // namespace

void AddServiceBench(Program& program, Command service) {
  auto flags = std::make_shared<ServiceBenchFlags>();
  Command command = program.AddCommand(
      service, "bench", "Time collectives under the service, beside the same ranks without it",
      "tutti service bench --ranks 4 --size 8,1MiB");
  command.AddOption("--socket", flags->socket,
                    "Socket of the daemon for tenants; else $XDG_RUNTIME_DIR/tutti/tuttid.sock or "
                    "/run/tutti/tuttid.sock");
  command.AddOption("--ranks", flags->ranks, "Ranks in all").ShowDefault().Within(1, 1024);
  command.AddOption("--collective", flags->collective, "all-reduce or all-gather").ShowDefault();
  command.AddOption("-s,--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  command.AddOption("--batches", flags->batches, "Batches of each way, of which the median counts")
      .ShowDefault()
      .Within(1, 1 << 20);
  command.AddFlag("--alone", flags->alone, "Do not compare with ranks without the service");
  command.AddOption("--first", flags->first, "The first rank of those here").Within(0, 1023);
  command.AddOption("--here", flags->here, "How many ranks are here; else all from the first on")
      .Within(1, 1024);
  command.AddOption("--id", flags->id_file,
                    "File by which ranks of several calls or hosts meet; rank 0 writes it");
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
