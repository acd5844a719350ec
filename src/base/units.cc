#include "tutti/base/units.h"

#include <array>
#include <optional>

#include "tutti/base/rational.h"

namespace tutti {
namespace {

struct Unit {
  std::string_view name;
  int64_t num;
  int64_t den;
};

constexpr int64_t kKi = int64_t{1} << 10, kMi = int64_t{1} << 20, kGi = int64_t{1} << 30,
                  kTi = int64_t{1} << 40;
constexpr int64_t kKilo = 1'000, kMega = 1'000'000, kGiga = 1'000'000'000,
                  kTera = 1'000'000'000'000;

constexpr std::array<Unit, 14> kSizeUnits{{{"", 1, 1},
                                           {"B", 1, 1},
                                           {"KiB", kKi, 1},
                                           {"MiB", kMi, 1},
                                           {"GiB", kGi, 1},
                                           {"TiB", kTi, 1},
                                           {"KB", kKilo, 1},
                                           {"kB", kKilo, 1},
                                           {"MB", kMega, 1},
                                           {"GB", kGiga, 1},
                                           {"TB", kTera, 1},
                                           {"K", kKi, 1},
                                           {"M", kMi, 1},
                                           {"G", kGi, 1}}};
constexpr std::array<Unit, 19> kBandwidthUnits{{{"", 1, 1},
                                                {"B/s", 1, 1},
                                                {"KiB/s", kKi, 1},
                                                {"MiB/s", kMi, 1},
                                                {"GiB/s", kGi, 1},
                                                {"TiB/s", kTi, 1},
                                                {"KB/s", kKilo, 1},
                                                {"MB/s", kMega, 1},
                                                {"GB/s", kGiga, 1},
                                                {"TB/s", kTera, 1},
                                                {"bit/s", 1, 8},
                                                {"Kbit/s", kKilo, 8},
                                                {"Mbit/s", kMega, 8},
                                                {"Gbit/s", kGiga, 8},
                                                {"Tbit/s", kTera, 8},
                                                {"Kb/s", kKilo, 8},
                                                {"Mb/s", kMega, 8},
                                                {"Gb/s", kGiga, 8},
                                                {"Tb/s", kTera, 8}}};
constexpr std::array<Unit, 5> kTimeUnits{{{"s", kPicosecondsPerSecond, 1},
                                          {"ms", 1'000'000'000, 1},
                                          {"us", 1'000'000, 1},
                                          {"ns", 1'000, 1},
                                          {"ps", 1, 1}}};

// The longest prefix that can be part of a number; an 'e' counts only before a digit or sign.
size_t NumberLength(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || c == '.';
    const bool exponent =
        (c == 'e' || c == 'E') && i > 0 && i + 1 < text.size() &&
        (text[i + 1] == '+' || text[i + 1] == '-' || (text[i + 1] >= '0' && text[i + 1] <= '9'));
    const bool sign = (c == '-' || c == '+') && i > 0 && (text[i - 1] == 'e' || text[i - 1] == 'E');
    if (!digit && !exponent && !sign) break;
    ++i;
  }
  return i;
}

template <size_t kCount>
Result<int64_t> Parse(std::string_view text, const std::array<Unit, kCount>& units,
                      const char* what, const char* whole, const char* example) {
  const auto fail = [&](const std::string& why) {
    return InvalidArgument(std::string(what) + " '" + std::string(text) + "' " + why +
                           "; write it like " + example);
  };
  const size_t length = NumberLength(text);
  const std::optional<Rational> number = Rational::Parse(text.substr(0, length));
  if (!number) return fail("is not a number of at least 0 with a unit");
  const std::string_view suffix = text.substr(length);
  if (suffix.empty() && number->is_zero()) return 0;
  for (const Unit& unit : units) {
    if (unit.name != suffix) continue;
    const Rational value = *number * Rational(unit.num, unit.den);
    if (value > Rational(int64_t{1} << 62)) return fail("is too large");
    if (value.Den64() != 1) return fail(std::string("is not a whole number of ") + whole);
    return *value.Num64();
  }
  return fail(suffix.empty() ? "has no unit" : "has an unknown unit");
}

struct Scale {
  std::string_view name;
  int64_t factor;
};

template <size_t kCount>
std::string Format(int64_t value, const std::array<Scale, kCount>& scales) {
  for (const Scale& scale : scales)
    if (value != 0 && value % scale.factor == 0)
      return std::to_string(value / scale.factor) + std::string(scale.name);
  return std::to_string(value) + std::string(scales.back().name);
}

}  // namespace

Result<int64_t> ParseSizeBytes(std::string_view text) {
  return Parse(text, kSizeUnits, "size", "bytes", "64MiB, 1KB or 1e9");
}
Result<int64_t> ParseBandwidth(std::string_view text) {
  return Parse(text, kBandwidthUnits, "bandwidth", "bytes a second", "50GB/s or 25Gbit/s");
}
Result<int64_t> ParseDurationPs(std::string_view text) {
  return Parse(text, kTimeUnits, "time", "picoseconds", "0.5us or 700ns");
}

std::string FormatSize(int64_t bytes) {
  constexpr std::array<Scale, 8> scales{{{"GiB", kGi},
                                         {"MiB", kMi},
                                         {"KiB", kKi},
                                         {"GB", kGiga},
                                         {"MB", kMega},
                                         {"KB", kKilo},
                                         {"B", 1},
                                         {"B", 1}}};
  return Format(bytes, scales);
}
std::string FormatBandwidth(int64_t bytes_per_second) {
  constexpr std::array<Scale, 6> scales{{{"GB/s", kGiga},
                                         {"GiB/s", kGi},
                                         {"MB/s", kMega},
                                         {"MiB/s", kMi},
                                         {"KB/s", kKilo},
                                         {"B/s", 1}}};
  return Format(bytes_per_second, scales);
}
std::string FormatDurationPs(int64_t picoseconds) {
  constexpr std::array<Scale, 5> scales{{{"s", kPicosecondsPerSecond},
                                         {"ms", 1'000'000'000},
                                         {"us", 1'000'000},
                                         {"ns", 1'000},
                                         {"ps", 1}}};
  return Format(picoseconds, scales);
}

}  // namespace tutti
