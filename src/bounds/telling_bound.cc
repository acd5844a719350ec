#include "telling_bound.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/graph/max_flow.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

constexpr int64_t kMaxToldParts = 32, kMaxToldArcs = 512;
constexpr int32_t kMaxToldRounds = 200;

class TellingProgram {
 public:
  // Arcs between parts, parallel ones as one.
  TellingProgram(const CutNetwork& network, const Partition& parts)
      : parts_(static_cast<int32_t>(parts.num_parts)), program_(LinearProgram::Goal::kMaximize) {
    std::map<std::pair<int32_t, int32_t>, int64_t> arcs;
    for (const CutNetwork::Arc& arc : network.arcs) {
      const int32_t tail = parts.part_of_rank[arc.tail.index()];
      const int32_t head = parts.part_of_rank[arc.head.index()];
      if (tail != head) arcs[{tail, head}] += arc.capacity;
    }
    double all = 0;
    for (const auto& [ends, capacity] : arcs) {
      arcs_.push_back({NodeId{ends.first}, NodeId{ends.second}, capacity});
      all += static_cast<double>(capacity);
    }
    for (int before = 0; before < 2; ++before)
      for (const CutNetwork::Arc& arc : arcs_)
        program_.AddColumn(0, static_cast<double>(arc.capacity), 0);
    for (int32_t part = 0; part < parts_; ++part) program_.AddColumn(0, all, 1);
    for (size_t i = 0; i < arcs_.size(); ++i)
      program_.AddRow(-LinearProgram::kNoLimit, static_cast<double>(arcs_[i].capacity),
                      {{Before(i), 1}, {After(i), 1}});
    for (int32_t part = 0; part < parts_; ++part) {
      std::vector<bool> alone(static_cast<size_t>(parts_), false);
      alone[static_cast<size_t>(part)] = true;
      AddCut(alone);
      AddComesIn(NodeId{part});
    }
  }

  // nullopt: the library gave up, or the answer was cancelled.
  std::optional<Rational> Run() {
    if (static_cast<int64_t>(arcs_.size()) > kMaxToldArcs) return std::nullopt;
    std::optional<Rational> least;
    for (int32_t round = 0; round < kMaxToldRounds && !CancelRequested(); ++round) {
      const Result<LpSolution> solution = program_.Solve();
      if (!solution || !solution->certificate) return least;
      const LpCertificate& proof = *solution->certificate;
      if (proof.dual_violation.is_zero() && (!least || proof.dual_objective < *least))
        least = proof.dual_objective;
      if (!AddBrokenCuts(Scaled(solution->columns), kSlack)) return Sharpen(least);
    }
    return least;
  }

 private:
  static constexpr double kSlack = 1e-7;

  // From what doubles have found to the optimum itself, which no order of ranks or rounding decides.
  std::optional<Rational> Sharpen(std::optional<Rational> least) {
    for (int32_t round = 0; round < kMaxToldRounds && !CancelRequested(); ++round) {
      const Result<ExactLpSolution> exact = program_.SolveExactly();
      if (!exact) return least;
      if (!least || exact->objective < *least) least = exact->objective;
      const std::optional<std::vector<int64_t>> whole = Whole(exact->columns);
      if (!whole || !AddBrokenCuts(*whole, 0)) return least;
    }
    return least;
  }

  static std::vector<int64_t> Scaled(const std::vector<double>& columns) {
    constexpr double kScale = 1 << 20;
    std::vector<int64_t> scaled;
    for (const double column : columns)
      scaled.push_back(static_cast<int64_t>(std::max(0.0, column) * kScale));
    return scaled;
  }

  // Times their common denominator; nullopt: too large for sums of them.
  static std::optional<std::vector<int64_t>> Whole(const std::vector<Rational>& columns) {
    constexpr int64_t kMostWhole = int64_t{1} << 50;
    int64_t common = 1;
    for (const Rational& column : columns) {
      const std::optional<int64_t> den = column.Den64();
      if (!den || *den > kMostWhole) return std::nullopt;
      const int64_t factor = *den / std::gcd(common, *den);
      if (factor > kMostWhole / common) return std::nullopt;
      common *= factor;
    }
    std::vector<int64_t> whole;
    for (const Rational& column : columns) {
      const std::optional<int64_t> scaled = (column * Rational(common)).Num64();
      if (!scaled || *scaled > kMostWhole) return std::nullopt;
      whole.push_back(*scaled);
    }
    return whole;
  }

  int32_t Before(size_t arc) const { return static_cast<int32_t>(arc); }
  int32_t After(size_t arc) const { return static_cast<int32_t>(arcs_.size() + arc); }
  int32_t First(NodeId part) const { return 2 * static_cast<int32_t>(arcs_.size()) + part.value; }

  void AddCut(const std::vector<bool>& inside) {
    std::vector<LinearProgram::Entry> entries;
    for (size_t i = 0; i < arcs_.size(); ++i)
      if (inside[arcs_[i].tail.index()] && !inside[arcs_[i].head.index()])
        entries.push_back({Before(i), 1});
    for (int32_t part = 0; part < parts_; ++part)
      if (!inside[static_cast<size_t>(part)]) entries.push_back({First(NodeId{part}), -1});
    program_.AddRow(0, LinearProgram::kNoLimit, entries);
  }

  void AddComesIn(NodeId part) {
    std::vector<LinearProgram::Entry> entries;
    for (size_t i = 0; i < arcs_.size(); ++i)
      if (arcs_[i].head == part) entries.push_back({After(i), 1});
    for (int32_t other = 0; other < parts_; ++other)
      if (other != part.value) entries.push_back({First(NodeId{other}), -1});
    program_.AddRow(0, LinearProgram::kNoLimit, entries);
  }

  // Whether some set lets out less than the ranks outside of it are first for, by more than `slack` of all; 0: at all.
  bool AddBrokenCuts(const std::vector<int64_t>& columns, double slack) {
    const auto of = [&](int32_t column) { return columns[static_cast<size_t>(column)]; };
    // Turned around: what the first ranks start reaches everybody over what comes before.
    std::vector<MaxFlow<int64_t>::Arc> turned;
    for (size_t i = 0; i < arcs_.size(); ++i)
      turned.push_back({arcs_[i].head, arcs_[i].tail, of(Before(i))});
    MaxFlow<int64_t> flow(parts_, turned);
    int64_t wanted = 0;
    for (int32_t part = 0; part < parts_; ++part) {
      flow.SetSupply(NodeId{part}, of(First(NodeId{part})));
      wanted += of(First(NodeId{part}));
    }
    const double allowed =
        slack > 0 ? slack * static_cast<double>(wanted) + static_cast<double>(arcs_.size()) : 0;
    bool broken = false;
    for (int32_t part = 0; part < parts_; ++part) {
      const int64_t got = flow.Run(NodeId{part}, wanted);
      if (static_cast<double>(wanted - got) <= allowed) continue;
      AddCut(flow.SinkSide());
      broken = true;
    }
    return broken;
  }

  const int32_t parts_;
  LinearProgram program_;
  std::vector<CutNetwork::Arc> arcs_;
};

}  // namespace

std::optional<Rational> MostToldAtOnce(const CutNetwork& network, const Partition& parts) {
  if (network.num_nodes != network.num_ranks || parts.num_parts > kMaxToldParts)
    return std::nullopt;
  return TellingProgram(network, parts).Run();
}

}  // namespace tutti
