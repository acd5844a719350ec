#include "hierarchy/hierarchical.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "buffer_pool.h"
#include "copy.h"
#include "hierarchy/sizes_message.h"
#include "message.h"

namespace tutti::mpi {

namespace {

constexpr int kDefaultRadix = 4;
constexpr int kDefaultWindow = 32;
constexpr int kRoundsInFlight = 8;  // of one digit, inside a group

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

// The sizes of the blocks that this rank holds after a level, and where it keeps them.
struct Holding {
  int sources = 0;                   // members of the level's group
  std::vector<std::int64_t> bytes;   // [row * sources + source]; a row is a destination of held()
  std::vector<std::int64_t> offset;  // into `blocks`, one more than bytes; own row takes no place
  Lease blocks;

  std::int64_t total() const { return offset.back(); }
  std::int64_t size(int row, int source) const { return bytes[At(row) * At(sources) + At(source)]; }
  std::int64_t start(int row, int source) const {
    return offset[At(row) * At(sources) + At(source)];
  }
};

// Messages in flight, finished in the order in which they were posted.
struct Flight {
  MPI_Request request = MPI_REQUEST_NULL;
  Lease staging;  // of a message that is not received in place
  std::int64_t bytes = 0;
  const Routes::Receive* arrival = nullptr;  // what to unpack from `staging`
};

class Hierarchical {
 public:
  Hierarchical(const BlockExchange& exchange, const Routes& routes, int radix, int window,
               bool staggered, Trace* trace)
      : exchange_(exchange),
        routes_(routes),
        group_(routes.group(0)),
        members_(group_.size()),
        self_(routes.position() - group_.begin),
        last_(routes.num_levels() - 1),
        in_place_(members_ == 1 && last_ == 1),
        radix_(std::clamp(radix == 0 ? kDefaultRadix : radix, 2, std::max(2, members_))),
        window_(At(window <= 0 ? kDefaultWindow : window)),
        staggered_(staggered),
        trace_(trace),
        lap_(trace),
        holdings_(At(routes.num_levels())) {}

  int Run() {
    PlanRounds();
    lap_.EndsAs(&Trace::prepare_s);
    if (const int error = ExchangeMemberSizes()) return error;
    for (int l = 1; l < last_; ++l) {
      if (const int error = ExchangeGroupSizes(l)) return error;
    }
    if (const int error = ExchangeInsideGroup()) return error;
    for (int l = 1; l <= last_; ++l) {
      if (const int error = ExchangeBetweenGroups(l)) return error;
    }
    SettleCopies();
    return MPI_SUCCESS;
  }

 private:
  // One round of TuNA in the group: to the member `distance` after this one.
  struct Round {
    int distance = 0;
    int stride = 1;                            // r^x of its digit x
    std::size_t first_slot = 0, end_slot = 0;  // of slots_
    std::int64_t sent_bytes = 0;
    std::int64_t received_bytes = 0;
    Lease arrived, gathered;
    int sent_from = -1;     // the round whose `arrived` is sent on without a copy
    int waiting_slots = 0;  // slots in `arrived` that are to be sent on
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
  };

  int Member(int distance) const { return (self_ + distance + members_) % members_; }
  int RankOfMember(int member) const { return routes_.rank(group_.begin + member); }

  void PlanRounds();
  int ExchangeMemberSizes();
  int ExchangeSizesOfDigit(std::size_t first, std::size_t end);
  void MeasureUniformRound(Round& round);
  int ExchangeGroupSizes(int level);
  void PlaceHolding(int level);
  int ReservePlace(int level);

  int ExchangeInsideGroup();
  int Post(std::size_t round);
  int Finish(std::size_t round);
  void Deliver(int source, const std::byte* from);
  void DeliverOwn();
  void ReleaseSlot(int round);

