// What a controller is told of its cluster: bytes are none, or a network whose hosts are all listed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tutti/controller/cluster_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tutti::ParseLimits limits{.max_nodes = 40, .max_links = 120, .allow_files = false};
  const auto config = tutti::controller::ParseClusterConfig(
      std::string(reinterpret_cast<const char*>(data), size), limits);
  if (config && config->hosts.size() != static_cast<size_t>(config->view.num_hosts())) std::abort();
  return 0;
}
