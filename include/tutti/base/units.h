// Sizes, bandwidths and times as people write them.
//
// Sizes       bytes: "64MiB", "1KB", "1e9", "4096"; K/M/G/T with B are powers of 1000, with iB of
//             1024; a bare k/K/M/G/T is binary as in nccl-tests.
// Bandwidth   bytes per second: "50GB/s", "50GBps", "35GiB/s", "1e9" (a bare number is bytes/s), or
//             bits: "25Gbit/s", "400Gb/s", "400Gbps".
// Times       whole picoseconds: "0.5us", "500ns", "1.2ms", "2s", "300ps"; a unit is required
//             unless the value is 0.
//             Blanks may stand around the number: "50 GB/s".
// Errors      kInvalidArgument naming the text, for NaN, infinities, negatives, values that are
//             not a whole number of the unit, and values above 2^62. "1Mb" as a size and "50gb/s"
//             as a bandwidth, which may be bits or bytes, are refused with both readings.
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

// For people's eyes: the same where that is short, else rounded: "33.333 GB/s", "31.789 MiB".
std::string ReadableSize(int64_t bytes);
std::string ReadableBandwidth(int64_t bytes_per_second);

}  // namespace tutti
