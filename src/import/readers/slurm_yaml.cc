// Slurm's topology.yaml: a list of topologies, of which the default counts (else the first): `tree`
// with switches and what is below them, or `block` with blocks of nodes. Aliases, which could make
// a small file a large one, are refused.
#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reader.h"
#include "text.h"
#include "tutti/import/import.h"

namespace tutti::import {
namespace {

constexpr int kMaxYamlDepth = 16;
constexpr int64_t kMaxValues = 4 * kMaxFacts;

// A value of YAML, with its line.
struct Value {
  enum class Kind : uint8_t { kScalar, kList, kMap } kind = Kind::kScalar;
  std::string text = {};
  int64_t line = 0;
  std::vector<std::pair<std::string, Value>> items = {};  // of lists without keys

  const Value* Find(std::string_view key) const {
    for (const auto& [name, value] : items)
      if (kind == Kind::kMap && name == key) return &value;
    return nullptr;
  }
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& source) : source_(source) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() { yaml_parser_delete(&parser_); }

  Result<Value> Read() {
    for (;;) {
      const Result<Event> event = Next();
      if (!event) return tl::unexpected(event.error());
      if (event->type == YAML_STREAM_END_EVENT) return FaultIn(source_, 0, "no value is in it");
      if (event->type == YAML_STREAM_START_EVENT || event->type == YAML_DOCUMENT_START_EVENT)
        continue;
      return Read(*event, 0);
    }
  }

 private:
  struct Event {
    yaml_event_type_t type;
    std::string text;
    int64_t line;
  };

  Result<Event> Next() {
    yaml_event_t raw;
    if (yaml_parser_parse(&parser_, &raw) == 0)
      return FaultIn(source_, static_cast<int64_t>(parser_.problem_mark.line) + 1,
                     fmt::format("no YAML: {}",
                                 parser_.problem == nullptr ? "broken" : Shown(parser_.problem)));
    Event event{raw.type, "", static_cast<int64_t>(raw.start_mark.line) + 1};
    if (raw.type == YAML_SCALAR_EVENT)
      event.text.assign(reinterpret_cast<const char*>(raw.data.scalar.value),
                        raw.data.scalar.length);
    yaml_event_delete(&raw);
    return event;
  }

  Result<Value> Read(const Event& event, int depth) {
    if (depth > kMaxYamlDepth)
      return FaultIn(source_, event.line,
                     fmt::format("nested deeper than {} levels", kMaxYamlDepth));
    if (++values_ > kMaxValues)
      return FaultIn(source_, event.line, fmt::format("more than {} values", kMaxValues));
    Value value{Value::Kind::kScalar, event.text, event.line, {}};
    if (event.type == YAML_SCALAR_EVENT) return value;
    const bool is_map = event.type == YAML_MAPPING_START_EVENT;
    if (!is_map && event.type != YAML_SEQUENCE_START_EVENT)
      return FaultIn(source_, event.line, "an alias, which is not taken");
    value.kind = is_map ? Value::Kind::kMap : Value::Kind::kList;
    if (Status status = ReadItems(is_map, depth, value); !status)
      return tl::unexpected(status.error());
    return value;
  }

  Status ReadItems(bool is_map, int depth, Value& value) {
    for (;;) {
      Result<Event> event = Next();
      if (!event) return tl::unexpected(event.error());
      if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT)
        return {};
      std::string key;
      if (is_map) {
        if (event->type != YAML_SCALAR_EVENT)
          return FaultIn(source_, event->line, "a key that is no word");
        key = event->text;
        if (value.Find(key) != nullptr)
          return FaultIn(source_, event->line, fmt::format("the key '{}' is twice", Shown(key)));
        if (value.items.size() > kMaxKeys)
          return FaultIn(source_, event->line, fmt::format("more than {} keys", kMaxKeys));
        event = Next();
        if (!event) return tl::unexpected(event.error());
      }
      Result<Value> item = Read(*event, depth + 1);
      if (!item) return tl::unexpected(item.error());
      value.items.emplace_back(std::move(key), std::move(*item));
    }
  }

  static constexpr size_t kMaxKeys = 64;
  const std::string& source_;
  yaml_parser_t parser_;
  int64_t values_ = 0;
};

class SlurmYamlReader {
 public:
  explicit SlurmYamlReader(const std::string& source) : source_(source) {
    facts_ = {.source = source, .format = "slurm-yaml", .is_tree = true};
  }

