#include "genkautz.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base.h"
#include "tutti/base/check.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/symmetry.h"

namespace tutti::design {
namespace {

// Half-open, within [0, m).
struct Span {
  int32_t begin, end;
};

// A run of `length` consecutive in-links from `first`, as a cycle.
int32_t RunIndex(int32_t first, int32_t length, int32_t degree) {
  return (length - 1) * degree + first;
}

struct Event {
  int32_t rank, run, change;
};

// The sources behind one out-link of the transpose's, by what lies below its ends.
struct Arc {
  int32_t begin, new_below_begin, new_below_end;
};

class Counter {
 public:
  Counter(int32_t degree, int32_t ranks)
      : degree_(degree),
        ranks_(ranks),
        walks_(static_cast<size_t>(ranks)),
        reached_(static_cast<size_t>(ranks)),
        active_(static_cast<size_t>(degree) * static_cast<size_t>(degree)),
        within_(active_.size()),
        begin_(static_cast<size_t>(ranks) + 2) {
    for (int32_t v = 0; v < ranks; ++v) {
      walks_[static_cast<size_t>(v)] = v;
      reached_[static_cast<size_t>(v)] = {{v, v + 1}};
    }
  }

  GenkautzCost Run() {
    GenkautzCost cost;
    Rational loads, turned;
    for (int64_t walks = 1; Advance(walks); walks *= degree_) {
      ++cost.tl;
      loads += LargestLoad();
      turned += LargestRatio(max_turned_);
    }
    cost.tb = loads * Rational(degree_, ranks_);
    cost.reduce_scatter_tb = turned * Rational(degree_, ranks_);
    return cost;
  }

 private:
  // Walks one link longer from every source; `walks` is d^(t-1). False when all is reached.
  bool Advance(int64_t walks) {
    events_.clear();
    max_turned_.assign(static_cast<size_t>(degree_) + 1, 0);
    single_ = true;
    for (int32_t v = 0; v < ranks_; ++v) AdvanceFrom(v, walks);
    return !events_.empty();
  }

  void AdvanceFrom(int32_t v, int64_t walks) {
    std::vector<Span>& reached = reached_[static_cast<size_t>(v)];
    if (reached.size() == 1 && reached[0].begin == 0 && reached[0].end == ranks_) return;
    // I_{t-1} = [low, low + walks) before reduction; I_t ends before -d low.
    int64_t& low = walks_[static_cast<size_t>(v)];
    const int64_t last = -degree_ * low - 1;
    const int64_t first = last - degree_ * walks + 1;
    low = Residue(first);
    if (degree_ * walks <= ranks_)
      CountArcsApart(reached, low, static_cast<int32_t>(walks));
    else
      CountArcs(reached, low, static_cast<int32_t>(walks));
    // Number u is hit by u - k m for consecutive k: block -k of m numbers, the first and the last
    // of them only in part.
    const int64_t first_block = FloorDiv(first), last_block = FloorDiv(last);
    const auto first_at = static_cast<int32_t>(first - first_block * ranks_);
    const auto last_at = static_cast<int32_t>(last - last_block * ranks_) + 1;
    const int32_t cuts[] = {0, std::min(first_at, last_at), std::max(first_at, last_at), ranks_};
    for (int piece = 0; piece < 3; ++piece) {
      const Span span{cuts[piece], cuts[piece + 1]};
      if (span.begin == span.end) continue;
      const int64_t from = first_block + (span.begin >= first_at ? 0 : 1);
      const int64_t to = last_block - (span.end <= last_at ? 0 : 1);
      if (from > to) continue;
      // Blocks d apart are the same in-link: its tail modulo m.
      const auto length = static_cast<int32_t>(to - from + 1);
      TUTTI_DCHECK(length <= degree_);
      auto link = static_cast<int32_t>(from % degree_);
      if (link < 0) link += degree_;
      single_ = single_ && length == 1;
      AddUnreached(reached, span, RunIndex(link, length, degree_));
    }
    Reach(reached, first, last);
  }

  void AddUnreached(const std::vector<Span>& reached, Span span, int32_t run) {
    for (const Span& old : reached) {
      if (old.end <= span.begin) continue;
      if (old.begin >= span.end) break;
      if (span.begin < old.begin) AddEvents({span.begin, old.begin}, run);
      span.begin = old.end;
      if (span.begin >= span.end) return;
    }
    AddEvents(span, run);
  }

  void AddEvents(Span span, int32_t run) {
    events_.push_back({span.begin, run, 1});
    events_.push_back({span.end, run, -1});
  }

