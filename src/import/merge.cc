#include "merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reader.h"
#include "tutti/base/units.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace import {
namespace {

// Its own speed, else that of its cables, else what the user gave.
Status FindNicBandwidths(Box& box, bool any_nic, const MergeOptions& options, Ledger& ledger) {
  std::map<std::pair<int64_t, std::string>, std::vector<std::string>> alike;
  for (size_t i = 0; i < box.facts.nics.size(); ++i) {
    NicFact& nic = box.facts.nics[i];
    bool is_cabled = any_nic;
    int64_t cable = 0;
    std::string source = nic.place.Text();
    for (const Attachment& one : box.attachments) {
      is_cabled = is_cabled || one.nic == i;
      if (one.nic == i && nic.bandwidth == 0 && one.bandwidth > cable) {
        cable = one.bandwidth;
        source = one.place.Text();
      }
    }
    if (!is_cabled) continue;
    if (nic.bandwidth == 0) nic.bandwidth = cable;
    if (nic.bandwidth == 0) {
      nic.bandwidth = options.nic_bandwidth > 0 || !options.fabric ? options.nic_bandwidth
                                                                   : options.fabric->nic_bandwidth;
      source = "given";
    }
    if (nic.bandwidth == 0)
      return InvalidArgument(
          fmt::format("{}: nothing says how fast the NIC {} is ({}); give --nic 400Gbit/s, or a "
                      "file that says: NCCL topology XML, ibnetdiscover",
                      box.facts.host, nic.name, nic.place.Text()));
    alike[{nic.bandwidth, source}].push_back(nic.name);
  }
  for (const auto& [key, names] : alike)
    ledger.provenance.push_back(
        {fmt::format(
             "{}: {}", box.facts.host,
             names.size() == 1 ? names[0] : fmt::format("{} NICs from {}", names.size(), names[0])),
         ReadableBandwidth(key.first), key.second});
  return {};
}

// Several boxes and nothing between them: one switch, which is said.
void AssumeOneSwitch(const std::vector<Box>& boxes, Net& net, Ledger& ledger) {
  const Net::Node node = net.AddSwitch("network");
  for (const Box& box : boxes)
    for (size_t nic = 0; nic < box.facts.nics.size(); ++nic)
      if (box.is_used[nic] != 0) net.AddCable(box.ports[nic], node, box.facts.nics[nic].bandwidth);
  ledger.provenance.push_back(
      {"network", "one switch that carries everything: no file describes the fabric", "assumed"});
  ledger.warnings.emplace_back(
      "no file describes the fabric: all NICs are taken to be on one switch that carries "
      "everything");
}

Status CheckOptions(const MergeOptions& options) {
  constexpr int64_t kMost = 1'000'000;
  for (int64_t bandwidth :
       {options.nic_bandwidth, options.nvlink_bandwidth, options.pcie_bandwidth - 1,
        options.fabric ? options.fabric->nic_bandwidth : 0})
    if (bandwidth < 0 || bandwidth > kMaxBandwidth / 1000)
      return InvalidArgument("a bandwidth outside 1 .. 2^50 / 1000 bytes a second");
  for (int64_t part : {options.oversubscription_num, options.oversubscription_den})
    if (part < 1 || part > kMost)
      return InvalidArgument(fmt::format("an oversubscription of parts outside 1 .. {}", kMost));
  return {};
}

std::string TitleOf(const std::vector<Facts>& files) {
  std::string title = "imported from";
  constexpr size_t kMost = 6;
  for (size_t i = 0; i < std::min(files.size(), kMost); ++i)
    title += fmt::format("{} {}", i == 0 ? "" : ",", Shown(files[i].source));
  return files.size() > kMost ? title + ", ..." : title;
}

// What stands between the boxes; without cables and trees what is given, else one switch.
Status AddFabric(FabricFacts& fabric, const std::vector<Box>& boxes, const MergeOptions& options,
                 Net& net, Ledger& ledger) {
  const bool is_described = fabric.IsDescribed(options);
  if (options.fabric && is_described)
    return InvalidArgument(
        "--fabric: files describe the fabric, so it need not be given; leave out one of the two");
  if (is_described) return fabric.AddTo(boxes, options, net);
  if (options.fabric && boxes.size() > 1) return AddGivenFabric(boxes, options, net, ledger);
  if (boxes.size() > 1) AssumeOneSwitch(boxes, net, ledger);
  return {};
}

Result<Imported> Merge(const std::vector<Facts>& files, const MergeOptions& options) {
  if (Status status = CheckOptions(options); !status) return tl::unexpected(status.error());
  Ledger ledger;
  Result<std::vector<Box>> boxes = JoinBoxes(files, ledger);
  if (!boxes) return tl::unexpected(boxes.error());
  if (Status status = CheckRanks(files, *boxes, ledger); !status)
    return tl::unexpected(status.error());
  FabricFacts fabric(files, ledger);
  if (boxes->empty()) fabric.AddBareHosts(*boxes);
  if (boxes->empty()) return InvalidArgument("no file names a host or a GPU");
  if (Status status = fabric.Attach(*boxes); !status) return tl::unexpected(status.error());
  const bool one_box = boxes->size() == 1, is_described = fabric.IsDescribed(options);
  if (!is_described && !fabric.empty())
    ledger.warnings.emplace_back("blocks are left out, since --fabric says what joins the hosts");
  // Without a fabric every NIC is on it; a single box has no use of one.
  const bool any_nic = !is_described && !one_box;
  Net net;
  int64_t ranks = 0;
  for (Box& box : *boxes) {
    ranks += static_cast<int64_t>(box.facts.gpus.size());
    if (ranks > kMaxFacts) return InvalidArgument(fmt::format("more than {} GPUs", kMaxFacts));
    if (one_box || !is_described) box.attachments.clear();
    if (Status status = AddInside(box, options, net, ledger); !status)
      return tl::unexpected(status.error());
    if (Status status = FindNicBandwidths(box, any_nic, options, ledger); !status)
      return tl::unexpected(status.error());
  }
  for (Box& box : *boxes)
    if (Status status = AddNics(box, any_nic, options, net, ledger); !status)
      return tl::unexpected(status.error());
  if (Status status = AddFabric(fabric, *boxes, options, net, ledger); !status)
    return tl::unexpected(status.error());
  if (const std::vector<std::string> gone = net.Prune(); !gone.empty())
    ledger.warnings.push_back(fmt::format("{} switches that join nothing are left out: {}{}",
                                          gone.size(), gone[0], gone.size() > 1 ? ", ..." : ""));
  Result<Topology> topology = net.Build(options.alpha_ps, TitleOf(files));
  if (!topology) return Within("the files together", topology.error());
  ledger.provenance.push_back(
      {"alpha of every link", FormatDurationPs(options.alpha_ps), "assumed"});
  return Imported{*std::move(topology), std::move(ledger.provenance), std::move(ledger.warnings)};
}

}  // namespace
}  // namespace import

Result<Imported> MergeFacts(std::vector<Facts> files, const MergeOptions& options) {
  return import::Merge(files, options);
}

std::string ImportedToJson(const Imported& imported) {
  std::string source;
  for (const Provenance& one : imported.provenance)
    source +=
        fmt::format("{}{}: {} ({})", source.empty() ? "" : "; ", one.what, one.value, one.source);
  return TopologyToJson(imported.topology, source);
}

}  // namespace tutti
