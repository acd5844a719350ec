#include "step_lp/step_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/parallel.h"
#include "tutti/lp/linear_program.h"

namespace tutti::step_lp {
namespace {

constexpr int32_t kMaxTreeRounds = 2000;
constexpr size_t kTreeBeam = 64;
constexpr double kPriceScale = int64_t{1} << 32;
// Prices that are whole stay below, so that no sum leaves 62 bits.
constexpr int64_t kMaxWholePrice = int64_t{1} << 42;
// T 3^N times roots, of one round: a few seconds.
constexpr double kMaxTreeWork = 4e9;

// The network as the program sees it.
class Classes {
 public:
  Classes(const Topology& topology, const std::optional<Translations>& translations)
      : topology_(topology) {
    for (LinkId link : topology.Links()) unit_ = std::gcd(unit_, topology.bandwidth(link));
    for (LinkId link : topology.Links())
      class_.push_back(translations ? translations->LinkClass(link) : link.value);
    count_ = translations ? translations->num_classes() : topology.num_links();
    bandwidth_.resize(static_cast<size_t>(count_));
    for (LinkId link : topology.Links())
      bandwidth_[static_cast<size_t>(class_[link.index()])] = topology.bandwidth(link) / unit_;
    if (translations) {
      roots_.push_back(NodeId{0});
    } else {
      for (NodeId rank : topology.Ranks()) roots_.push_back(rank);
    }
  }

  int32_t count() const { return count_; }
  int32_t of(LinkId link) const { return class_[link.index()]; }
  int64_t bandwidth(int32_t one) const { return bandwidth_[static_cast<size_t>(one)]; }
  const std::vector<NodeId>& roots() const { return roots_; }
  // The sum of all U_t, in shards over units of bandwidth, as M/B.
  Rational TbOf(const Rational& shards) const {
    return shards * Rational(topology_.max_in_bandwidth()) /
           (Rational(unit_) * Rational(topology_.num_ranks()));
  }

 private:
  const Topology& topology_;
  int64_t unit_ = 0;
  std::vector<int32_t> class_;
  int32_t count_ = 0;
  std::vector<int64_t> bandwidth_;
  std::vector<NodeId> roots_;
};

// The cheapest tree of every root; nullopt where a beam lost one.
std::vector<std::optional<StepTrees::Found>> CheapestOfAll(const Topology& topology, int32_t steps,
                                                           const std::vector<NodeId>& roots,
                                                           const std::vector<int64_t>& lengths,
                                                           size_t beam) {
  std::vector<std::optional<StepTrees::Found>> found(roots.size());
  ParallelFor(static_cast<int64_t>(roots.size()), 1, [&](int64_t begin, int64_t end) {
    StepTrees trees(topology, steps);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      if (!CancelRequested()) found[i] = trees.Cheapest(roots[i], lengths, beam);
  });
  return found;
}

// Sum of the cheapest lengths over the largest price of a whole step: a limit of all U_t together.
Rational LimitOf(const Topology& topology, const Classes& classes, int32_t steps,
                 const std::vector<int64_t>& lengths,
                 const std::vector<std::optional<StepTrees::Found>>& cheapest) {
  Rational sum, most;
  for (const auto& found : cheapest) {
    if (!found) return 0;
    sum += Rational(found->length);
  }
  std::vector<bool> seen;
  for (int32_t step = 0; step < steps; ++step) {
    Rational price;
    seen.assign(static_cast<size_t>(classes.count()), false);
    for (LinkId link : topology.Links()) {
      const int32_t one = classes.of(link);
      if (seen[static_cast<size_t>(one)]) continue;
      seen[static_cast<size_t>(one)] = true;
      const size_t at = static_cast<size_t>(step) * static_cast<size_t>(topology.num_links());
      price += Rational(classes.bandwidth(one)) * Rational(lengths[at + link.index()]);
    }
    most = std::max(most, price);
  }
  return most.is_zero() ? Rational(0) : sum / most;
}

class StepProgram {
 public:
  StepProgram(const Topology& topology, int32_t steps, std::optional<Translations> translations)
      : topology_(topology),
        steps_(steps),
        translations_(std::move(translations)),
        classes_(topology, translations_),
        program_(LinearProgram::Goal::kMinimize) {
    for (int32_t step = 0; step < steps; ++step)
      for (int32_t one = 0; one < classes_.count(); ++one)
        program_.AddRow(-LinearProgram::kNoLimit, 0, {});
    for (size_t root = 0; root < classes_.roots().size(); ++root) program_.AddRow(1, 1, {});
    for (int32_t step = 0; step < steps; ++step) {
      std::vector<LinearProgram::RowEntry> entries;
      for (int32_t one = 0; one < classes_.count(); ++one)
        entries.push_back({RowOf(one, step), -static_cast<double>(classes_.bandwidth(one))});
      program_.AddColumn(0, LinearProgram::kNoLimit, 1, entries);
    }
  }

