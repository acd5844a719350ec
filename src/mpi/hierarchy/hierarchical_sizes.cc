#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hierarchy/hierarchical_run.h"
#include "hierarchy/sizes_message.h"
#include "message.h"

namespace tutti::mpi {

void Hierarchical::PlanRounds() {
  for (int64_t wide = 1; wide < members_; wide *= radix_) {
    const auto stride = static_cast<int>(wide);
    for (int digit = 1; digit < radix_ && digit * wide < members_; ++digit) {
      Round round;
      round.distance = digit * stride;
      round.stride = stride;
      round.first_slot = slots_.size();
      for (int64_t first = round.distance; first < members_; first += wide * radix_) {
        for (int64_t slot = first; slot < std::min<int64_t>(first + wide, members_); ++slot) {
          slots_.push_back(static_cast<int>(slot));
        }
      }
      round.end_slot = slots_.size();
      rounds_.push_back(std::move(round));
    }
  }
  sent_.resize(slots_.size());
  received_.resize(slots_.size());
  slot_at_.resize(Index(members_), nullptr);
  slot_round_.resize(Index(members_), -1);
  if (trace_ != nullptr) trace_->rounds += static_cast<int64_t>(rounds_.size());
}

// Sizes of all bundles that pass here, digit by digit, and from them the holding of level 0.
int Hierarchical::ExchangeMemberSizes() {
  for (int m = 0; m < members_; ++m) widest_ = std::max(widest_, routes_.bundle(m).size());
  slot_sizes_.resize(widest_ * Index(members_));
  for (int slot = 0; slot < members_; ++slot) {
    size_t at = Index(slot) * widest_;
    for (const int d : routes_.bundle(Member(slot))) {
      slot_sizes_[at++] = exchange_.send_bytes[Index(routes_.rank(d))];
    }
  }
  if (exchange_.uniform_bytes >= 0) {
    std::fill(slot_sizes_.begin(), slot_sizes_.end(), exchange_.uniform_bytes);
  }
  for (size_t first = 0; first < rounds_.size();) {
    size_t end = first;
    while (end < rounds_.size() && rounds_[end].stride == rounds_[first].stride) ++end;
    if (const int error = ExchangeSizesOfDigit(first, end)) return error;
    if (first == 0) {
      // Their data need no other sizes: they travel while the sizes of the other digits do.
      while (posted_ < std::min<size_t>(end, kRoundsInFlight)) {
        if (const int error = Post(posted_++)) return error;
      }
    }
    first = end;
  }
  Holding& holding = holdings_[0];
  holding.sources = members_;
  const size_t rows = routes_.held(0).size();
  holding.bytes.resize(rows * Index(members_));
  for (int slot = 0; slot < members_; ++slot) {
    const int source = Member(-slot);
    for (size_t row = 0; row < rows; ++row) {
      holding.bytes[row * Index(members_) + Index(source)] =
          slot_sizes_[Index(slot) * widest_ + row];
    }
  }
  PlaceHolding(0);
  watch_.Charge(&Trace::prepare_s);
  return MPI_SUCCESS;
}

// Where all blocks of all ranks are equal, every rank knows every size.
void Hierarchical::MeasureUniformRound(Round& round) {
  const int64_t past = int64_t{round.stride} * radix_;
  for (size_t s = round.first_slot; s < round.end_slot; ++s) {
    const int slot = slots_[s];
    const int sent_to = Member(slot - slot % round.stride);
    const int kept_for = Member(slot - static_cast<int>(slot % past));
    const auto bytes_of = [&](int member) {
      return static_cast<int64_t>(routes_.bundle(member).size()) * exchange_.uniform_bytes;
    };
    round.sent_bytes += sent_[s] = bytes_of(sent_to);
    round.received_bytes += received_[s] = bytes_of(kept_for);
  }
}

int Hierarchical::ExchangeSizesOfDigit(size_t first, size_t end) {
  if (exchange_.uniform_bytes >= 0) {
    for (size_t k = first; k < end; ++k) MeasureUniformRound(rounds_[k]);
    return MPI_SUCCESS;
  }
  const size_t count = end - first;
  std::vector<int64_t> numbers;
  std::vector<int64_t> start_in(count + 1), start_out(count + 1);
  const int stride = rounds_[first].stride;
  const auto sent_to = [&](int slot) { return Member(slot - slot % stride); };
  const int64_t past = int64_t{stride} * radix_;
  const auto kept_for = [&](int slot) { return Member(slot - static_cast<int>(slot % past)); };
  for (size_t k = 0; k < count; ++k) {
    const Round& round = rounds_[first + k];
    int64_t in = 0;
    int64_t out = 0;
    for (size_t s = round.first_slot; s < round.end_slot; ++s) {
      in += static_cast<int64_t>(routes_.bundle(kept_for(slots_[s])).size());
      out += static_cast<int64_t>(routes_.bundle(sent_to(slots_[s])).size());
    }
    start_in[k + 1] = start_in[k] + SizesMessageBytes(in);
    start_out[k + 1] = start_out[k] + SizesMessageBytes(out);
  }
  const Lease in(start_in.back());
  const Lease out(start_out.back());
  if (in.data() == nullptr || out.data() == nullptr) return MPI_ERR_NO_MEM;
  std::vector<MPI_Request> requests(2 * count, MPI_REQUEST_NULL);
  for (size_t k = 0; k < count; ++k) {
    if (const int error = ReceiveBytes(in.data() + start_in[k], start_in[k + 1] - start_in[k],
                                       RankOfMember(Member(-rounds_[first + k].distance)),
                                       Tag::kSizes, exchange_.communicator, &requests[k])) {
      return error;
    }
  }
  for (size_t k = 0; k < count; ++k) {
    Round& round = rounds_[first + k];
    numbers.clear();
    for (size_t s = round.first_slot; s < round.end_slot; ++s) {
      const size_t at = Index(slots_[s]) * widest_;
      for (size_t i = 0; i < routes_.bundle(sent_to(slots_[s])).size(); ++i) {
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
  for (size_t k = 0; k < count; ++k) {
    Round& round = rounds_[first + k];
    size_t expected = 0;
    for (size_t s = round.first_slot; s < round.end_slot; ++s) {
      expected += routes_.bundle(kept_for(slots_[s])).size();
    }
    numbers.resize(expected);
    DecodeSizes(in.data() + start_in[k], numbers);
    auto number = numbers.begin();
    for (size_t s = round.first_slot; s < round.end_slot; ++s) {
      const size_t at = Index(slots_[s]) * widest_;
      for (size_t i = 0; i < routes_.bundle(kept_for(slots_[s])).size(); ++i) {
        slot_sizes_[at + i] = *number;
        received_[s] += *number++;
      }
      round.received_bytes += received_[s];
    }
  }
  watch_.Charge(&Trace::metadata_s);
  return MPI_SUCCESS;
}

// Sizes of what the groups of level - 1 exchange at this level, where more passes than the
// receiver's own blocks, and from them the holding of this level.
int Hierarchical::ExchangeGroupSizes(int level) {
  const Routes::Phase& phase = routes_.phase(level);
  const Holding& from = holdings_[Index(level - 1)];
  Holding& holding = holdings_[Index(level)];
  const std::vector<int>& held = routes_.held(level);
  const Range around = routes_.group(level);
  holding.sources = around.size();
  holding.bytes.resize(held.size() * Index(holding.sources));
  const int own_begin = routes_.group(level - 1).begin - around.begin;
  for (size_t row = 0; row < held.size(); ++row) {
    for (int s = 0; s < from.sources; ++s) {
      holding.bytes[row * Index(holding.sources) + Index(own_begin + s)] =
          from.size(phase.kept.begin + static_cast<int>(row), s);
    }
  }
  if (exchange_.uniform_bytes >= 0) {
    std::fill(holding.bytes.begin(), holding.bytes.end(), exchange_.uniform_bytes);
    PlaceHolding(level);
    watch_.Charge(&Trace::prepare_s);
    return MPI_SUCCESS;
  }
  const bool passes = held.size() > 1;
  std::vector<MPI_Request> requests;
  requests.reserve(phase.steps.size() + phase.sends.size());
  std::vector<Lease> in;
  std::vector<Lease> out;
  std::vector<int64_t> numbers;
  for (const Routes::Step& step : phase.steps) {
    const auto count = static_cast<int64_t>(held.size() - 1) * step.receive.sources.size();
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
      if (routes_.held(level - 1)[Index(row)] == send.to) continue;
      for (int s = 0; s < from.sources; ++s) numbers.push_back(from.size(row, s));
    }
    out.emplace_back(SizesMessageBytes(static_cast<int64_t>(numbers.size())));
    if (out.back().data() == nullptr) return MPI_ERR_NO_MEM;
    CountMessage();
    if (const int error = SendBytes(out.back().data(), EncodeSizes(numbers, out.back().data()),
                                    routes_.rank(send.to), Tag::kSizes, exchange_.communicator,
                                    &requests.emplace_back())) {
      return error;
    }
  }
  if (const int error = WaitForAll(requests)) return error;
  for (size_t k = 0; k < phase.steps.size(); ++k) {
    const Range sources = phase.steps[k].receive.sources;
    numbers.resize((held.size() - 1) * Index(sources.size()));
    if (passes) DecodeSizes(in[k].data(), numbers);
    auto number = numbers.begin();
    for (size_t row = 0; row < held.size(); ++row) {
      const bool own = held[row] == routes_.position();
      for (int s = sources.begin; s < sources.end; ++s) {
        holding.bytes[row * Index(holding.sources) + Index(s - around.begin)] =
            own ? exchange_.receive_bytes[Index(routes_.rank(s))] : *number++;
      }
    }
  }
  watch_.Charge(&Trace::metadata_s);
  PlaceHolding(level);
  watch_.Charge(&Trace::prepare_s);
  return MPI_SUCCESS;
}

void Hierarchical::PlaceHolding(int level) {
  Holding& holding = holdings_[Index(level)];
  const std::vector<int>& held = routes_.held(level);
  holding.offset.resize(holding.bytes.size() + 1);
  size_t at = 0;
  for (const int destination : held) {
    const bool own = destination == routes_.position();
    for (int s = 0; s < holding.sources; ++s, ++at) {
      holding.offset[at + 1] = holding.offset[at] + (own ? 0 : holding.bytes[at]);
    }
  }
}

}  // namespace tutti::mpi