  int ExchangeBetweenGroups(int level);
  int PostStep(int level, const Routes::Step& step);
  int PostStaggeredStep(const Routes::Step& step);
  int PostReceive(int level, const Routes::Receive& receive);
  int PostSend(int level, const Routes::Send& send);
  int Receive(int level, std::byte* into, std::int64_t bytes, int from,
              const Routes::Receive* arrival);
  int SendOn(const std::byte* from, std::int64_t bytes, int to);
  int FinishOldest(std::vector<Flight>& flights, std::size_t& oldest, int level);
  void KeepOwnRows(int level);
  // Where the caller has the block for the receiver of `send`.
  const std::byte* PlaceToSend(const Routes::Send& send) const {
    const std::size_t rank = At(routes_.rank(send.to));
    if (exchange_.send_bytes[rank] == 0) return nullptr;
    return exchange_.send + exchange_.send_offset[rank];
  }
  void Unpack(int level, const Flight& flight);

  void Hold(std::int64_t bytes) {
    held_bytes_ += bytes;
    if (trace_ != nullptr) trace_->NoteTemporary(held_bytes_);
  }
  void Stage(std::int64_t bytes) {
    staged_bytes_ += bytes;
    if (trace_ != nullptr) trace_->NoteStaging(staged_bytes_);
  }
  void CountMessage() {
    if (trace_ != nullptr) ++trace_->messages;
  }

  const BlockExchange& exchange_;
  const Routes& routes_;
  const Range group_;
  const int members_;  // [Q] of the finest group
  const int self_;     // [g] index in it
  const int last_;
  const bool in_place_;  // blocks leave from the caller's buffer: nothing to gather
  const int radix_;
  const std::size_t window_;
  const bool staggered_;
  Trace* const trace_;
  Lap lap_;
  std::vector<Holding> holdings_;
  std::int64_t held_bytes_ = 0;
  std::int64_t staged_bytes_ = 0;

  // Slot i: the bundle that started i members before the one it goes to.
  std::vector<Round> rounds_;
  std::vector<int> slots_;                     // of all rounds
  std::vector<std::int64_t> sent_, received_;  // bytes, beside slots_
  std::vector<std::int64_t> slot_sizes_;       // [slot * widest bundle + place in the bundle]
  std::size_t widest_ = 0;
  std::vector<const std::byte*> slot_at_;  // null: blocks still in the caller's send buffer
  std::vector<int> slot_round_;            // in which it came; -1: it started here
  std::size_t posted_ = 0;

