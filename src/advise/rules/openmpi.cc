// --to openmpi, --to openmpi-json: rules for the component coll_tuned of Open MPI.
//
// Model       The classic file is for every version. Of a collective it has communicator sizes in
//             ascending order, and a communicator takes the largest that is not above its own:
//             each size that there are rules for is therefore followed by one with algorithm 0,
//             Open MPI's own choice, as is everything below the first. Messages likewise. The file
//             of version 6 names ranges, and tells communicators on one node from others.
// Units       Open MPI counts what we count: of all-gather the bytes of all blocks.
// Reference   docs/formats/rules.md
#include <fmt/format.h>

#include <map>

#include "rule_formats.h"

namespace tutti::rules {
namespace {

struct OpenMpiName {
  CollectiveKind kind;
  int32_t number;
  std::string_view name;
};
constexpr OpenMpiName kOpenMpiNames[] = {{CollectiveKind::kAllGather, 0, "allgather"},
                                         {CollectiveKind::kAllReduce, 2, "allreduce"},
                                         {CollectiveKind::kReduceScatter, 12, "reducescatter"}};

// By collective, in the order above.
using ByCollective = std::vector<std::pair<OpenMpiName, std::vector<const CollectiveRules*>>>;

ByCollective Group(const std::vector<CollectiveRules>& rules) {
  ByCollective groups;
  for (const OpenMpiName& name : kOpenMpiNames) {
    std::vector<const CollectiveRules*> of_name;
    for (const CollectiveRules& one : rules)
      if (one.kind == name.kind) of_name.push_back(&one);
    if (!of_name.empty()) groups.emplace_back(name, of_name);
  }
  return groups;
}

// Lines "size algorithm fan segment" of each communicator size.
Result<std::string> WriteClassic(const RuleFormat& format,
                                 const std::vector<CollectiveRules>& rules, std::string_view) {
  const ByCollective groups = Group(rules);
  std::string text = fmt::format("{} # collectives\n", groups.size());
  for (const auto& [name, of_name] : groups) {
    constexpr std::string_view kOwnChoice = "1 # sizes\n0 0 0 0 # Open MPI's own choice\n";
    std::map<int32_t, std::string> by_ranks = {{0, std::string(kOwnChoice)}};
    for (const CollectiveRules* one : of_name) {
      if (by_ranks.contains(one->ranks) && by_ranks[one->ranks] != kOwnChoice)
        return InvalidArgument(
            fmt::format("two rules for {} among {} ranks: this file cannot tell nodes apart",
                        Name(one->kind), one->ranks));
      std::string& lines = by_ranks[one->ranks] = fmt::format("{} # sizes\n", one->sizes.size());
      for (const SizeRule& rule : one->sizes) {
        const LibraryAlgorithm& algorithm = *format.Find(one->kind, rule.ours);
        lines +=
            fmt::format("{} {} 0 0 # {}\n", rule.from_bytes, algorithm.number, algorithm.theirs);
      }
      by_ranks.try_emplace(one->ranks + 1, kOwnChoice);
    }
    text +=
        fmt::format("{} # {}\n{} # communicator sizes\n", name.number, name.name, by_ranks.size());
    for (const auto& [ranks, lines] : by_ranks) text += fmt::format("{} # ranks\n{}", ranks, lines);
  }
  return text;
}

std::string_view Distribution(const CollectiveRules& rules) {
  if (rules.nodes == 1) return "single-node";
  return rules.nodes == rules.ranks ? "one-per-node" : "any";
}

std::string JsonOf(const RuleFormat& format, const CollectiveRules& rules) {
  std::string text = fmt::format(
      "      {{\"comm_size_min\": {0}, \"comm_size_max\": {0}, \"comm_rank_distribution\": "
      "\"{1}\", \"rules\": [",
      rules.ranks, Distribution(rules));
  for (size_t i = 0; i < rules.sizes.size(); ++i)
    text += fmt::format(
        "{}\n        {{\"msg_size_min\": {}, \"msg_size_max\": {}, \"alg\": {}}}",
        i == 0 ? "" : ",", rules.sizes[i].from_bytes,
        i + 1 < rules.sizes.size() ? std::to_string(rules.sizes[i + 1].from_bytes - 1) : "\"inf\"",
        format.Find(rules.kind, rules.sizes[i].ours)->number);
  return text + "]}";
}

Result<std::string> WriteJson(const RuleFormat& format, const std::vector<CollectiveRules>& rules,
                              std::string_view) {
  std::string text =
      "{\n  \"rule_file_version\": 3,\n  \"module\": \"tuned\",\n  \"collectives\": {";
  bool first_collective = true;
  for (const auto& [name, of_name] : Group(rules)) {
    text += fmt::format("{}\n    \"{}\": [", first_collective ? "" : ",", name.name);
    first_collective = false;
    for (const CollectiveRules* one : of_name)
      text += (one == of_name.front() ? "\n" : ",\n") + JsonOf(format, *one);
    text += "]";
  }
  return text + "\n  }\n}\n";
}

std::vector<LibraryAlgorithm> Algorithms() {
  using enum CollectiveKind;
  return {
      {kAllGather, "bruck", "bruck", 2},      {kAllGather, "rhd", "recursive_doubling", 3, true},
      {kAllGather, "ring", "ring", 4},        {kAllReduce, "ring", "ring", 4},
      {kAllReduce, "rhd", "rabenseifner", 6}, {kReduceScatter, "rhd", "recursive_halving", 2},
      {kReduceScatter, "ring", "ring", 3}};
}

}  // namespace

RuleFormat OpenMpiFormat() {
  return {.name = "openmpi",
          .description = "dynamic rules of Open MPI, the classic file",
          .extension = ".conf",
          .algorithms = Algorithms(),
          .write = WriteClassic};
}

RuleFormat OpenMpiJsonFormat() {
  return {.name = "openmpi-json",
          .description = "dynamic rules of Open MPI 6, JSON",
          .extension = ".json",
          .algorithms = Algorithms(),
          .write = WriteJson};
}

}  // namespace tutti::rules
