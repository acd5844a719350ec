// Every flat algorithm against what the exchange must give, computed from a seed: byte k of the
// block from s to d is a function of (seed, s, d, k). Run on any number of ranks; prints what
// failed and ends with 1. Receive buffers start as kUntouched everywhere, so that writes into holes
// show.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call.h"
#include "communicator_state.h"
#include "exchange/direct.h"
#include "exchange/radix_rounds.h"
#include "exchange/run.h"
#include "exchange/tuna.h"
#include "exchange_harness.h"
#include "message.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/mpi/alltoallv.h"
#include "tutti/mpi/persistent.h"
#include "tutti/tune/cost_model.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

// Simulated messages are dear: there fewer workloads a radix, on more numbers of ranks.
#ifdef TUTTI_MPI_SMPI
constexpr bool kSimulated = true;
#else
constexpr bool kSimulated = false;
#endif
bool IsDear(int size) { return kSimulated && size > 9 && size != 16; }

// Counts and places of blocks; shuffled: with holes and in an order drawn from the seed.
struct Placement {
  std::vector<int> counts, displacements;
  int64_t elements = 0;

  friend bool operator==(const Placement&, const Placement&) = default;
};

Placement Place(std::vector<int> counts, uint64_t seed, bool shuffled) {
  Placement placement;
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  if (shuffled) std::shuffle(order.begin(), order.end(), random);
  placement.displacements.resize(counts.size());
  for (const size_t block : order) {
    if (shuffled) placement.elements += static_cast<int64_t>(random() % 3);
    placement.displacements[block] = static_cast<int>(placement.elements);
    placement.elements += counts[block];
  }
  placement.counts = std::move(counts);
  return placement;
}

// One rank's side of a workload in bytes, and what it must end with.
struct Case {
  Ranks ranks;
  Workload workload;
  Placement send, receive;
  std::vector<unsigned char> out, in, expected;

  Case(const Ranks& on, const Workload& what, bool shuffled) : ranks(on), workload(what) {
    std::vector<int> sent;
    std::vector<int> received;
    for (int peer = 0; peer < ranks.size; ++peer) {
      sent.push_back(workload.Count(ranks.rank, peer));
      received.push_back(workload.Count(peer, ranks.rank));
    }
    send = Place(sent, workload.seed + 1, shuffled);
    receive = Place(received, workload.seed + 2, shuffled);
    out.resize(static_cast<size_t>(send.elements) + 1);
    in.assign(static_cast<size_t>(receive.elements) + 1, kUntouched);
    Fill(workload.seed);
  }

  // What is sent and expected under another seed, of the same sizes.
  void Fill(uint64_t seed) {
    expected.assign(in.size(), kUntouched);
    for (size_t peer = 0; peer < send.counts.size(); ++peer) {
      const int other = static_cast<int>(peer);
      for (int k = 0; k < send.counts[peer]; ++k) {
        out[static_cast<size_t>(send.displacements[peer] + k)] = ByteOf(seed, ranks.rank, other, k);
      }
      for (int k = 0; k < receive.counts[peer]; ++k) {
        expected[static_cast<size_t>(receive.displacements[peer] + k)] =
            ByteOf(seed, other, ranks.rank, k);
      }
    }
  }

  std::string Name(const Algorithm& algorithm) const {
    return alltoallv::ToString(algorithm) + " on " + std::to_string(ranks.size) + " ranks, rank " +
           std::to_string(ranks.rank) + ", seed " + std::to_string(workload.seed);
  }
};

