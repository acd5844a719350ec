#include "layers/registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace tutti {

std::span<const Layering> Layerings() {
  // One line a layering.
  static const std::vector<Layering> kTable = {
      LashSequentialLayering(),
      LashLayering(),
      DfssspLayering(),
  };
  return kTable;
}

Result<const Layering*> FindLayering(std::string_view name) {
  std::string accepted;
  for (const Layering& layering : Layerings()) {
    if (layering.name == name) return &layering;
    accepted += accepted.empty() ? "" : ", ";
    accepted += layering.name;
  }
  return MakeError(ErrorCode::kNotFound,
                   fmt::format("unknown layering '{}'; accepted are {}", name, accepted));
}

Status AssignLayers(const Layering& layering, const Topology& topology, int32_t max_layers,
                    Routing& routing) {
  if (routing.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the routing was made for another network than " + topology.name());
  if (const Status assigned = layering.assign(topology, routing); !assigned) return assigned;
  if (routing.num_layers > max_layers)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} needs {} layers for these paths, {} are allowed",
                                 layering.name, routing.num_layers, max_layers));
  return {};
}

}  // namespace tutti
