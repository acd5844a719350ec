#include "tutti/topo/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "families/family.h"
#include "syntax.h"
#include "tutti/base/cancel.h"
#include "tutti/base/nearest.h"
#include "tutti/base/units.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace topo {
namespace {

// A checked call whose networks are not made yet, or a path.
struct Resolved {
  FamilyCall call;  // family == nullptr: a path
  std::vector<Resolved> operands;
  std::string path;
  std::string arguments;  // canonical, behind the operands: ",3,4,bw=50GB/s"
  std::string text;       // canonical
};

// The call with `operands` for its networks.
std::string TextOf(const Resolved& resolved, const std::vector<std::string>& operands) {
  std::string inside;
  for (const std::string& operand : operands) inside += "," + operand;
  inside += resolved.arguments;
  std::string text(resolved.call.family->info.name);
  return inside.empty() ? text : fmt::format("{}({})", text, inside.substr(1));
}

// `what` stands before the name that is none of `accepted`.
tl::unexpected<Error> UnknownName(const SyntaxNode& node, std::string_view what,
                                  const std::vector<std::string_view>& accepted) {
  return MakeError(
      ErrorCode::kNotFound,
      fmt::format("column {}: {} '{}'{}; accepted: {}", node.column, what, Shown(node.text),
                  NearestHint(node.text, accepted), fmt::join(accepted, ", ")));
}

tl::unexpected<Error> UnknownFamily(const SyntaxNode& node) {
  std::vector<std::string_view> names;
  for (const Family& family : Families()) names.push_back(family.info.name);
  return UnknownName(node, "unknown family", names);
}

std::vector<std::string_view> MemberNames(const Family& family) {
  std::vector<std::string_view> names;
  for (const FamilyMember& member : family.info.members) names.push_back(member.name);
  return names;
}

// Which member of the family `node` names.
Result<size_t> FindMember(const Family& family, const SyntaxNode& node) {
  const std::vector<std::string_view> names = MemberNames(family);
  if (node.kind != SyntaxNode::Kind::kCall || node.has_parentheses)
    return FaultAt(
        node.column,
        fmt::format("{}: found '{}{}', wanted one of the names {}", family.info.signature,
                    Shown(node.text), node.has_parentheses ? "(" : "", fmt::join(names, ", ")));
  const auto found = std::find(names.begin(), names.end(), node.text);
  if (found == names.end())
    return UnknownName(node, fmt::format("{}: unknown name", family.info.signature), names);
  return static_cast<size_t>(found - names.begin());
}

// `context` stands before the message.
Result<int64_t> ParseWhole(const SyntaxNode& node, std::string_view context) {
  constexpr size_t kDigits = 18;
  std::string_view digits = node.text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const bool whole = node.kind == SyntaxNode::Kind::kWord && !digits.empty() &&
                     digits.find_first_not_of("0123456789") == digits.npos;
  if (!whole)
    return FaultAt(node.column,
                   fmt::format("{}: found '{}', wanted a whole number", context, Shown(node.text)));
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  if (digits.size() > kDigits)
    return FaultAt(node.column,
                   fmt::format("{}: the number {} is too large", context, Shown(node.text)));
  int64_t value = 0;
  for (char c : digits) value = 10 * value + (c - '0');
  return negative ? -value : value;
}

// `bw=` or `alpha=`: one value, in quotes or not, or a list, whose unit may stand behind it.
Status ParseQuantities(const SyntaxNode& node, Result<int64_t> (*parse)(std::string_view),
                       int64_t least, int64_t most, PerDimension<int64_t>& out) {
  out.column = node.column;
  out.is_list = node.kind == SyntaxNode::Kind::kList;
  if (node.has_parentheses)
    return FaultAt(node.column, fmt::format("{}=: found '{}', wanted a value with a unit or a list",
                                            node.keyword, Shown(node.text)));
  const auto add = [&](size_t column, const std::string& text) -> Status {
    const Result<int64_t> value = parse(text);
    if (!value) return FaultAt(column, fmt::format("{}=: {}", node.keyword, value.error().message));
    if (*value < least || *value > most)
      return FaultAt(column, fmt::format("{}=: '{}' is outside {} .. {}", node.keyword, Shown(text),
                                         least, most));
    out.values.push_back(*value);
    return {};
  };
  if (!out.is_list) return add(node.column, node.text);
  for (const SyntaxNode& item : node.items)
    if (Status status = add(item.column, item.text + node.text); !status) return status;
  return {};
}

// "50GB/s" or "[35GiB/s,80GiB/s]".
std::string Print(const PerDimension<int64_t>& values, std::string (*format)(int64_t)) {
  std::vector<std::string> texts;
  for (int64_t value : values.values) texts.push_back(format(value));
  const std::string text = fmt::format("{}", fmt::join(texts, ","));
  return values.is_list ? fmt::format("[{}]", text) : text;
}

std::string PrintPath(const std::string& path) {
  const bool plain = path.find_first_of(" \t\n\r(),=[]\"") == path.npos;
  return plain ? path : fmt::format("\"{}\"", path);
}

// Text to calls: names, arguments and keywords, without making a network.
class Resolver {
 public:
  Result<Resolved> Resolve(const SyntaxNode& node) const {
    switch (node.kind) {
      case SyntaxNode::Kind::kPath: {
        if (!EndsInJson(node.text))
          return FaultAt(node.column,
                         fmt::format("'{}': a quoted path must end in .json", Shown(node.text)));
        Resolved resolved;
        resolved.call.column = node.column;
        resolved.path = node.text;
        resolved.text = PrintPath(node.text);
        return resolved;
      }
      case SyntaxNode::Kind::kCall:
        if (const Family* family = FindFamily(node.text)) return ResolveCall(node, *family);
        return UnknownFamily(node);
      default:
        return FaultAt(node.column,
                       fmt::format("found '{}', wanted a network: a family such as torus(4,4) or a "
                                   "path that ends in .json",
                                   Shown(node.text)));
    }
  }

