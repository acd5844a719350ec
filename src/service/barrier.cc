#include "barrier.h"

#include <algorithm>

namespace tutti::service {
namespace {

using Event = BarrierEvent::Kind;
using Action = BarrierAction::Kind;
using Phase = BarrierPhase;

int32_t Next(const BarrierState& state) { return (state.self + 1) % state.daemons; }

uint64_t LeastLaunched(const BarrierState& state) {
  uint64_t least = state.launched[0];
  for (size_t rank = 1; rank < static_cast<size_t>(state.local_ranks); ++rank)
    least = std::min(least, state.launched[rank]);
  return least;
}

BarrierStep Refuse(const BarrierState& state, std::string_view why) {
  return BarrierStep(state, why);
}

BarrierStep Fail(const BarrierState& state, int32_t culprit) {
  BarrierStep step(state);
  step.state.phase = Phase::kFailed;
  step.state.culprit = culprit;
  if (state.daemons > 1 && Next(state) != culprit)
    step.Add({.kind = Action::kSendAbort, .origin = culprit});
  step.Add({.kind = Action::kFailPending, .origin = culprit});
  return step;
}

// Once all local ranks have launched M the new epoch is the current one.
void LeaveIfDone(BarrierState& state) {
  if (state.phase != Phase::kSwitching || LeastLaunched(state) < state.maximum) return;
  state.phase = Phase::kActive;
  ++state.epoch;
  state.draining = true;
}

void HeardOne(BarrierState& state, uint64_t value) {
  state.maximum = std::max(state.maximum, value);
  if (++state.heard < state.daemons) return;
  state.phase = Phase::kSwitching;
  LeaveIfDone(state);
}

void Hold(BarrierStep& step) {
  BarrierState& state = step.state;
  uint64_t largest = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(state.local_ranks); ++rank)
    largest = std::max(largest, state.launched[rank] + (state.exchanged[rank] ? 1 : 0));
  state.phase = Phase::kHolding;
  state.heard = 0;
  state.maximum = 0;
  if (state.daemons > 1)
    step.Add(
        {.kind = Action::kSend, .origin = state.self, .epoch = state.epoch + 1, .value = largest});
  HeardOne(state, largest);
}

BarrierStep OnCommand(const BarrierState& state, int32_t rank, bool is_exchange) {
  if (rank < 0 || rank >= state.local_ranks) return Refuse(state, "no such local rank");
  if (!MayLaunch(state, rank)) return Refuse(state, "launches are held");
  BarrierStep step(state);
  const auto at = static_cast<size_t>(rank);
  const uint64_t sequence = state.launched[at] + 1;
  if (!is_exchange) step.state.launched.Set(at, sequence);
  step.state.exchanged.Set(at, is_exchange);
  const bool later = state.phase == Phase::kSwitching && sequence > state.maximum;
  step.Add({.kind = Action::kLaunch,
            .rank = rank,
            .epoch = state.epoch + (later ? 1 : 0),
            .value = sequence});
  LeaveIfDone(step.state);
  return step;
}

BarrierStep OnPrepare(const BarrierState& state, uint32_t epoch) {
  const bool again = state.phase == Phase::kOpening || state.phase == Phase::kPrepared;
  if (state.draining || (state.phase != Phase::kActive && !again))
    return Refuse(state, "busy: a reconfiguration is under way");
  if (epoch != state.epoch + 1) return Refuse(state, "not the next epoch");
  BarrierStep step(state);
  if (again) step.Add({.kind = Action::kClose, .epoch = epoch});
  step.Add({.kind = Action::kOpen, .epoch = epoch});
  step.state.phase = Phase::kOpening;
  return step;
}

BarrierStep OnOpened(const BarrierState& state, uint32_t epoch, bool well) {
  if (state.phase != Phase::kOpening || epoch != state.epoch + 1)
    return Refuse(state, "nothing was being opened");
  BarrierStep step(state);
  step.state.phase = well ? Phase::kPrepared : Phase::kActive;
  if (well)
    step.Add({.kind = Action::kTellPrepared, .epoch = epoch});
  else
    step.Add({.kind = Action::kClose, .epoch = epoch});
  return step;
}

BarrierStep OnDiscard(const BarrierState& state, uint32_t epoch) {
  if (state.phase != Phase::kOpening && state.phase != Phase::kPrepared)
    return Refuse(state, "nothing is prepared");
  if (epoch != state.epoch + 1) return Refuse(state, "not the next epoch");
  BarrierStep step(state);
  step.state.phase = Phase::kActive;
  step.Add({.kind = Action::kClose, .epoch = epoch});
  return step;
}

BarrierStep OnCommit(const BarrierState& state, uint32_t epoch) {
  const bool under_way = state.phase == Phase::kHolding || state.phase == Phase::kSwitching;
  if (epoch <= state.epoch || (under_way && epoch == state.epoch + 1))
    return BarrierStep(state);  // known already
  if (state.phase != Phase::kPrepared || epoch != state.epoch + 1)
    return Refuse(state, "not prepared");
  BarrierStep step(state);
  Hold(step);
  return step;
}

BarrierStep OnMessage(const BarrierState& state, const BarrierEvent& event) {
  const int32_t before = (state.self + state.daemons - 1) % state.daemons;
  if (state.daemons < 2 || event.epoch != state.epoch + 1 ||
      (state.phase != Phase::kPrepared && state.phase != Phase::kHolding))
    return Fail(state, before);
  BarrierStep step(state);
  if (state.phase == Phase::kPrepared) Hold(step);
  const int32_t expected = (state.self + state.daemons - step.state.heard) % state.daemons;
  if (event.origin != expected) return Fail(state, before);
  if (Next(state) != event.origin)
    step.Add({.kind = Action::kSend,
              .origin = event.origin,
              .epoch = event.epoch,
              .value = event.value});
  HeardOne(step.state, event.value);
  return step;
}

BarrierStep OnDrained(const BarrierState& state) {
  if (!state.draining) return Refuse(state, "nothing is being drained");
  BarrierStep step(state);
  step.state.draining = false;
  step.Add({.kind = Action::kClose, .epoch = state.epoch - 1});
  step.Add({.kind = Action::kTellSwitched, .epoch = state.epoch});
  return step;
}

bool IsFromController(Event kind) {
  return kind == Event::kPrepare || kind == Event::kDiscard || kind == Event::kCommit ||
         kind == Event::kInventory;
}

BarrierStep OnController(const BarrierState& state, const BarrierEvent& event) {
  if (event.generation < state.generation)
    return Refuse(state, "a newer controller has taken over");
  BarrierState newer = state;
  newer.generation = event.generation;
  if (event.kind == Event::kPrepare) return OnPrepare(newer, event.epoch);
  if (event.kind == Event::kDiscard) return OnDiscard(newer, event.epoch);
  if (event.kind == Event::kCommit) return OnCommit(newer, event.epoch);
  BarrierStep step(newer);
  step.Add({.kind = Action::kTellState, .epoch = newer.epoch});
  return step;
}

}  // namespace