  std::vector<Flight> sends_, receives_;
  std::size_t oldest_send_ = 0, oldest_receive_ = 0;
};

void Hierarchical::PlanRounds() {
  for (std::int64_t wide = 1; wide < members_; wide *= radix_) {
    const auto stride = static_cast<int>(wide);
    for (int digit = 1; digit < radix_ && digit * wide < members_; ++digit) {
      Round round;
      round.distance = digit * stride;
      round.stride = stride;
      round.first_slot = slots_.size();
      for (std::int64_t first = round.distance; first < members_; first += wide * radix_) {
        for (std::int64_t slot = first; slot < std::min<std::int64_t>(first + wide, members_);
             ++slot) {
          slots_.push_back(static_cast<int>(slot));
        }
      }
      round.end_slot = slots_.size();
      rounds_.push_back(std::move(round));
    }
  }
  sent_.resize(slots_.size());
  received_.resize(slots_.size());
  slot_at_.resize(At(members_), nullptr);
  slot_round_.resize(At(members_), -1);
  if (trace_ != nullptr) trace_->rounds += static_cast<std::int64_t>(rounds_.size());
}

// Sizes of all bundles that pass here, digit by digit, and from them the holding of level 0.
int Hierarchical::ExchangeMemberSizes() {
  for (int m = 0; m < members_; ++m) widest_ = std::max(widest_, routes_.bundle(m).size());
  slot_sizes_.resize(widest_ * At(members_));
  for (int slot = 0; slot < members_; ++slot) {
    std::size_t at = At(slot) * widest_;
    for (const int d : routes_.bundle(Member(slot))) {
      slot_sizes_[at++] = exchange_.send_bytes[At(routes_.rank(d))];
    }
  }
  if (exchange_.uniform_bytes >= 0) {
    std::fill(slot_sizes_.begin(), slot_sizes_.end(), exchange_.uniform_bytes);
  }
  for (std::size_t first = 0; first < rounds_.size();) {
    std::size_t end = first;
    while (end < rounds_.size() && rounds_[end].stride == rounds_[first].stride) ++end;
    if (const int error = ExchangeSizesOfDigit(first, end)) return error;
    if (first == 0) {
      // Their data need no other sizes: they travel while the sizes of the other digits do.
      while (posted_ < std::min<std::size_t>(end, kRoundsInFlight)) {
        if (const int error = Post(posted_++)) return error;
      }
    }
    first = end;
  }
  Holding& holding = holdings_[0];
  holding.sources = members_;
  const std::size_t rows = routes_.held(0).size();
  holding.bytes.resize(rows * At(members_));
  for (int slot = 0; slot < members_; ++slot) {
    const int source = Member(-slot);
    for (std::size_t row = 0; row < rows; ++row) {
      holding.bytes[row * At(members_) + At(source)] = slot_sizes_[At(slot) * widest_ + row];
    }
  }
  PlaceHolding(0);
  lap_.EndsAs(&Trace::prepare_s);
  return MPI_SUCCESS;
}

// Where all blocks of all ranks are equal, every rank knows every size.
void Hierarchical::MeasureUniformRound(Round& round) {
  const std::int64_t past = std::int64_t{round.stride} * radix_;
  for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
    const int slot = slots_[s];
    const int sent_to = Member(slot - slot % round.stride);
    const int kept_for = Member(slot - static_cast<int>(slot % past));
    const auto bytes_of = [&](int member) {
      return static_cast<std::int64_t>(routes_.bundle(member).size()) * exchange_.uniform_bytes;
    };
    round.sent_bytes += sent_[s] = bytes_of(sent_to);
    round.received_bytes += received_[s] = bytes_of(kept_for);
  }
}

int Hierarchical::ExchangeSizesOfDigit(std::size_t first, std::size_t end) {
  if (exchange_.uniform_bytes >= 0) {
    for (std::size_t k = first; k < end; ++k) MeasureUniformRound(rounds_[k]);
    return MPI_SUCCESS;
  }
  const std::size_t count = end - first;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> start_in(count + 1), start_out(count + 1);
  const int stride = rounds_[first].stride;
  const auto sent_to = [&](int slot) { return Member(slot - slot % stride); };
  const std::int64_t past = std::int64_t{stride} * radix_;
  const auto kept_for = [&](int slot) { return Member(slot - static_cast<int>(slot % past)); };
  for (std::size_t k = 0; k < count; ++k) {
    const Round& round = rounds_[first + k];
    std::int64_t in = 0;
    std::int64_t out = 0;
    for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
      in += static_cast<std::int64_t>(routes_.bundle(kept_for(slots_[s])).size());
      out += static_cast<std::int64_t>(routes_.bundle(sent_to(slots_[s])).size());
    }
    start_in[k + 1] = start_in[k] + SizesMessageBytes(in);
    start_out[k + 1] = start_out[k] + SizesMessageBytes(out);
  }
  const Lease in(start_in.back());
  const Lease out(start_out.back());
  if (in.data() == nullptr || out.data() == nullptr) return MPI_ERR_NO_MEM;
  std::vector<MPI_Request> requests(2 * count, MPI_REQUEST_NULL);
  for (std::size_t k = 0; k < count; ++k) {
    if (const int error = ReceiveBytes(in.data() + start_in[k], start_in[k + 1] - start_in[k],
                                       RankOfMember(Member(-rounds_[first + k].distance)),
                                       Tag::kSizes, exchange_.communicator, &requests[k])) {
      return error;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    Round& round = rounds_[first + k];
    numbers.clear();
    for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
      const std::size_t at = At(slots_[s]) * widest_;
      for (std::size_t i = 0; i < routes_.bundle(sent_to(slots_[s])).size(); ++i) {
        numbers.push_back(slot_sizes_[at + i]);
        sent_[s] += slot_sizes_[at + i];
      }
      round.sent_bytes += sent_[s];
    }
    std::byte* const message = out.data() + start_out[k];
    CountMessage();
    if (const int error =
            SendBytes(message, EncodeSizes(numbers, message), RankOfMember(Member(round.distance)),
                      Tag::kSizes, exchange_.communicator, &requests[count + k])) {
      return error;
    }
  }
  if (const int error = WaitForAll(requests)) return error;
  for (std::size_t k = 0; k < count; ++k) {
    Round& round = rounds_[first + k];
    std::size_t expected = 0;
    for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
      expected += routes_.bundle(kept_for(slots_[s])).size();
    }
    numbers.resize(expected);
    DecodeSizes(in.data() + start_in[k], numbers);
    auto number = numbers.begin();
    for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
      const std::size_t at = At(slots_[s]) * widest_;
      for (std::size_t i = 0; i < routes_.bundle(kept_for(slots_[s])).size(); ++i) {
        slot_sizes_[at + i] = *number;
        received_[s] += *number++;
      }
      round.received_bytes += received_[s];
    }
  }
  lap_.EndsAs(&Trace::metadata_s);
  return MPI_SUCCESS;
}

