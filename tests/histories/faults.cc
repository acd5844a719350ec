// What is lost, stands still or dies, and rules that are broken on purpose.
#include <array>
#include <memory>
#include <string_view>

#include "control_link.h"
#include "tcp_frames.h"
#include "world.h"

namespace tutti::histories {

namespace {

// Of a connection to the next daemon of a ring: it says who it is, then that.
bool IsOfARing(std::string_view first) {
  constexpr size_t kWord = 8, kHead = 3 * kWord, kLinkWords = 5;
  constexpr size_t kKind = kWord + kHead + kLinkWords * kWord + kWord;
  if (first.size() < kKind + kWord) return false;
  const auto* words = reinterpret_cast<const std::byte*>(first.data());
  return tcp::WordAt(words + kWord) == static_cast<uint64_t>(service::PeerKind::kLink) &&
         tcp::WordAt(words + kKind) == static_cast<uint64_t>(service::PeerKind::kRing);
}

}  // namespace

void World::PlanRingFaults() {
  // Of their own numbers, so that seeds known for what they found find it still.
  constexpr uint64_t kOwn = 0x52494e47, kHundred = 100, kOften = 20, kMost = 2;
  const auto random = std::make_shared<Random>(options_.seed ^ kOwn);
  if (random->Below(kHundred) >= kOften) return;
  for (uint64_t left = 1 + random->Below(kMost); left > 0; --left)
    kernel_->At(After(static_cast<int64_t>(random->Below(uint64_t{150 * kMs}))), [this, random] {
      if (kernel_->ResetOne(IsOfARing, *random)) Note("a connection of a ring is reset");
    });
}

void World::PlanFaults() {
  PlanRingFaults();
  // Of ways and connections no more than two: after three the communicator may fail.
  for (uint64_t left = Draw(3); left > 0; --left) {
    noisy_ = true;
    const int64_t at = After(DrawNs(150 * kMs));
    if (Chance(25)) {
      kernel_->At(at, [this] {
        if (kernel_->ResetOne(kControlPort)) Note("a connection is reset");
      });
      continue;
    }
    const auto hosts = static_cast<uint64_t>(network_.hosts);
    const auto from = static_cast<int32_t>(Draw(hosts));
    const auto to =
        static_cast<int32_t>((static_cast<uint64_t>(from) + 1 + Draw(hosts - 1)) % hosts);
    const bool both = Chance(40), all = Chance(15);
    const auto route = static_cast<int32_t>(Draw(static_cast<uint64_t>(network_.routes)));
    const int64_t lasts = 1 + (Chance(30) ? DrawNs(3 * kSecond) : DrawNs(200 * kMs));
    const auto set = [this, from, to, both, all, route](bool cut) {
      Note("{} from H{} to H{}{}, route {}: {}", all ? "all ways" : "the way", from, to,
           both ? " and back" : "", route, cut ? "cut" : "mended");
      for (int32_t each = 0; each < network_.routes; ++each) {
        if (!all && each != route) continue;
        kernel_->SetCut(from, to, each, cut);
        if (both) kernel_->SetCut(to, from, each, cut);
      }
    };
    kernel_->At(at, [set] { set(true); });
    kernel_->At(at + lasts, [set] { set(false); });
  }
  if (Chance(20)) {
    noisy_ = true;
    const auto host = static_cast<int32_t>(Draw(static_cast<uint64_t>(network_.hosts)));
    const int64_t lasts = 1 + DrawNs(Chance(20) ? 2 * kSecond : 150 * kMs);
    kernel_->At(After(DrawNs(150 * kMs)), [this, host, lasts] {
      if (hosts_[static_cast<size_t>(host)].core == nullptr) return;
      Note("H{} stands still for {} us", host, lasts / kUs);
      hosts_[static_cast<size_t>(host)].stands_still_until_ns = After(lasts);
    });
  }
}

void World::PlanDeath() {
  if (!Chance(50)) return;
  // A host without a word takes many times as long as the others.
  death_ = static_cast<Death>(1 + Draw(6));
  if (death_ == Death::kHost && Chance(60)) death_ = Death::kDaemon;
  victim_ = &ranks_[Draw(ranks_.size())];
  Group& group = victim_->group();
  victim_host_ = victim_->host();
  if (death_ == Death::kEarlyLeave || death_ == Death::kWrongCall) {
    const uint64_t operation = Draw(group.program.size());
    if (death_ == Death::kEarlyLeave)
      victim_->leaves_after = operation;
    else if (group.program[operation].is_exchange || group.num_ranks < 2)
      death_ = Death::kNone;
    else
      victim_->calls_wrongly = operation;
    group.is_touched = death_ != Death::kNone;
    return;
  }
  for (SimulatedRank& rank : ranks_)
    if (&rank == victim_ || (death_ != Death::kRank && rank.host() == victim_host_))
      rank.group().is_touched = true;
  if (Chance(40)) {
    constexpr std::array kPhases = {BarrierPhase::kOpening, BarrierPhase::kPrepared,
                                    BarrierPhase::kHolding, BarrierPhase::kSwitching,
                                    BarrierPhase::kFailed};
    in_phase_ = kPhases[Draw(kPhases.size())];
    times_in_phase_ = 1 + Draw(2);
    return;
  }
  ++pending_;
  kernel_->At(After(DrawNs(Chance(20) ? 10 * kMs : 120 * kMs)), [this] {
    --pending_;
    LetDie();
  });
}

void World::LetDie() {
  if (died_ns_ != 0) return;
  died_ns_ = kernel_->now_ns();
  if (death_ == Death::kRank) {
    if (victim_->stage() == SimulatedRank::Stage::kOver) return;
    Note("rank {} is killed", victim_->Name());
    kernel_->Enter(victim_host_);
    victim_->Die(hosts_[static_cast<size_t>(victim_host_)].core != nullptr);
    return Wake(victim_host_);
  }
  Note("H{} {}", victim_host_, death_ == Death::kHost ? "falls silent" : "has its daemon killed");
  EndDaemon(victim_host_, death_ == Death::kHost);
  if (death_ != Death::kDaemonThatComesAgain) return;
  ++pending_;
  kernel_->At(After(1 + DrawNs(500 * kMs)), [this] {
    --pending_;
    Note("the daemon of H{} starts again", victim_host_);
    StartDaemon(victim_host_);
  });
}

BarrierStep World::OnBarrier(const BarrierState& state, const BarrierEvent& event) {
  BarrierEvent heard = event;
  if (options_.fault == SeededFault::kOwnNumber && event.kind == BarrierEvent::Kind::kMessage)
    heard.value = 0;
  BarrierStep step = service::Step(state, heard);
  if (options_.fault == SeededFault::kNoHold && event.kind == BarrierEvent::Kind::kCommand &&
      state.phase == BarrierPhase::kHolding) {
    BarrierState open = state;
    open.phase = BarrierPhase::kActive;
    step = service::Step(open, event);
    step.state.phase = BarrierPhase::kHolding;
  }
  if (!in_phase_ || !step.refused.empty() || died_ns_ != 0) return step;
  // The kernel knows whose call this is: the victim's.
  const bool drains = *in_phase_ == BarrierPhase::kFailed && step.state.draining && !state.draining;
  if (drains || (step.state.phase == *in_phase_ && state.phase != *in_phase_ &&
                 *in_phase_ != BarrierPhase::kFailed))
    if (--times_in_phase_ == 0) {
      in_phase_.reset();
      ++pending_;
      kernel_->At(kernel_->now_ns(), [this] {
        --pending_;
        LetDie();
      });
    }
  return step;
}

// On the wire: what a host sends is changed on its way. The other rules OnBarrier() breaks.
void World::BreakARule() {
  if (options_.fault == SeededFault::kResumesWrong)
    kernel_->SetTamper([](std::string& bytes) {
      auto* words = reinterpret_cast<std::byte*>(bytes.data());
      if (bytes.size() != tcp::kWelcomeBytes || tcp::WordAt(words) != tcp::kWelcomeMagic) return;
      constexpr size_t kMessage = 8, kByte = 16;
      if (tcp::WordAt(words + kMessage) > 0)
        tcp::PutWord(tcp::WordAt(words + kByte) + 8, words + kByte);
    });
  if (options_.fault == SeededFault::kForgetsAFrame)
    kernel_->SetTamper([](std::string& bytes) {
      // The first frame of a connection: its head, kind, numbers of words and texts, id, frames heard.
      constexpr size_t kKind = 8, kHeard = 48, kSize = 56;
      auto* words = reinterpret_cast<std::byte*>(bytes.data());
      if (bytes.size() < kSize ||
          tcp::WordAt(words) >> 56 != static_cast<uint64_t>(FrameType::kDaemon) ||
          tcp::WordAt(words + kKind) != static_cast<uint64_t>(service::PeerKind::kLink))
        return;
      if (tcp::WordAt(words + kHeard) > 0)
        tcp::PutWord(tcp::WordAt(words + kHeard) + 1, words + kHeard);
    });
}

}  // namespace tutti::histories
