#include "base.h"

namespace tutti::design {

std::span<const BaseFamily> BaseFamilies() {
  static constexpr BaseFamily kFamilies[] = {
      {"complete", "[direct-connect] Table 9", true, ListComplete},
      {"bipartite", "[direct-connect] Figure 1", true, ListBipartite},
      {"hamming", "[direct-connect] Table 9", true, ListHamming},
      {"rings", "[direct-connect] F.1", true, ListRings},
      {"stages", "closed formula, stages.cc", true, ListStages},
      {"kautz", "[direct-connect] theorem 10", false, ListKautz},
      {"debruijn", "[direct-connect] theorem 10", false, ListDebruijn},
      {"genkautz", "[direct-connect] F.2, counted", false, ListGenkautz},
      {"genkautz_mod", "genkautz with its self-loops rewired, measured", false, ListGenkautzMod},
      {"circulant", "[direct-connect] theorem 22, F.4", true, ListCirculant},
      {"directed circulant", "circulant.cc", true, ListDirectedCirculant},
      {"distreg", "[direct-connect] Table 8, theorem 18", true, ListDistreg},
      {"stored", "[direct-connect] Table 9, stored schedule", false, ListStored},
      {"dircirculant", "[direct-connect] Table 9", true, ListDircirculant},
      {"found", "searched by tools/search_bases, measured", true, ListFound},
  };
  return kFamilies;
}

}  // namespace tutti::design
