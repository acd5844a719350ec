#include "call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

namespace tutti::mpi::differential {
namespace {

constexpr int64_t kGuard = 48;
constexpr std::array<const char*, kForms> kFormNames = {"taken-over", "non-blocking", "by-name",
                                                        "persistent"};
constexpr uint64_t kPairs = 0x70a125;  // separates what is drawn for pairs of ranks

void Fill(std::vector<std::byte>& memory, uint64_t key) {
  Random random({key});
  for (size_t at = 0; at < memory.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(memory.data() + at, &word, std::min(sizeof(word), memory.size() - at));
  }
}

// Start may be called for the second before the first is over.
bool StartsWithoutWaiting(const std::string& algorithm) {
  for (const char* name : {"linear", "spread-out", "pairwise", "xor", "scattered", "tuna"}) {
    if (algorithm.rfind(name, 0) == 0) return true;
  }
  return false;
}

}  // namespace

const char* Name(Form form) { return kFormNames[static_cast<size_t>(form)]; }

void Buffer::Make(const Places& places, uint64_t key) {
  memory_.resize(static_cast<size_t>(places.high - places.low + 2 * kGuard));
  origin_ = kGuard - places.low;
  Fill(memory_, key);
}

Call::Call(const Options& options, uint64_t number, const Group& group, int world_rank, bool steady)
    : options_(options),
      number_(number),
      group_(group),
      world_rank_(world_rank),
      steady_(steady),
      common_({options.seed, number}),
      mine_({options.seed, number, static_cast<uint64_t>(world_rank) + 1}) {
  collective_ = &common_.Of(Collectives());
  for (const Collective& each : Collectives()) {
    if (options_.collective == each.name) collective_ = &each;
  }
#ifdef OPEN_MPI
  // Passed on as they are; and Open MPI 4.1.4's own MPI_Ialltoallv, called by its PMPI name, gives another answer than its
  // MPI_Alltoallv once in 10^4 to 10^6 calls, or never ends. By name (--forms) they are drawn.
  constexpr int kWeights[kForms] = {11, 0, 10, 3};
#else
  constexpr int kWeights[kForms] = {10, 1, 10, 3};
#endif
  int64_t drawn = common_.Below(24);
  int form = 0;
  while (drawn >= kWeights[form]) drawn -= kWeights[form++];
  if (steady_) form = 0;
  if (!options_.forms.empty()) {
    const std::string& name = common_.Of(options_.forms);
    form = static_cast<int>(std::find(kFormNames.begin(), kFormNames.end(), name) -
                            kFormNames.begin());
  }
  form_ = static_cast<Form>(form);
  if (form_ == Form::kPersistent && (collective_->persistent == nullptr || group_.inter)) {
    form_ = Form::kByName;
  }
  algorithm_ = common_.Of(options_.algorithms);
  // Open MPI 4.1.4 confuses its own non-blocking calls in place on one communicator; they are
  // passed on.
  in_place_ = !group_.inter && common_.OneIn(6) && form_ != Form::kNonblocking;
  DrawSignature();
  DrawTypes();
  DrawCounts();
  while (!DrawPlaces()) {
    // No place for blocks of this type that touches no byte twice: a simpler one.
    plain_ = mine_.OneIn(2);
    DrawTypes();
    DrawCounts();
  }
}

// What all ranks must draw alike: what a block is made of, and how many there may be.
void Call::DrawSignature() {
  const int64_t style = common_.Below(500);
  unit_ = common_.Of(std::vector<int>{1, 1, 2, 3, 4, 6, 12});
  base_ = static_cast<int>(common_.Below(kBases));
  plain_ = common_.OneIn(2);
  empty_ = common_.OneIn(64);
  max_units_ = common_.Of(std::vector<int64_t>{0, 1, 2, 3, 5, 9, 20});
  sparse_ = common_.OneIn(2) ? 1 : static_cast<int>(common_.Between(1, 4));
  if (style == 0) {  // long messages
    base_ = kPlainBase;
    unit_ = 1;
    plain_ = true;
    empty_ = false;
    max_units_ = common_.Of(std::vector<int64_t>{20000, 65535, 65536, 140000});
  }
  if (steady_) {
    max_units_ = 4;
    sparse_ = 1;
    base_ = 3;
    unit_ = 2;
    empty_ = false;
  }
}

// Of this rank: its blocks have as many bases, its types the shape that it likes.
void Call::DrawTypes() {
  std::vector<int> divisors;
  for (int each = 1; each <= unit_; ++each) {
    if (unit_ % each == 0) divisors.push_back(each);
  }
  for (Side* side : {&send_side_, &receive_side_}) {
    side->bases = mine_.Of(divisors);
    if (empty_) {
      side->type = MakeEmptyType(mine_);
    } else {
      side->type =
          plain_ ? MakePlainType(mine_, base_, side->bases) : MakeType(mine_, base_, side->bases);
    }
  }
}

// Units that go from one rank of the world to another: both ends draw the same.
int64_t Call::UnitsOf(int from, int to) const {
  if (collective_->equal_blocks) from = to = 0;
  if (in_place_) std::tie(from, to) = std::pair(std::min(from, to), std::max(from, to));
  Random random(
      {options_.seed, number_, kPairs, static_cast<uint64_t>(from), static_cast<uint64_t>(to)});
  return random.OneIn(sparse_) ? random.Between(0, max_units_) : 0;
}

void Call::DrawCounts() {
  send_side_.counts.clear();
  receive_side_.counts.clear();
  for (const int peer : group_.peers) {
    send_side_.counts.push_back(
        static_cast<int>(UnitsOf(world_rank_, peer) * unit_ / send_side_.bases));
    receive_side_.counts.push_back(
        static_cast<int>(UnitsOf(peer, world_rank_) * unit_ / receive_side_.bases));
  }
}

bool Call::DrawPlaces() {
  const auto blocks = static_cast<int>(group_.peers.size());
  for (Side* side : {&send_side_, &receive_side_}) {
    const bool may_overlap = side == &send_side_;
    const bool placed =
        collective_->equal_blocks
            ? PlaceInRow(side->type, side->counts.front(), blocks, may_overlap, &side->places)
            : Place(mine_, side->type, side->counts, may_overlap, &side->places);
    if (!placed) return false;
  }
  return true;
}

Arguments Call::ArgumentsWith(std::byte* receive) const {
  const auto any = [](const std::vector<int>& counts) {
    return std::any_of(counts.begin(), counts.end(), [](int count) { return count > 0; });
  };
  Arguments arguments{.send = const_cast<Buffer&>(send_).address(),
                      .send_counts = send_side_.counts,
                      .send_displacements = send_side_.places.displacements,
                      .send_type = send_side_.type.handle,
                      .receive = receive,
                      .receive_counts = receive_side_.counts,
                      .receive_displacements = receive_side_.places.displacements,
                      .receive_type = receive_side_.type.handle,
                      .communicator = group_.communicator};
  // Where nothing is sent or received there need be no buffer.
  if (!any(send_side_.counts) && number_ % 2 == 0) arguments.send = nullptr;
  if (!any(receive_side_.counts) && number_ % 4 < 2) arguments.receive = nullptr;
  if (in_place_) {
    arguments.send = MPI_IN_PLACE;
    // Ignored, whatever they are.
    arguments.send_type = number_ % 2 == 0 ? MPI_DATATYPE_NULL : MPI_BYTE;
    arguments.send_counts.assign(send_side_.counts.size(), -1);
  }
  return arguments;
}

int Call::RunTested(const Arguments& first, const Arguments& second) {
  if (form_ == Form::kTakenOver) return collective_->taken_over(first);
  if (form_ == Form::kByName) return collective_->by_name(first, algorithm_.c_str());
  if (form_ == Form::kNonblocking) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = collective_->nonblocking(first, &request);
    return error == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : error;
  }
  // Two of them, both under way at once where their start waits for nobody; the first twice.
  const bool at_once = StartsWithoutWaiting(algorithm_);
  tutti_exchange a = nullptr;
  tutti_exchange b = nullptr;
  int error = collective_->persistent(first, algorithm_.c_str(), &a);
  if (error == MPI_SUCCESS) error = collective_->persistent(second, algorithm_.c_str(), &b);
  if (error == MPI_SUCCESS) error = tutti_start(a);
  if (error == MPI_SUCCESS && !at_once) error = tutti_wait(a);
  if (error == MPI_SUCCESS) error = tutti_start(b);
  if (error == MPI_SUCCESS) error = tutti_wait(b);
  if (error == MPI_SUCCESS && at_once) error = tutti_wait(a);
  if (error == MPI_SUCCESS && !in_place_) {
    Fill(tested_.memory(), number_ ^ 1);
    error = tutti_start(a);
    if (error == MPI_SUCCESS) error = tutti_wait(a);
  }
  tutti_free(&a);
  tutti_free(&b);
  return error;
}

