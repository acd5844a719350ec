#include "exact_system.h"

#include <fmt/format.h>
#include <gmp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

// Below 2^31, so that sums of two and products of two fit their words.
constexpr uint32_t kPrimes[] = {2147483647u, 2147483629u, 2147483587u};
constexpr double kBitsPerDigit = 30.99;

uint32_t Modulo(int64_t value, uint32_t prime) {
  const int64_t rest = value % static_cast<int64_t>(prime);
  return static_cast<uint32_t>(rest < 0 ? rest + prime : rest);
}

uint32_t Times(uint32_t a, uint32_t b, uint32_t prime) {
  return static_cast<uint32_t>(uint64_t{a} * b % prime);
}

// a - b c
uint32_t Less(uint32_t a, uint32_t b, uint32_t c, uint32_t prime) {
  return static_cast<uint32_t>((a + uint64_t{prime - b} * c) % prime);
}

// Fermat.
uint32_t Inverse(uint32_t value, uint32_t prime) {
  uint32_t power = value, inverse = 1;
  for (uint32_t exponent = prime - 2; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) inverse = Times(inverse, power, prime);
    power = Times(power, power, prime);
  }
  return inverse;
}

// A whole number of GMP.
class Whole {
 public:
  Whole() { mpz_init(value_); }
  Whole(const Whole& other) { mpz_init_set(value_, other.value_); }
  Whole(Whole&& other) noexcept {
    mpz_init(value_);
    mpz_swap(value_, other.value_);
  }
  Whole& operator=(const Whole& other) {
    if (this != &other) mpz_set(value_, other.value_);
    return *this;
  }
  Whole& operator=(Whole&& other) noexcept {
    mpz_swap(value_, other.value_);
    return *this;
  }
  ~Whole() { mpz_clear(value_); }

  mpz_ptr get() { return value_; }
  mpz_srcptr get() const { return value_; }

  std::string ToString() const {
    std::string text(mpz_sizeinbase(value_, 10) + 2, '\0');
    mpz_get_str(text.data(), 10, value_);
    text.resize(text.find('\0'));
    return text;
  }

 private:
  mpz_t value_;
};

Whole NumeratorOf(const Rational& value) {
  Whole whole;
  mpz_set_str(whole.get(), value.NumString().c_str(), 10);
  return whole;
}
Whole DenominatorOf(const Rational& value) {
  Whole whole;
  mpz_set_str(whole.get(), value.DenString().c_str(), 10);
  return whole;
}

// The smallest d in [1, most] and the n with |n| <= most and n = d * value modulo `modulus`, where
// there are some and 2 most^2 < modulus. Only d is returned.
std::optional<Whole> DenominatorModulo(const Whole& value, const Whole& modulus,
                                       const Whole& most) {
  Whole r0 = modulus, r1 = value, t0, t1, quotient, next;
  mpz_set_ui(t1.get(), 1);
  while (mpz_cmpabs(r1.get(), most.get()) > 0) {
    mpz_fdiv_qr(quotient.get(), next.get(), r0.get(), r1.get());
    std::swap(r0, r1);
    std::swap(r1, next);
    mpz_set(next.get(), t0.get());
    mpz_submul(next.get(), quotient.get(), t1.get());
    std::swap(t0, t1);
    std::swap(t1, next);
  }
  if (mpz_sgn(t1.get()) == 0 || mpz_cmpabs(t1.get(), most.get()) > 0) return std::nullopt;
  mpz_abs(t1.get(), t1.get());
  return t1;
}

}  // namespace

// The digits of one answer and what they leave of the right side.
class ExactSystem::Lifting {
 public:
  Lifting(const ExactSystem& system, const std::vector<Rational>& right, bool transposed)
      : system_(system), transposed_(transposed), right_(right.size()) {
    mpz_set_ui(scale_.get(), 1);
    for (const Rational& value : right)
      mpz_lcm(scale_.get(), scale_.get(), DenominatorOf(value).get());
    for (size_t i = 0; i < right.size(); ++i) {
      mpz_divexact(right_[i].get(), scale_.get(), DenominatorOf(right[i]).get());
      mpz_mul(right_[i].get(), right_[i].get(), NumeratorOf(right[i]).get());
    }
    rest_ = right_;
    value_.resize(right.size());
    mpz_set_ui(modulus_.get(), 1);
  }

  void AddDigits(size_t count) {
    for (size_t i = 0; i < count; ++i) AddDigit();
  }

