#include "tutti/synth/auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/bounds/bounds.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace {

std::string Microseconds(const Rational& seconds) {
  return fmt::format("{:.6g} us", seconds.ToDouble() * 1e6);
}

// The shapes of the collective to try, the synthesizer's own first.
Result<std::vector<Collective>> ShapesFor(const Synthesizer& synthesizer,
                                          const Collective& collective) {
  if (collective.kind() != CollectiveKind::kAllReduce) return std::vector<Collective>{collective};
  std::array<int32_t, 2> shards{0, 1};  // 0: as many as ranks
  if (synthesizer.one_shard_all_reduce) std::swap(shards[0], shards[1]);
  std::vector<Collective> shapes;
  for (int32_t count : shards) {
    Collective::Options options = collective.GroupOptions();
    options.all_reduce_shards = count;
    Result<Collective> shape =
        Collective::Make(collective.kind(), collective.num_ranks(), std::move(options));
    if (!shape) return tl::unexpected(shape.error());
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

class Chooser {
 public:
  Chooser(const Topology& topology, const SynthOptions& options, int64_t budget_ns, Bounds bounds)
      : topology_(topology),
        options_(options),
        budget_ns_(budget_ns),
        left_ns_(budget_ns),
        bounds_(std::move(bounds)),
        limit_s_(bounds_.Limit(options.size_bytes)) {}

  void Add(const Synthesizer& synthesizer) {
    candidates_.push_back({.algorithm = synthesizer.name});
    if (synthesizer.on_request_only)
      candidates_.back().reason = fmt::format("runs on request only: -a {}", synthesizer.name);
  }

  // `number`: of the candidate, in the order of Add(). Only an error that ends the whole choice is
  // one.
  Status TryDefault(const Synthesizer& synthesizer, size_t number, const Collective& shape) {
    const Result<std::optional<Tried>> tried = Try(synthesizer, number, shape, options_.chunks);
    if (!tried) return tl::unexpected(tried.error());
    if (*tried && synthesizer.chunk_choice && options_.chunks == 0)
      starts_.push_back({&synthesizer, number, shape, **tried});
    return {};
  }

  // From each default that was predicted to more chunks while that helps, or else to fewer.
  Status TryOtherChunks(ProgressScope& progress) {
    for (const Start& start : starts_) {
      for (const bool more : {true, false}) {
        const Result<bool> helped = Climb(start, more);
        if (!helped) return tl::unexpected(helped.error());
        if (*helped) break;
      }
      progress.Add(1);
    }
    return {};
  }

  Result<AutoChoice> Finish() && {
    if (!best_) {
      std::string reasons = "no algorithm makes this on this network";
      for (const AutoCandidate& candidate : candidates_)
        reasons += fmt::format("\n  {}: {}", candidate.algorithm, candidate.reason);
      return MakeError(ErrorCode::kInfeasible, std::move(reasons));
    }
    return AutoChoice{*std::move(best_),
                      std::move(best_notes_),
                      std::move(candidates_),
                      chosen_,
                      budget_ns_ - left_ns_,
                      limit_s_,
                      bounds_.StepLimit(options_.size_bytes)};
  }

 private:
  struct Tried {
    int32_t chunks = 0;
    Rational seconds;
  };
  struct Start {
    const Synthesizer* synthesizer;
    size_t number;
    Collective shape;
    Tried tried;
  };

  // Whether it helped at all. A step that gains less than a hundredth is the last.
  Result<bool> Climb(const Start& start, bool more) {
    constexpr int32_t kMaxTriedChunks = 512;
    constexpr int64_t kUsualSteps = 4;
    const Rational enough(99, 100);
    Tried last = start.tried;
    ProgressScope progress("numbers of chunks", kUsualSteps);
    for (;;) {
      if (more ? last.chunks > kMaxTriedChunks / 2 : last.chunks % 2 != 0) break;
      const int32_t chunks = more ? last.chunks * 2 : last.chunks / 2;
      if (options_.element_bytes > 0 &&
          chunks > MostChunks(start.shape, options_.size_bytes, options_.element_bytes))
        break;
      const Result<std::optional<Tried>> next =
          Try(*start.synthesizer, start.number, start.shape, chunks);
      if (!next) return tl::unexpected(next.error());
      if (!*next || (*next)->seconds >= last.seconds) break;
      const bool last_step = (*next)->seconds > last.seconds * enough;
      last = **next;
      progress.Add(1);
      if (last_step) break;
    }
    return last.seconds < start.tried.seconds;
  }

  // Nothing where it was not run or is not made; the error is one that ends the whole choice.
  Result<std::optional<Tried>> Try(const Synthesizer& synthesizer, size_t number,
                                   const Collective& shape, int32_t chunks) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    AutoCandidate& candidate = candidates_[number];
    SynthOptions options = OptionsFor(synthesizer, options_);
    options.chunks = chunks;
    SynthNotes notes;
    options.notes = &notes;
    options.auto_chunks = options.auto_chunks && chunks == 0;
    const Forecast forecast = synthesizer.forecast != nullptr
                                  ? synthesizer.forecast(topology_, shape, options)
                                  : ForecastByDeliveries(shape, options, kUsualNsADelivery);
    if (std::string reason = WhyNotRun(forecast); !reason.empty()) {
      Decline(candidate, false, std::move(reason));
      return std::nullopt;
    }
    left_ns_ -= forecast.work_ns;
    Result<Schedule> made = RunSynthesizer(synthesizer, topology_, shape, options);
    if (!made) {
      if (made.error().code == ErrorCode::kCancelled) return tl::unexpected(made.error());
      Decline(candidate, true, made.error().message);
      return std::nullopt;
    }
    candidate.failed = false;
    candidate.reason.clear();
    Tried tried{made->units_per_shard, PredictedSeconds(topology_, *made, options.size_bytes)};
    if (!candidate.seconds || tried.seconds < *candidate.seconds) {
      candidate.seconds = tried.seconds;
      candidate.chunks = tried.chunks;
      if (shape.kind() == CollectiveKind::kAllReduce) candidate.shards = shape.num_shards();
    }
    if (!best_ || tried.seconds < best_s_) {
      best_ = *std::move(made);
      best_notes_ = std::move(notes);
      best_s_ = tried.seconds;
      chosen_ = number;
    }
    return tried;
  }

  // What is said of a candidate is why its first variant is not predicted, unless another one is; a
  // limit or forecast rather than an error, since without it there might be a schedule.
  static void Decline(AutoCandidate& candidate, bool failed, std::string reason) {
    if (candidate.seconds || !(candidate.reason.empty() || (candidate.failed && !failed))) return;
    candidate.failed = failed;
    candidate.reason = std::move(reason);
  }

  std::string WhyNotRun(const Forecast& forecast) const {
    if (best_) {
      const Rational least = forecast.steps_only
                                 ? bounds_.StepLimit(options_.size_bytes, forecast.min_steps)
                                 : limit_s_;
      if (least >= best_s_)
        return fmt::format("takes at least {}, '{}' takes {}", Microseconds(least),
                           candidates_[chosen_].algorithm, Microseconds(best_s_));
    }
    if (forecast.work_ns <= left_ns_) return {};
    constexpr double kNsPerSecond = 1e9;
    return fmt::format(
        "is forecast to work for {:.3g} s, of the {:.3g} s allowed {:.3g} s are left",
        static_cast<double>(forecast.work_ns) / kNsPerSecond,
        static_cast<double>(budget_ns_) / kNsPerSecond,
        static_cast<double>(left_ns_) / kNsPerSecond);
  }

  const Topology& topology_;
  const SynthOptions& options_;
  int64_t budget_ns_, left_ns_;
  Bounds bounds_;
  Rational limit_s_;
  std::vector<AutoCandidate> candidates_;
  std::vector<Start> starts_;
  std::optional<Schedule> best_;
  SynthNotes best_notes_;
  Rational best_s_;
  size_t chosen_ = 0;
};

}  // namespace

