// Whether what history.h says was kept: H3 to H6. H1 and H2 ranks check themselves.
#include <algorithm>

#include "world.h"

namespace tutti::histories {

void World::CheckCulprit(const SimulatedRank& rank, const std::string& why) {
  // A way that is lost for the second in which a daemon has to say who it is ends a join.
  if (noisy_ && rank.stage() == SimulatedRank::Stage::kJoining) rank.group().is_touched = true;
  if (!rank.group().is_touched)
    return Break(fmt::format("H3: rank {} fails, and nothing died: {}", rank.Name(), why));
  std::vector<std::string> names = {"it does not wait any longer"};
  if (noisy_) names.emplace_back("the root daemon has gone");
  if (death_ == Death::kDaemonThatComesAgain) names.emplace_back("is not of this daemon");
  if (death_ == Death::kWrongCall) names.emplace_back("do not run the same");
  if (death_ == Death::kRank || death_ == Death::kEarlyLeave)
    names.push_back(fmt::format("rank {}", victim_->rank()));
  if (death_ == Death::kDaemon || death_ == Death::kDaemonThatComesAgain ||
      death_ == Death::kHost) {
    names.push_back(fmt::format("(H{})", victim_host_));
    names.push_back(fmt::format("10.0.{}.1:", victim_host_));
  }
  // A connection to a host that fell silent says by itself that nothing comes back, and names its two ranks.
  if (death_ == Death::kHost && why.find("by whatever way") != std::string::npos)
    for (const SimulatedRank* other : rank.group().ranks)
      if (other != nullptr && other->host() == victim_host_) {
        names.push_back(fmt::format("connection {} -> ", other->rank()));
        names.push_back(fmt::format(" -> {} channel", other->rank()));
      }
  const bool is_named = std::any_of(names.begin(), names.end(), [&why](const std::string& name) {
    return why.find(name) != std::string::npos;
  });
  if (!is_named)
    return Break(
        fmt::format("H4: rank {} is told '{}', wanted '{}'", rank.Name(), why, names.back()));
  if (noisy_ || death_ == Death::kWrongCall || why.find(names.front()) != std::string::npos) return;
  const int64_t within = death_ == Death::kHost ? 11 * kSecond : kSecond;
  const int64_t since = std::max(died_ns_, rank.called_ns);
  if (kernel_->now_ns() - since > within)
    Break(fmt::format("H4: rank {} is told after {} ms: {}", rank.Name(),
                      (kernel_->now_ns() - since) / kMs, why));
}

// What daemons say where something hangs.
void World::NoteState() {
  for (int32_t number = 0; options_.prints && number < network_.hosts; ++number) {
    Core* core = hosts_[static_cast<size_t>(number)].core.get();
    if (core == nullptr) continue;
    kernel_->Enter(number);
    core->Answer(R"({"command":"comms"})",
                 [&](const std::string& text) { Note("H{}: {}", number, text); });
  }
}

void World::CheckEnd() {
  for (const SimulatedRank& rank : ranks_) {
    if (rank.has_died()) continue;
    if (rank.stage() != SimulatedRank::Stage::kOver) {
      NoteState();
      return Break("it hangs: " + rank.Where());
    }
    if (!rank.group().is_touched && !rank.has_completed()) return Break("H3: " + rank.Where());
  }
  for (const Change& change : changes_) {
    const Host& host = hosts_[static_cast<size_t>(change.host)];
    if (!change.is_answered && host.core != nullptr && host.life == change.life)
      return Break("H3: a request for a change is not answered");
  }
}

std::string World::WhatIsLeft() {
  std::string left;
  for (int32_t number = 0; number < network_.hosts; ++number) {
    Host& host = hosts_[static_cast<size_t>(number)];
    if (host.core == nullptr) continue;
    kernel_->Enter(number);
    host.core->Answer(R"({"command":"comms"})", [&](const std::string& text) {
      const Json answer = Json::parse(text);
      if (!answer["communicators"].empty())
        left = fmt::format("H{} still has {}", number, answer["communicators"].dump());
    });
    for (const char* tenant : {"A", "B"})
      if (const int32_t ranks = host.core->FindTenant(0, Token(tenant))->ranks; ranks != 0)
        left = fmt::format("H{} counts {} ranks of {}", number, ranks, tenant);
    if (left.empty() && kernel_->DescriptorsOf(number) != host.descriptors)
      left = fmt::format("H{} has {} descriptors, it began with {}", number,
                         kernel_->DescriptorsOf(number), host.descriptors);
    if (!left.empty()) break;
  }
  return left;
}

}  // namespace tutti::histories
