#include "departures.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tutti {
namespace {

constexpr std::string_view kGone = " and is no longer there: ";

}  // namespace

void RankProgress::Add(const CallOfRank& completed) {
  if (completed.is_of_all) {
    ++collectives;
    return;
  }
  for (const Message& message : completed.messages) {
    Messages& with = messages[message.peer];
    ++(message.is_send ? with.sent : with.received);
  }
}

void RankProgress::AppendTo(std::vector<int64_t>& words) const {
  words.push_back(static_cast<int64_t>(collectives));
  for (const auto& [peer, with] : messages)
    words.insert(words.end(),
                 {peer, static_cast<int64_t>(with.sent), static_cast<int64_t>(with.received)});
}

std::optional<RankProgress> RankProgress::FromWords(std::span<const int64_t> words) {
  if (words.size() % kWordsAPeer != 1) return std::nullopt;
  RankProgress progress{.collectives = static_cast<uint64_t>(words[0])};
  for (size_t at = 1; at < words.size(); at += kWordsAPeer)
    progress.messages[static_cast<int32_t>(words[at])] = {static_cast<uint64_t>(words[at + 1]),
                                                          static_cast<uint64_t>(words[at + 2])};
  return progress;
}

bool Departures::Add(int32_t rank, const RankProgress& completed, const std::string& why) {
  const auto known = std::find_if(left_.begin(), left_.end(),
                                  [rank](const Left& left) { return left.rank == rank; });
  if (known == left_.end()) {
    left_.push_back({rank, completed, why});
    return true;
  }
  if (completed.Covers(known->completed)) return false;
  *known = {rank, completed, why};
  return true;
}

std::optional<std::string> Departures::WhyNever(int32_t rank, const RankProgress& completed,
                                                const CallOfRank& next) const {
  for (const Left& left : left_) {
    if (next.is_of_all) {
      if (completed.collectives < left.completed.collectives) continue;
      return fmt::format("rank {} calls its collective {}; rank {} completed {}{}{}", rank,
                         completed.collectives + 1, left.rank, left.completed.collectives, kGone,
                         left.why);
    }
    RankProgress::Messages wanted = completed.MessagesWith(left.rank);  // with the next call
    const RankProgress::Messages ended = left.completed.MessagesWith(rank);
    for (const Message& message : next.messages) {
      if (message.peer != left.rank) continue;
      if (message.is_send && ++wanted.sent > ended.received)
        return fmt::format("rank {} sends its message {} to rank {}, which received {}{}{}", rank,
                           wanted.sent, left.rank, ended.received, kGone, left.why);
      if (!message.is_send && ++wanted.received > ended.sent)
        return fmt::format("rank {} waits for message {} of rank {}, which sent {}{}{}", rank,
                           wanted.received, left.rank, ended.sent, kGone, left.why);
    }
  }
  return std::nullopt;
}

std::string Departures::FirstCause(const std::string& why_never) {
  const size_t last = why_never.rfind(kGone);
  const size_t before =
      last == why_never.npos || last == 0 ? why_never.npos : why_never.rfind(kGone, last - 1);
  return before == why_never.npos ? why_never : why_never.substr(before + kGone.size());
}

}  // namespace tutti
