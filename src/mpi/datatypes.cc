#include "datatypes.h"

#include <climits>
#include <vector>

#include "copy.h"
#include "message.h"

namespace tutti::mpi {
namespace {

// The datatypes in a decoded envelope are references of ours unless predefined.
void FreeUnlessNamed(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return;
  if (combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&type);
}

// Whether the type map is one run of bytes in ascending order from 0. True only where it certainly
// is: a size equal to the extent says nothing about the order.
int IsOneRun(MPI_Datatype type, bool* one_run) {
  *one_run = false;
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  if (const int error = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner)) {
    return error;
  }
  if (combiner == MPI_COMBINER_NAMED) {
    *one_run =
        true;  // pairs such as MPI_DOUBLE_INT have holes: the caller compares size and extent
    return MPI_SUCCESS;
  }
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP &&
      combiner != MPI_COMBINER_VECTOR) {
    return MPI_SUCCESS;
  }
  int counts[3] = {0, 0, 0};
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if (const int error =
          PMPI_Type_get_contents(type, integers, addresses, types, counts, nullptr, &inner)) {
    return error;
  }
  TypeShape shape;
  int error = ShapeOf(inner, &shape);
  if (error == MPI_SUCCESS) {
    const bool gapless =
        combiner != MPI_COMBINER_VECTOR || counts[0] <= 1 || counts[1] == counts[2];
    *one_run = shape.plain && gapless;
  }
  FreeUnlessNamed(inner);
  return error;
}

int ToItself(const void* from, int from_count, MPI_Datatype from_type, void* into, int into_count,
             MPI_Datatype into_type, MPI_Comm communicator, int rank) {
  return PMPI_Sendrecv(from, from_count, from_type, rank, static_cast<int>(Tag::kPack), into,
                       into_count, into_type, rank, static_cast<int>(Tag::kPack), communicator,
                       MPI_STATUS_IGNORE);
}

}  // namespace

int ShapeOf(MPI_Datatype type, TypeShape* shape) {
  MPI_Aint lower_bound = 0;
  MPI_Aint extent = 0;
  if (const int error = PMPI_Type_get_extent(type, &lower_bound, &extent)) return error;
#ifdef TUTTI_MPI_SMPI
  int size = 0;
  if (const int error = PMPI_Type_size(type, &size)) return error;
#else
  MPI_Count size = 0;
  if (const int error = PMPI_Type_size_x(type, &size)) return error;
#endif
  shape->size = size;
  shape->extent = extent;
  shape->plain = false;
  if (lower_bound != 0 || shape->size != shape->extent) return MPI_SUCCESS;
  return IsOneRun(type, &shape->plain);
}

int PackBlock(const std::byte* from, int elements, MPI_Datatype type, int64_t bytes,
              std::byte* packed, MPI_Comm communicator, int rank) {
  if (bytes == 0) return MPI_SUCCESS;
  CountCopy(bytes);
  if (bytes <= INT_MAX) {
    int position = 0;
    return PMPI_Pack(from, elements, type, packed, static_cast<int>(bytes), &position,
                     communicator);
  }
  MPI_Datatype pieces = MPI_DATATYPE_NULL;
  if (const int error = MakePiecesType(bytes, kLargestPiece, &pieces)) return error;
  const int error = ToItself(from, elements, type, packed, 1, pieces, communicator, rank);
  PMPI_Type_free(&pieces);
  return error;
}

int UnpackBlock(const std::byte* packed, int64_t bytes, std::byte* into, int elements,
                MPI_Datatype type, MPI_Comm communicator, int rank) {
  if (bytes == 0) return MPI_SUCCESS;
  CountCopy(bytes);
  if (bytes <= INT_MAX) {
    int position = 0;
    return PMPI_Unpack(packed, static_cast<int>(bytes), &position, into, elements, type,
                       communicator);
  }
  MPI_Datatype pieces = MPI_DATATYPE_NULL;
  if (const int error = MakePiecesType(bytes, kLargestPiece, &pieces)) return error;
  const int error = ToItself(packed, 1, pieces, into, elements, type, communicator, rank);
  PMPI_Type_free(&pieces);
  return error;
}

}  // namespace tutti::mpi
