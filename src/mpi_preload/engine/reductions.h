// What is known of the MPI standard's own datatypes and operations without asking the MPI library.
//
// Complexity  A look-up in a small table, some nanoseconds.
// Threads     Any, after MakeTypeTable.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace tutti::mpi::preload {

// Whether a reduction gives the same bits in any order.
enum class OrderOf {
  kUnknown,   // an operation of the program, a type of its own, complex numbers, ...
  kMatters,   // sums of more than two floating-point numbers
  kCommutes,  // does not matter where there are two operands
  kNever      // integers: in no order
};

// After MPI_Init; once.
void MakeTypeTable();

// Bytes of an element of a datatype of the standard whose elements lie without holes; 0 of others.
int64_t NamedTypeSize(MPI_Datatype type);

OrderOf OrderOfReduction(MPI_Datatype type, MPI_Op op);

}  // namespace tutti::mpi::preload
