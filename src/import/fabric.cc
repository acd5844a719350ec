// The fabric: cables as ibnetdiscover names them, or trees as Slurm and topograph do.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "merge.h"
#include "text.h"
#include "tutti/base/units.h"

namespace tutti::import {
namespace {

std::map<std::string, size_t> ByHost(const std::vector<Box>& boxes) {
  std::map<std::string, size_t> by_host;
  for (size_t i = 0; i < boxes.size(); ++i) by_host.emplace(ShortName(boxes[i].facts.host), i);
  return by_host;
}

// "HCA-2" is the second NIC.
std::optional<size_t> HcaNumber(const std::string& name) {
  if (!name.starts_with("HCA-")) return std::nullopt;
  const auto number = Number(std::string_view(name).substr(4), kMaxBoxDevices);
  return number && *number > 0 ? std::optional(static_cast<size_t>(*number - 1)) : std::nullopt;
}

// A NIC has one adapter, whose ports may have GUIDs of their own. What describes the box may have
// another GUID of it: NCCL's XML has that of the whole card.
Status CheckAdapter(Box& box, size_t nic, const CableEnd& end, const FactPlace& place,
                    Ledger& ledger) {
  const NicFact& known = box.facts.nics[nic];
  const std::string& guid = end.adapter.empty() ? end.guid : end.adapter;
  if (guid.empty()) return {};
  const auto [adapter, is_new] = box.adapters.emplace(nic, Adapter{guid, place});
  if (!is_new && adapter->second.guid != guid)
    return InvalidArgument(fmt::format("{}: {} has the GUID {} ({}), but {} ({})", box.facts.host,
                                       known.name, adapter->second.guid,
                                       adapter->second.place.Text(), guid, place.Text()));
  if (is_new && !known.guid.empty() && known.guid != end.guid && known.guid != guid)
    ledger.warnings.push_back(fmt::format("{}: {} has the GUID {} ({}), but {} ({}); taken for one",
                                          box.facts.host, known.name, known.guid,
                                          known.place.Text(), guid, place.Text()));
  return {};
}

// The NIC of the box at this end of a cable; a new one where the box has none, or is bare.
Result<size_t> NicOf(Box& box, const CableEnd& end, const FactPlace& place, Ledger& ledger) {
  std::vector<NicFact>& nics = box.facts.nics;
  const auto find = [&nics](auto matches) {
    return static_cast<size_t>(std::find_if(nics.begin(), nics.end(), matches) - nics.begin());
  };
  size_t found = nics.size();
  if (!end.guid.empty()) found = find([&end](const NicFact& nic) { return nic.guid == end.guid; });
  if (found == nics.size() && !end.nic.empty())
    found = find([&end](const NicFact& nic) { return nic.name == end.nic; });
  if (found == nics.size() && !box.is_bare)
    if (const auto number = HcaNumber(end.nic)) found = std::min(*number, nics.size());
  if (found == nics.size() && box.facts.nics.size() == 1 && !box.is_bare) found = 0;
  if (found == nics.size()) {
    if (!box.is_bare && !nics.empty())
      return InvalidArgument(fmt::format(
          "{}: {} has no NIC {}{}{}; its NICs are {} to {} ({})", place.Text(), box.facts.host,
          end.nic.empty() ? "that is called so" : end.nic, end.guid.empty() ? "" : ", GUID ",
          end.guid, nics.front().name, nics.back().name, box.facts.place.Text()));
    const std::string name = end.nic.empty() ? fmt::format("nic{}", nics.size()) : end.nic;
    AppendNic(box.facts, {.name = name, .guid = end.guid, .place = place});
  }
  if (Status status = CheckAdapter(box, found, end, place, ledger); !status)
    return tl::unexpected(status.error());
  if (nics[found].guid.empty()) nics[found].guid = end.guid;
  return found;
}

// One NIC may have cables to several switches where one file says so; two files that say
// different ones contradict each other.
Status AddAttachment(Box& box, Attachment made, Ledger& ledger) {
  for (Attachment& known : box.attachments) {
    if (known.nic != made.nic) continue;
    const std::string name = box.facts.host + ": " + box.facts.nics[made.nic].name;
    const bool same_file = known.place.source == made.place.source;
    if (known.to != made.to && !same_file)
      return InvalidArgument(fmt::format("{} is cabled to {} ({}), but to {} ({})", name, known.to,
                                         known.place.Text(), made.to, made.place.Text()));
    if (known.to != made.to) continue;
    if (same_file) {
      known.bandwidth = SaturatingAdd(known.bandwidth, made.bandwidth);
      return {};
    }
    if (known.bandwidth > 0 && made.bandwidth > 0 && known.bandwidth != made.bandwidth)
      ledger.warnings.push_back(
          fmt::format("{}: the cable to {} has {} ({}), but {} ({}); the smaller is taken", name,
                      known.to, ReadableBandwidth(known.bandwidth), known.place.Text(),
                      ReadableBandwidth(made.bandwidth), made.place.Text()));
    if (known.bandwidth == 0 || (made.bandwidth > 0 && made.bandwidth < known.bandwidth))
      known.bandwidth = made.bandwidth;
    return {};
  }
  box.attachments.push_back(std::move(made));
  return {};
}

// Above each switch of the trees: its parents, and who said so.
using Parents = std::map<std::string, std::map<std::string, FactPlace>>;

Result<Parents> ParentsOf(const std::vector<Facts>& files) {
  Parents parents;
  for (const Facts& file : files) {
    if (!file.is_tree) continue;
    for (const CableFact& cable : file.cables) {
      if (!cable.a.is_switch) continue;
      auto& above = parents[cable.a.node];
      for (const auto& [parent, place] : above)
        if (parent != cable.b.node && place.source != file.source)
          return InvalidArgument(fmt::format("switch {} is below {} ({}), but below {} ({})",
                                             cable.a.node, parent, place.Text(), cable.b.node,
                                             cable.place.Text()));
      above.emplace(cable.b.node, cable.place);
    }
  }
  return parents;
}

// Blocks that hosts are in and nothing is above: below one switch, which is said.
void JoinBlocks(const std::vector<Facts>& files, const std::map<std::string, int64_t>& below,
                Parents& parents, Ledger& ledger) {
  std::map<std::string, FactPlace> blocks;
  for (const Facts& file : files)
    for (const CableFact& cable : file.cables)
      if (file.is_blocks && below.contains(cable.b.node) && !parents.contains(cable.b.node))
        blocks.emplace(cable.b.node, cable.place);
  if (blocks.size() < 2) return;
  std::string name = "network";
  while (below.contains(name) || parents.contains(name)) name += '_';
  for (const auto& [block, place] : blocks) parents[block].emplace(name, place);
  ledger.warnings.push_back(
      fmt::format("{}: nothing says what joins the {} blocks: they are taken to be below one "
                  "switch; --fabric gives another network",
                  blocks.begin()->second.Text(), blocks.size()));
}

// An error that names a switch that is below itself.
Status CheckAcyclic(const Parents& parents) {
  std::map<std::string, int> state;  // 1: above the one that is looked at, 2: done
  for (const auto& [start, unused] : parents) {
    std::vector<std::pair<std::string, bool>> todo{{start, false}};
    while (!todo.empty()) {
      const auto [at, is_done] = todo.back();
      todo.pop_back();
      if (is_done) {
        state[at] = 2;
        continue;
      }
      if (state[at] == 2) continue;
      state[at] = 1;
      todo.emplace_back(at, true);
      const auto above = parents.find(at);
      if (above == parents.end()) continue;
      for (const auto& [parent, place] : above->second) {
        if (state[parent] == 1)
          return InvalidArgument(fmt::format("switch {} is below itself, by way of {} ({})", parent,
                                             at, place.Text()));
        todo.emplace_back(parent, false);
      }
    }
  }
  return {};
}

}  // namespace

bool FabricFacts::has_cables() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const Facts& file) { return !file.is_tree && !file.cables.empty(); });
}