// Sizes of what the groups of level - 1 exchange at this level, where more passes than the
// receiver's own blocks, and from them the holding of this level.
int Hierarchical::ExchangeGroupSizes(int level) {
  const Routes::Phase& phase = routes_.phase(level);
  const Holding& from = holdings_[At(level - 1)];
  Holding& holding = holdings_[At(level)];
  const std::vector<int>& held = routes_.held(level);
  const Range around = routes_.group(level);
  holding.sources = around.size();
  holding.bytes.resize(held.size() * At(holding.sources));
  const int own_begin = routes_.group(level - 1).begin - around.begin;
  for (std::size_t row = 0; row < held.size(); ++row) {
    for (int s = 0; s < from.sources; ++s) {
      holding.bytes[row * At(holding.sources) + At(own_begin + s)] =
          from.size(phase.kept.begin + static_cast<int>(row), s);
    }
  }
  if (exchange_.uniform_bytes >= 0) {
    std::fill(holding.bytes.begin(), holding.bytes.end(), exchange_.uniform_bytes);
    PlaceHolding(level);
    lap_.EndsAs(&Trace::prepare_s);
    return MPI_SUCCESS;
  }
  const bool passes = held.size() > 1;
  std::vector<MPI_Request> requests;
  requests.reserve(phase.steps.size() + phase.sends.size());
  std::vector<Lease> in;
  std::vector<Lease> out;
  std::vector<std::int64_t> numbers;
  for (const Routes::Step& step : phase.steps) {
    const auto count = static_cast<std::int64_t>(held.size() - 1) * step.receive.sources.size();
    in.emplace_back(SizesMessageBytes(count));
    if (in.back().data() == nullptr) return MPI_ERR_NO_MEM;
    if (!passes) continue;
    if (const int error = ReceiveBytes(in.back().data(), SizesMessageBytes(count),
                                       routes_.rank(step.receive.from), Tag::kSizes,
                                       exchange_.communicator, &requests.emplace_back())) {
      return error;
    }
  }
  for (const Routes::Send& send : phase.sends) {
    if (send.held.size() <= 1) continue;
    numbers.clear();
    for (int row = send.held.begin; row < send.held.end; ++row) {
      if (routes_.held(level - 1)[At(row)] == send.to) continue;
      for (int s = 0; s < from.sources; ++s) numbers.push_back(from.size(row, s));
    }
    out.emplace_back(SizesMessageBytes(static_cast<std::int64_t>(numbers.size())));
    if (out.back().data() == nullptr) return MPI_ERR_NO_MEM;
    CountMessage();
    if (const int error = SendBytes(out.back().data(), EncodeSizes(numbers, out.back().data()),
                                    routes_.rank(send.to), Tag::kSizes, exchange_.communicator,
                                    &requests.emplace_back())) {
      return error;
    }
  }
  if (const int error = WaitForAll(requests)) return error;
  for (std::size_t k = 0; k < phase.steps.size(); ++k) {
    const Range sources = phase.steps[k].receive.sources;
    numbers.resize((held.size() - 1) * At(sources.size()));
    if (passes) DecodeSizes(in[k].data(), numbers);
    auto number = numbers.begin();
    for (std::size_t row = 0; row < held.size(); ++row) {
      const bool own = held[row] == routes_.position();
      for (int s = sources.begin; s < sources.end; ++s) {
        holding.bytes[row * At(holding.sources) + At(s - around.begin)] =
            own ? exchange_.receive_bytes[At(routes_.rank(s))] : *number++;
      }
    }
  }
  lap_.EndsAs(&Trace::metadata_s);
  PlaceHolding(level);
  lap_.EndsAs(&Trace::prepare_s);
  return MPI_SUCCESS;
}

