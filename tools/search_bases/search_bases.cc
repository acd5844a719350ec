// Makes src/design/found_table.inc: Cayley digraphs that beat or add to the frontiers of the
// topology finder. README.md says how.
//   search_bases search DEGREE FIRST LAST DRAWS SEED [bidirectional]
//   search_bases lines DEGREE FIRST LAST DRAWS SEED
//   search_bases circulants DEGREE FIRST LAST
//   search_bases table FILE...
//   search_bases compare DEGREE FIRST LAST [bidirectional]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "circulants.h"
#include "group_search.h"
#include "own_base.h"
#include "search.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

// Line digraphs of rows are tried up to this size.
constexpr int32_t kMaxLineRanks = 1024;

int Fail(const std::string& message) {
  fmt::print(stderr, "search_bases: {}\n", message);
  return 2;
}

// Lines `degree ranks tl tb recipe`.
int Search(GroupSearchOptions options, int32_t first, int32_t last) {
  for (options.ranks = std::max(first, options.degree + 1); options.ranks <= last;
       ++options.ranks) {
    for (const FoundDigraph& found : SearchGroups(options))
      fmt::print("{} {} {} {} {}\n", options.degree, options.ranks, found.tl, found.tb.ToString(),
                 found.recipe);
    std::fflush(stdout);
  }
  return 0;
}

// The same lines for line digraphs of Cayley digraphs of FIRST to LAST ranks.
int Lines(GroupSearchOptions options, int32_t first, int32_t last) {
  for (options.ranks = std::max(first, options.degree + 1); options.ranks <= last;
       ++options.ranks) {
    for (const FoundDigraph& found : SearchLines(options))
      fmt::print("{} {} {} {} {}\n", options.degree, options.ranks * options.degree, found.tl,
                 found.tb.ToString(), found.recipe);
    std::fflush(stdout);
  }
  return 0;
}

// The same lines; what is not bandwidth-optimal goes to stderr.
int Circulants(int32_t degree, int32_t first, int32_t last) {
  int64_t circulants = 0, contrary = 0;
  for (int32_t ranks = std::max(first, degree + 1); ranks <= last; ++ranks) {
    const CirculantSurvey survey = SurveyCirculants(ranks, degree);
    circulants += survey.circulants;
    if (survey.contrary) {
      ++contrary;
      fmt::print(stderr, "not bandwidth-optimal: {}\n", *survey.contrary);
    }
    if (!survey.best.empty())
      fmt::print("{} {} {} {}/{} {}\n", degree, ranks, survey.best_tl, ranks - 1, ranks,
                 survey.best);
    std::fflush(stdout);
  }
  fmt::print(stderr, "degree {}, {} to {} ranks: {} circulants, {} sizes with a contrary one\n",
             degree, first, last, circulants, contrary);
  return 0;
}

// What may become a row: line(recipe,lines), or the recipe itself.
struct Line {
  int32_t ranks = 0, degree = 0, tl = 0;
  std::string tb;  // empty: not known
  std::string recipe;
  int32_t lines = 0;

  std::string Recipe() const {
    if (lines == 0) return recipe;
    return lines == 1 ? fmt::format("line({})", recipe) : fmt::format("line({},{})", recipe, lines);
  }
  // Small before large: a large one may be an expansion of a small one. Of one size the best first.
  friend bool operator<(const Line& a, const Line& b) {
    return std::tie(a.ranks, a.degree, a.tl, a.lines, a.recipe) <
           std::tie(b.ranks, b.degree, b.tl, b.lines, b.recipe);
  }
};

// Whether the finder, with the bases kept so far, has nothing whose all-gather is at least as good
// with the same properties that count: anything, or among bidirectional networks.
bool Adds(const std::vector<design::BaseEntry>& kept, const design::BaseEntry& entry) {
  design::Search search(kept, "found");
  for (const design::Candidate* known : search.All(entry.ranks, entry.degree).candidates())
    if (known->tl <= entry.tl && known->tb <= entry.tb &&
        (known->has(design::kBidirectional) || !entry.bidirectional))
      return false;
  return true;
}

bool ReadLines(const std::string& file, std::set<Line>& lines) {
  std::ifstream in(file);
  if (!in) return false;
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.degree >> line.ranks >> line.tl >> line.tb >> line.recipe;
    if (!words) return false;
    constexpr std::string_view kLine = "line(";
    if (line.recipe.compare(0, kLine.size(), kLine) == 0) {
      line.recipe = line.recipe.substr(kLine.size(), line.recipe.size() - kLine.size() - 1);
      line.lines = 1;
    }
    lines.insert(std::move(line));
  }
  return true;
}

