#include "regroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "control_link.h"
#include "tcp_frames.h"

namespace tutti {
namespace {

constexpr size_t kIdBytes = sizeof(UniqueId::bytes);
constexpr int64_t kMostRegrouped = 1 << 20;

std::string BytesOf(const UniqueId& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

UniqueId IdOf(std::string_view bytes) {
  UniqueId id;
  std::memcpy(id.bytes.data(), bytes.data(), kIdBytes);
  return id;
}

int64_t WordOf(std::string_view bytes, size_t index) {
  return static_cast<int64_t>(
      tcp::WordAt(reinterpret_cast<const std::byte*>(bytes.data() + 8 * index)));
}

// One a word, ascending. Nothing: others.
std::optional<std::vector<int32_t>> RanksOf(std::string_view words) {
  std::vector<int32_t> ranks;
  for (size_t i = 0; i < words.size() / sizeof(int64_t); ++i) {
    const int64_t rank = WordOf(words, i);
    if (rank < 0 || rank > kMostRegrouped) return std::nullopt;
    if (!ranks.empty() && rank <= ranks.back()) return std::nullopt;
    ranks.push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

}  // namespace

std::string RegroupAsk::Text() const {
  const std::string without =
      excluded.empty() ? "" : fmt::format(" without rank {}", fmt::join(excluded, ", "));
  return (grows_to > 0 ? fmt::format("to grow to {} ranks", grows_to) : "to shrink") + without;
}

// Ranks to grow to, whether there is an id, the number of those left out; they; the id.
std::string Encode(const RegroupAsk& ask) {
  std::vector<int64_t> words = {ask.grows_to, ask.id ? 1 : 0,
                                static_cast<int64_t>(ask.excluded.size())};
  words.insert(words.end(), ask.excluded.begin(), ask.excluded.end());
  return WordsToBytes(words) + (ask.id ? BytesOf(*ask.id) : "");
}

std::optional<RegroupAsk> DecodeAsk(std::string_view bytes) {
  constexpr size_t kHead = 3, kWord = 8;
  if (bytes.size() < kHead * kWord) return std::nullopt;
  const int64_t grows_to = WordOf(bytes, 0), has_id = WordOf(bytes, 1), excluded = WordOf(bytes, 2);
  if (grows_to < 0 || grows_to > kMostRegrouped || has_id < 0 || has_id > 1 || excluded < 0 ||
      excluded > static_cast<int64_t>(RegroupAsk::kMaxExcluded))
    return std::nullopt;
  const size_t words = kHead + static_cast<size_t>(excluded);
  if (bytes.size() != words * kWord + (has_id == 1 ? kIdBytes : 0)) return std::nullopt;
  RegroupAsk ask{.grows_to = static_cast<int32_t>(grows_to)};
  auto ranks = RanksOf(bytes.substr(kHead * kWord, static_cast<size_t>(excluded) * kWord));
  if (!ranks) return std::nullopt;
  ask.excluded = *std::move(ranks);
  if (has_id == 1) ask.id = IdOf(bytes.substr(words * kWord));
  return ask;
}

std::optional<Regrouped> Regrouped::For(int32_t was) const {
  const auto found = std::lower_bound(survivors.begin(), survivors.end(), was);
  if (found == survivors.end() || *found != was) return std::nullopt;
  return Regrouped{id, num_ranks, static_cast<int32_t>(found - survivors.begin()), survivors};
}

// Ranks and rank; the id; who survives.
std::string Encode(const Regrouped& regrouped) {
  return WordsToBytes({regrouped.num_ranks, regrouped.rank}) + BytesOf(regrouped.id) +
         WordsToBytes({regrouped.survivors.begin(), regrouped.survivors.end()});
}

std::optional<Regrouped> DecodeRegrouped(std::string_view bytes) {
  constexpr size_t kWord = 8, kHead = 2 * kWord + kIdBytes;
  if (bytes.size() < kHead || (bytes.size() - kHead) % kWord != 0) return std::nullopt;
  const int64_t ranks = WordOf(bytes, 0), rank = WordOf(bytes, 1);
  if (ranks < 1 || ranks > kMostRegrouped || rank < 0 || rank >= ranks) return std::nullopt;
  Regrouped regrouped{IdOf(bytes.substr(2 * kWord)), static_cast<int32_t>(ranks),
                      static_cast<int32_t>(rank)};
  const std::string_view words = bytes.substr(kHead);
  const size_t survivors = words.size() / kWord;
  if (survivors > 0 &&
      (static_cast<int64_t>(survivors) > ranks || rank >= static_cast<int64_t>(survivors)))
    return std::nullopt;
  auto were = RanksOf(words);
  if (!were) return std::nullopt;
  regrouped.survivors = *std::move(were);
  return regrouped;
}

Status Roll::Enter(int32_t rank, const RegroupAsk& ask) {
  if (!ask_) {
    ask_ = ask;
    first_ = rank;
  }
  if (is_excluded(rank))
    return InvalidArgument(fmt::format("rank {} asks {}", first_, ask_->Text()));
  if (ask.excluded != ask_->excluded || ask.grows_to != ask_->grows_to)
    return InvalidArgument(
        fmt::format("rank {} asks {}, rank {} {}", first_, ask_->Text(), rank, ask.Text()));
  if (!ask_->id) ask_->id = ask.id;
  seen_[static_cast<size_t>(rank)] = Seen::kPresent;
  return {};
}

bool Roll::is_excluded(int32_t rank) const {
  return ask_ && std::binary_search(ask_->excluded.begin(), ask_->excluded.end(), rank);
}

Status Roll::MayGoOn() const {
  const auto present = std::count(seen_.begin(), seen_.end(), Seen::kPresent);
  const auto gone = std::count(seen_.begin(), seen_.end(), Seen::kGone);
  const auto left = static_cast<int64_t>(seen_.size()) - gone;
  const auto lowest =
      std::find_if(seen_.begin(), seen_.end(), [](Seen seen) { return seen != Seen::kGone; });
  const bool has_lowest = lowest != seen_.end() && *lowest == Seen::kPresent;
  if (2 * present > left || (2 * present == left && has_lowest)) return {};
  return MakeError(
      ErrorCode::kPeerFailed,
      fmt::format("{} of {} ranks are here and {} have gone; to go on, more than half of "
                  "the others have to be here, or half with the lowest",
                  present, seen_.size(), gone));
}

std::vector<int32_t> Roll::Survivors() const {
  std::vector<int32_t> survivors;
  for (size_t rank = 0; rank < seen_.size(); ++rank)
    if (seen_[rank] == Seen::kPresent) survivors.push_back(static_cast<int32_t>(rank));
  return survivors;
}

Result<Regrouped> Roll::BecomeOf(size_t survivor, const std::optional<UniqueId>& made) const {
  const auto survivors = static_cast<int32_t>(Survivors().size());
  const bool grows = ask_->grows_to > 0;
  const std::optional<UniqueId>& id = grows ? ask_->id : made;
  if (!id) return InvalidArgument("no rank gave the unique id by which others are to join");
  if (grows && ask_->grows_to < survivors)
    return InvalidArgument(fmt::format("{} ranks cannot grow to {}", survivors, ask_->grows_to));
  return Regrouped{*id, grows ? ask_->grows_to : survivors, static_cast<int32_t>(survivor)};
}

}  // namespace tutti
