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
  // clang-format off
  static const std::vector<Family> families{
      {{"bidirectional", "bidirectional(G)", "G and its transpose together: degree 2d; G itself where every link has its reverse"}, kOne, kNone, BuildBidirectional},
      {{"bipartite", "bipartite(d)", "complete bipartite graph of d + d ranks"}, kNone, kOne, BuildBipartite},
      {{"biring", "biring(d,m)", "bidirectional ring of m ranks and degree d: d/2 cables between neighbours"}, kNone, kTwo, BuildBiring},
      {{"cayley", "cayley(m,k,r,a1,b1,...)", "Cayley digraph of Z_m x|_r Z_k: rank x sends to x (a,b) for every generator (a,b)"}, kNone, {5, kAny}, BuildCayley},
      {{"circulant", "circulant(n,a1,...)", "rank i is linked to i + a and i - a modulo n for every a"}, kNone, {2, kAny}, BuildCirculant},
      {{"complete", "complete(m)", "every rank linked to every other"}, kNone, kOne, BuildComplete},
      {{"debruijn", "debruijn(d,n)", "de Bruijn digraph of d^n ranks, with its d self-loops"}, kNone, kTwo, BuildDebruijn},
      {{"debruijn_mod", "debruijn_mod(d,n)", "de Bruijn digraph with its self-loops and 2-cycles rewired to one cycle: (2,3), (2,4), (3,2), (4,2)"}, kNone, kTwo, BuildDebruijnMod},
      {{"degree", "degree(G,n)", "degree expansion: n copies of every rank, n x n links for each link"}, kOne, kOne, BuildDegree},
      {{"dgx1", "dgx1", "8 V100 GPUs in NVIDIA's hybrid cube mesh, one link an NVLink of 25 GB/s"}, kNone, kNone, BuildDgx1, {}, false, kNvlink},
      {{"diamond", "diamond", "8 ranks of degree 2 and diameter 3, bandwidth-optimal with a stored schedule"}, kNone, kNone, BuildDiamond},
      {{"dircirculant", "dircirculant(d)", "d + 2 ranks, rank i sends to i + 1 .. i + d"}, kNone, kOne, BuildDircirculant},
      {{"distreg", "distreg(name)", "distance-regular graph of degree 4, one of a list", DistregMembers()}, kNone, kNone, BuildDistreg},
      {{"dragonfly", "dragonfly(g,m,bw=[local,global])", "g groups of m ranks, complete inside, one cable between two groups"}, kNone, kTwo, BuildDragonfly, {}, true},
      {{"genkautz", "genkautz(d,m)", "generalized Kautz digraph: degree d, any number m > d of ranks"}, kNone, kTwo, BuildGenkautz},
      {{"hamming", "hamming(n,q)", "q^n ranks, linked where they differ in one of n digits"}, kNone, kTwo, BuildHamming},
      {{"host_forwarding", "host_forwarding(G)", "host limits of G as links: NICs that pass everything through the host"}, kOne, kNone, BuildHostForwarding},
      {{"hypercube", "hypercube(n)", "2^n ranks, linked where they differ in one bit"}, kNone, kOne, BuildHypercube},
      {{"kautz", "kautz(d,n)", "Kautz digraph of d^n (d + 1) ranks and degree d"}, kNone, kTwo, BuildKautz},
      {{"line", "line(G,k=1)", "line digraph of G, taken k times"}, kOne, {0, 1}, BuildLine, {"k"}},
      {{"mesh", "mesh(a,b,...)", "grid of any dimensions without wrap-around links"}, kNone, {1, kAny}, BuildMesh},
      {{"nic_forwarding", "nic_forwarding(G)", "host limits of G as links: NICs that forward by themselves"}, kOne, kNone, BuildNicForwarding},
      {{"power", "power(G,n)", "Cartesian product of n copies of G"}, kOne, kOne, BuildPower},
      {{"product", "product(G,H,...)", "Cartesian product, the first factor slowest"}, {1, kAny}, kNone, BuildProduct},
      {{"random_regular", "random_regular(d,n,seed=1)", "n ranks of degree d with cables drawn at random, connected and without parallel ones"}, kNone, kTwo, BuildRandomRegular, {"seed"}},
      {{"rfs", "rfs(a,b,c,bw=[ring,full,switch])", "ring of a x fully connected b x switches of c"}, kNone, {3, 3}, BuildRfs, {}, true},
      {{"ring", "ring(m)", "bidirectional ring, one cable between neighbours: biring(2,m)"}, kNone, kOne, BuildRing},
      {{"switch", "switch(n)", "n ranks around one switch"}, kNone, kOne, BuildSwitch, {}, true},
      {{"switch2d", "switch2d(a,b)", "a x b ranks, a switch along every row and column"}, kNone, kTwo, BuildSwitch2d, {}, true},
      {{"torus", "torus(a,b,...)", "grid of any dimensions with wrap-around links"}, kNone, {1, kAny}, BuildTorus},
      {{"transpose", "transpose(G)", "G with every link turned around"}, kOne, kNone, BuildTranspose},
      {{"twisted_hypercube", "twisted_hypercube(n)", "hypercube with one pair of edges crossed: diameter n - 1"}, kNone, kOne, BuildTwistedHypercube},
      {{"twisted_torus", "twisted_torus(2b,b) or twisted_torus(k,k,2k)", "torus whose wrap-around links along the short dimensions are shifted"}, kNone, {2, 3}, BuildTwistedTorus},
      {{"uniring", "uniring(d,m)", "unidirectional ring of m ranks, d parallel links to the next"}, kNone, kTwo, BuildUniring},
      {{"unwind", "unwind(G,degree=d)", "every switch replaced by links from each rank to the d ranks after it"}, kOne, kNone, BuildUnwind, {"degree"}},
      {{"without", "without(G,links=0,nodes=0,seed=1)", "G without randomly drawn cables and nodes, still connected"}, kOne, kNone, BuildWithout, {"links", "nodes", "seed"}},
      {{"xpander", "xpander(d,k,seed=1)", "random lift of the complete graph of d + 1 ranks: k copies of each, a random matching between the copies of two"}, kNone, kTwo, BuildXpander, {"seed"}},
  };
  // clang-format on
  return families;
}

}  // namespace

std::span<const Family> Families() { return Registry(); }

const Family* FindFamily(std::string_view name) {
  const std::vector<Family>& families = Registry();
  const auto found = std::lower_bound(
      families.begin(), families.end(), name,
      [](const Family& family, std::string_view wanted) { return family.info.name < wanted; });
  return found != families.end() && found->info.name == name ? &*found : nullptr;
}

}  // namespace tutti::topo
