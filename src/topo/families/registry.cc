#include <algorithm>
#include <vector>

#include "families/family.h"

namespace tutti::topo {
namespace {

constexpr Range kNone{0, 0};
constexpr Range kOne{1, 1};
constexpr Range kTwo{2, 2};
constexpr LinkSpec kNvlink{.bandwidth = 25'000'000'000};

// One line a family, sorted by name.
const std::vector<Family>& Registry() {
  using SettingKind = Setting::Kind;
  static const std::vector<Setting> kClusterSettings{{"nvswitch", SettingKind::kBandwidth},
                                                     {"nic", SettingKind::kBandwidth},
                                                     {"fabric", SettingKind::kFabric},
                                                     {"oversubscription", SettingKind::kRatio},
                                                     {"override", SettingKind::kOverrides}};
  static const std::vector<Setting> kMi250Settings{{"xgmi", SettingKind::kBandwidth},
                                                   {"nic", SettingKind::kBandwidth},
                                                   {"fabric", SettingKind::kFabric},
                                                   {"oversubscription", SettingKind::kRatio},
                                                   {"override", SettingKind::kOverrides}};
  static const std::vector<Setting> kRailSettings{{"override", SettingKind::kOverrides}};
  static const std::vector<Setting> kFabricSettings{{"oversubscription", SettingKind::kRatio},
                                                    {"override", SettingKind::kOverrides}};
  // clang-format off
  static const std::vector<Family> families{
      {{"bidirectional", "bidirectional(G)", "G and its transpose together: degree 2d; G itself where every link has its reverse"}, kOne, kNone, BuildBidirectional},
      {{"bipartite", "bipartite(d)", "complete bipartite graph of d + d ranks"}, kNone, kOne, BuildBipartite},
      {{"biring", "biring(d,m)", "bidirectional ring of m ranks and degree d: d/2 cables between neighbours"}, kNone, kTwo, BuildBiring},
      {{"cayley", "cayley(m,k,r,a1,b1,...)", "Cayley digraph of Z_m x|_r Z_k: rank x sends to x (a,b) for every generator (a,b)"}, kNone, {5, kAny}, BuildCayley},
      {{"circulant", "circulant(n,a1,...)", "rank i is linked to i + a and i - a modulo n for every a"}, kNone, {2, kAny}, BuildCirculant},
      {{"cluster", "cluster(boxes=2,gpus=8,nvswitch=450GB/s,nics=8,nic=400Gbit/s,fabric=rails,oversubscription=1)", "boxes of GPUs around an NVSwitch, joined by NICs and a fabric: rails, fat_tree(k), spine_leaf(l,s) or switch"}, kNone, kNone, BuildCluster, {"boxes", "gpus", "nics"}, false, {}, false, kClusterSettings},
      {{"complete", "complete(m)", "every rank linked to every other"}, kNone, kOne, BuildComplete},
      {{"debruijn", "debruijn(d,n)", "de Bruijn digraph of d^n ranks, with its d self-loops"}, kNone, kTwo, BuildDebruijn},
      {{"debruijn_mod", "debruijn_mod(d,n)", "de Bruijn digraph with its self-loops and 2-cycles rewired to one cycle: (2,3), (2,4), (3,2), (4,2)"}, kNone, kTwo, BuildDebruijnMod},
      {{"degree", "degree(G,n)", "degree expansion: n copies of every rank, n x n links for each link"}, kOne, kOne, BuildDegree},
      {{"dgx1", "dgx1", "8 V100 GPUs in NVIDIA's hybrid cube mesh, one link an NVLink of 25 GB/s"}, kNone, kNone, BuildDgx1, {}, false, kNvlink},
      {{"dgx_a100", "dgx_a100(n)", "n DGX A100: 8 GPUs, NVSwitch 300 GB/s a GPU, 8 NICs of 200 Gbit/s on rails"}, kNone, kOne, BuildDgxA100, {}, false, {}, false, kClusterSettings},
      {{"dgx_h100", "dgx_h100(n)", "n DGX H100: 8 GPUs, NVSwitch 450 GB/s a GPU, 8 NICs of 400 Gbit/s on rails"}, kNone, kOne, BuildDgxH100, {}, false, {}, false, kClusterSettings},
      {{"diamond", "diamond", "8 ranks of degree 2 and diameter 3, bandwidth-optimal with a stored schedule"}, kNone, kNone, BuildDiamond},
      {{"dircirculant", "dircirculant(d)", "d + 2 ranks, rank i sends to i + 1 .. i + d"}, kNone, kOne, BuildDircirculant},
      {{"distreg", "distreg(name)", "distance-regular graph of degree 4, one of a list", DistregMembers()}, kNone, kNone, BuildDistreg},
      {{"dragonfly", "dragonfly(g,m,bw=[local,global])", "g groups of m ranks, complete inside, one cable between two groups"}, kNone, kTwo, BuildDragonfly, {}, true},
      {{"fat_tree", "fat_tree(k)", "k-ary fat tree of three levels: k^3/4 ranks, switches of k ports"}, kNone, kOne, BuildFatTree, {}, false, {}, false, kFabricSettings},
      {{"genkautz", "genkautz(d,m)", "generalized Kautz digraph: degree d, any number m > d of ranks"}, kNone, kTwo, BuildGenkautz},
      {{"genkautz_mod", "genkautz_mod(d,m)", "generalized Kautz digraph with its self-loops rewired to one cycle: degree d at every rank"}, kNone, kTwo, BuildGenkautzMod},
      {{"hamming", "hamming(n,q)", "q^n ranks, linked where they differ in one of n digits"}, kNone, kTwo, BuildHamming},
      {{"host_forwarding", "host_forwarding(G)", "host limits of G as links: NICs that pass everything through the host"}, kOne, kNone, BuildHostForwarding},
      {{"hosts", "hosts(file,fabric=switch)", "boxes named in a host list, as MPI reads it: a GPU a slot, joined by a fabric"}, kNone, kNone, BuildHosts, {"gpus"}, false, {}, false, kClusterSettings, true},
      {{"hypercube", "hypercube(n)", "2^n ranks, linked where they differ in one bit"}, kNone, kOne, BuildHypercube},
      {{"kautz", "kautz(d,n)", "Kautz digraph of d^n (d + 1) ranks and degree d"}, kNone, kTwo, BuildKautz},
      {{"line", "line(G,k=1)", "line digraph of G, taken k times"}, kOne, {0, 1}, BuildLine, {"k"}},
      {{"mesh", "mesh(a,b,...)", "grid of any dimensions without wrap-around links"}, kNone, {1, kAny}, BuildMesh},
      {{"mi250", "mi250(n)", "n boxes of 8 MI250, 16 ranks each: Infinity Fabric links of 50 GB/s, 16 GB/s of NIC a rank on one switch"}, kNone, kOne, BuildMi250, {}, false, {}, false, kMi250Settings},
      {{"nic_forwarding", "nic_forwarding(G)", "host limits of G as links: NICs that forward by themselves"}, kOne, kNone, BuildNicForwarding},
      {{"nvl72", "nvl72(n)", "n GB200 NVL72 racks: 72 GPUs, NVSwitch 900 GB/s a GPU, a NIC of 400 Gbit/s a GPU on 4 rails"}, kNone, kOne, BuildNvl72, {}, false, {}, false, kClusterSettings},
      {{"power", "power(G,n)", "Cartesian product of n copies of G"}, kOne, kOne, BuildPower},
      {{"product", "product(G,H,...)", "Cartesian product, the first factor slowest"}, {1, kAny}, kNone, BuildProduct},
      {{"rail", "rail(b,g)", "b boxes of g GPUs: a switch inside each, and one for the i-th GPUs of all: cluster on rails alone"}, kNone, kTwo, BuildRail, {}, false, {}, false, kRailSettings},
      {{"random_regular", "random_regular(d,n,seed=1)", "n ranks of degree d with cables drawn at random, connected and without parallel ones"}, kNone, kTwo, BuildRandomRegular, {"seed"}},
      {{"rfs", "rfs(a,b,c,bw=[ring,full,switch])", "ring of a x fully connected b x switches of c"}, kNone, {3, 3}, BuildRfs, {}, true},
      {{"ring", "ring(m)", "bidirectional ring, one cable between neighbours: biring(2,m)"}, kNone, kOne, BuildRing},
      {{"spine_leaf", "spine_leaf(l,s,h)", "l leaf switches with h ranks each, all linked to s spines"}, kNone, {3, 3}, BuildSpineLeaf, {}, false, {}, false, kFabricSettings},
      {{"switch", "switch(n)", "n ranks around one switch"}, kNone, kOne, BuildSwitch, {}, true},
      {{"switch2d", "switch2d(a,b)", "a x b ranks, a switch along every row and column"}, kNone, kTwo, BuildSwitch2d, {}, true},
      {{"torus", "torus(a,b,...)", "grid of any dimensions with wrap-around links"}, kNone, {1, kAny}, BuildTorus},
      {{"transpose", "transpose(G)", "G with every link turned around"}, kOne, kNone, BuildTranspose},
      {{"twisted_hypercube", "twisted_hypercube(n)", "hypercube with one pair of edges crossed: diameter n - 1"}, kNone, kOne, BuildTwistedHypercube},
      {{"twisted_torus", "twisted_torus(2b,b) or twisted_torus(k,k,2k)", "torus whose wrap-around links along the short dimensions are shifted"}, kNone, {2, 3}, BuildTwistedTorus},
      {{"uniring", "uniring(d,m)", "unidirectional ring of m ranks, d parallel links to the next"}, kNone, kTwo, BuildUniring},
      {{"unwind", "unwind(G,degree=d)", "every switch replaced by links from each rank to the d ranks after it"}, kOne, kNone, BuildUnwind, {"degree"}},
      {{"without", "without(G,link=a-b,links=0,nodes=0,seed=1)", "G without the cable between a and b, and without randomly drawn cables and nodes"}, kOne, kNone, BuildWithout, {"links", "nodes", "seed"}, false, {}, true},
      {{"xpander", "xpander(d,k,seed=1)", "random lift of the complete graph of d + 1 ranks: k copies of each, a random matching between the copies of two"}, kNone, kTwo, BuildXpander, {"seed"}},
  };
  // clang-format on
  return families;
}

const std::vector<Family>& FabricRegistry() {
  // clang-format off
  static const std::vector<Family> fabrics{
      {{"fat_tree", "fat_tree(k)", "three levels of switches of k ports"}, kNone, kOne, nullptr},
      {{"rails", "rails(count=N,spines=0)", "a switch for the i-th NICs of all boxes, without spines joined by the boxes alone"}, kNone, kNone, nullptr, {"count", "spines"}},
      {{"spine_leaf", "spine_leaf(l,s)", "l leaf switches, each linked to s spines; neighbouring boxes share a leaf"}, kNone, kTwo, nullptr},
      {{"switch", "switch", "one switch"}, kNone, kNone, nullptr},
  };
  // clang-format on
  return fabrics;
}

}  // namespace

std::span<const Family> Families() { return Registry(); }

std::span<const Family> Fabrics() { return FabricRegistry(); }

const Family* FindFamily(std::string_view name) {
  const std::vector<Family>& families = Registry();
  const auto found = std::lower_bound(
      families.begin(), families.end(), name,
      [](const Family& family, std::string_view wanted) { return family.info.name < wanted; });
  return found != families.end() && found->info.name == name ? &*found : nullptr;
}

}  // namespace tutti::topo