std::string Call::Run() {
  const uint64_t key = options_.seed * 1000003 + number_ * 64 + static_cast<unsigned>(world_rank_);
  send_.Make(send_side_.places, key);
  sent_.Make(send_side_.places, key);
  for (Buffer* each : {&native_, &tested_, &tested_too_}) {
    if (each == &tested_too_ && form_ != Form::kPersistent) continue;
    each->Make(receive_side_.places, ~key);
  }
  if (form_ == Form::kPersistent && !in_place_) {
    // Its first answer must be overwritten by the second.
    Fill(native_.memory(), number_ ^ 1);
    Fill(tested_too_.memory(), number_ ^ 1);
  }
  const Arguments native = ArgumentsWith(native_.address());
  const int expected = options_.against_messages && !group_.inter ? ByMessages(*collective_, native)
                                                                  : collective_->native(native);
  const int error =
      RunTested(ArgumentsWith(tested_.address()),
                ArgumentsWith(form_ == Form::kPersistent ? tested_too_.address() : nullptr));
  if (error != expected) {
    return "returned " + std::to_string(error) + ", expected " + std::to_string(expected);
  }
  std::string difference = Compare(native_, tested_, "receive buffer");
  if (difference.empty() && form_ == Form::kPersistent) {
    difference = Compare(native_, tested_too_, "second receive buffer");
  }
  return difference.empty() ? Compare(sent_, send_, "send buffer") : difference;
}

