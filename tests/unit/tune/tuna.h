// TuNA of a radix, for tests.
#pragma once

#include "tutti/tune/cost_model.h"

namespace tutti::tune {

inline Algorithm Tuna(int radix) { return {.method = Method::kTuna, .radix = radix}; }

}  // namespace tutti::tune
