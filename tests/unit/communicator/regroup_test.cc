#include "regroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap.h"
#include "ranks_in_threads.h"
#include "support/quiet_fork.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// --- The rule ------------------------------------------------------------------------------------

// 'p' present, 'g' gone, '-' missing.
bool MayGoOn(const std::string& ranks) {
  Roll roll(static_cast<int32_t>(ranks.size()));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == 'p' && !roll.Enter(static_cast<int32_t>(rank), {})) ADD_FAILURE();
    if (ranks[rank] == 'g') roll.SetGone(static_cast<int32_t>(rank));
  }
  return static_cast<bool>(roll.MayGoOn());
}

TEST(RegroupRule, ByHand) {
  for (const char* may : {"p", "pp", "pg", "gp", "ppg", "gpp", "ggp", "pp-", "-pp", "p-", "pp--",
                          "p-g", "gp-", "p-p-g", "ggggp"})
    EXPECT_TRUE(MayGoOn(may)) << may;
  for (const char* may_not : {"-", "g", "-p", "p--", "--p", "-p-p", "--pp", "g-p", "p--g", "gg--p"})
    EXPECT_FALSE(MayGoOn(may_not)) << may_not;
}

// Whatever cuts the network, and whoever has gone: of two groups that see only each its own, and only such as gone that are,
// at most one goes on. All ways to do that with up to six ranks.
TEST(RegroupRule, NoTwoGroupsGoOn) {
  for (size_t ranks = 1; ranks <= 6; ++ranks) {
    size_t ways = 1, both = 0, any = 0;
    for (size_t i = 0; i < ranks; ++i) ways *= 7;
    for (size_t way = 0; way < ways; ++way) {
      // Of each rank: in the first group, in the second, in none, or gone: seen so by none, one, the other, both.
      std::string first, second;
      for (size_t i = 0, left = way; i < ranks; ++i, left /= 7) {
        first += "p---g-g"[left % 7];
        second += "-p---gg"[left % 7];
      }
      const bool one = MayGoOn(first), other = MayGoOn(second);
      any += one || other;
      both += one && other;
      ASSERT_FALSE(one && other) << first << " " << second;
    }
    EXPECT_GT(any, 0u);
    EXPECT_EQ(both, 0u);
  }
}

TEST(RegroupRule, WhoAsksForSomethingElseIsNamed) {
  Roll roll(4);
  ASSERT_TRUE(roll.Enter(1, {.excluded = {3}}));
  EXPECT_EQ(roll.Enter(0, {}).error().message,
            "rank 1 asks to shrink without rank 3, rank 0 to shrink");
  EXPECT_EQ(roll.Enter(2, {.grows_to = 5}).error().message,
            "rank 1 asks to shrink without rank 3, rank 2 to grow to 5 ranks");
  EXPECT_EQ(roll.Enter(3, {.excluded = {3}}).error().message,
            "rank 1 asks to shrink without rank 3");
  EXPECT_EQ(roll.Survivors(), std::vector<int32_t>{1});
  Roll grows(2);
  ASSERT_TRUE(grows.Enter(0, {.grows_to = 1}));
  ASSERT_TRUE(grows.Enter(1, {.grows_to = 1}));
  EXPECT_THAT(grows.BecomeOf(0, std::nullopt).error().message,
              HasSubstr("no rank gave the unique id"));
  ASSERT_TRUE(grows.Enter(1, {.grows_to = 1, .id = UniqueId{}}));
  EXPECT_THAT(grows.BecomeOf(0, std::nullopt).error().message,
              HasSubstr("2 ranks cannot grow to 1"));
}

TEST(RegroupBytes, ComeBackAsTheyWereAndWrongOnesAreNotTaken) {
  UniqueId id;
  id.bytes.fill(std::byte{5});
  const std::vector<std::string> rights = {
      Encode(RegroupAsk{}), Encode(RegroupAsk{.excluded = {0, 4, 77}}),
      Encode(RegroupAsk{.grows_to = 9, .id = id}), Encode(Regrouped{id, 5, 3}),
      Encode(Regrouped{id, 4, 1, {0, 2, 5}})};
  const auto same = [](const std::string& bytes) {
    const auto ask = DecodeAsk(bytes);
    const auto regrouped = DecodeRegrouped(bytes);
    EXPECT_TRUE(!ask || Encode(*ask) == bytes);
    EXPECT_TRUE(!regrouped || Encode(*regrouped) == bytes);
    return ask || regrouped;
  };
  Random random(11);
  for (const std::string& right : rights) {
    EXPECT_TRUE(same(right));
    for (size_t size = 0; size < right.size(); ++size) same(right.substr(0, size));
    EXPECT_FALSE(same(right + "x"));
    for (int i = 0; i < 5000; ++i) {
      std::string wrong = right;
      wrong[random.Below(wrong.size())] = static_cast<char>(random.Below(256));
      same(wrong);
    }
  }
}

