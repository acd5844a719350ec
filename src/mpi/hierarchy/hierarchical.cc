#include "hierarchy/hierarchical.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "hierarchy/hierarchical_run.h"
#include "message.h"

namespace tutti::mpi {

int Hierarchical::ReservePlace(int level) {
  Holding& holding = holdings_[Index(level)];
  if (in_place_ || holding.total() == 0) return MPI_SUCCESS;
  holding.blocks = Lease(holding.total());
  if (holding.blocks.data() == nullptr) return MPI_ERR_NO_MEM;
  Hold(holding.total());
  return MPI_SUCCESS;
}

int Hierarchical::ExchangeInsideGroup() {
  if (const int error = ReservePlace(0)) return error;
  DeliverOwn();
  watch_.Charge(&Trace::rearrange_s);
  size_t finished = 0;
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

int Hierarchical::Post(size_t index) {
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
    for (size_t s = round.first_slot; s < round.end_slot; ++s) {
      ReleaseSlot(slot_round_[Index(slots_[s])]);
    }
    return MPI_SUCCESS;
  }
  const std::byte* message = nullptr;
  if (round.end_slot - round.first_slot == 1 && slot_round_[Index(slots_[round.first_slot])] >= 0) {
    round.sent_from = slot_round_[Index(slots_[round.first_slot])];
    message = slot_at_[Index(slots_[round.first_slot])];
  } else {
    watch_.Charge(&Trace::data_s);
    round.gathered = Lease(round.sent_bytes);
    if (round.gathered.data() == nullptr) return MPI_ERR_NO_MEM;
    Stage(round.sent_bytes);
    std::byte* to = round.gathered.data();
    for (size_t s = round.first_slot; s < round.end_slot; ++s) {
      const int slot = slots_[s];
      if (slot_round_[Index(slot)] < 0) {
        for (const int d : routes_.bundle(Member(slot - slot % round.stride))) {
          const size_t rank = Index(routes_.rank(d));
          if (exchange_.send_bytes[rank] == 0) continue;
          CopyBytes(to, exchange_.send + exchange_.send_offset[rank], exchange_.send_bytes[rank]);
          to += exchange_.send_bytes[rank];
        }
      } else {
        CopyBytes(to, slot_at_[Index(slot)], sent_[s]);
        to += sent_[s];
        ReleaseSlot(slot_round_[Index(slot)]);
      }
    }
    SettleCopies();
    message = round.gathered.data();
    watch_.Charge(&Trace::copy_s);
  }
  CountMessage();
  return SendBytes(message, round.sent_bytes, RankOfMember(Member(round.distance)), Tag::kData,
                   exchange_.communicator, &round.send);
}

int Hierarchical::Finish(size_t index) {
  Round& round = rounds_[index];
  std::array<MPI_Request, 2> requests = {round.receive, round.send};
  if (const int error = WaitForAll(requests)) return error;
  watch_.Charge(&Trace::data_s);
  if (round.sent_from >= 0) {
    ReleaseSlot(round.sent_from);
  } else {
    Stage(-round.sent_bytes);
  }
  round.gathered = Lease();
  const std::byte* from = round.arrived.data();
  const int64_t past = int64_t{round.stride} * radix_;
  for (size_t s = round.first_slot; s < round.end_slot; ++s) {
    const int slot = slots_[s];
    if (slot < past) {
      Deliver(Member(-slot), from);
    } else {
      slot_at_[Index(slot)] = from;
      slot_round_[Index(slot)] = static_cast<int>(index);
      ++round.waiting_slots;
    }
    if (received_[s] > 0) from += received_[s];
  }
  if (round.waiting_slots == 0) {
    Hold(-round.received_bytes);
    round.arrived = Lease();
  }
  SettleCopies();
  watch_.Charge(&Trace::rearrange_s);
  return MPI_SUCCESS;
}

void Hierarchical::ReleaseSlot(int index) {
  if (index < 0) return;
  Round& round = rounds_[Index(index)];
  if (--round.waiting_slots > 0) return;
  Hold(-round.received_bytes);
  round.arrived = Lease();
}

// Blocks of one source (a member) for all that this rank holds, in the order of held(0).
void Hierarchical::Deliver(int source, const std::byte* from) {
  const Holding& holding = holdings_[0];
  const std::vector<int>& held = routes_.held(0);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    const int64_t bytes = holding.size(row, source);
    if (bytes == 0) continue;
    CopyBytes(held[Index(row)] == routes_.position()
                  ? exchange_.receive + exchange_.receive_offset[Index(RankOfMember(source))]
                  : holding.blocks.data() + holding.start(row, source),
              from, bytes);
    from += bytes;
  }
}

