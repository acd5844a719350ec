#include "kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "half.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

// The value of float16 bits, straight from the definition of the format.
double ValueOfHalf(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double fraction = static_cast<double>(bits & 1023u);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

bool IsFiniteHalf(uint32_t bits) { return (bits & 0x7c00u) != 0x7c00u; }

TEST(HalfTest, EveryValueIsExactAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!IsFiniteHalf(bits)) {
      const bool is_nan = (bits & 0x3ffu) != 0;
      ASSERT_EQ(std::isnan(HalfToFloat(half)), is_nan) << bits;
      ASSERT_EQ(std::isinf(HalfToFloat(half)), !is_nan) << bits;
      continue;
    }
    ASSERT_EQ(HalfToFloat(half), ValueOfHalf(bits)) << bits;
    ASSERT_EQ(FloatToHalf(HalfToFloat(half)), half) << bits;
  }
}

TEST(HalfTest, BetweenTwoNeighboursTheNearestWinsAndTiesGoToEven) {
  for (uint32_t bits = 0; bits + 1 < 0x7c00u; ++bits) {
    const double low = ValueOfHalf(bits), high = ValueOfHalf(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one more bit
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(FloatToHalf(middle), even) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), bits + 1) << bits;
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000u) << bits;
  }
}

TEST(HalfTest, LargeValuesBecomeInfinityAndNanStays) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bffu);
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bffu);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00u);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00u);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Bfloat16Test, EveryValueIsExactAndTiesGoToEven) {
  for (uint32_t bits = 0; bits < 0x7f80u; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    ASSERT_EQ(FloatToBfloat16(Bfloat16ToFloat(low)), low);
    const auto middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    ASSERT_EQ(FloatToBfloat16(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(FloatToBfloat16(std::nextafter(middle, 0.0f)), bits) << bits;
  }
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(std::nanf("")))));
}

// One element at a time, without the kernels' loops.
template <class T>
T Naive(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kProd:
      return static_cast<T>(a * b);
    case ReduceOp::kMin:
      return a < b ? a : b;
    case ReduceOp::kMax:
      return a > b ? a : b;
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
void ExpectKernelsAgree(DataType type, T (*draw)(Random&), T (*reduce)(ReduceOp, T, T)) {
  Random random(7);
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg})
    for (size_t count : {0u, 1u, 7u, 64u, 1001u}) {
      std::vector<T> a(count), b(count), out(count), expected(count);
      for (size_t i = 0; i < count; ++i) {
        a[i] = draw(random);
        b[i] = draw(random);
        expected[i] = reduce(op, a[i], b[i]);
      }
      const ReduceKernel kernel = FindReduceKernel(type, op);
      kernel(out.data(), a.data(), b.data(), static_cast<int64_t>(count));
      EXPECT_EQ(out, expected) << Name(type) << " " << Name(op) << " " << count;
      kernel(a.data(), a.data(), b.data(), static_cast<int64_t>(count));
      EXPECT_EQ(a, expected) << Name(type) << " over its own operand";
    }
}

TEST(KernelTest, AgreesWithOneElementAtATime) {
  ExpectKernelsAgree<float>(
      DataType::kFloat32, [](Random& r) { return static_cast<float>(r.Below(1000)) / 7; },
      Naive<float>);
  ExpectKernelsAgree<double>(
      DataType::kFloat64, [](Random& r) { return static_cast<double>(r.Below(1000)) / 7; },
      Naive<double>);
  ExpectKernelsAgree<int32_t>(
      DataType::kInt32, [](Random& r) { return static_cast<int32_t>(r.Below(40000)) - 20000; },
      Naive<int32_t>);
  ExpectKernelsAgree<int64_t>(
      DataType::kInt64, [](Random& r) { return static_cast<int64_t>(r.Below(40000)) - 20000; },
      Naive<int64_t>);
  ExpectKernelsAgree<uint8_t>(
      DataType::kUint8, [](Random& r) { return static_cast<uint8_t>(r.Below(256)); },
      Naive<uint8_t>);
  ExpectKernelsAgree<uint16_t>(
      DataType::kFloat16,
      [](Random& r) { return FloatToHalf(static_cast<float>(r.Below(99)) / 7); },
      [](ReduceOp op, uint16_t a, uint16_t b) {
        return FloatToHalf(Naive(op, HalfToFloat(a), HalfToFloat(b)));
      });
  ExpectKernelsAgree<uint16_t>(
      DataType::kBfloat16,
      [](Random& r) { return FloatToBfloat16(static_cast<float>(r.Below(99)) / 7); },
      [](ReduceOp op, uint16_t a, uint16_t b) {
        return FloatToBfloat16(Naive(op, Bfloat16ToFloat(a), Bfloat16ToFloat(b)));
      });
}

TEST(KernelTest, IntegersWrap) {
  int32_t a = std::numeric_limits<int32_t>::max();
  const int32_t one = 1;
  FindReduceKernel(DataType::kInt32, ReduceOp::kSum)(&a, &a, &one, 1);
  EXPECT_EQ(a, std::numeric_limits<int32_t>::min());
}

TEST(KernelTest, DividesTowardsZero) {
  int32_t ints[] = {7, -7, 8};
  FindDivideKernel(DataType::kInt32)(ints, 3, 4);
  EXPECT_EQ(ints[0], 1);
  EXPECT_EQ(ints[1], -1);
  EXPECT_EQ(ints[2], 2);
  float floats[] = {7, -7, 8};
  FindDivideKernel(DataType::kFloat32)(floats, 3, 3);
  EXPECT_EQ(floats[0], 7.0f / 3.0f);
  uint8_t bytes[] = {255};
  FindDivideKernel(DataType::kUint8)(bytes, 1, 300);
  EXPECT_EQ(bytes[0], 0);
}

TEST(DataTypeTest, NamesComeBack) {
  for (int t = 0; t < 7; ++t) {
    const auto type = static_cast<DataType>(t);
    EXPECT_EQ(ParseDataType(Name(type)).value(), type);
  }
  for (int o = 0; o < 5; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    EXPECT_EQ(ParseReduceOp(Name(op)).value(), op);
  }
  EXPECT_EQ(ParseDataType("float16").value(), DataType::kFloat16);
  EXPECT_NE(ParseDataType("fp8").error().message.find("accepted are float, double, half"),
            std::string::npos);
  EXPECT_NE(ParseReduceOp("xor").error().message.find("sum, prod, min, max, avg"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
