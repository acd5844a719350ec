#include "background.h"

#include <fmt/format.h>

#include <string>

namespace tutti::controller {

Result<std::vector<int64_t>> ReadBackground(const nlohmann::json& json, const Topology& network) {
  if (!json.is_object()) return InvalidArgument("background: is no object");
  constexpr int64_t kMaxLoad = 1'000'000'000'000'000;  // sums stay in range
  std::vector<int64_t> load;
  for (const auto& [name, bytes] : json.items()) {
    if (!bytes.is_number_integer() || bytes.get<int64_t>() < 0 || bytes.get<int64_t>() > kMaxLoad)
      return InvalidArgument(fmt::format("background.{}: got {}, wanted bytes/s from 0 to {}", name,
                                         bytes.dump(), kMaxLoad));
    std::vector<LinkId> links;
    for (const LinkId link : network.Links())
      if (LinkName(network, link) == name) links.push_back(link);
    if (links.empty())
      return InvalidArgument(
          fmt::format("background.{}: is no link; they are called as 'leaf0 -> spine1'", name));
    const auto parts = static_cast<int64_t>(links.size());
    load.resize(static_cast<size_t>(network.num_links()));
    for (const LinkId link : links)
      load[link.index()] += bytes.get<int64_t>() / parts + (bytes.get<int64_t>() % parts != 0);
  }
  return load;
}

std::string LinkName(const Topology& network, LinkId link) {
  return fmt::format("{} -> {}", network.node_name(network.tail(link)),
                     network.node_name(network.head(link)));
}

}  // namespace tutti::controller