  // Adds the numbers first .. last modulo m to the sorted, disjoint spans.
  void Reach(std::vector<Span>& reached, int64_t first, int64_t last) {
    if (last - first + 1 >= ranks_) {
      reached = {{0, ranks_}};
      return;
    }
    const auto begin = static_cast<int32_t>(Residue(first));
    const auto end = static_cast<int32_t>(Residue(last)) + 1;
    if (begin < end) {
      Insert(reached, {begin, end});
    } else {
      Insert(reached, {begin, ranks_});
      Insert(reached, {0, end});
    }
  }

  static void Insert(std::vector<Span>& spans, Span added) {
    auto at = spans.begin();
    while (at != spans.end() && at->end < added.begin) ++at;
    auto past = at;
    for (; past != spans.end() && past->begin <= added.end; ++past) {
      added.begin = std::min(added.begin, past->begin);
      added.end = std::max(added.end, past->end);
    }
    spans.insert(spans.erase(at, past), added);
  }

  // Sweeps over the ranks u: the sources by run change only where an event is.
  Rational LargestLoad() {
    std::fill(begin_.begin(), begin_.end(), 0);
    for (const Event& event : events_) ++begin_[static_cast<size_t>(event.rank) + 1];
    for (size_t u = 1; u < begin_.size(); ++u) begin_[u] += begin_[u - 1];
    sorted_.resize(events_.size());
    for (const Event& event : events_)
      sorted_[static_cast<size_t>(begin_[static_cast<size_t>(event.rank)]++)] = event;
    // [runs of this length] the most sources that one of them must serve alone.
    max_loads_.assign(static_cast<size_t>(degree_) + 1, 0);
    int32_t sources = 0;
    for (size_t e = 0; e < sorted_.size();) {
      const int32_t rank = sorted_[e].rank;
      for (; e < sorted_.size() && sorted_[e].rank == rank; ++e) {
        active_[static_cast<size_t>(sorted_[e].run)] += sorted_[e].change;
        sources += sorted_[e].change;
      }
      if (rank == ranks_) break;
      max_loads_[static_cast<size_t>(degree_)] =
          std::max(max_loads_[static_cast<size_t>(degree_)], sources);
      if (single_)
        max_loads_[1] =
            std::max(max_loads_[1], *std::max_element(active_.begin(), active_.begin() + degree_));
      else
        CountWithinRuns();
    }
    return LargestRatio(max_loads_);
  }

  // [links] The most sources that so many links must serve alone.
  Rational LargestRatio(const std::vector<int32_t>& most) const {
    Rational load;
    for (int32_t links = 1; links <= degree_; ++links)
      load = std::max(load, Rational(most[static_cast<size_t>(links)], links));
    return load;
  }

  // Numbers in [0, x) that are not in `reached`.
  static int32_t NewBelow(const std::vector<Span>& reached, int32_t x) {
    int32_t count = x;
    for (const Span& old : reached) {
      if (old.begin >= x) break;
      count -= std::min(old.end, x) - old.begin;
    }
    return count;
  }

  // The transpose: arcs that do not overlap, so each is one link's own.
  void CountArcsApart(const std::vector<Span>& reached, int64_t low, int32_t length) {
    int32_t& most = max_turned_[1];
    auto begin = static_cast<int32_t>(low);
    for (int32_t a = 0; a < degree_; ++a) {
      const int32_t end = begin + length;
      int32_t count = NewBelow(reached, std::min(end, ranks_)) - NewBelow(reached, begin);
      if (end > ranks_) count += NewBelow(reached, end - ranks_);
      most = std::max(most, count);
      begin = end >= ranks_ ? end - ranks_ : end;
    }
  }

