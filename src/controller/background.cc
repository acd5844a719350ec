#include "background.h"

#include <fmt/format.h>

#include <string>

namespace tutti::controller {

Result<std::vector<int64_t>> ReadBackground(const nlohmann::json& json, const ClusterView& view) {
  if (!json.is_object()) return InvalidArgument("background: is no object");
  constexpr int64_t kMaxLoad = 1'000'000'000'000'000;  // sums stay in range
  std::vector<int64_t> load;
  for (const auto& [name, bytes] : json.items()) {
    if (!bytes.is_number_integer() || bytes.get<int64_t>() < 0 || bytes.get<int64_t>() > kMaxLoad)
      return InvalidArgument(fmt::format("background.{}: got {}, wanted bytes/s from 0 to {}", name,
                                         bytes.dump(), kMaxLoad));
    std::vector<LinkId> links;
    for (int32_t i = 0; i < view.num_links(); ++i)
      if (view.link_name(LinkId{i}) == name) links.push_back(LinkId{i});
    if (links.empty())
      return InvalidArgument(
          fmt::format("background.{}: is no link; they are called as 'leaf0 -> spine1'", name));
    const auto parts = static_cast<int64_t>(links.size());
    load.resize(static_cast<size_t>(view.num_links()));
    for (const LinkId link : links)
      load[link.index()] += bytes.get<int64_t>() / parts + (bytes.get<int64_t>() % parts != 0);
  }
  return load;
}

}  // namespace tutti::controller
