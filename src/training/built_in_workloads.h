// The files of data/workloads, compiled in (cmake/TuttiEmbed.cmake writes the other half).
#pragma once

#include <span>
#include <string_view>

namespace tutti {

struct BuiltInWorkload {
  std::string_view name;  // of the file, without .csv
  std::string_view text;
};
// By name.
std::span<const BuiltInWorkload> BuiltInWorkloadFiles();

}  // namespace tutti
