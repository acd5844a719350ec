// What is inside a box, as nodes and links.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "merge.h"
#include "tutti/base/units.h"

namespace tutti::import {
namespace {

// No GPU has more NVLinks.
constexpr int64_t kMaxNvlinks = 18;

// One NVLink each way by data sheet; 0: not known.
int64_t NvlinkOf(int64_t sm) {
  if (sm >= 100) return 50'000'000'000;
  if (sm == 86) return 14'062'500'000;
  if (sm >= 70) return 25'000'000'000;
  return sm >= 60 ? 20'000'000'000 : 0;
}

struct NvlinkSpeed {
  int64_t bandwidth = 25'000'000'000;
  std::string why = "assumed 25 GB/s a link";
};

NvlinkSpeed SpeedOf(const BoxFacts& box, const MergeOptions& options) {
  if (options.nvlink_bandwidth > 0)
    return {options.nvlink_bandwidth,
            fmt::format("given {} a link", ReadableBandwidth(options.nvlink_bandwidth))};
  const int64_t sm = box.gpus.empty() ? 0 : box.gpus[0].sm;
  if (const int64_t known = NvlinkOf(sm); known > 0)
    return {known, fmt::format("{} a link of sm {}", ReadableBandwidth(known), sm)};
  return {};
}

// NVLinks of each GPU to an NVSwitch, 0 where they are direct: said so, or all pairs have as many
// and a GPU has not so many ports.
std::vector<int64_t> LinksToSwitch(const BoxFacts& box) {
  const auto gpus = static_cast<int64_t>(box.gpus.size());
  std::vector<int64_t> links(box.gpus.size(), 0);
  int64_t pairs = 0, first = 0;
  bool alike = true;
  for (const NvlinkFact& link : box.nvlinks) {
    if (link.peer == kNvSwitch) {
      links[static_cast<size_t>(link.gpu)] += link.links;
      continue;
    }
    if (pairs++ == 0) first = link.links;
    alike = alike && link.links == first;
  }
  if (alike && pairs == gpus * (gpus - 1) / 2 && first * (gpus - 1) > kMaxNvlinks)
    links.assign(links.size(), first);
  return links;
}

// Whether NVLinks lead from any GPU to any other.
bool NvlinkJoinsAll(const BoxFacts& box, const std::vector<int64_t>& to_switch) {
  std::vector<size_t> group(box.gpus.size() + 1);  // the last is the NVSwitch
  std::iota(group.begin(), group.end(), size_t{0});
  const auto join = [&group](size_t a, size_t b) {
    const size_t from = group[a], to = group[b];
    for (size_t& one : group)
      if (one == from) one = to;
  };
  for (const NvlinkFact& link : box.nvlinks)
    if (link.peer != kNvSwitch) join(static_cast<size_t>(link.gpu), static_cast<size_t>(link.peer));
  for (size_t i = 0; i < to_switch.size(); ++i)
    if (to_switch[i] > 0) join(i, box.gpus.size());
  return std::all_of(group.begin(), group.begin() + static_cast<ptrdiff_t>(box.gpus.size()),
                     [&group](size_t one) { return one == group[0]; });
}

// The NICs that each GPU is nearest to, of those in question.
void FindUsers(Box& box, bool any_nic) {
  const BoxFacts& facts = box.facts;
  const size_t gpus = facts.gpus.size(), nics = facts.nics.size();
  std::vector<char> counts(nics, any_nic ? 1 : 0);
  for (const Attachment& one : box.attachments) counts[one.nic] = 1;
  box.users.assign(nics, {});
  for (size_t gpu = 0; gpu < gpus; ++gpu) {
    PathClass best = PathClass::kSys;
    for (size_t nic = 0; nic < nics; ++nic)
      if (counts[nic] != 0 && !facts.classes.empty())
        best = std::min(best, facts.ClassOf(gpu, gpus + nic));
    for (size_t nic = 0; nic < nics; ++nic)
      if (counts[nic] != 0 && (facts.classes.empty() || facts.ClassOf(gpu, gpus + nic) == best))
        box.users[nic].push_back(gpu);
  }
}

// PCIe switches and bridges above the devices of a box, from classes: at each class, what is that
// near or nearer is joined by one node.
class PcieTree {
 public:
  PcieTree(const Box& box, const MergeOptions& options, Net& net)
      : box_(box), options_(options), net_(net) {}

  void Add() {
    const BoxFacts& facts = box_.facts;
    for (size_t i = 0; i < facts.num_devices(); ++i) {
      const size_t gpus = facts.gpus.size();
      if (i >= gpus && box_.is_used[i - gpus] == 0) continue;
      const int64_t own = i < gpus ? facts.gpus[i].pcie_bandwidth : 0;
      groups_.push_back({{i},
                         i < gpus ? box_.ranks[i] : box_.ports[i - gpus],
                         own > 0 ? own : options_.pcie_bandwidth});
    }
    constexpr std::array<std::pair<PathClass, const char*>, 5> kLevels{
        {{PathClass::kPix, "pcie"},
         {PathClass::kPxb, "pcie"},
         {PathClass::kPhb, "bridge"},
         {PathClass::kNode, "numa"},
         {PathClass::kSys, "system"}}};
    for (const auto& [level, name] : kLevels) JoinAt(level, name);
  }

 private:
  struct Group {
    std::vector<size_t> devices;
    Net::Node node;
    int64_t bandwidth;  // of the link to what is above
  };

