// The hosts that the ranks of a run are to be on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

struct HostRanks {
  std::string host;
  int32_t first = 0, count = 1;  // ranks
  bool is_local() const { return host == "localhost"; }
};

// "h0:2,[fd00::1]:2": two ranks on each, in this order; ":1" may be left out. `ranks` of the slots are filled, all where it
// is 0.
// kInvalidArgument: no such list, or fewer slots than ranks.
Result<std::vector<HostRanks>> PlaceOnHosts(std::string_view list, int32_t ranks);

// The address of this host from which packets to `host` leave. kNotFound: no such host;
// kIo: no route to it.
Result<std::string> AddressTowards(const std::string& host);

}  // namespace tutti
