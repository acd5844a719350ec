#include "types.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace tutti::mpi::differential {
namespace {

// Larger spans are not drawn; the map of touched bytes stays small.
constexpr int64_t kMaxSpan = int64_t{1} << 23;

Type Named(MPI_Datatype handle, int64_t extent, std::vector<Piece> pieces, const char* text) {
  Type type;
  type.handle = handle;
  type.extent = extent;
  type.pieces = std::move(pieces);
  type.text = text;
  return type;
}

// Takes a type that was just made; not committed.
Type Made(MPI_Datatype handle, std::vector<Piece> pieces, std::string text) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(handle, &lower, &extent);
  Type type;
  type.handle = handle;
  type.owned = true;
  type.extent = extent;
  type.pieces = std::move(pieces);
  type.text = std::move(text);
  return type;
}

// A char and a double, in this order of the type map, wherever they lie.
Type Record(Random& random, bool as_declared) {
  constexpr MPI_Aint kPlaces[][2] = {{0, 8}, {0, 1}, {8, 0}, {-4, 4}, {-9, -8}};
  const auto& places = kPlaces[as_declared ? 0 : random.Below(std::size(kPlaces))];
  const int lengths[] = {1, 1};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE};
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  PMPI_Type_create_struct(2, lengths, places, types, &handle);
  return Made(handle, {{places[0], 1}, {places[1], 8}},
              "record(" + std::to_string(places[0]) + "," + std::to_string(places[1]) + ")");
}

Type MakeBase(Random& random, int base, bool as_declared) {
  switch (base) {
    case kPlainBase:
      return Named(MPI_BYTE, 1, {{0, 1}}, "byte");
    case 1:
      return Named(MPI_SHORT, 2, {{0, 2}}, "short");
    case 2:
      return Named(MPI_INT, 4, {{0, 4}}, "int");
    case 3:
      return Named(MPI_DOUBLE, 8, {{0, 8}}, "double");
    case 4:
      return Named(MPI_DOUBLE_INT, 16, {{0, 8}, {8, 4}}, "double_int");
    default:
      return Record(random, as_declared);
  }
}

std::vector<Piece> Copies(const Type& inner, const std::vector<int64_t>& offsets) {
  std::vector<Piece> pieces;
  for (const int64_t offset : offsets) {
    for (const Piece& piece : inner.pieces) pieces.push_back({offset + piece.offset, piece.bytes});
  }
  return pieces;
}

std::string Text(const char* name, const Type& inner, const std::vector<int64_t>& numbers) {
  std::string text = name;
  text += '(';
  for (const int64_t number : numbers) text.append(std::to_string(number)).append(1, ',');
  return text + inner.text + ")";
}

Type Contiguous(const Type& inner, int copies) {
  std::vector<int64_t> offsets;
  for (int i = 0; i < copies; ++i) offsets.push_back(i * inner.extent);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(copies, inner.handle, &handle);
  return Made(handle, Copies(inner, offsets), Text("contiguous", inner, {copies}));
}

Type Vector(Random& random, const Type& inner, int copies) {
  std::vector<int> lengths;
  for (int length = 1; length <= copies; ++length) {
    if (copies % length == 0) lengths.push_back(length);
  }
  const int length = random.Of(lengths);
  const int blocks = copies / length;
  std::vector<int64_t> offsets;
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  const bool in_bytes = random.OneIn(2);
  const int64_t span = std::max<int64_t>(inner.high() - inner.low(), 1);
  const int64_t stride = in_bytes ? random.Between(-3 * span * length, 3 * span * length)
                                  : random.Between(-2 * length - 1, 2 * length + 1);
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < length; ++i) {
      offsets.push_back(block * stride * (in_bytes ? 1 : inner.extent) + i * inner.extent);
    }
  }
  if (in_bytes) {
    PMPI_Type_create_hvector(blocks, length, stride, inner.handle, &handle);
  } else {
    PMPI_Type_vector(blocks, length, static_cast<int>(stride), inner.handle, &handle);
  }
  return Made(handle, Copies(inner, offsets),
              Text(in_bytes ? "hvector" : "vector", inner, {blocks, length, stride}));
}

Type Indexed(Random& random, const Type& inner, int copies) {
  std::vector<int> displacements(static_cast<size_t>(copies));
  std::iota(displacements.begin(), displacements.end(),
            static_cast<int>(random.Between(-copies, copies)));
  if (random.OneIn(2)) random.Shuffle(displacements);
  const int gap = static_cast<int>(random.Between(1, 3));
  std::vector<int64_t> offsets;
  std::vector<int64_t> numbers;
  for (int& displacement : displacements) {
    displacement *= gap;
    offsets.push_back(displacement * inner.extent);
    numbers.push_back(displacement);
  }
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  PMPI_Type_create_indexed_block(copies, 1, displacements.data(), inner.handle, &handle);
  return Made(handle, Copies(inner, offsets), Text("indexed_block", inner, numbers));
}