void Hierarchical::DeliverOwn() {
  const Holding& holding = holdings_[0];
  const std::vector<int>& held = routes_.held(0);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    const bool own = held[Index(row)] == routes_.position();
    const size_t rank = Index(routes_.rank(held[Index(row)]));
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
  if (!in_place_) Hold(-holdings_[Index(level - 1)].total());
  holdings_[Index(level - 1)] = {};
  watch_.Charge(level == last_ ? &Trace::inter_node_s : &Trace::data_s);
  return MPI_SUCCESS;
}

int Hierarchical::PostStep(int level, const Routes::Step& step) {
  if (const int error = PostReceive(level, step.receive)) return error;
  for (int s = step.sends.begin; s < step.sends.end; ++s) {
    if (const int error = PostSend(level, routes_.phase(level).sends[Index(s)])) return error;
  }
  return MPI_SUCCESS;
}

// A step has as many smaller ones as its groups have members: of each, the receive before the
// sends, as windows need.
int Hierarchical::PostStaggeredStep(const Routes::Step& step) {
  const Holding& holding = holdings_[Index(last_ - 1)];
  for (int s = 0; s < std::max(holding.sources, step.receive.sources.size()); ++s) {
    if (s < step.receive.sources.size()) {
      const size_t rank = Index(routes_.rank(step.receive.sources.begin + s));
      if (exchange_.receive_bytes[rank] > 0) {
        std::byte* const place = exchange_.receive + exchange_.receive_offset[rank];
        if (const int error = Receive(last_, place, exchange_.receive_bytes[rank],
                                      step.receive.from, nullptr, s)) {
          return error;
        }
      }
    }
    for (int i = step.sends.begin; s < holding.sources && i < step.sends.end; ++i) {
      const Routes::Send& send = routes_.phase(last_).sends[Index(i)];
      const std::byte* const from =
          in_place_ ? PlaceToSend(send) : holding.blocks.data() + holding.start(send.held.begin, s);
      if (const int error = SendOn(from, holding.size(send.held.begin, s), send.to, s)) {
        return error;
      }
    }
  }
  return MPI_SUCCESS;
}

int Hierarchical::PostReceive(int level, const Routes::Receive& receive) {
  if (level < last_) {
    const Holding& holding = holdings_[Index(level)];
    const int begin = routes_.group(level).begin;
    int64_t bytes = 0;
    for (int row = 0; row < static_cast<int>(routes_.held(level).size()); ++row) {
      for (int s = receive.sources.begin; s < receive.sources.end; ++s) {
        bytes += holding.size(row, s - begin);
      }
    }
    return Receive(level, nullptr, bytes, receive.from, &receive);
  }
  int64_t bytes = 0;
  std::byte* first = nullptr;
  bool in_one_piece = true;
  for (int s = receive.sources.begin; s < receive.sources.end; ++s) {
    const size_t rank = Index(routes_.rank(s));
    const int64_t size = exchange_.receive_bytes[rank];
    if (size == 0) continue;
    std::byte* const place = exchange_.receive + exchange_.receive_offset[rank];
    if (first == nullptr) first = place;
    in_one_piece = in_one_piece && place == first + bytes;
    bytes += size;
  }
  return Receive(level, in_one_piece ? first : nullptr, bytes, receive.from, &receive);
}

