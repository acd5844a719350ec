#include "chart_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace tutti {
namespace {

// The fewest even steps of 1, 2 or 5 times a power of ten.
std::vector<double> Round(double low, double high, size_t most) {
  const double span = high - low;
  if (!(span > 0)) return {low};
  const double power = std::pow(10, std::floor(std::log10(span / static_cast<double>(most))));
  double step = power;
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    step = times * power;
    if (span / step <= static_cast<double>(most)) break;
  }
  std::vector<double> all;
  const auto first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last; ++i) all.push_back(i == 0 ? 0 : i * step);
  return all;
}

std::vector<double> Powers(double low, double high, double base, size_t most) {
  const auto of = [base](double value) { return std::log(value) / std::log(base); };
  const auto first = static_cast<int>(std::ceil(of(low) - 1e-9));
  const auto last = static_cast<int>(std::floor(of(high) + 1e-9));
  const int every = std::max(1, static_cast<int>(std::ceil(static_cast<double>(last - first + 1) /
                                                           static_cast<double>(most))));
  std::vector<double> all;
  for (int power = first; power <= last; power += every) all.push_back(std::pow(base, power));
  return all;
}

std::vector<double> Decades(double low, double high, size_t most) {
  std::vector<double> all;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high * 1.001; power *= 10)
    for (const double times : {1.0, 2.0, 5.0})
      if (times * power >= low * 0.999 && times * power <= high * 1.001)
        all.push_back(times * power);
  if (all.size() > most) return Powers(low, high, 10, most);
  return all.size() < 3 ? Round(low, high, most) : all;
}

std::string Grouped(double value) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return (value < 0 ? "-" : "") + digits;
}

}  // namespace

double ChartAxis::At(double value) const {
  const auto f = [this](double x) { return log ? std::log(x) : x; };
  return from + (f(value) - f(low)) / (f(high) - f(low)) * (to - from);
}

std::string NumberText(double value, bool in_bytes) {
  if (in_bytes) {
    // Decimal sizes are whole numbers of a decimal unit, others of a binary one.
    static constexpr std::array<std::pair<double, const char*>, 6> kUnits = {{{1e9, "GB"},
                                                                              {1e6, "MB"},
                                                                              {1e3, "kB"},
                                                                              {1073741824.0, "GiB"},
                                                                              {1048576.0, "MiB"},
                                                                              {1024.0, "KiB"}}};
    for (const auto& [scale, unit] : kUnits)
      if (value >= scale && std::fmod(value, scale) == 0)
        return fmt::format("{:g} {}", value / scale, unit);
  }
  if (value != 0 && (std::abs(value) < 1e-4 || std::abs(value) >= 1e7)) {
    std::string text = fmt::format("{:.3g}", value);
    const size_t e = text.find('e');
    if (e == text.npos) return Grouped(value);
    const int power = std::stoi(text.substr(e + 1));
    return fmt::format("{}e{}", text.substr(0, e), power);
  }
  if (std::abs(value) >= 1000 && std::fmod(value, 1) == 0) return Grouped(value);
  return fmt::format("{:.6g}", value);
}

std::vector<AxisTick> TicksOf(const ChartAxis& axis, size_t most, bool in_bytes) {
  std::vector<double> values;
  if (!axis.log)
    values = Round(axis.low, axis.high, most);
  else if (in_bytes && axis.high / axis.low > 4)
    values = Powers(axis.low, axis.high, 2, most);
  else
    values = Decades(axis.low, axis.high, most);
  std::vector<AxisTick> out;
  for (const double value : values) out.push_back({value, NumberText(value, in_bytes)});
  return out;
}

std::vector<AxisTick> TicksAt(const std::vector<double>& values, size_t most, bool in_bytes) {
  const size_t every = std::max<size_t>(1, (values.size() + most - 1) / most);
  std::vector<AxisTick> out;
  for (size_t i = 0; i < values.size(); i += every)
    out.push_back({values[i], NumberText(values[i], in_bytes)});
  return out;
}

double TextWidth(std::string_view text, double size) {
  // For DejaVu Sans, which is wider than most.
  constexpr std::string_view kNarrow = "ijltfr.,:;'|!()[] /-", kWide = "mwMW@%";
  double em = 0;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80 && static_cast<unsigned char>(c) < 0xc0) continue;
    em += kNarrow.find(c) != kNarrow.npos ? 0.36
          : kWide.find(c) != kWide.npos   ? 0.92
          : c >= 'A' && c <= 'Z'          ? 0.71
                                          : 0.62;
  }
  return em * size;
}

std::vector<std::string> Wrapped(std::string_view text, double size, double width) {
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    const std::string longer = lines.back().empty() ? word : lines.back() + " " + word;
    if (lines.back().empty() || TextWidth(longer, size) <= width)
      lines.back() = longer;
    else
      lines.push_back(word);
    begin = end + 1;
  }
  return lines;
}

std::vector<double> SpreadOut(const std::vector<double>& wanted, double gap, double low,
                              double high) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  if (wanted.size() > 1) gap = std::min(gap, (high - low) / static_cast<double>(wanted.size() - 1));
  std::vector<double> out = wanted;
  double least = low, most = high;
  for (const size_t i : order) {
    out[i] = std::max(out[i], least);
    least = out[i] + gap;
  }
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    out[*i] = std::min(out[*i], most);
    most = out[*i] - gap;
  }
  return out;
}

}  // namespace tutti
