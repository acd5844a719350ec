#include "regrouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tutti::service {
namespace {

constexpr size_t kAskWords = 3;  // secret, rank

bool Contains(const std::vector<int32_t>& ranks, int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

void Regrouping::Ask(int32_t rank, const RegroupAsk& ask, int64_t until_ns, Answer answer) {
  if (asked_.empty()) until_ns_ = until_ns;
  asked_[rank] = {ask, std::move(answer)};
  if (leader_ != SIZE_MAX && leader_ != party_.self && others_[leader_].link != nullptr)
    others_[leader_].link->Send(AskFrame(rank, ask));
}

void Regrouping::SetGone(int32_t rank) {
  asked_.erase(rank);
  if (!Contains(gone_, rank)) gone_.push_back(rank);
  for (Guest& guest : guests_)
    if (!guest.lost) guest.link->Send(GoneFrame());
  if (leader_ != SIZE_MAX && leader_ != party_.self && others_[leader_].link != nullptr)
    others_[leader_].link->Send(GoneFrame());
}

PeerFrame Regrouping::AskFrame(int32_t rank, const RegroupAsk& ask) const {
  return {.kind = PeerKind::kRegroup,
          .words = {static_cast<int64_t>(party_.secret[0]), static_cast<int64_t>(party_.secret[1]),
                    rank},
          .texts = {Encode(ask)}};
}

PeerFrame Regrouping::GoneFrame() const {
  PeerFrame frame{
      .kind = PeerKind::kRegroupGone,
      .words = {static_cast<int64_t>(party_.secret[0]), static_cast<int64_t>(party_.secret[1]), 0}};
  frame.words.insert(frame.words.end(), gone_.begin(), gone_.end());
  return frame;
}

void Regrouping::TellLeader(PeerLink& leader) {
  leader.Send(GoneFrame());
  for (const auto& [rank, asked] : asked_) leader.Send(AskFrame(rank, asked.ask));
}

void Regrouping::Dial(size_t daemon, int64_t now_ns) {
  Other& other = others_[daemon];
  if (other.since_ns == 0) other.since_ns = now_ns;
  other.lost = false;
  other.link = PeerLink::Connect(
      loop_, party_.daemons[daemon].control,
      {.frame = [this, daemon](const PeerFrame& frame) { Hear(daemon, frame); },
       .lost = [this, daemon](const std::string&) { others_[daemon].lost = true; }});
}

void Regrouping::Hear(size_t daemon, const PeerFrame& frame) {
  const auto ranks = [&](size_t from) {
    for (size_t i = from; i < frame.words.size(); ++i)
      if (Contains(party_.daemons[daemon].ranks, frame.words[i]))
        heard_gone_.push_back(static_cast<int32_t>(frame.words[i]));
  };
  switch (frame.kind) {
    case PeerKind::kRegroupNobody:
      others_[daemon].nobody = true;
      return;
    case PeerKind::kRegroupGone:
      return ranks(kAskWords);
    case PeerKind::kRegrouped: {
      const auto regrouped =
          frame.texts.size() == 1 ? DecodeRegrouped(frame.texts[0]) : std::nullopt;
      const auto asked = frame.words.size() == 1 ? asked_.find(static_cast<int32_t>(frame.words[0]))
                                                 : asked_.end();
      // Also where it had been silent for so long that this daemon had begun to lead.
      if (daemon >= party_.self || !regrouped || asked == asked_.end()) return;
      const Answer answer = std::move(asked->second.answer);
      asked_.erase(asked);
      over_ = asked_.empty();
      return answer(*regrouped);
    }
    case PeerKind::kFailed:
      if (daemon != leader_ || frame.words.size() != 1 || frame.texts.size() != 1) return;
      return AnswerAll(MakeError(static_cast<ErrorCode>(frame.words[0]), frame.texts[0]));
    default:
      return;
  }
}

void Regrouping::Accept(std::unique_ptr<PeerLink> link, const PeerFrame& frame) {
  Guest& guest = guests_.emplace_back();
  guest.link = std::move(link);
  guest.link->SetHandlers(
      {.frame = [this, &guest](const PeerFrame& more) { HearGuest(guest, more); },
       .lost = [&guest](const std::string&) { guest.lost = true; }});
  guest.link->Send(GoneFrame());
  HearGuest(guest, frame);
}

void Regrouping::HearGuest(Guest& guest, const PeerFrame& frame) {
  const bool is_ours = frame.words.size() >= kAskWords &&
                       static_cast<uint64_t>(frame.words[0]) == party_.secret[0] &&
                       static_cast<uint64_t>(frame.words[1]) == party_.secret[1];
  if (!is_ours) return;
  const auto is_elsewhere = [this](int64_t rank) {
    return rank >= 0 && rank < party_.num_ranks &&
           !Contains(party_.daemons[party_.self].ranks, rank);
  };
  if (frame.kind == PeerKind::kRegroupGone) {
    for (size_t i = kAskWords; i < frame.words.size(); ++i)
      if (is_elsewhere(frame.words[i])) heard_gone_.push_back(static_cast<int32_t>(frame.words[i]));
    return;
  }
  const auto ask = frame.kind == PeerKind::kRegroup && frame.texts.size() == 1
                       ? DecodeAsk(frame.texts[0])
                       : std::nullopt;
  if (!ask || !is_elsewhere(frame.words[2])) return;
  const auto rank = static_cast<int32_t>(frame.words[2]);
  guest.ranks.push_back(rank);
  heard_.emplace_back(rank, *ask);
}

bool Regrouping::is_quiet() const {
  return !over_ || std::all_of(guests_.begin(), guests_.end(), [](const Guest& guest) {
    return guest.lost || guest.link->is_quiet();
  });
}

bool Regrouping::Advance(int64_t now_ns) {
  if (over_) return is_quiet();
  // Only where a rank of this daemon asks there is something to do.
  if (asked_.empty()) return false;
  for (size_t daemon = 0; daemon < party_.self; ++daemon) {
    Other& other = others_[daemon];
    const std::vector<int32_t>& out = asked_.begin()->second.ask.excluded;
    const std::vector<int32_t>& ranks = party_.daemons[daemon].ranks;
    const bool is_out = std::all_of(ranks.begin(), ranks.end(), [&](int32_t rank) {
      return Contains(out, rank) || Contains(heard_gone_, rank);
    });
    if (is_out || other.is_gone()) continue;
    if (other.link == nullptr || other.lost) {
      other.refused = other.lost && other.link != nullptr && other.link->was_refused();
      if (other.refused) continue;
      Dial(daemon, now_ns);
      leader_ = SIZE_MAX;
    }
    const bool silent = other.link != nullptr && !other.link->is_connected() &&
                        now_ns - other.since_ns > kSilenceNs;
    if (!silent) return Follow(daemon, now_ns);
  }
  leader_ = party_.self;
  return Lead(now_ns) && is_quiet();
}

bool Regrouping::Follow(size_t leader, int64_t now_ns) {
  Other& other = others_[leader];
  if (leader_ != leader && other.link != nullptr) {
    leader_ = leader;
    TellLeader(*other.link);
  }
  // The leader's time passes first, so that it says who did not come.
  constexpr int64_t kGraceNs = 2'000'000'000;
  if (now_ns > until_ns_ + kGraceNs)
    AnswerAll(MakeError(ErrorCode::kPeerFailed, "not all ranks that are there asked in time"));
  return over_;
}

bool Regrouping::Lead(int64_t now_ns) {
  Roll roll(party_.num_ranks);
  std::string differs;
  const auto enter = [&](int32_t rank, const RegroupAsk& ask) {
    if (const Status entered = roll.Enter(rank, ask); !entered && !roll.is_excluded(rank))
      differs = entered.error().message;
  };
  for (const auto& [rank, asked] : asked_) enter(rank, asked.ask);
  for (const Guest& guest : guests_)
    for (const auto& [rank, ask] : heard_)
      if (!guest.lost && Contains(guest.ranks, rank)) enter(rank, ask);
  for (const int32_t rank : gone_) roll.SetGone(rank);
  for (const int32_t rank : heard_gone_) roll.SetGone(rank);
  if (!differs.empty()) {
    AnswerAll(MakeError(ErrorCode::kInvalidArgument, differs));
    return true;
  }
  bool all_known = true, settled = true;
  for (size_t daemon = 0; daemon < party_.daemons.size(); ++daemon) {
    const std::vector<int32_t>& ranks = party_.daemons[daemon].ranks;
    Other& other = others_[daemon];
    const bool misses = std::any_of(ranks.begin(), ranks.end(),
                                    [&roll](int32_t rank) { return roll.is_missing(rank); });
    if (!misses) continue;
    bool silent = false;
    if (daemon != party_.self) {
      if (other.lost && other.link != nullptr) {
        other.refused = other.link->was_refused();
        if (!other.refused && !other.nobody) Dial(daemon, now_ns);
      } else if (other.link == nullptr && !other.nobody) {
        Dial(daemon, now_ns);
        // Its ranks that have gone; or that it has none.
        if (other.link != nullptr) other.link->Send(GoneFrame());
      }
      if (other.is_gone()) {
        for (const int32_t rank : ranks) roll.SetGone(rank);
        continue;
      }
      const bool connected = other.link != nullptr && other.link->is_connected();
      silent = !connected && now_ns - other.since_ns > kSilenceNs;
      if (!connected && !silent) settled = false;
    }
    for (const int32_t rank : ranks)
      if (roll.is_missing(rank) && !silent && !roll.is_excluded(rank)) all_known = false;
  }
  const Status may = roll.MayGoOn();
  if (now_ns <= until_ns_ && !(all_known && (may || settled))) return false;
  if (!may) {
    AnswerAll(tl::unexpected(may.error()));
    return true;
  }
  std::optional<UniqueId> made;
  if (roll.needs_id()) {
    const Result<UniqueId> id = make_id_();
    if (!id) {
      AnswerAll(tl::unexpected(id.error()));
      return true;
    }
    made = *id;
  }
  std::map<int32_t, Regrouped> all;
  std::vector<Awaited> awaited;
  const std::vector<int32_t> survivors = roll.Survivors();
  for (size_t i = 0; i < survivors.size(); ++i) {
    const Result<Regrouped> become = roll.BecomeOf(i, made);
    if (!become) {
      AnswerAll(tl::unexpected(become.error()));
      return true;
    }
    all[survivors[i]] = *become;
    for (const Member& member : party_.daemons)
      if (Contains(member.ranks, survivors[i])) awaited.push_back({become->rank, member.control});
  }
  await_(all.begin()->second.id, std::move(awaited));
  AnswerAll(all);
  return true;
}

void Regrouping::AnswerAll(const Result<std::map<int32_t, Regrouped>>& become) {
  over_ = true;
  const Error left_out{ErrorCode::kPeerFailed, "the others leave this rank out"};
  for (Guest& guest : guests_) {
    if (guest.lost) continue;
    if (!become) {
      guest.link->Send({.kind = PeerKind::kFailed,
                        .words = {static_cast<int64_t>(become.error().code)},
                        .texts = {become.error().message}});
      continue;
    }
    for (const int32_t rank : guest.ranks) {
      const auto found = become->find(rank);
      if (found != become->end())
        guest.link->Send(
            {.kind = PeerKind::kRegrouped, .words = {rank}, .texts = {Encode(found->second)}});
    }
  }
  for (const auto& [rank, asked] : std::exchange(asked_, {})) {
    if (!become) {
      asked.answer(tl::unexpected(become.error()));
      continue;
    }
    const auto found = become->find(rank);
    if (found == become->end())
      asked.answer(tl::unexpected(left_out));
    else
      asked.answer(found->second);
  }
}

}  // namespace tutti::service