// At any bytes: hindexed or a struct of as many fields.
Type AtBytes(Random& random, const Type& inner, int copies) {
  const int64_t span = std::max<int64_t>(inner.high() - inner.low(), 1);
  const int64_t gap = random.OneIn(2) ? 0 : random.Between(0, 9);
  std::vector<int64_t> offsets;
  const int64_t first = random.Between(-copies, copies);
  for (int i = 0; i < copies; ++i) offsets.push_back((first + i) * (span + gap));
  if (random.OneIn(2)) random.Shuffle(offsets);
  const auto count = static_cast<size_t>(copies);
  const std::vector<int> lengths(count, 1);
  const std::vector<MPI_Aint> places(offsets.begin(), offsets.end());
  const std::vector<MPI_Datatype> types(count, inner.handle);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  const bool as_struct = random.OneIn(2);
  if (as_struct) {
    PMPI_Type_create_struct(copies, lengths.data(), places.data(), types.data(), &handle);
  } else {
    PMPI_Type_create_hindexed(copies, lengths.data(), places.data(), inner.handle, &handle);
  }
  return Made(handle, Copies(inner, offsets),
              Text(as_struct ? "struct" : "hindexed", inner, offsets));
}

Type Resized(Random& random, const Type& inner) {
  const int64_t span = std::max<int64_t>(inner.high() - inner.low(), 1);
  const int64_t lower = random.OneIn(2) ? random.Between(-2 * span, 2 * span) : inner.low();
  int64_t extent = span;
  if (random.OneIn(2)) extent = span + random.Between(0, 16);
  if (random.OneIn(3)) extent = random.Between(1, span);  // elements interleave
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  PMPI_Type_create_resized(inner.handle, lower, extent, &handle);
  return Made(handle, inner.pieces, Text("resized", inner, {lower, extent}));
}

Type Duplicate(const Type& inner) {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  PMPI_Type_dup(inner.handle, &handle);
  return Made(handle, inner.pieces, Text("dup", inner, {1}));
}

Type Repeated(Random& random, const Type& inner, int copies) {
  switch (random.Below(5)) {
    case 0:
      return Contiguous(inner, copies);
    case 1:
    case 2:
      return Vector(random, inner, copies);
    case 3:
      return Indexed(random, inner, copies);
    default:
      return AtBytes(random, inner, copies);
  }
}

Type Shape(Random& random, int base, int elements, int depth) {
  Type type;
  if (elements == 1 && (depth == 0 || random.OneIn(2))) {
    type = MakeBase(random, base, false);
  } else {
    std::vector<int> factors;
    for (int factor = 1; factor <= elements; ++factor) {
      if (elements % factor == 0) factors.push_back(factor);
    }
    const int copies = depth == 0 ? elements : random.Of(factors);
    type = Repeated(random,
                    depth == 0 ? MakeBase(random, base, false)
                               : Shape(random, base, elements / copies, depth - 1),
                    copies);
  }
  if (random.OneIn(4)) type = Resized(random, type);
  if (random.OneIn(16)) type = Duplicate(type);
  return type;
}

// Which bytes are taken, around the buffer's address.
class Map {
 public:
  explicit Map(int64_t reach) : reach_(reach), taken_(static_cast<size_t>(2 * reach)) {}

  // Takes the bytes of a block that begins at `offset`; nothing is taken where one is taken
  // already.
  bool Take(const Type& type, int count, int64_t offset) {
    taken_now_.clear();
    for (int element = 0; element < count; ++element) {
      for (const Piece& piece : type.pieces) {
        const int64_t begin = offset + element * type.extent + piece.offset;
        for (int64_t at = begin; at < begin + piece.bytes; ++at) {
          if (at < -reach_ || at >= reach_ || taken_[Index(at)]) return GiveBack();
          taken_[Index(at)] = true;
          taken_now_.push_back(at);
        }
      }
    }
    return true;
  }

 private:
  size_t Index(int64_t at) const { return static_cast<size_t>(at + reach_); }
  bool GiveBack() {
    for (const int64_t at : taken_now_) taken_[Index(at)] = false;
    return false;
  }

  int64_t reach_;
  std::vector<bool> taken_;
  std::vector<int64_t> taken_now_;
};

struct Span {
  int64_t low, high;
};

// Of a block of so many elements that begins at 0.
Span SpanOf(const Type& type, int count) {
  const int64_t last = (count - 1) * type.extent;
  return {std::min<int64_t>(last, 0) + type.low(), std::max<int64_t>(last, 0) + type.high()};
}

void Widen(const Type& type, int count, int64_t offset, Places* places) {
  const Span span = SpanOf(type, count);
  const bool first = places->low == places->high;
  places->low = first ? offset + span.low : std::min(places->low, offset + span.low);
  places->high = first ? offset + span.high : std::max(places->high, offset + span.high);
}

