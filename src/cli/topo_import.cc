#include "topo_import.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

#include "files.h"
#include "tutti/base/file.h"
#include "tutti/base/host_name.h"
#include "tutti/base/units.h"
#include "tutti/import/import.h"

namespace tutti::cli {
namespace {

struct ImportFlags {
  std::vector<std::string> files;
  std::string output, nic, nvlink, pcie, alpha, fabric, oversubscription = "1";
};

Status ReadQuantity(const std::string& flag, const std::string& text,
                    Result<int64_t> (*parse)(std::string_view), int64_t least, int64_t& value) {
  if (text.empty()) return {};
  const Result<int64_t> parsed = parse(text);
  if (!parsed) return Within(flag, parsed.error());
  if (*parsed < least) return InvalidArgument(fmt::format("{}: got {}, wanted more", flag, text));
  value = *parsed;
  return {};
}

// "2" or "3:2".
Status ReadRatio(const std::string& text, MergeOptions& options) {
  const size_t colon = text.find(':');
  const auto read = [](const std::string& part, int64_t& value) {
    if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != part.npos)
      return false;
    value = std::stoll(part);
    return value > 0;
  };
  const bool fine =
      read(text.substr(0, colon), options.oversubscription_num) &&
      (colon == text.npos || read(text.substr(colon + 1), options.oversubscription_den));
  if (fine) return {};
  return InvalidArgument(
      fmt::format("--oversubscription: got {}, wanted a ratio such as 2 or 3:2", text));
}

Result<MergeOptions> OptionsOf(const ImportFlags& flags) {
  MergeOptions options;
  for (const Status& status :
       {ReadQuantity("--nic", flags.nic, ParseBandwidth, 1, options.nic_bandwidth),
        ReadQuantity("--nvlink", flags.nvlink, ParseBandwidth, 1, options.nvlink_bandwidth),
        ReadQuantity("--pcie", flags.pcie, ParseBandwidth, 1, options.pcie_bandwidth),
        ReadQuantity("--alpha", flags.alpha, ParseDurationPs, 0, options.alpha_ps),
        ReadRatio(flags.oversubscription, options)})
    if (!status) return tl::unexpected(status.error());
  if (!flags.fabric.empty()) {
    const Result<GivenFabric> fabric = ParseGivenFabric(flags.fabric);
    if (!fabric) return Within("--fabric", fabric.error());
    options.fabric = *fabric;
  }
  return options;
}

// Files behind "HOSTS=", too.
std::vector<std::string> PathsOf(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths = arguments;
  for (const std::string& argument : arguments)
    if (const size_t equals = argument.find('='); equals != argument.npos)
      paths.push_back(argument.substr(equals + 1));
  return paths;
}

void PrintImported(const Program& program, const std::vector<Facts>& files,
                   const Imported& imported, const std::string& output) {
  const Topology& topology = imported.topology;
  if (program.json) {
    Json out;
    DescribeTopology(topology, out);
    for (const Facts& file : files)
      out["files"].push_back({{"path", file.source}, {"format", file.format}});
    out["provenance"] = Json::array();
    for (const Provenance& one : imported.provenance)
      out["provenance"].push_back(
          {{"what", one.what}, {"value", one.value}, {"source", one.source}});
    out["warnings"] = imported.warnings;
    Print(out);
    return;
  }
  fmt::print("{} ranks and {} switches, {} links\n\n", topology.num_ranks(),
             topology.num_nodes() - topology.num_ranks(), topology.num_links());
  Table formats({"file", "read as"}, Table::Last::kProse);
  for (const Facts& file : files) formats.AddRow({file.source, file.format});
  fmt::print("{}\n", formats.ToString());
  Table table({"what", "value", "says"}, Table::Last::kProse);
  for (const Provenance& one : imported.provenance) table.AddRow({one.what, one.value, one.source});
  fmt::print("{}", table.ToString());
  for (const std::string& warning : imported.warnings) fmt::print("\nwarning: {}", warning);
  if (!imported.warnings.empty()) fmt::print("\n");
  if (!output.empty()) fmt::print("\nwritten to {}\n", output);
}

int Import(const Program& program, const ImportFlags& flags) {
  if (const Status kept = KeepInputs(flags.output, PathsOf(flags.files)); !kept)
    return Report(kept.error());
  const Result<MergeOptions> options = OptionsOf(flags);
  if (!options) return Report(options.error());
  const Result<std::vector<Facts>> files = ReadFactFiles(flags.files);
  if (!files) return Report(files.error());
  const Result<Imported> imported = MergeFacts(*files, *options);
  if (!imported) return Report(imported.error());
  if (!flags.output.empty())
    if (const Status written = WriteFileAtomically(flags.output, ImportedToJson(*imported));
        !written)
      return Report(written.error());
  PrintImported(program, *files, *imported, flags.output);
  return kDone;
}

struct DetectFlags {
  std::string root = "/", host, output, pcie;
};

int Detect(const Program& program, const DetectFlags& flags) {
  MergeOptions options;
  if (const Status pcie =
          ReadQuantity("--pcie", flags.pcie, ParseBandwidth, 1, options.pcie_bandwidth);
      !pcie)
    return Report(pcie.error());
  const Result<std::vector<Facts>> facts =
      DetectHost(flags.root, flags.host.empty() ? ShortHostName() : flags.host);
  if (!facts) return Report(facts.error());
  const Result<Imported> imported = MergeFacts(*facts, options);
  if (!imported) return Report(imported.error());
  if (!flags.output.empty())
    if (const Status written = WriteFileAtomically(flags.output, ImportedToJson(*imported));
        !written)
      return Report(written.error());
  PrintImported(program, *facts, *imported, flags.output);
  return kDone;
}

void AddDetect(Program& program, Command topo) {
  auto flags = std::make_shared<DetectFlags>();
  Command detect = program.AddCommand(
      topo, "detect", "What this host shows of its GPUs and NICs by sysfs and hwloc, as a network",
      "tutti topo detect -o here.topo.json");
  detect.AddOption("--root", flags->root, "Folder in which sys lies, as of a container")
      .ShowDefault();
  detect.AddOption("--host", flags->host, "What to call this host (default: its name)");
  detect.AddOption("--pcie", flags->pcie,
                   "Speed of PCIe links of which nobody says it (default: that of 4.0 x16)");
  detect.AddOption("-o,--output", flags->output, "Write the topology as JSON to this file");
  detect.Runs([&program, flags] { return Detect(program, *flags); });
}

}  // namespace

