#include "tutti/base/rational.h"

#include <gmp.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

static_assert(sizeof(mpq_t) == 32 && alignof(mpq_t) <= 8);

mpq_ptr Q(std::byte* storage) { return std::launder(reinterpret_cast<mpq_ptr>(storage)); }
mpq_srcptr Q(const std::byte* storage) {
  return std::launder(reinterpret_cast<mpq_srcptr>(storage));
}

std::string Text(mpz_srcptr z) {
  char* raw = mpz_get_str(nullptr, 10, z);
  std::string text(raw);
  void (*release)(void*, size_t) = nullptr;
  mp_get_memory_functions(nullptr, nullptr, &release);
  release(raw, text.size() + 1);
  return text;
}

std::optional<int64_t> Fit(mpz_srcptr z) {
  if (mpz_fits_slong_p(z) == 0) return std::nullopt;
  return static_cast<int64_t>(mpz_get_si(z));
}

bool IsDigits(std::string_view text) {
  for (char c : text)
    if (c < '0' || c > '9') return false;
  return !text.empty();
}

}  // namespace

Rational::Rational(int64_t num, int64_t den) {
  TUTTI_CHECK(den != 0);
  mpq_ptr q = reinterpret_cast<mpq_ptr>(storage_);
  mpq_init(q);
  mpz_set_si(mpq_numref(q), num);
  mpz_set_si(mpq_denref(q), den);
  mpq_canonicalize(q);
}
Rational::Rational(const Rational& other) {
  mpq_init(reinterpret_cast<mpq_ptr>(storage_));
  mpq_set(Q(storage_), Q(other.storage_));
}
Rational::Rational(Rational&& other) noexcept {
  mpq_init(reinterpret_cast<mpq_ptr>(storage_));
  mpq_swap(Q(storage_), Q(other.storage_));
}
Rational& Rational::operator=(const Rational& other) {
  if (this != &other) mpq_set(Q(storage_), Q(other.storage_));
  return *this;
}
Rational& Rational::operator=(Rational&& other) noexcept {
  if (this != &other) mpq_swap(Q(storage_), Q(other.storage_));
  return *this;
}
Rational::~Rational() { mpq_clear(Q(storage_)); }

std::optional<Rational> Rational::Parse(std::string_view text) {
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest.front() == '-';
  if (negative) rest.remove_prefix(1);
  std::string num, den = "1";
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    num = rest.substr(0, slash);
    den = rest.substr(slash + 1);
    if (!IsDigits(num) || !IsDigits(den)) return std::nullopt;
  } else {
    int64_t exponent = 0;
    if (const size_t e = rest.find_first_of("eE"); e != rest.npos) {
      std::string_view power = rest.substr(e + 1);
      const bool down = !power.empty() && power.front() == '-';
      if (!power.empty() && (power.front() == '-' || power.front() == '+')) power.remove_prefix(1);
      if (!IsDigits(power) || power.size() > 3) return std::nullopt;
      const int64_t magnitude = std::atoi(std::string(power).c_str());
      exponent = down ? -magnitude : magnitude;
      rest = rest.substr(0, e);
    }
    if (const size_t dot = rest.find('.'); dot != rest.npos) {
      const std::string_view fraction = rest.substr(dot + 1);
      num = std::string(rest.substr(0, dot)) + std::string(fraction);
      exponent -= static_cast<int64_t>(fraction.size());
    } else {
      num = rest;
    }
    if (!IsDigits(num)) return std::nullopt;
    if (exponent > 0) num += std::string(static_cast<size_t>(exponent), '0');
    if (exponent < 0) den += std::string(static_cast<size_t>(-exponent), '0');
  }
  Rational out;
  if (mpz_set_str(mpq_numref(Q(out.storage_)), num.c_str(), 10) != 0) return std::nullopt;
  if (mpz_set_str(mpq_denref(Q(out.storage_)), den.c_str(), 10) != 0) return std::nullopt;
  if (mpz_sgn(mpq_denref(Q(out.storage_))) == 0) {
    mpz_set_si(mpq_denref(Q(out.storage_)), 1);
    return std::nullopt;
  }
  mpq_canonicalize(Q(out.storage_));
  if (negative) mpq_neg(Q(out.storage_), Q(out.storage_));
  return out;
}

Rational Rational::FromDouble(double value) {
  Rational out;
  mpq_set_d(Q(out.storage_), value);
  return out;
}

Rational& Rational::operator+=(const Rational& other) {
  mpq_add(Q(storage_), Q(storage_), Q(other.storage_));
  return *this;
}
Rational& Rational::operator-=(const Rational& other) {
  mpq_sub(Q(storage_), Q(storage_), Q(other.storage_));
  return *this;
}
Rational& Rational::operator*=(const Rational& other) {
  mpq_mul(Q(storage_), Q(storage_), Q(other.storage_));
  return *this;
}
Rational& Rational::operator/=(const Rational& other) {
  TUTTI_CHECK(!other.is_zero());
  mpq_div(Q(storage_), Q(storage_), Q(other.storage_));
  return *this;
}

int Rational::Compare(const Rational& other) const {
  return mpq_cmp(Q(storage_), Q(other.storage_));
}
double Rational::ToDouble() const { return mpq_get_d(Q(storage_)); }
std::string Rational::NumString() const { return Text(mpq_numref(Q(storage_))); }
std::string Rational::DenString() const { return Text(mpq_denref(Q(storage_))); }
std::string Rational::ToString() const {
  const std::string den = DenString();
  return den == "1" ? NumString() : NumString() + "/" + den;
}
std::optional<int64_t> Rational::Num64() const { return Fit(mpq_numref(Q(storage_))); }
std::optional<int64_t> Rational::Den64() const { return Fit(mpq_denref(Q(storage_))); }

Rational Rational::Floor() const {
  Rational out;
  mpz_fdiv_q(mpq_numref(Q(out.storage_)), mpq_numref(Q(storage_)), mpq_denref(Q(storage_)));
  return out;
}
Rational Rational::Ceil() const {
  Rational out;
  mpz_cdiv_q(mpq_numref(Q(out.storage_)), mpq_numref(Q(storage_)), mpq_denref(Q(storage_)));
  return out;
}

}  // namespace tutti
