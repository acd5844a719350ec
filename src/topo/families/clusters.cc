// Boxes of GPUs joined by NICs: the families cluster, dgx_a100, dgx_h100, mi250, nvl72, rail and
// hosts, and the fabrics fat_tree and spine_leaf with plain ranks.
//
// Model       Ranks are GPUs, box by box. The NVSwitches of a box are one switch node, which is
//             exact where each GPU has as many links to each of them. A NIC that only one GPU is
//             near to is that GPU's link into the fabric; one that several share is a switch node
//             with links of its own bandwidth to them. Dimensions of bw= and alpha=: inside the
//             box, NIC, above the leaves.
// Nodes       box3.gpu5; then box3.nvswitch; then box3.nic1 where GPUs share it; then the fabric.
// Reference   Bandwidths are those of data sheets, each way: NVIDIA DGX A100 (NVLink 600 GB/s both
//             ways, ConnectX-6 of 200 Gbit/s), DGX H100 (900 GB/s, ConnectX-7 of 400 Gbit/s), GB200
//             NVL72 (1.8 TB/s a GPU), AMD CDNA 2 (Infinity Fabric 50 GB/s a link).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families/fabric.h"
#include "families/family.h"
#include "families/host_list.h"
#include "families/override.h"

namespace tutti::topo {
namespace {

struct Box {
  std::string name;
  int64_t gpus = 0, nics = 0;
};

// A link between two GPUs of every box: so many cables, as one link.
struct Wire {
  int8_t a, b, cables;
};

struct Cluster {
  std::vector<Box> boxes = {};
  int64_t inside_bandwidth = 450'000'000'000;  // NVSwitch: a GPU's; wires: a cable's
  int64_t nic_bandwidth = 50'000'000'000;
  std::span<const Wire> wires = {};  // empty: an NVSwitch
  const char* fabric = "rails";      // where none is given
  int64_t rails = 0;                 // of that; 0: as many as NICs
  bool plain = false;                // boxes are ranks: no ".gpu0" behind their names
};

// The cluster that `call` describes, with every size checked.
class Builder {
 public:
  Builder(const FamilyCall& call, Cluster cluster) : call_(call), cluster_(std::move(cluster)) {}

  Result<Draft> Build() {
    if (Status status = CheckBoxes(); !status) return tl::unexpected(status.error());
    Count();
    std::optional<Fabric> fabric;
    if (cluster_.boxes.size() > 1 || call_.setting("fabric") != nullptr) {
      if (ports_ == 0) return call_.Fault("several boxes without NICs are not joined");
      Result<Fabric> made = MakeFabric();
      if (!made) return tl::unexpected(made.error());
      fabric = *made;
    } else if (call_.setting("oversubscription") != nullptr) {
      return call_.Fault("oversubscription= of a single box, which has no fabric");
    } else {
      ports_ = nic_nodes_ = nic_cables_ = 0;  // lead nowhere
    }
    const int64_t fabric_cables =
        fabric ? SaturatingAdd(fabric->num_cables(), SaturatingAdd(ports_, nic_cables_)) : 0;
    Result<Draft> draft = call_.Start(
        ranks_, SaturatingAdd(nvswitches_ + nic_nodes_, fabric ? fabric->num_switches() : 0),
        SaturatingMul(2, SaturatingAdd(inside_cables_, fabric_cables)), 3);
    if (!draft) return draft;
    AddBoxes(*draft, fabric.has_value());
    if (fabric) {
      const LinkParameters& links = call_.links;
      if (links.bandwidth.given() && call_.setting("oversubscription") != nullptr)
        return call_.Fault("bw= and oversubscription= exclude each other");
      fabric->AppendNames(draft->names);
      if (Status status =
              fabric->AddTo(*draft, port_list_, ranks_ + nvswitches_ + nic_nodes_, Nic(), links);
          !status)
        return tl::unexpected(status.error());
    }
    if (const SettingValue* given = call_.setting("override"))
      if (Status status = ApplyOverrides(given->overrides, *draft); !status)
        return tl::unexpected(status.error());
    return draft;
  }

 private:
  Status CheckBoxes() const {
    for (const char* key : {"nvswitch", "nic", "xgmi"})
      if (call_.links.bandwidth.given() && call_.setting(key) != nullptr)
        return call_.Fault(fmt::format("bw= and {}= exclude each other", key));
    for (const Box& box : cluster_.boxes) {
      if (box.nics == 0 || box.gpus % box.nics == 0 || box.nics % box.gpus == 0) continue;
      return call_.Fault(
          fmt::format("{} GPUs and {} NICs in {}: one must be a multiple of the "
                      "other",
                      box.gpus, box.nics, box.name));
    }
    return {};
  }

  static bool SharesNics(const Box& box) { return box.nics > 0 && box.nics < box.gpus; }

