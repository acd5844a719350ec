// IpAddress: an address of IP, of version 4 or 6.
//
// Model       16 bytes; one of version 4 is kept as version 6 maps it (::ffff:a.b.c.d), which is also what a socket of both
//             versions says of a peer of version 4: equal addresses are equal whichever socket told them.
//             Addresses of one link alone (fe80::/10) mean nothing on another host and have no place here.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

class IpAddress {
 public:
  // A version 4 address, in the order of the host; any of them by default.
  constexpr IpAddress(uint32_t v4 = INADDR_ANY) : low_(kMapped | v4) {}
  // The 16 bytes as two numbers, the first byte on top.
  static constexpr IpAddress OfWords(uint64_t high, uint64_t low) {
    IpAddress address;
    address.high_ = high;
    address.low_ = low;
    return address;
  }
  static IpAddress Of(const in6_addr& bytes);
  static constexpr IpAddress Loopback6() { return OfWords(0, 1); }
  static constexpr IpAddress Any6() { return OfWords(0, 0); }
  // "10.0.0.1", "fd00::1". Nothing: neither.
  static std::optional<IpAddress> Parse(const std::string& text);

  constexpr uint64_t high() const { return high_; }
  constexpr uint64_t low() const { return low_; }
  constexpr bool is_v4() const { return high_ == 0 && low_ >> 32 == kMapped >> 32; }
  // From one of version 4.
  constexpr uint32_t v4() const { return static_cast<uint32_t>(low_); }
  // All addresses of the host, of one version.
  constexpr bool is_any() const { return *this == IpAddress() || *this == Any6(); }
  constexpr bool is_of_one_link() const { return high_ >> 54 == 0xfe80 >> 6; }
  in6_addr bytes() const;
  std::string ToText() const;

  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  static constexpr uint64_t kMapped = uint64_t{0xffff} << 32;

  uint64_t high_ = 0, low_;
};

// Addresses of a name or of an address as text, best first, without those of one link alone. kNotFound: why there is none.
Result<std::vector<IpAddress>> AddressesOf(const std::string& host);

}  // namespace tutti
