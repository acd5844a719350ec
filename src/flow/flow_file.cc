#include "tutti/flow/flow_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "tutti/base/file.h"
#include "tutti/base/file_kind.h"
#include "tutti/base/json_text.h"

namespace tutti {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;

std::string RationalText(const Rational& value) {
  const auto num = value.Num64(), den = value.Den64();
  return fmt::format("{{\"num\":{},\"den\":{},\"value\":{}}}",
                     num ? std::to_string(*num) : QuotedJson(value.NumString()),
                     den ? std::to_string(*den) : QuotedJson(value.DenString()), value.ToDouble());
}

// `write(i)` gives the text of the i-th of `count` items.
template <class Write>
void AppendList(std::string& text, std::string_view key, size_t count, const Write& write) {
  text += fmt::format(",\"{}\":[", key);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += write(i);
  }
  text += ']';
}

// Numbers of any size are strings.
void AppendWide(const WideFlow& wide, std::string& text) {
  text += fmt::format(",\"exact\":{{\"units_per_demand\":\"{}\"", wide.units_per_demand.ToString());
  AppendList(text, "lengths", wide.lengths.size(),
             [&](size_t e) { return fmt::format("\"{}\"", wide.lengths[e].ToString()); });
  AppendList(text, "flow_from", wide.flow_from.size(), [&](size_t source) {
    std::string list = "[";
    for (const auto& [bundle, units] : wide.flow_from[source])
      fmt::format_to(std::back_inserter(list), "{}[{},\"{}\"]", list.size() > 1 ? "," : "", bundle,
                     units.ToString());
    return list + "]";
  });
  text += '}';
}

tl::unexpected<Error> Fault(const std::string& path, const std::string& wanted) {
  return MakeError(ErrorCode::kCorrupt, fmt::format("flow file: {}: wanted {}", path, wanted));
}

class Reader {
 public:
  explicit Reader(const Json& file) : file_(file) {}

  Result<StoredFlow> Read() {
    Status status = CheckHead();
    if (status) status = ReadNodes();
    if (status) status = ReadBundles();
    if (status) status = ReadNumbers("lengths", true, stored_.flow.lengths);
    if (status) status = ReadNumbers("demand", false, stored_.flow.demand);
    if (status) status = ReadFlows();
    if (!status) return tl::unexpected(status.error());
    return std::move(stored_);
  }

 private:
  // A whole number in [least, most].
  static std::optional<int64_t> WholeNumber(const Json& value, int64_t least, int64_t most) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return std::nullopt;
    const auto number = value.get<int64_t>();
    if (number < least || number > most) return std::nullopt;
    return number;
  }
  const Json* Find(const char* key) const {
    const auto found = file_.find(key);
    return found == file_.end() ? nullptr : &*found;
  }
  const Json* FindList(const char* key) const {
    const Json* value = Find(key);
    return value != nullptr && value->is_array() ? value : nullptr;
  }

  Status CheckHead() {
    if (!file_.is_object()) return Fault("the whole", "an object");
    const Json* format = Find("format");
    if (format == nullptr || *format != kFlowFormat) return Fault("format", "\"tutti-flow\"");
    const Json* version = Find("version");
    if (version == nullptr || *version != kVersion) return Fault("version", "1");
    const Json* units = Find("units_per_demand");
    const auto number = units == nullptr
                            ? std::nullopt
                            : WholeNumber(*units, 1, std::numeric_limits<int64_t>::max());
    if (!number) return Fault("units_per_demand", "a whole number of at least 1");
    stored_.flow.units_per_demand = *number;
    return {};
  }

  Status ReadNodes() {
    const Json* nodes = FindList("nodes");
    if (nodes == nullptr || nodes->empty()) return Fault("nodes", "a list of names");
    std::set<std::string_view> seen;
    for (const Json& name : *nodes) {
      if (!name.is_string()) return Fault("nodes", "names");
      if (!seen.insert(name.get_ref<const std::string&>()).second)
        return Fault("nodes", fmt::format("no name twice, got {}", name.dump()));
      stored_.node_names.push_back(name.get<std::string>());
    }
    return {};
  }

  Status ReadBundles() {
    const Json* bundles = FindList("bundles");
    if (bundles == nullptr) return Fault("bundles", "a list");
    const int64_t last = static_cast<int64_t>(stored_.node_names.size()) - 1;
    for (const Json& bundle : *bundles) {
      const std::string path = fmt::format("bundles/{}", stored_.flow.bundles.size());
      if (!bundle.is_array() || bundle.size() != 3) return Fault(path, "[tail, head, bandwidth]");
      const auto tail = WholeNumber(bundle[0], 0, last), head = WholeNumber(bundle[1], 0, last);
      const auto bandwidth = WholeNumber(bundle[2], 1, std::numeric_limits<int64_t>::max());
      if (!tail || !head || !bandwidth)
        return Fault(path, fmt::format("two nodes of 0 to {} and bytes a second", last));
      stored_.flow.bundles.push_back(
          {NodeId{static_cast<int32_t>(*tail)}, NodeId{static_cast<int32_t>(*head)}, *bandwidth});
    }
    return {};
  }

  Status ReadNumbers(const char* key, bool must, std::vector<int64_t>& numbers) {
    if (!must && Find(key) == nullptr) return {};
    const Json* list = FindList(key);
    if (list == nullptr) return Fault(key, "a list");
    for (const Json& value : *list) {
      const auto number = WholeNumber(value, 0, std::numeric_limits<int64_t>::max());
      if (!number)
        return Fault(fmt::format("{}/{}", key, numbers.size()), "a whole number of at least 0");
      numbers.push_back(*number);
    }
    return {};
  }

  Status ReadFlows() {
    const Json* flows = FindList("flow_from");
    if (flows == nullptr) return Fault("flow_from", "a list");
    const int64_t last = static_cast<int64_t>(stored_.flow.bundles.size()) - 1;
    for (const Json& from : *flows) {
      const std::string path = fmt::format("flow_from/{}", stored_.flow.flow_from.size());
      if (!from.is_array()) return Fault(path, "a list");
      std::vector<BundleFlow>& parts = stored_.flow.flow_from.emplace_back();
      for (const Json& part : from) {
        const bool is_pair = part.is_array() && part.size() == 2;
        const auto bundle = is_pair ? WholeNumber(part[0], 0, last) : std::nullopt;
        const auto units =
            is_pair ? WholeNumber(part[1], 1, std::numeric_limits<int64_t>::max()) : std::nullopt;
        if (!bundle || !units)
          return Fault(fmt::format("{}/{}", path, parts.size()),
                       fmt::format("[a bundle of 0 to {}, units of at least 1]", last));
        parts.push_back({static_cast<int32_t>(*bundle), *units});
      }
    }
    return {};
  }

  const Json& file_;
  StoredFlow stored_;
};

}  // namespace

