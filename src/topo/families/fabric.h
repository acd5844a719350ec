// Fabric: the switches that join NIC ports: rails, a fat tree, leaves and spines, or one switch.
//
// Model       Ports are counted box by box. A leaf switch has ports; the links above it carry, all
//             together, what its ports bring in, divided by the oversubscription, rounded down to
//             whole bytes a second a link. Where leaves have unlike numbers of ports all are built
//             as the fullest one.
// Names       rail0 (rails), leaf0 and spine0, leaf0, agg0 and core0 (fat tree), switch.
// Errors      kInvalidArgument at the column of the call: more ports than a fat tree has, zero
//             counts, an oversubscription where nothing lies above the ports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "families/family.h"

namespace tutti::topo {

struct FabricPort {
  int32_t node = 0;  // of the draft: a rank, or a NIC
  int64_t box = 0, nic = 0;
};

class Fabric {
 public:
  struct Demand {
    int64_t boxes = 1;
    int64_t nics = 1;   // of the box with the most
    int64_t ports = 1;  // of all
  };
  // `description` is a call of one of Fabrics().
  static Result<Fabric> Make(const FamilyCall& description, const Demand& demand,
                             const SettingValue* oversubscription);

  int64_t num_switches() const { return lower_ + middle_ + upper_; }
  int64_t num_cables() const { return cables_; }  // above the ports
  // The leaf switch, from 0, of a port that is the `number`-th of all.
  int64_t LeafOf(const FabricPort& port, int64_t number) const;
  // Names of the switches in their order.
  void AppendNames(std::vector<std::string>& names) const;
  // Links of ports and switches; the first switch is node `first`.
  Status AddTo(Draft& draft, const std::vector<FabricPort>& ports, int64_t first, LinkSpec nic,
               const LinkParameters& links) const;

 private:
  enum class Kind { kSwitch, kRails, kSpineLeaf, kFatTree };
  explicit Fabric(const FamilyCall& description) : description_(&description) {}
  Status SizeRails(const Demand& demand);
  Status SizeSpineLeaf(const Demand& demand);
  Status SizeFatTree(const Demand& demand);
  void AddUplinks(Draft& draft, int64_t first, LinkSpec up) const;

  const FamilyCall* description_;
  Kind kind_ = Kind::kSwitch;
  Ratio oversubscription_ = {};
  int64_t lower_ = 1, middle_ = 0, upper_ = 0;  // switches of each level
  int64_t cables_ = 0;
  int64_t group_ = 1;    // boxes a leaf (leaves and spines), ports a leaf (fat tree)
  int64_t uplinks_ = 0;  // of a leaf
  int64_t fullest_ = 0;  // ports of the fullest leaf
};

}  // namespace tutti::topo