Result<AutoChoice> ChooseSynthesizer(const Topology& topology, const Collective& collective,
                                     const SynthOptions& options, int64_t budget_ns) {
  Result<Bounds> bounds = BoundsOf(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  Chooser chooser(topology, options, budget_ns, *std::move(bounds));
  std::vector<const Synthesizer*> runs;
  for (const Synthesizer& synthesizer : Synthesizers()) {
    if (!synthesizer.Makes(collective.kind())) continue;
    chooser.Add(synthesizer);
    runs.push_back(synthesizer.on_request_only ? nullptr : &synthesizer);
  }
  // All defaults first: the better the best so far, the more can be left out.
  const size_t num_shapes = collective.kind() == CollectiveKind::kAllReduce ? 2 : 1;
  const auto choices = std::count_if(runs.begin(), runs.end(), [](const Synthesizer* run) {
    return run != nullptr && run->chunk_choice;
  });
  ProgressScope progress("auto", static_cast<int64_t>(runs.size() * num_shapes) +
                                     static_cast<int64_t>(num_shapes) * choices);
  for (size_t shape = 0; shape < num_shapes; ++shape)
    for (size_t number = 0; number < runs.size(); ++number) {
      if (runs[number] == nullptr) {
        progress.Add(1);
        continue;
      }
      const Result<std::vector<Collective>> shapes = ShapesFor(*runs[number], collective);
      if (!shapes) return tl::unexpected(shapes.error());
      if (const Status tried = chooser.TryDefault(*runs[number], number, (*shapes)[shape]); !tried)
        return tl::unexpected(tried.error());
      progress.Add(1);
    }
  if (const Status tried = chooser.TryOtherChunks(progress); !tried)
    return tl::unexpected(tried.error());
  return std::move(chooser).Finish();
}

std::string WhyChosen(const AutoChoice& choice) {
  const Rational seconds = *choice.candidates[choice.chosen].seconds;
  if (seconds <= choice.limit_s) return "no schedule is faster: it meets the bound";
  if (choice.schedule.kind == ScheduleKind::kStep && seconds <= choice.step_limit_s)
    return "no schedule in steps is faster: it meets their bound";
  const AutoCandidate* next = nullptr;
  for (const AutoCandidate& candidate : choice.candidates)
    if (&candidate != &choice.candidates[choice.chosen] && candidate.seconds &&
        (next == nullptr || *candidate.seconds < *next->seconds))
      next = &candidate;
  if (next == nullptr) return "nothing else was predicted";
  if (*next->seconds == seconds) return fmt::format("as fast as {}", next->algorithm);
  constexpr double kPercent = 100;
  return fmt::format("{:.1f} % faster than the next, {}",
                     ((*next->seconds / seconds) - Rational(1)).ToDouble() * kPercent,
                     next->algorithm);
}

}  // namespace tutti