void CheckBytes(const Ranks& ranks, const Workload& workload, bool shuffled,
                const Algorithm& algorithm) {
  Case given(ranks, workload, shuffled);
  const Case before = given;
  const int error =
      Alltoallv(given.out.data(), given.send.counts.data(), given.send.displacements.data(),
                MPI_BYTE, given.in.data(), given.receive.counts.data(),
                given.receive.displacements.data(), MPI_BYTE, ranks.communicator, algorithm);
  const std::string name = given.Name(algorithm);
  if (error != MPI_SUCCESS) Fail(name + ": error " + std::to_string(error));
  if (given.in != given.expected) Fail(name + ": wrong bytes");
  if (given.out != before.out) Fail(name + ": the send buffer was written");
  if (given.send != before.send || given.receive != before.receive) {
    Fail(name + ": the caller's arrays were written");
  }
}

std::vector<Algorithm> Algorithms(const std::vector<const char*>& texts) {
  std::vector<Algorithm> all;
  for (const char* text : texts) all.push_back(alltoallv::ParseAlgorithm(text).value());
  return all;
}

std::vector<Algorithm> EveryName() {
  return Algorithms({"linear", "pairwise", "xor", "spread-out", "scattered:b=3", "scattered",
                     "two-phase-bruck", "padded-bruck", "tuna", "mpi"});
}

// --- By hand: which blocks go when, and where forwarded ones are kept ----------------------------

void RoundsAreThePapers() {
  // [tuna] figure 3: eight ranks, radix 2, 3, 4: 4, 3, 3 places.
  const RadixRounds two(8, 2);
  if (two.num_rounds() != 3 || two.num_slots() != 4) Fail("rounds of 8 ranks by radix 2");
  if (RadixRounds(8, 3).num_slots() != 3) Fail("places of 8 ranks by radix 3");
  if (RadixRounds(8, 4).num_slots() != 3) Fail("places of 8 ranks by radix 4");
  if (RadixRounds(8, 7).num_slots() != 0) Fail("places of 8 ranks by radix 7");
  std::vector<int64_t> slots(8, -1);
  RadixRound round;
  for (int k = 0; k < 3; ++k, round = two.After(round)) {
    two.ForEachRow(round, [&](int64_t start, int64_t end, int64_t first_slot) {
      for (int64_t block = start + (start == round.first ? 1 : 0); block < end; ++block) {
        slots[static_cast<size_t>(block)] = first_slot + block - start;
      }
    });
  }
  if (slots != std::vector<int64_t>{-1, -1, -1, 0, -1, 1, 2, 3}) Fail("places of 8 ranks");
}

// Against digits counted one by one, for every P <= 64 and every radix.
void RoundsAndSlotsOfEveryRadix() {
  for (int64_t size = 1; size <= 64; ++size) {
    for (int64_t radix = 2; radix <= size + 1; ++radix) {
      const std::string name = std::to_string(size) + " ranks, radix " + std::to_string(radix);
      const int64_t base = std::max<int64_t>(2, std::min(radix, size));
      int64_t direct = 0;
      std::vector<int64_t> place(static_cast<size_t>(size), -1);
      for (int64_t block = 1; block < size; ++block) {
        int digits = 0;
        for (int64_t rest = block; rest > 0; rest /= base) digits += rest % base != 0 ? 1 : 0;
        if (digits == 1) {
          ++direct;
        } else {
          place[static_cast<size_t>(block)] = block - 1 - direct;
        }
      }
      const RadixRounds rounds(size, radix);
      if (rounds.num_rounds() != direct) Fail(name + ": rounds");
      if (rounds.num_slots() != size - (direct + 1)) Fail(name + ": places");
      RadixRound round;
      for (int64_t k = 0; k < direct; ++k, round = rounds.After(round)) {
        int64_t blocks = 0;
        int64_t arrived = 0;
        rounds.ForEachRow(round, [&](int64_t start, int64_t end, int64_t first) {
          blocks += end - start;
          if (start == round.first) arrived = end - start;
          for (int64_t block = start; block < end; ++block) {
            if (block / round.step % base != round.first / round.step) Fail(name + ": digit");
            const int64_t wanted = place[static_cast<size_t>(block)];
            if (wanted >= 0 && wanted != first + block - start) Fail(name + ": place of a block");
          }
        });
        if (blocks != rounds.NumBlocks(round) || arrived != rounds.NumArrived(round)) {
          Fail(name + ": blocks of a round");
        }
      }
    }
  }
}