int64_t CeilDivide(int64_t value, int64_t by) {
  return value >= 0 ? (value + by - 1) / by : -(-value / by);
}

bool TouchesNothing(const Type& type, int count) { return count == 0 || type.low() == type.high(); }

// Legal: nobody looks at where an empty block lies.
int AnyDisplacement(Random& random) {
  return static_cast<int>(
      random.Between(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

}  // namespace

Type::~Type() {
  if (owned) PMPI_Type_free(&handle);
}

Type::Type(Type&& other) noexcept { *this = std::move(other); }

Type& Type::operator=(Type&& other) noexcept {
  std::swap(handle, other.handle);
  std::swap(owned, other.owned);
  std::swap(extent, other.extent);
  std::swap(pieces, other.pieces);
  std::swap(text, other.text);
  return *this;
}

int64_t Type::low() const {
  int64_t low = pieces.empty() ? 0 : pieces.front().offset;
  for (const Piece& piece : pieces) low = std::min(low, piece.offset);
  return low;
}

int64_t Type::high() const {
  int64_t high = pieces.empty() ? 0 : pieces.front().offset;
  for (const Piece& piece : pieces) high = std::max(high, piece.offset + piece.bytes);
  return high;
}

Type MakePlainType(Random& random, int base, int elements) {
  Type type = MakeBase(random, base, true);
  if (elements > 1 || type.owned) type = Contiguous(type, elements);
  if (type.owned) PMPI_Type_commit(&type.handle);
  return type;
}

// Open MPI 4.1 lays some vectors of records with negative extents elsewhere than the standard says,
// and reads and writes there, outside of any buffer: no type to compare answers with.
bool IsWhereItShouldBe(const Type& type) {
  MPI_Aint low = 0;
  MPI_Aint span = 0;
  PMPI_Type_get_true_extent(type.handle, &low, &span);
  return type.pieces.empty() || (low == type.low() && low + span == type.high());
}

Type MakeType(Random& random, int base, int elements) {
  Type type;
  do {
    type = Shape(random, base, elements, static_cast<int>(random.Between(0, 2)));
  } while (!IsWhereItShouldBe(type));
  if (type.owned) PMPI_Type_commit(&type.handle);
  return type;
}

Type MakeEmptyType(Random& random) {
  Type type = Contiguous(MakeBase(random, 2, true), 0);
  if (random.OneIn(2)) type = Resized(random, type);
  PMPI_Type_commit(&type.handle);
  return type;
}

bool Place(Random& random, const Type& type, const std::vector<int>& counts, bool may_overlap,
           Places* places) {
  *places = Places{.displacements = std::vector<int>(counts.size())};
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random.OneIn(2)) random.Shuffle(order);
  int64_t room = 64;
  for (const int count : counts) {
    if (TouchesNothing(type, count)) continue;
    const Span span = SpanOf(type, count);
    room += span.high - span.low;
  }
  const int64_t step = std::max<int64_t>(type.extent, 1);
  const int64_t reach = 3 * (room + step * static_cast<int64_t>(counts.size()));
  if (reach > kMaxSpan || (type.extent < 1 && !type.pieces.empty())) return false;
  Map map(may_overlap ? 1 : reach);
  const bool dense = random.OneIn(3);  // one behind the other, in the order drawn
  for (const size_t block : order) {
    const int count = counts[block];
    int& displacement = places->displacements[block];
    if (TouchesNothing(type, count)) {
      displacement = random.OneIn(2) ? AnyDisplacement(random) : 0;
      continue;
    }
    bool found = false;
    for (int tries = dense ? 0 : 4; tries > 0 && !found; --tries) {
      displacement = static_cast<int>(random.Between(-room / step, room / step));
      found = may_overlap || map.Take(type, count, displacement * type.extent);
    }
    if (!found) {
      const int64_t first = places->low == places->high ? random.Between(-room, 0) : places->high;
      displacement = static_cast<int>(CeilDivide(first - SpanOf(type, count).low, step));
      if (!may_overlap && !map.Take(type, count, displacement * type.extent)) return false;
    }
    Widen(type, count, displacement * type.extent, places);
  }
  return true;
}

bool PlaceInRow(const Type& type, int count, int blocks, bool may_overlap, Places* places) {
  *places = Places{.displacements = std::vector<int>(static_cast<size_t>(blocks))};
  if (TouchesNothing(type, count) || blocks == 0) return true;
  const Span all = SpanOf(type, count * blocks);
  const int64_t reach = std::max(std::abs(all.low), std::abs(all.high)) + 1;
  if (reach > kMaxSpan) return false;
  Map map(may_overlap ? 1 : reach);
  for (int block = 0; block < blocks; ++block) {
    const int64_t offset = int64_t{block} * count * type.extent;
    if (!may_overlap && !map.Take(type, count, offset)) return false;
    Widen(type, count, offset, places);
  }
  return true;
}

}  // namespace tutti::mpi::differential
