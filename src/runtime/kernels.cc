#include "kernels.h"

#include <type_traits>

#include "half.h"

// The same loops a second time for processors with AVX2: callees are always_inline, so that they
// take over the target of the loop they stand in.
#if defined(__x86_64__) && defined(__GNUC__)
#define TUTTI_HAVE_V3 1
#define TUTTI_V3 __attribute__((target("avx2,bmi2")))
#endif

// dst may be a or b itself: no iteration reads what another writes, whatever the pointers say.
#if defined(__clang__)
#define TUTTI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TUTTI_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TUTTI_INDEPENDENT
#endif

namespace tutti {
namespace {

// How an element is stored, and the type it is computed in.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static TUTTI_INLINE Value Load(Stored stored) { return stored; }
  static TUTTI_INLINE Stored Store(Value value) { return value; }
};
struct Half {
  using Stored = uint16_t;
  using Value = float;
  static TUTTI_INLINE Value Load(Stored stored) { return HalfToFloat(stored); }
  static TUTTI_INLINE Stored Store(Value value) { return FloatToHalf(value); }
};
struct Bfloat {
  using Stored = uint16_t;
  using Value = float;
  static TUTTI_INLINE Value Load(Stored stored) { return Bfloat16ToFloat(stored); }
  static TUTTI_INLINE Stored Store(Value value) { return FloatToBfloat16(value); }
};

// Signed integers wrap, which unsigned arithmetic does without undefined behaviour.
struct Sum {
  template <class T>
  static TUTTI_INLINE T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
struct Prod {
  template <class T>
  static TUTTI_INLINE T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)));
    } else {
      return a * b;
    }
  }
};
struct Min {
  template <class T>
  static TUTTI_INLINE T Apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static TUTTI_INLINE T Apply(T a, T b) {
    return a < b ? b : a;
  }
};

template <class Format, class Op>
TUTTI_INLINE void ReduceLoop(void* dst, const void* a, const void* b, int64_t count) {
  using Stored = typename Format::Stored;
  auto* out = static_cast<Stored*>(dst);
  const auto* left = static_cast<const Stored*>(a);
  const auto* right = static_cast<const Stored*>(b);
  TUTTI_INDEPENDENT
  for (int64_t i = 0; i < count; ++i)
    out[i] = Format::Store(Op::Apply(Format::Load(left[i]), Format::Load(right[i])));
}

template <class Format>
TUTTI_INLINE void DivideLoop(void* data, int64_t count, int64_t divisor) {
  using Stored = typename Format::Stored;
  using Value = typename Format::Value;
  auto* out = static_cast<Stored*>(data);
  if constexpr (std::is_integral_v<Value>) {
    // The quotient never exceeds the dividend, so that it fits.
    using Wide = std::conditional_t<std::is_signed_v<Value>, int64_t, uint64_t>;
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Value>(static_cast<Wide>(out[i]) / static_cast<Wide>(divisor));
  } else {
    const auto by = static_cast<Value>(divisor);
    for (int64_t i = 0; i < count; ++i) out[i] = Format::Store(Format::Load(out[i]) / by);
  }
}

template <class Format, class Op>
void ReduceBaseline(void* dst, const void* a, const void* b, int64_t count) {
  ReduceLoop<Format, Op>(dst, a, b, count);
}
template <class Format>
void DivideBaseline(void* data, int64_t count, int64_t divisor) {
  DivideLoop<Format>(data, count, divisor);
}

#if defined(TUTTI_HAVE_V3)
template <class Format, class Op>
TUTTI_V3 void ReduceV3(void* dst, const void* a, const void* b, int64_t count) {
  ReduceLoop<Format, Op>(dst, a, b, count);
}
template <class Format>
TUTTI_V3 void DivideV3(void* data, int64_t count, int64_t divisor) {
  DivideLoop<Format>(data, count, divisor);
}

bool HaveV3() {
  static const bool have =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return have;
}
#endif

template <class Format, class Op>
ReduceKernel Choose() {
#if defined(TUTTI_HAVE_V3)
  if (HaveV3()) return ReduceV3<Format, Op>;
#endif
  return ReduceBaseline<Format, Op>;
}

template <class Format>
ReduceKernel ChooseOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProd:
      return Choose<Format, Prod>();
    case ReduceOp::kMin:
      return Choose<Format, Min>();
    case ReduceOp::kMax:
      return Choose<Format, Max>();
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      break;
  }
  return Choose<Format, Sum>();
}

template <class Format>
DivideKernel ChooseDivide() {
#if defined(TUTTI_HAVE_V3)
  if (HaveV3()) return DivideV3<Format>;
#endif
  return DivideBaseline<Format>;
}

}  // namespace

ReduceKernel FindReduceKernel(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat64:
      return ChooseOp<Plain<double>>(op);
    case DataType::kFloat16:
      return ChooseOp<Half>(op);
    case DataType::kBfloat16:
      return ChooseOp<Bfloat>(op);
    case DataType::kInt32:
      return ChooseOp<Plain<int32_t>>(op);
    case DataType::kInt64:
      return ChooseOp<Plain<int64_t>>(op);
    case DataType::kUint8:
      return ChooseOp<Plain<uint8_t>>(op);
    case DataType::kInt8:
      return ChooseOp<Plain<int8_t>>(op);
    case DataType::kUint32:
      return ChooseOp<Plain<uint32_t>>(op);
    case DataType::kUint64:
      return ChooseOp<Plain<uint64_t>>(op);
    case DataType::kFloat32:
      break;
  }
  return ChooseOp<Plain<float>>(op);
}

DivideKernel FindDivideKernel(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return ChooseDivide<Plain<double>>();
    case DataType::kFloat16:
      return ChooseDivide<Half>();
    case DataType::kBfloat16:
      return ChooseDivide<Bfloat>();
    case DataType::kInt32:
      return ChooseDivide<Plain<int32_t>>();
    case DataType::kInt64:
      return ChooseDivide<Plain<int64_t>>();
    case DataType::kUint8:
      return ChooseDivide<Plain<uint8_t>>();
    case DataType::kInt8:
      return ChooseDivide<Plain<int8_t>>();
    case DataType::kUint32:
      return ChooseDivide<Plain<uint32_t>>();
    case DataType::kUint64:
      return ChooseDivide<Plain<uint64_t>>();
    case DataType::kFloat32:
      break;
  }
  return ChooseDivide<Plain<float>>();
}

}  // namespace tutti