  // The transpose: arcs by where they start. Those from the p-th on, `inside` of them, are left out
  // of a set; what lies in the gap between them is for all others.
  void CountArcs(const std::vector<Span>& reached, int64_t low, int32_t length) {
    arcs_.clear();
    auto begin = static_cast<int32_t>(low);
    for (int32_t a = 0; a < degree_; ++a) {
      int32_t end = begin + length;
      if (end >= ranks_) end -= ranks_;
      arcs_.push_back({begin, NewBelow(reached, begin), NewBelow(reached, end)});
      begin = end;
    }
    std::sort(arcs_.begin(), arcs_.end(),
              [](const Arc& a, const Arc& b) { return a.begin < b.begin; });
    const int32_t all = NewBelow(reached, ranks_);
    int32_t& max_over_all = max_turned_[static_cast<size_t>(degree_)];
    max_over_all = std::max(max_over_all, all);
    for (int32_t p = 0; p < degree_; ++p) {
      const Arc& first = arcs_[static_cast<size_t>(p)];
      for (int32_t inside = 1; inside < degree_; ++inside) {
        const int32_t q = p + inside - 1;
        const bool wraps = q >= degree_;
        const Arc& last = arcs_[static_cast<size_t>(wraps ? q - degree_ : q)];
        const int32_t covered = last.begin + (wraps ? ranks_ : 0) - first.begin + length;
        if (covered >= ranks_) break;
        int32_t served = last.new_below_end - first.new_below_begin;
        if (first.begin + covered >= ranks_) served += all;
        int32_t& most = max_turned_[static_cast<size_t>(degree_ - inside)];
        most = std::max(most, all - served);
      }
    }
  }

  // Sources within a run = those of exactly it, and those within it without its first or its last
  // in-link, of which those without both were counted twice.
  void CountWithinRuns() {
    for (int32_t length = 1; length < degree_; ++length) {
      int32_t& most = max_loads_[static_cast<size_t>(length)];
      for (int32_t first = 0; first < degree_; ++first) {
        const int32_t second = first + 1 == degree_ ? 0 : first + 1;
        const int32_t at = RunIndex(first, length, degree_);
        int32_t within = active_[static_cast<size_t>(at)];
        if (length > 1)
          within += within_[static_cast<size_t>(at - degree_)] +
                    within_[static_cast<size_t>(RunIndex(second, length - 1, degree_))];
        if (length > 2)
          within -= within_[static_cast<size_t>(RunIndex(second, length - 2, degree_))];
        within_[static_cast<size_t>(at)] = within;
        most = std::max(most, within);
      }
    }
  }

  int64_t FloorDiv(int64_t number) const {
    return number >= 0 ? number / ranks_ : -((-number + ranks_ - 1) / ranks_);
  }
  int64_t Residue(int64_t number) const { return number - FloorDiv(number) * ranks_; }

  const int32_t degree_;
  const int32_t ranks_;
  std::vector<int64_t> walks_;              // the low end of I_{t-1}(v)
  std::vector<std::vector<Span>> reached_;  // within t - 1 links of v: sorted, apart
  std::vector<Event> events_, sorted_;
  std::vector<int32_t> active_, within_;  // sources of a rank by the run, and within it
  std::vector<int32_t> begin_, max_loads_, max_turned_;
  std::vector<Arc> arcs_;
  bool single_ = true;  // every run is one in-link
};

}  // namespace

GenkautzCost ComputeGenkautzCost(int32_t degree, int32_t ranks) {
  TUTTI_CHECK(degree >= 2 && ranks > degree);
  return Counter(degree, ranks).Run();
}

namespace {

// With d | m it is the line digraph of genkautz(d,m/d), and a line digraph is reverse-symmetric
// when its base is. What is left below d^2 is small enough to look; above, none was ever found.
bool IsReverseSymmetric(int32_t degree, int32_t ranks) {
  while (ranks >= degree * degree && ranks % degree == 0) ranks /= degree;
  if (ranks == degree) return true;  // complete, with a self-loop everywhere
  if (ranks > degree * degree) return false;
  const Result<Topology> topology = ParseTopology(fmt::format("genkautz({},{})", degree, ranks));
  return topology && FindReverseSymmetry(*topology).outcome == IsomorphismSearch::Outcome::kFound;
}

}  // namespace

void ListGenkautz(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree < 2 || ranks <= degree) return;
  const GenkautzCost cost = ComputeGenkautzCost(degree, ranks);
  BaseEntry entry;
  entry.recipe = fmt::format("genkautz({},{})", degree, ranks);
  entry.ranks = ranks;
  entry.degree = degree;
  entry.tl = entry.diameter = cost.tl;
  entry.tb = cost.tb;
  if (cost.reduce_scatter_tb != cost.tb) entry.reduce_scatter = {cost.tl, cost.reduce_scatter_tb};
  entry.bfb = true;
  entry.bidirectional = ranks == degree + 1;  // the complete graph
  entry.reverse_symmetric = !entry.reduce_scatter && IsReverseSymmetric(degree, ranks);
  // (d + 1) x = -a modulo m has a solution with 1 <= a <= d unless d + 1 divides m.
  entry.self_loops = ranks % (degree + 1) != 0;
  entry.simple = !entry.self_loops;
  entries.push_back(std::move(entry));
}

}  // namespace tutti::design
