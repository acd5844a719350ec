// --to mpich: MPICH's selection of algorithms, JSON.
//
// Model       The file is a tree of conditions, of which the first that holds is taken, down to an
//             algorithm. MPICH takes the whole file or its own, so rules are put into a copy of its
//             own: under each collective that they are for, a communicator of one of their sizes
//             goes to them, every other one to what was there. What their algorithms cannot do
//             (operations that do not commute) goes to what was there as well.
// Units       total_msg_size, the bytes of all blocks, is M of all-gather and reduce-scatter.
// Errors      kInvalidArgument: the base is no JSON, is nested deeper than 64, or has no selection
//             for a collective.
// Reference   docs/formats/rules.md
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "rule_formats.h"

namespace tutti::rules {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxNested = 64;

// What rules of one collective have to look like.
struct MpichName {
  CollectiveKind kind;
  const char* key;                  // "collective=.."
  const char *otherwise, *usually;  // a condition under which they do not apply, and its opposite
};
constexpr MpichName kMpichNames[] = {
    {CollectiveKind::kAllGather, "collective=allgather", nullptr, nullptr},
    {CollectiveKind::kReduceScatter, "collective=reduce_scatter", "is_commutative=no",
     "is_commutative=yes"},
    {CollectiveKind::kReduceScatter, "collective=reduce_scatter_block", "is_commutative=no",
     "is_commutative=yes"}};

// The algorithm's name for this collective: blocks of one size have their own.
std::string AlgorithmKey(const MpichName& name, std::string_view theirs) {
  std::string prefix = "Allgather";
  if (name.kind == CollectiveKind::kReduceScatter)
    prefix =
        std::string_view(name.key).ends_with("_block") ? "Reduce_scatter_block" : "Reduce_scatter";
  return fmt::format("algorithm=MPIR_{}_intra_{}", prefix, theirs);
}

// By size, for one communicator.
Json BySize(const RuleFormat& format, const MpichName& name, const CollectiveRules& rules) {
  Json out = Json::object();
  for (size_t i = 0; i < rules.sizes.size(); ++i) {
    const std::string condition =
        i + 1 < rules.sizes.size() ? fmt::format("total_msg_size<{}", rules.sizes[i + 1].from_bytes)
                                   : "total_msg_size=any";
    out[condition][AlgorithmKey(name, format.Find(rules.kind, rules.sizes[i].ours)->theirs)] =
        Json::object();
  }
  return out;
}

// The conditions of one collective, with the rules in them.
Json WithRules(const RuleFormat& format, const MpichName& name,
               const std::vector<CollectiveRules>& rules, const Json& before) {
  Json out = Json::object();
  for (const CollectiveRules& one : rules) {
    if (one.kind != name.kind) continue;
    out[fmt::format("comm_size<{}", one.ranks)] = before;
    Json& here = out[fmt::format("comm_size<={}", one.ranks)];
    here = BySize(format, name, one);
    if (name.otherwise == nullptr) continue;
    Json guarded = Json::object();
    guarded[name.otherwise] = before;
    guarded[name.usually] = std::move(here);
    here = std::move(guarded);
  }
  out["comm_size=any"] = before;
  return out;
}

Result<Json> ReadBase(std::string_view base) {
  bool deep = false;
  const auto keep = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxNested;
    return !deep;
  };
  Json json = Json::parse(base, keep, false);
  if (deep)
    return InvalidArgument(fmt::format("--base is nested deeper than {} levels", kMaxNested));
  if (json.is_discarded() || !json.is_object())
    return InvalidArgument("--base holds no JSON object; MPICH's own selection is wanted");
  return json;
}

Result<std::string> WriteMpich(const RuleFormat& format, const std::vector<CollectiveRules>& rules,
                               std::string_view base) {
  Result<Json> json = ReadBase(base);
  if (!json) return tl::unexpected(json.error());
  for (size_t i = 0; i + 1 < rules.size(); ++i)
    if (rules[i].kind == rules[i + 1].kind && rules[i].ranks == rules[i + 1].ranks)
      return InvalidArgument(
          fmt::format("two rules for {} among {} ranks: this file does not tell nodes apart",
                      Name(rules[i].kind), rules[i].ranks));
  for (const MpichName& name : kMpichNames) {
    bool some = false;
    for (const CollectiveRules& one : rules) some = some || one.kind == name.kind;
    if (!some) continue;
    constexpr const char* kIntra = "comm_type=intra";
    if (!json->contains(name.key) || !(*json)[name.key].is_object() ||
        !(*json)[name.key].contains(kIntra) || !(*json)[name.key][kIntra].is_object())
      return InvalidArgument(
          fmt::format("--base has no \"{}\" with \"{}\" in it", name.key, kIntra));
    Json& at = (*json)[name.key][kIntra];
    at = WithRules(format, name, rules, Json(at));
  }
  return json->dump(1) + "\n";
}

}  // namespace

RuleFormat MpichFormat() {
  using enum CollectiveKind;
  return {.name = "mpich",
          .description = "MPICH's selection of algorithms, JSON: --base with the rules in it",
          .extension = ".json",
          .algorithms = {{kAllGather, "ring", "ring"},
                         {kAllGather, "bruck", "brucks"},
                         {kAllGather, "rhd", "recursive_doubling", 0, true},
                         {kReduceScatter, "rhd", "recursive_halving"},
                         {kReduceScatter, "direct", "pairwise"}},
          .write = WriteMpich,
          .needs_base = true};
}

}  // namespace tutti::rules