  // The answer, when the digits determine one that holds.
  std::optional<std::vector<Rational>> Answer() const {
    Whole most;
    mpz_fdiv_q_2exp(most.get(), modulus_.get(), 1);
    mpz_sqrt(most.get(), most.get());
    if (mpz_sgn(most.get()) == 0) return std::nullopt;
    mpz_sub_ui(most.get(), most.get(), 1);
    Whole common;  // denominator of those before
    mpz_set_ui(common.get(), 1);
    std::vector<Whole> numerator(value_.size());
    for (size_t j = 0; j < value_.size(); ++j) {
      if (TimesIsSmall(value_[j], common, most, numerator[j])) continue;
      const std::optional<Whole> more = DenominatorModulo(numerator[j], modulus_, most);
      if (!more) return std::nullopt;
      mpz_mul(common.get(), common.get(), more->get());
      if (!TimesIsSmall(value_[j], common, modulus_, numerator[j])) return std::nullopt;
      for (size_t before = 0; before < j; ++before)
        mpz_mul(numerator[before].get(), numerator[before].get(), more->get());
    }
    if (!Holds(numerator, common)) return std::nullopt;
    std::vector<Rational> answer;
    Whole denominator;
    mpz_mul(denominator.get(), common.get(), scale_.get());
    const std::string below = denominator.ToString();
    for (const Whole& whole : numerator)
      answer.push_back(*Rational::Parse(fmt::format("{}/{}", whole.ToString(), below)));
    return answer;
  }

 private:
  // rest = (rest - A digit) / p; value += digit * modulus; modulus *= p.
  void AddDigit() {
    const uint32_t prime = system_.prime_;
    std::vector<uint32_t> digit(rest_.size());
    for (size_t i = 0; i < rest_.size(); ++i)
      digit[i] = static_cast<uint32_t>(mpz_fdiv_ui(rest_[i].get(), prime));
    system_.SolveModular(digit, transposed_);
    Multiply(digit);
    for (Whole& rest : rest_) mpz_divexact_ui(rest.get(), rest.get(), prime);
    for (size_t j = 0; j < digit.size(); ++j)
      mpz_addmul_ui(value_[j].get(), modulus_.get(), digit[j]);
    mpz_mul_ui(modulus_.get(), modulus_.get(), prime);
  }

  void Multiply(const std::vector<uint32_t>& digit) {
    Whole factor;
    for (size_t j = 0; j < digit.size(); ++j) {
      if (!transposed_) mpz_set_ui(factor.get(), digit[j]);
      for (const Entry& entry : system_.columns_[j]) {
        const auto row = static_cast<size_t>(entry.row);
        if (transposed_) mpz_set_ui(factor.get(), digit[row]);
        mpz_ptr rest = rest_[transposed_ ? j : row].get();
        if (entry.value > 0)
          mpz_submul_ui(rest, factor.get(), static_cast<uint64_t>(entry.value));
        else
          mpz_addmul_ui(rest, factor.get(), static_cast<uint64_t>(-entry.value));
      }
    }
  }

  // product = value * factor modulo modulus_, between -modulus_ / 2 and modulus_ / 2.
  bool TimesIsSmall(const Whole& value, const Whole& factor, const Whole& most,
                    Whole& product) const {
    mpz_mul(product.get(), value.get(), factor.get());
    mpz_mod(product.get(), product.get(), modulus_.get());
    Whole twice;
    mpz_mul_2exp(twice.get(), product.get(), 1);
    if (mpz_cmp(twice.get(), modulus_.get()) > 0)
      mpz_sub(product.get(), product.get(), modulus_.get());
    if (mpz_cmpabs(product.get(), most.get()) <= 0) return true;
    mpz_mod(product.get(), product.get(), modulus_.get());
    return false;
  }

  // A numerator = right * common, in whole numbers.
  bool Holds(const std::vector<Whole>& numerator, const Whole& common) const {
    std::vector<Whole> sum(right_.size());
    Whole factor;
    for (size_t j = 0; j < numerator.size(); ++j)
      for (const Entry& entry : system_.columns_[j]) {
        const auto row = static_cast<size_t>(entry.row);
        mpz_set_si(factor.get(), entry.value);
        if (transposed_)
          mpz_addmul(sum[j].get(), factor.get(), numerator[row].get());
        else
          mpz_addmul(sum[row].get(), factor.get(), numerator[j].get());
      }
    for (size_t i = 0; i < sum.size(); ++i) {
      mpz_submul(sum[i].get(), right_[i].get(), common.get());
      if (mpz_sgn(sum[i].get()) != 0) return false;
    }
    return true;
  }

  const ExactSystem& system_;
  const bool transposed_;
  Whole scale_;  // of the right side, to whole numbers
  std::vector<Whole> right_, rest_, value_;
  Whole modulus_;
};

ExactSystem::ExactSystem(std::vector<std::vector<Entry>> columns) : columns_(std::move(columns)) {
  for (const uint32_t prime : kPrimes)
    if (Factor(prime)) {
      regular_ = true;
      return;
    }
}