// --- Ranks in threads ----------------------------------------------------------------------------

// All work together, and are `num_ranks`.
void CheckThatItWorks(Communicator& ranks, int32_t num_ranks) {
  ASSERT_EQ(ranks.num_ranks(), num_ranks);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{70'001}}) {
    std::vector<int64_t> data(count);
    for (size_t i = 0; i < count; ++i)
      data[i] = (ranks.rank() + 1) * static_cast<int64_t>(i % 5 + 1);
    ASSERT_TRUE(Succeeded(ranks.AllReduce(data.data(), data.data(), static_cast<int64_t>(count),
                                          DataType::kInt64, ReduceOp::kSum)));
    const int64_t sum = int64_t{num_ranks} * (num_ranks + 1) / 2;
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum * static_cast<int64_t>(i % 5 + 1));
  }
}

TEST(ShrinkTest, TheOthersGoOnInTheirOrder) {
  RunRanks(4, [](Communicator& ranks) {
    CheckThatItWorks(ranks, 4);
    if (ranks.rank() == 1) return;
    const auto left = ranks.Shrink({});
    ASSERT_TRUE(left) << left.error().message;
    EXPECT_EQ((*left)->rank(), ranks.rank() == 0 ? 0 : ranks.rank() - 1);
    CheckThatItWorks(**left, 3);
    // And once more, by name, while who is left out lives.
    if ((*left)->rank() == 2) return (void)(*left)->health();
    const std::vector<int32_t> out = {2};
    const auto two = (*left)->Shrink(out);
    ASSERT_TRUE(two) << two.error().message;
    CheckThatItWorks(**two, 2);
  });
}

// Also over TCP alone, and with the one that leads the others gone.
TEST(ShrinkTest, WhoeverGoes) {
  for (const bool shared_memory : {true, false})
    for (int32_t victim = 0; victim < 3; ++victim) {
      std::barrier all_are_through(3);  // who aborts ends what others are still in
      RunRanks(3,
               [victim, &all_are_through](Communicator& ranks) {
                 CheckThatItWorks(ranks, 3);
                 all_are_through.arrive_and_wait();
                 if (ranks.rank() == victim) return ranks.Abort();
                 // Whether or not it has failed already.
                 if (ranks.rank() == (victim + 1) % 3) static_cast<void>(ranks.Barrier());
                 const auto left = ranks.Shrink();
                 ASSERT_TRUE(left) << left.error().message;
                 CheckThatItWorks(**left, 2);
               },
               {.timeout_s = 60, .shared_memory = shared_memory});
    }
}

TEST(ShrinkTest, WrongListsAreRefused) {
  RunRanks(2, [](Communicator& ranks) {
    const auto message = [&ranks](const std::vector<int32_t>& out) {
      const auto left = ranks.Shrink(out);
      EXPECT_FALSE(left);
      return left ? "" : left.error().message;
    };
    EXPECT_EQ(message({7}), "rank 7 to be left out: there are 2");
    EXPECT_EQ(message({ranks.rank()}),
              "rank " + std::to_string(ranks.rank()) + " leaves itself out; it need not call");
    CheckThatItWorks(ranks, 2);
  });
}