std::string FlowToJson(const Topology& topology, const ConcurrentFlow& flow) {
  std::string text = fmt::format(
      "{{\"format\":\"{}\",\"version\":{},\"topology\":{},\"topology_fingerprint\":\"{:016x}\","
      "\"f\":{},\"f_upper\":{},\"units_per_demand\":{}",
      kFlowFormat, kVersion, QuotedJson(topology.name()), topology.Fingerprint(),
      RationalText(flow.f_lower), RationalText(flow.f_upper), flow.units_per_demand);
  const auto number = [](const std::vector<int64_t>& numbers) {
    return [&numbers](size_t i) { return std::to_string(numbers[i]); };
  };
  if (!flow.demand.empty()) AppendList(text, "demand", flow.demand.size(), number(flow.demand));
  AppendList(text, "nodes", static_cast<size_t>(topology.num_nodes()), [&](size_t node) {
    return QuotedJson(topology.node_name(NodeId{static_cast<int32_t>(node)}));
  });
  AppendList(text, "bundles", flow.bundles.size(), [&](size_t e) {
    const LinkBundle& bundle = flow.bundles[e];
    return fmt::format("[{},{},{}]", bundle.tail.value, bundle.head.value, bundle.bandwidth);
  });
  AppendList(text, "lengths", flow.lengths.size(), number(flow.lengths));
  AppendList(text, "flow_from", flow.flow_from.size(), [&](size_t source) {
    std::string list = "[";
    for (const auto& [bundle, units] : flow.flow_from[source])
      fmt::format_to(std::back_inserter(list), "{}[{},{}]", list.size() > 1 ? "," : "", bundle,
                     units);
    return list + "]";
  });
  if (flow.wide) AppendWide(*flow.wide, text);
  return text + "}\n";
}

Result<StoredFlow> FlowFromJson(const std::string& text) {
  const Json file = Json::parse(text, nullptr, false);
  if (file.is_discarded()) return Fault("the whole", "JSON");
  return Reader(file).Read();
}

Result<StoredFlow> ReadFlowFile(const std::string& path) {
  const Result<FileKind> kind = KindOfFile(path);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind != FileKind::kFlow && *kind != FileKind::kUnknown)
    return tl::unexpected(WrongKind(path, *kind, FileKind::kFlow));
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  Result<StoredFlow> flow = FlowFromJson(*text);
  if (!flow) return Within(path, flow.error());
  return flow;
}

Status WriteFlowFile(const std::string& path, const Topology& topology,
                     const ConcurrentFlow& flow) {
  return WriteFileAtomically(path, FlowToJson(topology, flow));
}

}  // namespace tutti
