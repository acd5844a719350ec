// What hwloc shows of this host: libhwloc, opened at run time so that no build needs it, writes its XML,
// which the reader of such files reads.
#include <dlfcn.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader.h"
#include "tutti/import/import.h"

namespace tutti {
namespace {

constexpr const char* kLibrary = "libhwloc.so.15";  // the ABI of hwloc 2
constexpr int kKeepImportant = 3;                   // HWLOC_TYPE_FILTER_KEEP_IMPORTANT

// hwloc.h declares these of its `struct hwloc_topology*`.
struct Hwloc {
  void* library = nullptr;
  int (*init)(void**) = nullptr;
  int (*set_io_types_filter)(void*, int) = nullptr;
  int (*load)(void*) = nullptr;
  int (*is_thissystem)(void*) = nullptr;
  int (*export_xmlbuffer)(void*, char**, int*, unsigned long) = nullptr;
  void (*free_xmlbuffer)(void*, char*) = nullptr;
  void (*destroy)(void*) = nullptr;
};

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Stays open: hwloc's plug-ins are not made to be closed.
const Hwloc* OpenHwloc() {
  static const std::optional<Hwloc> opened = []() -> std::optional<Hwloc> {
    Hwloc hwloc;
    hwloc.library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (hwloc.library == nullptr) return std::nullopt;
    const bool all =
        Find(hwloc.library, "hwloc_topology_init", hwloc.init) &&
        Find(hwloc.library, "hwloc_topology_set_io_types_filter", hwloc.set_io_types_filter) &&
        Find(hwloc.library, "hwloc_topology_load", hwloc.load) &&
        Find(hwloc.library, "hwloc_topology_is_thissystem", hwloc.is_thissystem) &&
        Find(hwloc.library, "hwloc_topology_export_xmlbuffer", hwloc.export_xmlbuffer) &&
        Find(hwloc.library, "hwloc_free_xmlbuffer", hwloc.free_xmlbuffer) &&
        Find(hwloc.library, "hwloc_topology_destroy", hwloc.destroy);
    return all ? std::optional<Hwloc>(hwloc) : std::nullopt;
  }();
  return opened ? &*opened : nullptr;
}

// Lines of a text that nobody has are no places.
void SetPlaces(Facts& facts, const std::string& host) {
  const FactPlace place{facts.source, 0};
  facts.format = "hwloc";
  for (BoxFacts& box : facts.boxes) {
    box.host = host;
    box.place = place;
    for (GpuFact& gpu : box.gpus) gpu.place = place;
    for (NicFact& nic : box.nics) nic.place = place;
    for (NvlinkFact& link : box.nvlinks) link.place = place;
  }
}

}  // namespace

Result<std::optional<HwlocView>> DetectByHwloc(const std::string& host) {
  const Hwloc* const hwloc = OpenHwloc();
  if (hwloc == nullptr) return std::nullopt;
  void* topology = nullptr;
  if (hwloc->init(&topology) != 0) return std::nullopt;
  const std::unique_ptr<void, void (*)(void*)> owner(topology, hwloc->destroy);
  hwloc->set_io_types_filter(topology, kKeepImportant);
  if (hwloc->load(topology) != 0)
    return MakeError(
        ErrorCode::kCorrupt,
        "hwloc cannot load what HWLOC_XMLFILE or HWLOC_SYNTHETIC puts in place of this "
        "host");
  HwlocView view{.facts = {}, .is_this_host = hwloc->is_thissystem(topology) != 0};
  char* text = nullptr;
  int length = 0;
  if (hwloc->export_xmlbuffer(topology, &text, &length, 0) != 0)
    return MakeError(ErrorCode::kIo, "hwloc cannot write its XML");
  const std::unique_ptr<char, std::function<void(char*)>> buffer(
      text, [&](char* whole) { hwloc->free_xmlbuffer(topology, whole); });
  Result<Facts> facts = import::ReadShownByHwloc(
      std::string_view(text), view.is_this_host ? "hwloc" : "hwloc in place of this host");
  if (!facts) return tl::unexpected(facts.error());
  SetPlaces(*facts, host);
  view.facts = *std::move(facts);
  return view;
}

Result<std::vector<Facts>> DetectHost(const std::string& root, const std::string& host) {
  const bool is_here = root == "/";
  Result<std::optional<HwlocView>> hwloc = DetectByHwloc(host);
  if (!hwloc) return tl::unexpected(hwloc.error());
  const bool is_replaced = *hwloc && !(*hwloc)->is_this_host;
  std::vector<Facts> all;
  if (!is_here || !is_replaced) {
    Result<Facts> sysfs = DetectFacts(root, host);
    if (!sysfs) return tl::unexpected(sysfs.error());
    all.push_back(*std::move(sysfs));
  }
  if (!*hwloc || !(is_here || is_replaced)) return all;
  Facts& shown = (*hwloc)->facts;
  if (all.empty() && shown.boxes.empty())  // a host all the same
    shown.boxes.push_back({.host = host, .place = {shown.source, 0}});
  if (!all.empty() && !shown.boxes.empty() &&
      shown.boxes[0].gpus.size() != all[0].boxes[0].gpus.size()) {
    shown.notes.push_back(fmt::format("{} shows {} GPUs, {} shows {}: the first is left out",
                                      shown.source, shown.boxes[0].gpus.size(), all[0].source,
                                      all[0].boxes[0].gpus.size()));
    shown.boxes.clear();
  }
  all.push_back(std::move(shown));
  return all;
}

}  // namespace tutti