 private:
  Result<Resolved> ResolveCall(const SyntaxNode& node, const Family& family) const {
    Resolved resolved;
    FamilyCall& call = resolved.call;
    call.family = &family;
    call.column = node.column;
    call.options.resize(family.options.size());
    call.settings.resize(family.settings.size());
    call.links.defaults = family.default_link;
    if (Status status = CollectArguments(node, resolved); !status)
      return tl::unexpected(status.error());
    if (Status status = CollectKeywords(node, call); !status) return tl::unexpected(status.error());
    resolved.arguments += PrintKeywords(call);
    std::vector<std::string> operands;
    for (const Resolved& operand : resolved.operands) operands.push_back(operand.text);
    resolved.text = TextOf(resolved, operands);
    return resolved;
  }

  // The name of a member where the family has some; else networks, then numbers.
  Status CollectArguments(const SyntaxNode& node, Resolved& resolved) const {
    std::string& text = resolved.arguments;
    FamilyCall& call = resolved.call;
    const Family& family = *call.family;
    bool wants_name = !family.info.members.empty();
    for (const SyntaxNode& item : node.items) {
      if (!item.keyword.empty()) continue;
      if (family.reads_file && call.path.empty()) {
        if (item.kind == SyntaxNode::Kind::kList || item.has_parentheses)
          return FaultAt(item.column, fmt::format("{}: found '{}', wanted a path",
                                                  family.info.signature, Shown(item.text)));
        call.path = item.text;
        text += "," + PrintPath(item.text);
        continue;
      }
      if (wants_name) {
        const Result<size_t> member = FindMember(family, item);
        if (!member) return tl::unexpected(member.error());
        call.member = *member;
        wants_name = false;
        text += fmt::format(",{}", family.info.members[*member].name);
        continue;
      }
      const bool is_network =
          item.kind == SyntaxNode::Kind::kCall || item.kind == SyntaxNode::Kind::kPath;
      if (is_network && call.sizes.empty() && resolved.operands.size() < family.operands.most) {
        Result<Resolved> operand = Resolve(item);
        if (!operand) return tl::unexpected(operand.error());
        resolved.operands.push_back(*std::move(operand));
        continue;
      }
      if (family.sizes.most == 0 || resolved.operands.size() < family.operands.least)
        return FaultAt(item.column, fmt::format("{}: found '{}', wanted {}", family.info.signature,
                                                Shown(item.text), WantedOf(family)));
      const Result<int64_t> size = ParseWhole(item, family.info.signature);
      if (!size) return tl::unexpected(size.error());
      call.sizes.push_back(*size);
      call.size_columns.push_back(item.column);
      text += fmt::format(",{}", *size);
    }
    if (wants_name)
      return call.Fault(fmt::format("the name is missing, wanted one of {}",
                                    fmt::join(MemberNames(family), ", ")));
    if (family.reads_file && call.path.empty()) return call.Fault("the path is missing");
    const auto within = [](size_t count, Range range) {
      return range.least <= count && count <= range.most;
    };
    if (!within(resolved.operands.size(), family.operands) ||
        !within(call.sizes.size(), family.sizes))
      return call.Fault(fmt::format("got {}, wanted {}", Counted(resolved), WantedOf(family)));
    return {};
  }

