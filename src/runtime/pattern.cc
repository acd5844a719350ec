#include "pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "half.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

template <class T>
void Put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

bool IsFloat(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64 || type == DataType::kFloat16 ||
         type == DataType::kBfloat16;
}

// `value` is exact in the type, or a quotient that the type rounds once.
void PutFloat(DataType type, double value, std::byte* at) {
  switch (type) {
    case DataType::kFloat64:
      return Put(at, value);
    case DataType::kFloat16:
      return Put(at, FloatToHalf(static_cast<float>(value)));
    case DataType::kBfloat16:
      return Put(at, FloatToBfloat16(static_cast<float>(value)));
    default:
      return Put(at, static_cast<float>(value));
  }
}

double GetFloat(DataType type, const std::byte* at) {
  const auto get = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (type) {
    case DataType::kFloat64:
      return get(double{});
    case DataType::kFloat16:
      return HalfToFloat(get(uint16_t{}));
    case DataType::kBfloat16:
      return Bfloat16ToFloat(get(uint16_t{}));
    default:
      return get(float{});
  }
}

// What a result of rounding may be wrong by, of its size.
double LastPlaceOf(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return 0x1p-52;
    case DataType::kFloat16:
      return 0x1p-10;
    case DataType::kBfloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

void PutInteger(DataType type, int64_t value, std::byte* at) {
  switch (type) {
    case DataType::kInt32:
    case DataType::kUint32:
      return Put(at, static_cast<uint32_t>(value));
    case DataType::kInt8:
    case DataType::kUint8:
      return Put(at, static_cast<uint8_t>(value));
    default:
      return Put(at, value);
  }
}

bool IsSigned(DataType type) {
  return type != DataType::kUint8 && type != DataType::kUint32 && type != DataType::kUint64;
}

// What a sum of the type is, which only bytes are too narrow for.
int64_t Wrapped(DataType type, int64_t value) {
  if (type == DataType::kUint8) return static_cast<uint8_t>(value);
  if (type == DataType::kInt8) return static_cast<int8_t>(value);
  return value;
}

int64_t Contributed(DataType type, ReduceOp op, int32_t rank, int32_t num_ranks, int64_t entry,
                    Random& random) {
  const bool is_signed = IsSigned(type);
  const auto draw = [&random, is_signed](int64_t most) {
    const auto value = static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * most + 1)));
    return is_signed ? value - most : value;
  };
  switch (op) {
    case ReduceOp::kProd: {
      const int64_t factor = (rank + entry) % num_ranks < 6 ? 2 : 1;
      return is_signed && random.Below(2) == 1 ? -factor : factor;
    }
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return draw(120);
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      break;
  }
  return rank < 256 ? draw(std::clamp<int64_t>(256 / num_ranks, 1, 15)) : 0;
}

template <class Number>
Number Combine(ReduceOp op, Number a, Number b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      break;
  }
  return a + b;
}

// The reductions that a rank contributes to: of its groups, or the one of all.
std::vector<size_t> ReductionsOf(std::span<const Collective::Group> groups, int32_t rank) {
  if (groups.empty()) return {0};
  std::vector<size_t> found;
  for (size_t g = 0; g < groups.size(); ++g)
    if (std::ranges::binary_search(groups[g].sorted, NodeId{rank})) found.push_back(g);
  return found;
}

}  // namespace

Pattern::Pattern(DataType type, ReduceOp op, bool reduces, int32_t num_ranks,
                 std::span<const Collective::Group> groups, Values values)
    : type_(type), element_bytes_(SizeOf(type)) {
  const auto table_bytes = static_cast<size_t>(kPeriod * element_bytes_);
  tables_.resize(table_bytes * static_cast<size_t>(num_ranks));
  if (reduces && values == Values::kRough && IsFloat(type)) {
    MakeRough(op, num_ranks, groups);
    return;
  }
  constexpr auto kEntries = static_cast<size_t>(kPeriod);
  const size_t reductions = reduces ? std::max<size_t>(1, groups.size()) : 0;
  std::vector<int64_t> result(reductions * kEntries);
  std::vector<bool> begun(reductions, false);
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    Random random(static_cast<uint64_t>(rank) + 1);
    std::byte* table = tables_.data() + table_bytes * static_cast<size_t>(rank);
    const std::vector<size_t> into = reduces ? ReductionsOf(groups, rank) : std::vector<size_t>();
    for (size_t i = 0; i < static_cast<size_t>(kPeriod); ++i) {
      std::byte* at = table + i * static_cast<size_t>(element_bytes_);
      if (!reduces) {
        const uint64_t bits = random.Next();
        std::memcpy(at, &bits, static_cast<size_t>(element_bytes_));
        continue;
      }
      const int64_t value = Contributed(type, op, rank, num_ranks, static_cast<int64_t>(i), random);
      IsFloat(type) ? PutFloat(type, static_cast<double>(value), at) : PutInteger(type, value, at);
      for (const size_t g : into) {
        int64_t& so_far = result[g * kEntries + i];
        so_far = begun[g] ? Combine(op, so_far, value) : value;
      }
    }
    for (const size_t g : into) begun[g] = true;
  }
  if (!reduces) return;
  reduction_.resize(table_bytes * reductions);
  for (size_t i = 0; i < result.size(); ++i) {
    std::byte* at = reduction_.data() + i * static_cast<size_t>(element_bytes_);
    int64_t value = Wrapped(type, result[i]);
    if (IsFloat(type)) {
      const auto exact = static_cast<double>(value);
      PutFloat(type, op == ReduceOp::kAvg ? exact / num_ranks : exact, at);
    } else {
      if (op == ReduceOp::kAvg) value /= num_ranks;
      PutInteger(type, value, at);
    }
  }
}