// Columns with few entries first, each with the row that has fewest: most of a basis is nearly
// triangular, and rows without an entry in the pivot's column are left alone.
bool ExactSystem::Factor(uint32_t prime) {
  const size_t n = columns_.size();
  prime_ = prime;
  lu_.assign(n * n, 0);
  column_order_.resize(n);
  row_order_.resize(n);
  std::iota(column_order_.begin(), column_order_.end(), 0);
  std::iota(row_order_.begin(), row_order_.end(), 0);
  std::vector<size_t> in_row(n, 0);
  for (const auto& column : columns_)
    for (const Entry& entry : column) ++in_row[static_cast<size_t>(entry.row)];
  std::stable_sort(column_order_.begin(), column_order_.end(), [&](int32_t a, int32_t b) {
    return columns_[static_cast<size_t>(a)].size() < columns_[static_cast<size_t>(b)].size();
  });
  for (size_t j = 0; j < n; ++j)
    for (const Entry& entry : columns_[static_cast<size_t>(column_order_[j])])
      At(static_cast<size_t>(entry.row), j) = Modulo(entry.value, prime);
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = n;
    for (size_t i = k; i < n; ++i)
      if (At(i, k) != 0 && (pivot == n || in_row[static_cast<size_t>(row_order_[i])] <
                                              in_row[static_cast<size_t>(row_order_[pivot])]))
        pivot = i;
    if (pivot == n) return false;
    if (pivot != k) {
      std::swap_ranges(&At(k, 0), &At(k, 0) + n, &At(pivot, 0));
      std::swap(row_order_[k], row_order_[pivot]);
    }
    const uint32_t inverse = Inverse(At(k, k), prime);
    for (size_t i = k + 1; i < n; ++i) {
      if (At(i, k) == 0) continue;
      const uint32_t factor = Times(At(i, k), inverse, prime);
      At(i, k) = factor;
      for (size_t j = k + 1; j < n; ++j)
        if (At(k, j) != 0) At(i, j) = Less(At(i, j), factor, At(k, j), prime);
    }
  }
  return true;
}

void ExactSystem::SolveModular(std::vector<uint32_t>& vector, bool transposed) const {
  const size_t n = columns_.size();
  std::vector<uint32_t> x(n);
  const std::vector<int32_t>& from = transposed ? column_order_ : row_order_;
  for (size_t i = 0; i < n; ++i) x[i] = vector[static_cast<size_t>(from[i])];
  if (transposed) {
    // U^T, then L^T: by rows of what is stored.
    for (size_t i = 0; i < n; ++i) {
      if (x[i] == 0) continue;
      x[i] = Times(x[i], Inverse(At(i, i), prime_), prime_);
      for (size_t j = i + 1; j < n; ++j) x[j] = Less(x[j], x[i], At(i, j), prime_);
    }
    for (size_t i = n; i-- > 0;)
      if (x[i] != 0)
        for (size_t j = 0; j < i; ++j) x[j] = Less(x[j], x[i], At(i, j), prime_);
  } else {
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j)
        if (At(i, j) != 0) x[i] = Less(x[i], At(i, j), x[j], prime_);
    for (size_t i = n; i-- > 0;) {
      for (size_t j = i + 1; j < n; ++j)
        if (At(i, j) != 0) x[i] = Less(x[i], At(i, j), x[j], prime_);
      x[i] = Times(x[i], Inverse(At(i, i), prime_), prime_);
    }
  }
  const std::vector<int32_t>& to = transposed ? row_order_ : column_order_;
  for (size_t i = 0; i < n; ++i) vector[static_cast<size_t>(to[i])] = x[i];
}

// Bits of numerators and denominators by Cramer's rule, determinants by Hadamard's bound.
double ExactSystem::BitsAtMost() const {
  double bits = 0;
  for (const auto& column : columns_) {
    double sum = 1;
    for (const Entry& entry : column) {
      const auto value = static_cast<double>(entry.value);
      sum += value * value;
    }
    bits += std::log2(sum) / 2;
  }
  return bits;
}

namespace {

double BitsOf(const std::vector<Rational>& right) {
  double bits = 0;
  for (const Rational& value : right)
    bits = std::max(
        bits, 3.33 * static_cast<double>(value.NumString().size() + value.DenString().size()));
  return bits;
}

}  // namespace

std::optional<std::vector<Rational>> ExactSystem::Solve(const std::vector<Rational>& right) const {
  return Lift(right, false);
}

std::optional<std::vector<Rational>> ExactSystem::SolveTransposed(
    const std::vector<Rational>& right) const {
  return Lift(right, true);
}

std::optional<std::vector<Rational>> ExactSystem::Lift(const std::vector<Rational>& right,
                                                       bool transposed) const {
  TUTTI_CHECK(regular_ && right.size() == columns_.size());
  Lifting lifting(*this, right, transposed);
  // Numerator and denominator, and as much again for the common factors that right sides bring.
  const double enough = 2 * (2 * BitsAtMost() + 2 * BitsOf(right) + 64);
  size_t digits = 4;
  lifting.AddDigits(digits);
  while (static_cast<double>(digits) * kBitsPerDigit <= enough) {
    if (auto answer = lifting.Answer()) return answer;
    const size_t more = digits / 2;
    lifting.AddDigits(more);
    digits += more;
  }
  return lifting.Answer();
}

}  // namespace tutti