void Hierarchical::PlaceHolding(int level) {
  Holding& holding = holdings_[At(level)];
  const std::vector<int>& held = routes_.held(level);
  holding.offset.resize(holding.bytes.size() + 1);
  std::size_t at = 0;
  for (const int destination : held) {
    const bool own = destination == routes_.position();
    for (int s = 0; s < holding.sources; ++s, ++at) {
      holding.offset[at + 1] = holding.offset[at] + (own ? 0 : holding.bytes[at]);
    }
  }
}

int Hierarchical::ReservePlace(int level) {
  Holding& holding = holdings_[At(level)];
  if (in_place_ || holding.total() == 0) return MPI_SUCCESS;
  holding.blocks = Lease(holding.total());
  if (holding.blocks.data() == nullptr) return MPI_ERR_NO_MEM;
  Hold(holding.total());
  return MPI_SUCCESS;
}

int Hierarchical::ExchangeInsideGroup() {
  if (const int error = ReservePlace(0)) return error;
  DeliverOwn();
  lap_.EndsAs(&Trace::rearrange_s);
  std::size_t finished = 0;
  while (finished < rounds_.size()) {
    // A round may be posted once those of earlier digits are over.
    while (posted_ < rounds_.size() && posted_ - finished < kRoundsInFlight &&
           rounds_[posted_].stride == rounds_[finished].stride) {
      if (const int error = Post(posted_++)) return error;
    }
    if (const int error = Finish(finished++)) return error;
  }
  return MPI_SUCCESS;
}

int Hierarchical::Post(std::size_t index) {
  Round& round = rounds_[index];
  if (round.received_bytes > 0) {
    round.arrived = Lease(round.received_bytes);
    if (round.arrived.data() == nullptr) return MPI_ERR_NO_MEM;
    Hold(round.received_bytes);
    if (const int error = ReceiveBytes(round.arrived.data(), round.received_bytes,
                                       RankOfMember(Member(-round.distance)), Tag::kData,
                                       exchange_.communicator, &round.receive)) {
      return error;
    }
  }
  if (round.sent_bytes == 0) {
    for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
      ReleaseSlot(slot_round_[At(slots_[s])]);
    }
    return MPI_SUCCESS;
  }
  const std::byte* message = nullptr;
  if (round.end_slot - round.first_slot == 1 && slot_round_[At(slots_[round.first_slot])] >= 0) {
    round.sent_from = slot_round_[At(slots_[round.first_slot])];
    message = slot_at_[At(slots_[round.first_slot])];
  } else {
    lap_.EndsAs(&Trace::data_s);
    round.gathered = Lease(round.sent_bytes);
    if (round.gathered.data() == nullptr) return MPI_ERR_NO_MEM;
    Stage(round.sent_bytes);
    std::byte* to = round.gathered.data();
    for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
      const int slot = slots_[s];
      if (slot_round_[At(slot)] < 0) {
        for (const int d : routes_.bundle(Member(slot - slot % round.stride))) {
          const std::size_t rank = At(routes_.rank(d));
          if (exchange_.send_bytes[rank] == 0) continue;
          CopyBytes(to, exchange_.send + exchange_.send_offset[rank], exchange_.send_bytes[rank]);
          to += exchange_.send_bytes[rank];
        }
      } else {
        CopyBytes(to, slot_at_[At(slot)], sent_[s]);
        to += sent_[s];
        ReleaseSlot(slot_round_[At(slot)]);
      }
    }
    SettleCopies();
    message = round.gathered.data();
    lap_.EndsAs(&Trace::copy_s);
  }
  CountMessage();
  return SendBytes(message, round.sent_bytes, RankOfMember(Member(round.distance)), Tag::kData,
                   exchange_.communicator, &round.send);
}

