#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace tutti {
namespace {

using testing::HasSubstr;

using CBody = std::function<void(tuttiComm_t, int rank)>;

void RunCRanks(int num_ranks, const CBody& body) {
  tuttiUniqueId id;
  ASSERT_EQ(tuttiGetUniqueId(&id), tuttiSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank)
    threads.emplace_back([&, rank] {
      tuttiComm_t comm = nullptr;
      ASSERT_EQ(tuttiCommInitRank(&comm, num_ranks, id, rank), tuttiSuccess)
          << tuttiGetLastError(nullptr);
      body(comm, rank);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(CApiTest, EveryCollectiveInTheCallingThread) {
  RunCRanks(3, [](tuttiComm_t comm, int rank) {
    int count = 0, mine = -1;
    EXPECT_EQ(tuttiCommCount(comm, &count), tuttiSuccess);
    EXPECT_EQ(tuttiCommUserRank(comm, &mine), tuttiSuccess);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(mine, rank);
    const auto r = static_cast<float>(rank);
    std::vector<float> one = {r}, three = {r, r + 10, r + 20}, out1(1), out3(3);
    using Floats = std::vector<float>;
    EXPECT_EQ(tuttiAllReduce(three.data(), out3.data(), 3, tuttiFloat, tuttiSum, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out3, (Floats{3, 33, 63}));
    EXPECT_EQ(tuttiAllReduce(three.data(), out3.data(), 3, tuttiFloat, tuttiMax, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out3, (Floats{2, 12, 22}));
    EXPECT_EQ(tuttiAllGather(one.data(), out3.data(), 1, tuttiFloat, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(out3, (Floats{0, 1, 2}));
    EXPECT_EQ(tuttiReduceScatter(three.data(), out1.data(), 1, tuttiFloat, tuttiAvg, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out1[0], 1 + 10 * r);
    EXPECT_EQ(tuttiBroadcast(one.data(), out1.data(), 1, tuttiFloat, 2, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out1[0], 2);
    EXPECT_EQ(tuttiReduce(one.data(), out1.data(), 1, tuttiFloat, tuttiProd, 1, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out1[0], rank == 1 ? 0 : 2);
    EXPECT_EQ(tuttiGather(one.data(), out3.data(), 1, tuttiFloat, 0, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(tuttiScatter(out3.data(), out1.data(), 1, tuttiFloat, 0, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out1[0], r);
    EXPECT_EQ(tuttiAlltoAll(three.data(), out3.data(), 1, tuttiFloat, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(out3, (Floats{10 * r, 10 * r + 1, 10 * r + 2}));
    // Rank s sends s + 1 elements to each.
    const auto n = static_cast<size_t>(rank) + 1;
    const std::vector<size_t> to(3, n), to_at = {0, 0, 0}, from = {1, 2, 3}, from_at = {0, 1, 3};
    std::vector<float> in(n, r), out6(6);
    EXPECT_EQ(tuttiAlltoAllv(in.data(), to.data(), to_at.data(), out6.data(), from.data(),
                             from_at.data(), tuttiFloat, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(out6, (Floats{0, 1, 1, 2, 2, 2}));
    EXPECT_EQ(tuttiCommFinalize(comm), tuttiSuccess);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

TEST(CApiTest, StreamsRunInOrderAndEventsJoinThem) {
  RunCRanks(2, [](tuttiComm_t comm, int rank) {
    tuttiStream_t compute = nullptr, network = nullptr;
    tuttiEvent_t ready = nullptr, over = nullptr;
    ASSERT_EQ(tuttiStreamCreate(&compute), tuttiSuccess);
    ASSERT_EQ(tuttiStreamCreate(&network), tuttiSuccess);
    ASSERT_EQ(tuttiEventCreate(&ready), tuttiSuccess);
    ASSERT_EQ(tuttiEventCreate(&over), tuttiSuccess);
    struct Work {
      int64_t value = 0, sum = 0, seen = 0;
    } work;
    work.value = rank + 1;
    for (int round = 0; round < 50; ++round) {
      tuttiStreamLaunch(
          compute, [](void* w) { static_cast<Work*>(w)->value *= 1; }, &work);
      tuttiEventRecord(ready, compute);
      tuttiStreamWaitEvent(network, ready);
      EXPECT_EQ(tuttiAllReduce(&work.value, &work.sum, 1, tuttiInt64, tuttiSum, comm, network),
                tuttiSuccess);
      tuttiEventRecord(over, network);
      tuttiStreamWaitEvent(compute, over);
      tuttiStreamLaunch(
          compute,
          [](void* w) {
            auto* all = static_cast<Work*>(w);
            all->seen += all->sum;
            all->value = all->sum;
          },
          &work);
    }
    EXPECT_EQ(tuttiStreamSynchronize(compute), tuttiSuccess);
    EXPECT_EQ(tuttiEventQuery(over), tuttiSuccess);
    // 3, 6, 12, ...: 3 * (2^50 - 1).
    EXPECT_EQ(work.seen, 3 * ((int64_t{1} << 50) - 1));
    tuttiResult_t state = tuttiInternalError;
    EXPECT_EQ(tuttiCommGetAsyncError(comm, &state), tuttiSuccess);
    EXPECT_EQ(state, tuttiSuccess);
    tuttiStreamDestroy(network);
    tuttiStreamDestroy(compute);
    tuttiEventDestroy(ready);
    tuttiEventDestroy(over);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

TEST(CApiTest, MessagesOfAGroupRunAllAtOnce) {
  RunCRanks(4, [](tuttiComm_t comm, int rank) {
    // Everybody receives first: one after the other this would wait for ever.
    std::vector<int32_t> in(4, -1), out = {rank, rank + 10, rank + 20, rank + 30};
    ASSERT_EQ(tuttiGroupStart(), tuttiSuccess);
    for (int peer = 0; peer < 4; ++peer)
      tuttiRecv(&in[static_cast<size_t>(peer)], 1, tuttiInt32, peer, comm, nullptr);
    ASSERT_EQ(tuttiGroupStart(), tuttiSuccess);  // they nest
    for (int peer = 0; peer < 4; ++peer)
      tuttiSend(&out[static_cast<size_t>(peer)], 1, tuttiInt32, peer, comm, nullptr);
    ASSERT_EQ(tuttiGroupEnd(), tuttiSuccess);
    int32_t sum = -1;
    tuttiAllReduce(&rank, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr);
    EXPECT_EQ(sum, -1);
    ASSERT_EQ(tuttiGroupEnd(), tuttiSuccess) << tuttiGetLastError(comm);
    EXPECT_EQ(sum, 6);
    EXPECT_EQ(in, (std::vector<int32_t>{10 * rank, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3}));
    EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidUsage);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

TEST(CApiTest, SplitGivesNullToWhoIsInNone) {
  RunCRanks(3, [](tuttiComm_t comm, int rank) {
    tuttiComm_t part = comm;
    ASSERT_EQ(tuttiCommSplit(comm, rank == 0 ? -1 : 5, rank, &part, nullptr), tuttiSuccess);
    if (rank == 0) {
      EXPECT_EQ(part, nullptr);
    } else {
      int count = 0;
      EXPECT_EQ(tuttiCommCount(part, &count), tuttiSuccess);
      EXPECT_EQ(count, 2);
      EXPECT_EQ(tuttiCommDestroy(part), tuttiSuccess);
    }
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

TEST(CApiTest, ShrinkEndsWhatRunsAndGrowTakesOthersIn) {
  std::atomic<bool> made = false;
  tuttiUniqueId grows;
  std::thread newcomer([&] {
    while (!made) std::this_thread::yield();
    tuttiComm_t comm = nullptr;
    ASSERT_EQ(tuttiCommGrow(nullptr, 3, &grows, 2, &comm, nullptr), tuttiSuccess)
        << tuttiGetLastError(nullptr);
    float sum = 1;
    EXPECT_EQ(tuttiAllReduce(&sum, &sum, 1, tuttiFloat, tuttiSum, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
  RunCRanks(3, [&](tuttiComm_t comm, int rank) {
    if (rank == 1) {
      EXPECT_EQ(tuttiCommFinalize(comm), tuttiRemoteError);  // the others do not come
      EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
      return;
    }
    // What waits for the rank that is left out is ended first.
    tuttiStream_t stream = nullptr;
    ASSERT_EQ(tuttiStreamCreate(&stream), tuttiSuccess);
    float in = 1, out = 0;
    ASSERT_EQ(tuttiAllReduce(&in, &out, 1, tuttiFloat, tuttiSum, comm, stream), tuttiSuccess);
    const int excluded[] = {1};
    tuttiComm_t left = nullptr, grown = nullptr;
    ASSERT_EQ(tuttiCommShrink(comm, excluded, 1, &left, nullptr, TUTTI_SHRINK_ABORT), tuttiSuccess)
        << tuttiGetLastError(nullptr);
    EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiRemoteError);
    EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess);
    int count = 0, mine = -1;
    EXPECT_EQ(tuttiCommCount(left, &count), tuttiSuccess);
    EXPECT_EQ(tuttiCommUserRank(left, &mine), tuttiSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(mine, rank / 2);
    if (rank == 2) {
      ASSERT_EQ(tuttiCommGetUniqueId(left, &grows), tuttiSuccess);
      made = true;
    }
    ASSERT_EQ(tuttiCommGrow(left, 3, rank == 2 ? &grows : nullptr, -1, &grown, nullptr),
              tuttiSuccess)
        << tuttiGetLastError(nullptr);
    float sum = 1;
    EXPECT_EQ(tuttiAllReduce(&sum, &sum, 1, tuttiFloat, tuttiSum, grown, nullptr), tuttiSuccess);
    EXPECT_EQ(sum, 3);
    for (tuttiComm_t each : {grown, left, comm}) EXPECT_EQ(tuttiCommDestroy(each), tuttiSuccess);
  });
  newcomer.join();
}

TEST(CApiTest, ShrinkAndGrowRefuseWhatCannotBe) {
  RunCRanks(1, [](tuttiComm_t comm, int) {
    tuttiComm_t made = nullptr;
    const int zero = 0, nine = 9;
    const auto refused = [&](tuttiResult_t result, const char* why) {
      EXPECT_EQ(result, tuttiInvalidArgument) << why;
      EXPECT_THAT(tuttiGetLastError(nullptr), HasSubstr(why));
    };
    refused(tuttiCommShrink(nullptr, nullptr, 0, &made, nullptr, 0), "comm or newcomm is NULL");
    refused(tuttiCommShrink(comm, nullptr, 2, &made, nullptr, 0), "a list of 2 ranks at 0");
    refused(tuttiCommShrink(comm, &nine, -1, &made, nullptr, 0), "a list of -1 ranks");
    refused(tuttiCommShrink(comm, &nine, 1, &made, nullptr, 0),
            "rank 9 to be left out: there are 1");
    refused(tuttiCommShrink(comm, &zero, 1, &made, nullptr, 0), "rank 0 leaves itself out");
    refused(tuttiCommShrink(comm, nullptr, 0, &made, nullptr, 6), "flags 0x6: there is 0x1");
    refused(tuttiCommGrow(nullptr, 2, nullptr, 0, &made, nullptr), "comm and id are NULL");
    refused(tuttiCommGrow(comm, 2, nullptr, 1, &made, nullptr), "a rank of comm keeps its own");
    refused(tuttiCommGrow(comm, 2, nullptr, -1, &made, nullptr), "no rank gave the unique id");
    refused(tuttiCommGetUniqueId(comm, nullptr), "comm or id is NULL");
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

TEST(CApiTest, WrongArgumentsAreRefusedByNumber) {
  RunCRanks(1, [](tuttiComm_t comm, int) {
    float in = 1, out = 0;
    EXPECT_EQ(
        tuttiAllReduce(&in, &out, 1, static_cast<tuttiDataType_t>(12), tuttiSum, comm, nullptr),
        tuttiInvalidArgument);
    EXPECT_STREQ(tuttiGetLastError(nullptr), "data type 12: there are 0 to 9");
    EXPECT_EQ(tuttiAllReduce(&in, &out, 1, tuttiFloat, static_cast<tuttiRedOp_t>(7), comm, nullptr),
              tuttiInvalidArgument);
    EXPECT_STREQ(tuttiGetLastError(nullptr), "reduction 7: there are 0 to 4");
    EXPECT_EQ(tuttiAllReduce(&in, &out, SIZE_MAX, tuttiFloat, tuttiSum, comm, nullptr),
              tuttiInvalidArgument);
    EXPECT_EQ(tuttiAllReduce(&in, &out, 1, tuttiFloat, tuttiSum, nullptr, nullptr),
              tuttiInvalidArgument);
    EXPECT_STREQ(tuttiGetLastError(nullptr), "the communicator is NULL");
    EXPECT_EQ(tuttiBroadcast(&in, &out, 1, tuttiFloat, 1, comm, nullptr), tuttiInvalidArgument);
    EXPECT_STREQ(tuttiGetLastError(nullptr), "root 1: there are ranks 0 to 0");
    EXPECT_EQ(tuttiAllReduce(&in, &out, 1, tuttiFloat, tuttiSum, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(out, 1);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.magic = 0;
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, tuttiUniqueId{}, 0, &config), tuttiInvalidArgument);
  EXPECT_THAT(tuttiGetLastError(nullptr), HasSubstr("TUTTI_CONFIG_INITIALIZER"));
  EXPECT_EQ(tuttiCommInitRank(&comm, 1, tuttiUniqueId{}, 0), tuttiInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

// A program built when the structure ended after its version runs with this library.
TEST(CApiTest, AnOlderConfigurationHasTheDefaultsOfWhatItLacks) {
  RunCRanks(1, [](tuttiComm_t comm, int) { tuttiCommDestroy(comm); });
  tuttiUniqueId id;
  ASSERT_EQ(tuttiGetUniqueId(&id), tuttiSuccess);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.size = offsetof(tuttiConfig_t, timeout_s);
  config.timeout_s = -1;  // beyond what it has
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiSuccess)
      << tuttiGetLastError(nullptr);
  EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
}

TEST(CApiTest, FailuresOnAStreamShowWhereTheyAreAskedFor) {
  RunCRanks(2, [](tuttiComm_t comm, int rank) {
    tuttiStream_t stream = nullptr;
    ASSERT_EQ(tuttiStreamCreate(&stream), tuttiSuccess);
    std::vector<float> data(64);
    EXPECT_EQ(tuttiAllReduce(data.data(), data.data(), rank == 0 ? 10 : 20, tuttiFloat, tuttiSum,
                             comm, stream),
              tuttiSuccess);
    EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiRemoteError);
    EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiSuccess);  // told once
    tuttiResult_t state = tuttiSuccess;
    EXPECT_EQ(tuttiCommGetAsyncError(comm, &state), tuttiSuccess);
    EXPECT_EQ(state, tuttiRemoteError);
    EXPECT_THAT(tuttiGetLastError(comm), HasSubstr("all-reduce of 20 float (sum)"));
    EXPECT_EQ(tuttiCommAbort(comm), tuttiSuccess);
    EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess);
  });
}

TEST(CApiTest, EveryFunctionHasItsTwin) {
  int version = 0;
  EXPECT_EQ(ptuttiGetVersion(&version), tuttiSuccess);
  EXPECT_EQ(version, TUTTI_VERSION_CODE);
  for (int result = 0; result <= 8; ++result)
    EXPECT_STREQ(tuttiGetErrorString(static_cast<tuttiResult_t>(result)),
                 ptuttiGetErrorString(static_cast<tuttiResult_t>(result)));
}

}  // namespace
}  // namespace tutti
