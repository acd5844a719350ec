#include "local_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/random.h"
#include "unit/runtime/connection_cases.h"
#include "unit/runtime/ranks_in_memory.h"

namespace tutti::service {
namespace {

using testing::HasSubstr;

// Every plan, with any budget, gives the results that it has to.
void CheckEveryPlan(MoveHelpers* helpers) {
  const uint64_t signature = 7;
  Random random(11);
  for (const auto& [plan, options] : ConnectionCases()) {
    SCOPED_TRACE(testing::Message() << Name(plan.collective.kind()) << " " << options.count << " "
                                    << Name(options.type) << " " << Name(options.op));
    RanksInMemory ranks(plan, options);
    std::deque<LocalConnection> connections;
    for (size_t c = 0; c < ranks.program().connections.size(); ++c)
      connections.emplace_back("connection " + std::to_string(c), signature, signature, helpers);
    std::deque<Interpreter> interpreters;
    for (int32_t rank = 0; rank < ranks.num_ranks(); ++rank) {
      std::vector<StreamEnds> ends;
      for (const auto& stream : ranks.program().ranks[static_cast<size_t>(rank)].streams)
        ends.push_back(
            {stream.outgoing >= 0 ? &connections[static_cast<size_t>(stream.outgoing)] : nullptr,
             stream.incoming >= 0 ? &connections[static_cast<size_t>(stream.incoming)] : nullptr});
      interpreters.push_back(ranks.MakeInterpreter(rank, std::move(ends)));
    }
    for (const uint64_t max_budget : {uint64_t{5000}, uint64_t{1} << 40}) {
      ranks.Fill();
      ASSERT_TRUE(RunInTurns(
          interpreters, [&] { return 1 + static_cast<int64_t>(random.Below(max_budget)); },
          [] { return false; }));
      ASSERT_EQ(ranks.CountWrong(), 0);
    }
  }
}

TEST(LocalConnectionTest, EveryPlan) { CheckEveryPlan(nullptr); }

TEST(LocalConnectionTest, EveryPlanWithHelpers) {
  MoveHelpers helpers({.threads = 2, .min_bytes = 100, .part_bytes = 40});
  CheckEveryPlan(&helpers);
}

// Each part once, whatever their number; helpers that sleep are woken.
TEST(MoveHelpersTest, EveryPartIsRunOnce) {
  for (const int32_t threads : {1, 3}) {
    MoveHelpers helpers({.threads = threads});
    for (int32_t turn = 0; turn < 2000; ++turn) {
      const int32_t parts = turn % 7;
      std::vector<int> runs(static_cast<size_t>(parts));
      helpers.ForParts(parts, [&runs](int32_t part) { ++runs[static_cast<size_t>(part)]; });
      ASSERT_EQ(runs, std::vector<int>(static_cast<size_t>(parts), 1));
      if (turn % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

TEST(LocalConnectionTest, DifferentCallsFail) {
  const uint64_t one = 1, other = 2;
  LocalConnection connection("connection 0 -> 1 channel 0", one, other);
  std::vector<std::byte> data(64);
  Binding binding;
  binding.base[0] = data.data();
  const Segment segment{.src = {0, Buffer::kInput},
                        .dst = {0, Buffer::kInput},
                        .elements = 64,
                        .first_unit = 0,
                        .last_unit = 1};
  const Piece piece{.segments = {&segment, 1}, .binding = &binding};
  for (uint64_t posted = 0; posted < kWindow; ++posted) EXPECT_TRUE(connection.TryPost(piece));
  EXPECT_FALSE(connection.TryPost(piece));  // the window is full
  int64_t budget = kNoBudget;
  EXPECT_EQ(connection.TryTake({piece, nullptr}, budget), Progress::kNothing);
  ASSERT_FALSE(connection.health());
  EXPECT_THAT(connection.health().error().message,
              HasSubstr("connection 0 -> 1 channel 0: the ranks do not run the same"));
  EXPECT_EQ(connection.released(), 0u);
}

}  // namespace
}  // namespace tutti::service
