// Facts: what one file says of a cluster, before anything is joined or guessed.
//
// Model       A *box* is a host with GPUs and NICs, and how near these are to each other. A *cable*
//             joins two ends, each a switch or a host (one NIC of it where the file says which).
//             Facts of one file may leave out anything; 0 and "" mean that it says nothing.
// Units       bandwidth: bytes/s, one way.
// Invariants  F1  classes is empty or has (GPUs + NICs)^2 entries, GPUs first, and is symmetric.
//             F2  ends of nvlinks are GPUs of the box, kNvSwitch or different GPUs.
//             F3  sizes are within kMaxFacts.
// Threads     Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

inline constexpr int64_t kMaxFacts = 1 << 20;       // boxes, cables, names of a file
inline constexpr int64_t kMaxBoxDevices = 1 << 10;  // GPUs and NICs of a box

// Where something stands.
struct FactPlace {
  std::string source = {};   // the file, as the user named it
  int64_t line = 0;          // from 1; 0: the file as a whole
  std::string Text() const;  // "node0.txt:3": the whole name, printable
};

// How far apart two devices of a box are, best to worst: the classes of `nvidia-smi topo -m`.
enum class PathClass : uint8_t {
  kSelf,
  kPix,   // at most one PCIe switch
  kPxb,   // several
  kPhb,   // a host bridge
  kNode,  // host bridges of one NUMA node
  kSys,   // between NUMA nodes
};
std::string_view Name(PathClass path);

struct GpuFact {
  std::string id = {};         // PCI address or "GPU3"
  int64_t sm = 0;              // compute capability times 10: 80, 90
  int64_t pcie_bandwidth = 0;  // of its PCIe link
  FactPlace place = {};
};

struct NicFact {
  std::string name = {};  // "mlx5_0"
  std::string guid = {};  // 16 hexadecimal digits
  int64_t bandwidth = 0;
  FactPlace place = {};
};

inline constexpr int32_t kNvSwitch = -1;

struct NvlinkFact {
  int32_t gpu = 0, peer = kNvSwitch;  // peer > gpu, or kNvSwitch
  int32_t links = 1;
  FactPlace place = {};
};

struct BoxFacts {
  std::string host = {};  // "": the file does not say
  FactPlace place = {};
  std::vector<GpuFact> gpus = {};
  std::vector<NicFact> nics = {};
  std::vector<NvlinkFact> nvlinks = {};
  FactPlace all_nvlinks = {};  // where it is said that there are no others; no source: it is not
  std::vector<PathClass> classes = {};

  size_t num_devices() const { return gpus.size() + nics.size(); }
  PathClass ClassOf(size_t a, size_t b) const { return classes[a * num_devices() + b]; }
};

struct CableEnd {
  std::string node = {};  // name of a switch or of a host
  bool is_switch = true;
  std::string nic = {};      // of a host: a name such as mlx5_0 or HCA-1
  std::string guid = {};     // of the NIC
  std::string adapter = {};  // GUID of the adapter that the NIC is a port of
};

struct CableFact {
  CableEnd a = {}, b = {};
  int64_t bandwidth = 0;
  FactPlace place = {};
};

// A rank of a communicator, as a log of a job names it.
struct RankFact {
  std::string communicator = {};  // "": the log has no names of them
  int64_t rank = 0, num_ranks = 1;
  std::string host = {};
  FactPlace place = {};
};

struct Facts {
  std::string source = {};
  std::string format = {};  // name of the reader
  std::vector<BoxFacts> boxes = {};
  std::vector<CableFact> cables = {};
  // Cables stand for "below": `a` (a host or a switch) is somewhere below the switch `b`, and how
  // many cables there are is not said.
  bool is_tree = false;
  bool is_blocks = false;  // a tree whose switches are groups of hosts: what joins them is not said
  std::vector<RankFact> ranks = {};
  std::vector<std::string> notes = {};  // what was read and left out
};

}  // namespace tutti
