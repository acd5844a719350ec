// Communicators, what their ranks run, and those that come of regrouping.
#include <array>
#include <utility>

#include "bootstrap.h"
#include "world.h"

namespace tutti::histories {

std::vector<Planned> World::DrawProgram(int32_t num_ranks, uint64_t most) {
  constexpr std::array kKinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllReduce,
                                 CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                 CollectiveKind::kBroadcast, CollectiveKind::kAllToAll};
  std::vector<Planned> program;
  for (uint64_t left = 1 + Draw(most); left > 0; --left) {
    Planned& planned = program.emplace_back();
    planned.is_exchange = num_ranks > 1 && Chance(25);
    if (planned.is_exchange && Chance(60))
      planned.exchangers = 2 + static_cast<int32_t>(Draw(static_cast<uint64_t>(num_ranks - 1)));
    planned.kind = kKinds[Draw(kKinds.size())];
    planned.count = 1 + static_cast<int64_t>(Draw(Chance(20) ? 1'500 : 40));
    planned.root = planned.kind == CollectiveKind::kBroadcast
                       ? static_cast<int32_t>(Draw(static_cast<uint64_t>(num_ranks)))
                       : 0;
  }
  return program;
}

Group& World::AddGroup(const std::string& tenant, const UniqueId& id, int32_t num_ranks) {
  Group& group = groups_.emplace_back();
  group.tenant = tenant;
  group.id = id;
  group.number = static_cast<int32_t>(groups_.size());
  group.num_ranks = num_ranks;
  const auto address = bootstrap::Decode(id);
  group.label = service::CommunicatorId{address->secret, {}}.Label();
  group.ranks.resize(static_cast<size_t>(num_ranks));
  return group;
}

SimulatedRank& World::AddRank(Group& group, int32_t number, int32_t host, int64_t joins_ns) {
  SimulatedRank& rank = ranks_.emplace_back(*this, group, number, host);
  group.ranks[static_cast<size_t>(number)] = &rank;
  rank.depth = 1 + Draw(4);
  rank.pause_ns = Chance(20) ? 20 * kMs : DrawNs(2 * kMs);
  ++active_;
  kernel_->At(joins_ns, [&rank] {
    if (!rank.has_died()) rank.Join();
  });
  return rank;
}

void World::MakeGroup(const std::string& tenant) {
  const int32_t most = by_controller_ ? 2 : kNics;
  std::vector<int32_t> hosts;
  for (int32_t host = 0; host < network_.hosts; ++host)
    if (hosts.empty() || Chance(85))
      for (int32_t left = 1 + static_cast<int32_t>(Draw(static_cast<uint64_t>(most))); left > 0;
           --left)
        hosts.push_back(host);
  if (hosts.size() == 1) hosts.push_back(network_.hosts - 1);
  for (size_t i = hosts.size(); i > 1; --i) std::swap(hosts[i - 1], hosts[Draw(i)]);
  kernel_->Enter(hosts.front());
  Core& core = *hosts_[static_cast<size_t>(hosts.front())].core;
  const Result<UniqueId> id = core.MakeId(*core.FindTenant(0, Token(tenant)));
  Group& group = AddGroup(tenant, *id, static_cast<int32_t>(hosts.size()));
  group.root_host = hosts.front();
  group.program = DrawProgram(group.num_ranks, Chance(50) ? 40 : 12);
  group.epochs.resize(group.program.size());
  group.shrinks = Chance(60);
  for (size_t rank = 0; rank < hosts.size(); ++rank)
    AddRank(group, static_cast<int32_t>(rank), hosts[rank], After(DrawNs(20 * kMs)));
}

void World::Regrouped(SimulatedRank& rank, const Result<tutti::Regrouped>& become, bool grows) {
  Note("rank {} becomes {}", rank.Name(),
       become ? fmt::format("{} of {}", become->rank, become->num_ranks) : become.error().message);
  if (!become) {
    // Where a host fell silent nobody knows whether it lives: half of the ranks are too few.
    if (death_ != Death::kHost && !noisy_)
      Break(fmt::format("H5: rank {} may not go on: {}", rank.Name(), become.error().message));
    kernel_->At(After(1), [&rank] { rank.Leave("it left with operations unfinished"); });
    return;
  }
  const std::string key(reinterpret_cast<const char*>(become->id.bytes.data()),
                        become->id.bytes.size());
  Group*& group = regrouped_[key];
  if (group == nullptr) {
    group = &AddGroup(rank.group().tenant, become->id, become->num_ranks);
    group->came_of_regrouping = true;
    group->program = DrawProgram(become->num_ranks, 4);
    group->epochs.resize(group->program.size());
    group->is_touched = death_ == Death::kHost || noisy_;
    if (grows)
      for (int32_t newcomer = rank.group().num_ranks; newcomer < become->num_ranks; ++newcomer)
        AddRank(*group, newcomer, static_cast<int32_t>(Draw(static_cast<uint64_t>(network_.hosts))),
                After(DrawNs(20 * kMs)));
  }
  if (group->num_ranks != become->num_ranks || become->rank >= become->num_ranks ||
      group->ranks[static_cast<size_t>(become->rank)] != nullptr)
    return Break(fmt::format("H5: rank {} becomes {} of {}, another one, too", rank.Name(),
                             become->rank, become->num_ranks));
  ++outcome_.shrunk_ranks;
  // It leaves when it has joined the other one, as a program does.
  const int64_t joins_ns = After(1 + DrawNs(20 * kMs));
  AddRank(*group, become->rank, rank.host(), joins_ns);
  kernel_->At(joins_ns + 1 + DrawNs(20 * kMs), [&rank] {
    if (!rank.has_died()) rank.Leave("it left with operations unfinished");
  });
}

}  // namespace tutti::histories