  static std::string Plural(size_t count, const std::string& what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }

  static std::string Counted(const Resolved& resolved) {
    const std::string networks = Plural(resolved.operands.size(), "network");
    const std::string numbers = Plural(resolved.call.sizes.size(), "number");
    if (resolved.call.family->operands.most == 0) return numbers;
    if (resolved.call.family->sizes.most == 0) return networks;
    return networks + " and " + numbers;
  }

  static std::string WantedOf(const Family& family) {
    const auto describe = [](Range range, const char* what) {
      if (range.least == range.most) return Plural(range.least, what);
      if (range.most == kAny) return "at least " + Plural(range.least, what);
      return fmt::format("{} to {} {}s", range.least, range.most, what);
    };
    if (family.operands.most == 0 && family.sizes.most == 0)
      return family.info.members.empty() ? "no argument" : "one name";
    if (family.operands.most == 0) return describe(family.sizes, "number");
    if (family.sizes.most == 0) return describe(family.operands, "network");
    return describe(family.operands, "network") + " and " + describe(family.sizes, "number");
  }

  Status CollectKeywords(const SyntaxNode& node, FamilyCall& call) const {
    constexpr int64_t kMaxParallel = 1 << 16;
    const Family& family = *call.family;
    std::set<std::string_view> seen;
    for (const SyntaxNode& item : node.items) {
      const std::string& key = item.keyword;
      if (key.empty()) continue;
      if (key == "link" && family.names_cables) {
        if (Status status = CollectCables(item, call); !status) return status;
        continue;
      }
      if (!seen.insert(key).second)
        return FaultAt(item.keyword_column,
                       fmt::format("the keyword '{}' stands there twice", Shown(key)));
      const auto option = std::find(family.options.begin(), family.options.end(), key);
      const auto setting = std::find_if(family.settings.begin(), family.settings.end(),
                                        [&key](const Setting& one) { return one.name == key; });
      if (setting != family.settings.end()) {
        Result<SettingValue> value = ParseSetting(item, *setting);
        if (!value) return tl::unexpected(value.error());
        call.settings[static_cast<size_t>(setting - family.settings.begin())] = *std::move(value);
      } else if (key == "bw" || (key == "bw_per_link" && family.shares_bandwidth)) {
        if (call.links.bandwidth.given())
          return FaultAt(item.keyword_column, "bw= and bw_per_link= exclude each other");
        call.links.bandwidth_is_shared = key == "bw" && family.shares_bandwidth;
        if (Status status =
                ParseQuantities(item, ParseBandwidth, 1, kMaxBandwidth, call.links.bandwidth);
            !status)
          return status;
      } else if (key == "alpha") {
        if (Status status =
                ParseQuantities(item, ParseDurationPs, 0, kMaxAlphaPs, call.links.alpha_ps);
            !status)
          return status;
      } else if (key == "host_bw") {
        PerDimension<int64_t> given;
        if (Status status = ParseQuantities(item, ParseBandwidth, 1, kMaxBandwidth, given); !status)
          return status;
        if (given.is_list)
          return FaultAt(item.column, "host_bw=: wanted one value, the limit of every rank");
        call.host_bandwidth = given.values.front();
      } else if (key == "reduces") {
        if (Status status = ParseReducing(item, call); !status) return status;
      } else if (key == "parallel" || option != family.options.end()) {
        const Result<int64_t> value = ParseWhole(item, key + "=");
        if (!value) return tl::unexpected(value.error());
        const int64_t least = key == "parallel" ? 1 : 0;
        if (*value < least || (key == "parallel" && *value > kMaxParallel))
          return FaultAt(item.column, fmt::format("got {}={}, wanted at least {}{}", key, *value,
                                                  least, least == 1 ? " and at most 65536" : ""));
        if (key == "parallel")
          call.links.parallel = *value;
        else
          call.options[static_cast<size_t>(option - family.options.begin())] = *value;
      } else {
        return FaultAt(item.keyword_column,
                       fmt::format("unknown keyword '{}' of {}; accepted: {}", Shown(key),
                                   family.info.name, fmt::join(KeywordsOf(family), ", ")));
      }
    }
    return {};
  }

