// The parts of MergeFacts: boxes joined by host, what is inside them, and the fabric.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/base/saturating.h"
#include "tutti/import/facts.h"
#include "tutti/import/import.h"

namespace tutti::import {

// Who said what, for people.
struct Ledger {
  std::vector<Provenance> provenance = {};
  std::vector<std::string> warnings = {};
};

// A network in the making. Nodes: rank r is r, switch s is -1 - s.
class Net {
 public:
  using Node = int32_t;

  Node AddRank(std::string name) {
    ranks_.push_back(std::move(name));
    return static_cast<Node>(ranks_.size()) - 1;
  }
  Node AddSwitch(std::string name) {
    switches_.push_back(std::move(name));
    return -static_cast<Node>(switches_.size());
  }
  // Both ways. What joins the same two nodes already carries so much more.
  void AddCable(Node a, Node b, int64_t bandwidth) {
    int64_t& total = cables_[std::minmax(a, b)];
    total = SaturatingAdd(total, bandwidth);
  }
  // Without switches that lead to one node or to none. The names of those are returned.
  std::vector<std::string> Prune();
  Result<Topology> Build(int64_t alpha_ps, const std::string& name) const;

 private:
  std::vector<std::string> ranks_, switches_;
  std::vector<char> pruned_;  // of switches; empty: none
  std::map<std::pair<Node, Node>, int64_t> cables_;
};

// A NIC's port: a cable to a switch.
struct Attachment {
  size_t nic = 0;
  std::string to = {};
  int64_t bandwidth = 0;  // of the cable; 0: not said
  FactPlace place = {};
};

// The adapter that a NIC is, as a cable says.
struct Adapter {
  std::string guid = {};
  FactPlace place = {};
};

// A box that all files together know.
struct Box {
  BoxFacts facts = {};
  std::vector<Attachment> attachments = {};
  std::map<size_t, Adapter> adapters = {};  // by NIC
  bool is_bare = false;                     // a host of which no file says what is inside: one rank
  std::vector<Net::Node> ranks = {};        // made by AddInside
  std::vector<Net::Node> ports = {};        // of the NICs, as AddNics made them; of unused ones 0
  std::vector<char> is_used = {};           // NICs that lead somewhere
  std::vector<std::vector<size_t>> users = {};  // of each NIC: its GPUs
};

// Boxes of all files, one a host, in the order in which they come up.
Result<std::vector<Box>> JoinBoxes(const std::vector<Facts>& files, Ledger& ledger);

// Of each communicator that logs name all ranks must be there. Where not, it is a warning if other
// files describe its hosts, or a larger one that is whole has all their GPUs, else an error. An
// error, too: a host has more ranks of one than GPUs.
Status CheckRanks(const std::vector<Facts>& files, const std::vector<Box>& boxes, Ledger& ledger);

// Ranks and NVLinks of a box.
Status AddInside(Box& box, const MergeOptions& options, Net& net, Ledger& ledger);
// Its NICs, and its PCIe where NVLink does not join the GPUs. `any_nic`: also those without a
// cable. NIC bandwidths are known.
Status AddNics(Box& box, bool any_nic, const MergeOptions& options, Net& net, Ledger& ledger);

// A NIC of which nothing is known but that it is there: as near to all GPUs.
void AppendNic(BoxFacts& box, NicFact nic);

// Switches above the used NICs, as options.fabric, which is there, says.
Status AddGivenFabric(const std::vector<Box>& boxes, const MergeOptions& options, Net& net,
                      Ledger& ledger);

// Cables and trees of all files.
class FabricFacts {
 public:
  FabricFacts(const std::vector<Facts>& files, Ledger& ledger) : files_(files), ledger_(ledger) {}

  bool has_cables() const;
  bool has_tree() const;
  bool empty() const { return !has_cables() && !has_tree(); }
  // Whether files say what joins the hosts; blocks do only where nothing is given.
  bool IsDescribed(const MergeOptions& options) const;
  // Hosts as boxes, where no file describes any.
  void AddBareHosts(std::vector<Box>& boxes) const;
  // Which NIC is cabled to which switch.
  Status Attach(std::vector<Box>& boxes);
  // Switches and their cables, and those of the NICs of the boxes.
  Status AddTo(const std::vector<Box>& boxes, const MergeOptions& options, Net& net);

 private:
  Status AttachCables(std::vector<Box>& boxes);
  Status AttachTree(std::vector<Box>& boxes);
  Status AddTree(const std::vector<Box>& boxes, const MergeOptions& options, Net& net);
  Status AddCables(Net& net);
  Net::Node SwitchNamed(const std::string& name, Net& net);

  const std::vector<Facts>& files_;
  Ledger& ledger_;
  std::map<std::string, Net::Node> switches_;
};

// node1.cluster.example is node1: hosts go by what stands before the first dot, in small letters.
std::string ShortName(const std::string& host);

}  // namespace tutti::import
