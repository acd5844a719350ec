#include "tutti/advise/unwinding.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "tutti/base/progress.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/auto.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

Result<Topology> WithDegree(const std::string& expression, int32_t degree) {
  const Result<ExpressionTree> tree = ParseExpressionTree(expression);
  if (!tree) return tl::unexpected(tree.error());
  return ParseTopology(fmt::format("unwind({},degree={})", tree->text, degree));
}

// What the fastest schedule takes, whose it is, and what finding it was forecast to work.
struct Predicted {
  Rational seconds;
  const Synthesizer* synthesizer;
  int64_t work_ns;
  std::optional<AutoChoice> choice = {};  // of the best of all
};

Forecast ForecastFor(const Synthesizer& synthesizer, const Topology& topology,
                     const Collective& collective, const SynthOptions& options) {
  return synthesizer.forecast != nullptr
             ? synthesizer.forecast(topology, collective, options)
             : ForecastByDeliveries(collective, options, kUsualNsADelivery);
}

// `budget_ns`: of the best of all, and of a synthesizer where there is any.
Result<Predicted> PredictedOn(const Topology& topology, const Synthesizer* synthesizer,
                              const WantedCollective& wanted, const SynthOptions& options,
                              std::optional<int64_t> budget_ns) {
  const Result<Collective> collective =
      wanted.make(topology, synthesizer != nullptr && synthesizer->one_shard_all_reduce);
  if (!collective) return tl::unexpected(collective.error());
  if (synthesizer == nullptr) {
    Result<AutoChoice> choice =
        ChooseSynthesizer(topology, *collective, options, budget_ns.value_or(kAutoBudgetNs));
    if (!choice) return tl::unexpected(choice.error());
    const AutoCandidate chosen = choice->candidates[choice->chosen];
    const int64_t work_ns = choice->work_ns;
    return Predicted{*chosen.seconds, *FindSynthesizer(chosen.algorithm), work_ns,
                     *std::move(choice)};
  }
  const int64_t work_ns = ForecastFor(*synthesizer, topology, *collective, options).work_ns;
  if (budget_ns && work_ns > *budget_ns)
    return MakeError(ErrorCode::kInfeasible, "is forecast to work for longer than is left");
  const Result<Schedule> schedule = RunSynthesizer(*synthesizer, topology, *collective, options);
  if (!schedule) return tl::unexpected(schedule.error());
  return Predicted{PredictedSeconds(topology, *schedule, options.size_bytes), synthesizer, work_ns};
}

// Degrees tried one by one, the best so far in hand. 0 is the network as it is.
class DegreeSearch {
 public:
  DegreeSearch(const std::string& expression, const WantedCollective& wanted,
               const SynthOptions& options)
      : expression_(expression), wanted_(wanted), options_(options) {
    options_.notes = nullptr;
  }

  // The error is one that ends the search. `budget_ns`: nullopt for what takes as long as it takes.
  Status Try(int32_t degree, const Synthesizer* synthesizer, std::optional<int64_t> budget_ns) {
    Result<Topology> topology =
        degree == 0 ? ParseTopology(expression_) : WithDegree(expression_, degree);
    if (!topology) return tl::unexpected(topology.error());
    Result<Predicted> predicted = PredictedOn(*topology, synthesizer, wanted_, options_, budget_ns);
    if (predicted) work_ns_ += predicted->work_ns;
    if (!predicted) {
      if (predicted.error().code == ErrorCode::kCancelled) return tl::unexpected(predicted.error());
      if (!first_error_) first_error_ = predicted.error();
      tried_[degree] = std::nullopt;
      return {};
    }
    tried_[degree] = predicted->seconds;
    if (best_ && (*tried_[best_->degree] < predicted->seconds ||
                  (*tried_[best_->degree] == predicted->seconds && best_->degree < degree)))
      return {};
    best_ = Unwound{std::move(*topology), degree, budget_ns.value_or(kAutoBudgetNs),
                    std::move(predicted->choice)};
    best_synthesizer_ = predicted->synthesizer;
    return {};
  }