std::string_view Name(BarrierPhase phase) {
  switch (phase) {
    case Phase::kActive:
      return "active";
    case Phase::kOpening:
      return "opening";
    case Phase::kPrepared:
      return "prepared";
    case Phase::kHolding:
      return "holding";
    case Phase::kSwitching:
      return "switching";
    case Phase::kFailed:
      break;
  }
  return "failed";
}

bool MayLaunch(const BarrierState& state, int32_t rank) {
  return rank >= 0 && rank < state.local_ranks && state.phase != Phase::kHolding &&
         state.phase != Phase::kFailed;
}

BarrierStep Step(const BarrierState& state, const BarrierEvent& event) {
  if (state.phase == Phase::kFailed) return Refuse(state, "the communicator has failed");
  if (IsFromController(event.kind)) return OnController(state, event);
  switch (event.kind) {
    case Event::kCommand:
    case Event::kExchange:
      return OnCommand(state, event.rank, event.kind == Event::kExchange);
    case Event::kOpened:
    case Event::kOpenFailed:
      return OnOpened(state, event.epoch, event.kind == Event::kOpened);
    case Event::kMessage:
      return OnMessage(state, event);
    case Event::kDrained:
      return OnDrained(state);
    default:
      return Fail(state, event.origin);  // kPeerLost, kAbort
  }
}

}  // namespace tutti::service
