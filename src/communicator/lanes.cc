#include "lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "futex.h"

namespace tutti {

Lanes::Lanes(int32_t rank, std::unique_ptr<TcpTransport> transport, std::vector<Endpoint> peers,
             LocalRanks local)
    : rank_(rank),
      transport_(std::move(transport)),
      peers_(std::move(peers)),
      local_(std::move(local)) {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  if (local_.area == nullptr) {
    const IpAddress own = peers_[static_cast<size_t>(rank_)].address;
    crowded_ = std::count_if(peers_.begin(), peers_.end(),
                             [own](const Endpoint& peer) { return peer.address == own; }) > cores;
    return;
  }
  const auto others = std::count(local_.index.begin(), local_.index.end(), -1);
  const auto here = static_cast<int64_t>(local_.index.size()) - others;
  all_local_ = others == 0;
  crowded_ = here > cores;
  const uint64_t token = local_.area->place().token;
  if (!all_local_ && wake_.Open(token, LocalIndex(rank_))) transport_->Watch(wake_.fd(), woken_);
  for (int32_t index = 0; index < here; ++index)
    bells_.emplace_back(local_.area->bell(index), index, token, wake_);
}

RingChannel Lanes::ChannelOf(int32_t from, int32_t to, int32_t channel) {
  const auto which = channel == 0 ? LocalArea::Ring::kPlans : LocalArea::Ring::kDirect;
  const int32_t source = LocalIndex(from), target = LocalIndex(to);
  const bool readable = !local_.processes.empty();
  return {.state = &local_.area->ring(source, target, which),
          .bytes = local_.area->RingBytes(source, target, which),
          .capacity = LocalArea::kRingBytes,
          .wake_sender = &bells_[static_cast<size_t>(source)],
          .wake_receiver = &bells_[static_cast<size_t>(target)],
          .signature = &signature_,
          .reference_bytes = readable ? &reference_bytes_ : nullptr,
          .sender_process = readable ? local_.processes[static_cast<size_t>(source)] : 0,
          .name = fmt::format("connection {} -> {} channel {}", from, to, channel),
          .sender = fmt::format("rank {}", from)};
}

Lane& Lanes::To(int32_t peer, int32_t channel) {
  Lane& lane = to_[{peer, channel}];
  if (lane.connection != nullptr) return lane;
  if (HasRing(peer, channel)) {
    lane.connection = &ring_senders_.emplace_back(ChannelOf(rank_, peer, channel));
  } else {
    lane.connection = transport_->SendTo(peer, peers_[static_cast<size_t>(peer)], channel);
    uses_tcp_ = true;
  }
  return lane;
}

Lane& Lanes::From(int32_t peer, int32_t channel) {
  Lane& lane = from_[{peer, channel}];
  if (lane.connection != nullptr) return lane;
  if (HasRing(peer, channel)) {
    lane.connection = &ring_receivers_.emplace_back(ChannelOf(peer, rank_, channel));
  } else {
    lane.connection = transport_->ReceiveFrom(peer, channel);
    uses_tcp_ = true;
  }
  return lane;
}

void Lanes::SetSignature(uint64_t signature) {
  signature_ = signature;
  transport_->SetSignature(signature);
}

bool Lanes::Poll() {
  if (broken_) return false;
  bool any = false;
  for (RingSender& sender : ring_senders_)
    if (sender.Advance()) any = true;
  if (uses_tcp_ && transport_->Poll(0)) any = true;
  return any;
}

void Lanes::Wait(uint32_t bell) {
  constexpr int64_t kNsAMs = 1'000'000;
  if (!uses_tcp_) return FutexWait(own_bell().bell, bell, kWaitMs * kNsAMs);
  transport_->Poll(kWaitMs);
  if (std::exchange(woken_, 0) != 0) wake_.Drain();
}

void Lanes::WakeOthers() {
  for (size_t index = 0; index < bells_.size(); ++index)
    if (static_cast<int32_t>(index) != LocalIndex(rank_))
      bells_[index].Wake(WaitsFor::kForMessages);
}

void Lanes::Break() {
  broken_ = true;
  for (RingSender& sender : ring_senders_) sender.Revoke();
  transport_->Break();
}

}  // namespace tutti