int Hierarchical::Finish(std::size_t index) {
  Round& round = rounds_[index];
  std::array<MPI_Request, 2> requests = {round.receive, round.send};
  if (const int error = WaitForAll(requests)) return error;
  lap_.EndsAs(&Trace::data_s);
  if (round.sent_from >= 0) {
    ReleaseSlot(round.sent_from);
  } else {
    Stage(-round.sent_bytes);
  }
  round.gathered = Lease();
  const std::byte* from = round.arrived.data();
  const std::int64_t past = std::int64_t{round.stride} * radix_;
  for (std::size_t s = round.first_slot; s < round.end_slot; ++s) {
    const int slot = slots_[s];
    if (slot < past) {
      Deliver(Member(-slot), from);
    } else {
      slot_at_[At(slot)] = from;
      slot_round_[At(slot)] = static_cast<int>(index);
      ++round.waiting_slots;
    }
    if (received_[s] > 0) from += received_[s];
  }
  if (round.waiting_slots == 0) {
    Hold(-round.received_bytes);
    round.arrived = Lease();
  }
  SettleCopies();
  lap_.EndsAs(&Trace::rearrange_s);
  return MPI_SUCCESS;
}

void Hierarchical::ReleaseSlot(int index) {
  if (index < 0) return;
  Round& round = rounds_[At(index)];
  if (--round.waiting_slots > 0) return;
  Hold(-round.received_bytes);
  round.arrived = Lease();
}

// Blocks of one source (a member) for all that this rank holds, in the order of held(0).
void Hierarchical::Deliver(int source, const std::byte* from) {
  const Holding& holding = holdings_[0];
  const std::vector<int>& held = routes_.held(0);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    const std::int64_t bytes = holding.size(row, source);
    if (bytes == 0) continue;
    CopyBytes(held[At(row)] == routes_.position()
                  ? exchange_.receive + exchange_.receive_offset[At(RankOfMember(source))]
                  : holding.blocks.data() + holding.start(row, source),
              from, bytes);
    from += bytes;
  }
}

void Hierarchical::DeliverOwn() {
  const Holding& holding = holdings_[0];
  const std::vector<int>& held = routes_.held(0);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    const bool own = held[At(row)] == routes_.position();
    const std::size_t rank = At(routes_.rank(held[At(row)]));
    if (exchange_.send_bytes[rank] == 0 || (in_place_ && !own)) continue;
    CopyBytes(own ? exchange_.receive + exchange_.receive_offset[rank]
                  : holding.blocks.data() + holding.start(row, self_),
              exchange_.send + exchange_.send_offset[rank], exchange_.send_bytes[rank]);
  }
  SettleCopies();
}

int Hierarchical::ExchangeBetweenGroups(int level) {
  const Routes::Phase& phase = routes_.phase(level);
  if (level < last_) {
    if (const int error = ReservePlace(level)) return error;
  }
  for (const Routes::Step& step : phase.steps) {
    const int error =
        staggered_ && level == last_ ? PostStaggeredStep(step) : PostStep(level, step);
    if (error != MPI_SUCCESS) return error;
  }
  if (level < last_) KeepOwnRows(level);
  while (oldest_receive_ < receives_.size()) {
    if (const int error = FinishOldest(receives_, oldest_receive_, level)) return error;
  }
  while (oldest_send_ < sends_.size()) {
    if (const int error = FinishOldest(sends_, oldest_send_, level)) return error;
  }
  receives_.clear();
  sends_.clear();
  oldest_receive_ = oldest_send_ = 0;
  if (!in_place_) Hold(-holdings_[At(level - 1)].total());
  holdings_[At(level - 1)] = {};
  lap_.EndsAs(level == last_ ? &Trace::inter_node_s : &Trace::data_s);
  return MPI_SUCCESS;
}

