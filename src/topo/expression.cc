#include "tutti/topo/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "families/family.h"
#include "syntax.h"
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
  std::string text;  // canonical
};

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

// `bw=` or `alpha=`: one value or a list, whose unit may stand behind it.
Status ParseQuantities(const SyntaxNode& node, Result<int64_t> (*parse)(std::string_view),
                       int64_t least, int64_t most, PerDimension<int64_t>& out) {
  out.column = node.column;
  out.is_list = node.kind == SyntaxNode::Kind::kList;
  if (node.has_parentheses || node.kind == SyntaxNode::Kind::kPath)
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
        Resolved resolved;
        resolved.call.column = node.column;
        resolved.path = node.text;
        resolved.text = PrintPath(node.text);
        return resolved;
      }
      case SyntaxNode::Kind::kCall:
        return ResolveCall(node);
      default:
        return FaultAt(node.column,
                       fmt::format("found '{}', wanted a network: a family such as torus(4,4) or a "
                                   "path that ends in .json",
                                   Shown(node.text)));
    }
  }

 private:
  Result<Resolved> ResolveCall(const SyntaxNode& node) const {
    const Family* family = FindFamily(node.text);
    if (family == nullptr) return UnknownFamily(node);
    Resolved resolved;
    FamilyCall& call = resolved.call;
    call.family = family;
    call.column = node.column;
    call.options.resize(family->options.size());
    call.links.defaults = family->default_link;
    std::string arguments;
    if (Status status = CollectArguments(node, resolved, arguments); !status)
      return tl::unexpected(status.error());
    if (Status status = CollectKeywords(node, call); !status) return tl::unexpected(status.error());
    arguments += PrintKeywords(call);
    resolved.text = family->info.name;
    if (!arguments.empty()) resolved.text += fmt::format("({})", arguments.substr(1));
    return resolved;
  }

  // The name of a member where the family has some; else networks, then numbers. Appends
  // ",argument" for each to `text`.
  Status CollectArguments(const SyntaxNode& node, Resolved& resolved, std::string& text) const {
    FamilyCall& call = resolved.call;
    const Family& family = *call.family;
    bool wants_name = !family.info.members.empty();
    for (const SyntaxNode& item : node.items) {
      if (!item.keyword.empty()) continue;
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
        text += fmt::format(",{}", operand->text);
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

  static Status CollectKeywords(const SyntaxNode& node, FamilyCall& call) {
    constexpr int64_t kMaxParallel = 1 << 16;
    constexpr int64_t kMaxBandwidth = int64_t{1} << 50;
    constexpr int64_t kMaxAlphaPs = 1'000'000'000'000'000;
    const Family& family = *call.family;
    std::set<std::string_view> seen;
    for (const SyntaxNode& item : node.items) {
      const std::string& key = item.keyword;
      if (key.empty()) continue;
      if (!seen.insert(key).second)
        return FaultAt(item.keyword_column,
                       fmt::format("the keyword '{}' stands there twice", Shown(key)));
      const auto option = std::find(family.options.begin(), family.options.end(), key);
      if (key == "bw" || (key == "bw_per_link" && family.shares_bandwidth)) {
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

  static std::vector<std::string_view> KeywordsOf(const Family& family) {
    std::vector<std::string_view> keywords = family.options;
    keywords.insert(keywords.end(), {"alpha", "bw", "host_bw"});
    if (family.shares_bandwidth) keywords.push_back("bw_per_link");
    keywords.push_back("parallel");
    return keywords;
  }

  static std::string PrintKeywords(const FamilyCall& call) {
    std::string text;
    for (size_t i = 0; i < call.options.size(); ++i)
      if (call.options[i]) text += fmt::format(",{}={}", call.family->options[i], *call.options[i]);
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
    return text;
  }
};

// Makes the networks of `resolved`, operands first.
Result<Topology> Evaluate(Resolved resolved, const ParseLimits& limits) {
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
  for (Resolved& operand : resolved.operands) {
    Result<Topology> network = Evaluate(std::move(operand), limits);
    if (!network) return network;
    call.operands.push_back(*std::move(network));
  }
  Result<Draft> draft = call.family->build(call);
  if (!draft) return tl::unexpected(draft.error());
  if (call.host_bandwidth)
    draft->host_bandwidth.assign(static_cast<size_t>(draft->num_ranks), *call.host_bandwidth);
  Result<Topology> topology = FinishDraft(*std::move(draft), call.links.parallel, resolved.text);
  if (!topology)
    return FaultAt(call.column,
                   fmt::format("{}: {}", Shown(resolved.text), topology.error().message));
  return topology;
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