  // true, a switch or a list of such.
  static Status ParseReducing(const SyntaxNode& node, FamilyCall& call) {
    const bool is_list = node.kind == SyntaxNode::Kind::kList;
    if (node.has_parentheses || node.kind == SyntaxNode::Kind::kPath || node.text == "false" ||
        (is_list && (!node.text.empty() || node.items.empty())))
      return FaultAt(node.column, fmt::format("reduces=: found '{}', wanted true, the name of a "
                                              "switch such as nvswitch or leaf0, or a list of such",
                                              Shown(node.text)));
    ReducingSwitches& reducing = call.reducing.emplace();
    reducing.column = node.column;
    reducing.all = !is_list && node.text == "true";
    if (!is_list && !reducing.all) reducing.names.push_back({node.text, node.column});
    for (const SyntaxNode& item : node.items) reducing.names.push_back({item.text, item.column});
    return {};
  }

  static SettingValue ValueAt(const SyntaxNode& item) {
    SettingValue value;
    value.column = item.column;
    return value;
  }

  Result<SettingValue> ParseSetting(const SyntaxNode& item, const Setting& setting) const {
    switch (setting.kind) {
      case Setting::Kind::kBandwidth: {
        PerDimension<int64_t> given;
        if (Status status = ParseQuantities(item, ParseBandwidth, 1, kMaxBandwidth, given); !status)
          return tl::unexpected(status.error());
        if (given.is_list)
          return FaultAt(item.column, fmt::format("{}=: wanted one value", item.keyword));
        SettingValue value = ValueAt(item);
        value.text = FormatBandwidth(given.values[0]);
        value.bandwidth = given.values[0];
        return value;
      }
      case Setting::Kind::kRatio:
        return ParseRatio(item);
      case Setting::Kind::kFabric:
        return ParseFabric(item);
      case Setting::Kind::kOverrides:
        return ParseOverrides(item);
    }
    return FaultAt(item.column, "no such kind of setting");
  }

