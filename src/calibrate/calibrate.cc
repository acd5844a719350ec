#include "tutti/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "plans.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace {

using calibrate::Pair;

constexpr double kPicoseconds = 1e12;
// What a link of a topology may have.
constexpr double kMaxFittedBandwidth = static_cast<double>(int64_t{1} << 50);
// How often times that do not tell a bandwidth are measured again, with twice as many repetitions each
// time: a host that is busy with other work delays a short message by more than a long one takes.
constexpr int kMoreTries = 3;
constexpr int32_t kLeastRepeatsOfMore = 15;

// What one rank measured in one run.
using Times = std::vector<double>;

class Measurement {
 public:
  Measurement(const CalibrateOptions& options, const PlanRunner& run)
      : options_(options), run_(run), progress_("calibrate", 5 * int64_t{options.num_ranks} + 1) {}

  Result<Calibration> Measure() {
    for (const std::vector<Pair>& round : calibrate::Tournament(options_.num_ranks))
      if (const Status met = Meet(round); !met) return tl::unexpected(met.error());
    for (int32_t rank = 0; rank < options_.num_ranks; ++rank)
      if (const Status met = MeetAll(rank); !met) return tl::unexpected(met.error());
    if (const Status met = AllMeet(); !met) return tl::unexpected(met.error());
    std::sort(pairs_.begin(), pairs_.end(), [](const PairMeasure& a, const PairMeasure& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    return Calibration{options_, std::move(pairs_), std::move(ranks_)};
  }

 private:
  Result<std::vector<Times>> Run(const Plan& plan, int64_t bytes, int32_t repeats) {
    Result<RunReport> report = run_(plan, {.size_bytes = bytes,
                                           .type = DataType::kUint8,
                                           .transport = Transport::kTcp,
                                           .warmup = options_.warmup,
                                           .iterations = repeats,
                                           .hang_timeout_s = options_.hang_timeout_s});
    if (!report) return tl::unexpected(report.error());
    if (report->wrong != 0)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("{} bytes arrived wrong", report->wrong));
    return std::move(report->rank_times);
  }

  Result<std::vector<Times>> Ping(const std::vector<Pair>& round, int64_t bytes, int32_t repeats) {
    return Run(calibrate::PingPlan(options_.num_ranks, round, bytes), bytes, repeats);
  }

  // Both ways of each pair of a round.
  Status Meet(std::vector<Pair> round) {
    Result<std::vector<Times>> small = Ping(round, 1, options_.repeats);
    if (!small) return tl::unexpected(small.error());
    progress_.Add(1);
    for (int way = 0; way < 2; ++way) {
      Result<std::vector<Times>> large = Ping(round, options_.large_bytes, options_.repeats);
      if (!large) return tl::unexpected(large.error());
      if (const Status told = AddPairs(round, *small, *large); !told) return told;
      progress_.Add(1);
      for (Pair& pair : round) std::swap(pair.first, pair.second);
    }
    return {};
  }

  // Where times do not tell a pair's bandwidth, the whole round is measured again, as all its pairs are
  // at it together; of the pairs that were told already the first measurement counts. `small` becomes the newest.
  Status AddPairs(const std::vector<Pair>& round, std::vector<Times>& small,
                  std::vector<Times> large) {
    // Short messages went one way only, from the lower rank.
    const auto short_times = [&small](const Pair& pair) {
      return SpreadOf(small[static_cast<size_t>(std::min(pair.first, pair.second))]);
    };
    const auto long_times = [&large](const Pair& pair) {
      return SpreadOf(large[static_cast<size_t>(pair.first)]);
    };
    std::vector<Pair> untold = round;
    int32_t repeats = std::max(options_.repeats, kLeastRepeatsOfMore);
    for (int more = 0;; ++more) {
      std::erase_if(untold, [&](const Pair& pair) {
        return AddPair(pair, short_times(pair), long_times(pair));
      });
      if (untold.empty()) return {};
      if (more == kMoreTries) break;
      repeats *= 2;
      std::vector<Pair> from_lower = round;
      for (Pair& pair : from_lower)
        if (pair.first > pair.second) std::swap(pair.first, pair.second);
      Result<std::vector<Times>> again = Ping(from_lower, 1, repeats);
      if (!again) return tl::unexpected(again.error());
      small = std::move(*again);
      again = Ping(round, options_.large_bytes, repeats);
      if (!again) return tl::unexpected(again.error());
      large = std::move(*again);
    }
    const Pair& pair = untold.front();
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("from rank {} to rank {} {} bytes take {:.1f} us, and one takes {:.1f} us: "
                    "larger messages are needed to tell its bandwidth",
                    pair.first, pair.second, options_.large_bytes, long_times(pair).median * 1e6,
                    short_times(pair).median * 1e6));
  }

  // Whether the times tell a bandwidth.
  bool AddPair(const Pair& pair, const Spread& small, const Spread& large) {
    const auto bytes = static_cast<double>(options_.large_bytes);
    const double longer_s = large.median - small.median;
    if (!(longer_s > 0 && bytes / longer_s < kMaxFittedBandwidth)) return false;
    // Where the intervals of both times meet, nothing says how fast the link may be.
    const double min_s = large.low - small.high;
    const double fastest = min_s > 0 ? bytes / min_s : std::numeric_limits<double>::infinity();
    pairs_.push_back({.from = pair.first,
                      .to = pair.second,
                      .alpha_s = {small.median / 2, small.low / 2, small.high / 2},
                      .bandwidth = {bytes / longer_s, bytes / (large.high - small.low), fastest}});
    return true;
  }

