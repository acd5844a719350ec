// Reduction kernels: two arrays into one, for every data type and operation.
//
// Semantics   Integers wrap; float16 and bfloat16 are computed in float and rounded to nearest
//             even after each operation; kAvg reduces as kSum and divides once at the end, integers
//             towards zero as NCCL does.
// Complexity  One pass, memory-bound: compiled for the baseline and for x86-64-v3, chosen once.
// Threads     Pure functions.
#pragma once

#include <cstdint>

#include "tutti/runtime/executor.h"

namespace tutti {

// dst[i] = a[i] op b[i] for i in [0, count). dst may be a or b; otherwise they are disjoint.
using ReduceKernel = void (*)(void* dst, const void* a, const void* b, int64_t count);
ReduceKernel FindReduceKernel(DataType type, ReduceOp op);

// data[i] = data[i] / divisor, divisor >= 1.
using DivideKernel = void (*)(void* data, int64_t count, int64_t divisor);
DivideKernel FindDivideKernel(DataType type);

}  // namespace tutti