  // "2" or "3:2".
  static Result<SettingValue> ParseRatio(const SyntaxNode& item) {
    constexpr int64_t kMost = 1'000'000;
    const size_t colon = item.text.find(':');
    SyntaxNode num = item, den = item;
    num.text = item.text.substr(0, colon);
    den.text = colon == item.text.npos ? "1" : item.text.substr(colon + 1);
    const std::string context = item.keyword + "=";
    const Result<int64_t> above = ParseWhole(num, context);
    if (!above) return tl::unexpected(above.error());
    const Result<int64_t> below = ParseWhole(den, context);
    if (!below) return tl::unexpected(below.error());
    for (int64_t part : {*above, *below})
      if (part < 1 || part > kMost)
        return FaultAt(item.column,
                       fmt::format("{}: '{}' is no ratio such as 2 or 3:2, of numbers from 1 to {}",
                                   context, Shown(item.text), kMost));
    const int64_t common = std::gcd(*above, *below);
    SettingValue value = ValueAt(item);
    value.text = std::to_string(*above / common);
    value.ratio = {*above / common, *below / common};
    if (value.ratio.den != 1) value.text += fmt::format(":{}", value.ratio.den);
    return value;
  }

  // A fabric is written as a family and stands for no network by itself.
  Result<SettingValue> ParseFabric(const SyntaxNode& item) const {
    std::vector<std::string_view> names;
    for (const Family& fabric : Fabrics()) {
      names.push_back(fabric.info.name);
      if (item.kind != SyntaxNode::Kind::kCall || item.text != fabric.info.name) continue;
      Result<Resolved> resolved = ResolveCall(item, fabric);
      if (!resolved) return tl::unexpected(resolved.error());
      if (resolved->call.ChangesLinks())
        return resolved->call.Fault(
            "bw=, alpha=, parallel=, host_bw= and reduces= belong to the cluster");
      SettingValue value = ValueAt(item);
      value.text = resolved->text;
      value.fabric.push_back(std::move(resolved->call));
      return value;
    }
    return UnknownName(item, "unknown fabric", names);
  }

  static Result<SettingValue> ParseOverrides(const SyntaxNode& node) {
    const bool is_list = node.kind == SyntaxNode::Kind::kList;
    if (node.has_parentheses || node.kind == SyntaxNode::Kind::kPath ||
        (is_list && !node.text.empty()))
      return FaultAt(node.column,
                     fmt::format("{}=: found '{}', wanted two nodes and a bandwidth such as "
                                 "leaf0-spine1:50GB/s, or a list of such",
                                 node.keyword, Shown(node.text)));
    SettingValue value = ValueAt(node);
    if (!is_list) value.overrides.push_back({node.text, node.column});
    for (const SyntaxNode& item : node.items) value.overrides.push_back({item.text, item.column});
    std::vector<std::string> texts;
    for (const NamedCable& one : value.overrides) texts.push_back(one.text);
    value.text = is_list ? fmt::format("[{}]", fmt::join(texts, ",")) : texts[0];
    return value;
  }

  // One cable or a list; the keyword may stand there again.
  static Status CollectCables(const SyntaxNode& node, FamilyCall& call) {
    const bool is_list = node.kind == SyntaxNode::Kind::kList;
    if (node.has_parentheses || node.kind == SyntaxNode::Kind::kPath ||
        (is_list && !node.text.empty()))
      return FaultAt(node.column, fmt::format("link=: found '{}', wanted two nodes such as 0-1, or "
                                              "a list of such",
                                              Shown(node.text)));
    if (!is_list) call.cables.push_back({node.text, node.column});
    for (const SyntaxNode& item : node.items) call.cables.push_back({item.text, item.column});
    return {};
  }

  static std::vector<std::string_view> KeywordsOf(const Family& family) {
    std::vector<std::string_view> keywords = family.options;
    for (const Setting& setting : family.settings) keywords.push_back(setting.name);
    keywords.insert(keywords.end(), {"alpha", "bw", "host_bw"});
    if (family.shares_bandwidth) keywords.push_back("bw_per_link");
    if (family.names_cables) keywords.push_back("link");
    keywords.insert(keywords.end(), {"parallel", "reduces"});
    return keywords;
  }

