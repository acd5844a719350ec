// Axes of charts: what stands where, and numbers as people read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// From values to places in the drawing, `from` being that of `low`.
struct ChartAxis {
  double low = 0, high = 1;
  bool log = false;
  double from = 0, to = 1;

  double At(double value) const;
};

struct AxisTick {
  double value;
  std::string text;
};

// At most about `most` round values from low to high: 1, 2 and 5 times powers of ten; of logarithmic axes powers
// of ten, with those between where few fit. In bytes: powers of two.
std::vector<AxisTick> TicksOf(const ChartAxis& axis, size_t most, bool in_bytes);

// Those of `values` (ascending, distinct) that all stand on the axis; every so many that at most `most` are left.
std::vector<AxisTick> TicksAt(const std::vector<double>& values, size_t most, bool in_bytes);

// "0.25", "4,096", "1e-5", "64 KiB".
std::string NumberText(double value, bool in_bytes);

// As wide as a text is in a usual sans-serif font of that size, within some percent.
double TextWidth(std::string_view text, double size);

// Lines no wider than `width`, broken between words; a longer word stays whole.
std::vector<std::string> Wrapped(std::string_view text, double size, double width);

// Heights at least `gap` apart, as near to those wanted as the room allows, in the given order.
std::vector<double> SpreadOut(const std::vector<double>& wanted, double gap, double low,
                              double high);

}  // namespace tutti
