#include "tutti/base/host_name.h"

#include <unistd.h>

#include <array>

namespace tutti {

std::string ShortHostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "host";
  const std::string_view part = ShortHostName(name.data());
  return part.empty() ? "host" : std::string(part);
}

}  // namespace tutti
