// Import: what files of other systems say of a cluster, joined into one Topology that remembers who
// said what.
//
// Model       ReadFacts() reads one file: its contents say what it is. MergeFacts() joins facts:
//             boxes by the name of their host, NICs by GUID or name, switches by name. What no file
//             says comes from MergeOptions and is listed as assumed; where even those say nothing
//             the import fails and names what is missing. Ranks are GPUs, box by box in the order
//             of the files; hosts without a description are one rank each, where none has one.
//             GPUs that NVLink joins keep to it; else their PCIe switches and bridges are nodes.
//             A NIC that one GPU uses is that GPU's link into the fabric.
// Conflicts   Two files that contradict each other: an error naming both with place and value where
//             the network cannot be both (numbers of GPUs, NVLinks, the GPUs that a NIC is nearest
//             to, adapters, where a cable ends); a warning, and the smaller value, where a part may
//             run below what it can (bandwidths). Logs that do not name all ranks of a job: an
//             error, and a warning where the network does not come from them.
// Complexity  Reading is linear in the file; merging O((boxes + cables) log) and, in a box,
//             quadratic in its devices.
// Errors      kIo for a file; kCorrupt as "file:line: ..." for what is in it; kInvalidArgument for
//             what cannot be joined.
//
//   std::vector<Facts> facts;
//   facts.push_back(ReadFacts("node0.txt").value());
//   facts.push_back(ReadFacts("topology.conf").value());
//   const Result<Imported> imported = MergeFacts(std::move(facts), {.nic_bandwidth = 50'000'000'000});
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/import/facts.h"
#include "tutti/topo/topology.h"

namespace tutti {

inline constexpr int64_t kMaxImportBytes = int64_t{1} << 26;  // of a file

struct ImportFormat {
  std::string_view name;     // "nvidia-smi"
  std::string_view summary;  // one line
};
std::vector<ImportFormat> ImportFormats();

// `source` stands in places. Boxes of formats that do not name their host have none.
Result<Facts> ParseFacts(std::string_view text, const std::string& source);
Result<Facts> ReadFacts(const std::string& path);

// node[01-04,7],login: what Slurm calls a hostlist. At most `most` names.
Result<std::vector<std::string>> ExpandHostList(std::string_view text, int64_t most = kMaxFacts);

// Files as a user names them, "[HOSTS=]PATH", with every box given its host: HOSTS is a hostlist, each
// host being as the file says, or `*`: all hosts that other files name and none describes. Without
// it a file that does not name its host is of one called as the file, up to the first dot.
// kInvalidArgument: a host for a file without a box, `*` without hosts.
Result<std::vector<Facts>> ReadFactFiles(const std::vector<std::string>& arguments);

// What this host shows of itself in `root`/sys: GPUs and NICs of PCIe, InfiniBand, network interfaces.
// kIo: there is no such folder.
Result<Facts> DetectFacts(const std::string& root, const std::string& host);

// What hwloc shows of this host, or of the machine that HWLOC_XMLFILE or HWLOC_SYNTHETIC puts in its
// place: nothing where libhwloc (libhwloc15) is not installed, which is looked for at run time. A
// machine without GPUs and NICs is no box but a note.
// kCorrupt: hwloc cannot load what it is given.
struct HwlocView {
  Facts facts;
  bool is_this_host = true;
};
Result<std::optional<HwlocView>> DetectByHwloc(const std::string& host);

// Both, to be merged: sysfs, and then hwloc where it shows the same machine, with root "/" or put in
// place of one. A machine put in place of this host is shown alone. Where the two count other GPUs
// hwloc is left out, with a note.
Result<std::vector<Facts>> DetectHost(const std::string& root, const std::string& host);

// How hosts are joined, where no file says it.
struct GivenFabric {
  enum class Kind : uint8_t { kSwitch, kRails, kSpineLeaf } kind = Kind::kSwitch;
  int64_t lower = 0;          // rails (0: as many as a box uses NICs) or leaves
  int64_t upper = 0;          // spines; 0: rails that only the boxes join
  int64_t nic_bandwidth = 0;  // as MergeOptions
};
// rails(count=4,spines=2), spine_leaf(8,4), switch; with nic=400Gbit/s behind.
Result<GivenFabric> ParseGivenFabric(std::string_view text);

struct MergeOptions {
  int64_t nic_bandwidth = 0;                // of NICs whose speed nobody says; 0: an error
  int64_t nvlink_bandwidth = 0;             // of one NVLink; 0: by the GPU, else 25 GB/s
  int64_t pcie_bandwidth = 31'507'692'307;  // where nobody says: 4.0 x16
  int64_t oversubscription_num = 1, oversubscription_den = 1;  // above leaves of trees
  int64_t alpha_ps = 500'000;                                  // of every link: no file says it
  // kInvalidArgument where files describe one. Blocks only say which hosts it joins.
  std::optional<GivenFabric> fabric = std::nullopt;
};

// One line of who said what.
struct Provenance {
  std::string what;    // "node0: NVLink"
  std::string value;   // "8 GPUs at 450 GB/s to an NVSwitch"
  std::string source;  // "node0.txt:2", or "assumed"
};

struct Imported {
  Topology topology;
  std::vector<Provenance> provenance;
  std::vector<std::string> warnings;
};

// Files in the order of the user; every box has a host.
Result<Imported> MergeFacts(std::vector<Facts> files, const MergeOptions& options);

// The topology as JSON whose "source" says where it comes from.
std::string ImportedToJson(const Imported& imported);

}  // namespace tutti