  // Boxes are at most as many as nodes may be, GPUs and NICs of each, too: no sum overflows.
  void Count() {
    for (const Box& box : cluster_.boxes) {
      ranks_ = SaturatingAdd(ranks_, box.gpus);
      ports_ = SaturatingAdd(ports_, box.nics);
      if (SharesNics(box)) nic_nodes_ += box.nics;
      if (SharesNics(box)) nic_cables_ = SaturatingAdd(nic_cables_, box.gpus);
      if (!cluster_.wires.empty()) {
        inside_cables_ += static_cast<int64_t>(cluster_.wires.size());
      } else if (box.gpus > 1) {
        ++nvswitches_;
        inside_cables_ = SaturatingAdd(inside_cables_, box.gpus);
      }
    }
  }

  Result<Fabric> MakeFabric() {
    Fabric::Demand demand{.boxes = static_cast<int64_t>(cluster_.boxes.size()), .ports = ports_};
    for (const Box& box : cluster_.boxes) demand.nics = std::max(demand.nics, box.nics);
    const SettingValue* const given = call_.setting("fabric");
    if (given != nullptr)
      return Fabric::Make(given->fabric[0], demand, call_.setting("oversubscription"));
    default_fabric_.column = call_.column;
    default_fabric_.sizes = call_.sizes;
    default_fabric_.size_columns = call_.size_columns;
    for (const Family& fabric : Fabrics())
      if (fabric.info.name == cluster_.fabric) default_fabric_.family = &fabric;
    default_fabric_.options.resize(default_fabric_.family->options.size());
    if (cluster_.rails > 0) default_fabric_.options[0] = cluster_.rails;
    return Fabric::Make(default_fabric_, demand, call_.setting("oversubscription"));
  }

  LinkSpec With(int64_t bandwidth, std::initializer_list<const char*> keys, size_t dim) const {
    LinkSpec spec = call_.links.defaults;
    spec.bandwidth = bandwidth;
    for (const char* key : keys)
      if (const SettingValue* value = call_.setting(key)) spec.bandwidth = value->bandwidth;
    return call_.links.Override(spec, dim);
  }
  LinkSpec Inside() const { return With(cluster_.inside_bandwidth, {"nvswitch", "xgmi"}, 0); }
  LinkSpec Nic() const { return With(cluster_.nic_bandwidth, {"nic"}, 1); }

  void AddBoxes(Draft& draft, bool has_fabric) {
    for (const Box& box : cluster_.boxes)
      for (int64_t gpu = 0; gpu < box.gpus; ++gpu)
        draft.names.push_back(cluster_.plain ? box.name : fmt::format("{}.gpu{}", box.name, gpu));
    int64_t first = 0, next = ranks_;
    for (const Box& box : cluster_.boxes) {
      if (!cluster_.wires.empty()) {
        AddWires(draft, first);
      } else if (box.gpus > 1) {
        draft.names.push_back(box.name + ".nvswitch");
        for (int64_t gpu = 0; gpu < box.gpus; ++gpu) draft.AddCable(first + gpu, next, Inside());
        ++next;
      }
      first += box.gpus;
    }
    if (has_fabric) AddNics(draft, next);
  }

  void AddWires(Draft& draft, int64_t first) const {
    const LinkSpec one = Inside();
    for (const Wire& wire : cluster_.wires)
      draft.AddCable(first + wire.a, first + wire.b,
                     {.bandwidth = one.bandwidth * wire.cables, .alpha_ps = one.alpha_ps});
  }

  // Where each NIC's port is: at a GPU of its own, or at a node that some GPUs share.
  void AddNics(Draft& draft, int64_t next) {
    int64_t first = 0;
    for (size_t b = 0; b < cluster_.boxes.size(); ++b) {
      const Box& box = cluster_.boxes[b];
      const auto number = static_cast<int64_t>(b);
      for (int64_t nic = 0; nic < box.nics; ++nic) {
        if (!SharesNics(box)) {
          const int64_t gpu = nic / (box.nics / box.gpus);
          port_list_.push_back({static_cast<int32_t>(first + gpu), number, nic});
          continue;
        }
        const int64_t share = box.gpus / box.nics;
        draft.names.push_back(fmt::format("{}.nic{}", box.name, nic));
        for (int64_t gpu = nic * share; gpu < (nic + 1) * share; ++gpu)
          draft.AddCable(first + gpu, next, Nic());
        port_list_.push_back({static_cast<int32_t>(next++), number, nic});
      }
      first += box.gpus;
    }
  }

