// How a host is called among the hosts of one network.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// node1.cluster.example is node1: what stands before the first dot.
inline std::string_view ShortHostName(std::string_view name) {
  return name.substr(0, name.find('.'));
}

// That of this host; "host" where the system knows none.
std::string ShortHostName();

}  // namespace tutti
