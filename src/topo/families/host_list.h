// Host lists as MPI launchers read them: a host a line, `host`, `host slots=8` (Open MPI, with
// max_slots= beside it) or `host:8` (MPICH). `#` begins a comment.
//
// Errors  kIo for the file; kCorrupt as "file:line: ..." for a host that stands there twice, a slot
//         count below 1, words that mean nothing here, an empty list, more than `max_hosts` hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/result.h"

namespace tutti::topo {

struct ListedHost {
  std::string name;
  std::optional<int64_t> slots;
};

Result<std::vector<ListedHost>> ReadHostList(const std::string& path, int64_t max_hosts);
// `path` stands in messages.
Result<std::vector<ListedHost>> ParseHostList(const std::string& text, const std::string& path,
                                              int64_t max_hosts);

}  // namespace tutti::topo
