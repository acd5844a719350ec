// Sizes, bandwidths and times as people write them.
//
// Sizes       bytes: "64MiB", "1KB", "1e9", "4096"; K/M/G/T with B are powers of 1000, with iB of
//             1024; a bare K/M/G is binary as in nccl-tests.
// Bandwidth   bytes per second: "50GB/s", "25Gbit/s", "35GiB/s", "1e9" (a bare number is bytes/s).
// Times       whole picoseconds: "0.5us", "500ns", "1.2ms", "2s", "300ps"; a unit is required
//             unless the value is 0.
// Errors      kInvalidArgument naming the text, for NaN, infinities, negatives, values that are
//             not a whole number of the unit, and values above 2^62.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/result.h"

namespace tutti {

inline constexpr int64_t kPicosecondsPerSecond = 1'000'000'000'000;

Result<int64_t> ParseSizeBytes(std::string_view text);
Result<int64_t> ParseBandwidth(std::string_view text);
Result<int64_t> ParseDurationPs(std::string_view text);

// Shortest text that parses back to the same value: "64MiB", "50GB/s", "500ns".
std::string FormatSize(int64_t bytes);
std::string FormatBandwidth(int64_t bytes_per_second);
std::string FormatDurationPs(int64_t picoseconds);

}  // namespace tutti