bool FabricFacts::has_tree() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const Facts& file) { return file.is_tree && !file.cables.empty(); });
}

bool FabricFacts::IsDescribed(const MergeOptions& options) const {
  const bool is_blocks = std::all_of(files_.begin(), files_.end(), [](const Facts& file) {
    return file.cables.empty() || file.is_blocks;
  });
  return !empty() && !(is_blocks && options.fabric);
}

void FabricFacts::AddBareHosts(std::vector<Box>& boxes) const {
  std::set<std::string> seen;
  for (const Facts& file : files_) {
    if (file.is_tree == has_cables()) continue;
    for (const CableFact& cable : file.cables)
      for (const CableEnd* end : {&cable.a, &cable.b}) {
        if (end->is_switch || !seen.insert(ShortName(end->node)).second) continue;
        Box box{.facts = {.host = end->node, .place = cable.place}};
        box.is_bare = true;
        box.facts.gpus.push_back({.place = cable.place});
        boxes.push_back(std::move(box));
      }
  }
}

Status FabricFacts::Attach(std::vector<Box>& boxes) {
  if (has_cables()) {
    if (has_tree())
      ledger_.warnings.push_back(
          "trees of switches are left out, since other files name the cables themselves");
    return AttachCables(boxes);
  }
  return AttachTree(boxes);
}

