#include "hierarchy/groups.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "hierarchy/location.h"

namespace tutti::mpi {

namespace {

constexpr size_t kMaxLevels = 4;

// A rank's group at each level, finest first; -1 where there is none.
using GroupRow = std::array<int, kMaxLevels>;

GroupRow RowOfConsecutiveRanks(int rank, std::span<const int> ranks_per_group) {
  GroupRow row;
  row.fill(-1);
  const size_t first = kMaxLevels - ranks_per_group.size();
  for (size_t l = 0; l < ranks_per_group.size(); ++l) {
    row[first + l] = rank / ranks_per_group[l];
  }
  return row;
}

// What a rank tells of itself.
struct PlacementMessage {
  GroupRow row;
  int world_rank;
};

// The smallest rank of `communicator` that shares this rank's memory names the node.
int FindRow(MPI_Comm communicator, int rank, GroupRow* row) {
  MPI_Comm node = MPI_COMM_NULL;
  if (const int error =
          PMPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
      error != MPI_SUCCESS) {
    return error;
  }
  int first = rank;
  const int error = PMPI_Bcast(&first, 1, MPI_INT, 0, node);
  PMPI_Comm_free(&node);
  // Once: hwloc takes milliseconds to look around, and programs make communicators by the thousand.
  static const Location location = LocationOfThisProcess();
  *row = {location.cache, location.memory_domain, location.socket, first};
  return error;
}

}  // namespace

Groups NestedGroups(int size, const std::vector<std::vector<int>>& levels) {
  Groups groups{.size = size, .levels = {}};
  const auto ranks = static_cast<size_t>(size);
  std::vector<int> coarser(ranks, 0);
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (std::find(level->begin(), level->end(), -1) != level->end()) continue;
    std::map<std::pair<int, int>, int> number;
    std::vector<int> finer(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto next = static_cast<int>(number.size());
      finer[rank] = number.try_emplace({coarser[rank], (*level)[rank]}, next).first->second;
    }
    const bool is_nodes = groups.levels.empty();
    if (is_nodes || (finer != coarser && number.size() < ranks)) groups.levels.push_back(finer);
    coarser = std::move(finer);
  }
  std::reverse(groups.levels.begin(), groups.levels.end());
  return groups;
}

std::vector<int> NodesOf(const Groups& groups) {
  if (groups.levels.empty()) return std::vector<int>(static_cast<size_t>(groups.size), 0);
  return groups.levels.back();
}

Result<std::vector<int>> ParseRanksPerGroup(std::string_view text) {
  std::vector<int> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = true;
  while (good) {
    int ranks = 0;
    const auto [next, error] = std::from_chars(at, end, ranks);
    good = error == std::errc() && ranks >= 1 && sizes.size() < kMaxLevels &&
           (sizes.empty() || ranks % sizes.back() == 0);
    sizes.push_back(ranks);
    at = next;
    if (at == end) break;
    good = good && *at == ',';
    ++at;
  }
  if (good) return sizes;
  return InvalidArgument("ranks per node: got \"" + std::string(text) +
                         "\", wanted a positive number, or up to four separated by commas, each "
                         "a multiple of the one before, as in 32 or 8,32");
}

Groups GroupsOfConsecutiveRanks(int size, std::span<const int> ranks_per_group) {
  std::vector<std::vector<int>> levels(kMaxLevels, std::vector<int>(static_cast<size_t>(size)));
  for (int rank = 0; rank < size; ++rank) {
    const GroupRow row = RowOfConsecutiveRanks(rank, ranks_per_group);
    for (size_t l = 0; l < kMaxLevels; ++l) levels[l][static_cast<size_t>(rank)] = row[l];
  }
  return NestedGroups(size, levels);
}

int FindGroups(MPI_Comm communicator, Groups* groups) {
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(communicator, &rank);
  PMPI_Comm_size(communicator, &size);
  PlacementMessage own{};
  if (const int error = FindRow(communicator, rank, &own.row); error != MPI_SUCCESS) return error;
  PMPI_Comm_rank(MPI_COMM_WORLD, &own.world_rank);
  std::vector<PlacementMessage> rows(static_cast<size_t>(size));
  // A tree up and a tree down, where an all-gather may be a ring of as many steps as ranks.
  constexpr auto kWidth = static_cast<int>(sizeof(PlacementMessage) / sizeof(int));
  if (const int error =
          PMPI_Gather(&own, kWidth, MPI_INT, rows.data(), kWidth, MPI_INT, 0, communicator);
      error != MPI_SUCCESS) {
    return error;
  }
  if (const char* text = std::getenv("TUTTI_RANKS_PER_NODE"); rank == 0 && text != nullptr) {
    const Result<std::vector<int>> forced = ParseRanksPerGroup(text);
    for (PlacementMessage& each : rows) {
      if (forced.has_value()) each.row = RowOfConsecutiveRanks(each.world_rank, *forced);
    }
  }
  if (const int error = PMPI_Bcast(rows.data(), size * kWidth, MPI_INT, 0, communicator);
      error != MPI_SUCCESS) {
    return error;
  }
  std::vector<std::vector<int>> levels(kMaxLevels, std::vector<int>(rows.size()));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t l = 0; l < kMaxLevels; ++l) levels[l][r] = rows[r].row[l];
  }
  *groups = NestedGroups(size, levels);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi
