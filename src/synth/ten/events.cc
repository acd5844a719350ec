#include "ten/events.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "tutti/base/random.h"

namespace tutti::ten {
namespace {

// Ranks that are joined by links, whatever their direction.
class Groups {
 public:
  explicit Groups(size_t num_ranks) : parent_(num_ranks) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }
  uint32_t Find(uint32_t rank) {
    while (parent_[rank] != rank) rank = parent_[rank] = parent_[parent_[rank]];
    return rank;
  }
  void Join(uint32_t a, uint32_t b) { parent_[Find(b)] = Find(a); }

 private:
  std::vector<uint32_t> parent_;
};

class Bits {
 public:
  Bits(size_t rows, size_t columns) : words_((columns + 63) / 64), bits_(rows * words_, 0) {}
  bool Test(size_t row, size_t column) const { return Test(Row(row), column); }
  const uint64_t* Row(size_t row) const { return bits_.data() + row * words_; }
  static bool Test(const uint64_t* row, size_t column) {
    return (row[column / 64] >> (column % 64) & 1) != 0;
  }
  void Set(size_t row, size_t column) {
    bits_[row * words_ + column / 64] |= uint64_t{1} << (column % 64);
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

// Links of one cost, and the groups that cheaper links join.
struct Tier {
  int64_t travel_ps;
  std::vector<uint32_t> group_of_rank;  // rows of `promised`; empty where nothing is joined
  Bits promised{0, 0};                  // chunks on their way to, or at, a rank of the group
  // What the cheaper in-links of a rank together take for one chunk; 0: it has none.
  std::vector<int64_t> faster_ps;
};

class EventMatcher {
 public:
  explicit EventMatcher(const EventsProblem& problem)
      : problem_(problem),
        topology_(problem.topology),
        num_ranks_(static_cast<size_t>(topology_.num_ranks())),
        num_chunks_(problem.source.size()),
        promised_(num_ranks_, num_chunks_),
        num_left_(static_cast<int64_t>(num_ranks_ * num_chunks_)),
        num_lacking_(num_ranks_, static_cast<int64_t>(num_chunks_)),
        rule_(problem.policy.make({topology_, problem.source, problem.time, problem.seed})),
        window_(problem.policy.takes_first ? 1 : problem.window),
        arrivals_(num_ranks_),
        links_(static_cast<size_t>(topology_.num_links())) {
    MakeTiers();
    for (size_t c = 0; c < num_chunks_; ++c) {
      const size_t rank = problem.source[c].index();
      Promise(rank, static_cast<uint32_t>(c));
      arrivals_[rank].push_back(static_cast<uint32_t>(c));
    }
  }

  int64_t num_left() const { return num_left_; }

  LinkTime TimeOf(uint32_t l, uint32_t) const { return problem_.time[l]; }

  bool Before(uint32_t a, uint32_t b) const {
    const Link &x = links_[a], &y = links_[b];
    return std::tie(x.tier, x.priority, a) < std::tie(y.tier, y.priority, b);
  }

  void SetNetworkIdle(bool idle) { network_idle_ = idle; }

  void Start(uint32_t l, uint32_t chunk) { Promise(links_[l].head, chunk); }

  void Arrive(uint32_t l, uint32_t chunk) { arrivals_[links_[l].head].push_back(chunk); }

  // Whether the head lacks it, and will not get it over links that are faster.
  bool Wants(uint32_t l, uint32_t chunk) const {
    const Link& link = links_[l];
    const Tier& tier = tiers_[link.tier];
    if (promised_.Test(link.head, chunk)) return false;
    return tier.group_of_rank.empty() || !tier.promised.Test(tier.group_of_rank[link.head], chunk);
  }

  // Whether the head lacks anything that is not on its way to it.
  bool HeadLacks(uint32_t l) const { return num_lacking_[links_[l].head] > 0; }

  // What the idle link takes now, or kNoChunk.
  uint32_t Choose(uint32_t l) {
    if (!HeadLacks(l)) return kNoChunk;
    Link& link = links_[l];
    const Tier& tier = tiers_[link.tier];
    const std::vector<uint32_t>& list = arrivals_[link.tail];
    const bool has_groups = !tier.group_of_rank.empty();
    const uint64_t* const promised = promised_.Row(link.head);
    const uint64_t* const promised_to_group =
        has_groups ? tier.promised.Row(tier.group_of_rank[link.head]) : nullptr;
    const size_t reach = kReach * window_;
    // Entries before `keep` are held at the head or put off.
    candidates_.clear();
    size_t keep = link.cursor;
    for (size_t i = link.cursor;
         i < list.size() && i < keep + reach && candidates_.size() < window_; ++i) {
      const uint32_t chunk = list[i];
      if (Bits::Test(promised, chunk)) {
        if (i == keep) ++keep;
      } else if (has_groups && Bits::Test(promised_to_group, chunk)) {
        if (i != keep) continue;
        link.deferred.push_back(chunk);
        ++keep;
      } else {
        candidates_.push_back(chunk);
      }
    }
    link.cursor = static_cast<uint32_t>(keep);
    if (!candidates_.empty()) return rule_->Choose(l, candidates_);
    if (!PaysToSend(link, tier)) return kNoChunk;
    for (size_t i = link.deferred_cursor;
         i < link.deferred.size() && i < link.deferred_cursor + reach &&
         candidates_.size() < window_;
         ++i) {
      const uint32_t chunk = link.deferred[i];
      if (!Bits::Test(promised, chunk))
        candidates_.push_back(chunk);
      else if (i == link.deferred_cursor)
        ++link.deferred_cursor;
    }
    return candidates_.empty() ? kNoChunk : rule_->Choose(l, candidates_);
  }

 private:
  // How many windows behind the cursor are looked at when much there is held already.
  static constexpr size_t kReach = 4;

  struct Link {
    uint32_t tail = 0, head = 0;
    uint32_t tier = 0;
    uint64_t priority = 0;
    uint32_t cursor = 0;             // into the arrivals of the tail
    std::vector<uint32_t> deferred;  // chunks that faster links may bring, in order of the cursor
    size_t deferred_cursor = 0;
  };

  void MakeTiers() {
    std::map<int64_t, uint32_t> tier_of_cost;
    for (const LinkTime& time : problem_.time) tier_of_cost.emplace(time.travel_ps, 0);
    uint32_t next = 0;
    for (auto& [cost, tier] : tier_of_cost) {
      tier = next++;
      tiers_.push_back({cost, {}, Bits(0, 0), {}});
    }
    Random random(problem_.seed);
    for (LinkId id : topology_.Links()) {
      Link& link = links_[id.index()];
      link.tail = static_cast<uint32_t>(topology_.tail(id).value);
      link.head = static_cast<uint32_t>(topology_.head(id).value);
      link.tier = tier_of_cost.at(problem_.time[id.index()].travel_ps);
      link.priority = problem_.seed == 1 ? id.index() : random.Next();
    }
    if (!problem_.waits) return;
    for (uint32_t t = 1; t < tiers_.size(); ++t) MakeGroups(t);
  }

  void MakeGroups(uint32_t t) {
    Tier& tier = tiers_[t];
    Groups groups(num_ranks_);
    std::vector<double> rate(num_ranks_, 0);
    for (size_t l = 0; l < links_.size(); ++l) {
      if (links_[l].tier >= t) continue;
      groups.Join(links_[l].tail, links_[l].head);
      rate[links_[l].head] += 1.0 / static_cast<double>(problem_.time[l].hold_ps);
    }
    tier.group_of_rank.resize(num_ranks_);
    std::map<uint32_t, uint32_t> row_of_root;
    for (uint32_t rank = 0; rank < num_ranks_; ++rank)
      tier.group_of_rank[rank] =
          row_of_root.emplace(groups.Find(rank), static_cast<uint32_t>(row_of_root.size()))
              .first->second;
    tier.promised = Bits(row_of_root.size(), num_chunks_);
    tier.faster_ps.resize(num_ranks_);
    for (size_t rank = 0; rank < num_ranks_; ++rank)
      tier.faster_ps[rank] = rate[rank] > 0 ? static_cast<int64_t>(1.0 / rate[rank]) : 0;
  }

  void Promise(size_t rank, uint32_t chunk) {
    promised_.Set(rank, chunk);
    --num_lacking_[rank];
    --num_left_;
    rule_->Promised(chunk);
    for (Tier& tier : tiers_)
      if (!tier.group_of_rank.empty()) tier.promised.Set(tier.group_of_rank[rank], chunk);
  }

  // Whether a chunk sent now arrives before the faster links could have brought everything.
  bool PaysToSend(const Link& link, const Tier& tier) const {
    if (link.deferred_cursor == link.deferred.size()) return false;
    const int64_t faster_ps = tier.faster_ps[link.head];
    if (faster_ps == 0 || network_idle_) return true;
    __extension__ using Wide = __int128;
    return static_cast<Wide>(tier.travel_ps) <
           static_cast<Wide>(faster_ps) * num_lacking_[link.head];
  }

  const EventsProblem& problem_;
  const Topology& topology_;
  size_t num_ranks_, num_chunks_;
  std::vector<Tier> tiers_;  // the cheapest first
  Bits promised_;            // chunks on their way to, or at, each rank
  int64_t num_left_;
  std::vector<int64_t> num_lacking_;
  std::unique_ptr<ChunkRule> rule_;
  size_t window_;
  std::vector<uint32_t> candidates_;
  bool network_idle_ = false;
  std::vector<std::vector<uint32_t>> arrivals_;
  std::vector<Link> links_;
};

}  // namespace

Result<int64_t> MatchEvents(const EventsProblem& problem, int64_t max_ps, const SendSink& sink) {
  EventMatcher matcher(problem);
  return RunEvents(problem.topology, matcher, max_ps, sink);
}

Result<int64_t> MatchThroughSwitches(const EventsProblem& problem, const SwitchPaths& paths,
                                     SwitchUse use, int64_t max_ps, const SendSink& sink) {
  EventMatcher matcher(problem);
  return SwitchedEvents<EventMatcher>(paths, matcher, use, sink).Run(max_ps);
}

}  // namespace tutti::ten
