#include "schedule_source.h"

#include <fmt/format.h>

#include <utility>

#include "choice.h"
#include "files.h"
#include "tutti/base/cancel.h"
#include "tutti/topo/expression.h"
#include "unwind.h"

namespace tutti::cli {
namespace {

Status Prove(const ScheduleFile& file, const std::string& name) {
  const VerifyReport report = Verify(file.topology, file.schedule.collective, file.schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (report.verified()) return {};
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("{} is not correct: {}", name, report.violations.front().message));
}

Result<Unwound> NetworkOf(const ScheduleSource& source, const Synthesizer* synthesizer,
                          const SynthOptions& options) {
  Result<Topology> topology = ParseTopology(source.what);
  if (!topology) return tl::unexpected(topology.error());
  if (synthesizer != nullptr || !TriesUnwindings(*topology, source.collective))
    return Unwound{*std::move(topology)};
  return Unwind(source.what, kTrySeveral, synthesizer, source.collective, options);
}

Result<ScheduleFile> MakeSchedule(const ScheduleSource& source, int64_t size,
                                  LinkModel link_model) {
  const Result<const Synthesizer*> synthesizer = FindAlgorithm(source.algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  SynthOptions options{.chunks = source.chunks.count(),
                       .seed = source.seed,
                       .size_bytes = size,
                       .link_model = link_model,
                       .auto_chunks = source.chunks.is_auto()};
  Result<Unwound> network = NetworkOf(source, *synthesizer, options);
  if (!network) return tl::unexpected(network.error());
  Topology* const topology = &network->topology;
  const bool one_shard = *synthesizer != nullptr && (*synthesizer)->one_shard_all_reduce;
  CollectiveFlags wanted = source.collective;
  if (const Status looked = wanted.FindBest(*topology, *synthesizer, options); !looked)
    return tl::unexpected(looked.error());
  const Result<Collective> collective = wanted.Make(*topology, one_shard);
  if (!collective) return tl::unexpected(collective.error());
  Result<Schedule> schedule =
      *synthesizer != nullptr ? RunSynthesizer(**synthesizer, *topology, *collective, options)
                              : ChooseOn(*network, *collective, options).map([](AutoChoice choice) {
                                  return std::move(choice.schedule);
                                });
  if (!schedule) return tl::unexpected(schedule.error());
  ScheduleFile file{std::move(*topology), *std::move(schedule)};
  if (const Status proven = Prove(file, "the schedule of '" + source.algorithm + "'"); !proven)
    return tl::unexpected(proven.error());
  return file;
}

}  // namespace

void ScheduleSource::AddTo(Command command) {
  command
      .AddOption("schedule", what,
                 "File with a schedule; with -a a network: an expression or path of a .json file")
      .Required();
  collective.AddTo(command);
  command.AddOption("-a,--algorithm", algorithm,
                    "Make the schedule with this algorithm, or auto, as synth does");
  chunks.AddTo(command);
  command.AddOption("--seed", seed, "Of random choices").ShowDefault();
}

Result<ScheduleFile> LoadSchedule(const ScheduleSource& source, const Command& command,
                                  int64_t size, LinkModel link_model) {
  if (!source.algorithm.empty()) return MakeSchedule(source, size, link_model);
  for (const char* option : {"--collective", "--root", "--demand", "--group", "--groups",
                             "--others", "--placement", "--chunks", "--seed"})
    if (command.Has(option))
      return InvalidArgument(
          fmt::format("{} is for making a schedule of a network: name an algorithm, or auto, "
                      "with -a",
                      option));
  return LoadScheduleFile(source.what);
}

Result<ScheduleFile> LoadScheduleFile(const std::string& path) {
  const Result<FileKind> kind =
      KindOfInput(path, {FileKind::kSchedule, FileKind::kSymmetricSchedule});
  if (!kind) return tl::unexpected(kind.error());
  Result<ScheduleFile> file = ReadScheduleFile(path);
  if (!file) return file;
  if (const Status proven = Prove(*file, path); !proven) return tl::unexpected(proven.error());
  return file;
}

std::string LinkName(const Topology& topology, LinkId link) {
  return fmt::format("{} -> {}", topology.node_name(topology.tail(link)),
                     topology.node_name(topology.head(link)));
}

}  // namespace tutti::cli
