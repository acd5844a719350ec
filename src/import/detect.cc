// What a Linux host shows of itself in sysfs.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "pcie.h"
#include "reader.h"
#include "text.h"
#include "tutti/import/import.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// The first line of a file of sysfs; "" where there is none.
std::string LineOf(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  constexpr size_t kMost = 256;
  return line.substr(0, kMost);
}

// Entries by name: the order of a directory is no order.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code fault;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
    entries.push_back(at->path());
    if (static_cast<int64_t>(entries.size()) >= kMaxFacts) break;
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// "0000:41:00.0".
bool IsPciAddress(const std::string& name) {
  return name.size() >= 12 && name[4] == ':' && name[7] == ':' && name[10] == '.' &&
         name.substr(0, 4).find_first_not_of("0123456789abcdef") == name.npos;
}

struct Device {
  std::vector<std::string> above;  // the root of its PCIe, then bridges
  std::string numa;
};

// Where a device of sysfs hangs, by the folder that its link leads to.
std::optional<Device> DeviceAt(const fs::path& link) {
  std::error_code fault;
  const fs::path real = fs::canonical(link, fault);
  if (fault) return std::nullopt;
  Device device{.above = {}, .numa = LineOf(real / "numa_node")};
  for (const fs::path& part : real) {
    const std::string name = part.string();
    if (name.starts_with("pci") || IsPciAddress(name)) device.above.push_back(name);
  }
  if (!device.above.empty()) device.above.pop_back();  // the device itself
  return device;
}

PathClass ClassOf(const Device& a, const Device& b) {
  size_t common = 0;
  while (common < a.above.size() && common < b.above.size() && a.above[common] == b.above[common])
    ++common;
  if (common == 0) return a.numa == b.numa ? PathClass::kNode : PathClass::kSys;
  if (common == 1) return PathClass::kPhb;
  // Below one switch each device has a port of its own.
  const size_t apart = std::max(a.above.size(), b.above.size()) - common;
  return apart <= 1 ? PathClass::kPix : PathClass::kPxb;
}

// "400 Gb/sec (4X NDR)" or, of a network interface, 100000 Mbit/s; 0 where it is neither.
int64_t GigabitsOf(const std::string& text) {
  const double value = std::strtod(text.c_str(), nullptr);
  if (text.find("Gb/sec") == text.npos || !(value > 0 && value < 100'000)) return 0;
  return int64_t{std::lround(value * 1000)} * 125'000;
}

std::string GuidOf(const std::string& text) {
  std::string digits;
  for (char c : text)
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
  return digits.size() == 16 ? import::Lower(digits) : "";
}

class Detector {
 public:
  Detector(const std::string& root, const std::string& host) : sys_(fs::path(root) / "sys") {
    const std::string source = (sys_ / "").string();
    box_.host = host;
    box_.place = {source, 0};
    facts_ = {.source = source, .format = "sysfs"};
  }

  Facts Detect() {
    FindGpus();
    if (has_nvidia_)
      facts_.notes.emplace_back(
          "sysfs does not show NVLink: import the output of `nvidia-smi topo -m` instead");
    FindInfiniband();
    if (box_.nics.empty()) FindInterfaces();
    for (const Device& a : devices_)
      for (const Device& b : devices_)
        box_.classes.push_back(&a == &b ? PathClass::kSelf : ClassOf(a, b));
    facts_.boxes.push_back(std::move(box_));
    return std::move(facts_);
  }

 private:
  bool IsFull() const { return static_cast<int64_t>(devices_.size()) >= kMaxBoxDevices; }

  // 3-D controllers and accelerators of NVIDIA and AMD.
  void FindGpus() {
    for (const fs::path& path : Entries(sys_ / "bus/pci/devices")) {
      const std::string kind = LineOf(path / "class"), vendor = LineOf(path / "vendor");
      const bool is_gpu =
          (vendor == "0x10de" && kind.starts_with("0x0302")) ||
          (vendor == "0x1002" && (kind.starts_with("0x0380") || kind.starts_with("0x1200")));
      const std::optional<Device> device = is_gpu ? DeviceAt(path) : std::nullopt;
      if (!device || IsFull()) continue;
      has_nvidia_ = has_nvidia_ || vendor == "0x10de";
      devices_.push_back(*device);
      box_.gpus.push_back(
          {.id = path.filename().string(),
           .pcie_bandwidth = import::PcieBandwidth(LineOf(path / "current_link_speed"),
                                                   LineOf(path / "current_link_width")),
           .place = {path.string(), 0}});
    }
  }

  void FindInfiniband() {
    for (const fs::path& path : Entries(sys_ / "class/infiniband")) {
      const std::optional<Device> device = DeviceAt(path / "device");
      const std::string name = path.filename().string();
      if (!device || IsFull() || !import::IsNodeName(name)) continue;
      int64_t bandwidth = 0;
      for (const fs::path& port : Entries(path / "ports"))
        if (LineOf(port / "state").find("ACTIVE") != std::string::npos)
          bandwidth += GigabitsOf(LineOf(port / "rate"));
      devices_.push_back(*device);
      box_.nics.push_back({.name = name,
                           .guid = GuidOf(LineOf(path / "node_guid")),
                           .bandwidth = bandwidth,
                           .place = {path.string(), 0}});
    }
  }

  // Without InfiniBand and RoCE: what has a device behind it and a speed.
  void FindInterfaces() {
    for (const fs::path& path : Entries(sys_ / "class/net")) {
      const auto speed = import::Number(LineOf(path / "speed"), 10'000'000);
      const std::optional<Device> device = speed ? DeviceAt(path / "device") : std::nullopt;
      const std::string name = path.filename().string();
      if (!device || *speed == 0 || IsFull() || !import::IsNodeName(name)) continue;
      devices_.push_back(*device);
      box_.nics.push_back(
          {.name = name, .bandwidth = *speed * 125'000, .place = {path.string(), 0}});
    }
  }

  fs::path sys_;
  BoxFacts box_;
  Facts facts_;
  bool has_nvidia_ = false;
  std::vector<Device> devices_;  // GPUs, then NICs
};

}  // namespace

Result<Facts> DetectFacts(const std::string& root, const std::string& host) {
  if (!import::IsNodeName(host))
    return InvalidArgument(fmt::format("'{}' is no name of a host", import::Shown(host)));
  std::error_code fault;
  const fs::path sys = fs::path(root) / "sys";
  if (!fs::is_directory(sys, fault))
    return MakeError(ErrorCode::kIo, fmt::format("{}: no sysfs is there", sys.string()));
  return Detector(root, host).Detect();
}

}  // namespace tutti
