// stored_search: finds the graphs behind `diamond` and `debruijn_mod(d,n)` and makes the schedules
// that `-a stored` ships. See README.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bases.h"
#include "chunk_search.h"
#include "programs.h"
#include "tutti/topo/expression.h"

namespace tutti::stored_search {
namespace {

// A wrong choice of graph fails here: what the library ships must be what the search finds.
Status ExpectShipped(const char* expression, const Result<SmallDigraph>& found) {
  if (!found) return tl::unexpected(found.error());
  const Result<Topology> shipped = ParseTopology(expression);
  if (!shipped) return tl::unexpected(shipped.error());
  if (shipped->Fingerprint() != found->ToTopology().Fingerprint())
    return MakeError(ErrorCode::kNotFound, fmt::format("{} is another graph", expression));
  fmt::print("  {} is this graph\n", expression);
  return {};
}

Status FindGraphs() {
  if (Status status = ExpectShipped("diamond", FindDiamond()); !status) return status;
  if (Status status = ExpectShipped("debruijn_mod(2,3)", FindRewired(2, 3, 4, true, {})); !status)
    return status;
  if (Status status = ExpectShipped(
          "debruijn_mod(2,4)", FindRewired(2, 4, 5, false, {{2, 0, 2.94e-3}, {2, 1, 6.18e-4}}));
      !status)
    return status;
  if (Status status = ExpectShipped("debruijn_mod(3,2)", FindRewired(3, 2, 3, false, {})); !status)
    return status;
  return ExpectShipped("debruijn_mod(4,2)",
                       FindRewired(4, 2, 3, false, {{1, 1, 2.21e-2}, {1, 2, 4.10e-3}}));
}

struct Spread {
  int chunks = 0;
  std::vector<int> loads;
  std::vector<Tree> trees;
};

// The fewest chunks, then the most in the first steps.
Result<Spread> FindSpread(const SmallDigraph& graph, int steps) {
  constexpr uint64_t kSeeds = 5;
  constexpr int64_t kRounds = 20'000;
  constexpr int kMaxTriedChunks = 16;
  for (int chunks = 1; chunks <= kMaxTriedChunks; ++chunks) {
    const int total = chunks * (graph.num_nodes() - 1);
    if (total % graph.degree() != 0) continue;
    std::optional<Spread> found;
    std::vector<int> loads;
    const auto extend = [&](const auto& self, int left) -> void {
      if (found) return;
      if (static_cast<int>(loads.size()) < steps) {
        for (int load = loads.empty() ? chunks : left; load >= 1; --load) {
          loads.push_back(load);
          if (load <= left) self(self, left - load);
          loads.pop_back();
        }
        return;
      }
      if (left != 0) return;
      std::vector<double> shards;
      for (int load : loads) shards.push_back(static_cast<double>(load) / chunks);
      if (!CanKeepTo(graph, shards)) return;
      for (uint64_t seed = 1; seed <= kSeeds && !found; ++seed)
        if (std::optional<std::vector<Tree>> trees =
                FindWholeChunks(graph, chunks, loads, seed, kRounds))
          found = Spread{chunks, loads, *std::move(trees)};
    };
    extend(extend, total / graph.degree());
    if (found) return *std::move(found);
  }
  return MakeError(ErrorCode::kNotFound, "no schedule in whole chunks found");
}

// A rank a pair of characters: whom it receives the chunk from, in base 16, and in which step.
std::string Text(const SmallDigraph& graph, const Tree& tree) {
  std::string text;
  for (size_t node = 0; node < tree.step.size(); ++node)
    text += static_cast<int>(node) == tree.root
                ? "--"
                : fmt::format("{:x}{}", graph.tail(tree.link[node]), tree.step[node]);
  return text;
}

Status PrintSchedules() {
  struct Wanted {
    const char *name, *expression;
    int steps;
  };
  const std::vector<Wanted> all{{"Diamond", "diamond", 3},
                                {"DiamondTransposed", "transpose(diamond)", 3},
                                {"DebruijnMod23", "debruijn_mod(2,3)", 4},
                                {"DebruijnMod24", "debruijn_mod(2,4)", 5},
                                {"DebruijnMod24Transposed", "transpose(debruijn_mod(2,4))", 5},
                                {"DebruijnMod32", "debruijn_mod(3,2)", 3},
                                {"DebruijnMod32Transposed", "transpose(debruijn_mod(3,2))", 3},
                                {"DebruijnMod42", "debruijn_mod(4,2)", 3},
                                {"DebruijnMod42Transposed", "transpose(debruijn_mod(4,2))", 3}};
  fmt::print(
      "// Made by tools/stored_search (stored_search schedules); trees.h says what it is.\n"
      "#include \"stored/trees.h\"\n\n"
      "#include <array>\n\n"
      "namespace tutti::stored {{\nnamespace {{\n\n"
      "using std::string_view;\n\n// clang-format off\n");
  std::string table;
  for (const Wanted& wanted : all) {
    const Result<Topology> topology = ParseTopology(wanted.expression);
    if (!topology) return tl::unexpected(topology.error());
    const std::optional<SmallDigraph> graph = SmallDigraph::Make(*topology);
    if (!graph) return InvalidArgument(fmt::format("{} does not fit", wanted.expression));
    const Result<Spread> spread = FindSpread(*graph, wanted.steps);
    if (!spread) return tl::unexpected(spread.error());
    fmt::print("// {}: chunks over every link, step by step: {}.\n", wanted.expression,
               fmt::join(spread->loads, ", "));
    fmt::print("constexpr std::array<string_view, {}> k{}{{\n", spread->trees.size(), wanted.name);
    for (size_t i = 0; i < spread->trees.size(); ++i)
      fmt::print("{}\"{}\",{}", i % static_cast<size_t>(spread->chunks) == 0 ? "    " : " ",
                 Text(*graph, spread->trees[i]),
                 (i + 1) % static_cast<size_t>(spread->chunks) == 0 ? "\n" : "");
    fmt::print("}};\n\n");
    table += fmt::format("      {{\"{}\", {}, {}, {}, k{}}},\n", wanted.expression,
                         graph->num_nodes(), wanted.steps, spread->chunks, wanted.name);
    std::fflush(stdout);
  }
  fmt::print(
      "// clang-format on\n\n}}  // namespace\n\n"
      "std::span<const StoredTrees> AllStoredTrees() {{\n"
      "  static const std::array<StoredTrees, {}> kAll{{{{\n{}  }}}};\n  return kAll;\n}}\n\n"
      "}}  // namespace tutti::stored\n",
      all.size(), table);
  return {};
}

int Main(std::string_view command) {
  Status status;
  if (command == "graphs")
    status = FindGraphs();
  else if (command == "schedules")
    status = PrintSchedules();
  else
    status = InvalidArgument("usage: stored_search graphs|schedules");
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return status.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
}

}  // namespace
}  // namespace tutti::stored_search

int main(int argc, char** argv) { return tutti::stored_search::Main(argc == 2 ? argv[1] : ""); }
