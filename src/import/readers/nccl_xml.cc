// NCCL topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE): one host, without its name: CPUs, PCIe
// switches below them, GPUs with their NVLinks and NICs. Attributes may be missing. What pugixml
// does not expand, entities and document types, is refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "pcie.h"
#include "reader.h"
#include "text.h"
#include "xml_file.h"

namespace tutti::import {
namespace {

// PCI classes begin so.
constexpr std::string_view kNvSwitchClass = "0x068000", kGpuClass = "0x03";
constexpr int kMaxNcclDepth = 32;

// A device and the elements around it: its NUMA node, then PCIe switches, outermost first.
struct NcclDevice {
  int64_t number = 0;  // dev=
  std::vector<pugi::xml_node> around;
  pugi::xml_node element;
};

class NcclXmlReader {
 public:
  NcclXmlReader(std::string_view text, const std::string& source)
      : file_(text, source), source_(source) {}

  Result<Facts> Read() {
    const Result<pugi::xml_node> parsed =
        file_.Parse("system", "<!DOCTYPE", "a document type, which this format has not");
    if (!parsed) return tl::unexpected(parsed.error());
    const pugi::xml_node& system = *parsed;
    if (Status status = Walk(system, {}, 0); !status) return tl::unexpected(status.error());
    if (gpus_.empty()) return FaultIn(source_, file_.PlaceOf(system).line, "no <gpu> element");
    if (static_cast<int64_t>(gpus_.size() + nets_.size()) > kMaxBoxDevices)
      return FaultIn(source_, 0, fmt::format("more than {} GPUs and NICs", kMaxBoxDevices));
    const auto by_number = [](const NcclDevice& a, const NcclDevice& b) {
      return a.number < b.number;
    };
    std::stable_sort(gpus_.begin(), gpus_.end(), by_number);
    std::stable_sort(nets_.begin(), nets_.end(), by_number);
    return MakeFacts(system);
  }

 private:
  Result<int64_t> Int(const pugi::xml_node& node, const char* name, int64_t fallback) const {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) return fallback;
    const auto value = Number(attribute.value(), int64_t{1} << 40);
    if (!value)
      return file_.Fault(
          node, fmt::format("{}=\"{}\", wanted a whole number", name, Shown(attribute.value())));
    return *value;
  }

  Status Walk(const pugi::xml_node& parent, std::vector<pugi::xml_node> around, int depth) {
    if (depth > kMaxNcclDepth)
      return file_.Fault(parent, fmt::format("nested deeper than {} levels", kMaxNcclDepth));
    for (const pugi::xml_node& node : parent.children()) {
      const std::string_view name = node.name();
      if (name == "gpu" || name == "net") {
        // A GPU's own PCI function is no switch; a NIC's neither.
        std::vector<pugi::xml_node> switches = around;
        if (!switches.empty() && switches.back().name() == std::string_view("pci"))
          switches.pop_back();
        const Result<int64_t> number = Int(node, "dev", 0);
        if (!number) return tl::unexpected(number.error());
        if (name == "gpu" && node.attribute("dev")) {
          const int64_t line = file_.PlaceOf(node).line;
          const auto [first, is_new] = numbered_.emplace(*number, line);
          if (!is_new)
            return file_.Fault(
                node, fmt::format("dev=\"{}\" stands in line {}, too", *number, first->second));
        }
        (name == "gpu" ? gpus_ : nets_).push_back({*number, std::move(switches), node});
      } else if (name == "cpu" || name == "pci") {
        std::vector<pugi::xml_node> inside = around;
        inside.push_back(node);
        if (Status status = Walk(node, std::move(inside), depth + 1); !status) return status;
      } else if (name == "nic") {
        if (Status status = Walk(node, around, depth + 1); !status) return status;
      }
    }
    return {};
  }

  static PathClass ClassOf(const NcclDevice& a, const NcclDevice& b) {
    size_t common = 0;
    while (common < a.around.size() && common < b.around.size() &&
           a.around[common] == b.around[common])
      ++common;
    if (common == 0) return PathClass::kSys;
    if (common == 1) return PathClass::kPhb;  // the CPU alone
    const size_t switches = a.around.size() + b.around.size() - 2 * common + 1;
    return switches == 1 ? PathClass::kPix : PathClass::kPxb;
  }

  Result<Facts> MakeFacts(const pugi::xml_node& system) {
    BoxFacts box;
    box.place = file_.PlaceOf(system);
    std::map<std::string, int32_t> by_address;
    for (const NcclDevice& gpu : gpus_) {
      const pugi::xml_node pci = gpu.element.parent();
      const std::string address = Lower(pci.attribute("busid").value());
      if (!address.empty() &&
          !by_address.emplace(address, static_cast<int32_t>(box.gpus.size())).second)
        return file_.Fault(pci, fmt::format("two GPUs at {}", Shown(address)));
      const Result<int64_t> sm = Int(gpu.element, "sm", 0);
      if (!sm) return tl::unexpected(sm.error());
      const Result<int64_t> pcie = PcieOf(pci);
      if (!pcie) return tl::unexpected(pcie.error());
      box.gpus.push_back(
          {.id = address, .sm = *sm, .pcie_bandwidth = *pcie, .place = file_.PlaceOf(gpu.element)});
    }
    if (num_without_lanes_ > 0)
      notes_.push_back(
          fmt::format("{}: link_width=\"0\" of {} GPUs: their PCIe links are not known",
                      file_.PlaceOf(without_lanes_).Text(), num_without_lanes_));
    for (size_t i = 0; i < gpus_.size(); ++i)
      if (Status status = ReadNvlinks(static_cast<int32_t>(i), by_address, box); !status)
        return tl::unexpected(status.error());
    for (const NcclDevice& net : nets_)
      if (Status status = ReadNet(net.element, box); !status) return tl::unexpected(status.error());
    std::vector<const NcclDevice*> devices;
    for (const NcclDevice& gpu : gpus_) devices.push_back(&gpu);
    for (const NcclDevice& net : nets_) devices.push_back(&net);
    for (const NcclDevice* a : devices)
      for (const NcclDevice* b : devices)
        box.classes.push_back(a == b ? PathClass::kSelf : ClassOf(*a, *b));
    Facts facts{.source = source_, .format = "nccl-xml"};
    facts.boxes.push_back(std::move(box));
    facts.notes = std::move(notes_);
    return facts;
  }