  static std::string PrintKeywords(const FamilyCall& call) {
    std::string text;
    std::vector<std::string> cables;
    for (const NamedCable& cable : call.cables) cables.push_back(cable.text);
    if (cables.size() == 1) text += ",link=" + cables[0];
    if (cables.size() > 1) text += fmt::format(",link=[{}]", fmt::join(cables, ","));
    for (size_t i = 0; i < call.options.size(); ++i)
      if (call.options[i]) text += fmt::format(",{}={}", call.family->options[i], *call.options[i]);
    for (size_t i = 0; i < call.settings.size(); ++i)
      if (call.settings[i])
        text += fmt::format(",{}={}", call.family->settings[i].name, call.settings[i]->text);
    const LinkParameters& links = call.links;
    if (links.parallel != 1) text += fmt::format(",parallel={}", links.parallel);
    if (links.bandwidth.given()) {
      const bool own = call.family->shares_bandwidth && !links.bandwidth_is_shared;
      text += fmt::format(",{}={}", own ? "bw_per_link" : "bw",
                          Print(links.bandwidth, FormatBandwidth));
    }
    if (links.alpha_ps.given())
      text += fmt::format(",alpha={}", Print(links.alpha_ps, FormatDurationPs));
    if (call.host_bandwidth)
      text += fmt::format(",host_bw={}", FormatBandwidth(*call.host_bandwidth));
    if (call.reducing) {
      std::vector<std::string> names;
      for (const NamedCable& name : call.reducing->names) names.push_back(name.text);
      if (names.size() <= 1)
        text += ",reduces=" + (call.reducing->all ? "true" : names[0]);
      else
        text += fmt::format(",reduces=[{}]", fmt::join(names, ","));
    }
    return text;
  }
};

// What stands for an operand in the name and in the expression of the whole. Of a file it is how
// its network was made, where that is known: the file may be gone when the whole is read again.
std::string NameInside(const Topology& operand, const std::string& text) {
  return operand.name() == operand.expression() && !operand.name().empty() ? operand.name() : text;
}
std::string ExpressionInside(const Topology& operand, std::string_view family,
                             const std::string& text) {
  return KeepsExpression(operand, family) ? operand.expression() : text;
}

// Whether a switch of this name is what reduces= calls `wanted`: by its whole name, or by what
// stands behind its last dot.
bool IsCalled(const std::string& name, const std::string& wanted) {
  return name == wanted || name.ends_with("." + wanted);
}

// The switches that reduces= names, beside those that the operands brought along.
Status SetReducing(const FamilyCall& call, Draft& draft) {
  if (!call.reducing) return {};
  if (draft.num_switches == 0)
    return FaultAt(call.reducing->column, "reduces=: the network has no switches");
  const auto add = [&](const std::string* wanted) {
    bool found = false;
    for (int32_t node = draft.num_ranks; node < draft.num_ranks + draft.num_switches; ++node) {
      const std::string name =
          draft.names.empty() ? std::to_string(node) : draft.names[static_cast<size_t>(node)];
      if (wanted != nullptr && !IsCalled(name, *wanted)) continue;
      draft.reducing.push_back(node);
      found = true;
    }
    return found;
  };
  if (call.reducing->all) add(nullptr);
  for (const NamedCable& name : call.reducing->names)
    if (!add(&name.text))
      return FaultAt(
          name.column,
          fmt::format("reduces=: no switch is called '{}'; the first is '{}'", Shown(name.text),
                      draft.names.empty() ? std::to_string(draft.num_ranks)
                                          : draft.names[static_cast<size_t>(draft.num_ranks)]));
  return {};
}

// Makes the networks of `resolved`, operands first.
Result<Topology> Evaluate(Resolved resolved, const ParseLimits& limits) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  FamilyCall& call = resolved.call;
  call.limits = limits;
  if (call.family == nullptr) {
    if (!limits.allow_files)
      return FaultAt(call.column,
                     fmt::format("'{}': files are not accepted here", Shown(resolved.path)));
    Result<Topology> topology = ReadTopologyFile(resolved.path);
    if (topology &&
        (topology->num_nodes() > limits.max_nodes || topology->num_links() > limits.max_links))
      return FaultAt(call.column,
                     fmt::format("'{}': {} nodes and {} links, at most {} and {} are accepted",
                                 Shown(resolved.path), topology->num_nodes(), topology->num_links(),
                                 limits.max_nodes, limits.max_links));
    return topology;
  }
  std::vector<std::string> names, expressions;
  for (Resolved& operand : resolved.operands) {
    const std::string text = operand.text;
    Result<Topology> network = Evaluate(std::move(operand), limits);
    if (!network) return network;
    names.push_back(NameInside(*network, text));
    expressions.push_back(ExpressionInside(*network, call.family->info.name, text));
    call.operands.push_back(*std::move(network));
  }
  Result<Draft> draft = call.family->build(call);
  if (!draft) return tl::unexpected(draft.error());
  if (call.host_bandwidth)
    draft->host_bandwidth.assign(static_cast<size_t>(draft->num_ranks), *call.host_bandwidth);
  if (Status status = SetReducing(call, *draft); !status) return tl::unexpected(status.error());
  Result<Topology> topology =
      FinishDraft(*std::move(draft), call.links.parallel, TextOf(resolved, expressions));
  if (!topology)
    return FaultAt(call.column,
                   fmt::format("{}: {}", Shown(resolved.text), topology.error().message));
  TopologyOrigin origin = topology->origin();
  origin.name = TextOf(resolved, names);
  return (*std::move(topology)).WithOrigin(std::move(origin));
}

