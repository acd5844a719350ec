// tutti advise
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "tutti/advise/expectation.h"
#include "tutti/advise/shape.h"
#include "tutti/advise/wiring.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string topology, size = "64KiB,1MiB,1GiB";
  std::string collectives = "all-reduce,all-gather,reduce-scatter,all-to-all";
};

struct Rewired {
  OtherWiring wiring;
  std::vector<Expectation> expected;
};

struct Advice {
  Topology topology;
  Boxes boxes;
  Wiring wiring;
  NcclAdvice nccl;
  std::vector<Expectation> expected;  // collective by collective, size by size
  std::string not_rewired;            // why no other wirings are compared
  std::vector<Rewired> rewired;
};

Result<std::vector<CollectiveKind>> ParseCollectives(const std::string& text) {
  std::vector<CollectiveKind> kinds;
  for (const std::string& name : SplitAtCommas(text)) {
    const Result<CollectiveKind> kind = ParseCollectiveKind(name);
    if (!kind) return tl::unexpected(kind.error());
    if (*kind == CollectiveKind::kAllToAllV)
      return InvalidArgument(
          "--collectives: all-to-allv depends on its demands; all-to-all does not");
    kinds.push_back(*kind);
  }
  return kinds;
}

// What is printed is of proven schedules.
Status Prove(const Topology& topology, Expectation& expected) {
  if (!expected.schedule) return {};
  const Topology& network = expected.unwound ? *expected.unwound : topology;
  const VerifyReport report = Verify(network, expected.schedule->collective, *expected.schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified()) {
    expected.best_s.reset();
    expected.reason = "not correct: " + report.violations.front().message;
  }
  expected.schedule.reset();
  return {};
}

Result<std::vector<Expectation>> ExpectAll(const Topology& topology, const std::string& expression,
                                           const Boxes& boxes,
                                           const std::vector<CollectiveKind>& kinds,
                                           const std::vector<int64_t>& sizes) {
  std::vector<Expectation> all;
  for (const CollectiveKind kind : kinds)
    for (const int64_t size : sizes) {
      Result<Expectation> expected = Expect(topology, expression, boxes, kind, size);
      if (!expected) return tl::unexpected(expected.error());
      if (const Status proven = Prove(topology, *expected); !proven)
        return tl::unexpected(proven.error());
      all.push_back(*std::move(expected));
    }
  return all;
}

Result<Advice> Advise(const Flags& flags, const std::vector<CollectiveKind>& kinds,
                      const std::vector<int64_t>& sizes) {
  Result<Topology> topology = ParseTopology(flags.topology);
  if (!topology) return tl::unexpected(topology.error());
  Advice advice{*std::move(topology), {}, {}, {}, {}, {}, {}};
  advice.boxes = FindBoxes(advice.topology);
  advice.wiring = WiringOf(advice.topology, advice.boxes);
  advice.nccl = AdviseNccl(advice.wiring);
  Result<std::vector<Expectation>> expected =
      ExpectAll(advice.topology, flags.topology, advice.boxes, kinds, sizes);
  if (!expected) return tl::unexpected(expected.error());
  advice.expected = *std::move(expected);
  Result<std::vector<OtherWiring>> others = OtherWirings(advice.topology);
  if (!others && others.error().code != ErrorCode::kInfeasible)
    return tl::unexpected(others.error());
  if (!others) {
    advice.not_rewired = others.error().message;
    return advice;
  }
  for (OtherWiring& other : *others) {
    Result<std::vector<Expectation>> there =
        ExpectAll(other.topology, other.recipe, Boxes(), kinds, sizes);
    if (!there) return tl::unexpected(there.error());
    advice.rewired.push_back({std::move(other), *std::move(there)});
  }
  return advice;
}

// --- Text ----------------------------------------------------------------------------------------

double BusBandwidth(const Expectation& expected, const Rational& seconds) {
  if (seconds.is_zero()) return 0;
  return (Rational(expected.size_bytes) * expected.bus_factor / seconds).ToDouble();
}

std::string BusText(const Expectation& expected, const std::optional<Rational>& seconds) {
  return seconds && !seconds->is_zero() ? BytesPerSecond(BusBandwidth(expected, *seconds)) : "-";
}

