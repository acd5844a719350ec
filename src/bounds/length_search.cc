#include "length_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

int64_t CommonUnit(const Topology& topology) {
  int64_t unit = 0;
  for (LinkId link : topology.Links()) unit = std::gcd(unit, topology.bandwidth(link));
  return std::max<int64_t>(unit, 1);
}

// The master program: route every source's demand as a mix of the paths found so far, with the
// least strain [1/F] on the links. The prices of the links' rows are the next lengths to try.
class Master {
 public:
  Master(const Topology& topology, const Collective& collective)
      : topology_(topology), collective_(collective), lp_(LinearProgram::Goal::kMinimize) {
    const auto unit = static_cast<double>(CommonUnit(topology));
    mean_weight_ = static_cast<double>(TotalDemandWeight(collective)) / collective.num_ranks();
    const int32_t strain = lp_.AddColumn(0, LinearProgram::kNoLimit, 1);
    for (LinkId link : topology.Links()) {
      capacity_.push_back(static_cast<double>(topology.bandwidth(link)) / unit);
      lp_.AddRow(-LinearProgram::kNoLimit, 0, {{strain, -capacity_.back()}});
    }
    for (int32_t s = 0; s < topology.num_ranks(); ++s) lp_.AddRow(1, LinearProgram::kNoLimit, {});
  }

  // Adds the shortest paths under `lengths`; returns the strain that the lengths prove.
  double AddWays(const std::vector<int64_t>& lengths) {
    SourceRouter router(topology_, collective_, lengths);
    double spent = 0, distance = 0;
    for (size_t l = 0; l < capacity_.size(); ++l)
      spent += capacity_[l] * static_cast<double>(lengths[l]);
    std::vector<WideCapacity> load(capacity_.size());
    for (NodeId source : topology_.Ranks()) {
      distance += static_cast<double>(router.Run(source)) / mean_weight_;
      std::fill(load.begin(), load.end(), 0);
      router.AddLoad(load);
      std::vector<LinearProgram::RowEntry> column = {{topology_.num_links() + source.value, 1}};
      for (LinkId link : topology_.Links())
        if (load[link.index()] > 0)
          column.push_back({link.value, static_cast<double>(load[link.index()]) / mean_weight_});
      lp_.AddColumn(0, LinearProgram::kNoLimit, 0, column);
    }
    return distance / spent;
  }

  struct Optimum {
    double strain;                // no routing over the paths in hand has less
    std::vector<double> lengths;  // Normalised
  };
  std::optional<Optimum> Solve() {
    const Result<LpSolution> solution = lp_.Solve(LinearProgram::Check::kAsFound);
    if (!solution) return std::nullopt;
    Optimum optimum{solution->objective, {}};
    for (size_t l = 0; l < capacity_.size(); ++l)
      optimum.lengths.push_back(std::max(-solution->row_prices[l], 0.0));
    Normalise(optimum.lengths);
    return optimum;
  }

  // Scales so that the sum of capacity x length is 1.
  void Normalise(std::vector<double>& lengths) const {
    double spent = 0;
    for (size_t l = 0; l < capacity_.size(); ++l) spent += capacity_[l] * lengths[l];
    for (double& length : lengths) length /= spent;
  }

 private:
  const Topology& topology_;
  const Collective& collective_;
  LinearProgram lp_;
  std::vector<double> capacity_;
  double mean_weight_ = 1;  // of a source
};

std::vector<int64_t> Rounded(const std::vector<double>& lengths) {
  const double longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<int64_t> rounded;
  for (double length : lengths)
    rounded.push_back(
        std::llround(std::max(length, 0.0) / longest * static_cast<double>(kLongestLength)));
  return rounded;
}

}  // namespace

std::vector<int64_t> InverseBandwidths(const Topology& topology) {
  const int64_t unit = CommonUnit(topology);
  int64_t common = 1;
  for (LinkId link : topology.Links()) {
    const int64_t capacity = topology.bandwidth(link) / unit;
    const int64_t step = capacity / std::gcd(common, capacity);
    common = step > kLongestLength / common ? kLongestLength + 1 : common * step;
    if (common > kLongestLength) break;
  }
  std::vector<int64_t> lengths;
  for (LinkId link : topology.Links()) {
    const int64_t capacity = topology.bandwidth(link) / unit;
    const int64_t length = (common <= kLongestLength ? common : kLongestLength) / capacity;
    lengths.push_back(std::max<int64_t>(length, 1));
  }
  return lengths;
}

void Lengthen(const Topology& topology, const std::vector<WideCapacity>& load, int64_t round,
              std::vector<int64_t>& lengths) {
  const int64_t unit = CommonUnit(topology);
  const auto size = static_cast<size_t>(topology.num_links());
  WideCapacity heaviest = 1;
  for (WideCapacity of_link : load) heaviest = std::max(heaviest, of_link);
  int shift = 0;
  while ((heaviest >> shift) >= (WideCapacity{1} << 60)) ++shift;
  std::vector<WideCapacity> strain(size);
  WideCapacity most = 1;
  for (LinkId link : topology.Links()) {
    const WideCapacity scaled = (load[link.index()] >> shift) << 50;
    strain[link.index()] = scaled / (topology.bandwidth(link) / unit);
    most = std::max(most, strain[link.index()]);
  }
  std::vector<WideCapacity> next(size);
  WideCapacity longest = 1;
  for (size_t l = 0; l < size; ++l) {
    const WideCapacity share = (strain[l] >> 16) * 65536 / std::max<WideCapacity>(most >> 16, 1);
    next[l] = lengths[l] * (WideCapacity{65536} * (10 + round) + 10 * share);
    longest = std::max(longest, next[l]);
  }
  for (size_t l = 0; l < size; ++l)
    lengths[l] = std::max<int64_t>(static_cast<int64_t>(next[l] * kLongestLength / longest), 1);
}

std::optional<std::vector<int64_t>> LengthsByColumnGeneration(const Topology& topology,
                                                              const Collective& collective,
                                                              std::vector<int64_t> start,
                                                              int32_t max_rounds) {
  constexpr double kCloseEnough = 1e-9;
  // New lengths are looked for near the best ones, on the way to the master's: the master's own
  // jump about and need three times the rounds.
  constexpr double kTowardsMaster = 0.2;
  Master master(topology, collective);
  std::vector<double> best, lengths(start.begin(), start.end());
  double proven = 0, least = 0;
  for (int32_t round = 0; round < max_rounds; ++round) {
    master.Normalise(lengths);
    const double strain = master.AddWays(Rounded(lengths));
    if (strain > proven) {
      proven = strain;
      best = lengths;
    }
    std::optional<Master::Optimum> optimum = master.Solve();
    if (!optimum || optimum->strain <= proven * (1 + kCloseEnough)) break;
    // No progress from in between: go all the way.
    const double towards = optimum->strain == least ? 1 : kTowardsMaster;
    least = optimum->strain;
    for (size_t l = 0; l < lengths.size(); ++l)
      lengths[l] = best[l] + towards * (optimum->lengths[l] - best[l]);
  }
  if (best.empty()) return std::nullopt;
  return Rounded(best);
}

}  // namespace tutti