  // Of a GPU; 0 where it is not said.
  Result<int64_t> PcieOf(const pugi::xml_node& pci) {
    const std::string speed = pci.attribute("link_speed").value();
    const std::string lanes = pci.attribute("link_width").value();
    if (!IsPcieSpeed(speed))
      return file_.Fault(pci,
                         fmt::format("link_speed=\"{}\", wanted 2.5 to 256 GT/s", Shown(speed)));
    if (!IsPcieWidth(lanes))
      return file_.Fault(pci, fmt::format("link_width=\"{}\", wanted 1 to 64 lanes", Shown(lanes)));
    if (lanes == "0" && PcieBandwidth(speed, "1") > 0 && num_without_lanes_++ == 0)
      without_lanes_ = pci;
    return PcieBandwidth(speed, lanes);
  }

  Status ReadNvlinks(int32_t gpu, const std::map<std::string, int32_t>& by_address, BoxFacts& box) {
    for (const pugi::xml_node& node : gpus_[static_cast<size_t>(gpu)].element.children("nvlink")) {
      const Result<int64_t> count = Int(node, "count", 1);
      if (!count) return tl::unexpected(count.error());
      if (*count < 1 || *count > 1000)
        return file_.Fault(node, fmt::format("count=\"{}\", wanted 1 to 1000", *count));
      const std::string target = Lower(node.attribute("target").value());
      const std::string_view kind = node.attribute("tclass").value();
      NvlinkFact link{
          .gpu = gpu, .links = static_cast<int32_t>(*count), .place = file_.PlaceOf(node)};
      const auto peer = by_address.find(target);
      if (peer != by_address.end()) {
        if (peer->second == gpu) return file_.Fault(node, "an NVLink of a GPU to itself");
        link.peer = peer->second;
        if (Status status = AddDirect(node, link, box); !status) return status;
      } else if (kind.starts_with(kNvSwitchClass)) {
        box.nvlinks.push_back(link);
      } else if (kind.empty() || kind.starts_with(kGpuClass)) {
        return file_.Fault(node, fmt::format("no GPU has the address '{}'", Shown(target)));
      } else {
        notes_.push_back(
            fmt::format("{}:{}: NVLinks to something else than a GPU or an NVSwitch "
                        "are left out",
                        source_, file_.PlaceOf(node).line));
      }
    }
    return {};
  }

  // Both ends of a direct NVLink say so.
  Status AddDirect(const pugi::xml_node& node, NvlinkFact link, BoxFacts& box) {
    constexpr size_t kMost = 1 << 13;
    if (box.nvlinks.size() >= kMost)
      return file_.Fault(node, fmt::format("more than {} <nvlink> elements", kMost));
    if (link.peer < link.gpu) std::swap(link.gpu, link.peer);
    for (const NvlinkFact& other : box.nvlinks) {
      if (other.gpu != link.gpu || other.peer != link.peer) continue;
      if (other.links == link.links) return {};
      return file_.Fault(node, fmt::format("{} NVLinks, but line {} says {} of the two GPUs",
                                           link.links, other.place.line, other.links));
    }
    box.nvlinks.push_back(link);
    return {};
  }

  Status ReadNet(const pugi::xml_node& node, BoxFacts& box) {
    const Result<int64_t> megabits = Int(node, "speed", 0);
    if (!megabits) return tl::unexpected(megabits.error());
    if (*megabits > 100'000'000)
      return file_.Fault(node,
                         fmt::format("speed=\"{}\", wanted at most 100000000 Mbit/s", *megabits));
    NicFact nic{.name = node.attribute("name").value(),
                .guid = Guid(node.attribute("guid").value()),
                .bandwidth = *megabits * 125'000,
                .place = file_.PlaceOf(node)};
    if (nic.name.empty()) nic.name = fmt::format("net{}", box.nics.size());
    return file_.AddNic(node, std::move(nic), box);
  }

  // "0x3e1ffe0003ebd3b8" to 16 digits; "" where it is none or 0.
  static std::string Guid(std::string_view text) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    const std::string digits = Lower(text);
    if (digits.empty() || digits.size() > 16 ||
        digits.find_first_not_of("0123456789abcdef") != digits.npos ||
        digits.find_first_not_of('0') == digits.npos)
      return "";
    return std::string(16 - digits.size(), '0') + digits;
  }

  XmlFile file_;
  const std::string& source_;
  std::vector<NcclDevice> gpus_, nets_;
  std::map<int64_t, int64_t> numbered_;  // lines of GPUs, by dev=
  // GPUs with a speed of PCIe and no lanes, as NCCL writes it in virtual machines; the first's.
  int64_t num_without_lanes_ = 0;
  pugi::xml_node without_lanes_;
  std::vector<std::string> notes_;
};

}  // namespace

bool LooksLikeNcclXml(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 12);
  return head.find("<system") != head.npos;
}

Result<Facts> ReadNcclXml(std::string_view text, const std::string& source) {
  return NcclXmlReader(text, source).Read();
}

}  // namespace tutti::import