  Result<StepShares> Run() {
    const std::vector<int64_t> alike(
        static_cast<size_t>(steps_) * static_cast<size_t>(topology_.num_links()), 1);
    for (size_t root = 0; root < classes_.roots().size(); ++root) {
      StepTrees trees(topology_, steps_);
      const auto first = trees.Cheapest(classes_.roots()[root], alike, 0);
      if (!first) return TooFewSteps(classes_.roots()[root]);
      AddTree(root, first->tree);
    }
    for (int32_t round = 0; round < kMaxTreeRounds; ++round) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      const Result<LpSolution> solution = program_.Solve(LinearProgram::Check::kAsFound);
      if (!solution) return tl::unexpected(solution.error());
      const std::vector<int64_t> lengths = Lengths([&](int32_t row) {
        return static_cast<int64_t>(
            std::llround(std::max(0.0, -Price(*solution, row)) * kPriceScale));
      });
      if (AddCheaper(*solution, lengths, kTreeBeam)) continue;
      if (AddCheaper(*solution, lengths, 0)) continue;
      const Result<bool> done = Exactly();
      if (!done) return tl::unexpected(done.error());
      if (*done) return std::move(shares_);
    }
    return MakeError(ErrorCode::kResourceExhausted,
                     "the linear program over trees in steps did not come to an end");
  }

 private:
  int32_t RowOf(int32_t one, int32_t step) const { return step * classes_.count() + one; }
  int32_t RowOfRoot(size_t root) const {
    return steps_ * classes_.count() + static_cast<int32_t>(root);
  }
  static double Price(const LpSolution& solution, int32_t row) {
    return solution.row_prices[static_cast<size_t>(row)];
  }

