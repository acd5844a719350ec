#include "ten/chunk_count.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ten/input.h"
#include "tutti/base/progress.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/ten.h"

namespace tutti {

int32_t EvenChunks(const Topology& topology) {
  const std::optional<int32_t> degree = topology.regular_degree();
  if (!degree || *degree == 0 || !topology.is_homogeneous() || topology.has_switches()) return 1;
  return *degree / std::gcd(*degree, topology.num_ranks() - 1);
}

namespace ten {
namespace {

// Matched transfers, of all tries together: about three seconds on one core. Links that are unlike
// take longer, and their schedules are passed over again.
constexpr int64_t kMaxMatched = 8'000'000, kMatchedATimedTransfer = 4;
// Through switches each transfer is the best of several ways; chunks, which pass whole, have to be
// fine there, so that more numbers are tried.
constexpr int64_t kWaysAsOne = 64, kMaxMatchedThroughSwitches = 16'000'000;
constexpr int32_t kMaxTriedChunks = 1 << 12;
constexpr int kMaxFailedCounts = 6;
// With more deliveries a chunk, numbers are compared by fewer tries.
constexpr int64_t kFewDeliveries = 5000;
constexpr int32_t kTriesToCompare = 2, kUsualTries = 8;
constexpr size_t kFinalists = 3;
// Numbers between the best and its neighbours that were tried are tried as well.
constexpr int kMaxBetween = 4;

// 1, 2, 3, 4, 6, 8, 12, .. and `even` times those, up to `most`.
std::set<int32_t> CountsToTry(int32_t even, int64_t most) {
  std::set<int32_t> counts;
  for (const int64_t unit : {int64_t{1}, int64_t{even}})
    for (int64_t power = unit; power <= most; power *= 2) {
      counts.insert(static_cast<int32_t>(power));
      if (power > unit && power / 2 * 3 <= most) counts.insert(static_cast<int32_t>(power / 2 * 3));
    }
  return counts;
}

struct Tried {
  Rational seconds;
  Schedule schedule;
};

class CountSearch {
 public:
  CountSearch(const Topology& topology, const Collective& collective, const SynthOptions& options,
              const std::function<Result<Schedule>(const SynthOptions&)>& make,
              const std::function<Result<Schedule>(Schedule)>& finish)
      : topology_(topology),
        collective_(collective),
        options_(options),
        make_(make),
        finish_(finish) {
    options_.auto_chunks = false;
    in_rounds_ = AllLinksEqual(topology) && options.link_model == LinkModel::kHeld &&
                 collective.demand().empty();
    // The limit in whole rounds is of schedules in rounds that are not two halves.
    if (in_rounds_ && collective.kind() == CollectiveKind::kAllGather)
      if (Result<Bounds> bounds = ComputeBounds(topology, collective)) bounds_ = *std::move(bounds);
  }

  Result<Schedule> Run() {
    if (const Status first = Try(1); !first) return tl::unexpected(first.error());
    if (best_.front().schedule.transfers.empty()) return std::move(best_.front().schedule);
    transfers_a_chunk_ = static_cast<int64_t>(best_.front().schedule.transfers.size());
    const int64_t most = std::min<int64_t>(
        kMaxTriedChunks,
        MostChunks(collective_, options_.size_bytes, std::max(1, options_.element_bytes)));
    const std::set<int32_t> counts = CountsToTry(EvenChunks(topology_), most);
    ProgressScope progress("numbers of chunks", static_cast<int64_t>(counts.size()));
    int in_vain = 0;
    for (const int32_t count : counts) {
      progress.Add(1);
      if (count == 1 || LeastSeconds(count) >= best_.front().seconds) continue;
      if (in_vain == kMaxFailedCounts || !Affordable(count)) break;
      const Rational before = best_.front().seconds;
      const Result<bool> tried = TryIfPossible(count);
      if (!tried) return tl::unexpected(tried.error());
      if (!*tried) break;
      in_vain = best_.front().seconds < before ? 0 : in_vain + 1;
    }
    if (const Status tried = TryBetween(); !tried) return tl::unexpected(tried.error());
    return BestOfFinished();
  }

 private:
  int64_t MatchedBy(int32_t count, int32_t tries) const {
    if (in_rounds_) return count * transfers_a_chunk_ * tries;
    const int64_t ways = topology_.has_switches() ? topology_.num_ranks() / kWaysAsOne + 1 : 1;
    return count * transfers_a_chunk_ * tries * kMatchedATimedTransfer * ways;
  }

  bool by_few_tries() const {
    return int64_t{collective_.num_shards()} * (collective_.num_ranks() - 1) > kFewDeliveries &&
           (options_.tries == 0 || options_.tries > kTriesToCompare);
  }
  int32_t tries() const { return by_few_tries() ? kTriesToCompare : options_.tries; }

  bool Affordable(int32_t count) {
    matched_ += MatchedBy(count, tries() > 0 ? tries() : kUsualTries);
    return matched_ <= (topology_.has_switches() ? kMaxMatchedThroughSwitches : kMaxMatched);
  }

