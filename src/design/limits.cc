#include <algorithm>

#include "tutti/base/check.h"
#include "tutti/design/finder.h"

namespace tutti {

int32_t MooreSteps(int32_t ranks, int32_t degree) {
  TUTTI_CHECK(ranks >= 1 && degree >= 1);
  if (degree == 1) return ranks - 1;
  int32_t steps = 0;
  for (int64_t reached = 1, layer = 1; reached < ranks; ++steps) reached += layer *= degree;
  return steps;
}

int32_t BidirectionalMooreSteps(int32_t ranks, int32_t degree) {
  TUTTI_CHECK(ranks >= 1 && degree >= 1 && (degree >= 2 || ranks <= 2));
  if (degree <= 2) return degree == 1 ? ranks - 1 : ranks / 2;
  int32_t steps = 0;
  for (int64_t reached = 1, layer = degree; reached < ranks; ++steps) {
    reached += layer;
    layer *= degree - 1;
  }
  return steps;
}

Rational MooreFlow(int32_t ranks, int32_t degree) {
  TUTTI_CHECK(ranks >= 2 && degree >= 1);
  int64_t hops = 0, layer = 1, left = ranks - 1;
  for (int64_t step = 1; left > 0; ++step) {
    layer = std::min(layer * degree, left);
    hops += layer * step;
    left -= layer;
  }
  return {degree, hops};
}

}  // namespace tutti