  Result<Facts> Read(const Value& root) {
    if (root.kind != Value::Kind::kList || root.items.empty())
      return FaultIn(source_, root.line, "wanted a list of topologies");
    const Value* chosen = &root.items.front().second;
    for (const auto& [unused, one] : root.items) {
      if (one.kind != Value::Kind::kMap || one.Find("topology") == nullptr)
        return FaultIn(source_, one.line, "wanted a topology: its name behind 'topology:'");
      const Value* by_default = one.Find("cluster_default");
      if (by_default != nullptr && Lower(by_default->text) == "true") chosen = &one;
    }
    if (root.items.size() > 1)
      facts_.notes.push_back(fmt::format("{}: of {} topologies '{}' is taken", source_,
                                         root.items.size(), Shown(chosen->Find("topology")->text)));
    const Value* tree = chosen->Find("tree");
    const Value* block = chosen->Find("block");
    Status status;
    if (tree != nullptr)
      status = ReadList(*tree, "switches", "switch");
    else if (block != nullptr)
      status = ReadList(*block, "blocks", "block");
    else
      return FaultIn(source_, chosen->line,
                     fmt::format("topology '{}' is neither a tree nor of blocks",
                                 Shown(chosen->Find("topology")->text)));
    if (!status) return tl::unexpected(status.error());
    facts_.is_blocks = tree == nullptr;
    if (facts_.cables.empty())
      return FaultIn(source_, chosen->line, "no switch with nodes or switches");
    return std::move(facts_);
  }

 private:
  Status ReadList(const Value& from, const char* list, const char* name) {
    const Value* entries = from.Find(list);
    if (entries == nullptr || entries->kind != Value::Kind::kList)
      return FaultIn(source_, from.line, fmt::format("wanted the list '{}'", list));
    for (const auto& [unused, entry] : entries->items)
      if (Status status = ReadEntry(entry, name); !status) return status;
    return {};
  }

  Status ReadEntry(const Value& entry, const char* kind) {
    std::string name, nodes, children;
    for (const auto& [key, value] : entry.items) {
      std::string* const to = key == kind         ? &name
                              : key == "nodes"    ? &nodes
                              : key == "children" ? &children
                                                  : nullptr;
      if (to == nullptr || value.kind != Value::Kind::kScalar)
        return FaultIn(
            source_, value.line,
            fmt::format("found '{}', wanted {}, nodes or children with a value", Shown(key), kind));
      *to = value.text;
    }
    if (!IsNodeName(name))
      return FaultIn(source_, entry.line,
                     fmt::format("'{}' is no name of a {}", Shown(name), kind));
    const auto [first, is_new] = seen_.emplace(name, entry.line);
    if (!is_new)
      return FaultIn(source_, entry.line,
                     fmt::format("{} '{}' stands in line {}, too", kind, name, first->second));
    if (nodes.empty() && children.empty())
      return FaultIn(source_, entry.line,
                     fmt::format("{} '{}' has neither nodes nor children", kind, name));
    if (Status status = AddBelow(nodes, false, name, entry.line); !status) return status;
    return AddBelow(children, true, name, entry.line);
  }

  Status AddBelow(const std::string& list, bool is_switch, const std::string& above, int64_t line) {
    if (list.empty()) return {};
    const Result<std::vector<std::string>> names =
        ExpandHostList(list, kMaxFacts - static_cast<int64_t>(facts_.cables.size()));
    if (!names) return FaultIn(source_, line, names.error().message);
    if (const std::optional<std::string> twice = NamedTwice(*names))
      return FaultIn(source_, line,
                     fmt::format("'{}' stands below '{}' twice", *twice, Shown(above)));
    for (const std::string& name : *names) {
      if (is_switch && name == above)
        return FaultIn(source_, line, fmt::format("switch '{}' is below itself", Shown(name)));
      facts_.cables.push_back({.a = {.node = name, .is_switch = is_switch},
                               .b = {.node = above},
                               .place = {source_, line}});
    }
    return {};
  }

  const std::string& source_;
  std::map<std::string, int64_t> seen_;
  Facts facts_;
};

}  // namespace

bool LooksLikeSlurmYaml(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 14);
  Lines lines(head);
  for (std::string_view line; lines.Next(line);) {
    line = Trimmed(line.substr(0, line.find('#')));
    if (line.empty() || line == "---") continue;
    line.remove_prefix(std::min(line.find_first_not_of("-[{ "), line.size()));
    return line.starts_with("topology:") || line.starts_with("cluster_default:");
  }
  return false;
}

Result<Facts> ReadSlurmYaml(std::string_view text, const std::string& source) {
  const Result<Value> root = Parser(text, source).Read();
  if (!root) return tl::unexpected(root.error());
  return SlurmYamlReader(source).Read(*root);
}

}  // namespace tutti::import