// --- Numbers above what an int holds
// --------------------------------------------------------------

void PiecesOfLongMessages() {
  struct Row {
    int64_t bytes, piece;
    int whole, rest;
  };
  for (const Row& row :
       {Row{0, kLargestPiece, 0, 0}, Row{5, kLargestPiece, 0, 5},
        Row{INT_MAX, kLargestPiece, 1, (1 << 30) - 1}, Row{int64_t{1} << 33, kLargestPiece, 8, 0},
        Row{(int64_t{1} << 40) + 7, kLargestPiece, 1024, 7}, Row{1000, 64, 15, 40}}) {
    const Pieces pieces = SplitIntoPieces(row.bytes, row.piece);
    if (pieces.whole != row.whole || pieces.rest != row.rest) {
      Fail("pieces of " + std::to_string(row.bytes));
    }
  }
}

// Counts and displacements of 8 GiB blocks; nothing is allocated.
void OffsetsOfLargeBlocks() {
  const std::vector<int> counts{1 << 30, INT_MAX, 1 << 30};
  const std::vector<int> places{INT_MAX, 0, 1 << 30};
  CommunicatorState::Bytes bytes;
  for (auto* each :
       {&bytes.send_offset, &bytes.send_bytes, &bytes.receive_offset, &bytes.receive_bytes}) {
    each->resize(3);
  }
  const CallSide side{nullptr, counts.data(), places.data(), 0, MPI_DOUBLE};
  Call call;
  const int error = call.Prepare(MPI_COMM_SELF, 0, 3, side, side, true, bytes);
  const BlockExchange& blocks = call.blocks();
  const int64_t eight_gib = int64_t{8} << 30;
  if (error != MPI_SUCCESS || blocks.send_bytes[0] != eight_gib ||
      blocks.receive_bytes[1] != int64_t{8} * INT_MAX ||
      blocks.send_offset[0] != int64_t{8} * INT_MAX || blocks.receive_offset[2] != eight_gib) {
    Fail("bytes of blocks above 2^31");
  }
}

void MessagesInPiecesArrive(const Ranks& world) {
  std::vector<std::byte> out(1000);
  std::vector<std::byte> in(1000);
  for (size_t k = 0; k < out.size(); ++k) {
    out[k] = static_cast<std::byte>(ByteOf(3, world.rank, 0, static_cast<int64_t>(k)));
  }
  for (const int64_t piece : {64, 100, 999, 1000}) {
    std::fill(in.begin(), in.end(), std::byte{0});
    const int from = (world.rank + world.size - 1) % world.size;
    MPI_Request requests[2];
    ReceiveBytes(in.data(), 1000, from, Tag::kData, world.communicator, &requests[0], piece);
    SendBytes(out.data(), 1000, (world.rank + 1) % world.size, Tag::kData, world.communicator,
              &requests[1], piece);
    WaitForAll(requests);
    for (size_t k = 0; k < in.size(); ++k) {
      if (in[k] != static_cast<std::byte>(ByteOf(3, from, 0, static_cast<int64_t>(k)))) {
        Fail("a message in pieces of " + std::to_string(piece));
        break;
      }
    }
  }
}

// --- Answers
// ---------------------------------------------------------------------------------------