  bool IsNear(const Group& a, const Group& b, PathClass level) const {
    for (size_t i : a.devices)
      for (size_t j : b.devices)
        if (box_.facts.ClassOf(i, j) <= level) return true;
    return false;
  }

  void JoinAt(PathClass level, const char* name) {
    std::vector<Group> joined;
    std::vector<char> taken(groups_.size(), 0);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (taken[i] != 0) continue;
      std::vector<size_t> members{i};
      taken[i] = 1;
      for (size_t next = 0; next < members.size(); ++next)
        for (size_t j = 0; j < groups_.size(); ++j)
          if (taken[j] == 0 && IsNear(groups_[members[next]], groups_[j], level)) {
            taken[j] = 1;
            members.push_back(j);
          }
      if (members.size() == 1) {
        joined.push_back(groups_[i]);
        continue;
      }
      Group all{{},
                net_.AddSwitch(fmt::format("{}.{}{}", box_.facts.host, name, made_[name]++)),
                options_.pcie_bandwidth};
      for (size_t member : members) {
        net_.AddCable(groups_[member].node, all.node, groups_[member].bandwidth);
        all.devices.insert(all.devices.end(), groups_[member].devices.begin(),
                           groups_[member].devices.end());
      }
      joined.push_back(std::move(all));
    }
    groups_ = std::move(joined);
  }

  const Box& box_;
  const MergeOptions& options_;
  Net& net_;
  std::vector<Group> groups_;
  std::map<std::string, int> made_;
};

}  // namespace

Status AddInside(Box& box, const MergeOptions& options, Net& net, Ledger& ledger) {
  const BoxFacts& facts = box.facts;
  for (size_t i = 0; i < facts.gpus.size(); ++i)
    box.ranks.push_back(
        net.AddRank(box.is_bare ? facts.host : fmt::format("{}.gpu{}", facts.host, i)));
  ledger.provenance.push_back(
      {facts.host,
       box.is_bare ? "a host, one rank"
                   : fmt::format("{} GPUs, {} NICs", facts.gpus.size(), facts.nics.size()),
       facts.place.Text()});
  if (facts.nvlinks.empty()) return {};
  const NvlinkSpeed speed = SpeedOf(facts, options);
  const std::vector<int64_t> to_switch = LinksToSwitch(facts);
  const int64_t most = *std::max_element(to_switch.begin(), to_switch.end());
  if (most > 0) {
    const Net::Node nvswitch = net.AddSwitch(facts.host + ".nvswitch");
    for (size_t i = 0; i < to_switch.size(); ++i)
      if (to_switch[i] > 0)
        net.AddCable(box.ranks[i], nvswitch, SaturatingMul(to_switch[i], speed.bandwidth));
    ledger.provenance.push_back(
        {facts.host + ": NVSwitch",
         fmt::format("{} a GPU ({} NVLinks, {})",
                     ReadableBandwidth(SaturatingMul(most, speed.bandwidth)), most, speed.why),
         facts.nvlinks[0].place.Text()});
    return {};
  }
  for (const NvlinkFact& link : facts.nvlinks)
    net.AddCable(box.ranks[static_cast<size_t>(link.gpu)],
                 box.ranks[static_cast<size_t>(link.peer)],
                 SaturatingMul(link.links, speed.bandwidth));
  ledger.provenance.push_back(
      {facts.host + ": NVLink",
       fmt::format("{} pairs of GPUs joined ({})", facts.nvlinks.size(), speed.why),
       facts.nvlinks[0].place.Text()});
  return {};
}

Status AddNics(Box& box, bool any_nic, const MergeOptions& options, Net& net, Ledger& ledger) {
  const BoxFacts& facts = box.facts;
  FindUsers(box, any_nic);
  box.ports.assign(facts.nics.size(), 0);
  box.is_used.assign(facts.nics.size(), 0);
  const bool has_tree = facts.gpus.size() > 1 && !NvlinkJoinsAll(facts, LinksToSwitch(facts));
  if (has_tree && facts.classes.empty())
    return InvalidArgument(fmt::format("{}: nothing says how its {} GPUs are joined ({})",
                                       facts.host, facts.gpus.size(), facts.place.Text()));
  std::string unused;
  for (size_t i = 0; i < facts.nics.size(); ++i) {
    const std::vector<size_t>& users = box.users[i];
    if (users.empty()) {
      unused += (unused.empty() ? "" : ", ") + facts.nics[i].name;
      continue;
    }
    box.is_used[i] = 1;
    if (users.size() == 1 && !has_tree) {
      box.ports[i] = box.ranks[users[0]];
      continue;
    }
    box.ports[i] = net.AddSwitch(fmt::format("{}.{}", facts.host, facts.nics[i].name));
    if (has_tree) continue;
    for (size_t gpu : users) net.AddCable(box.ranks[gpu], box.ports[i], facts.nics[i].bandwidth);
  }
  if (!unused.empty())
    ledger.warnings.push_back(
        fmt::format("{}: no GPU is nearest to {}, or no cable: left out", facts.host, unused));
  if (has_tree) {
    PcieTree(box, options, net).Add();
    ledger.provenance.push_back({facts.host + ": PCIe",
                                 fmt::format("{} a link where no file says otherwise",
                                             ReadableBandwidth(options.pcie_bandwidth)),
                                 "assumed"});
  }
  return {};
}

}  // namespace tutti::import
