#include "families/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tutti::topo {

Result<Fabric> Fabric::Make(const FamilyCall& description, const Demand& demand,
                            const SettingValue* oversubscription) {
  Fabric fabric(description);
  const std::string_view name = description.family->info.name;
  Status sized;
  if (name == "rails") sized = fabric.SizeRails(demand);
  if (name == "spine_leaf") sized = fabric.SizeSpineLeaf(demand);
  if (name == "fat_tree") sized = fabric.SizeFatTree(demand);
  if (!sized) return tl::unexpected(sized.error());
  if (oversubscription != nullptr) {
    fabric.oversubscription_ = oversubscription->ratio;
    if (fabric.uplinks_ == 0)
      return description.Fault(
          "nothing lies above its NIC ports that oversubscription= could thin out");
  }
  return fabric;
}

Status Fabric::SizeRails(const Demand& demand) {
  kind_ = Kind::kRails;
  lower_ = description_->option("count").value_or(demand.nics);
  upper_ = description_->option("spines").value_or(0);
  if (lower_ < 1 || lower_ > demand.nics)
    return description_->Fault(
        fmt::format("count={}, wanted 1 to {}, the NICs of a box", lower_, demand.nics));
  // NIC i is on rail i modulo count, so rail 0 has the most.
  fullest_ = SaturatingMul((demand.nics + lower_ - 1) / lower_, demand.boxes);
  uplinks_ = upper_;
  cables_ = SaturatingMul(lower_, upper_);
  return {};
}

Status Fabric::SizeSpineLeaf(const Demand& demand) {
  kind_ = Kind::kSpineLeaf;
  if (Status status = description_->CheckSizes(1); !status) return status;
  lower_ = description_->sizes[0];
  upper_ = description_->sizes[1];
  if (lower_ > demand.boxes)
    return description_->FaultOfSize(
        0, fmt::format("{} leaves for {} boxes, wanted at most one a box", lower_, demand.boxes));
  group_ = (demand.boxes + lower_ - 1) / lower_;
  if ((demand.boxes + group_ - 1) / group_ < lower_)
    return description_->FaultOfSize(
        0, fmt::format("{} boxes, {} a leaf, leave the last of {} leaves empty", demand.boxes,
                       group_, lower_));
  fullest_ = SaturatingMul(group_, demand.nics);
  uplinks_ = upper_;
  cables_ = SaturatingMul(lower_, upper_);
  return {};
}

Status Fabric::SizeFatTree(const Demand& demand) {
  kind_ = Kind::kFatTree;
  if (Status status = description_->CheckSize(0, 2); !status) return status;
  const int64_t ports = description_->sizes[0];
  if (ports % 2 != 0)
    return description_->FaultOfSize(
        0, fmt::format("got {}, wanted an even number: half of a switch's ports go up", ports));
  const int64_t half = ports / 2;
  const int64_t most = SaturatingMul(SaturatingMul(ports, half), half);
  if (demand.ports > most)
    return description_->FaultOfSize(
        0, fmt::format("{} NICs, wanted at most {}, its ports", demand.ports, most));
  lower_ = middle_ = SaturatingMul(ports, half);
  upper_ = SaturatingMul(half, half);
  group_ = fullest_ = uplinks_ = half;
  cables_ = SaturatingMul(2, most);
  return {};
}

int64_t Fabric::LeafOf(const FabricPort& port, int64_t number) const {
  switch (kind_) {
    case Kind::kRails:
      return port.nic % lower_;
    case Kind::kSpineLeaf:
      return port.box / group_;
    case Kind::kFatTree:
      return number / group_;
    case Kind::kSwitch:
      break;
  }
  return 0;
}

void Fabric::AppendNames(std::vector<std::string>& names) const {
  if (kind_ == Kind::kSwitch) {
    names.emplace_back("switch");
    return;
  }
  const bool three = kind_ == Kind::kFatTree;
  const char* const low = kind_ == Kind::kRails ? "rail" : "leaf";
  for (int64_t i = 0; i < lower_; ++i) names.push_back(fmt::format("{}{}", low, i));
  for (int64_t i = 0; i < middle_; ++i) names.push_back(fmt::format("agg{}", i));
  for (int64_t i = 0; i < upper_; ++i)
    names.push_back(fmt::format("{}{}", three ? "core" : "spine", i));
}

void Fabric::AddUplinks(Draft& draft, int64_t first, LinkSpec up) const {
  if (kind_ != Kind::kFatTree) {
    for (int64_t leaf = 0; leaf < lower_; ++leaf)
      for (int64_t spine = 0; spine < upper_; ++spine)
        draft.AddCable(first + leaf, first + lower_ + spine, up);
    return;
  }
  // Pod p has leaves and aggregation switches p half .. p half + half - 1; its i-th aggregation
  // switch is linked to cores i half .. i half + half - 1.
  const int64_t half = uplinks_;
  for (int64_t i = 0; i < lower_; ++i)
    for (int64_t j = 0; j < half; ++j) {
      draft.AddCable(first + i, first + lower_ + i / half * half + j, up);
      draft.AddCable(first + lower_ + i, first + lower_ + middle_ + i % half * half + j, up);
    }
}

Status Fabric::AddTo(Draft& draft, const std::vector<FabricPort>& ports, int64_t first,
                     LinkSpec nic, const LinkParameters& links) const {
  for (size_t i = 0; i < ports.size(); ++i)
    draft.AddCable(ports[i].node, first + LeafOf(ports[i], static_cast<int64_t>(i)), nic);
  if (uplinks_ == 0) return {};
  LinkSpec up = links.Link(2);
  if (!links.bandwidth.given()) {
    const __int128 below = static_cast<__int128>(fullest_) * nic.bandwidth * oversubscription_.den;
    const __int128 each = below / (static_cast<__int128>(uplinks_) * oversubscription_.num);
    constexpr int64_t kMost = int64_t{1} << 50;
    if (each < 1 || each > kMost)
      return description_->Fault(
          fmt::format("links above the leaves would have {} bytes a second, wanted 1 .. 2^50",
                      each < 1 ? "less than 1" : "more than 2^50"));
    up.bandwidth = static_cast<int64_t>(each);
  }
  AddUplinks(draft, first, up);
  return {};
}

}  // namespace tutti::topo