void EveryAlgorithmGivesTheAnswer(const Ranks& world) {
  for (const Algorithm& algorithm : EveryName()) {
    for (uint64_t seed = 1; seed <= (kSimulated ? 1 : 3); ++seed) {
      CheckBytes(world, {.seed = seed, .most = 40, .zeros_of_eight = 2}, seed % 2 == 1, algorithm);
    }
  }
  for (int radix = 2; radix <= world.size + 1; radix += kSimulated && radix > 16 ? 7 : 1) {
    CheckBytes(world, {.seed = 11, .most = 24, .zeros_of_eight = 2}, true,
               {Method::kTuna, radix, 0});
  }
  if (IsDear(world.size)) return;
  for (const int radix : {2, 3, 4, 7}) {
    const Algorithm tuna{Method::kTuna, radix, 0};
    // Dense and in order; sizes of two bytes each; above what goes with its sizes; nothing at all.
    CheckBytes(world, {.seed = 12, .most = 9, .zeros_of_eight = 0}, false, tuna);
    CheckBytes(world, {.seed = 13, .most = 700, .zeros_of_eight = 1}, true, tuna);
    CheckBytes(world, {.seed = 14, .most = 9000, .zeros_of_eight = 3}, true, tuna);
    CheckBytes(world, {.seed = 15, .most = 800000 / world.size, .zeros_of_eight = 7}, true, tuna);
    CheckBytes(world, {.seed = 16, .most = 0, .zeros_of_eight = 8}, true, tuna);
  }
}

// Every number of ranks up to those of the world, with every radix: really exchanged, among the
// first ranks of the world. Thinned: of the radices above 6 every ninth, and the last two.
void EveryRadixOnEveryNumberOfRanks(const Ranks& world, bool thinned) {
  for (int size = 2; size <= world.size; ++size) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(world.communicator, world.rank < size ? 0 : MPI_UNDEFINED, 0, &part);
    if (part == MPI_COMM_NULL) continue;
    const Ranks ranks(part);
    for (int radix = 2; radix <= size; ++radix) {
      if (thinned && radix > 6 && radix < size - 1 && (radix + size) % 9 != 0) continue;
      CheckBytes(ranks, {.seed = 17, .most = 12, .zeros_of_eight = 2}, true,
                 {Method::kTuna, radix, 0});
    }
    // Sizes in a message of their own: blocks above what goes with them.
    for (int radix = 2; radix <= size; radix += thinned ? 23 : 5) {
      CheckBytes(ranks, {.seed = 18, .most = 400, .zeros_of_eight = 1}, true,
                 {Method::kTuna, radix, 0});
    }
    MPI_Comm_free(&part);
  }
}

void UniformAllToAll(const Ranks& world) {
  std::vector<Algorithm> all = EveryName();
  for (const int radix : {2, 3, 5, world.size}) all.push_back({Method::kTuna, radix, 0});
  for (const Algorithm& algorithm : all) {
    for (const int count : {0, 1, 13, 1000}) {
      const int64_t total = int64_t{count} * world.size;
      std::vector<unsigned char> out(static_cast<size_t>(total) + 1);
      std::vector<unsigned char> in(static_cast<size_t>(total) + 1, kUntouched);
      std::vector<unsigned char> expected(in);
      for (int64_t k = 0; k < total; ++k) {
        const int peer = static_cast<int>(k / count);
        out[static_cast<size_t>(k)] = ByteOf(9, world.rank, peer, k % count);
        expected[static_cast<size_t>(k)] = ByteOf(9, peer, world.rank, k % count);
      }
      const int error = Alltoall(out.data(), count, MPI_BYTE, in.data(), count, MPI_BYTE,
                                 world.communicator, algorithm);
      const std::string name = alltoallv::ToString(algorithm) + ", all-to-all of " +
                               std::to_string(count) + " on " + std::to_string(world.size);
      if (error != MPI_SUCCESS || in != expected) Fail(name + ": wrong bytes");
      // In place what was received goes back where it came from.
      if (algorithm.method == Method::kMpi) continue;
      const int again = Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), count, MPI_BYTE,
                                 world.communicator, algorithm);
      std::copy(out.begin(), out.end() - 1, expected.begin());
      if (again != MPI_SUCCESS || in != expected) Fail(name + ": wrong bytes in place");
    }
  }
}

// --- Memory
// ------------------------------------------------------------------------------------------

