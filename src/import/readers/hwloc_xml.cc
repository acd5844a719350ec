// hwloc's XML (`lstopo --of xml`, version 2): one host, without its name: packages and NUMA nodes,
// bridges and PCI devices, and matrices of NVLinks. Read with pugixml and not with libhwloc, which
// keeps no lines and would come along with every build.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "reader.h"
#include "text.h"
#include "xml_file.h"

namespace tutti::import {
namespace {

constexpr int kMaxHwlocDepth = 64;

// A PCI device and the objects around it, outermost first.
struct Device {
  std::vector<pugi::xml_node> around;
  pugi::xml_node element;
};

std::string_view TypeOf(const pugi::xml_node& node) { return node.attribute("type").value(); }

// hwloc's numbers of what the operating system makes of a device.
bool IsOsDevice(const pugi::xml_node& node, std::string_view number) {
  return TypeOf(node) == "OSDev" && node.attribute("osdev_type").value() == number;
}
constexpr std::string_view kNetwork = "2", kOpenFabrics = "3";

class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : file_(text, source), source_(source) {}

  Result<Facts> Read(bool may_be_empty) {
    const Result<pugi::xml_node> parsed =
        file_.Parse("topology", "<!ENTITY", "an entity, which hwloc never writes");
    if (!parsed) return tl::unexpected(parsed.error());
    const pugi::xml_node& topology = *parsed;
    if (const std::string_view version = topology.attribute("version").value();
        !version.starts_with("2"))
      return file_.Fault(
          topology,
          fmt::format("version=\"{}\", wanted 2; write it with lstopo of hwloc 2", Shown(version)));
    if (Status status = Walk(topology, {}, 0); !status) return tl::unexpected(status.error());
    if (gpus_.empty() && nics_.empty() && may_be_empty)
      return Facts{.source = source_,
                   .format = "hwloc-xml",
                   .notes = {fmt::format("{} shows no GPU and no NIC", source_)}};
    if (gpus_.empty() && nics_.empty())
      return file_.Fault(topology, "no GPU and no NIC; `lstopo --whole-io` writes devices");
    return MakeFacts(topology);
  }

 private:
  Status Walk(const pugi::xml_node& parent, std::vector<pugi::xml_node> around, int depth) {
    if (depth > kMaxHwlocDepth)
      return file_.Fault(parent, fmt::format("nested deeper than {} levels", kMaxHwlocDepth));
    for (const pugi::xml_node& node : parent.children("object")) {
      if (TypeOf(node) == "PCIDev") {
        AddDevice(around, node);
        if (static_cast<int64_t>(gpus_.size() + nics_.size()) > kMaxBoxDevices)
          return file_.Fault(node, fmt::format("more than {} GPUs and NICs", kMaxBoxDevices));
        continue;
      }
      if (TypeOf(node) == "Package") ++num_packages_;
      std::vector<pugi::xml_node> inside = around;
      inside.push_back(node);
      if (Status status = Walk(node, std::move(inside), depth + 1); !status) return status;
    }
    return {};
  }

  // pci_type="0302 [10de:2330] ..."
  void AddDevice(const std::vector<pugi::xml_node>& around, const pugi::xml_node& node) {
    const std::string_view type = node.attribute("pci_type").value();
    const bool is_nvidia = type.find("[10de:") != type.npos,
               is_amd = type.find("[1002:") != type.npos;
    if ((is_nvidia && type.starts_with("0302")) ||
        (is_amd && (type.starts_with("0380") || type.starts_with("1200"))))
      gpus_.push_back({around, node});
    else if (NicOf(node))
      nics_.push_back({around, node});
    else if (node.attribute("subtype").value() == std::string_view("NVSwitch"))
      NoteOwner(node, kNvSwitch);
  }

  // Whose the objects of matrices are: a device, or what the operating system makes of it.
  void NoteOwner(const pugi::xml_node& device, int32_t owner) {
    owners_.emplace(device.attribute("gp_index").value(), owner);
    for (const pugi::xml_node& node : device.children("object"))
      owners_.emplace(node.attribute("gp_index").value(), owner);
  }

  // The InfiniBand or RoCE device of a card, else its network interface.
  static pugi::xml_node NicOf(const pugi::xml_node& device) {
    for (const std::string_view kind : {kOpenFabrics, kNetwork})
      for (const pugi::xml_node& node : device.children("object"))
        if (IsOsDevice(node, kind)) return node;
    return {};
  }

  static bool IsBridge(const pugi::xml_node& node) { return TypeOf(node) == "Bridge"; }

  // Below one switch each device has a port of its own.
  PathClass ClassOf(const Device& a, const Device& b) const {
    size_t common = 0, bridges = 0;
    for (; common < a.around.size() && common < b.around.size() &&
           a.around[common] == b.around[common];
         ++common)
      bridges += IsBridge(a.around[common]) ? 1 : 0;
    if (bridges > 1) {
      const size_t apart = std::max(a.around.size(), b.around.size()) - common;
      return apart <= 1 ? PathClass::kPix : PathClass::kPxb;
    }
    if (bridges == 1) return PathClass::kPhb;
    // Within one package, or on a machine that has but one.
    const bool is_whole = common == 0 || TypeOf(a.around[common - 1]) == "Machine";
    return is_whole && num_packages_ > 1 ? PathClass::kSys : PathClass::kNode;
  }

  // GB/s, as hwloc says it; 0: not said.
  static int64_t BandwidthOf(const pugi::xml_node& node) {
    const double value = std::strtod(node.attribute("pci_link_speed").value(), nullptr);
    return value > 0 && value < 1e6 ? std::llround(value * 1e9) : 0;
  }