std::string MachineName(const Advice& advice, int32_t machine) {
  const auto index = static_cast<size_t>(machine);
  return advice.boxes.found_by == Boxes::FoundBy::kNames
             ? advice.boxes.names[index]
             : advice.topology.node_name(NodeId{machine});
}

std::string NetworkText(const Advice& advice) {
  const Wiring& wiring = advice.wiring;
  std::string text =
      fmt::format("{}: {} ranks on {} machine{}, {}\n", NameOf(advice.topology),
                  advice.topology.num_ranks(), wiring.machines, wiring.machines == 1 ? "" : "s",
                  wiring.kind == WiringKind::kOneMachine ? "nothing to cable"
                  : wiring.kind == WiringKind::kSwitched
                      ? "joined by switches"
                      : fmt::format("cabled directly: {}", Name(wiring.kind)));
  if (wiring.separate_rails) text += "  rails that no switch joins\n";
  if (!wiring.circle.empty() && wiring.kind != WiringKind::kAllPairs) {
    text += "  rank order   ";
    for (size_t i = 0; i < wiring.circle.size(); ++i)
      text += (i == 0 ? "" : ", ") + MachineName(advice, wiring.circle[i]);
    text += ": NCCL's ring follows the order of ranks\n";
  }
  return text;
}

std::string SettingsText(const Advice& advice) {
  std::string text = "\nNCCL\n";
  for (const NcclSetting& setting : advice.nccl.settings)
    text += fmt::format("  {}={}   {}\n", setting.variable,
                        setting.value.empty() ? ".." : setting.value, setting.reason);
  for (const std::string& note : advice.nccl.notes) text += fmt::format("  * {}\n", note);
  return text;
}

std::string ExpectedText(const Advice& advice) {
  Table table({"collective", "size", "best", "busbw", "ring busbw", "limit busbw"});
  bool some_estimate = false;
  std::string reasons;
  for (const Expectation& one : advice.expected) {
    const bool estimated = one.ring_is_estimate && one.ring_s;
    some_estimate = some_estimate || estimated;
    table.AddRow({std::string(Name(one.collective)), ReadableSize(one.size_bytes),
                  one.best_s ? one.algorithm : "-", BusText(one, one.best_s),
                  (estimated ? "~" : "") + BusText(one, one.ring_s), BusText(one, one.limit_s)});
    if (!one.best_s && !one.reason.empty())
      reasons += fmt::format("  {}, {}: {}\n", Name(one.collective), ReadableSize(one.size_bytes),
                             one.reason);
  }
  return "\n" + table.ToString() +
         (some_estimate ? "  ~ estimated: rings over shortest paths, a channel a GPU of a box\n"
                        : "") +
         reasons;
}

std::string CablesText(const Topology& topology) {
  std::string text;
  for (const Cable& cable : CablesOf(topology))
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", topology.tail(cable.there).value,
                        topology.head(cable.there).value);
  return text;
}

bool IsFaster(const Expectation& there, const Expectation& here) {
  constexpr int64_t kPermil = 1000;
  return there.best_s && here.best_s &&
         *there.best_s * Rational(kPermil + 1, kPermil) < *here.best_s;
}

std::string RewiredText(const Advice& advice) {
  if (!advice.not_rewired.empty())
    return fmt::format("\nother wirings are not compared: {}\n", advice.not_rewired);
  if (advice.rewired.empty())
    return "\nno known wiring of these ports is better: this is the one\n";
  std::string text;
  for (const Rewired& other : advice.rewired) {
    Table table({"collective", "size", "busbw now", "then", "best"});
    for (size_t i = 0; i < other.expected.size(); ++i) {
      const Expectation &now = advice.expected[i], &then = other.expected[i];
      table.AddRow({std::string(Name(now.collective)), ReadableSize(now.size_bytes),
                    BusText(now, now.best_s), BusText(then, then.best_s),
                    then.best_s ? then.algorithm : "-"});
      if (IsFaster(then, now)) table.MarkBest();
    }
    text += fmt::format("\nthe same ports wired as {}: cables {}\n{}", other.wiring.recipe,
                        CablesText(other.wiring.topology), table.ToString());
  }
  return text;
}