  tl::unexpected<Error> TooFewSteps(NodeId root) const {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} steps are too few: not all ranks are within so many hops of "
                                 "rank {}",
                                 steps_, root.value));
  }

  // What `price` says of each row, at every link of its class.
  template <class PriceOfRow>
  std::vector<int64_t> Lengths(const PriceOfRow& price) const {
    std::vector<int64_t> lengths;
    lengths.reserve(static_cast<size_t>(steps_) * static_cast<size_t>(topology_.num_links()));
    for (int32_t step = 0; step < steps_; ++step)
      for (LinkId link : topology_.Links())
        lengths.push_back(price(RowOf(classes_.of(link), step)));
    return lengths;
  }

  void AddTree(size_t root, const StepTree& tree) {
    std::vector<LinearProgram::RowEntry> entries{{RowOfRoot(root), 1}};
    for (const StepBranch& branch : tree)
      entries.push_back({RowOf(classes_.of(branch.link), branch.step), 1});
    program_.AddColumn(0, LinearProgram::kNoLimit, 0, entries);
    trees_.push_back({root, tree});
  }

  // Whether some root has a tree that costs less than it pays.
  bool AddCheaper(const LpSolution& solution, const std::vector<int64_t>& lengths, size_t beam) {
    const auto cheapest = CheapestOfAll(topology_, steps_, classes_.roots(), lengths, beam);
    if (beam == 0) KeepProof(lengths, LimitOf(topology_, classes_, steps_, lengths, cheapest));
    constexpr double kWorthwhile = 1e-7;
    bool added = false;
    for (size_t root = 0; root < cheapest.size(); ++root) {
      if (!cheapest[root]) continue;
      const double paid = Price(solution, RowOfRoot(root));
      const double length = static_cast<double>(cheapest[root]->length) / kPriceScale;
      if (length >= paid - kWorthwhile * std::max(1.0, paid)) continue;
      AddTree(root, cheapest[root]->tree);
      added = true;
    }
    return added;
  }

  void KeepProof(const std::vector<int64_t>& lengths, const Rational& limit) {
    const Rational tb = classes_.TbOf(limit);
    if (!shares_.proof.lengths.empty() && tb <= shares_.proof.tb) return;
    shares_.proof = {lengths, tb};
  }

  // The prices of links and steps times `common`, which makes them whole.
  struct WholePrices {
    Rational common;
    std::vector<int64_t> lengths;
  };

  // nullopt: they would leave 62 bits.
  std::optional<WholePrices> MakeWhole(const ExactLpSolution& exact) const {
    const auto price = [&](int32_t row) {
      return Rational(0) - exact.row_prices[static_cast<size_t>(row)];
    };
    const Rational most(kMaxWholePrice);
    WholePrices whole{1, {}};
    for (int32_t row = 0; row < steps_ * classes_.count(); ++row) {
      const auto den = (price(row) * whole.common).Den64();
      if (!den || Rational(*den) * whole.common > most) return std::nullopt;
      whole.common *= Rational(*den);
    }
    for (int32_t row = 0; row < steps_ * classes_.count(); ++row)
      if (price(row) * whole.common > most) return std::nullopt;
    whole.lengths = Lengths([&](int32_t row) { return *(price(row) * whole.common).Num64(); });
    return whole;
  }

  // The shares in fractions, and the proof from their prices. False where a tree is cheaper after
  // all, which is then in the program.
  Result<bool> Exactly() {
    const Result<ExactLpSolution> exact = program_.SolveExactly();
    if (!exact) return tl::unexpected(exact.error());
    if (const std::optional<WholePrices> whole = MakeWhole(*exact)) {
      const auto cheapest = CheapestOfAll(topology_, steps_, classes_.roots(), whole->lengths, 0);
      if (CancelRequested()) return tl::unexpected(CancelledError());
      KeepProof(whole->lengths, LimitOf(topology_, classes_, steps_, whole->lengths, cheapest));
      bool added = false;
      for (size_t root = 0; root < cheapest.size(); ++root) {
        const Rational paid =
            exact->row_prices[static_cast<size_t>(RowOfRoot(root))] * whole->common;
        if (!cheapest[root] || Rational(cheapest[root]->length) >= paid) continue;
        AddTree(root, cheapest[root]->tree);
        added = true;
      }
      if (added) return false;
    }
    shares_.steps = steps_;
    shares_.tb = classes_.TbOf(exact->objective);
    shares_.translations = translations_;
    for (size_t i = 0; i < trees_.size(); ++i) {
      const Rational& share = exact->columns[static_cast<size_t>(steps_) + i];
      if (share.is_zero()) continue;
      shares_.parts.push_back({classes_.roots()[trees_[i].root], trees_[i].tree, share});
    }
    std::stable_sort(
        shares_.parts.begin(), shares_.parts.end(),
        [](const StepShares::Part& a, const StepShares::Part& b) { return a.root < b.root; });
    return true;
  }

  struct Tree {
    size_t root;
    StepTree tree;
  };

  const Topology& topology_;
  const int32_t steps_;
  const std::optional<Translations> translations_;
  const Classes classes_;
  LinearProgram program_;
  std::vector<Tree> trees_;  // column steps_ + i
  StepShares shares_;
};

std::optional<Translations> TranslationsOf(const Topology& topology) {
  Result<Translations> found = FindTranslations(topology);
  if (!found) return std::nullopt;
  return *std::move(found);
}

}  // namespace

Status CheckStepProgram(const Topology& topology, int32_t steps) {
  const auto refuse = [](std::string message) {
    return MakeError(ErrorCode::kInfeasible, std::move(message));
  };
  if (topology.has_switches()) return refuse("'step-lp' knows no switches: unwind them first");
  if (topology.has_host_limits())
    return refuse("'step-lp' knows no host limits; 'tsmcf' and 'direct' keep to them");
  if (topology.num_ranks() > kMaxTreeRanks)
    return refuse(
        fmt::format("'step-lp' looks at all sets of ranks, of which there may be {}; the "
                    "network has {}",
                    kMaxTreeRanks, topology.num_ranks()));
  const double sets = std::pow(3.0, topology.num_ranks());
  if (sets * steps * topology.num_ranks() > kMaxTreeWork)
    return refuse(fmt::format("'step-lp' would take too long for {} ranks and {} steps",
                              topology.num_ranks(), steps));
  return {};
}

Result<StepShares> SolveStepProgram(const Topology& topology, int32_t steps) {
  if (const Status fits = CheckStepProgram(topology, steps); !fits)
    return tl::unexpected(fits.error());
  return StepProgram(topology, steps, TranslationsOf(topology)).Run();
}

Rational ProvenTb(const Topology& topology, int32_t steps, const std::vector<int64_t>& lengths,
                  const std::optional<Translations>& translations) {
  const Classes classes(topology, translations);
  return classes.TbOf(LimitOf(topology, classes, steps, lengths,
                              CheapestOfAll(topology, steps, classes.roots(), lengths, 0)));
}

}  // namespace tutti::step_lp
