#include <fmt/format.h>

#include <array>
#include <string>

#include "tutti/runtime/executor.h"

namespace tutti {
namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  int32_t size;
  std::string_view alias;  // accepted, never printed
};
constexpr std::array<TypeRow, 10> kTypes{{
    {DataType::kFloat32, "float", 4, "float32"},
    {DataType::kFloat64, "double", 8, "float64"},
    {DataType::kFloat16, "half", 2, "float16"},
    {DataType::kBfloat16, "bfloat16", 2, "bf16"},
    {DataType::kInt32, "int32", 4, "int"},
    {DataType::kInt64, "int64", 8, "int64"},
    {DataType::kUint8, "uint8", 1, "uint8"},
    {DataType::kInt8, "int8", 1, "char"},
    {DataType::kUint32, "uint32", 4, "uint32"},
    {DataType::kUint64, "uint64", 8, "uint64"},
}};

struct OpRow {
  ReduceOp op;
  std::string_view name;
};
constexpr std::array<OpRow, 5> kOps{{{ReduceOp::kSum, "sum"},
                                     {ReduceOp::kProd, "prod"},
                                     {ReduceOp::kMin, "min"},
                                     {ReduceOp::kMax, "max"},
                                     {ReduceOp::kAvg, "avg"}}};

const TypeRow& RowOf(DataType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

std::string_view Name(DataType type) { return RowOf(type).name; }
std::string_view Name(ReduceOp op) { return kOps[static_cast<size_t>(op)].name; }
int32_t SizeOf(DataType type) { return RowOf(type).size; }

Result<DataType> ParseDataType(std::string_view name) {
  std::string accepted;
  for (const TypeRow& row : kTypes) {
    if (name == row.name || name == row.alias) return row.type;
    accepted += accepted.empty() ? "" : ", ";
    accepted += row.name;
  }
  return InvalidArgument(fmt::format("unknown data type '{}'; accepted are {}", name, accepted));
}

Result<ReduceOp> ParseReduceOp(std::string_view name) {
  std::string accepted;
  for (const OpRow& row : kOps) {
    if (name == row.name) return row.op;
    accepted += accepted.empty() ? "" : ", ";
    accepted += row.name;
  }
  return InvalidArgument(fmt::format("unknown reduction '{}'; accepted are {}", name, accepted));
}

std::string_view Name(Transport transport) {
  switch (transport) {
    case Transport::kTcp:
      return "tcp";
    case Transport::kMpi:
      return "mpi";
    case Transport::kShared:
      break;
  }
  return "shared";
}

Result<Transport> ParseTransport(std::string_view name) {
  for (const Transport transport : {Transport::kShared, Transport::kTcp, Transport::kMpi})
    if (Name(transport) == name) return transport;
  if (name == "shm") return Transport::kShared;  // as MPI and NCCL call it
  return InvalidArgument(
      fmt::format("unknown transport '{}'; accepted are shared (or shm), tcp and mpi", name));
}

}  // namespace tutti
