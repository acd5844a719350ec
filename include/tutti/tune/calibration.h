// FitModel: the cost model of a cluster from times measured on it.
//
// Model       Four kinds of measurements, made by src/mpi/programs/probe.cc, each for some numbers
//             of bytes or messages:
//               pair PATH    one rank and one other send a message to and fro; seconds one way
//               all PATH     every rank of a node sends to a partner and receives from another, at
//                            once
//               burst PATH   the same with several messages of one byte in flight; x counts
//                            messages
//               copy         one copy of a block
//             where PATH is inside (ranks of a node) or between (two nodes). Each kind is fitted by
//             a line a + b x with a, b >= 0 that makes the sum of squared relative errors least:
//             then
//               send + receive   slope of burst (two halves), at most the intercept of all
//               latency          intercept of all up to 8 KiB, less send + receive
//               flow             slope of pair from 32 KiB on, at most that of all
//               node             slope of all from 32 KiB on over the ranks of a node
//               eager            what the slope of pair up to 8 KiB is above flow, for messages up
//                                to 16 KiB
//               copy             intercept and slope of copy
//             A path that was not measured (one node, or one rank per node) is that of
//             DefaultModel, and says so (Origin::kAssumed); with `crowded` those that were are
//             Origin::kCrowded.
// Text        One sample per line, "tutti-sample KIND PATH SENDERS X SECONDS" (PATH is "-" for
//             copy); seconds from 1e-12 to 1e6, all else from 1; lines that do not begin with
//             "tutti-sample " are not ours.
// Example     All and pair at 1 byte 3 us, at 1001 bytes 4 us, from 32 KiB to 64 KiB 16 us more,
//             burst of 1 and 3 messages 3 us and 5 us: send + receive 1 us, latency 2 us, half a
//             nanosecond per byte, and half a nanosecond more where it is eager.
// Errors      kCorrupt with the line; kInvalidArgument where a kind that is needed is missing.
#pragma once

#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/tune/cost_model.h"

namespace tutti::tune {

struct Sample {
  enum class Kind { kPair, kAll, kBurst, kCopy };
  Kind kind = Kind::kCopy;
  bool between = false;
  double senders = 1;  // of a node, at once
  double x = 0;        // bytes; messages of a burst
  double seconds = 0;
};

struct Line {
  double intercept = 0, slope = 0;
};
// Least sum of ((intercept + slope x - y) / y)^2 with both at least 0; y > 0, at least one point.
struct Point {
  double x, y;
};
Line FitLine(const std::vector<Point>& points);

Result<std::vector<Sample>> ParseSamples(std::string_view text);

Result<CostModel> FitModel(Library library, const std::vector<Sample>& samples,
                           bool crowded = false);

}  // namespace tutti::tune
