#include "shared_connection.h"

namespace tutti {

bool SharedConnection::TryPost(const Piece&) {
  ConnectionState& state = *channel_.state;
  if (posted_ - state.acked.load() >= kWindow) return false;
  state.claim[posted_ % kWindow].store(Claim::kOpen, std::memory_order_relaxed);
  state.posted.store(++posted_);
  channel_.wake_receiver->Wake(WaitsFor::kForMessages);
  return true;
}

bool SharedConnection::Save(uint64_t message, const Piece& source) {
  std::atomic<Claim>& claim = channel_.state->claim[message % kWindow];
  Claim found = Claim::kOpen;
  if (!claim.compare_exchange_strong(found, Claim::kSaving)) return false;
  Pack(source, BounceOf(message));
  claim.store(Claim::kSaved);
  channel_.wake_receiver->Wake(WaitsFor::kForMessages);
  return true;
}

bool SharedConnection::Begin() {
  ConnectionState& state = *channel_.state;
  if (state.posted.load() <= received_) return false;
  Claim found = Claim::kOpen;
  const bool taken = state.claim[received_ % kWindow].compare_exchange_strong(found, Claim::kTaken);
  if (!taken && found == Claim::kSaving) return false;
  saved_ = !taken;
  const auto& streams = channel_.program->ranks[static_cast<size_t>(channel_.sender)].streams;
  if (!saved_)
    source_ = SourceOf(*channel_.program, channel_.sender, *channel_.sender_binding,
                       streams[static_cast<size_t>(channel_.sender_stream)], received_);
  cursor_ = {};
  taking_ = true;
  return true;
}

Progress SharedConnection::TryTake(const Target& target, int64_t& budget) {
  if (!taking_ && !Begin()) return Progress::kNothing;
  const bool done = saved_
                        ? MovePacked(BounceOf(received_) + cursor_.bytes, target, cursor_, budget)
                        : Move(source_, target, cursor_, budget);
  if (!done) return Progress::kPart;
  taking_ = false;
  channel_.state->acked.store(++received_);
  channel_.wake_sender->Wake(WaitsFor::kForAnything);
  return Progress::kDone;
}

}  // namespace tutti
