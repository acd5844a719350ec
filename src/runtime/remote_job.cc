#include "remote_job.h"

#include <fmt/format.h>

#include <cmath>

namespace tutti::remote {
namespace {

constexpr size_t kCallWords = 11;
constexpr int64_t kMaxIterations = 1'000'000'000, kMaxSize = int64_t{1} << 60;

}  // namespace

std::string ToBody(const Call& call) {
  const RunOptions& options = call.options;
  return WordsToBytes({call.number, options.size_bytes, static_cast<int64_t>(options.type),
                       static_cast<int64_t>(options.op), options.in_place ? 1 : 0, options.warmup,
                       options.iterations, options.check ? 1 : 0,
                       std::llround(options.hang_timeout_s * 1e3), options.fixed_order ? 1 : 0,
                       options.record_trace ? 1 : 0});
}

Result<Call> ParseCall(const Frame& frame) {
  const auto words = frame.Words(kCallWords);
  if (!words)
    return InvalidArgument(fmt::format("a call of {} bytes, wanted {}", frame.body.size(),
                                       kCallWords * sizeof(int64_t)));
  const std::vector<int64_t>& w = *words;
  const auto within = [&w](size_t i, int64_t least, int64_t most) {
    return least <= w[i] && w[i] <= most;
  };
  const bool in_range =
      within(1, 1, kMaxSize) && within(2, 0, static_cast<int64_t>(kLastDataType)) &&
      within(3, 0, static_cast<int64_t>(ReduceOp::kAvg)) && within(4, 0, 1) &&
      within(5, 0, kMaxIterations) && within(6, 1, kMaxIterations) && within(7, 0, 1) &&
      within(8, 1, int64_t{1} << 40) && within(9, 0, 1) && within(10, 0, 1);
  if (!in_range) return InvalidArgument("a call with a number out of its range");
  return Call{.number = w[0],
              .options = {.size_bytes = w[1],
                          .type = static_cast<DataType>(w[2]),
                          .op = static_cast<ReduceOp>(w[3]),
                          .in_place = w[4] == 1,
                          .fixed_order = w[9] == 1,
                          .transport = Transport::kTcp,
                          .warmup = static_cast<int32_t>(w[5]),
                          .iterations = static_cast<int32_t>(w[6]),
                          .check = w[7] == 1,
                          .record_trace = w[10] == 1,
                          .hang_timeout_s = static_cast<double>(w[8]) * 1e-3}};
}

}  // namespace tutti::remote
