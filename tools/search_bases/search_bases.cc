// Makes src/design/found_table.inc: Cayley digraphs that beat or add to the frontiers of the
// topology finder. README.md says how.
//   search_bases search DEGREE FIRST LAST DRAWS SEED [bidirectional]
//   search_bases circulants DEGREE FIRST LAST
//   search_bases table FILE...
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
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
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

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

struct Line {
  int32_t degree = 0, ranks = 0, tl = 0;
  std::string tb, recipe;
};

// Whether the finder, with the bases kept so far, has nothing at least as good with the same
// properties that count: anything, or among bidirectional networks.
bool Adds(const std::vector<design::BaseEntry>& kept, const design::BaseEntry& entry) {
  design::Search search(kept, "found");
  for (const design::Candidate* known : search.All(entry.ranks, entry.degree).candidates())
    if (known->tl <= entry.tl && known->tb <= entry.tb &&
        (known->has(design::kBidirectional) || !entry.bidirectional))
      return false;
  return true;
}

int Table(const std::vector<std::string>& files) {
  std::vector<Line> lines;
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) return Fail("cannot read " + file);
    for (std::string text; std::getline(in, text);) {
      std::istringstream words(text);
      Line line;
      words >> line.degree >> line.ranks >> line.tl >> line.tb >> line.recipe;
      if (!words) return Fail(fmt::format("{}: not a line of a search: {}", file, text));
      lines.push_back(std::move(line));
    }
  }
  // Small before large: a large one may be an expansion of a small one. Of one size the best first.
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::tie(a.ranks, a.degree, a.tl, a.recipe) <
           std::tie(b.ranks, b.degree, b.tl, b.recipe);
  });
  std::vector<design::BaseEntry> kept;
  for (const Line& line : lines) {
    const Result<Topology> topology = ParseTopology(line.recipe);
    if (!topology) return Fail(topology.error().message);
    Result<design::BaseEntry> entry = design::MeasureBase(*topology);
    if (!entry) return Fail(entry.error().message);
    if (entry->tl != line.tl || entry->tb.ToString() != line.tb)
      return Fail(fmt::format("{}: measured {} and {}, found {} and {}", line.recipe, entry->tl,
                              entry->tb.ToString(), line.tl, line.tb));
    if (Adds(kept, *entry)) kept.push_back(*std::move(entry));
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
    fmt::print("{{{}, {}, {}, {}, {}, {}, \"{}\"}},\n", entry.degree, entry.ranks, entry.tl,
               entry.tb.NumString(), entry.tb.DenString(), flags.empty() ? "0" : flags,
               entry.recipe);
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2 && words[0] == "table") return Table({words.begin() + 1, words.end()});
  if (words.size() == 4 && words[0] == "circulants")
    return Circulants(std::atoi(words[1].c_str()), std::atoi(words[2].c_str()),
                      std::atoi(words[3].c_str()));
  if (words.size() < 6 || words[0] != "search")
    return Fail(
        "wanted: search DEGREE FIRST LAST DRAWS SEED [bidirectional], circulants DEGREE FIRST "
        "LAST, or table FILE...");
  GroupSearchOptions options;
  options.degree = std::atoi(words[1].c_str());
  options.draws = std::atoll(words[4].c_str());
  options.seed = std::strtoull(words[5].c_str(), nullptr, 10);
  options.bidirectional = words.size() > 6 && words[6] == "bidirectional";
  return Search(options, std::atoi(words[2].c_str()), std::atoi(words[3].c_str()));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