// [tuna] section III-C: places for P - (K + 1) blocks of the largest size.
void TemporaryMemoryIsThePapers(const Ranks& world) {
  CommunicatorState* state = nullptr;
  CommunicatorState::Of(world.communicator, &state);
  for (const int most : {1, 64, 5000}) {
    for (int radix = 2; radix <= world.size; radix += kSimulated ? 3 : 1) {
      for (const bool as_published : {false, true}) {
        const Case given(world, {.seed = 5, .most = most, .zeros_of_eight = 0}, true);
        std::vector<int64_t> bytes[4];
        for (size_t peer = 0; peer < given.send.counts.size(); ++peer) {
          bytes[0].push_back(given.send.displacements[peer]);
          bytes[1].push_back(given.send.counts[peer]);
          bytes[2].push_back(given.receive.displacements[peer]);
          bytes[3].push_back(given.receive.counts[peer]);
        }
        std::vector<unsigned char> in = given.in;
        const BlockExchange exchange{.communicator = state->duplicate(),
                                     .rank = world.rank,
                                     .size = world.size,
                                     .send = reinterpret_cast<const std::byte*>(given.out.data()),
                                     .send_offset = bytes[0],
                                     .send_bytes = bytes[1],
                                     .receive = reinterpret_cast<std::byte*>(in.data()),
                                     .receive_offset = bytes[2],
                                     .receive_bytes = bytes[3]};
        Trace trace;
        const int error =
            TunaExchange(exchange, {.radix = radix, .as_published = as_published}, &trace);
        const RadixRounds rounds(world.size, radix);
        const std::string name = std::to_string(world.size) + " ranks, radix " +
                                 std::to_string(radix) + ", blocks of " + std::to_string(most);
        if (error != MPI_SUCCESS || in != given.expected) Fail(name + ": wrong bytes");
        if (trace.slots != rounds.num_slots() || trace.rounds != rounds.num_rounds()) {
          Fail(name + ": " + std::to_string(trace.slots) + " places");
        }
        if (trace.temporary_bytes > rounds.num_slots() * most) {
          Fail(name + ": " + std::to_string(trace.temporary_bytes) + " temporary bytes");
        }
        // A message a round; the paper's has one of sizes and one of blocks.
        if (trace.messages > (as_published || most > 64 ? 2 : 1) * rounds.num_rounds()) {
          Fail(name + ": " + std::to_string(trace.messages) + " messages");
        }
      }
    }
  }
}

// --- Persistent form
// ---------------------------------------------------------------------------------

void PersistentExchangesRepeat(const Ranks& world) {
  std::vector<Algorithm> all = EveryName();
  for (const int radix : {2, 3, world.size}) all.push_back({Method::kTuna, radix, 0});
  for (const Algorithm& algorithm : all) {
    for (const int most : {30, 20000}) {
      Case given(world, {.seed = 21, .most = most, .zeros_of_eight = 2}, true);
      std::unique_ptr<PersistentAlltoallv> exchange;
      const int made = PersistentAlltoallv::Init(
          given.out.data(), given.send.counts.data(), given.send.displacements.data(), MPI_BYTE,
          given.in.data(), given.receive.counts.data(), given.receive.displacements.data(),
          MPI_BYTE, world.communicator, algorithm, &exchange);
      if (made != MPI_SUCCESS) {
        Fail(given.Name(algorithm) + ": persistent form not made");
        continue;
      }
      for (uint64_t round = 0; round < 3; ++round) {
        given.Fill(100 + round);
        std::fill(given.in.begin(), given.in.end(), kUntouched);
        if (exchange->Start() != MPI_SUCCESS || exchange->Wait() != MPI_SUCCESS ||
            given.in != given.expected) {
          Fail(given.Name(algorithm) + ": persistent, time " + std::to_string(round));
        }
      }
    }
  }
}

