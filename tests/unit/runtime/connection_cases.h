// What every kind of connection is tried with: each plan made by hand, in place and not, at counts of
// empty, uneven and many tiles, over all types and reductions.
#pragma once

#include <cstdint>
#include <vector>

#include "hand_plans.h"
#include "ranks_in_memory.h"

namespace tutti {

struct ConnectionCase {
  Plan plan;
  CallOptions options;
};

inline std::vector<ConnectionCase> ConnectionCases() {
  constexpr int kTypes = static_cast<int>(kLastDataType) + 1;
  std::vector<ConnectionCase> cases;
  int turn = 0;
  for (const Plan& plan : {RingAllGather(3), RingAllReduce(4), ExchangeAllReduce(4),
                           DoublingAllGather(4), RingAllGather(1)})
    for (const bool in_place : {false, true})
      for (const int64_t count : {0, 1, 3, 5, 1009, 60'000}) {
        CallOptions options{.count = count, .in_place = in_place};
        options.type = static_cast<DataType>(turn % kTypes);
        options.op = static_cast<ReduceOp>(turn % 5);
        options.piece_bytes = turn % 2 == 0 ? 1000 : 1 << 20;
        ++turn;
        cases.push_back({plan, options});
      }
  return cases;
}

}  // namespace tutti
