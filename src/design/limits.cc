#include <algorithm>

#include "tutti/base/check.h"
#include "tutti/design/finder.h"

namespace tutti {

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