// --- JSON ----------------------------------------------------------------------------------------

Json JsonOf(const std::vector<Expectation>& expected) {
  Json rows = Json::array();
  const auto put = [](const Expectation& one, const std::optional<Rational>& seconds) {
    Json json;
    json["time_s"] = seconds ? Json(seconds->ToDouble()) : Json(nullptr);
    json["busbw"] = seconds ? Json(BusBandwidth(one, *seconds)) : Json(nullptr);
    return json;
  };
  for (const Expectation& one : expected) {
    Json row;
    row["collective"] = Name(one.collective);
    row["size_bytes"] = one.size_bytes;
    row["best"] = put(one, one.best_s);
    row["algorithm"] = one.best_s ? Json(one.algorithm) : Json(nullptr);
    if (!one.best_s) row["error"] = one.reason;
    row["ring"] = put(one, one.ring_s);
    row["ring_is_estimate"] = one.ring_is_estimate;
    row["bound_s"] = one.limit_s.ToDouble();
    row["bound_busbw"] = BusBandwidth(one, one.limit_s);
    rows.push_back(row);
  }
  return rows;
}

void PrintJson(const Advice& advice) {
  Json out;
  DescribeTopology(advice.topology, out);
  Json json;
  json["kind"] = Name(advice.wiring.kind);
  json["machines"] = advice.wiring.machines;
  json["most_neighbours"] = advice.wiring.max_neighbours;
  json["separate_rails"] = advice.wiring.separate_rails;
  json["circle"] = Json::array();
  for (const int32_t machine : advice.wiring.circle)
    json["circle"].push_back(MachineName(advice, machine));
  out["wiring"] = json;
  out["settings"] = Json::array();
  for (const NcclSetting& setting : advice.nccl.settings) {
    Json entry;
    entry["variable"] = setting.variable;
    entry["setting"] = setting.value.empty() ? Json(nullptr) : Json(setting.value);
    entry["reason"] = setting.reason;
    out["settings"].push_back(entry);
  }
  out["notes"] = advice.nccl.notes;
  out["rows"] = JsonOf(advice.expected);
  out["other_wirings"] = Json::array();
  for (const Rewired& other : advice.rewired) {
    Json entry;
    entry["recipe"] = other.wiring.recipe;
    entry["cables"] = CablesText(other.wiring.topology);
    entry["rows"] = JsonOf(other.expected);
    out["other_wirings"].push_back(entry);
  }
  if (!advice.not_rewired.empty()) out["why"] = advice.not_rewired;
  Print(out);
}

int Run(const Program& program, const Flags& flags) {
  const Result<std::vector<int64_t>> sizes = ParseSizes(flags.size);
  if (!sizes) return Report(sizes.error());
  const Result<std::vector<CollectiveKind>> kinds = ParseCollectives(flags.collectives);
  if (!kinds) return Report(kinds.error());
  const Result<Advice> advice = Advise(flags, *kinds, *sizes);
  if (!advice) return Report(advice.error());
  if (program.json)
    PrintJson(*advice);
  else
    fmt::print("{}{}{}{}", NetworkText(*advice), SettingsText(*advice), ExpectedText(*advice),
               RewiredText(*advice));
  return kDone;
}

}  // namespace

void AddAdvise(Program& program) {
  auto flags = std::make_shared<Flags>();
  Command command = program.AddCommand(program.line.root(), "advise",
                                       "What a cluster asks for: settings of NCCL, bandwidth to "
                                       "expect and its limit, better cabling",
                                       "tutti advise 'ring(4,bw=25GB/s)' --size 1MiB,1GiB");
  command.AddOption("topology", flags->topology, "Expression or path of a .json file").Required();
  command.AddOption("-s,--size", flags->size, "Sizes M, separated by commas").ShowDefault();
  command.AddOption("-c,--collectives", flags->collectives, "Separated by commas").ShowDefault();
  command.Runs([&program, flags] { return Run(program, *flags); });
}

}  // namespace tutti::cli