  Status MeetAll(int32_t rank) {
    const int32_t ranks = options_.num_ranks;
    RankMeasure& measure = ranks_.emplace_back();
    for (const bool out : {true, false}) {
      const Plan plan = out ? calibrate::FanOutPlan(ranks, rank, options_.large_bytes)
                            : calibrate::FanInPlan(ranks, rank, options_.large_bytes);
      const Result<std::vector<Times>> times = Run(plan, options_.large_bytes, options_.repeats);
      if (!times) return tl::unexpected(times.error());
      progress_.Add(1);
      (out ? measure.out : measure.in) = RateToAll((*times)[static_cast<size_t>(rank)]);
    }
    return {};
  }

  Status AllMeet() {
    const Result<std::vector<Times>> times =
        Run(calibrate::ShufflePlan(options_.num_ranks, options_.large_bytes), options_.large_bytes,
            options_.repeats);
    if (!times) return tl::unexpected(times.error());
    progress_.Add(1);
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      ranks_[rank].all = RateToAll((*times)[rank]);
    return {};
  }

  // Bytes a second, of long messages to all others, or from all.
  Spread RateToAll(const Times& times) const {
    const Spread spread = SpreadOf(times);
    const double bytes = static_cast<double>(options_.large_bytes) * (options_.num_ranks - 1);
    return {bytes / spread.median, bytes / spread.high, bytes / spread.low};
  }

  CalibrateOptions options_;
  const PlanRunner& run_;
  ProgressScope progress_;
  std::vector<PairMeasure> pairs_;
  std::vector<RankMeasure> ranks_;
};

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  // The largest k with P(fewer than k of n lie below the median) <= 2.5 %.
  double choose = std::pow(0.5, static_cast<double>(n)), below = 0;
  size_t k = 0;
  while (k < n / 2 && below + choose <= 0.025) {
    below += choose;
    choose *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  const size_t least = k == 0 ? 0 : k - 1;
  return {median, values[least], values[n - 1 - least]};
}

Result<Calibration> Calibrate(const CalibrateOptions& options, const PlanRunner& run) {
  if (options.num_ranks < 2 || options.num_ranks > CalibrateOptions::kMaxRanks)
    return InvalidArgument(fmt::format("{} ranks: a calibration has 2 to {}", options.num_ranks,
                                       CalibrateOptions::kMaxRanks));
  if (options.large_bytes < 2 || options.repeats < 1 || options.warmup < 0)
    return InvalidArgument(fmt::format("messages of {} bytes, {} repetitions after {}",
                                       options.large_bytes, options.repeats, options.warmup));
  return Measurement(options, run).Measure();
}

Result<Topology> ToTopology(const Calibration& calibration) {
  constexpr double kShares = 0.9;
  const int32_t ranks = calibration.options.num_ranks;
  Topology::Builder builder(ranks);
  std::vector<double> out(static_cast<size_t>(ranks)), in(static_cast<size_t>(ranks));
  for (const PairMeasure& pair : calibration.pairs) {
    const double bandwidth = pair.bandwidth.median;
    if (!(bandwidth >= 1 && bandwidth < kMaxFittedBandwidth))
      return MakeError(ErrorCode::kInfeasible, fmt::format("from rank {} to rank {}: {:g} bytes/s",
                                                           pair.from, pair.to, bandwidth));
    builder.AddLink(NodeId{pair.from}, NodeId{pair.to},
                    {.bandwidth = std::llround(bandwidth),
                     .alpha_ps = std::llround(pair.alpha_s.median * kPicoseconds)});
    out[static_cast<size_t>(pair.from)] += bandwidth;
    in[static_cast<size_t>(pair.to)] += bandwidth;
  }
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    const RankMeasure& measure = calibration.ranks[r];
    const double sent = std::min(measure.out.median, measure.all.median);
    const double received = std::min(measure.in.median, measure.all.median);
    if (ranks > 2 && (sent < kShares * out[r] || received < kShares * in[r]))
      builder.SetHostBandwidth(NodeId{rank}, std::llround(std::min(sent, received)));
  }
  builder.SetName(fmt::format("calibrated({})", ranks));
  return std::move(builder).Build();
}

std::string DescribeCalibration(const Calibration& calibration, const std::string& where) {
  std::string text = fmt::format(
      "measured by tutti calibrate between {}: medians of {} repetitions of {} bytes, with "
      "intervals "
      "of 95 %; links",
      where, calibration.options.repeats, calibration.options.large_bytes);
  const auto add = [&text](std::string_view what, const Spread& spread, double unit) {
    fmt::format_to(std::back_inserter(text), " {} {:.6g} ({:.6g} to {:.6g})", what,
                   spread.median * unit, spread.low * unit, spread.high * unit);
  };
  for (const PairMeasure& pair : calibration.pairs) {
    fmt::format_to(std::back_inserter(text), "; {}>{}:", pair.from, pair.to);
    add("alpha us", pair.alpha_s, 1e6);
    add("GB/s", pair.bandwidth, 1e-9);
  }
  text += "; ranks with all others at once";
  for (size_t rank = 0; rank < calibration.ranks.size(); ++rank) {
    fmt::format_to(std::back_inserter(text), "; {}:", rank);
    add("out GB/s", calibration.ranks[rank].out, 1e-9);
    add("in GB/s", calibration.ranks[rank].in, 1e-9);
    add("while all do GB/s", calibration.ranks[rank].all, 1e-9);
  }
  return text;
}

}  // namespace tutti
