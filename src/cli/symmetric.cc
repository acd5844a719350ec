#include "symmetric.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tutti/base/memory.h"
#include "tutti/bounds/bounds.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/synth/symmetric_bfb.h"
#include "tutti/topo/properties.h"
#include "tutti/verify/symmetric.h"

namespace tutti::cli {
namespace {

constexpr const char* kWhyChosen = "it alone has a symmetric form";

double TransfersInFull(const Collective& collective) {
  const double n = collective.num_ranks();
  return n * (n - 1) * (collective.kind() == CollectiveKind::kAllReduce ? 2 : 1);
}

// The same as of the whole schedule. Where that would take long, and equal links leave no other
// limit, by symmetry.
Result<Bounds> BoundsByOneRank(const Topology& topology, const Collective& collective) {
  constexpr int64_t kMaxPartitionVisits = 10'000'000'000;  // a second
  const bool affordable =
      int64_t{topology.num_ranks()} * topology.num_links() <= kMaxPartitionVisits;
  return affordable || topology.original() != nullptr
             ? BoundsOf(topology, collective)
             : ComputeTransitiveBounds(topology, collective);
}

}  // namespace

void DescribeSymmetric(const SymmetricSchedule& schedule, Json& out) {
  DescribeSchedule(schedule.root, out);
  out["transfers"] = CountTransfers(schedule);
  out["symmetric"] = true;
  out["transfers_of_one_rank"] = schedule.root.transfers.size();
  out["generators"] = schedule.generators.size();
}

bool MayBeSymmetric(const std::string& algorithm, const Collective& collective) {
  return algorithm == kSymmetricAlgorithm && HasSymmetricForm(collective);
}

bool IsTooLargeInFull(const Collective& collective) {
  constexpr double kBytesPerTransfer = sizeof(Transfer) + 24;  // the verifier's share
  return TransfersInFull(collective) * kBytesPerTransfer >
         static_cast<double>(AvailableMemoryBytes()) / 2;
}

std::optional<int> SynthesizeSymmetric(const Program& program, Topology topology,
                                       const Collective& collective, const SymmetricJob& job) {
  if (!MayBeSymmetric(job.algorithm, collective))
    return Report({ErrorCode::kInvalidArgument,
                   fmt::format("'{}' has no symmetric form of {}; 'bfb' has one of all-gather, "
                               "reduce-scatter and all-reduce",
                               job.algorithm, Name(collective.kind()))});
  if (job.asked_for && job.output.ends_with(".json"))
    return Report({ErrorCode::kInvalidArgument,
                   job.output + ": a symmetric schedule has no JSON form; use another ending"});
  const auto before = std::chrono::steady_clock::now();
  if (!HasOrderedLinks(topology)) topology = OrderLinks(topology);
  const Result<Translations> translations = FindTranslations(topology);
  if (!translations && !job.asked_for) return std::nullopt;
  if (!translations) return Report(translations.error());
  const Result<SymmetricSchedule> schedule =
      MakeSymmetricBfb(topology, *translations, collective, job.options);
  if (!schedule) return Report(schedule.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  spdlog::debug("made {} transfers of rank 0's shard in {}", schedule->root.transfers.size(),
                Seconds(elapsed.count()));

  if (job.verify) {
    const VerifyReport report = VerifySymmetric(topology, collective, *schedule);
    if (const Status proven = RequireVerified(report, job.algorithm, "nothing was written");
        !proven)
      return Report(proven.error());
  }
  spdlog::debug("verified; computing cost and bounds");
  const Schedule folded = FoldOntoRank0(*translations, *schedule);
  const Result<Bounds> bounds = BoundsByOneRank(topology, folded.collective);
  if (!bounds) return Report(bounds.error());
  const Evaluation evaluation = Evaluate(topology, folded, job.options.size_bytes, *bounds);
  if (!job.output.empty())
    if (const Status written = WriteSymmetricFile(job.output, topology, *translations, *schedule);
        !written)
      return Report(written.error());

  if (program.json) {
    Json out;
    DescribeTopology(topology, evaluation.bounds.steps, out);
    DescribeSymmetric(*schedule, out);
    DescribeEvaluation(folded, evaluation, job.options.size_bytes, out);
    if (job.by_choice) {
      out["chosen"] = job.algorithm;
      out["why"] = kWhyChosen;
      out["candidates"] = Json::array({{{"algorithm", job.algorithm},
                                        {"time_s", evaluation.time_s},
                                        {"chunks", folded.units_per_shard}}});
    }
    out["synthesis_s"] = elapsed.count();
    out["peak_rss_bytes"] = PeakRssBytes();
    out["verified"] = job.verify ? Json(true) : Json(nullptr);
    Print(out);
    return kDone;
  }
  if (!job.asked_for)
    fmt::print(
        "symmetric form, since all {:.3g} transfers and their proof would take more than half of "
        "the memory\n",
        TransfersInFull(collective));
  fmt::print("{} on {} by {}: {} transfers, {} of each rank, {} chunk{} a shard, made in {}, {}\n",
             Name(collective.kind()), NameOf(topology), job.algorithm,
             Count(static_cast<int64_t>(CountTransfers(*schedule))),
             Count(static_cast<int64_t>(schedule->root.transfers.size())), folded.units_per_shard,
             folded.units_per_shard == 1 ? "" : "s", Seconds(elapsed.count()),
             job.verify ? "verified" : "not verified");
  fmt::print("{}", EvaluationText(folded, evaluation, job.options.size_bytes));
  if (job.by_choice) fmt::print("chosen: {}; {}\n", job.algorithm, kWhyChosen);
  if (!job.output.empty()) fmt::print("written to {}\n", job.output);
  return kDone;
}

int CostOfSymmetricFile(const Program& program, const std::string& path,
                        const std::vector<int64_t>& sizes) {
  const Result<SymmetricFile> file = ReadSymmetricFile(path);
  if (!file) return Report(file.error());
  const Result<Translations> translations =
      Translations::Make(file->topology, file->schedule.generators);
  if (!translations)
    return Report({ErrorCode::kCorrupt, fmt::format("{}: its loads are not those of one rank: {}",
                                                    path, translations.error().message)});
  const Schedule folded = FoldOntoRank0(*translations, file->schedule);
  const Result<Bounds> bounds = BoundsByOneRank(file->topology, folded.collective);
  if (!bounds) return Report(bounds.error());
  Json out;
  std::string text = fmt::format("{} on {} by {}, symmetric\n", Name(folded.collective.kind()),
                                 NameOf(file->topology), folded.algorithm);
  for (int64_t size : sizes) {
    const Evaluation evaluation = Evaluate(file->topology, folded, size, *bounds);
    if (out.empty()) {
      DescribeTopology(file->topology, evaluation.bounds.steps, out);
      DescribeSymmetric(file->schedule, out);
    }
    Json row;
    DescribeEvaluation(folded, evaluation, size, row);
    if (sizes.size() == 1)
      out.update(row);
    else
      out["rows"].push_back(row);
    text += EvaluationText(folded, evaluation, size);
  }
  if (program.json)
    Print(out);
  else
    fmt::print("{}", text);
  return kDone;
}

}  // namespace tutti::cli