  const FamilyCall& call_;
  Cluster cluster_;
  FamilyCall default_fabric_;
  std::vector<FabricPort> port_list_;
  int64_t ranks_ = 0, ports_ = 0, nvswitches_ = 0, nic_nodes_ = 0;
  int64_t inside_cables_ = 0, nic_cables_ = 0;
};

// `count` boxes alike, once these numbers may be those of a network.
Result<std::vector<Box>> AlikeBoxes(const FamilyCall& call, int64_t count, int64_t gpus,
                                    int64_t nics) {
  struct Part {
    const char* name;
    int64_t value, least;
  };
  for (const Part& part : {Part{"boxes", count, 1}, Part{"gpus", gpus, 1}, Part{"nics", nics, 0}})
    if (part.value < part.least || part.value > call.limits.max_nodes)
      return call.Fault(fmt::format("got {}={}, wanted {} to {}", part.name, part.value, part.least,
                                    call.limits.max_nodes));
  if (SaturatingMul(count, gpus) > call.limits.max_nodes)
    return call.Fault(fmt::format("{} boxes of {} GPUs: at most {} nodes are accepted", count, gpus,
                                  call.limits.max_nodes));
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) boxes.push_back({fmt::format("box{}", i), gpus, nics});
  return boxes;
}

Result<Draft> BuildAlike(const FamilyCall& call, int64_t count, int64_t gpus, int64_t nics,
                         Cluster cluster) {
  Result<std::vector<Box>> boxes = AlikeBoxes(call, count, gpus, nics);
  if (!boxes) return tl::unexpected(boxes.error());
  cluster.boxes = *std::move(boxes);
  return Builder(call, std::move(cluster)).Build();
}

// Infinity Fabric of a box of 8 MI250: ranks 2i and 2i + 1 are the two dies of a package, joined by
// four links; every die has seven links in all (counts as in the ForestColl authors' model of such
// a machine, whose measured 16 GB/s of NIC a die are the default, too).
constexpr std::array<Wire, 28> kMi250Wires{
    {{0, 1, 4},   {0, 4, 2},   {0, 8, 1},   {1, 5, 1},   {1, 9, 1},   {1, 10, 1},  {2, 3, 4},
     {2, 6, 1},   {2, 9, 1},   {2, 10, 1},  {3, 7, 2},   {3, 11, 1},  {4, 5, 4},   {4, 6, 1},
     {5, 6, 1},   {5, 7, 1},   {6, 7, 4},   {8, 9, 4},   {8, 12, 2},  {9, 13, 1},  {10, 11, 4},
     {10, 14, 1}, {11, 15, 2}, {12, 13, 4}, {12, 14, 1}, {13, 14, 1}, {13, 15, 1}, {14, 15, 4}}};

// Hosts on leaves, a rank each, with `links`' one bandwidth everywhere below the leaves.
Result<Draft> BuildPlain(const FamilyCall& call, int64_t hosts, const char* fabric) {
  Result<std::vector<Box>> boxes = AlikeBoxes(call, hosts, 1, 1);
  if (!boxes) return tl::unexpected(boxes.error());
  for (size_t i = 0; i < boxes->size(); ++i) (*boxes)[i].name = fmt::format("host{}", i);
  return Builder(call, {.boxes = *std::move(boxes), .fabric = fabric, .plain = true}).Build();
}

}  // namespace

Result<Draft> BuildCluster(const FamilyCall& call) {
  const int64_t gpus = call.option("gpus").value_or(8);
  return BuildAlike(call, call.option("boxes").value_or(2), gpus,
                    call.option("nics").value_or(gpus), {});
}

Result<Draft> BuildRail(const FamilyCall& call) {
  return BuildAlike(call, call.sizes[0], call.sizes[1], call.sizes[1], {});
}

Result<Draft> BuildDgxA100(const FamilyCall& call) {
  return BuildAlike(call, call.sizes[0], 8, 8,
                    {.inside_bandwidth = 300'000'000'000, .nic_bandwidth = 25'000'000'000});
}

Result<Draft> BuildDgxH100(const FamilyCall& call) {
  return BuildAlike(call, call.sizes[0], 8, 8, {});
}

Result<Draft> BuildMi250(const FamilyCall& call) {
  return BuildAlike(call, call.sizes[0], 16, 16,
                    {.inside_bandwidth = 50'000'000'000,
                     .nic_bandwidth = 16'000'000'000,
                     .wires = kMi250Wires,
                     .fabric = "switch"});
}

Result<Draft> BuildNvl72(const FamilyCall& call) {
  return BuildAlike(call, call.sizes[0], 72, 72, {.inside_bandwidth = 900'000'000'000, .rails = 4});
}

Result<Draft> BuildFatTree(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 2); !status) return tl::unexpected(status.error());
  const int64_t ports = call.sizes[0];
  return BuildPlain(call, SaturatingMul(SaturatingMul(ports, ports / 2), ports / 2), "fat_tree");
}

Result<Draft> BuildSpineLeaf(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  return BuildPlain(call, SaturatingMul(call.sizes[0], call.sizes[2]), "spine_leaf");
}

Result<Draft> BuildHosts(const FamilyCall& call) {
  if (!call.limits.allow_files) return call.Fault("files are not accepted here");
  Result<std::vector<ListedHost>> hosts = ReadHostList(call.path, call.limits.max_nodes);
  if (!hosts) return tl::unexpected(hosts.error());
  Cluster cluster{.fabric = "switch"};
  for (ListedHost& host : *hosts) {
    const int64_t gpus = host.slots.value_or(call.option("gpus").value_or(1));
    if (gpus < 1 || gpus > call.limits.max_nodes)
      return call.Fault(fmt::format("got gpus={}, wanted 1 to {}", gpus, call.limits.max_nodes));
    cluster.boxes.push_back({std::move(host.name), gpus, gpus});
  }
  return Builder(call, std::move(cluster)).Build();
}

}  // namespace tutti::topo
