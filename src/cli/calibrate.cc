// tutti calibrate
#include "tutti/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "files.h"
#include "run_remote.h"
#include "tutti/base/file.h"
#include "tutti/base/units.h"
#include "tutti/topo/json.h"

namespace tutti::cli {
namespace {

struct CalibrateFlags {
  RemoteFlags remote;
  std::string output, size = "4MiB";
  int32_t repeats = 15;
};

Json JsonOf(const Spread& spread) {
  return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

Json JsonOf(const Calibration& calibration) {
  Json json{{"ranks", calibration.options.num_ranks},
            {"bytes", calibration.options.large_bytes},
            {"repeats", calibration.options.repeats}};
  for (const PairMeasure& pair : calibration.pairs)
    json["links"].push_back({{"from", pair.from},
                             {"to", pair.to},
                             {"alpha_s", JsonOf(pair.alpha_s)},
                             {"bandwidth", JsonOf(pair.bandwidth)}});
  for (const RankMeasure& rank : calibration.ranks)
    json["with_all_others"].push_back(
        {{"out", JsonOf(rank.out)}, {"in", JsonOf(rank.in)}, {"all", JsonOf(rank.all)}});
  return json;
}

// The least, the middle and the largest of the medians, and the widest interval.
std::vector<std::string> RowOf(const std::string& what, const std::vector<Spread>& spreads,
                               std::string (*format)(double)) {
  std::vector<double> medians;
  double widest = 0;
  for (const Spread& spread : spreads) {
    medians.push_back(spread.median);
    widest = std::max(widest, (spread.high - spread.low) / 2 / spread.median);
  }
  std::sort(medians.begin(), medians.end());
  return {what, format(medians.front()), format(medians[medians.size() / 2]),
          format(medians.back()), "+-" + Percent(widest)};
}

void PrintSummary(const Calibration& calibration, const Topology& topology) {
  std::vector<Spread> alphas, bandwidths, out, in, all;
  for (const PairMeasure& pair : calibration.pairs) {
    alphas.push_back(pair.alpha_s);
    bandwidths.push_back(pair.bandwidth);
  }
  for (const RankMeasure& rank : calibration.ranks) {
    out.push_back(rank.out);
    in.push_back(rank.in);
    all.push_back(rank.all);
  }
  Table table({"", "least", "median", "most", "widest interval"});
  table.AddRow(RowOf("alpha of a pair", alphas, Seconds));
  table.AddRow(RowOf("bandwidth of a pair", bandwidths, BytesPerSecond));
  table.AddRow(RowOf("a rank to all others at once", out, BytesPerSecond));
  table.AddRow(RowOf("a rank from all others at once", in, BytesPerSecond));
  table.AddRow(RowOf("a rank while all send to all", all, BytesPerSecond));
  fmt::print("{}", table.ToString());
  const auto slower = [](const PairMeasure& a, const PairMeasure& b) {
    return a.bandwidth.median < b.bandwidth.median;
  };
  const PairMeasure& slowest =
      *std::min_element(calibration.pairs.begin(), calibration.pairs.end(), slower);
  fmt::print("slowest: from rank {} to rank {}, {}\n", slowest.from, slowest.to,
             BytesPerSecond(slowest.bandwidth.median));
  if (topology.has_host_limits())
    fmt::print("links of a rank share what its host brings in and takes out: host limits\n");
}

int Run(const Program& program, const CalibrateFlags& flags) {
  if (const auto code = ServeIfNotFirst(flags.remote, std::string(Name(Transport::kTcp))))
    return *code;
  const Result<int64_t> size = ParseSizeBytes(flags.size);
  const auto report = [&flags](const Error& error) {
    return ReportForAllRanks(flags.remote, Transport::kTcp, error);
  };
  if (!size) return report({size.error().code, "--size: " + size.error().message});
  Result<std::unique_ptr<RemoteRanks>> ranks = RemoteRanks::Plan(flags.remote, Transport::kTcp, 0);
  if (!ranks) return report(ranks.error());
  if (*ranks == nullptr)
    return Report({ErrorCode::kInvalidArgument,
                   "between which ranks: give --hosts h0,h1, or start it by mpirun, torchrun or "
                   "Slurm"});
  if (const Status started = (*ranks)->Start(); !started) return Report(started.error());
  const Result<Calibration> calibration =
      Calibrate({.num_ranks = (*ranks)->num_ranks(),
                 .large_bytes = *size,
                 .repeats = flags.repeats,
                 .hang_timeout_s = flags.remote.timeout_s},
                [&](const Plan& plan, const RunOptions& options) -> Result<RunReport> {
                  if (const Status set = (*ranks)->SetPlan(plan); !set)
                    return tl::unexpected(set.error());
                  return (*ranks)->Run(options);
                });
  if (!calibration) return Report(calibration.error());
  const Result<Topology> topology = ToTopology(*calibration);
  if (!topology) return Report(topology.error());
  const std::string text =
      TopologyToJson(*topology, DescribeCalibration(*calibration, (*ranks)->where()));
  if (const Status written = WriteFileAtomically(flags.output, text); !written)
    return Report(written.error());
  if (program.json) {
    Json json = JsonOf(*calibration);
    json["written"] = flags.output;
    Print(json);
  } else {
    fmt::print("{} {}, messages of {}\n", calibration->options.num_ranks, (*ranks)->where(),
               FormatSize(*size));
    PrintSummary(*calibration, *topology);
    fmt::print("written to {}\n", flags.output);
  }
  return kDone;
}

}  // namespace

void AddCalibrate(Program& program) {
  auto flags = std::make_shared<CalibrateFlags>();
  Command command = program.AddCommand(
      program.line.root(), "calibrate",
      "Measure the network between ranks on several hosts and write it as a topology",
      "tutti calibrate --hosts h0,h1,h2,h3 -o cluster.topo.json");
  command.AddOption("-o,--output", flags->output, "Topology file to write").Required();
  command.AddOption("--size", flags->size, "Bytes of a long message").ShowDefault();
  command.AddOption("-n,--iters", flags->repeats, "Repetitions of each measurement")
      .ShowDefault()
      .Within(1, 10000);
  AddRemoteFlags(command, flags->remote);
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