Status FabricFacts::AttachCables(std::vector<Box>& boxes) {
  const std::map<std::string, size_t> by_host = ByHost(boxes);
  std::set<std::string> unknown;
  for (const Facts& file : files_) {
    if (file.is_tree) continue;
    for (const CableFact& cable : file.cables) {
      if (cable.a.is_switch == cable.b.is_switch) {
        if (!cable.a.is_switch)
          ledger_.warnings.push_back(
              fmt::format("{}: a cable between the hosts {} and {} is left "
                          "out",
                          cable.place.Text(), cable.a.node, cable.b.node));
        continue;
      }
      const CableEnd& host = cable.a.is_switch ? cable.b : cable.a;
      const CableEnd& other = cable.a.is_switch ? cable.a : cable.b;
      const auto found = by_host.find(ShortName(host.node));
      if (found == by_host.end()) {
        unknown.insert(host.node);
        continue;
      }
      Box& box = boxes[found->second];
      const Result<size_t> nic = NicOf(box, host, cable.place, ledger_);
      if (!nic) return tl::unexpected(nic.error());
      if (Status status =
              AddAttachment(box, {*nic, other.node, cable.bandwidth, cable.place}, ledger_);
          !status)
        return status;
    }
  }
  if (!unknown.empty())
    ledger_.warnings.push_back(
        fmt::format("{} hosts of the fabric are left out, since no file "
                    "describes them: {}{}",
                    unknown.size(), *unknown.begin(), unknown.size() > 1 ? ", ..." : ""));
  return {};
}

Status FabricFacts::AttachTree(std::vector<Box>& boxes) {
  const std::map<std::string, size_t> by_host = ByHost(boxes);
  std::map<size_t, const CableFact*> leaf_of;
  std::set<std::string> unknown;
  for (const Facts& file : files_) {
    for (const CableFact& cable : file.cables) {
      if (!file.is_tree || cable.a.is_switch) continue;
      const auto found = by_host.find(ShortName(cable.a.node));
      if (found == by_host.end()) {
        unknown.insert(cable.a.node);
        continue;
      }
      Box& box = boxes[found->second];
      const auto [known, is_new] = leaf_of.emplace(found->second, &cable);
      if (!is_new) {
        if (known->second->b.node == cable.b.node) continue;
        return InvalidArgument(fmt::format("{} is below {} ({}), but below {} ({})", box.facts.host,
                                           known->second->b.node, known->second->place.Text(),
                                           cable.b.node, cable.place.Text()));
      }
      if (box.facts.nics.empty()) AppendNic(box.facts, {.name = "nic0", .place = cable.place});
      for (size_t nic = 0; nic < box.facts.nics.size(); ++nic)
        box.attachments.push_back({nic, cable.b.node, 0, cable.place});
    }
  }
  if (!unknown.empty())
    ledger_.warnings.push_back(
        fmt::format("{} hosts of the tree are left out, since no file "
                    "describes them: {}{}",
                    unknown.size(), *unknown.begin(), unknown.size() > 1 ? ", ..." : ""));
  return {};
}

Net::Node FabricFacts::SwitchNamed(const std::string& name, Net& net) {
  const auto [found, is_new] = switches_.emplace(name, 0);
  if (is_new) found->second = net.AddSwitch(name);
  return found->second;
}

Status FabricFacts::AddTo(const std::vector<Box>& boxes, const MergeOptions& options, Net& net) {
  for (const Box& box : boxes)
    for (const Attachment& one : box.attachments) {
      if (box.is_used[one.nic] == 0) continue;
      const NicFact& nic = box.facts.nics[one.nic];
      int64_t bandwidth = nic.bandwidth;
      if (one.bandwidth > 0 && one.bandwidth < bandwidth) {
        ledger_.warnings.push_back(fmt::format("{}: {} can {} ({}), but its cable runs at {} ({})",
                                               box.facts.host, nic.name,
                                               ReadableBandwidth(nic.bandwidth), nic.place.Text(),
                                               ReadableBandwidth(one.bandwidth), one.place.Text()));
        bandwidth = one.bandwidth;
      }
      net.AddCable(box.ports[one.nic], SwitchNamed(one.to, net), bandwidth);
    }
  return has_cables() ? AddCables(net) : AddTree(boxes, options, net);
}

