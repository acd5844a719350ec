// The commands on symmetric schedules (sched/symmetric.h), which stand for those of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "tutti/sched/symmetric.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::cli {

inline constexpr const char* kSymmetricAlgorithm = "bfb";
// Whether `algorithm` makes this collective in the symmetric form too, where the network has one.
bool MayBeSymmetric(const std::string& algorithm, const Collective& collective);
// Whether the schedule of all ranks and its proof need more than half of this machine's memory.
bool IsTooLargeInFull(const Collective& collective);

struct SymmetricJob {
  std::string algorithm, output;
  SynthOptions options;
  bool verify = true;
  bool asked_for = true;   // or chosen because of the size
  bool by_choice = false;  // `-a auto`: the only algorithm that has this form
};
// `tutti synth` from the parsed topology on. nullopt: the network has no translations, and nobody
// asked for the symmetric form.
std::optional<int> SynthesizeSymmetric(const Program& program, Topology topology,
                                       const Collective& collective, const SymmetricJob& job);

// Keys of DescribeSchedule, with the counts of all ranks, and `symmetric transfers_of_one_rank
// generators`.
void DescribeSymmetric(const SymmetricSchedule& schedule, Json& out);

// `tutti cost` of a symmetric file.
int CostOfSymmetricFile(const Program& program, const std::string& path,
                        const std::vector<int64_t>& sizes);

}  // namespace tutti::cli
