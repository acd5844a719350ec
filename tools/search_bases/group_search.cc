#include "group_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "evaluator.h"
#include "tutti/base/check.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/topo/metacyclic.h"

namespace tutti {
namespace {

// Draws that rank the groups, and how many groups are then searched.
constexpr int32_t kLooks = 300;
constexpr size_t kSearchedGroups = 10;

// r and r^j, j coprime to k, make the same group: the least of them stands for all.
bool IsLeastOfItsGroup(int64_t m, int64_t k, int64_t r) {
  int64_t power = 1;
  for (int64_t j = 1; j < k; ++j) {
    power = power * r % m;
    if (power < r && std::gcd(j, k) == 1) return false;
  }
  return true;
}

std::vector<MetacyclicGroup> GroupsOf(int32_t ranks) {
  std::vector<MetacyclicGroup> groups;
  for (int32_t m = 1; m <= ranks; ++m) {
    if (ranks % m != 0) continue;
    const int32_t k = ranks / m;
    for (int32_t r = 1; r < std::max(2, m); ++r) {
      // Z_m x Z_k is Z_k x Z_m, and Z_N when m and k are coprime.
      if (r == 1 && k != 1 && (m < k || std::gcd(m, k) == 1)) continue;
      if (std::gcd(r, m) != 1 || !IsLeastOfItsGroup(m, k, r)) continue;
      if (Result<MetacyclicGroup> group = MetacyclicGroup::Make(m, k, r))
        groups.push_back(*std::move(group));
    }
  }
  return groups;
}

class GroupSearch {
 public:
  explicit GroupSearch(const GroupSearchOptions& options)
      : options_(options),
        random_(options.seed * 1'000'003 + static_cast<uint64_t>(options.ranks)),
        records_(options.ranks),
        evaluator_(options.ranks, options.degree) {}

  std::vector<FoundDigraph> Run() {
    ForBestGroups([this](const MetacyclicGroup& group, int64_t draws) { SearchIn(group, draws); },
                  [this] { return IsIdeal(); });
    std::vector<FoundDigraph> result;
    for (const auto& [tl, found] : found_) result.push_back(found);
    return result;
  }

  std::vector<FoundDigraph> RunForLines() {
    const int32_t steps = MooreBoundSteps(options_.ranks * options_.degree, options_.degree) - 1;
    // What takes more steps or is not bandwidth-optimal is given up.
    records_.Add({1, evaluator_.OptimalUnits() + 1});
    records_.Add({steps + 1, 0});
    int64_t least = std::numeric_limits<int64_t>::max();
    const auto is_ideal = [&] { return least == evaluator_.OptimalLineUnits(); };
    FoundDigraph best;
    ForBestGroups(
        [&](const MetacyclicGroup& group, int64_t draws) {
          const LeftProducts products(group);
          Generators generators;
          for (int64_t i = 0; i < draws && !is_ideal(); ++i) {
            Cost cost;
            if (!Draw(group, generators) || !IsNew(group, products, generators, cost)) continue;
            const Generators inverses = Inverses(group, generators);
            const int64_t units = evaluator_.LineUnits(products, generators, inverses);
            if (units >= least || evaluator_.LineUnits(products, inverses, generators) > units)
              continue;
            least = units;
            best = {"line(" + RecipeOf(group, generators) + ")", cost.tl + 1,
                    evaluator_.LineTb(units)};
          }
        },
        is_ideal);
    if (best.recipe.empty()) return {};
    return {best};
  }

 private:
  // False: the group has too few elements of order 2 to close the set under inverses.
  bool Draw(const MetacyclicGroup& group, Generators& generators) {
    generators.clear();
    const auto degree = static_cast<size_t>(options_.degree);
    for (int32_t tries = 0; generators.size() < degree; ++tries) {
      if (tries > 100) return false;
      const auto others = static_cast<uint64_t>(options_.ranks - 1);
      const auto g = 1 + static_cast<int32_t>(random_.Below(others));
      if (std::find(generators.begin(), generators.end(), g) != generators.end()) continue;
      if (options_.bidirectional) {
        const int32_t inverse = group.Inverse(g);
        if (inverse != g) {
          if (generators.size() + 2 > degree) continue;
          generators.push_back(inverse);
        }
      }
      generators.push_back(g);
    }
    return true;
  }