ExpressionTree ToTree(const Resolved& resolved) {
  ExpressionTree tree;
  tree.text = resolved.text;
  const FamilyCall& call = resolved.call;
  if (call.family == nullptr) return tree;
  tree.family = call.family->info.name;
  if (!call.family->info.members.empty()) tree.member = call.family->info.members[call.member].name;
  for (const Resolved& operand : resolved.operands) tree.operands.push_back(ToTree(operand));
  tree.sizes = call.sizes;
  for (size_t i = 0; i < call.options.size(); ++i)
    if (call.options[i])
      tree.options.push_back({std::string(call.family->options[i]), *call.options[i]});
  tree.parallel = call.links.parallel;
  tree.bandwidth = call.links.bandwidth.values;
  tree.alpha_ps = call.links.alpha_ps.values;
  tree.host_bandwidth = call.host_bandwidth;
  for (const NamedCable& cable : call.cables) tree.cables.push_back(cable.text);
  return tree;
}

}  // namespace
}  // namespace topo

Result<Topology> ParseTopology(std::string_view expression, const ParseLimits& limits) {
  const Result<topo::SyntaxNode> node = topo::ParseSyntax(expression);
  if (!node) return tl::unexpected(node.error());
  Result<topo::Resolved> resolved = topo::Resolver().Resolve(*node);
  if (!resolved) return tl::unexpected(resolved.error());
  return topo::Evaluate(*std::move(resolved), limits);
}

std::optional<int64_t> ExpressionTree::option(std::string_view name) const {
  for (const Option& one : options)
    if (one.name == name) return one.value;
  return std::nullopt;
}

Result<ExpressionTree> ParseExpressionTree(std::string_view expression) {
  const Result<topo::SyntaxNode> node = topo::ParseSyntax(expression);
  if (!node) return tl::unexpected(node.error());
  const Result<topo::Resolved> resolved = topo::Resolver().Resolve(*node);
  if (!resolved) return tl::unexpected(resolved.error());
  return topo::ToTree(*resolved);
}

std::vector<FamilyInfo> TopologyFamilies() {
  std::vector<FamilyInfo> infos;
  for (const topo::Family& family : topo::Families()) infos.push_back(family.info);
  return infos;
}

}  // namespace tutti
