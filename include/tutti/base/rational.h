// Rational: an exact fraction of any size. Everything that decides optimality is one of these or
// an integer, never a double.
//
// Invariants  Always in lowest terms with a positive denominator.
// Complexity  One GMP operation each, with an allocation: for costs and bounds, not for hot loops
//             (those count in integer units, see sched/schedule.h).
// Threads     A value like any other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

class Rational {
 public:
  Rational() : Rational(0) {}
  Rational(int64_t integer) : Rational(integer, 1) {}  // implicit: integers are rationals
  Rational(int64_t num, int64_t den);                  // den != 0
  Rational(const Rational& other);
  Rational(Rational&& other) noexcept;
  Rational& operator=(const Rational& other);
  Rational& operator=(Rational&& other) noexcept;
  ~Rational();

  // "3", "-3/4", "0.25" and "1e9" exactly; nothing else, not even spaces.
  static std::optional<Rational> Parse(std::string_view text);
  // Exactly the value of a finite double.
  static Rational FromDouble(double value);

  Rational& operator+=(const Rational& other);
  Rational& operator-=(const Rational& other);
  Rational& operator*=(const Rational& other);
  Rational& operator/=(const Rational& other);  // other != 0
  friend Rational operator+(Rational a, const Rational& b) { return a += b; }
  friend Rational operator-(Rational a, const Rational& b) { return a -= b; }
  friend Rational operator*(Rational a, const Rational& b) { return a *= b; }
  friend Rational operator/(Rational a, const Rational& b) { return a /= b; }
  friend bool operator==(const Rational& a, const Rational& b) { return a.Compare(b) == 0; }
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    return a.Compare(b) <=> 0;
  }

  bool is_zero() const { return Compare(Rational(0)) == 0; }
  double ToDouble() const;
  std::string ToString() const;  // "num" or "num/den"
  std::string NumString() const;
  std::string DenString() const;
  // The numerator or denominator where it fits.
  std::optional<int64_t> Num64() const;
  std::optional<int64_t> Den64() const;
  Rational Floor() const;
  Rational Ceil() const;

 private:
  int Compare(const Rational& other) const;

  alignas(8) std::byte storage_[32];  // an mpq_t; GMP's header stays in rational.cc
};

}  // namespace tutti