std::string Call::Compare(const Buffer& native, const Buffer& tested, const char* what) const {
  const auto& a = const_cast<Buffer&>(native).memory();
  const auto& b = const_cast<Buffer&>(tested).memory();
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin());
  if (at == a.end()) return "";
  const auto offset = (at - a.begin()) - native.origin();
  return std::string(what) + " differs from byte " + std::to_string(offset) + " on: is " +
         std::to_string(static_cast<int>(*other)) + ", expected " +
         std::to_string(static_cast<int>(*at));
}

std::string Call::Text() const {
  const auto list = [](const std::vector<int>& numbers) {
    std::string text = "[";
    for (const int number : numbers) {
      text += (text.size() == 1 ? "" : ",");
      text += std::to_string(number);
    }
    return text + "]";
  };
  std::string text = std::string(collective_->name) + " " + Name(form_);
  if (form_ == Form::kByName || form_ == Form::kPersistent) text += " " + algorithm_;
  text += " on " + std::string(group_.name) + " of " + std::to_string(group_.peers.size());
  if (in_place_) text += " in place";
  return text + ", sends " + list(send_side_.counts) + " at " +
         list(send_side_.places.displacements) + " of " + send_side_.type.text + ", receives " +
         list(receive_side_.counts) + " at " + list(receive_side_.places.displacements) + " of " +
         receive_side_.type.text;
}

}  // namespace tutti::mpi::differential