Status FabricFacts::AddCables(Net& net) {
  struct Pair {
    int64_t bandwidth = 0, cables = 0;
    FactPlace place;
  };
  std::map<std::pair<std::string, std::string>, std::map<std::string, Pair>> pairs;  // by source
  for (const Facts& file : files_)
    for (const CableFact& cable : file.cables) {
      if (file.is_tree || !cable.a.is_switch || !cable.b.is_switch) continue;
      if (cable.bandwidth == 0)
        return InvalidArgument(
            fmt::format("{}: nothing says how fast the cable between {} and {} "
                        "is",
                        cable.place.Text(), cable.a.node, cable.b.node));
      if (cable.a.node == cable.b.node) continue;  // a switch to itself
      Pair& pair = pairs[std::minmax(cable.a.node, cable.b.node)][file.source];
      if (pair.cables++ == 0) pair.place = cable.place;
      pair.bandwidth = SaturatingAdd(pair.bandwidth, cable.bandwidth);
    }
  for (const auto& [ends, by_source] : pairs) {
    const Pair* least = &by_source.begin()->second;
    for (const auto& [source, pair] : by_source) {
      if (pair.bandwidth != least->bandwidth)
        ledger_.warnings.push_back(
            fmt::format("{} and {} are joined by {} ({}), but {} ({}); the smaller is taken",
                        ends.first, ends.second, ReadableBandwidth(least->bandwidth),
                        least->place.Text(), ReadableBandwidth(pair.bandwidth), pair.place.Text()));
      if (pair.bandwidth < least->bandwidth) least = &pair;
    }
    net.AddCable(SwitchNamed(ends.first, net), SwitchNamed(ends.second, net), least->bandwidth);
    ledger_.provenance.push_back(
        {ends.first + " - " + ends.second,
         fmt::format("{} cable{}, {}", least->cables, least->cables == 1 ? "" : "s",
                     ReadableBandwidth(least->bandwidth)),
         least->place.Text()});
  }
  return {};
}

Status FabricFacts::AddTree(const std::vector<Box>& boxes, const MergeOptions& options, Net& net) {
  Result<Parents> parents = ParentsOf(files_);
  if (!parents) return tl::unexpected(parents.error());
  if (Status status = CheckAcyclic(*parents); !status) return status;
  std::map<std::string, int64_t> below;  // what comes in from the hosts
  for (const Box& box : boxes)
    for (const Attachment& one : box.attachments)
      if (box.is_used[one.nic] != 0)
        below[one.to] = SaturatingAdd(below[one.to], box.facts.nics[one.nic].bandwidth);
  JoinBlocks(files_, below, *parents, ledger_);
  // Children before parents.
  std::map<std::string, int> waits;
  for (const auto& [child, above] : *parents)
    for (const auto& [parent, place] : above) ++waits[parent];
  std::vector<std::string> ready;
  for (const auto& [child, above] : *parents)
    if (!waits.contains(child)) ready.push_back(child);
  for (size_t i = 0; i < ready.size(); ++i) {
    const std::string child = ready[i];
    const auto above = parents->find(child);
    if (above == parents->end()) continue;
    const auto share = static_cast<int64_t>(
        static_cast<__int128>(below[child]) * options.oversubscription_den /
        options.oversubscription_num / static_cast<int64_t>(above->second.size()));
    for (const auto& [parent, place] : above->second) {
      if (--waits[parent] == 0) ready.push_back(parent);
      if (share < 1) continue;  // no host below
      below[parent] = SaturatingAdd(below[parent], share);
      net.AddCable(SwitchNamed(child, net), SwitchNamed(parent, net), share);
      ledger_.provenance.push_back(
          {child + " - " + parent,
           fmt::format("{} up, assumed: what comes in from below{}", ReadableBandwidth(share),
                       options.oversubscription_num == options.oversubscription_den
                           ? ""
                           : ", oversubscribed as given"),
           place.Text()});
    }
  }
  return {};
}

}  // namespace tutti::import
