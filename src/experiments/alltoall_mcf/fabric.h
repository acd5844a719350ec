// The networks of the testbeds of [alltoall-mcf] 5.1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "mcf.h"

namespace tutti::mcf {

inline constexpr int64_t kSmallestSize = int64_t{1} << 20;
inline constexpr int64_t kLargestSize = int64_t{1} << 30;

struct Fabric {
  std::string_view name;
  std::string_view family;  // "torus(3,3,3"
  int32_t ranks;
  // The paper's; "" where it prints nothing.
  const char* f_routed;
  const char* f_stepped;    // where all traffic goes through the hosts
  const char* over_native;  // times as fast as the fabric's own all-to-all
  const char* over_sssp;

  // With what the links and hosts carry. Where NICs forward, hosts do not limit what passes: none
  // of these networks sends more than 100 Gbit/s of its own.
  std::string Routed() const { return std::string(family) + ",bw=25Gbit/s,alpha=1us)"; }
  std::string Stepped() const {
    return std::string(family) + ",bw=25Gbit/s,alpha=1us,host_bw=100Gbit/s)";
  }
};

inline constexpr std::array<Fabric, 4> kFabrics = {
    {{"K4,4", "bipartite(4", 8, "", "", "2.3", ""},
     {"3-cube", "hypercube(3", 8, "", "", "", ""},
     {"twisted 3-cube", "twisted_hypercube(3", 8, "", "", "", ""},
     {"3x3x3 torus", "torus(3,3,3", 27, "1/9", "2/27", "1.55", ">= 1.5"}}};

// (N - 1) f b: what each rank can send to others at most, in GB/s.
double LimitGigabytes(const Network& network);

}  // namespace tutti::mcf
