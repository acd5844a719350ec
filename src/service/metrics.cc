#include "metrics.h"

#include <fmt/format.h>

#include <tuple>

namespace tutti::service {
namespace {

constexpr double kNsASecondInMetrics = 1e9;

constexpr std::array<const char*, kNumKinds> kNcclNames = {
    "AllGather", "ReduceScatter", "AllReduce", "Broadcast", "Reduce",
    "Gather",    "Scatter",       "AlltoAll",  "AlltoAllv", "SendRecv"};

constexpr std::array<const char*, 5> kSizeUnits = {"B", "KB", "MB", "GB", "TB"};

// busbw / algbw as Collective::BusFactor() has it, without making one.
double BusFactorOf(size_t kind, int32_t num_ranks) {
  const auto of = static_cast<CollectiveKind>(kind);
  if (kind == kExchangeKind || of == CollectiveKind::kBroadcast || of == CollectiveKind::kReduce)
    return 1;
  const double passes = Reduces(of) && EndsAtAllRanks(of) ? 2 : 1;
  return passes * (num_ranks - 1) / num_ranks;
}

}  // namespace

std::string_view KindText(size_t kind) {
  return kind == kExchangeKind ? "messages" : Name(static_cast<CollectiveKind>(kind));
}
const char* NcclKindText(size_t kind) { return kNcclNames.at(kind); }

const char* ReasonText(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid-argument";
    case ErrorCode::kInfeasible:
      return "infeasible";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kIo:
      return "system";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kResourceExhausted:
      return "quota";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kPeerFailed:
      return "peer-failed";
  }
  return "other";
}

MessageSize SizeOfMessage(int64_t bytes) {
  MessageSize size{.units = bytes};
  for (; size.unit + 1 < kSizeUnits.size() && size.units >= 1000; ++size.unit) size.units /= 1000;
  return size;
}

std::string Text(const MessageSize& size) {
  if (size.units < 0) return "other";
  return fmt::format("{}-{}{}", size.units, size.units + 1, kSizeUnits[size.unit]);
}

std::string PathBytes::Name(const TcpPorts& route) {
  if (route.count == 0) return "any";
  return fmt::format("{}-{}", route.first, route.first + route.count - 1);
}

void TenantMetrics::Add(const CompletedOperation& done) {
  Kind& kind = kinds_[done.kind];
  kind.seconds.Add(static_cast<double>(done.completed_ns - done.launched_ns) / kNsASecondInMetrics);
  kind.delay.Add(static_cast<double>(done.launched_ns - done.posted_ns) / kNsASecondInMetrics);
}

void CommunicatorMetrics::Add(const CompletedOperation& done) {
  ++counts_[done.kind].operations;
  counts_[done.kind].bytes += done.bytes;
  ++by_rank_[done.rank][done.kind];
  std::tuple key{done.rank, done.kind, SizeOfMessage(done.bytes)};
  if (recent_.size() >= kMaxSizes && recent_.count(key) == 0)
    std::get<MessageSize>(key) = {.units = -1};
  Recent& recent = recent_[key];
  const int64_t window = done.completed_ns / kWindowNs;
  if (recent.now.window != window) {
    recent.before = recent.now.window == window - 1 ? recent.now : Sums{};
    recent.now = {.window = window};
  }
  const double ns = static_cast<double>(done.completed_ns - done.launched_ns);
  ++recent.now.count;
  recent.now.microseconds += ns / 1e3;
  // Bytes a nanosecond are GB/s.
  if (ns > 0)
    recent.now.bus_gbs +=
        static_cast<double>(done.bytes) / ns * BusFactorOf(done.kind, done.num_ranks);
}

std::map<CommunicatorMetrics::Key, CommunicatorMetrics::Means> CommunicatorMetrics::MeansAt(
    int64_t now_ns) const {
  const int64_t window = now_ns / kWindowNs;
  std::map<Key, Means> means;
  for (const auto& [key, recent] : recent_) {
    Sums sum;
    for (const Sums& part : {recent.now, recent.before})
      if (part.count > 0 && part.window >= window - 1) {
        sum.count += part.count;
        sum.bus_gbs += part.bus_gbs;
        sum.microseconds += part.microseconds;
      }
    if (sum.count == 0) continue;
    const auto count = static_cast<double>(sum.count);
    const auto& [rank, kind, size] = key;
    means[Key{rank, kind, Text(size)}] = {sum.bus_gbs / count, sum.microseconds / count};
  }
  return means;
}

}  // namespace tutti::service