// Into a message of its own if there is no place to receive into.
int Hierarchical::Receive(int level, std::byte* into, int64_t bytes, int from,
                          const Routes::Receive* arrival, int lane) {
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
  return ReceiveBytes(into, bytes, routes_.rank(from), TagOf(lane), exchange_.communicator,
                      &receives_.back().request);
}

int Hierarchical::PostSend(int level, const Routes::Send& send) {
  const Holding& holding = holdings_[Index(level - 1)];
  const int64_t begin = holding.start(send.held.begin, 0);
  const int64_t end = holding.offset[Index(send.held.end) * Index(holding.sources)];
  return SendOn(in_place_ ? PlaceToSend(send) : holding.blocks.data() + begin, end - begin,
                send.to);
}

int Hierarchical::SendOn(const std::byte* from, int64_t bytes, int to, int lane) {
  if (bytes == 0) return MPI_SUCCESS;
  while (sends_.size() - oldest_send_ >= window_) {
    if (const int error = FinishOldest(sends_, oldest_send_, last_)) return error;
  }
  CountMessage();
  sends_.push_back(
      {.request = MPI_REQUEST_NULL, .staging = {}, .bytes = bytes, .arrival = nullptr});
  return SendBytes(from, bytes, routes_.rank(to), TagOf(lane), exchange_.communicator,
                   &sends_.back().request);
}

int Hierarchical::FinishOldest(std::vector<Flight>& flights, size_t& oldest, int level) {
  Flight& flight = flights[oldest++];
  if (const int error = WaitForAll({&flight.request, 1})) return error;
  if (flight.arrival == nullptr) return MPI_SUCCESS;
  watch_.Charge(level == last_ ? &Trace::inter_node_s : &Trace::data_s);
  Unpack(level, flight);
  flight.staging = Lease();
  Stage(-flight.bytes);
  SettleCopies();
  watch_.Charge(&Trace::copy_s);
  return MPI_SUCCESS;
}

void Hierarchical::Unpack(int level, const Flight& flight) {
  const std::byte* from = flight.staging.data();
  const Range sources = flight.arrival->sources;
  const Holding& holding = holdings_[Index(level)];
  const int begin = routes_.group(level).begin;
  const std::vector<int>& held = routes_.held(level);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    if (held[Index(row)] != routes_.position()) {
      const int64_t start = holding.start(row, sources.begin - begin);
      const int64_t bytes = holding.start(row, sources.end - 1 - begin) +
                            holding.size(row, sources.end - 1 - begin) - start;
      CopyBytes(holding.blocks.data() + start, from, bytes);
      from += bytes;
      continue;
    }
    for (int s = sources.begin; s < sources.end; ++s) {
      const size_t rank = Index(routes_.rank(s));
      if (exchange_.receive_bytes[rank] == 0) continue;
      CopyBytes(exchange_.receive + exchange_.receive_offset[rank], from,
                exchange_.receive_bytes[rank]);
      from += exchange_.receive_bytes[rank];
    }
  }
}

// What was gathered here for destinations that this rank holds at the next level too.
void Hierarchical::KeepOwnRows(int level) {
  const Holding& before = holdings_[Index(level - 1)];
  const Holding& holding = holdings_[Index(level)];
  const int first = routes_.phase(level).kept.begin;
  const int own_begin = routes_.group(level - 1).begin - routes_.group(level).begin;
  const std::vector<int>& held = routes_.held(level);
  for (int row = 0; row < static_cast<int>(held.size()); ++row) {
    if (held[Index(row)] == routes_.position()) continue;
    CopyBytes(holding.blocks.data() + holding.start(row, own_begin),
              before.blocks.data() + before.start(first + row, 0),
              before.offset[Index(first + row + 1) * Index(before.sources)] -
                  before.start(first + row, 0));
  }
  SettleCopies();
  watch_.Charge(&Trace::rearrange_s);
}

namespace {

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
