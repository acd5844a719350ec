// By how much exact values leave bounds that a linear program states as doubles.
#pragma once

#include <algorithm>
#include <cmath>

#include "tutti/base/rational.h"

namespace tutti {

inline Rational Abs(const Rational& value) {
  return value < Rational(0) ? Rational(0) - value : value;
}

// By how much `value` leaves [lower, upper]; an infinite bound is none.
inline Rational Outside(const Rational& value, double lower, double upper) {
  Rational out = 0;
  if (std::isfinite(lower)) out = std::max(out, Rational::FromDouble(lower) - value);
  if (std::isfinite(upper)) out = std::max(out, value - Rational::FromDouble(upper));
  return out;
}

}  // namespace tutti