  // No schedule in rounds with so many chunks is faster: the rounds that the busiest cut needs, of
  // a chunk a link each.
  Rational LeastSeconds(int32_t count) const {
    if (!bounds_) return {};
    const LinkSpec& link = topology_.spec(LinkId{0});
    const Rational chunk_s = collective_.ShardBytes(ShardId{0}, options_.size_bytes) /
                             (Rational(count) * Rational(link.bandwidth));
    const Rational rounds =
        (bounds_->seconds_per_byte * Rational(options_.size_bytes) / chunk_s).Ceil();
    return std::max(rounds, Rational(bounds_->steps)) *
           (Rational(link.alpha_ps, kPicosecondsPerSecond) + chunk_s);
  }

  // The middles between the best number and the next ones that were tried, until they meet.
  Status TryBetween() {
    for (int k = 0; k < kMaxBetween; ++k) {
      const int32_t best = best_.front().schedule.units_per_shard;
      const auto at = tried_.find(best);
      const int32_t below = at == tried_.begin() ? best : *std::prev(at);
      const int32_t above = std::next(at) == tried_.end() ? best : *std::next(at);
      const int32_t middle =
          best - below > above - best ? std::midpoint(best, below) : std::midpoint(best, above);
      if (tried_.contains(middle) || !Affordable(middle)) return {};
      const Result<bool> tried = TryIfPossible(middle);
      if (!tried) return tl::unexpected(tried.error());
      if (!*tried) return {};
    }
    return {};
  }

  // Whether it was possible. kCancelled.
  Result<bool> TryIfPossible(int32_t count) {
    const Status tried = Try(count);
    if (!tried && tried.error().code == ErrorCode::kCancelled) return tl::unexpected(tried.error());
    return tried.has_value();
  }

  Status Try(int32_t count) {
    tried_.insert(count);
    SynthOptions with_count = options_;
    with_count.chunks = count;
    with_count.tries = tries();
    Result<Schedule> made = make_(with_count);
    if (!made) return tl::unexpected(made.error());
    Keep({PredictedSeconds(topology_, *made, options_.size_bytes), *std::move(made)});
    return {};
  }

  // The fastest few, of equal ones what came first.
  void Keep(Tried tried) {
    const auto at = std::upper_bound(
        best_.begin(), best_.end(), tried.seconds,
        [](const Rational& seconds, const Tried& one) { return seconds < one.seconds; });
    best_.insert(at, std::move(tried));
    if (best_.size() > kFinalists) best_.pop_back();
  }

  // The finalists with as many tries as without a search; through switches, where these are what
  // takes longest, only the best. kCancelled.
  Status TryFinalistsInFull() {
    if (topology_.has_switches()) best_.erase(best_.begin() + 1, best_.end());
    for (Tried& one : std::exchange(best_, {})) {
      SynthOptions with_count = options_;
      with_count.chunks = one.schedule.units_per_shard;
      Result<Schedule> again = make_(with_count);
      if (!again) return tl::unexpected(again.error());
      Rational seconds = PredictedSeconds(topology_, *again, options_.size_bytes);
      Keep(seconds < one.seconds ? Tried{std::move(seconds), *std::move(again)} : std::move(one));
    }
    return {};
  }

  Result<Schedule> BestOfFinished() {
    if (by_few_tries())
      if (const Status tried = TryFinalistsInFull(); !tried) return tl::unexpected(tried.error());
    std::optional<Tried> best;
    for (Tried& one : best_) {
      Result<Schedule> finished = finish_(std::move(one.schedule));
      if (!finished) return finished;
      Rational seconds = PredictedSeconds(topology_, *finished, options_.size_bytes);
      // OverlapAllReduce takes longer than all tries and, where it gains, has chosen a number of
      // chunks of its own: from the next finalist it would come to about the same.
      const bool overlapped =
          collective_.kind() == CollectiveKind::kAllReduce && seconds < one.seconds;
      if (!best || seconds < best->seconds) best = Tried{std::move(seconds), *std::move(finished)};
      if (overlapped) break;
    }
    return std::move(best->schedule);
  }

  const Topology& topology_;
  const Collective& collective_;
  SynthOptions options_;
  const std::function<Result<Schedule>(const SynthOptions&)>& make_;
  const std::function<Result<Schedule>(Schedule)>& finish_;
  bool in_rounds_ = false;
  std::optional<Bounds> bounds_;
  int64_t transfers_a_chunk_ = 0, matched_ = 0;
  std::set<int32_t> tried_;
  std::vector<Tried> best_;  // fastest first, kFinalists at most
};

}  // namespace

Result<Schedule> WithBestChunkCount(
    const Topology& topology, const Collective& collective, const SynthOptions& options,
    const std::function<Result<Schedule>(const SynthOptions&)>& make,
    const std::function<Result<Schedule>(Schedule)>& finish) {
  return CountSearch(topology, collective, options, make, finish).Run();
}

}  // namespace ten
}  // namespace tutti
