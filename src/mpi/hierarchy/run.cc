#include "hierarchy/run.h"

#include <memory>
#include <new>
#include <optional>

#include "hierarchy/hierarchical.h"
#include "hierarchy/routes.h"

namespace tutti::mpi {

namespace {

using alltoallv::Method;

struct GroupsPart : CommunicatorState::Part {
  Groups groups;
  std::optional<Routes> nodes, levels;  // made at the first call that takes them
};

int PartOf(CommunicatorState& state, GroupsPart** part) {
  std::unique_ptr<CommunicatorState::Part>& kept = state.part(CommunicatorState::PartName::kGroups);
  if (kept == nullptr) {
    auto made = std::make_unique<GroupsPart>();
    if (const int error = FindGroups(state.duplicate(), &made->groups)) return error;
    kept = std::move(made);
  }
  *part = static_cast<GroupsPart*>(kept.get());
  return MPI_SUCCESS;
}

const Routes& RoutesOf(GroupsPart& part, int rank, Routes::Levels levels) {
  std::optional<Routes>& routes = levels == Routes::Levels::kAll ? part.levels : part.nodes;
  if (!routes.has_value()) routes.emplace(part.groups, rank, levels);
  return *routes;
}

}  // namespace

bool IsHierarchical(Method method) {
  return method == Method::kCoalesced || method == Method::kStaggered ||
         method == Method::kMultilevel;
}

int GroupsOf(CommunicatorState& state, const Groups** groups) try {
  GroupsPart* part = nullptr;
  if (const int error = PartOf(state, &part)) return error;
  *groups = &part->groups;
  return MPI_SUCCESS;
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

int RunHierarchical(CommunicatorState& state, const BlockExchange& exchange,
                    const alltoallv::Algorithm& algorithm, Trace* trace) try {
  GroupsPart* part = nullptr;
  if (const int error = PartOf(state, &part)) return error;
  const auto levels =
      algorithm.method == Method::kMultilevel ? Routes::Levels::kAll : Routes::Levels::kNodes;
  const Routes& routes = RoutesOf(*part, exchange.rank, levels);
  const auto run = algorithm.method == Method::kStaggered ? StaggeredExchange : CoalescedExchange;
  return run(exchange, routes, algorithm.radix, algorithm.block_count, trace);
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

}  // namespace tutti::mpi
