#include "hierarchy/run.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "hierarchy/hierarchical.h"
#include "hierarchy/node_memory.h"
#include "hierarchy/routes.h"
#include "hierarchy/shared.h"
#include "hierarchy/shared_plan.h"
#include "served.h"

namespace tutti::mpi {

namespace {

using alltoallv::Method;

// What the algorithms over shared memory need; `memory` is null where the ranks of some node cannot
// share any, or where every node has one rank.
struct SharedPart {
  SharedPlan runs, coalesced;
  std::unique_ptr<NodeMemory> memory = nullptr;
  SharedScratch scratch = {};
};

struct GroupsPart : CommunicatorState::Part {
  Groups groups;
  // Made at the first call that takes them.
  std::optional<Routes> nodes, levels;
  std::unique_ptr<SharedPart> shared;
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

bool IsOverSharedMemory(Method method) {
  return alltoallv::FamilyOf(method) == alltoallv::Family::kSharedMemory;
}

// Collective at the first call.
int SharedPartOf(CommunicatorState& state, GroupsPart& part, SharedPart** shared) {
  if (part.shared == nullptr) {
    auto made = std::make_unique<SharedPart>(SharedPart{
        .runs = SharedPlan(part.groups, state.rank(), SharedPlan::Form::kRuns),
        .coalesced = SharedPlan(part.groups, state.rank(), SharedPlan::Form::kCoalesced)});
    if (made->runs.largest_node() > 1) {
      std::vector<int> members;
      const Range node = made->runs.node();
      for (int p = node.begin; p < node.end; ++p) members.push_back(made->runs.rank(p));
      int64_t bytes = 0;
      for (const SharedPlan* plan : {&made->runs, &made->coalesced}) {
        bytes = std::max(bytes, plan->layout().bytes);
      }
      if (const int error = NodeMemory::Make(state.duplicate(), members, made->runs.self(), bytes,
                                             &made->memory)) {
        return error;
      }
    }
    part.shared = std::move(made);
  }
  *shared = part.shared.get();
  return MPI_SUCCESS;
}

}  // namespace

bool IsHierarchical(Method method) {
  return alltoallv::FamilyOf(method) == alltoallv::Family::kHierarchical ||
         IsOverSharedMemory(method);
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
  if (IsOverSharedMemory(algorithm.method)) {
    SharedPart* shared = nullptr;
    if (const int error = SharedPartOf(state, *part, &shared)) return error;
    if (shared->memory != nullptr) {
      const SharedPlan& plan =
          algorithm.method == Method::kShared ? shared->runs : shared->coalesced;
      return SharedExchange(exchange, plan, algorithm.block_count, *shared->memory, shared->scratch,
                            trace);
    }
    LatestServed().algorithm = {.method = Method::kCoalesced, .block_count = algorithm.block_count};
  }
  const auto levels =
      algorithm.method == Method::kMultilevel ? Routes::Levels::kAll : Routes::Levels::kNodes;
  const Routes& routes = RoutesOf(*part, exchange.rank, levels);
  const auto run = algorithm.method == Method::kStaggered ? StaggeredExchange : CoalescedExchange;
  return run(exchange, routes, algorithm.radix, algorithm.block_count, trace);
} catch (const std::bad_alloc&) {
  return MPI_ERR_NO_MEM;
}

}  // namespace tutti::mpi
