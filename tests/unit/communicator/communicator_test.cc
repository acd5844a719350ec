#include "tutti/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap.h"
#include "every_collective.h"
#include "ranks_in_threads.h"
#include "support/ip_version6.h"
#include "tutti/base/random.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(CommunicatorTest, TwoRanksAddTheirNumbers) {
  RunRanks(2, [](Communicator& ranks) {
    const std::vector<float> mine = {1, 2, 3};
    std::vector<float> sum(3);
    ASSERT_TRUE(
        Succeeded(ranks.AllReduce(mine.data(), sum.data(), 3, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_EQ(sum, (std::vector<float>{2, 4, 6}));
    ASSERT_TRUE(
        Succeeded(ranks.AllReduce(sum.data(), sum.data(), 3, DataType::kFloat32, ReduceOp::kAvg)));
    EXPECT_EQ(sum, (std::vector<float>{2, 4, 6}));
  });
}

// Joins as many ranks as there are options, each in a thread, and hands over what became of it.
void RunOneEach(const std::vector<CommunicatorOptions>& options,
                const std::function<void(const Result<Communicator>&)>& look) {
  const UniqueId id = MakeUniqueId().value();
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < options.size(); ++rank)
    threads.emplace_back([&, rank] {
      look(Communicator::Join(id, static_cast<int32_t>(options.size()), static_cast<int32_t>(rank),
                              options[rank]));
    });
  for (std::thread& thread : threads) thread.join();
}

// Which ranks share memory: all, none (as on hosts of their own), or all but every third.
constexpr std::array<int32_t, 3> kApart = {0, 1, 3};
CommunicatorOptions OptionsApart(int32_t apart, int32_t rank) {
  return {.timeout_s = 60, .shared_memory = apart == 0 || (apart > 1 && rank % apart != 2)};
}

TEST(CommunicatorTest, EveryCollectiveMeansWhatItSays) {
  for (const int32_t apart : kApart)
    for (const int32_t num_ranks : {1, 2, 3, 5, 8})
      RunRanksWith(
          num_ranks,
          [](Communicator& ranks) {
            for (const int64_t count : {1, 0, 3, 17, 1000, 2049, 1}) CheckAll(ranks, count);
          },
          [apart](int32_t rank) { return OptionsApart(apart, rank); });
}

TEST(CommunicatorTest, LargeMessagesAndManyRanks) {
  for (const int32_t apart : kApart) {
    const auto options_of = [apart](int32_t rank) { return OptionsApart(apart, rank); };
    RunRanksWith(
        4, [](Communicator& ranks) { CheckAll(ranks, 300'000); }, options_of);
    RunRanksWith(
        19,
        [](Communicator& ranks) {
          CheckAll(ranks, 10);
          EXPECT_EQ(
              ranks.ScheduleFor(CollectiveKind::kAllReduce, 100'000, DataType::kInt64).value(),
              "bfb on genkautz(4,19)");
        },
        options_of);
  }
}

TEST(CommunicatorTest, EveryTypeReducesAsTheLanguageDoes) {
  RunRanks(3, [](Communicator& ranks) {
    const auto check = [&ranks](DataType type, auto one) {
      using T = decltype(one);
      const std::vector<T> mine = {static_cast<T>(ranks.rank() + 1), static_cast<T>(100)};
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
        std::vector<T> out(2);
        ASSERT_TRUE(Succeeded(ranks.AllReduce(mine.data(), out.data(), 2, type, op)));
        const std::map<ReduceOp, std::vector<T>> wanted = {
            {ReduceOp::kSum, {static_cast<T>(6), static_cast<T>(300)}},
            {ReduceOp::kProd, {static_cast<T>(6), static_cast<T>(1'000'000)}},
            {ReduceOp::kMin, {static_cast<T>(1), static_cast<T>(100)}},
            {ReduceOp::kMax, {static_cast<T>(3), static_cast<T>(100)}}};
        EXPECT_EQ(out, wanted.at(op)) << Name(type) << " " << Name(op);
      }
    };
    check(DataType::kFloat32, 1.0F);
    check(DataType::kFloat64, 1.0);
    check(DataType::kInt8, int8_t{1});
    check(DataType::kUint8, uint8_t{1});
    check(DataType::kInt32, int32_t{1});
    check(DataType::kUint32, uint32_t{1});
    check(DataType::kInt64, int64_t{1});
    check(DataType::kUint64, uint64_t{1});
  });
}

// Blocks of any size, none too, at any place; against the definition.
TEST(CommunicatorTest, AllToAllVOfRandomBlocks) {
  constexpr int32_t kRanks = 4;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    std::vector<std::vector<int64_t>> counts(kRanks, std::vector<int64_t>(kRanks));
    for (auto& row : counts)
      for (int64_t& count : row)
        count = random.Below(3) == 0 ? 0 : static_cast<int64_t>(random.Below(5000));
    RunRanks(kRanks, [&counts](Communicator& ranks) {
      const auto me = static_cast<size_t>(ranks.rank());
      std::vector<int64_t> to = counts[me], from, to_at, from_at, input, wanted;
      for (size_t peer = 0; peer < kRanks; ++peer) {
        from.push_back(counts[peer][me]);
        to_at.push_back(static_cast<int64_t>(input.size()));
        from_at.push_back(static_cast<int64_t>(wanted.size()));
        const auto block = [](size_t source, size_t target, int64_t count) {
          return Block(static_cast<int32_t>(source), static_cast<int64_t>(target) * 3, count);
        };
        for (const int64_t value : block(me, peer, to[peer])) input.push_back(value);
        for (const int64_t value : block(peer, me, from[peer])) wanted.push_back(value);
      }
      std::vector<int64_t> output(wanted.size(), -1);
      ASSERT_TRUE(Succeeded(ranks.AllToAllV(input.data(), to, to_at, output.data(), from, from_at,
                                            DataType::kInt64)));
      EXPECT_EQ(output, wanted);
    });
  }
}

// Hundreds of messages to and from dozens of peers, some of them far beyond a window.
TEST(CommunicatorTest, ExchangesWithManyPeers) {
  constexpr int32_t kRanks = 40;
  constexpr int64_t kEach = 20;
  RunRanks(kRanks, [](Communicator& ranks) {
    const int32_t me = ranks.rank();
    std::vector<int64_t> out(kRanks * kEach), in(out.size(), -1);
    std::vector<Message> messages;
    for (int64_t turn = 0; turn < kEach; ++turn)
      for (int32_t peer = 0; peer < kRanks; ++peer) {
        const auto at = static_cast<size_t>(peer * kEach + turn);
        out[at] = 1'000'000 * me + static_cast<int64_t>(at);
        messages.push_back({peer, &out[at], 8, true});
        messages.push_back({peer, &in[at], 8, false});
      }
    ASSERT_TRUE(Succeeded(ranks.Exchange(messages)));
    for (int32_t peer = 0; peer < kRanks; ++peer)
      for (int64_t turn = 0; turn < kEach; ++turn)
        ASSERT_EQ(in[static_cast<size_t>(peer * kEach + turn)],
                  1'000'000 * peer + me * kEach + turn);
  });
}

TEST(CommunicatorTest, MessagesMeetInOrderWhateverTheOrderOfTheirLists) {
  RunRanks(3, [](Communicator& ranks) {
    const int32_t me = ranks.rank(), next = (me + 1) % 3, previous = (me + 2) % 3;
    std::vector<int64_t> first = {me}, second = {10 * me, 11 * me}, own = {7}, in_first(1),
                         in_second(2), in_own(1);
    // More messages than a window holds, all to one peer.
    std::vector<int64_t> many(100), in_many(100);
    std::iota(many.begin(), many.end(), 1000 * me);
    std::vector<Message> messages = {
        {previous, in_first.data(), 8, false}, {me, in_own.data(), 8, false},
        {next, first.data(), 8, true},         {previous, in_second.data(), 16, false},
        {next, second.data(), 16, true},       {me, own.data(), 8, true}};
    for (size_t i = 0; i < many.size(); ++i) {
      messages.push_back({next, &many[i], 8, true});
      messages.push_back({previous, &in_many[i], 8, false});
    }
    ASSERT_TRUE(Succeeded(ranks.Exchange(messages)));
    EXPECT_EQ(in_first[0], previous);
    EXPECT_EQ(in_second, (std::vector<int64_t>{10 * previous, 11 * previous}));
    EXPECT_EQ(in_own[0], 7);
    EXPECT_EQ(in_many[99], 1000 * previous + 99);
  });
}

TEST(CommunicatorTest, SplitOrdersByKeyAndRank) {
  RunRanks(5, [](Communicator& ranks) {
    // Even and odd ranks apart, in reverse; rank 4 in none.
    const int32_t me = ranks.rank();
    auto part = ranks.Split(me == 4 ? -1 : me % 2, -me);
    ASSERT_TRUE(part) << part.error().message;
    if (me == 4) {
      EXPECT_EQ(*part, nullptr);
      return;
    }
    EXPECT_EQ((*part)->num_ranks(), 2);
    EXPECT_EQ((*part)->rank(), me < 2 ? 1 : 0);
    const int64_t mine = me;
    int64_t sum = -1;
    ASSERT_TRUE(Succeeded((*part)->AllReduce(&mine, &sum, 1, DataType::kInt64, ReduceOp::kSum)));
    EXPECT_EQ(sum, me % 2 == 0 ? 2 : 4);
    ASSERT_TRUE(Succeeded((*part)->Barrier()));
  });
}

std::filesystem::path NewFolder(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / (name + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

// An all-reduce.
void AddSchedule(const std::filesystem::path& library, const char* network, const char* algorithm,
                 const char* file) {
  const Topology topology = ParseTopology(network).value();
  const Collective collective =
      Collective::Make(CollectiveKind::kAllReduce, topology.num_ranks()).value();
  const Schedule schedule =
      RunSynthesizer(*FindSynthesizer(algorithm).value(), topology, collective, {}).value();
  ASSERT_TRUE(WriteScheduleFile((library / file).string(), topology, schedule));
}

TEST(CommunicatorTest, TheLibraryChoosesByPredictedTime) {
  const std::filesystem::path folder = NewFolder("tutti_library_");
  // Two steps over three links against six over one: of the same bandwidth in all the ring wins late.
  AddSchedule(folder, "complete(4)", "bfb", "few_steps.sched");
  AddSchedule(folder, "ring(4,bw=100GB/s)", "ring", "fast_links.sched");
  AddSchedule(folder, "ring(5)", "ring", "of_others.sched");
  RunRanks(4,
           [](Communicator& ranks) {
             const auto name = [&ranks](CollectiveKind kind, int64_t count) {
               return ranks.ScheduleFor(kind, count, DataType::kFloat32).value();
             };
             EXPECT_EQ(name(CollectiveKind::kAllReduce, 4), "few_steps.sched");
             EXPECT_EQ(name(CollectiveKind::kAllReduce, 1 << 28), "fast_links.sched");
             EXPECT_EQ(name(CollectiveKind::kAllGather, 4), "shared board");
             EXPECT_EQ(name(CollectiveKind::kReduceScatter, 5000), "bfb on complete(4)");
             EXPECT_EQ(name(CollectiveKind::kAllToAll, 5000), "direct messages");
             CheckAll(ranks, 100);
             CheckAll(ranks, 30'000);
           },
           {.timeout_s = 60, .schedules = folder.string()});
  std::filesystem::remove_all(folder);
}

// --- Fixed order ---------------------------------------------------------------------------------

// Numbers of all digits, whose sum depends on its order.
std::vector<float> RoughNumbers(int32_t rank, int64_t count) {
  Random random(static_cast<uint64_t>(rank) + 1);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(static_cast<double>(random.Next() >> 11) * 0x1p-53 - 0.5));
  return numbers;
}

TEST(CommunicatorFixedOrderTest, TheSameBitsWhereverTheRanksAre) {
  constexpr int32_t kRanks = 5;
  std::map<int64_t, std::vector<float>> sums;
  for (const int32_t apart : kApart)
    RunRanksWith(
        kRanks,
        [&sums](Communicator& ranks) {
          for (const int64_t count : {10, 3000, 700'001}) {
            EXPECT_NE(
                ranks.ScheduleFor(CollectiveKind::kAllReduce, count, DataType::kFloat32).value(),
                "shared board");
            const std::vector<float> mine = RoughNumbers(ranks.rank(), count);
            std::vector<float> sum(mine.size()), part(mine.size());
            ASSERT_TRUE(Succeeded(ranks.AllReduce(mine.data(), sum.data(), count,
                                                  DataType::kFloat32, ReduceOp::kSum)));
            ASSERT_TRUE(Succeeded(ranks.Reduce(mine.data(), part.data(), count, DataType::kFloat32,
                                               ReduceOp::kSum, 2)));
            if (ranks.rank() != 2) continue;
            sum.insert(sum.end(), part.begin(), part.end());
            const auto [known, is_first] = sums.try_emplace(count, sum);
            EXPECT_TRUE(is_first || known->second == sum) << count;
          }
        },
        [apart](int32_t rank) {
          CommunicatorOptions options = OptionsApart(apart, rank);
          options.fixed_order = true;
          return options;
        });
  EXPECT_EQ(sums.size(), 3u);
}

TEST(CommunicatorTest, LibrariesThatDifferAreNamed) {
  const std::filesystem::path folder = NewFolder("tutti_libraries_");
  AddSchedule(folder, "ring(2)", "ring", "ring.sched");
  RunOneEach({{.timeout_s = 20}, {.timeout_s = 20, .schedules = folder.string()}},
             [](const Result<Communicator>& joined) {
               ASSERT_FALSE(joined);
               EXPECT_THAT(joined.error().message, HasSubstr("the schedule libraries of ranks"));
             });
  std::filesystem::remove_all(folder);
}

TEST(CommunicatorFixedOrderTest, AllRanksHaveIt) {
  RunOneEach({{.timeout_s = 20}, {.timeout_s = 20, .fixed_order = true}},
             [](const Result<Communicator>& joined) {
               ASSERT_FALSE(joined);
               EXPECT_THAT(joined.error().message, HasSubstr("one reduces in a fixed order"));
             });
  const UniqueId id = MakeUniqueId().value();
  EXPECT_THAT(Communicator::Join(id, 1, 0, {.fixed_order = true, .service = "/no/such/socket"})
                  .error()
                  .message,
              HasSubstr("for ranks without a service"));
}

// --- IP version 6 ---------------------------------------------------------------------------------

TEST(CommunicatorVersion6Test, CollectivesAndShrinkingRunOverIt) {
  if (!HasIpVersion6()) GTEST_SKIP() << "no IP version 6 here: " << std::strerror(errno);
  setenv("TUTTI_HOST", "::1", 1);
  for (const bool shared_memory : {false, true})
    RunRanks(3,
             [](Communicator& ranks) {
               for (const int64_t count : {1, 1000, 30'000}) CheckAll(ranks, count);
               if (ranks.rank() == 0) return;
               const auto left = ranks.Shrink();
               ASSERT_TRUE(left) << left.error().message;
               EXPECT_EQ((*left)->num_ranks(), 2);
               CheckAll(**left, 100);
             },
             {.timeout_s = 60, .shared_memory = shared_memory});
  unsetenv("TUTTI_HOST");
}

TEST(UniqueIdTest, SaysWhereTheRootIsByEitherVersion) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    bootstrap::Address address;
    address.root.address = i % 2 == 0 ? IpAddress(static_cast<uint32_t>(random.Next()))
                                      : IpAddress::OfWords(random.Next(), random.Next());
    address.root.port = static_cast<uint16_t>(random.Next());
    address.secret = {random.Next(), random.Next()};
    UniqueId id = bootstrap::Encode(address);
    const Result<bootstrap::Address> read = bootstrap::Decode(id);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->root, address.root);
    EXPECT_EQ(read->secret, address.secret);
    // Of another version, a port that is none, something behind it.
    for (const size_t at : {size_t{6}, size_t{26}, size_t{31}, size_t{48}, size_t{127}}) {
      UniqueId wrong = id;
      wrong.bytes[at] ^= std::byte{0x40};
      EXPECT_FALSE(bootstrap::Decode(wrong)) << at;
    }
  }
}

TEST(UniqueIdTest, TheHostMayBeAName) {
  setenv("TUTTI_HOST", "localhost", 1);
  RunRanks(2, [](Communicator& ranks) { ASSERT_TRUE(Succeeded(ranks.Barrier())); });
  unsetenv("TUTTI_HOST");
}

// --- Faults --------------------------------------------------------------------------------------

TEST(CommunicatorTest, WhatTheCallerGivesWrongIsNamedAndHarmsNothing) {
  RunRanks(2, [](Communicator& ranks) {
    float in[2] = {1, 2}, out[2];
    const auto message = [](const Status& status) {
      return status ? std::string("no error") : status.error().message;
    };
    EXPECT_EQ(message(ranks.AllReduce(in, out, -1, DataType::kFloat32, ReduceOp::kSum)),
              "a count of -1");
    EXPECT_EQ(message(ranks.AllReduce(nullptr, out, 2, DataType::kFloat32, ReduceOp::kSum)),
              "all-reduce of 2 float (sum): no input");
    EXPECT_EQ(message(ranks.Broadcast(in, out, 2, DataType::kFloat32, 2)),
              "root 2: there are ranks 0 to 1");
    EXPECT_EQ(message(ranks.Exchange(std::vector<Message>{{5, in, 8, true}})),
              "peer 5: there are ranks 0 to 1");
    EXPECT_EQ(message(ranks.Exchange(std::vector<Message>{{ranks.rank(), in, 8, true}})),
              "rank " + std::to_string(ranks.rank()) +
                  " sends itself 1 messages of [8] bytes and receives 0 of []");
    ASSERT_TRUE(Succeeded(ranks.AllReduce(in, out, 2, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_EQ(out[1], 4);
  });
}

TEST(CommunicatorTest, DifferentCallsAreNamedOnBothRanks) {
  // On the board, by rings, over TCP.
  for (const auto& [count, shared_memory] :
       std::vector<std::pair<int64_t, bool>>{{8, true}, {8000, true}, {8, false}, {8000, false}})
    RunRanks(
        2,
        [n = count](Communicator& ranks) {
          std::vector<float> in(static_cast<size_t>(2 * n), 1), out(in.size());
          const auto begin = std::chrono::steady_clock::now();
          const Status ran = ranks.AllReduce(in.data(), out.data(), ranks.rank() == 0 ? n : 2 * n,
                                             DataType::kFloat32, ReduceOp::kSum);
          const auto seconds = std::chrono::steady_clock::now() - begin;
          ASSERT_FALSE(ran);
          EXPECT_EQ(ran.error().code, ErrorCode::kPeerFailed);
          EXPECT_THAT(ran.error().message,
                      AllOf(HasSubstr("all-reduce of " + std::to_string(n) + " float (sum)"),
                            HasSubstr("all-reduce of " + std::to_string(2 * n) + " float (sum)"),
                            HasSubstr("the ranks do not run the same")));
          EXPECT_LT(seconds, std::chrono::seconds(60));  // of the 300 that the operation has
          // It stays failed.
          EXPECT_EQ(ranks.Barrier().error().message, ran.error().message);
          EXPECT_FALSE(ranks.health());
        },
        {.timeout_s = 300, .shared_memory = shared_memory});
}

TEST(CommunicatorTest, AMessageOfAnotherLengthIsNoticed) {
  for (const bool shared_memory : {true, false})
    RunRanks(
        2,
        [](Communicator& ranks) {
          std::vector<char> data(100);
          Status ran = ranks.Exchange(std::vector<Message>{
              {1 - ranks.rank(), data.data(), ranks.rank() == 0 ? 40 : 50, ranks.rank() == 0}});
          // A message that has left is no longer the sender's: it hears of it in its next call.
          if (ran && ranks.rank() == 0) ran = ranks.Barrier();
          ASSERT_FALSE(ran);
          EXPECT_THAT(ran.error().message, HasSubstr("the ranks do not run the same"));
        },
        {.timeout_s = 60, .shared_memory = shared_memory});
}

TEST(CommunicatorTest, AbortEndsAllRanks) {
  RunRanks(3, [](Communicator& ranks) {
    std::thread other;
    if (ranks.rank() == 1)
      other = std::thread([&ranks] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ranks.Abort();
      });
    std::vector<float> data(10);
    // Rank 2 never comes.
    if (ranks.rank() != 2) {
      const Status ran = ranks.Broadcast(data.data(), data.data(), 10, DataType::kFloat32, 2);
      ASSERT_FALSE(ran);
      EXPECT_THAT(ran.error().message, HasSubstr("aborted"));
    } else {
      const Status ran = ranks.Barrier();
      ASSERT_FALSE(ran);
      EXPECT_THAT(ran.error().message, AllOf(HasSubstr("rank 1: in "), HasSubstr("aborted")));
    }
    if (other.joinable()) other.join();
  });
}

TEST(CommunicatorTest, ARankThatDoesNotComeIsNamed) {
  const UniqueId id = MakeUniqueId().value();
  const Result<Communicator> alone = Communicator::Join(id, 3, 1, {.timeout_s = 2});
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message,
              AllOf(HasSubstr("rank 1 of 3 joins: not all ranks came in time"),
                    HasSubstr("not there: rank 0, 2")));
}

TEST(CommunicatorTest, WhoJoinsWronglyIsTold) {
  const UniqueId id = MakeUniqueId().value();
  const auto message = [&id](int32_t num_ranks, int32_t rank) {
    const auto joined = Communicator::Join(id, num_ranks, rank, {.timeout_s = 3});
    return joined ? std::string() : joined.error().message;
  };
  // Of two that come as rank 0 one is told, and the other waits for rank 1 in vain.
  std::vector<std::string> messages(2);
  std::thread first([&] { messages[0] = message(2, 0); });
  messages[1] = message(2, 0);
  first.join();
  EXPECT_THAT(messages, testing::UnorderedElementsAre(HasSubstr("rank 0 has joined already"),
                                                      HasSubstr("not there: rank 1")));
  EXPECT_THAT(message(3, 1), HasSubstr("rank 1 says that there are 3 ranks, others say 2"));
  EXPECT_THAT(message(2, 5), HasSubstr("rank 5 of 2 cannot be"));
  UniqueId nonsense;
  nonsense.bytes.fill(std::byte{7});
  EXPECT_EQ(Communicator::Join(nonsense, 2, 0).error().message,
            "rank 0 of 2 joins: these bytes are no unique id of this version");
}

TEST(CommunicatorTest, TheIdTravelsByAFile) {
  const std::string path = testing::TempDir() + "/tutti_id_" + std::to_string(getpid());
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&path, rank] {
      const Result<UniqueId> id = ShareUniqueIdByFile(path, rank, 20);
      ASSERT_TRUE(id) << id.error().message;
      Communicator ranks = Communicator::Join(*id, 2, rank, {.timeout_s = 20}).value();
      ASSERT_TRUE(Succeeded(ranks.Barrier()));
    });
  for (std::thread& thread : threads) thread.join();
  std::filesystem::remove(path);
  EXPECT_THAT(ShareUniqueIdByFile(path, 1, 0.02).error().message,
              HasSubstr("rank 0 has written no unique id within 0.02 s"));
}

}  // namespace
}  // namespace tutti
