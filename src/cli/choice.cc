#include "choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "routing.h"

namespace tutti::cli {

Result<const Synthesizer*> FindAlgorithm(const std::string& name) {
  if (name == kAutoName) return nullptr;
  return FindSynthesizer(name).map_error([](const Error& error) {
    return Error{error.code, fmt::format("{}, {}; for all-to-all also {}", error.message, kAutoName,
                                         RouterNames())};
  });
}

void DescribeChoice(const AutoChoice& choice, Json& out) {
  out["chosen"] = choice.candidates[choice.chosen].algorithm;
  out["why"] = WhyChosen(choice);
  out["candidates"] = Json::array();
  for (const AutoCandidate& candidate : choice.candidates) {
    Json row;
    row["algorithm"] = candidate.algorithm;
    if (candidate.seconds) {
      row["time_s"] = candidate.seconds->ToDouble();
      row["chunks"] = candidate.chunks;
      if (candidate.shards > 0) row["shards"] = candidate.shards;
    } else {
      row[candidate.failed ? "error" : "skipped"] = candidate.reason;
    }
    out["candidates"].push_back(row);
  }
}

std::string ChoiceText(const AutoChoice& choice) {
  std::vector<const AutoCandidate*> by_time;
  for (const AutoCandidate& candidate : choice.candidates)
    if (candidate.seconds) by_time.push_back(&candidate);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const auto* a, const auto* b) { return *a->seconds < *b->seconds; });
  const Rational best = *choice.candidates[choice.chosen].seconds;
  Table table({"algorithm", "chunks", "predicted", "of the best"});
  for (const AutoCandidate* candidate : by_time)
    table.AddRow(
        {fmt::format("{}{}", candidate->algorithm, candidate->shards == 1 ? " (one shard)" : ""),
         std::to_string(candidate->chunks), Seconds(candidate->seconds->ToDouble()),
         best.is_zero() ? "-" : fmt::format("{:.2f}x", (*candidate->seconds / best).ToDouble())});
  std::string text =
      fmt::format("chosen: {}; {}\n\n{}\n", choice.candidates[choice.chosen].algorithm,
                  WhyChosen(choice), table.ToString());
  std::string none;
  for (const AutoCandidate& candidate : choice.candidates) {
    if (candidate.seconds) continue;
    if (candidate.failed)
      none += fmt::format("{}{}", none.empty() ? "" : ", ", candidate.algorithm);
    else
      text += fmt::format("  {}: {}\n", candidate.algorithm, candidate.reason);
  }
  if (!none.empty()) text += fmt::format("  have no schedule for this network: {}\n", none);
  return text;
}

}  // namespace tutti::cli
