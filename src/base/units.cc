#include "tutti/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <optional>

#include "tutti/base/rational.h"

namespace tutti {
namespace {

constexpr int64_t kKi = int64_t{1} << 10, kMi = int64_t{1} << 20, kGi = int64_t{1} << 30,
                  kTi = int64_t{1} << 40;
constexpr int64_t kKilo = 1'000, kMega = 1'000'000, kGiga = 1'000'000'000,
                  kTera = 1'000'000'000'000;

// num / den of what the quantity is counted in: bytes, bytes a second, picoseconds.
struct Unit {
  std::string_view name;
  int64_t num;
  int64_t den;
};

constexpr std::array<Unit, 10> kPrefixes{{{"", 1, 1},
                                          {"k", kKilo, 1},
                                          {"K", kKilo, 1},
                                          {"M", kMega, 1},
                                          {"G", kGiga, 1},
                                          {"T", kTera, 1},
                                          {"Ki", kKi, 1},
                                          {"Mi", kMi, 1},
                                          {"Gi", kGi, 1},
                                          {"Ti", kTi, 1}}};
// As nccl-tests reads them, and both cases of a letter alike.
constexpr std::array<Unit, 9> kBareSizes{{{"", 1, 1},
                                          {"k", kKi, 1},
                                          {"K", kKi, 1},
                                          {"m", kMi, 1},
                                          {"M", kMi, 1},
                                          {"g", kGi, 1},
                                          {"G", kGi, 1},
                                          {"t", kTi, 1},
                                          {"T", kTi, 1}}};
constexpr std::array<Unit, 5> kRates{
    {{"B/s", 1, 1}, {"Bps", 1, 1}, {"bit/s", 1, 8}, {"b/s", 1, 8}, {"bps", 1, 8}}};
constexpr std::array<Unit, 7> kTimes{{{"s", kPicosecondsPerSecond, 1},
                                      {"ms", 1'000'000'000, 1},
                                      {"us", 1'000'000, 1},
                                      {"\u00b5s", 1'000'000, 1},  // the sign for micro
                                      {"\u03bcs", 1'000'000, 1},  // the Greek letter
                                      {"ns", 1'000, 1},
                                      {"ps", 1, 1}}};

template <class Units>
std::optional<Unit> Find(std::string_view name, const Units& units) {
  for (const Unit& unit : units)
    if (unit.name == name) return unit;
  return std::nullopt;
}

// "GB/s" is the prefix "G" of the base "B/s".
template <class Units>
std::optional<Unit> FindPrefixed(std::string_view name, const Units& bases) {
  for (const Unit& base : bases) {
    if (!name.ends_with(base.name)) continue;
    const auto prefix = Find(name.substr(0, name.size() - base.name.size()), kPrefixes);
    if (prefix) return Unit{name, prefix->num, base.den};
  }
  return std::nullopt;
}

std::optional<Unit> SizeUnit(std::string_view name) {
  if (const auto bare = Find(name, kBareSizes)) return bare;
  return FindPrefixed(name, std::array{Unit{"B", 1, 1}});
}
std::optional<Unit> RateUnit(std::string_view name) {
  if (name.empty()) return Unit{"", 1, 1};
  return FindPrefixed(name, kRates);
}
std::optional<Unit> TimeUnit(std::string_view name) { return Find(name, kTimes); }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The readings of a unit that may mean bits or bytes, or thousands or 1024s; empty: it is none.
std::string SizeReadings(std::string_view unit) {
  const std::string lower = Lower(unit);
  const auto prefix = std::string_view(lower).substr(0, 1);
  if (lower.size() > 4 || !lower.ends_with('b') || Find(prefix, kBareSizes) == std::nullopt)
    return {};
  const auto big = static_cast<char>(std::toupper(static_cast<unsigned char>(lower[0])));
  if (lower == "b") return "bits or bytes: write B for bytes";
  return std::string("bits or bytes: write ") + big + "B (powers of 1000) or " + big +
         "iB (of 1024) for bytes";
}
std::string RateReadings(std::string_view unit) {
  std::string lower = Lower(unit);
  for (std::string_view per : {"b/s", "bps", "bit/s", "b", ""}) {
    if (!lower.ends_with(per)) continue;
    const std::string_view prefix = unit.substr(0, unit.size() - per.size());
    if (prefix.size() != 1 || !Find(Lower(prefix), kBareSizes)) continue;
    const std::string big(1,
                          static_cast<char>(std::toupper(static_cast<unsigned char>(prefix[0]))));
    return "bits or bytes a second: write " + big + "bit/s or " + big + "B/s";
  }
  return {};
}
std::string NoReadings(std::string_view) { return {}; }

bool IsSpace(char c) { return c == ' ' || c == '\t'; }
std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

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

// A quantity: how its units are found, and the words of its errors.
struct Quantity {
  std::optional<Unit> (*unit)(std::string_view);
  std::string (*readings)(std::string_view);
  const char *what, *whole, *example;
};

Result<int64_t> Parse(std::string_view text, const Quantity& quantity) {
  const auto fail = [&](const std::string& why) {
    return InvalidArgument(std::string(quantity.what) + " '" + std::string(text) + "' " + why +
                           "; write it like " + quantity.example);
  };
  const std::string_view trimmed = Trim(text);
  const size_t length = NumberLength(trimmed);
  const std::optional<Rational> number = Rational::Parse(trimmed.substr(0, length));
  if (!number) return fail("is not a number of at least 0 with a unit");
  const std::string_view suffix = Trim(trimmed.substr(length));
  if (suffix.empty() && number->is_zero()) return 0;
  const std::optional<Unit> unit = quantity.unit(suffix);
  if (!unit) {
    if (suffix.empty()) return fail("has no unit");
    const std::string readings = quantity.readings(suffix);
    return fail(readings.empty() ? "has an unknown unit" : "may be " + readings);
  }
  const Rational value = *number * Rational(unit->num, unit->den);
  if (value > Rational(int64_t{1} << 62)) return fail("is too large");
  if (value.Den64() != 1) return fail(std::string("is not a whole number of ") + quantity.whole);
  return *value.Num64();
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

// `exact` where it is short, else three decimals of the largest unit that leaves a whole part.
template <size_t kCount>
std::string Readable(int64_t value, std::string exact, const std::array<Scale, kCount>& scales) {
  constexpr size_t kShort = 10;
  if (exact.size() <= kShort) return exact;
  for (const Scale& scale : scales)
    if (value >= scale.factor)
      return fmt::format(
          "{:.3f} {}", static_cast<double>(value) / static_cast<double>(scale.factor), scale.name);
  return exact;
}

}  // namespace

Result<int64_t> ParseSizeBytes(std::string_view text) {
  return Parse(text, {SizeUnit, SizeReadings, "size", "bytes", "64MiB, 1KB or 1e9"});
}
Result<int64_t> ParseBandwidth(std::string_view text) {
  return Parse(text, {RateUnit, RateReadings, "bandwidth", "bytes a second", "50GB/s or 25Gbit/s"});
}
Result<int64_t> ParseDurationPs(std::string_view text) {
  return Parse(text, {TimeUnit, NoReadings, "time", "picoseconds", "0.5us or 700ns"});
}

std::string FormatSize(int64_t bytes) {
  constexpr std::array<Scale, 9> scales{{{"TiB", kTi},
                                         {"GiB", kGi},
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

std::string ReadableSize(int64_t bytes) {
  return Readable(bytes, FormatSize(bytes),
                  std::array<Scale, 4>{{{"GiB", kGi}, {"MiB", kMi}, {"KiB", kKi}, {"B", 1}}});
}
std::string ReadableBandwidth(int64_t bytes_per_second) {
  return Readable(
      bytes_per_second, FormatBandwidth(bytes_per_second),
      std::array<Scale, 4>{{{"GB/s", kGiga}, {"MB/s", kMega}, {"KB/s", kKilo}, {"B/s", 1}}});
}

}  // namespace tutti