int Hierarchical::PostStep(int level, const Routes::Step& step) {
  if (const int error = PostReceive(level, step.receive)) return error;
  for (int s = step.sends.begin; s < step.sends.end; ++s) {
    if (const int error = PostSend(level, routes_.phase(level).sends[At(s)])) return error;
  }
  return MPI_SUCCESS;
}

// A step has as many smaller ones as its groups have members: of each, the receive before the
// sends, as windows need.
int Hierarchical::PostStaggeredStep(const Routes::Step& step) {
  const Holding& holding = holdings_[At(last_ - 1)];
  for (int s = 0; s < std::max(holding.sources, step.receive.sources.size()); ++s) {
    if (s < step.receive.sources.size()) {
      const std::size_t rank = At(routes_.rank(step.receive.sources.begin + s));
      if (exchange_.receive_bytes[rank] > 0) {
        std::byte* const place = exchange_.receive + exchange_.receive_offset[rank];
        if (const int error =
                Receive(last_, place, exchange_.receive_bytes[rank], step.receive.from, nullptr)) {
          return error;
        }
      }
    }
    for (int i = step.sends.begin; s < holding.sources && i < step.sends.end; ++i) {
      const Routes::Send& send = routes_.phase(last_).sends[At(i)];
      const std::byte* const from =
          in_place_ ? PlaceToSend(send) : holding.blocks.data() + holding.start(send.held.begin, s);
      if (const int error = SendOn(from, holding.size(send.held.begin, s), send.to)) return error;
    }
  }
  return MPI_SUCCESS;
}

int Hierarchical::PostReceive(int level, const Routes::Receive& receive) {
  if (level < last_) {
    const Holding& holding = holdings_[At(level)];
    const int begin = routes_.group(level).begin;
    std::int64_t bytes = 0;
    for (int row = 0; row < static_cast<int>(routes_.held(level).size()); ++row) {
      for (int s = receive.sources.begin; s < receive.sources.end; ++s) {
        bytes += holding.size(row, s - begin);
      }
    }
    return Receive(level, nullptr, bytes, receive.from, &receive);
  }
  std::int64_t bytes = 0;
  std::byte* first = nullptr;
  bool in_one_piece = true;
  for (int s = receive.sources.begin; s < receive.sources.end; ++s) {
    const std::size_t rank = At(routes_.rank(s));
    const std::int64_t size = exchange_.receive_bytes[rank];
    if (size == 0) continue;
    std::byte* const place = exchange_.receive + exchange_.receive_offset[rank];
    if (first == nullptr) first = place;
    in_one_piece = in_one_piece && place == first + bytes;
    bytes += size;
  }
  return Receive(level, in_one_piece ? first : nullptr, bytes, receive.from, &receive);
}

// Into a message of its own if there is no place to receive into.
int Hierarchical::Receive(int level, std::byte* into, std::int64_t bytes, int from,
                          const Routes::Receive* arrival) {
  if (bytes == 0) return MPI_SUCCESS;
  while (receives_.size() - oldest_receive_ >= window_) {
    if (const int error = FinishOldest(receives_, oldest_receive_, level)) return error;
  }
  Flight flight{.request = MPI_REQUEST_NULL, .staging = {}, .bytes = bytes, .arrival = nullptr};
  if (into == nullptr) {
    flight.arrival = arrival;
    flight.staging = Lease(bytes);
    into = flight.staging.data();
    if (into == nullptr) return MPI_ERR_NO_MEM;
    Stage(bytes);
  }
  receives_.push_back(std::move(flight));
  return ReceiveBytes(into, bytes, routes_.rank(from), Tag::kNode, exchange_.communicator,
                      &receives_.back().request);
}

