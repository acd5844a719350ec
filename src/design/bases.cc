#include "base.h"

namespace tutti::design {

std::span<const BaseFamily> BaseFamilies() {
  static constexpr BaseFamily kFamilies[] = {
      {"complete", "[direct-connect] Table 9", ListComplete},
      {"bipartite", "[direct-connect] Figure 1", ListBipartite},
      {"hamming", "[direct-connect] Table 9", ListHamming},
      {"rings", "[direct-connect] F.1", ListRings},
      {"kautz", "[direct-connect] theorem 10", ListKautz},
      {"debruijn", "[direct-connect] theorem 10", ListDebruijn},
      {"circulant", "[direct-connect] theorem 22", ListCirculant},
      {"dircirculant", "[direct-connect] Table 9", ListDircirculant},
  };
  return kFamilies;
}

}  // namespace tutti::design
