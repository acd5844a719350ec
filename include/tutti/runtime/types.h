// Element types and reductions of collectives, by the names of nccl-tests.
#pragma once

#include <cstdint>
#include <string_view>

#include "tutti/base/result.h"

namespace tutti {

enum class DataType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBfloat16,
  kInt32,
  kInt64,
  kUint8,
  kInt8,
  kUint32,
  kUint64
};
inline constexpr DataType kLastDataType = DataType::kUint64;
enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax, kAvg };

std::string_view Name(DataType type);  // as nccl-tests: "float", "double", "half", "bfloat16", ...
std::string_view Name(ReduceOp op);
int32_t SizeOf(DataType type);
Result<DataType> ParseDataType(std::string_view name);
Result<ReduceOp> ParseReduceOp(std::string_view name);

}  // namespace tutti
