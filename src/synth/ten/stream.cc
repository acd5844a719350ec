#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ten/input.h"
#include "ten/step_schedules.h"
#include "tutti/synth/ten.h"

namespace tutti {
namespace {

using namespace ten;

// A schedule in memory, what the verifier keeps of it, and blocks on their way to a file. Timed
// ones have starts, the best so far stays beside the one in work, and both are routed again.
constexpr double kBytesATransfer = sizeof(Transfer) + 8;
constexpr double kBytesATimedTransfer = 2 * (sizeof(Transfer) + 8) + 32;
constexpr double kBytesAPairOfFarthest = 8;
constexpr double kBytesOfWriter = 64 << 20;

int64_t Clamp(double bytes) {
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::min(bytes, kMost));
}

// Gives up a file as soon as it cannot be the right one.
class Attempt {
 public:
  Attempt(const Input& input, const OpenSchedule& open, Schedule header)
      : input_(input), open_(open), header_(std::move(header)) {}

  // The rounds that the variant takes; a file is finished where they are those of the header.
  Result<int32_t> Run(const Variant& variant, int32_t most) {
    if (!open_) return MatchSteps(input_, variant, most, {});
    Result<std::unique_ptr<ScheduleWriter>> writer = open_(header_, input_.num_deliveries());
    if (!writer) return tl::unexpected(writer.error());
    const Result<int32_t> rounds = MatchSteps(
        input_, variant, most, [&](int32_t step, std::span<const Transfer> transfers) -> Status {
          if (step >= header_.num_steps) writer->reset();
          return *writer == nullptr ? Status() : (*writer)->Append(transfers, {});
        });
    if (rounds && *rounds == header_.num_steps)
      if (const Status finished = (*writer)->Finish(); !finished)
        return tl::unexpected(finished.error());
    return rounds;
  }

 private:
  const Input& input_;
  const OpenSchedule& open_;
  Schedule header_;
};

}  // namespace

Status CheckTenStreams(const Topology& topology, const Collective& collective,
                       const SynthOptions& options) {
  const auto fail = [](std::string why) {
    return MakeError(ErrorCode::kInfeasible,
                     "this schedule cannot be made round by round: " + std::move(why));
  };
  if (collective.has_groups()) return fail("only one of all ranks is, not one of groups");
  if (collective.kind() != CollectiveKind::kAllGather &&
      collective.kind() != CollectiveKind::kBroadcast)
    return fail(fmt::format("{} {}; only all-gather and broadcast go from the first round on",
                            Name(collective.kind()),
                            collective.reduces() ? "is made from a whole schedule, reversed"
                                                 : "is matched block by block"));
  if (Status few = CheckChunks(collective, options); !few) return few;
  if (options.auto_chunks)
    return fail("several numbers of chunks are compared in memory; give one");
  if (!AllLinksEqual(topology) || options.link_model != LinkModel::kHeld)
    return fail("only equal links whose messages hold them go in rounds");
  return {};
}

TenMemory TenMemoryOf(const Topology& topology, const Collective& collective,
                      const SynthOptions& options) {
  const auto ranks = static_cast<double>(topology.num_ranks());
  const double chunks = static_cast<double>(collective.num_shards()) * std::max(1, options.chunks);
  const double a_chunk = chunks <= std::numeric_limits<uint16_t>::max() ? 2 : 4;
  const double matching =
      ranks * chunks * (a_chunk + 1.0 / 8) + 64 * static_cast<double>(topology.num_links());
  const bool is_timed = !AllLinksEqual(topology) || options.link_model != LinkModel::kHeld;
  const double made = ranks * chunks * (is_timed ? kBytesATimedTransfer : kBytesATransfer);
  const double searches =
      options.policy == FarthestPolicy().name ? ranks * ranks * kBytesAPairOfFarthest : 0;
  return {.in_memory_bytes = Clamp(matching + made + searches),
          .streamed_bytes = Clamp(matching + searches + kBytesOfWriter)};
}

Result<TenStreamed> StreamTen(const Topology& topology, const Collective& collective,
                              const SynthOptions& options, const OpenSchedule& open,
                              int64_t available_bytes) {
  if (const Status streams = CheckTenStreams(topology, collective, options); !streams)
    return tl::unexpected(streams.error());
  const Result<Input> input =
      MakeInput(topology, collective, options,
                TenMemoryOf(topology, collective, options).streamed_bytes, available_bytes);
  if (!input) return tl::unexpected(input.error());

  const int32_t fewest = FewestRounds(topology, input->source);
  TenStreamed streamed{Header(*input, options.seed), input->num_deliveries()};
  Schedule& header = streamed.header;
  header.num_steps = fewest;
  Attempt attempt(*input, open, header);
  Variant best(*input, 0);
  int32_t best_rounds = std::numeric_limits<int32_t>::max();
  for (int32_t number = 0; number < TriesOf(*input, options); ++number) {
    const Variant variant(*input, options.seed - 1 + static_cast<uint64_t>(number));
    const Result<int32_t> rounds = attempt.Run(variant, best_rounds - 1);
    if (!rounds) return tl::unexpected(rounds.error());
    if (*rounds == fewest) return streamed;
    if (*rounds >= best_rounds) continue;
    best_rounds = *rounds;
    best = variant;
  }
  header.num_steps = best_rounds;
  if (open)
    if (const Result<int32_t> again = Attempt(*input, open, header).Run(best, best_rounds); !again)
      return tl::unexpected(again.error());
  return streamed;
}

}  // namespace tutti