  int64_t Look(const MetacyclicGroup& group) {
    const LeftProducts products(group);
    Generators generators;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int32_t i = 0; i < kLooks; ++i)
      if (Draw(group, generators))
        least = std::min(least, evaluator_.TotalLetters(products, generators));
    return least;
  }

  // search(group, draws) for those where words spread fastest, until done().
  template <class Search, class Done>
  void ForBestGroups(const Search& search, const Done& done) {
    std::vector<std::pair<int64_t, size_t>> ranking;
    const std::vector<MetacyclicGroup> groups = GroupsOf(options_.ranks);
    for (size_t i = 0; i < groups.size(); ++i) ranking.emplace_back(Look(groups[i]), i);
    std::sort(ranking.begin(), ranking.end());
    const size_t searched = std::min(ranking.size(), kSearchedGroups);
    for (size_t i = 0; i < searched && !done(); ++i)
      search(groups[ranking[i].second], options_.draws / static_cast<int64_t>(searched));
  }

  static Generators Inverses(const MetacyclicGroup& group, const Generators& generators) {
    Generators inverses;
    for (int32_t g : generators) inverses.push_back(group.Inverse(g));
    return inverses;
  }

  // Not beaten by what is known, and its reduce-scatter takes no longer: that is the all-gather of
  // the transpose, Cay(G, S^-1), turned round in time.
  bool IsNew(const MetacyclicGroup& group, const LeftProducts& products,
             const Generators& generators, Cost& cost) {
    Cost reverse;
    return evaluator_.Evaluate(products, generators, records_, cost) &&
           evaluator_.Evaluate(products, Inverses(group, generators), records_, reverse) &&
           reverse.units <= cost.units;
  }

  void SearchIn(const MetacyclicGroup& group, int64_t draws) {
    const LeftProducts products(group);
    Generators generators;
    for (int64_t i = 0; i < draws && !IsIdeal(); ++i) {
      Cost cost;
      if (!Draw(group, generators) || !IsNew(group, products, generators, cost)) continue;
      records_.Add(cost);
      Keep({RecipeOf(group, generators), cost.tl, evaluator_.Tb(cost.units)});
    }
  }

  static std::string RecipeOf(const MetacyclicGroup& group, Generators generators) {
    std::sort(generators.begin(), generators.end());
    std::string recipe = fmt::format("cayley({},{},{}", group.m(), group.k(), group.r());
    for (int32_t g : generators) recipe += fmt::format(",{},{}", group.A(g), group.B(g));
    return recipe + ")";
  }

  void Keep(FoundDigraph found) {
    for (auto it = found_.lower_bound(found.tl); it != found_.end() && it->second.tb >= found.tb;)
      it = found_.erase(it);
    found_[found.tl] = std::move(found);
  }

  // Nothing better is possible.
  bool IsIdeal() const {
    const int32_t least = options_.bidirectional
                              ? BidirectionalMooreBoundSteps(options_.ranks, options_.degree)
                              : MooreBoundSteps(options_.ranks, options_.degree);
    return records_.Beats(least, evaluator_.OptimalUnits());
  }

  GroupSearchOptions options_;
  Random random_;
  Records records_;
  Evaluator evaluator_;
  std::map<int32_t, FoundDigraph> found_;  // by tl
};

}  // namespace

std::vector<FoundDigraph> SearchGroups(const GroupSearchOptions& options) {
  TUTTI_CHECK(options.degree >= 1 && options.degree <= kMaxDegree);
  TUTTI_CHECK(options.ranks > options.degree && options.ranks <= kMaxRanks);
  return GroupSearch(options).Run();
}

std::vector<FoundDigraph> SearchLines(const GroupSearchOptions& options) {
  TUTTI_CHECK(options.degree >= 2 && options.degree <= kMaxDegree && !options.bidirectional);
  TUTTI_CHECK(options.ranks > options.degree && options.ranks <= kMaxRanks);
  return GroupSearch(options).RunForLines();
}

}  // namespace tutti