void Pattern::MakeRough(ReduceOp op, int32_t num_ranks, std::span<const Collective::Group> groups) {
  constexpr double kOne = 0x1p53;
  constexpr auto kEntries = static_cast<size_t>(kPeriod);
  const size_t reductions = std::max<size_t>(1, groups.size());
  std::vector<double> result(reductions * kEntries), sizes(result.size());
  std::vector<bool> begun(reductions, false);
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    Random random(static_cast<uint64_t>(rank) + 1);
    const std::vector<size_t> into = ReductionsOf(groups, rank);
    std::byte* at = tables_.data() + rank * kPeriod * element_bytes_;
    for (size_t i = 0; i < kEntries; ++i, at += element_bytes_) {
      const double drawn = static_cast<double>(random.Next() >> 11) / kOne * 2 - 1;
      // Factors near 1, whose product stays so.
      PutFloat(type_, op == ReduceOp::kProd ? 1 + drawn / num_ranks : drawn, at);
      const double value = GetFloat(type_, at);
      for (const size_t g : into) {
        sizes[g * kEntries + i] += std::abs(value);
        double& so_far = result[g * kEntries + i];
        so_far = begun[g] ? Combine(op, so_far, value) : value;
      }
    }
    for (const size_t g : into) begun[g] = true;
  }
  reduction_.resize(result.size() * static_cast<size_t>(element_bytes_));
  tolerance_.resize(result.size());
  const double parts = op == ReduceOp::kAvg ? num_ranks : 1;
  const bool rounds = op != ReduceOp::kMin && op != ReduceOp::kMax;
  for (size_t i = 0; i < result.size(); ++i) {
    PutFloat(type_, result[i] / parts,
             reduction_.data() + static_cast<int64_t>(i) * element_bytes_);
    tolerance_[i] = rounds ? LastPlaceOf(type_) * num_ranks * sizes[i] / parts : 0;
  }
}

bool Pattern::IsFar(const std::byte* at, const std::byte* wanted) const {
  const auto entry = static_cast<size_t>((wanted - reduction_.data()) / element_bytes_);
  // Also what is no number.
  return !(std::abs(GetFloat(type_, at) - GetFloat(type_, wanted)) <= tolerance_[entry]);
}

template <class Visit>
void Pattern::ForEachRun(int64_t first, int64_t count, Visit visit) const {
  for (int64_t done = 0; done < count;) {
    const int64_t position = first + done;
    const int64_t entry = (position + position / kPeriod) % kPeriod;
    const int64_t run = std::min({kPeriod - entry, kPeriod - position % kPeriod, count - done});
    visit(done * element_bytes_, entry * element_bytes_, static_cast<size_t>(run * element_bytes_));
    done += run;
  }
}

void Pattern::Fill(void* data, const std::byte* table, int64_t first, int64_t count) const {
  auto* bytes = static_cast<std::byte*>(data);
  ForEachRun(first, count, [&](int64_t at, int64_t entry, size_t run) {
    std::memcpy(bytes + at, table + entry, run);
  });
}

void Pattern::FillInverted(void* data, const std::byte* table, int64_t first, int64_t count) const {
  auto* bytes = static_cast<std::byte*>(data);
  ForEachRun(first, count, [&](int64_t at, int64_t entry, size_t run) {
    std::transform(table + entry, table + entry + run, bytes + at,
                   [](std::byte byte) { return ~byte; });
  });
}

int64_t Pattern::Differing(const void* data, const std::byte* table, int64_t first,
                           int64_t count) const {
  const auto* bytes = static_cast<const std::byte*>(data);
  const auto size = static_cast<size_t>(element_bytes_);
  const std::less<const std::byte*> before;
  const bool is_rough = !tolerance_.empty() && !before(table, reduction_.data()) &&
                        before(table, reduction_.data() + reduction_.size());
  int64_t differing = 0;
  ForEachRun(first, count, [&](int64_t at, int64_t entry, size_t run) {
    if (std::memcmp(bytes + at, table + entry, run) == 0) return;
    for (size_t i = 0; i < run; i += size) {
      const bool same = is_rough ? !IsFar(bytes + at + i, table + entry + i)
                                 : std::memcmp(bytes + at + i, table + entry + i, size) == 0;
      differing += same ? 0 : 1;
    }
  });
  return differing;
}

}  // namespace tutti