void AddTopoImport(Program& program, Command topo) {
  auto flags = std::make_shared<ImportFlags>();
  Command command = program.AddCommand(
      topo, "import", "A network from what other programs say of a cluster, and who said what",
      "tutti topo import 'node[0-1]=dgx.txt' topology.conf --nic 400Gbit/s -o cluster.topo.json");
  std::string formats;
  for (const ImportFormat& format : ImportFormats())
    formats += fmt::format("{}{}", formats.empty() ? "" : ", ", format.name);
  command
      .AddOption("files", flags->files,
                 "Files, told by what they hold (" + formats +
                     "), or HOSTS=FILE: whose box it is; HOSTS as node[0-3], or * for all others")
      .Required();
  command.AddOption("-o,--output", flags->output, "Write the topology as JSON to this file");
  command.AddOption("--nic", flags->nic, "Speed of NICs of which no file says it");
  command.AddOption("--nvlink", flags->nvlink,
                    "Speed of one NVLink each way (default: by the GPU, else 25 GB/s)");
  command.AddOption("--pcie", flags->pcie,
                    "Speed of PCIe links of which no file says it (default: that of 4.0 x16)");
  command.AddOption("--fabric", flags->fabric,
                    "How hosts are joined, where no file says it: rails, "
                    "'rails(count=4,spines=2)', 'spine_leaf(8,4)' or switch, with nic=400Gbit/s");
  command
      .AddOption("--oversubscription", flags->oversubscription,
                 "Of the switches of trees and of --fabric: what comes in from below over what "
                 "goes up, as 3:2")
      .ShowDefault();
  command.AddOption("--alpha", flags->alpha, "What a message waits on a link (default: 0.5us)");
  command.Runs([&program, flags] { return Import(program, *flags); });
  AddDetect(program, topo);
}

}  // namespace tutti::cli