int Table(const std::vector<std::string>& files) {
  std::set<Line> lines;
  for (const std::string& file : files)
    if (!ReadLines(file, lines)) return Fail(file + ": cannot read, or not lines of a search");
  std::vector<design::BaseEntry> kept;
  for (; !lines.empty(); lines.erase(lines.begin())) {
    const Line& line = *lines.begin();
    const Result<Topology> topology = ParseTopology(line.Recipe());
    if (!topology) return Fail(topology.error().message);
    Result<design::BaseEntry> entry = design::MeasureBase(*topology);
    if (!entry) return Fail(entry.error().message);
    if (!line.tb.empty() && (entry->tl != line.tl || entry->tb.ToString() != line.tb))
      return Fail(fmt::format("{}: measured {} and {}, found {} and {}", line.Recipe(), entry->tl,
                              entry->tb.ToString(), line.tl, line.tb));
    entry->expand = line.lines == 0;
    if (!Adds(kept, *entry)) continue;
    kept.push_back(*std::move(entry));
    // Its line digraph may take less than theorem 10 says, which is what the finder counts with.
    if (line.degree >= 2 && line.ranks * line.degree <= kMaxLineRanks)
      lines.insert(Line{line.ranks * line.degree, line.degree, line.tl + 1, "", line.recipe,
                        line.lines + 1});
  }
  std::sort(kept.begin(), kept.end(), [](const design::BaseEntry& a, const design::BaseEntry& b) {
    return std::tie(a.degree, a.ranks, a.tl, a.recipe) <
           std::tie(b.degree, b.ranks, b.tl, b.recipe);
  });
  for (const design::BaseEntry& entry : kept) {
    std::string flags;
    const auto add = [&flags](bool has, const char* name) {
      if (has) flags += (flags.empty() ? "" : " | ") + std::string(name);
    };
    add(entry.bidirectional, "kBoth");
    add(entry.reverse_symmetric, "kReverse");
    std::string back;
    if (entry.reduce_scatter)
      back = fmt::format(", {}, {}", entry.reduce_scatter->tb.NumString(),
                         entry.reduce_scatter->tb.DenString());
    fmt::print("{{{}, {}, {}, {}, {}, {}, \"{}\"{}}},\n", entry.degree, entry.ranks, entry.tl,
               entry.tb.NumString(), entry.tb.DenString(), flags.empty() ? "0" : flags,
               entry.recipe, back);
  }
  return 0;
}

struct Point {
  int32_t tl = 0;
  Rational tb;
  std::string recipe;
};

// The frontier in (tl, tb) of all candidates, or of those with a property.
std::vector<Point> PointsOf(design::Search& search, int32_t ranks, int32_t degree,
                            uint32_t wanted) {
  std::vector<Point> points;
  for (const design::Candidate* known : search.All(ranks, degree).candidates())
    if (known->has(wanted) && (points.empty() || known->tb < points.back().tb))
      points.push_back({known->tl, known->tb, known->recipe});
  return points;
}

bool IsBeaten(const Point& point, const std::vector<Point>& by) {
  return std::any_of(by.begin(), by.end(), [&](const Point& other) {
    return other.tl <= point.tl && other.tb <= point.tb &&
           (other.tl < point.tl || other.tb < point.tb);
  });
}

std::string ToText(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points)
    text += fmt::format("  {} {:.4f} {}", point.tl, point.tb.ToDouble(), point.recipe);
  return text;
}

// The frontiers with and without the table, and what the table changes in all.
int Compare(int32_t degree, int32_t first, int32_t last, bool bidirectional) {
  const uint32_t wanted = bidirectional ? uint32_t{design::kBidirectional} : 0U;
  int32_t sizes = 0, changed = 0, beaten = 0, points = 0, ideal = 0, ideal_without = 0;
  for (int32_t ranks = std::max(first, degree + 1); ranks <= last; ++ranks) {
    design::Search with_table, without_table({}, "found");
    const std::vector<Point> with = PointsOf(with_table, ranks, degree, wanted);
    const std::vector<Point> without = PointsOf(without_table, ranks, degree, wanted);
    const auto is_ideal = [&](const std::vector<Point>& frontier) {
      const int32_t least = bidirectional ? BidirectionalMooreBoundSteps(ranks, degree)
                                          : MooreBoundSteps(ranks, degree);
      return !frontier.empty() && frontier.front().tl == least &&
             frontier.front().tb == BestTb(ranks);
    };
    const auto lost = static_cast<int32_t>(std::count_if(
        without.begin(), without.end(), [&](const Point& point) { return IsBeaten(point, with); }));
    ++sizes;
    changed += lost > 0 || with.size() != without.size() ? 1 : 0;
    points += static_cast<int32_t>(without.size());
    beaten += lost;
    ideal += is_ideal(with) ? 1 : 0;
    ideal_without += is_ideal(without) ? 1 : 0;
    fmt::print("{}\n  with:{}\n  without:{}\n", ranks, ToText(with), ToText(without));
  }
  fmt::print(
      "degree {}, {} sizes: the frontier of {} changes, {} of {} points are beaten; both bounds "
      "are "
      "met at {} sizes, without the table at {}\n",
      degree, sizes, changed, beaten, points, ideal, ideal_without);
  return 0;
}

int Main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2 && words[0] == "table") return Table({words.begin() + 1, words.end()});
  if (words.size() >= 4 && words[0] == "compare")
    return Compare(std::atoi(words[1].c_str()), std::atoi(words[2].c_str()),
                   std::atoi(words[3].c_str()), words.size() > 4 && words[4] == "bidirectional");
  if (words.size() == 4 && words[0] == "circulants")
    return Circulants(std::atoi(words[1].c_str()), std::atoi(words[2].c_str()),
                      std::atoi(words[3].c_str()));
  if (words.size() < 6 || (words[0] != "search" && words[0] != "lines"))
    return Fail(
        "wanted: search DEGREE FIRST LAST DRAWS SEED [bidirectional], lines DEGREE FIRST LAST "
        "DRAWS SEED, circulants DEGREE FIRST LAST, compare DEGREE FIRST LAST [bidirectional], or "
        "table FILE...");
  GroupSearchOptions options;
  options.degree = std::atoi(words[1].c_str());
  options.draws = std::atoll(words[4].c_str());
  options.seed = std::strtoull(words[5].c_str(), nullptr, 10);
  options.bidirectional = words.size() > 6 && words[6] == "bidirectional";
  if (words[0] == "lines")
    return Lines(options, std::atoi(words[2].c_str()), std::atoi(words[3].c_str()));
  return Search(options, std::atoi(words[2].c_str()), std::atoi(words[3].c_str()));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