  Result<Facts> MakeFacts(const pugi::xml_node& topology) {
    BoxFacts box;
    box.place = file_.PlaceOf(topology);
    const auto by_address = [](const Device& a, const Device& b) {
      return Lower(a.element.attribute("pci_busid").value()) <
             Lower(b.element.attribute("pci_busid").value());
    };
    std::stable_sort(gpus_.begin(), gpus_.end(), by_address);
    for (const Device& gpu : gpus_)
      box.gpus.push_back({.id = Lower(gpu.element.attribute("pci_busid").value()),
                          .pcie_bandwidth = BandwidthOf(gpu.element),
                          .place = file_.PlaceOf(gpu.element)});
    for (size_t i = 0; i < gpus_.size(); ++i) NoteOwner(gpus_[i].element, static_cast<int32_t>(i));
    for (const Device& nic : nics_)
      if (Status status = AddNic(nic, box); !status) return tl::unexpected(status.error());
    std::vector<const Device*> devices;
    for (const Device& gpu : gpus_) devices.push_back(&gpu);
    for (const Device& nic : nics_) devices.push_back(&nic);
    for (const Device* a : devices)
      for (const Device* b : devices)
        box.classes.push_back(a == b ? PathClass::kSelf : ClassOf(*a, *b));
    for (const char* name : {"distances2", "distances2hetero"})
      for (const pugi::xml_node& matrix : topology.children(name))
        if (matrix.attribute("name").value() == std::string_view("NVLinkBandwidth"))
          if (Status status = AddNvlinks(matrix, box); !status)
            return tl::unexpected(status.error());
    Facts facts{.source = source_, .format = "hwloc-xml"};
    facts.boxes.push_back(std::move(box));
    return facts;
  }

  Status AddNic(const Device& device, BoxFacts& box) const {
    const pugi::xml_node node = NicOf(device.element);
    NicFact nic{.name = node.attribute("name").value(),
                .guid = "",
                .bandwidth = 0,
                .place = file_.PlaceOf(node)};
    for (const pugi::xml_node& info : node.children("info"))
      if (info.attribute("name").value() == std::string_view("NodeGUID"))
        for (const char c : std::string_view(info.attribute("value").value()))
          if (std::isxdigit(static_cast<unsigned char>(c)) != 0) nic.guid += c;
    nic.guid = nic.guid.size() == 16 ? Lower(nic.guid) : "";
    return file_.AddNic(node, std::move(nic), box);
  }

  // Numbers of all elements of a name, such as the <u64values> of a matrix.
  Result<std::vector<int64_t>> NumbersOf(const pugi::xml_node& matrix, const char* name) const {
    std::vector<int64_t> numbers;
    for (const pugi::xml_node& part : matrix.children(name))
      for (std::string_view word : Words(part.text().get())) {
        if (const size_t colon = word.find(':'); colon != word.npos) word.remove_prefix(colon + 1);
        const auto number = Number(word, int64_t{1} << 40);
        if (!number)
          return file_.Fault(part, fmt::format("found '{}', wanted a whole number", Shown(word)));
        numbers.push_back(*number);
      }
    return numbers;
  }

  // MB/s of all NVLinks between two, of 25 GB/s each, of the first generation 20 GB/s.
  Status AddNvlinks(const pugi::xml_node& matrix, BoxFacts& box) {
    const Result<std::vector<int64_t>> objects = NumbersOf(matrix, "indexes");
    if (!objects) return tl::unexpected(objects.error());
    const Result<std::vector<int64_t>> values = NumbersOf(matrix, "u64values");
    if (!values) return tl::unexpected(values.error());
    const size_t n = objects->size();
    if (n > static_cast<size_t>(kMaxBoxDevices) || values->size() != n * n)
      return file_.Fault(matrix, fmt::format("{} values for {} objects", values->size(), n));
    std::vector<std::optional<int32_t>> owners;
    for (const int64_t object : *objects) {
      const auto found = owners_.find(std::to_string(object));
      owners.push_back(found == owners_.end() ? std::nullopt : std::optional(found->second));
    }
    std::map<std::pair<int32_t, int32_t>, int64_t> links;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        const int64_t megabytes = (*values)[i * n + j];
        if (i == j || megabytes == 0 || !owners[i] || !owners[j] || *owners[i] < 0) continue;
        if (*owners[j] >= 0 && *owners[j] <= *owners[i]) continue;  // the other half
        const int64_t one = megabytes % 25'000 == 0 ? 25'000 : 20'000;
        if (megabytes % one != 0 || megabytes / one > 1000)
          return file_.Fault(matrix, fmt::format("{} MB/s are no whole NVLinks", megabytes));
        links[{*owners[i], *owners[j]}] += megabytes / one;
      }
    for (const auto& [ends, count] : links)
      box.nvlinks.push_back({.gpu = ends.first,
                             .peer = ends.second,
                             .links = static_cast<int32_t>(count),
                             .place = file_.PlaceOf(matrix)});
    return {};
  }

  XmlFile file_;
  const std::string& source_;
  std::vector<Device> gpus_, nics_;
  std::map<std::string, int32_t> owners_;  // by gp_index; kNvSwitch for NVSwitches
  int64_t num_packages_ = 0;
};

}  // namespace

bool LooksLikeHwlocXml(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 12);
  return head.find("<topology") != head.npos;
}

Result<Facts> ReadHwlocXml(std::string_view text, const std::string& source) {
  return Reader(text, source).Read(false);
}

Result<Facts> ReadShownByHwloc(std::string_view text, const std::string& source) {
  return Reader(text, source).Read(true);
}

}  // namespace tutti::import
