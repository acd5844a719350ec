#include "engine/settings.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "hierarchy/groups.h"
#include "tutti/base/result.h"

namespace tutti::mpi::preload {
namespace {

// A line of a terminal, whatever the variable holds.
std::string Printable(std::string text) {
  constexpr size_t kLongest = 400;
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "...");
  std::replace_if(
      text.begin(), text.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  return text;
}

std::string Ignored(std::string_view name, std::string_view value, const std::string& why) {
  std::string line = "ignored ";
  line.append(name).append("='").append(value.substr(0, 40)).append("': ").append(why);
  return Printable(line);
}

// A digit from 0 to `highest`; -1 for anything else.
int Digit(std::string_view value, int highest) {
  if (value.size() != 1 || value[0] < '0' || value[0] > '0' + highest) return -1;
  return value[0] - '0';
}

// "mpi" is what TUTTI_ALLTOALLV calls the native algorithm.
bool ParseService(std::string_view text, Service* service) {
  if (text == "mpi") text = kServiceNames[0];
  for (int each = 0; each < 3; ++each) {
    if (text != kServiceNames[each]) continue;
    *service = static_cast<Service>(each);
    return true;
  }
  return false;
}

constexpr CollectiveName kNames[kNumCollectives] = {
    {"TUTTI_ALLREDUCE", "MPI_Allreduce"},
    {"TUTTI_ALLGATHER", "MPI_Allgather"},
    {"TUTTI_ALLGATHERV", "MPI_Allgatherv"},
    {"TUTTI_REDUCE_SCATTER", "MPI_Reduce_scatter"},
    {"TUTTI_REDUCE_SCATTER_BLOCK", "MPI_Reduce_scatter_block"},
    {"TUTTI_BCAST", "MPI_Bcast"},
    {"TUTTI_REDUCE", "MPI_Reduce"},
    {"TUTTI_GATHER", "MPI_Gather"},
    {"TUTTI_SCATTER", "MPI_Scatter"},
    {"TUTTI_BARRIER", "MPI_Barrier"}};

}  // namespace

const CollectiveName& NameOf(Collective which) { return kNames[static_cast<size_t>(which)]; }

Settings ReadSettings(EnvironmentLookup* environment) {
  Settings settings;
  if (const char* value = environment("TUTTI_ALLTOALLV"); value != nullptr && *value != '\0') {
    const Result<alltoallv::Algorithm> algorithm = alltoallv::ParseAlgorithm(value);
    if (algorithm.has_value()) {
      settings.algorithm = *algorithm;
    } else {
      settings.ignored.push_back(
          Ignored("TUTTI_ALLTOALLV", value, algorithm.error().message + "; auto is used"));
    }
  }
  for (size_t which = 0; which < settings.services.size(); ++which) {
    const char* const variable = kNames[which].variable;
    const char* const value = environment(variable);
    if (value == nullptr || *value == '\0') continue;
    if (!ParseService(value, &settings.services[which])) {
      settings.ignored.push_back(
          Ignored(variable, value, "accepted are native, auto, shared; auto is used"));
    }
  }
  if (const char* value = environment("TUTTI_REORDER"); value != nullptr && *value != '\0') {
    const int digit = Digit(value, 1);
    if (digit < 0) {
      settings.ignored.push_back(
          Ignored("TUTTI_REORDER", value,
                  "accepted are 0 and 1 (floating-point reductions may take another order)"));
    } else {
      settings.reorders = digit == 1;
    }
  }
  if (const char* value = environment("TUTTI_VERBOSE"); value != nullptr && *value != '\0') {
    const int digit = Digit(value, 2);
    if (digit < 0) {
      settings.ignored.push_back(
          Ignored("TUTTI_VERBOSE", value, "accepted are 0, 1 (rank 0 reports), 2 (every rank)"));
    } else {
      settings.report = static_cast<Report>(digit);
    }
  }
  if (const char* value = environment("TUTTI_CHECK"); value != nullptr && *value != '\0') {
    const int digit = Digit(value, 1);
    if (digit < 0) {
      settings.ignored.push_back(
          Ignored("TUTTI_CHECK", value, "accepted are 0 and 1 (counts are compared)"));
    } else {
      settings.check_counts = digit == 1;
    }
  }
  if (const char* value = environment("TUTTI_HOST_BUFFERS"); value != nullptr && *value != '\0') {
    const int digit = Digit(value, 1);
    if (digit < 0) {
      settings.ignored.push_back(Ignored("TUTTI_HOST_BUFFERS", value,
                                         "accepted are 0 and 1 (no buffer is an accelerator's)"));
    } else {
      settings.host_buffers = digit == 1;
    }
  }
  if (const char* value = environment("TUTTI_TEMPORARY_LIMIT");
      value != nullptr && *value != '\0') {
    const std::string_view text = value;
    int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error != std::errc() || end != text.data() + text.size() || bytes < 0) {
      settings.ignored.push_back(
          Ignored("TUTTI_TEMPORARY_LIMIT", value, "accepted are whole numbers of bytes"));
    } else {
      settings.temporary_limit = bytes;
    }
  }
  if (const char* value = environment("TUTTI_RANKS_PER_NODE"); value != nullptr && *value != '\0') {
    const Result<std::vector<int>> groups = ParseRanksPerGroup(value);
    if (!groups.has_value()) {
      settings.ignored.push_back(Ignored("TUTTI_RANKS_PER_NODE", value, groups.error().message));
    }
  }
  return settings;
}

}  // namespace tutti::mpi::preload
