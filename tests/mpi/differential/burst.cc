#include "burst.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>

#ifdef OPEN_MPI
#include <mpi-ext.h>
// Open MPI 4 has them as an extension.
#define TUTTI_INIT_OF(prefix, Name) prefix##MPIX_##Name##_init
#else
#define TUTTI_INIT_OF(prefix, Name) prefix##MPI_##Name##_init
#endif

namespace tutti::mpi::differential {
namespace {

constexpr std::array<const char*, kBurstForms> kBurstFormNames = {"blocking", "non-blocking",
                                                                  "persistent"};

// Elements x -> a x + b, one after the other: associative, and in one order only.
void ThenApply(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  const auto* first = static_cast<const uint32_t*>(in);
  auto* second = static_cast<uint32_t*>(inout);
  for (int i = 0; i < *length; ++i, first += 2, second += 2) {
    const uint32_t a = first[0] * second[0], b = second[0] * first[1] + second[1];
    second[0] = a;
    second[1] = b;
  }
}

MPI_Op UserOp() {
  static const MPI_Op made = [] {
    MPI_Op op = MPI_OP_NULL;
    PMPI_Op_create(&ThenApply, 0, &op);
    return op;
  }();
  return made;
}

MPI_Datatype UserElement() {
  static const MPI_Datatype made = [] {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(2, MPI_UINT32_T, &type);
    PMPI_Type_commit(&type);
    return type;
  }();
  return made;
}

bool Reorders() {
  const char* const value = std::getenv("TUTTI_REORDER");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

struct NamedOp {
  MPI_Op op;
  const char* text;
};

int64_t BytesOf(MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return size;
}

}  // namespace

const char* Name(BurstForm form) { return kBurstFormNames[static_cast<size_t>(form)]; }

struct Burst::Kind {
  std::string name;
  bool reduces = false, rooted = false;
  bool by_counts = false;  // blocks of unequal size
  bool on_inter = false;   // drawn on intercommunicators, too
  bool scattered = false;  // of a reduction each rank gets a block
};

const std::vector<Burst::Kind>& Burst::Kinds() {
  static const std::vector<Kind> kinds = {
      {.name = "MPI_Allreduce", .reduces = true, .on_inter = true},
      {.name = "MPI_Allgather", .on_inter = true},
      {.name = "MPI_Allgatherv", .by_counts = true},
      {.name = "MPI_Reduce_scatter", .reduces = true, .by_counts = true, .scattered = true},
      {.name = "MPI_Reduce_scatter_block", .reduces = true, .scattered = true},
      {.name = "MPI_Bcast", .rooted = true, .on_inter = true},
      {.name = "MPI_Reduce", .reduces = true, .rooted = true},
      {.name = "MPI_Gather", .rooted = true},
      {.name = "MPI_Scatter", .rooted = true},
      {.name = "MPI_Barrier", .on_inter = true},
  };
  return kinds;
}

bool Burst::IsRoot() const { return kind_->rooted && root_ == rank_ && !group_.inter; }

Burst::Burst(const Options& options, uint64_t number, const Group& group, int world_rank)
    : options_(options),
      number_(number),
      group_(group),
      world_rank_(world_rank),
      common_({options.seed, number, 0xb0457}),
      mine_({options.seed, number, 0xb0457, static_cast<uint64_t>(world_rank) + 1}) {
  PMPI_Comm_rank(group_.communicator, &rank_);
  size_ = static_cast<int>(group_.peers.size());
  do {
    kind_ = &common_.Of(Kinds());
  } while (group_.inter && !kind_->on_inter);
  for (const Kind& kind : Kinds()) {
    if (options_.collective == kind.name && (!group_.inter || kind.on_inter)) kind_ = &kind;
  }
  constexpr int kOfTen[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 2};
  form_ = static_cast<BurstForm>(kOfTen[common_.Below(10)]);
  if (!options_.forms.empty()) {
    const std::string& wanted = common_.Of(options_.forms);
    for (int form = 0; form < kBurstForms; ++form) {
      if (wanted == kBurstFormNames[static_cast<size_t>(form)])
        form_ = static_cast<BurstForm>(form);
    }
  }
  if (group_.inter && form_ == BurstForm::kPersistent) form_ = BurstForm::kBlocking;
  // Open MPI 4.1.4 confuses its own non-blocking calls in place; they are passed on.
  in_place_ = !group_.inter && common_.OneIn(5) && form_ == BurstForm::kBlocking;
  calls_.resize(static_cast<size_t>(form_ == BurstForm::kPersistent ? 2 : common_.Between(1, 6)));
  if (kind_->rooted) {
    root_ = static_cast<int>(common_.Below(size_));
    if (group_.inter) {  // the first rank of the lower half gives
      const bool lower = world_rank_ < group_.peers.front();
      root_ = !lower ? 0 : (rank_ == 0 ? MPI_ROOT : MPI_PROC_NULL);
    }
  }
#ifndef OPEN_MPI
  // MPICH 4.0.2 reads at the address that is MPI_IN_PLACE where the root is another than rank 0.
  in_place_ = in_place_ && (kind_->name != "MPI_Reduce" || root_ == 0);
#endif
  if (kind_->reduces) {
    DrawReduction();
  } else if (kind_->name != "MPI_Barrier") {
    DrawBlocks();
  }
}

void Burst::DrawReduction() {
  const std::vector<MPI_Datatype> integers = {
      MPI_INT,           MPI_LONG,      MPI_UNSIGNED, MPI_SHORT,   MPI_SIGNED_CHAR,
      MPI_UNSIGNED_LONG, MPI_INT8_T,    MPI_INT16_T,  MPI_INT64_T, MPI_UINT32_T,
      MPI_UINT64_T,      MPI_LONG_LONG, MPI_UINT8_T,  MPI_UINT16_T};
  const std::vector<NamedOp> arithmetic = {
      {MPI_SUM, "sum"}, {MPI_PROD, "prod"}, {MPI_MIN, "min"}, {MPI_MAX, "max"}};
  const std::vector<NamedOp> bits = {{MPI_BAND, "band"}, {MPI_BOR, "bor"}, {MPI_BXOR, "bxor"}};
  const std::vector<NamedOp> logical = {{MPI_LAND, "land"}, {MPI_LOR, "lor"}, {MPI_LXOR, "lxor"}};
  NamedOp op{MPI_SUM, "sum"};
  switch (common_.Below(12)) {
    case 0:
    case 1:
    case 2:
      element_ = common_.Of(integers);
      op = common_.Of(arithmetic);
      break;
    case 3:
      element_ = common_.Of(integers);
      op = common_.Of(bits);
      break;
    case 4:
      element_ = common_.Of(integers);
      op = common_.Of(logical);
      break;
    case 5:
      element_ = MPI_BYTE;
      op = common_.Of(bits);
      break;
    case 6:
    case 7:
      element_ = MPI_DOUBLE;
      of_doubles_ = true;
      op = common_.Of(arithmetic);
      break;
    case 8:
      element_ = MPI_FLOAT;
      of_floats_ = true;
      op = common_.Of(arithmetic);
      break;
    case 9:
      element_ = MPI_2INT;
      op = common_.OneIn(2) ? NamedOp{MPI_MINLOC, "minloc"} : NamedOp{MPI_MAXLOC, "maxloc"};
      break;
    case 10:
      element_ = MPI_C_DOUBLE_COMPLEX;
      of_doubles_ = true;
      op = {MPI_SUM, "sum of complex numbers"};
      break;
    default:
      element_ = UserElement();
      op = {UserOp(), "an operation of the program"};
  }
  op_ = op.op;
  op_text_ = op.text;
  const int64_t most = common_.OneIn(60) ? common_.Of(std::vector<int64_t>{3000, 20000, 150000})
                                         : common_.Of(std::vector<int64_t>{0, 1, 2, 9, 70, 600});
  const int equal = static_cast<int>(common_.Between(0, most));
  for (int rank = 0; rank < size_; ++rank) {
    const auto drawn = static_cast<int>(common_.OneIn(4) ? 0 : common_.Between(0, most));
    block_elements_.push_back(kind_->by_counts ? drawn : equal);
  }
  if (!kind_->scattered) block_elements_.assign(1, equal);
  const int64_t all = std::accumulate(block_elements_.begin(), block_elements_.end(), int64_t{0});
  const int64_t mine = kind_->scattered ? block_elements_[static_cast<size_t>(rank_)] : all;
  const int64_t size = BytesOf(element_);
#ifndef OPEN_MPI
  // MPICH 4.0.2 moves a block to the front of its own buffer as if the two places never overlapped, and ends the
  // program where they do; from 512 KiB on it takes that algorithm.
  constexpr int64_t kFirstPairwiseBytes = 512 << 10;
  in_place_ = in_place_ && !(kind_->by_counts && all * size >= kFirstPairwiseBytes);
#endif
  send_side_.places.high = all * size;
  receive_side_.places.high = (in_place_ ? all : mine) * size;
}

void Burst::DrawBlocks() {
  const int unit = common_.Of(std::vector<int>{1, 1, 2, 3, 4, 6, 12});
  int base = static_cast<int>(common_.Below(kBases));
  bool plain = common_.OneIn(2);
  int64_t most = common_.Of(std::vector<int64_t>{0, 1, 2, 3, 5, 9, 20});
  if (common_.OneIn(100)) {  // long messages
    base = kPlainBase;
    plain = true;
    // By bytes, so that there is a place for the blocks of all ranks.
    most = common_.Of(std::vector<int64_t>{3000, 20000, 65536, 140000}) / unit;
  }
#ifdef OPEN_MPI
  // Open MPI 4.1.4 mislays blocks of types with holes on their way through other ranks.
  const bool through_others = kind_->name == "MPI_Gather" || kind_->name == "MPI_Scatter";
  plain = plain || (through_others && (size_ > 2 || root_ != 0));
#endif
  const int64_t equal = common_.Between(0, most);
  std::vector<int64_t> units;
  for (int rank = 0; rank < size_; ++rank) {
    const int64_t drawn = common_.OneIn(4) ? 0 : common_.Between(0, most);
    units.push_back(kind_->by_counts ? drawn : equal);
  }
  const std::string& name = kind_->name;
  const bool gathers = name == "MPI_Allgather" || name == "MPI_Allgatherv";
  const std::vector<int64_t> none, one = {group_.inter ? equal : units[static_cast<size_t>(rank_)]};
  const bool sends_one = gathers || name == "MPI_Gather";
  const bool receives_one = name == "MPI_Scatter" || name == "MPI_Bcast";
  const std::vector<int64_t>& sent =
      sends_one ? one : (name == "MPI_Scatter" && IsRoot() ? units : none);
  const std::vector<int64_t>& received = receives_one ? one : (gathers || IsRoot() ? units : none);
  std::vector<int> divisors;
  for (int each = 1; each <= unit; ++each) {
    if (unit % each == 0) divisors.push_back(each);
  }
  // Open MPI 4.1.4 takes the size of one side's type times the counts of the other side in its choice
  // of an algorithm for MPI_Allgatherv: ranks whose types differ in size wait forever.
  const int bases_of_all = common_.Of(divisors);
  do {
    for (Side* side : {&send_side_, &receive_side_}) {
      side->bases = kind_->by_counts ? bases_of_all : mine_.Of(divisors);
      side->type =
          plain ? MakePlainType(mine_, base, side->bases) : MakeType(mine_, base, side->bases);
      side->counts.clear();
      for (const int64_t each : side == &send_side_ ? sent : received) {
        side->counts.push_back(static_cast<int>(each * unit / side->bases));
      }
    }
    // Where no place is found that touches no byte twice: a simpler type.
    plain = plain || mine_.OneIn(2);
  } while (!DrawPlaces());
}

bool Burst::DrawPlaces() {
  for (Side* side : {&send_side_, &receive_side_}) {
    const auto blocks = static_cast<int>(side->counts.size());
    const bool may_overlap = side == &send_side_;
    // MPICH 4.0.2 ignores the displacement where there is but one rank.
    const bool placed = kind_->by_counts && !may_overlap && size_ > 1
                            ? Place(mine_, side->type, side->counts, may_overlap, &side->places)
                            : PlaceInRow(side->type, blocks == 0 ? 0 : side->counts.front(), blocks,
                                         may_overlap, &side->places);
    if (!placed) return false;
  }
  return true;
}

// Numbers that no order of sums and products rounds, or any.
void Burst::FillNumbers(Buffer& buffer, uint64_t key) const {
  if (!of_doubles_ && !of_floats_) return;
  Random random({key, 0xf10a7});
  const auto bytes = static_cast<int64_t>(buffer.memory().size()) - 2 * buffer.origin();
  const size_t width = of_doubles_ ? sizeof(double) : sizeof(float);
  std::byte* at = buffer.address();
  for (int64_t done = 0; done + static_cast<int64_t>(width) <= bytes;
       done += static_cast<int64_t>(width), at += width) {
    const std::vector<double> simple = {1, -1, 2, -2, 0.5, 3};
    const double number = Reorders() ? simple[static_cast<size_t>(random.Below(6))]
                                     : static_cast<double>(random.Between(-1000000, 1000000)) /
                                           static_cast<double>(random.Between(1, 1000));
    const auto single = static_cast<float>(number);
    std::memcpy(at, of_doubles_ ? static_cast<const void*>(&number) : &single, width);
  }
}

// The call itself, in every form; its arguments stand once.
#define TUTTI_FORMS_OF(Name, lower, ...)                                            \
  switch (form_) {                                                                  \
    case BurstForm::kBlocking:                                                      \
      return native ? PMPI_##Name(__VA_ARGS__) : MPI_##Name(__VA_ARGS__);           \
    case BurstForm::kNonblocking:                                                   \
      return native ? PMPI_I##lower(__VA_ARGS__, a.request)                         \
                    : MPI_I##lower(__VA_ARGS__, a.request);                         \
    case BurstForm::kPersistent:                                                    \
      return native ? TUTTI_INIT_OF(P, Name)(__VA_ARGS__, MPI_INFO_NULL, a.request) \
                    : TUTTI_INIT_OF(, Name)(__VA_ARGS__, MPI_INFO_NULL, a.request); \
  }

int Burst::Invoke(bool native, const Arguments& a) const {
  const auto first = [](const Side& side) { return side.counts.empty() ? 0 : side.counts.front(); };
  const int sends = first(send_side_), receives = first(receive_side_);
  const MPI_Datatype send_type = send_side_.type.handle, receive_type = receive_side_.type.handle;
  const int elements = block_elements_.empty() ? 0 : block_elements_.front();
  const std::string& name = kind_->name;
  const MPI_Comm communicator = group_.communicator;
  if (name == "MPI_Allreduce") {
    TUTTI_FORMS_OF(Allreduce, allreduce, a.send, a.receive, elements, element_, op_, communicator)
  } else if (name == "MPI_Reduce") {
    TUTTI_FORMS_OF(Reduce, reduce, a.send, a.receive, elements, element_, op_, root_, communicator)
  } else if (name == "MPI_Reduce_scatter") {
    TUTTI_FORMS_OF(Reduce_scatter, reduce_scatter, a.send, a.receive, block_elements_.data(),
                   element_, op_, communicator)
  } else if (name == "MPI_Reduce_scatter_block") {
    TUTTI_FORMS_OF(Reduce_scatter_block, reduce_scatter_block, a.send, a.receive, elements,
                   element_, op_, communicator)
  } else if (name == "MPI_Allgather") {
    TUTTI_FORMS_OF(Allgather, allgather, a.send, sends, send_type, a.receive, receives,
                   receive_type, communicator)
  } else if (name == "MPI_Allgatherv") {
    TUTTI_FORMS_OF(Allgatherv, allgatherv, a.send, sends, send_type, a.receive,
                   receive_side_.counts.data(), receive_side_.places.displacements.data(),
                   receive_type, communicator)
  } else if (name == "MPI_Gather") {
    TUTTI_FORMS_OF(Gather, gather, a.send, sends, send_type, a.receive, receives, receive_type,
                   root_, communicator)
  } else if (name == "MPI_Scatter") {
    TUTTI_FORMS_OF(Scatter, scatter, a.send, sends, send_type, a.receive, receives, receive_type,
                   root_, communicator)
  } else if (name == "MPI_Bcast") {
    TUTTI_FORMS_OF(Bcast, bcast, a.receive, receives, receive_type, root_, communicator)
  } else {
    TUTTI_FORMS_OF(Barrier, barrier, communicator)
  }
  return MPI_ERR_OTHER;
}

Burst::Arguments Burst::ArgumentsOf(Call& call, bool native) const {
  Arguments arguments{call.send.address(), (native ? call.native : call.tested).address(), nullptr};
  if (!in_place_) return arguments;
  if (kind_->name == "MPI_Scatter") {
    if (IsRoot()) arguments.receive = MPI_IN_PLACE;
  } else if (!kind_->rooted || IsRoot()) {
    arguments.send = MPI_IN_PLACE;
  }
  return arguments;
}

int Burst::RunAll(bool native) {
  std::vector<MPI_Request> requests(calls_.size(), MPI_REQUEST_NULL);
  for (size_t call = 0; call < calls_.size(); ++call) {
    if (!native && mine_.OneIn(32)) usleep(static_cast<useconds_t>(mine_.Below(60)));
    Arguments arguments = ArgumentsOf(calls_[call], native);
    arguments.request = &requests[call];
    if (const int error = Invoke(native, arguments)) return error;
  }
  if (form_ == BurstForm::kBlocking) return MPI_SUCCESS;
  const auto count = static_cast<int>(requests.size());
  if (form_ == BurstForm::kPersistent) {
    if (const int error = PMPI_Startall(count, requests.data())) return error;
  }
  int error = PMPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  for (MPI_Request& request : requests) {
    if (request == MPI_REQUEST_NULL) continue;
    const int freed = PMPI_Request_free(&request);
    if (error == MPI_SUCCESS) error = freed;
  }
  return error;
}

std::string Burst::Run() {
  for (size_t call = 0; call < calls_.size(); ++call) {
    const uint64_t key =
        Random({options_.seed, number_, call, static_cast<uint64_t>(world_rank_)}).Next();
    for (Buffer* buffer : {&calls_[call].send, &calls_[call].sent}) {
      buffer->Make(send_side_.places, key);
      FillNumbers(*buffer, key);
    }
    for (Buffer* buffer : {&calls_[call].native, &calls_[call].tested}) {
      buffer->Make(receive_side_.places, ~key);
      FillNumbers(*buffer, ~key);
    }
  }
  const int error = RunAll(false);
  const int expected = RunAll(true);
  if (error != expected) {
    return "returned " + std::to_string(error) + ", expected " + std::to_string(expected);
  }
  for (size_t call = 0; call < calls_.size(); ++call) {
    const auto is_same = [](Buffer& a, Buffer& b, size_t* at) {
      const auto [first, second] =
          std::mismatch(a.memory().begin(), a.memory().end(), b.memory().begin());
      *at = static_cast<size_t>(first - a.memory().begin());
      return first == a.memory().end();
    };
    size_t at = 0;
    const char* what = nullptr;
    Call& each = calls_[call];
    if (in_place_ && kind_->scattered) {
      // What lies behind the own block after the call is anything.
      const auto block =
          static_cast<size_t>(BytesOf(element_)) *
          static_cast<size_t>(block_elements_[kind_->by_counts ? static_cast<size_t>(rank_) : 0]);
      const auto begin = static_cast<size_t>(each.native.origin()) + block;
      const auto end = static_cast<size_t>(each.native.origin() + receive_side_.places.high);
      std::copy(each.native.memory().begin() + static_cast<std::ptrdiff_t>(begin),
                each.native.memory().begin() + static_cast<std::ptrdiff_t>(end),
                each.tested.memory().begin() + static_cast<std::ptrdiff_t>(begin));
    }
    if (!is_same(each.native, each.tested, &at)) {
      what = "receive buffer";
    } else if (!is_same(each.sent, each.send, &at)) {
      what = "send buffer";
    }
    if (what == nullptr) continue;
    const int64_t origin =
        std::strcmp(what, "send buffer") == 0 ? each.send.origin() : each.tested.origin();
    return std::string(what) + " of call " + std::to_string(call) + " of " +
           std::to_string(calls_.size()) + " differs from byte " +
           std::to_string(static_cast<int64_t>(at) - origin) + " on";
  }
  return "";
}

std::string Burst::Text() const {
  std::string text = kind_->name + " " + Name(form_) + " on " + group_.name + " of " +
                     std::to_string(group_.peers.size());
  if (kind_->rooted) text += ", root " + std::to_string(root_);
  if (in_place_) text += " in place";
  const auto list = [](const std::vector<int>& numbers) {
    std::string words = "[";
    for (const int number : numbers) {
      words += (words.size() == 1 ? "" : ",") + std::to_string(number);
    }
    return words + "]";
  };
  if (kind_->reduces) {
    char type[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    PMPI_Type_get_name(element_, type, &length);
    return text + ", " + op_text_ + " of " + type + " " + list(block_elements_);
  }
  return text + ", sends " + list(send_side_.counts) + " of " + send_side_.type.text +
         ", receives " + list(receive_side_.counts) + " of " + receive_side_.type.text;
}

}  // namespace tutti::mpi::differential