int Hierarchical::PostSend(int level, const Routes::Send& send) {
  const Holding& holding = holdings_[At(level - 1)];
  const std::int64_t begin = holding.start(send.held.begin, 0);
  const std::int64_t end = holding.offset[At(send.held.end) * At(holding.sources)];
  return SendOn(in_place_ ? PlaceToSend(send) : holding.blocks.data() + begin, end - begin,
                send.to);
}

int Hierarchical::SendOn(const std::byte* from, std::int64_t bytes, int to) {
  if (bytes == 0) return MPI_SUCCESS;
  while (sends_.size() - oldest_send_ >= window_) {
    if (const int error = FinishOldest(sends_, oldest_send_, last_)) return error;
  }
  CountMessage();
  sends_.push_back(
      {.request = MPI_REQUEST_NULL, .staging = {}, .bytes = bytes, .arrival = nullptr});
  return SendBytes(from, bytes, routes_.rank(to), Tag::kNode, exchange_.communicator,
                   &sends_.back().request);
}

int Hierarchical::FinishOldest(std::vector<Flight>& flights, std::size_t& oldest, int level) {
  Flight& flight = flights[oldest++];
  if (const int error = WaitForAll({&flight.request, 1})) return error;
  if (flight.arrival == nullptr) return MPI_SUCCESS;
  lap_.EndsAs(level == last_ ? &Trace::inter_node_s : &Trace::data_s);
  Unpack(level, flight);
  flight.staging = Lease();
  Stage(-flight.bytes);
  SettleCopies();
  lap_.EndsAs(&Trace::copy_s);
  return MPI_SUCCESS;
}

void Hierarchical::Unpack(int level, const Flight& flight) {
  const std::byte* from = flight.staging.data();
  const Range sources = flight.arrival->sources;
  const Holding& holding = holdings_[At(level)];
  const int begin = routes_.group(level).begin;
  const std::vector<int>& held = routes_.held(level);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    if (held[At(row)] != routes_.position()) {
      const std::int64_t start = holding.start(row, sources.begin - begin);
      const std::int64_t bytes = holding.start(row, sources.end - 1 - begin) +
                                 holding.size(row, sources.end - 1 - begin) - start;
      CopyBytes(holding.blocks.data() + start, from, bytes);
      from += bytes;
      continue;
    }
    for (int s = sources.begin; s < sources.end; ++s) {
      const std::size_t rank = At(routes_.rank(s));
      if (exchange_.receive_bytes[rank] == 0) continue;
      CopyBytes(exchange_.receive + exchange_.receive_offset[rank], from,
                exchange_.receive_bytes[rank]);
      from += exchange_.receive_bytes[rank];
    }
  }
}

// What was gathered here for destinations that this rank holds at the next level too.
void Hierarchical::KeepOwnRows(int level) {
  const Holding& before = holdings_[At(level - 1)];
  const Holding& holding = holdings_[At(level)];
  const int first = routes_.phase(level).kept.begin;
  const int own_begin = routes_.group(level - 1).begin - routes_.group(level).begin;
  const std::vector<int>& held = routes_.held(level);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    if (held[At(row)] == routes_.position()) continue;
    CopyBytes(
        holding.blocks.data() + holding.start(row, own_begin),
        before.blocks.data() + before.start(first + row, 0),
        before.offset[At(first + row + 1) * At(before.sources)] - before.start(first + row, 0));
  }
  SettleCopies();
  lap_.EndsAs(&Trace::rearrange_s);
}

int Run(const BlockExchange& exchange, const Routes& routes, int radix, int window, bool staggered,
        Trace* trace) {
  try {
    return Hierarchical(exchange, routes, radix, window, staggered, trace).Run();
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  }
}

}  // namespace

int CoalescedExchange(const BlockExchange& exchange, const Routes& routes, int radix, int window,
                      Trace* trace) {
  return Run(exchange, routes, radix, window, false, trace);
}

int StaggeredExchange(const BlockExchange& exchange, const Routes& routes, int radix, int window,
                      Trace* trace) {
  return Run(exchange, routes, radix, window, true, trace);
}

}  // namespace tutti::mpi