// Two persistent exchanges under way on one communicator, with a call between.
void PersistentExchangesAtOnce(const Ranks& world) {
  for (const Algorithm& algorithm : Algorithms({"tuna:r=2", "scattered:b=1", "linear"})) {
    Case first(world, {.seed = 31, .most = 50, .zeros_of_eight = 2}, true);
    Case second(world, {.seed = 32, .most = 50, .zeros_of_eight = 2}, true);
    std::unique_ptr<PersistentAlltoallv> exchanges[2];
    Case* cases[] = {&first, &second};
    for (int k = 0; k < 2; ++k) {
      Case& given = *cases[k];
      PersistentAlltoallv::Init(given.out.data(), given.send.counts.data(),
                                given.send.displacements.data(), MPI_BYTE, given.in.data(),
                                given.receive.counts.data(), given.receive.displacements.data(),
                                MPI_BYTE, world.communicator, algorithm, &exchanges[k]);
    }
    exchanges[0]->Start();
    exchanges[1]->Start();
    CheckBytes(world, {.seed = 33, .most = 50, .zeros_of_eight = 2}, true, algorithm);
    exchanges[0]->Wait();
    exchanges[1]->Wait();
    if (first.in != first.expected || second.in != second.expected) {
      Fail(first.Name(algorithm) + ": two at once");
    }
  }
}

// What runs where no radix is given, round by round as the cost model counts them.
void DefaultRadixIsThePredictedOne() {
  for (int ranks = 2; ranks <= 128; ++ranks) {
    const std::string name = std::to_string(ranks) + " ranks";
    const alltoallv::Algorithm run =
        alltoallv::Resolved({.method = alltoallv::Method::kTuna}, ranks);
    const int radix = run.method == alltoallv::Method::kTuna ? run.radix : ranks;
    const RadixRounds rounds(ranks, radix);
    const std::vector<tune::TunaRound> predicted =
        tune::TunaRounds(ranks, alltoallv::RadixFor(0, ranks));
    if (rounds.num_rounds() != static_cast<int64_t>(predicted.size())) {
      Fail(name + ": rounds of the default radix");
      continue;
    }
    RadixRound round;
    for (const tune::TunaRound& each : predicted) {
      if (round.first != each.distance || rounds.NumBlocks(round) != each.blocks) {
        Fail(name + ": a round of the default radix");
      }
      round = rounds.After(round);
    }
  }
}

void EveryMethodIsRunOrTheCallers() {
  for (size_t i = 0; i < alltoallv::kNumMethods; ++i) {
    const auto method = static_cast<alltoallv::Method>(i);
    const alltoallv::Family family = alltoallv::FamilyOf(method);
    const bool callers =
        family == alltoallv::Family::kChosen || family == alltoallv::Family::kNative;
    if (CanRunExchange(method) == callers) Fail("method " + std::to_string(i) + " is run");
    if (IsDirect(method) != (family == alltoallv::Family::kDirect)) Fail("direct methods");
  }
}

void Run() {
  const Ranks world(MPI_COMM_WORLD);
  if (const char* const radices = std::getenv("TUTTI_TEST_RADICES")) {
    EveryRadixOnEveryNumberOfRanks(world, std::string_view(radices) != "all");
    return;
  }
  if (world.rank == 0) {
    RoundsAreThePapers();
    if (world.size <= 2) RoundsAndSlotsOfEveryRadix();
    DefaultRadixIsThePredictedOne();
    EveryMethodIsRunOrTheCallers();
    PiecesOfLongMessages();
    OffsetsOfLargeBlocks();
  }
  EveryAlgorithmGivesTheAnswer(world);
  if (IsDear(world.size)) return;
  MessagesInPiecesArrive(world);
  UniformAllToAll(world);
  TemporaryMemoryIsThePapers(world);
  PersistentExchangesRepeat(world);
  PersistentExchangesAtOnce(world);
}

}  // namespace
}  // namespace tutti::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  tutti::mpi::Run();
  return tutti::mpi::Finish();
}
