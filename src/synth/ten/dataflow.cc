#include "ten/dataflow.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace tutti::ten {
namespace {

constexpr uint32_t kNoJob = std::numeric_limits<uint32_t>::max();
constexpr int64_t kNotNeeded = -1;

// One piece of one shard, which every transfer that carries some of it carries whole.
class Piece {
 public:
  Piece(const Topology& topology, const Schedule& schedule, std::vector<Job>& jobs)
      : topology_(topology), schedule_(schedule), jobs_(jobs) {}

  // Follows the piece through `members`, and back to what is needed. Appends to `supplies` pairs of
  // a transfer and the one that brought what it sends. True where a transfer turned out needed that
  // was not known to be.
  bool Follow(ShardId shard, std::span<const uint32_t> members,
              std::vector<std::pair<uint32_t, uint32_t>>& supplies) {
    events_.clear();
    sent_.assign(members.size(), {});
    for (uint32_t k = 0; k < members.size(); ++k) {
      events_.push_back({jobs_[members[k]].start, true, k});
      events_.push_back({jobs_[members[k]].arrival, false, k});
    }
    // At one instant what arrives comes first.
    std::sort(events_.begin(), events_.end());
    Forward(shard, members, supplies);
    return Backward(shard, members);
  }

 private:
  struct Event {
    int64_t time;
    bool is_sent;
    uint32_t member;
    bool operator<(const Event& other) const {
      return std::tie(time, is_sent, member) < std::tie(other.time, other.is_sent, other.member);
    }
  };
  struct Sent {
    uint64_t value = 0;
    bool is_duplicate = false, is_needed = false;
  };
  struct Place {
    uint64_t value = 0;  // 0: none
    uint32_t writer = kNoJob;
    int64_t last_used = kNotNeeded;  // written, or sent
  };

  size_t TailOf(uint32_t job) const {
    return topology_.tail(schedule_.transfers[job].link).index();
  }
  size_t HeadOf(uint32_t job) const {
    return topology_.head(schedule_.transfers[job].link).index();
  }
  bool IsCopy(uint32_t job) const { return schedule_.transfers[job].op == TransferOp::kCopy; }

  void Forward(ShardId shard, std::span<const uint32_t> members,
               std::vector<std::pair<uint32_t, uint32_t>>& supplies) {
    const auto num_nodes = static_cast<size_t>(topology_.num_nodes());
    places_.assign(num_nodes, {});
    uint64_t new_value = num_nodes;
    for (NodeId rank : topology_.Ranks())
      if (schedule_.collective.contributors(shard).Contains(rank))
        places_[rank.index()].value = rank.index() + 1;
    for (const Event& event : events_) {
      const uint32_t job = members[event.member];
      Sent& sent = sent_[event.member];
      if (event.is_sent) {
        Place& from = places_[TailOf(job)];
        sent.value = from.value;
        from.last_used = event.time;
        if (from.writer != kNoJob) supplies.emplace_back(job, from.writer);
        continue;
      }
      Place& to = places_[HeadOf(job)];
      sent.is_duplicate = IsCopy(job) && to.value == sent.value;
      if (sent.is_duplicate) continue;
      if (to.last_used != kNotNeeded)
        jobs_[job].arrives_not_before =
            std::max(jobs_[job].arrives_not_before, std::min(jobs_[job].arrival, to.last_used + 1));
      to = {IsCopy(job) ? sent.value : ++new_value, job, event.time};
    }
  }

  bool Backward(ShardId shard, std::span<const uint32_t> members) {
    bool found = false;
    is_wanted_.assign(places_.size(), false);
    for (NodeId rank : topology_.Ranks())
      is_wanted_[rank.index()] = schedule_.collective.destinations(shard).Contains(rank);
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      const uint32_t index = members[event->member];
      Job& job = jobs_[index];
      Sent& sent = sent_[event->member];
      if (event->is_sent) {
        // Needed for another piece of it: then it sends this one too.
        if (sent.is_needed || job.is_needed) is_wanted_[TailOf(index)] = true;
        continue;
      }
      if (sent.is_duplicate) {
        job.stays = true;
        continue;
      }
      const size_t head = HeadOf(index);
      if (!is_wanted_[head]) continue;
      sent.is_needed = true;
      found = found || !job.is_needed;
      job.is_needed = true;
      if (IsCopy(index)) is_wanted_[head] = false;
    }
    return found;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  std::vector<Job>& jobs_;
  std::vector<Event> events_;
  std::vector<Sent> sent_;
  std::vector<Place> places_;
  std::vector<bool> is_wanted_;
};

// The transfers of each shard, in order of the schedule.
std::vector<std::vector<uint32_t>> ByShard(const Schedule& schedule) {
  std::vector<std::vector<uint32_t>> members(static_cast<size_t>(schedule.collective.num_shards()));
  for (uint32_t i = 0; i < schedule.transfers.size(); ++i)
    members[schedule.transfers[i].shard.index()].push_back(i);
  return members;
}

// The transfers of each piece of a shard: what lies between neighbouring ends of its intervals.
std::vector<std::vector<uint32_t>> ByPiece(const Schedule& schedule,
                                           const std::vector<uint32_t>& of_shard) {
  std::vector<int32_t> ends;
  for (const uint32_t i : of_shard) {
    ends.push_back(schedule.transfers[i].begin);
    ends.push_back(schedule.transfers[i].end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const auto place = [&ends](int32_t unit) {
    return static_cast<size_t>(std::lower_bound(ends.begin(), ends.end(), unit) - ends.begin());
  };
  std::vector<std::vector<uint32_t>> pieces(ends.size());
  for (const uint32_t i : of_shard)
    for (size_t piece = place(schedule.transfers[i].begin);
         piece < place(schedule.transfers[i].end); ++piece)
      pieces[piece].push_back(i);
  return pieces;
}

}  // namespace

Dataflow::Dataflow(const Topology& topology, const Schedule& schedule, std::vector<Job>& jobs)
    : first_supplier_(jobs.size() + 1, 0) {
  for (size_t i = 0; i < jobs.size(); ++i)
    jobs[i].stays = schedule.transfers[i].op == TransferOp::kReduce;
  std::vector<std::pair<uint32_t, uint32_t>> supplies, of_shard;
  Piece piece(topology, schedule, jobs);
  const std::vector<std::vector<uint32_t>> shards = ByShard(schedule);
  for (ShardId shard : schedule.collective.Shards()) {
    const std::vector<std::vector<uint32_t>> pieces = ByPiece(schedule, shards[shard.index()]);
    // What is needed for one piece is needed for all that it carries.
    for (bool again = true; again;) {
      again = false;
      of_shard.clear();
      for (const std::vector<uint32_t>& members : pieces)
        again = piece.Follow(shard, members, of_shard) || again;
      again = again && pieces.size() > 2;
    }
    supplies.insert(supplies.end(), of_shard.begin(), of_shard.end());
  }
  for (const auto& [job, supplier] : supplies) ++first_supplier_[size_t{job} + 1];
  std::partial_sum(first_supplier_.begin(), first_supplier_.end(), first_supplier_.begin());
  std::vector<uint32_t> next(first_supplier_.begin(), first_supplier_.end() - 1);
  supplier_.resize(supplies.size());
  for (const auto& [job, supplier] : supplies) supplier_[next[job]++] = supplier;
}

}  // namespace tutti::ten
