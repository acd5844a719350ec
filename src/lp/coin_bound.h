// Limits as COIN's solvers take them.
#pragma once

#include <CoinFinite.hpp>
#include <algorithm>

namespace tutti {

// COIN knows no limit as COIN_DBL_MAX.
inline double CoinBound(double value) { return std::clamp(value, -COIN_DBL_MAX, COIN_DBL_MAX); }

}  // namespace tutti
