#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment.h"

namespace tutti {
namespace {

// What the paper prints: a value, known to within half a unit of its last digit, or a limit.
struct Printed {
  enum class Kind { kValue, kAtMost, kBelow } kind = Kind::kValue;
  Rational value, half_unit;
};

Rational PowerOfTen(int64_t exponent) {
  Rational power = 1;
  for (int64_t i = 0; i < std::abs(exponent); ++i) power *= Rational(10);
  return exponent < 0 ? Rational(1) / power : power;
}

std::optional<Printed> ParsePrinted(std::string_view text) {
  Printed printed;
  if (text.starts_with("<= ")) {
    printed.kind = Printed::Kind::kAtMost;
    text.remove_prefix(3);
  } else if (text.starts_with("< ")) {
    printed.kind = Printed::Kind::kBelow;
    text.remove_prefix(2);
  }
  const std::optional<Rational> value = Rational::Parse(text);
  if (!value) return std::nullopt;
  printed.value = *value;
  if (text.find('/') != text.npos) return printed;  // exact
  int64_t exponent = 0;
  if (const size_t e = text.find('e'); e != text.npos) {
    exponent = std::atoll(std::string(text.substr(e + 1)).c_str());
    text = text.substr(0, e);
  }
  if (const size_t point = text.find('.'); point != text.npos)
    exponent -= static_cast<int64_t>(text.size() - point - 1);
  printed.half_unit = PowerOfTen(exponent) / Rational(2);
  return printed;
}

bool Agrees(const ResultCell& cell, const Printed& printed) {
  const Rational& ours = *cell.ours;
  switch (printed.kind) {
    case Printed::Kind::kAtMost:
      return ours <= printed.value;
    case Printed::Kind::kBelow:
      return ours < printed.value;
    case Printed::Kind::kValue:
      break;
  }
  const Rational& limit = cell.limit ? *cell.limit : ours;
  return std::min(ours, limit) <= printed.value + printed.half_unit &&
         std::max(ours, limit) >= printed.value - printed.half_unit;
}

std::string DifferenceText(const Rational& ours, const Rational& paper) {
  constexpr int64_t kSmall = 1000;
  const std::optional<int64_t> whole = ours.Num64(), whole_paper = paper.Num64();
  if (whole && whole_paper && ours.Den64() == 1 && paper.Den64() == 1 &&
      std::abs(*whole_paper) < kSmall && std::abs(*whole) < kSmall)
    return fmt::format("{:+}", *whole - *whole_paper);
  if (paper.is_zero()) return fmt::format("{:+.3g}", ours.ToDouble());
  const double ratio = (ours / paper).ToDouble();
  if (ratio > 2) return fmt::format("{:.3g} times more", ratio);
  if (ratio < 0.5) return fmt::format("{:.3g} times less", 1 / ratio);
  return fmt::format("{:+.2f} %", 100 * (ratio - 1));
}

}  // namespace

std::string OursText(const ResultCell& cell, const ResultColumn& column) {
  if (!cell.ours) return cell.text;
  switch (column.style) {
    case FigureStyle::kScientific:
      return fmt::format("{:.{}e}", cell.ours->ToDouble(), column.digits);
    case FigureStyle::kExact:
      return cell.ours->ToString();
    case FigureStyle::kFixed:
      break;
  }
  return fmt::format("{:.{}f}", cell.ours->ToDouble(), column.digits);
}

std::optional<Comparison> Compare(const ResultCell& cell) {
  if (cell.paper.empty() || (!cell.ours && cell.text.empty())) return std::nullopt;
  const std::optional<Printed> printed = ParsePrinted(cell.paper);
  if (printed.has_value() != cell.ours.has_value()) return std::nullopt;
  Comparison out;
  if (!printed) {
    out.agrees = cell.text == cell.paper;
    out.text = out.agrees ? "=" : "differs";
    return out;
  }
  const bool limit = printed->kind != Printed::Kind::kValue;
  out.agrees = Agrees(cell, *printed);
  out.text = !out.agrees ? DifferenceText(*cell.ours, printed->value) : limit ? "holds" : "=";
  if (!limit && !printed->value.is_zero())
    out.relative = (*cell.ours / printed->value - Rational(1)).ToDouble();
  return out;
}

}  // namespace tutti
