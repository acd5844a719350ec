// The files of data/platforms, compiled in (cmake/TuttiEmbed.cmake writes the other half).
#pragma once

#include <span>
#include <string_view>

namespace tutti {

struct BuiltInPlatform {
  std::string_view name;  // of the file, without .xml
  std::string_view text;
};
// By name.
std::span<const BuiltInPlatform> BuiltInPlatformFiles();

}  // namespace tutti
