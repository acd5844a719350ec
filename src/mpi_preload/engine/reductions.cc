#include "engine/reductions.h"

#include <array>
#include <cstddef>

#include "engine/handles.h"
#include "interface.h"

namespace tutti::mpi::preload {
namespace {

enum class Kind : uint8_t { kOther, kInteger, kFortranInteger, kByte, kFloat, kIntegerPair };

struct NamedType {
  Handle handle = 0;
  int size = 0;  // 0: the row is empty
  Kind kind = Kind::kOther;
};

// Open addressing, at most half full.
constexpr size_t kTableBits = 7;
std::array<NamedType, size_t{1} << kTableBits> table;

size_t RowOf(Handle handle) {
  return static_cast<size_t>((static_cast<uint64_t>(handle) * 0x9e3779b97f4a7c15U) >>
                             (64 - kTableBits));
}

const NamedType& Find(MPI_Datatype type) {
  const Handle handle = ToHandle(type);
  size_t at = RowOf(handle);
  while (table[at].size != 0 && table[at].handle != handle) at = (at + 1) % table.size();
  return table[at];
}

void Add(MPI_Datatype type, Kind kind) {
  if (type == MPI_DATATYPE_NULL || Find(type).size != 0) return;
  int size = 0;
  MPI_Aint lower = 0, extent = 0;
  if (PMPI_Type_size(type, &size) != MPI_SUCCESS || size <= 0) return;
  if (PMPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || lower != 0 || extent != size)
    return;
  size_t at = RowOf(ToHandle(type));
  while (table[at].size != 0) at = (at + 1) % table.size();
  table[at] = {ToHandle(type), size, kind};
}

bool IsOneOf(MPI_Op op, std::initializer_list<MPI_Op> ops) {
  for (const MPI_Op each : ops) {
    if (op == each) return true;
  }
  return false;
}

}  // namespace

void MakeTypeTable() {
  for (const MPI_Datatype type :
       {MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED,
        MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
        MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T}) {
    Add(type, Kind::kInteger);
  }
  Add(MPI_INTEGER, Kind::kFortranInteger);
  Add(MPI_BYTE, Kind::kByte);
  for (const MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION}) {
    Add(type, Kind::kFloat);
  }
  Add(MPI_2INT, Kind::kIntegerPair);
  for (const MPI_Datatype type : {MPI_CHAR, MPI_WCHAR, MPI_C_BOOL, MPI_AINT, MPI_OFFSET, MPI_COUNT,
                                  MPI_LONG_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                                  MPI_CHARACTER, MPI_LOGICAL, MPI_COMPLEX, MPI_DOUBLE_COMPLEX}) {
    Add(type, Kind::kOther);
  }
}

int64_t NamedTypeSize(MPI_Datatype type) { return Find(type).size; }

OrderOf OrderOfReduction(MPI_Datatype type, MPI_Op op) {
  const bool adds = op == MPI_SUM || op == MPI_PROD;
  const bool compares = op == MPI_MIN || op == MPI_MAX;
  const bool by_bits = IsOneOf(op, {MPI_BAND, MPI_BOR, MPI_BXOR});
  const bool logical = IsOneOf(op, {MPI_LAND, MPI_LOR, MPI_LXOR});
  const bool locates = op == MPI_MINLOC || op == MPI_MAXLOC;
  const NamedType& named = Find(type);
  switch (named.kind) {
    case Kind::kInteger:
      // Open MPI 4 adds vectors of 8 and 16 bits with saturation and what is left over without: of
      // sums that overflow the answer depends on where a message was cut.
      if (op == MPI_SUM && named.size < 4) return OrderOf::kUnknown;
      return adds || compares || by_bits || logical ? OrderOf::kNever : OrderOf::kUnknown;
    case Kind::kFortranInteger:
      return adds || compares || by_bits ? OrderOf::kNever : OrderOf::kUnknown;
    case Kind::kByte:
      return by_bits ? OrderOf::kNever : OrderOf::kUnknown;
    case Kind::kIntegerPair:
      return locates ? OrderOf::kNever : OrderOf::kUnknown;
    case Kind::kFloat:
      // Which of two zeros, or of two that are no numbers, is the lesser depends on the order.
      if (compares) return OrderOf::kMatters;
      return adds ? OrderOf::kCommutes : OrderOf::kUnknown;
    case Kind::kOther:
      break;
  }
  return OrderOf::kUnknown;
}

}  // namespace tutti::mpi::preload