TEST(ShrinkTest, RanksThatAskForDifferentThingsAllHearOfIt) {
  RunRanks(3, [](Communicator& ranks) {
    const std::vector<int32_t> out = {2};
    if (ranks.rank() < 2) {
      const auto left = ranks.rank() == 0 ? ranks.Shrink(out) : ranks.Shrink();
      ASSERT_FALSE(left);
      EXPECT_THAT(left.error().message,
                  HasSubstr("rank 0 asks to shrink without rank 2, rank 1 to shrink"));
    }
    // Nobody is gone before all have heard.
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
}

// Each half leaves the other one out: the one with the lowest rank goes on.
TEST(ShrinkTest, OfTwoHalvesOneGoesOn) {
  RunRanks(4, [](Communicator& ranks) {
    const bool low = ranks.rank() < 2;
    const std::vector<int32_t> out = low ? std::vector<int32_t>{2, 3} : std::vector<int32_t>{0, 1};
    const auto left = ranks.Shrink(out);
    if (low) {
      ASSERT_TRUE(left) << left.error().message;
      CheckThatItWorks(**left, 2);
    } else {
      ASSERT_FALSE(left);
      EXPECT_EQ(left.error().code, ErrorCode::kPeerFailed);
      EXPECT_THAT(left.error().message, HasSubstr("2 of 4 ranks are here and 0 have gone"));
    }
    ASSERT_TRUE(Succeeded(ranks.Barrier()));
  });
}

TEST(ShrinkTest, WhoDoesNotAskIsWaitedForAndTheMajorityGoesOnWithoutIt) {
  RunRanks(3,
           [](Communicator& ranks) {
             if (ranks.rank() != 0) {
               const auto left = ranks.Shrink();
               ASSERT_TRUE(left) << left.error().message;
               EXPECT_EQ((*left)->num_ranks(), 2);
             }
             static_cast<void>(ranks.Barrier());
           },
           {.timeout_s = 3});
}

TEST(GrowTest, NewcomersJoinARunningCommunicator) {
  const UniqueId first = MakeUniqueId().value();
  constexpr int32_t kOld = 3, kAll = 5;
  std::atomic<bool> made = false;
  UniqueId grows;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < kAll; ++rank)
    threads.emplace_back([&, rank] {
      if (rank >= kOld) {
        while (!made) std::this_thread::yield();
        Result<Communicator> joined = Communicator::Join(grows, kAll, rank, {.timeout_s = 60});
        ASSERT_TRUE(joined) << joined.error().message;
        for (int i = 0; i < 2; ++i) CheckThatItWorks(*joined, kAll);
        return;
      }
      Communicator ranks = Communicator::Join(first, kOld, rank, {.timeout_s = 60}).value();
      CheckThatItWorks(ranks, kOld);
      if (rank == 1) {
        grows = ranks.MakeGrowId().value();
        made = true;
      }
      const auto grown = ranks.Grow(kAll, rank == 1 ? &grows : nullptr);
      ASSERT_TRUE(grown) << grown.error().message;
      EXPECT_EQ((*grown)->rank(), rank);
      CheckThatItWorks(**grown, kAll);
      CheckThatItWorks(ranks, kOld);  // the old one stays
      CheckThatItWorks(**grown, kAll);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(GrowTest, WhatCannotBeIsRefusedAndTheOldOneStays) {
  RunRanks(2, [](Communicator& ranks) {
    EXPECT_THAT(ranks.Grow(3).error().message, HasSubstr("no rank gave the unique id"));
    const UniqueId id = ranks.MakeGrowId().value();
    EXPECT_THAT(ranks.Grow(1, &id).error().message, HasSubstr("2 ranks cannot grow to 1"));
    EXPECT_THAT(ranks.Grow(0).error().message, HasSubstr("2 ranks cannot grow to 0"));
    EXPECT_THAT(ranks.Grow(3 + ranks.rank(), &id).error().message,
                HasSubstr("rank 0 asks to grow to 3 ranks, rank 1 to grow to 4 ranks"));
    CheckThatItWorks(ranks, 2);
  });
}

// One has gone, another comes in its place, in one step.
TEST(GrowTest, OfOneThatHasFailedThoseGrowThatAreLeft) {
  std::atomic<bool> made = false;
  UniqueId grows;
  std::thread newcomer([&] {
    while (!made) std::this_thread::yield();
    Result<Communicator> joined = Communicator::Join(grows, 3, 2, {.timeout_s = 60});
    ASSERT_TRUE(joined) << joined.error().message;
    CheckThatItWorks(*joined, 3);
  });
  RunRanks(3, [&](Communicator& ranks) {
    if (ranks.rank() == 0) return ranks.Abort();
    std::vector<float> data(100);
    Status ran;
    while (ran)
      ran = ranks.AllReduce(data.data(), data.data(), 100, DataType::kFloat32, ReduceOp::kSum);
    if (ranks.rank() == 2) {
      grows = ranks.MakeGrowId().value();
      made = true;
    }
    const auto grown = ranks.Grow(3, ranks.rank() == 2 ? &grows : nullptr);
    ASSERT_TRUE(grown) << grown.error().message;
    CheckThatItWorks(**grown, 3);
  });
  newcomer.join();
}

// --- Processes -----------------------------------------------------------------------------------

// Daemons that ranks have in turn, rank r the (r mod n)-th.
struct DaemonsOfRanks {
  std::vector<std::string> sockets;
  size_t killed = SIZE_MAX;  // that one, together with the victims
  pid_t process = 0;         // it

  bool is_lost(int32_t rank) const {
    return !sockets.empty() && static_cast<size_t>(rank) % sockets.size() == killed;
  }
};

// Of `ranks` processes those in `victims` are killed while collectives run, or while the others regroup: they go on until
// they are so many as are left. The first one makes the id; it may be killed like any other. Who waited for a time-out would
// not end within the alarm.
void KillAndGoOn(int32_t num_ranks, const std::vector<int32_t>& victims, uint32_t seed,
                 const DaemonsOfRanks& daemons = {}) {
  constexpr double kNever_s = 600;
  const auto dies = [&victims](int32_t rank) {
    return std::find(victims.begin(), victims.end(), rank) != victims.end();
  };
  int32_t survivors = 0;
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    if (!dies(rank) && !daemons.is_lost(rank)) ++survivors;
  const std::string path = testing::TempDir() + "/tutti_regroup_" + std::to_string(getpid()) + "_" +
                           std::to_string(seed);
  std::vector<pid_t> children;
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    const pid_t child = test_support::QuietFork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    alarm(120);
    if (!daemons.sockets.empty())
      setenv("TUTTI_SERVICE",
             daemons.sockets[static_cast<size_t>(rank) % daemons.sockets.size()].c_str(), 1);
    const Result<UniqueId> id = ShareUniqueIdByFile(path, rank, 60);
    if (!id) _exit(10);
    Result<Communicator> joined = Communicator::Join(*id, num_ranks, rank, {.timeout_s = kNever_s});
    if (!joined) _exit(11);
    auto ranks = std::make_unique<Communicator>(std::move(*joined));
    Random random(seed * 100 + static_cast<uint32_t>(rank));
    // Nobody dies before all have joined; what becomes of this call the next one says, too.
    static_cast<void>(ranks->Barrier());
    if (dies(rank)) {
      // The first one may take its daemon with it.
      const pid_t daemon = rank == victims.front() ? daemons.process : 0;
      std::thread([delay = random.Below(20'000), daemon] {
        std::this_thread::sleep_for(std::chrono::microseconds(delay));
        if (daemon > 0) kill(daemon, SIGKILL);
        kill(getpid(), SIGKILL);
      }).detach();
    }
    std::vector<int64_t> data(20'000);
    for (int32_t after = 0; after < 20;) {
      std::fill(data.begin(), data.end(), 1);
      const Status ran =
          ranks->AllReduce(data.data(), data.data(), 20'000, DataType::kInt64, ReduceOp::kSum);
      if (ran) {
        for (const int64_t sum : data)
          if (sum != ranks->num_ranks()) _exit(12);
        // All see the same number, and so end together.
        if (ranks->num_ranks() == survivors) ++after;
        continue;
      }
      auto left = ranks->Shrink();
      if (!left) {
        std::fprintf(stderr, "rank %d: %s\n", rank, left.error().message.c_str());
        _exit(13);
      }
      ranks = std::move(*left);
    }
    static_cast<void>(ranks->Barrier());  // nobody ends before all have the last sum
    _exit(dies(rank) || daemons.is_lost(rank) ? 14 : 0);
  }
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    int status = -1;
    ASSERT_EQ(waitpid(children[static_cast<size_t>(rank)], &status, 0),
              children[static_cast<size_t>(rank)]);
    if (dies(rank))
      EXPECT_TRUE(WIFSIGNALED(status)) << "seed " << seed << ", rank " << rank;
    else if (daemons.is_lost(rank))
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 13)
          << "seed " << seed << ", rank " << rank;
    else
      EXPECT_EQ(status, 0) << "seed " << seed << ", rank " << rank << ", exit "
                           << WEXITSTATUS(status);
  }
  std::filesystem::remove(path);
}

TEST(RegroupProcessTest, AnyRankThatIsKilledIsDoneWithout) {
  for (int32_t victim = 0; victim < 3; ++victim)
    KillAndGoOn(3, {victim}, static_cast<uint32_t>(victim));
}

// Nothing but silence tells of it: more than half of all are left, and need no time-out.
TEST(RegroupProcessTest, ARankThatIsStoppedIsDoneWithout) {
  const CommunicatorOptions options{.timeout_s = 0, .silence_s = 4};
  struct Job {
    UniqueId id;
    int32_t stops = 0;
    pid_t victim = 0;
  };
  std::vector<Job> jobs;
  // Both at once: what they do most of the time is wait.
  for (const int32_t stops : {0, 2}) {
    const UniqueId id = MakeUniqueId().value();
    const pid_t victim = test_support::QuietFork();
    if (victim == 0) {
      alarm(120);
      const Result<Communicator> ranks = Communicator::Join(id, 3, stops, options);
      if (ranks) raise(SIGSTOP);
      _exit(0);
    }
    jobs.push_back({id, stops, victim});
  }
  std::vector<std::thread> threads;
  for (const Job& job : jobs)
    for (int32_t rank = 0; rank < 3; ++rank)
      if (rank != job.stops)
        threads.emplace_back([&job, &options, rank] {
          Communicator ranks = Communicator::Join(job.id, 3, rank, options).value();
          ASSERT_FALSE(ranks.Barrier());
          const auto left = ranks.Shrink();
          ASSERT_TRUE(left) << left.error().message;
          CheckThatItWorks(**left, 2);
        });
  for (std::thread& thread : threads) thread.join();
  for (const Job& job : jobs) {
    kill(job.victim, SIGCONT);
    int status = 0;
    ASSERT_EQ(waitpid(job.victim, &status, 0), job.victim);
    EXPECT_EQ(status, 0);
  }
}

// `count` of `num_ranks`, drawn, in order.
std::vector<int32_t> DrawRanks(int32_t num_ranks, size_t count, Random& random) {
  std::vector<int32_t> ranks;
  while (ranks.size() < count) {
    const auto rank = static_cast<int32_t>(random.Below(static_cast<uint64_t>(num_ranks)));
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Also while those that are left join again: nobody waits for one that was to join and has ended.
void KillSeveral(uint32_t first_seed, uint32_t seeds) {
  for (uint32_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    Random random(seed);
    const bool few = seed % 2 == 0;
    KillAndGoOn(few ? 4 : 6, DrawRanks(few ? 4 : 6, few ? 2 : 3, random), 1000 + seed);
  }
}

TEST(RegroupProcessTest, SeveralThatAreKilledAtOnceAreDoneWithout) { KillSeveral(0, 6); }

TEST(RegroupProcessByHand, SeveralThatAreKilledAtOnceAreDoneWithout) { KillSeveral(100, 200); }

// Of six ranks of three daemons one is killed with a daemon that is not its own: TUTTI_TEST_DAEMONS names the sockets, then
// number, process and seed (tests/cli/service_test.py).
TEST(RegroupProcessTest, ADaemonAndARankOfAnotherAtOnce) {
  const char* told = std::getenv("TUTTI_TEST_DAEMONS");
  if (told == nullptr) GTEST_SKIP() << "there are no daemons";
  std::istringstream words(told);
  DaemonsOfRanks daemons{.sockets = std::vector<std::string>(3)};
  uint32_t seed = 0;
  for (std::string& socket : daemons.sockets) words >> socket;
  words >> daemons.killed >> daemons.process >> seed;
  ASSERT_TRUE(words && daemons.killed < 3 && daemons.process > 0) << told;
  Random random(seed);
  int32_t victim = 0;
  do victim = static_cast<int32_t>(random.Below(6));
  while (daemons.is_lost(victim));
  KillAndGoOn(6, {victim}, 2000 + seed, daemons);
}

}  // namespace
}  // namespace tutti