  // Between the best and the degrees tried next to it, by halves, with the algorithm of the best.
  // `max_ns`: of all tries of the search together.
  Status Refine(std::optional<int64_t> max_ns) {
    for (bool better = true; better && best_ && best_->degree > 0;) {
      better = false;
      const int32_t best = best_->degree;
      const auto at = tried_.find(best);
      std::vector<int32_t> between;
      if (at != tried_.begin()) between.push_back((std::prev(at)->first + best) / 2);
      if (const auto next = std::next(at); next != tried_.end())
        between.push_back((best + next->first + 1) / 2);
      for (const int32_t degree : between) {
        if (degree < 1 || tried_.count(degree) > 0) continue;
        const auto left = max_ns ? std::optional(*max_ns - work_ns_) : std::nullopt;
        if (const Status done = Try(degree, best_synthesizer_, left); !done) return done;
        better = true;
      }
    }
    return {};
  }

  int64_t work_ns() const { return work_ns_; }

  Result<Unwound> Finish() && {
    if (!best_) return tl::unexpected(*first_error_);
    for (const auto& [degree, seconds] : tried_)
      if (seconds) best_->tried.emplace_back(degree, seconds->ToDouble());
    return *std::move(best_);
  }

 private:
  const std::string& expression_;
  const WantedCollective& wanted_;
  SynthOptions options_;
  std::map<int32_t, std::optional<Rational>> tried_;  // nothing: it is not made there
  std::optional<Unwound> best_;
  const Synthesizer* best_synthesizer_ = nullptr;
  int64_t work_ns_ = 0;  // forecast of all tries
  std::optional<Error> first_error_;
};

}  // namespace

Result<Unwound> UnwindBy(const std::string& expression, int32_t degree) {
  Result<Topology> topology = WithDegree(expression, degree);
  if (!topology) return tl::unexpected(topology.error());
  return Unwound{std::move(*topology), degree};
}

Result<Unwound> UnwindBest(const std::string& expression, const Synthesizer* synthesizer,
                           const WantedCollective& wanted, const SynthOptions& options) {
  Result<Topology> whole = ParseTopology(expression);
  if (!whole) return tl::unexpected(whole.error());
  if (!whole->has_switches()) return Unwound{std::move(*whole)};
  const Result<int64_t> largest = LargestUnwinding(*whole);
  if (!largest) return tl::unexpected(largest.error());

  std::vector<int32_t> degrees;
  if (synthesizer == nullptr) degrees.push_back(0);
  for (int32_t degree = 1; degree < *largest; degree *= 2) degrees.push_back(degree);
  degrees.push_back(static_cast<int32_t>(*largest));
  DegreeSearch search(expression, wanted, options);
  ProgressScope progress("unwindings", static_cast<int64_t>(degrees.size()) + 1);
  constexpr int64_t kQuarter = kAutoBudgetNs / 4;
  const bool best_of_all = synthesizer == nullptr;
  for (size_t i = 0; i < degrees.size(); ++i) {
    std::optional<int64_t> budget_ns;
    if (best_of_all)
      budget_ns = degrees[i] == 0 ? kQuarter
                                  : (3 * kQuarter - search.work_ns()) /
                                        static_cast<int64_t>(degrees.size() - i);
    if (const Status done = search.Try(degrees[i], synthesizer, budget_ns); !done)
      return tl::unexpected(done.error());
    progress.Add(1);
  }
  const auto max_ns = best_of_all ? std::optional(3 * kQuarter) : std::nullopt;
  if (const Status done = search.Refine(max_ns); !done) return tl::unexpected(done.error());
  return std::move(search).Finish();
}

Result<AutoChoice> ChooseOn(Unwound& unwound, const Collective& collective,
                            const SynthOptions& options) {
  if (std::optional<AutoChoice> choice = std::exchange(unwound.choice, std::nullopt))
    return *std::move(choice);
  return ChooseSynthesizer(unwound.topology, collective, options, unwound.budget_ns);
}

bool TriesUnwindings(const Topology& topology, CollectiveKind kind) {
  return (Reduces(kind) || EndsAtAllRanks(kind)) && topology.has_switches() &&
         LargestUnwinding(topology).has_value();
}

}  // namespace tutti
