// A communicator whose ranks are threads of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/status.h"
#include "tutti/communicator.h"

namespace tutti {

using test_support::Succeeded;

using RankBody = std::function<void(Communicator&)>;

// Runs `body` as every rank, each in a thread of its own; rank r with options_of(r).
inline void RunRanksWith(int32_t num_ranks, const RankBody& body,
                         const std::function<CommunicatorOptions(int32_t)>& options_of) {
  const Result<UniqueId> id = MakeUniqueId();
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    threads.emplace_back([&, rank] {
      Result<Communicator> communicator =
          Communicator::Join(*id, num_ranks, rank, options_of(rank));
      ASSERT_TRUE(communicator) << communicator.error().message;
      body(*communicator);
    });
  for (std::thread& thread : threads) thread.join();
}

inline void RunRanks(int32_t num_ranks, const RankBody& body,
                     const CommunicatorOptions& options = {.timeout_s = 60}) {
  RunRanksWith(num_ranks, body, [&options](int32_t) { return options; });
}

}  // namespace tutti
