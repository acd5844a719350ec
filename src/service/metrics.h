// What is counted of tenants and communicators, for metrics and RAS.
//
// Units       seconds, bytes; GB/s are 10^9 bytes a second, as NCCL's inspector has them.
// Memory      A communicator keeps at most kMaxSizes pairs of collective and size apart, however many sizes a tenant calls.
// Threads     The daemon's.
// Reference   NCCL inspector: nccl_bus_bandwidth_gbs, nccl_collective_exec_time_microseconds
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "prometheus.h"
#include "tcp_transport.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"

namespace tutti::service {

// Collectives by their kind, then exchanges of messages.
inline constexpr size_t kExchangeKind = static_cast<size_t>(CollectiveKind::kAllToAllV) + 1;
inline constexpr size_t kNumKinds = kExchangeKind + 1;
// "all-reduce"; "messages".
std::string_view KindText(size_t kind);
// As NCCL calls it: "AllReduce"; "SendRecv".
const char* NcclKindText(size_t kind);
// "invalid-argument"
const char* ReasonText(ErrorCode code);
// The whole number of the largest unit that so many bytes have: 4 of 4.7 GB, 134 of 134.2 MB.
struct MessageSize {
  size_t unit = 0;    // B, KB, ... TB
  int64_t units = 0;  // -1: other sizes, where there are too many
  friend auto operator<=>(const MessageSize&, const MessageSize&) = default;
};
MessageSize SizeOfMessage(int64_t bytes);
// "4-5GB", "134-135MB": that number, and the next; "other".
std::string Text(const MessageSize& size);

// A completed operation of a rank.
struct CompletedOperation {
  size_t kind = 0;
  int32_t rank = 0, num_ranks = 1;
  int64_t bytes = 0;  // of the larger buffer
  int64_t posted_ns = 0, launched_ns = 0, completed_ns = 0;
};

class TenantMetrics {
 public:
  struct Kind {
    Histogram seconds;  // from its launch to its end
    Histogram delay;    // from when it was posted to its launch
  };
  void Add(const CompletedOperation& done);
  void AddRefusal(ErrorCode code) { ++refused_[code]; }
  const std::array<Kind, kNumKinds>& kinds() const { return kinds_; }
  const std::map<ErrorCode, int64_t>& refused() const { return refused_; }

 private:
  std::array<Kind, kNumKinds> kinds_;
  std::map<ErrorCode, int64_t> refused_;
};

// Bytes that connections to other hosts have sent, by the route that their source ports choose.
class PathBytes {
 public:
  // Stays where it is.
  int64_t& Of(const TcpPorts& route) { return bytes_[route]; }
  const std::map<TcpPorts, int64_t>& all() const { return bytes_; }
  // "50000-50999"; "any" where no flow says.
  static std::string Name(const TcpPorts& route);

 private:
  std::map<TcpPorts, int64_t> bytes_;
};

// The daemon's.
struct DaemonMetrics {
  PathBytes path_bytes;

  int64_t reconfigured = 0, reconfigurations_refused = 0;
  Histogram hold;

  // A change of strategy: nanoseconds that it held launches, or why it was refused.
  void Count(const Result<int64_t>& hold_ns) {
    if (!hold_ns) {
      ++reconfigurations_refused;
      return;
    }
    ++reconfigured;
    hold.Add(static_cast<double>(*hold_ns) * 1e-9);
  }
};

class CommunicatorMetrics {
 public:
  static constexpr size_t kMaxSizes = 256;
  static constexpr int64_t kWindowNs = 15'000'000'000;

  struct Count {
    int64_t operations = 0, bytes = 0;
  };
  struct Key {
    int32_t rank = 0;
    size_t kind = 0;
    std::string size;  // as Text() has it
    bool operator<(const Key& other) const {
      return std::tie(rank, kind, size) < std::tie(other.rank, other.kind, other.size);
    }
  };
  // Means over the newest one or two windows.
  struct Means {
    double bus_gbs = 0, microseconds = 0;
  };

  void Add(const CompletedOperation& done);
  const std::array<Count, kNumKinds>& counts() const { return counts_; }
  // By rank of this host.
  const std::map<int32_t, std::array<int64_t, kNumKinds>>& by_rank() const { return by_rank_; }
  // What has had an operation within the newest windows.
  std::map<Key, Means> MeansAt(int64_t now_ns) const;

 private:
  struct Sums {
    int64_t window = -1;
    int64_t count = 0;
    double bus_gbs = 0, microseconds = 0;
  };
  struct Recent {
    Sums now, before;
  };

  std::array<Count, kNumKinds> counts_{};
  std::map<int32_t, std::array<int64_t, kNumKinds>> by_rank_;
  // By rank, kind and size.
  std::map<std::tuple<int32_t, size_t, MessageSize>, Recent> recent_;
};

}  // namespace tutti::service
