#include "tutti/tune/cost_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::tune {
namespace {

using alltoallv::kDefaultBlockCount;
using alltoallv::RadixFor;

constexpr int64_t kRoundsInFlight = 64;       // of one digit of TuNA
constexpr int64_t kRoundsInFlightInNode = 8;  // the same in the hierarchical forms
constexpr std::string_view kLibraries[] = {"openmpi", "mpich", "smpi"};

// What the ranks of the largest node do at once in one round: so many of their messages stay in
// the node, so many leave it.
struct Traffic {
  double stay = 0, leave = 0;

  Traffic& operator+=(const Traffic& other) {
    stay += other.stay;
    leave += other.leave;
    return *this;
  }
};

class Builder {
 public:
  Builder(const CostModel& model, const Placement& placement)
      : model_(model), placement_(placement), per_node_(placement.largest_node) {}

  double message_s() const { return model_.send_s + model_.receive_s; }
  double largest_node() const { return per_node_; }

  // Every rank sends to the rank `distance` further, 1 <= distance < P.
  Traffic AtDistance(int64_t distance) const {
    if (placement_.nodes == 1) return {per_node_, 0};
    double stay = per_node_ * (per_node_ - 1) / (placement_.ranks - 1);
    if (placement_.consecutive) {
      const double back = static_cast<double>(placement_.ranks - distance);
      stay = std::max(0.0, per_node_ - static_cast<double>(distance)) +
             std::max(0.0, per_node_ - back);
    }
    stay = std::min(stay, per_node_);
    return {stay, per_node_ - stay};
  }
  Traffic Inside() const { return {per_node_, 0}; }
  Traffic Between() const { return {0, per_node_}; }

  double Latency(const Traffic& traffic) const {
    return std::max(traffic.stay > 0 ? model_.inside.latency_s : 0,
                    traffic.leave > 0 ? model_.between.latency_s : 0);
  }

  // Seconds for each byte of a block when every message counted in `traffic` holds `blocks` of
  // them: into per_mean and per_spread of `phase`, `times` times.
  void AddWire(const Traffic& traffic, double blocks, double times, Formula::Phase& phase) const {
    double slowest = 0, spread = 0;
    const auto limit = [&](double s_per_byte, double blocks_there) {
      slowest = std::max(slowest, s_per_byte * blocks_there);
      spread = std::max(spread, s_per_byte * std::sqrt(blocks_there));
    };
    limit(model_.inside.flow_s_per_byte, traffic.stay / per_node_ * blocks);
    limit(model_.inside.node_s_per_byte, traffic.stay * blocks);
    limit(model_.between.flow_s_per_byte, traffic.leave / per_node_ * blocks);
    limit(model_.between.node_s_per_byte, traffic.leave * blocks);
    phase.per_mean += times * slowest;
    phase.per_spread += times * spread;
  }

  void AddCopies(double blocks, double times, Formula::Phase& phase) const {
    phase.fixed_s += times * blocks * model_.copy_s;
    phase.per_mean += times * blocks * model_.copy_s_per_byte;
  }

  // `times` rounds in which every rank sends one message of `blocks` blocks.
  void AddRound(const Traffic& traffic, double blocks, double times, Formula::Phase& phase) const {
    phase.fixed_s += times * (Latency(traffic) + message_s());
    AddWire(traffic, blocks, times, phase);
  }

  // A batch of messages: the first costs its processor time, that of the others passes while the
  // wire is busy.
  Formula::Phase Batch(const Traffic& traffic, double messages, double blocks,
                       double batches) const {
    Formula::Phase phase{.times = batches,
                         .fixed_s = Latency(traffic) + message_s(),
                         .floor_s = std::max(0.0, messages - 1) * message_s()};
    AddWire(traffic, blocks, 1, phase);
    phase.sent_blocks = (traffic.stay + traffic.leave) / per_node_ * blocks;
    phase.message_blocks = messages > 0 ? phase.sent_blocks / messages : 0;
    return phase;
  }

  // TuNA among `ranks` ranks, `weight` blocks in place of each, rounds of one digit `in_flight` at
  // a time. Blocks are gathered into the message of a round and, once they have arrived, copied to
  // their place; a round of one block moves it where it lies. Sizes of blocks that others forward
  // travel with them or, with `sizes_ahead`, in a message before.
  void AddTuna(int64_t ranks, int64_t radix, double weight, bool in_node, bool sizes_ahead,
               int64_t in_flight, Formula& formula) const {
    Formula::Phase copies;
    for (int64_t base = 1; base < ranks; base *= radix) {
      const TunaDigit digit(ranks, radix, base);
      const int64_t batches = (digit.rounds + in_flight - 1) / in_flight;
      const auto times = static_cast<double>(batches);
      const double stay =
          in_node ? per_node_ * static_cast<double>(digit.blocks) : BlocksThatStay(digit);
      const Traffic traffic{
          stay * weight / times,
          (per_node_ * static_cast<double>(digit.blocks) - stay) * weight / times};
      Formula::Phase phase = Batch(traffic, static_cast<double>(digit.rounds) / times, 1, times);
      const double forwarded = sizes_ahead
                                   ? weight * static_cast<double>(digit.blocks)
                                   : weight * static_cast<double>(digit.blocks - digit.arriving);
      const double per_size =
          phase.per_mean * forwarded / (weight * static_cast<double>(digit.blocks));
      if (sizes_ahead) {
        formula.Add({.times = times,
                     .fixed_s = phase.fixed_s,
                     .floor_s = phase.floor_s,
                     .per_size = per_size});
      } else {
        phase.per_size = per_size;
      }
      formula.Add(phase);
      const int64_t singles = weight == 1 ? digit.single_rounds : 0;
      AddCopies(weight * static_cast<double>(digit.blocks + digit.arriving - 2 * singles), 1,
                copies);
    }
    formula.Add(copies);
  }

  // Every rank sends `messages` messages of `blocks` blocks, `at_once` of them in flight; traffic
  // is that of all together.
  void AddBatches(const Traffic& traffic, double messages, double at_once, double blocks,
                  Formula& formula) const {
    if (messages <= 0) return;
    at_once = std::min(at_once, messages);
    const auto add = [&](double times, double size) {
      if (times <= 0 || size <= 0) return;
      const double share = size / messages;
      formula.Add(Batch({traffic.stay * share, traffic.leave * share}, size, blocks, times));
    };
    const double full = std::floor(messages / at_once);
    add(full, at_once);
    add(1, messages - full * at_once);
  }

  // Spread-out in batches of `at_once` partners, nearest first. Batches with a partner in the node
  // count as equal, so do those without; the last may be smaller.
  void AddSpreadOut(int64_t at_once, Formula& formula) const {
    struct Group {
      double batches = 0, messages = 0;
      Traffic traffic;
    };
    std::array<Group, 3> groups;
    const int64_t partners = placement_.ranks - 1;
    at_once = std::clamp<int64_t>(at_once, 1, std::max<int64_t>(partners, 1));
    for (int64_t begin = 1; begin <= partners; begin += at_once) {
      const int64_t size = std::min(at_once, partners - begin + 1);
      Traffic batch;
      for (int64_t i = begin; i < begin + size; ++i) batch += AtDistance(i);
      Group& group = groups[batch.stay > 0 ? 0 : (size == at_once ? 1 : 2)];
      group.batches += 1;
      group.messages += static_cast<double>(size);
      group.traffic += batch;
    }
    for (const Group& group : groups) {
      if (group.batches == 0) continue;
      const Traffic mean = {group.traffic.stay / group.batches,
                            group.traffic.leave / group.batches};
      formula.Add(Batch(mean, group.messages / group.batches, 1, group.batches));
    }
  }

  const CostModel& model() const { return model_; }
  const Placement& placement() const { return placement_; }

  static int64_t BlocksOfDigit(int64_t ranks, int64_t radix, int64_t base, int64_t digit) {
    const int64_t period = base * radix;
    return ranks / period * base + std::clamp<int64_t>(ranks % period - digit * base, 0, base);
  }

 private:
  // All rounds of one digit together.
  struct TunaDigit {
    TunaDigit(int64_t num_ranks, int64_t in_radix, int64_t in_base)
        : ranks(num_ranks),
          radix(in_radix),
          base(in_base),
          rounds(std::min(radix - 1, (ranks - 1) / base)),
          blocks(ranks - BlocksOfDigit(ranks, radix, base, 0)),
          arriving(std::min(ranks, base * radix) - base) {
      // A round has one block where there is no whole period and one block in the cut one, or one
      // whole period of single blocks and none in the cut one.
      const int64_t whole = ranks / (base * radix) * base, cut = ranks % (base * radix);
      if (whole == 0 && base == 1) single_rounds = rounds;
      if (whole == 0 && base > 1) single_rounds = (cut - 1) % base == 0 ? 1 : 0;
      if (whole == 1) single_rounds = rounds - std::clamp<int64_t>(cut - 1, 0, rounds);
    }

    int64_t ranks, radix, base;
    int64_t rounds;
    int64_t blocks;    // sent by a rank in them
    int64_t arriving;  // of these at their destination
    int64_t single_rounds = 0;
  };

  // The blocks that the largest node sends to ranks of the node for this digit.
  double BlocksThatStay(const TunaDigit& digit) const {
    if (placement_.nodes == 1 || !placement_.consecutive) {
      return AtDistance(1).stay * static_cast<double>(digit.blocks);
    }
    const int64_t near = placement_.largest_node;
    double blocks = 0;
    const auto add = [&](int64_t from, int64_t to) {
      for (int64_t z = from; z <= to; ++z) {
        blocks += AtDistance(z * digit.base).stay *
                  static_cast<double>(BlocksOfDigit(digit.ranks, digit.radix, digit.base, z));
      }
    };
    const int64_t last_near = std::min(digit.rounds, (near - 1) / digit.base);
    add(1, last_near);
    add(std::max(last_near + 1, (digit.ranks - near) / digit.base), digit.rounds);
    return blocks;
  }

  const CostModel& model_;
  const Placement& placement_;
  double per_node_;
};

// A maximum over all ranks by recursive doubling, 8 bytes per message.
void AddMaximum(const Builder& builder, Formula::Phase& phase) {
  const Placement& placement = builder.placement();
  for (int64_t distance = 1; distance < placement.ranks; distance *= 2) {
    const Traffic traffic = builder.AtDistance(distance);
    phase.fixed_s += builder.Latency(traffic) + builder.message_s();
  }
}

// Radix 2 with every block as long as the largest, copied into place and back.
Formula::Phase PaddedBruck(const Builder& builder) {
  const int64_t ranks = builder.placement().ranks;
  Formula::Phase phase;
  for (int64_t base = 1; base < ranks; base *= 2) {
    const auto blocks = static_cast<double>(Builder::BlocksOfDigit(ranks, 2, base, 1));
    builder.AddRound(builder.AtDistance(base), blocks, 1, phase);
    builder.AddCopies(2 * blocks, 1, phase);
  }
  phase.per_largest = std::exchange(phase.per_mean, 0.0);
  phase.per_spread = 0;
  builder.AddCopies(2 * static_cast<double>(ranks), 1, phase);
  AddMaximum(builder, phase);
  return phase;
}

// Rounds rank ^ k for k up to the next power of two; the largest node is taken to be aligned.
void AddXor(const Builder& builder, Formula& formula) {
  const Placement& placement = builder.placement();
  double inside = 0, between = 0;
  for (int64_t power = 1; power < placement.ranks; power *= 2) {
    (placement.nodes == 1 || power < placement.largest_node ? inside : between) +=
        static_cast<double>(power);
  }
  for (const auto& [rounds, traffic] :
       {std::pair{inside, builder.Inside()}, std::pair{between, builder.Between()}}) {
    if (rounds > 0) formula.Add(builder.Batch(traffic, 1, 1, rounds));
  }
}

int64_t BlockCountOf(const Algorithm& algorithm) {
  return algorithm.block_count == 0 ? kDefaultBlockCount : algorithm.block_count;
}

// TuNA inside the node over the blocks for every node, then a message (coalesced) or Q messages
// (staggered) for every other node: the receiver knows all sizes.
void AddTwoLevels(const Builder& builder, const Algorithm& algorithm, Formula& formula) {
  const double ranks = builder.placement().ranks, inside = builder.largest_node();
  const double nodes = builder.placement().nodes;
  const bool coalesced = algorithm.method != Method::kStaggered;
  builder.AddTuna(builder.placement().largest_node,
                  RadixFor(algorithm.radix, builder.placement().largest_node), ranks / inside, true,
                  true, kRoundsInFlightInNode, formula);
  const double away = ranks - inside;
  if (coalesced) {
    Formula::Phase scattered;
    builder.AddCopies(away, 1, scattered);
    formula.Add(scattered);
  }
  if (nodes == 1) return;
  const double messages = coalesced ? nodes - 1 : away;
  const Traffic all{0, inside * messages};
  builder.AddBatches(all, messages, static_cast<double>(BlockCountOf(algorithm)),
                     coalesced ? inside : 1, formula);
}

// Coalesced over sockets, nodes and all: after TuNA in the socket, a message for every other socket
// of the node, then one for every other node.
void AddThreeLevels(const Builder& builder, const Algorithm& algorithm, Formula& formula) {
  const Placement& placement = builder.placement();
  const double ranks = placement.ranks, inside = builder.largest_node();
  const double socket = placement.largest_socket;
  const auto at_once = static_cast<double>(BlockCountOf(algorithm));
  builder.AddTuna(placement.largest_socket, RadixFor(algorithm.radix, placement.largest_socket),
                  ranks / socket, true, true, kRoundsInFlightInNode, formula);
  const double sockets = std::ceil(inside / socket);
  builder.AddBatches({inside * (sockets - 1), 0}, sockets - 1, at_once, ranks / sockets, formula);
  Formula::Phase copies;
  builder.AddCopies(ranks - socket + ranks - inside, 1, copies);
  formula.Add(copies);
  if (placement.nodes == 1) return;
  const double others = placement.nodes - 1;
  builder.AddBatches({0, inside * others}, others, at_once, inside, formula);
}

// Over memory that the ranks of a node share: every block is copied out of it on its own and into
// it in a run; between nodes a message of a rank, or of a part of a node, in two waves, so that the
// copies of the first wave pass while the second is on its way.
void AddShared(const Builder& builder, const Algorithm& algorithm, Formula& formula) {
  const Placement& placement = builder.placement();
  const double ranks = placement.ranks, inside = builder.largest_node();
  const double others = placement.nodes - 1;
  const CostModel& model = builder.model();
  const double barrier_s = std::ceil(std::log2(inside)) * model.inside.latency_s;
  Formula::Phase copies;
  builder.AddCopies(ranks - 1, 1, copies);            // out
  copies.per_mean += inside * model.copy_s_per_byte;  // in, for the node
  copies.fixed_s += barrier_s + model.copy_s;
  if (others > 0) {
    constexpr double kWaves = 2, kBytesOfTables = 10;
    copies.fixed_s += kWaves * barrier_s + ranks * kBytesOfTables * model.copy_s_per_byte;
    double messages = others;
    if (algorithm.method == Method::kSharedCoalesced) {
      const double parts = std::clamp(std::floor(2 * inside / others), 1.0, inside);
      messages = std::ceil(parts * others / inside);
      copies.fixed_s += barrier_s + others * model.copy_s;
      copies.per_mean += (ranks - inside) * model.copy_s_per_byte;
    }
    // All ranks send (P - Q) blocks each, in so many messages.
    builder.AddBatches({0, inside * messages}, messages,
                       static_cast<double>(BlockCountOf(algorithm)), (ranks - inside) / messages,
                       formula);
  }
  formula.Add(copies);
}

bool HasThreeLevels(const Placement& placement) {
  return placement.largest_socket > 0 && placement.largest_socket < placement.largest_node;
}

// Open MPI 4.1 decides by the number of ranks alone; MPICH sends in batches of 32; SMPI's default
// posts all requests at once.
Algorithm NativeOf(Library library, int ranks) {
  switch (library) {
    case Library::kMpich:
      return {.method = Method::kScattered, .block_count = 32};
    case Library::kSmpi:
      return {.method = Method::kLinear};
    case Library::kOpenMpi:
      break;
  }
  const bool pairwise = ranks < 4 || (ranks >= 64 && ranks < 128) || (ranks >= 256 && ranks < 1024);
  return {.method = pairwise ? Method::kPairwise : Method::kLinear};
}

// 1, 2, 4, ... and `most` itself.
std::vector<int> PowersUpTo(int most) {
  std::vector<int> powers;
  for (int power = 1; power < most; power *= 2) powers.push_back(power);
  if (most >= 1) powers.push_back(most);
  return powers;
}

// Radices above this share of the ranks differ by single rounds.
constexpr int kFinestRadix = 512;

// Every radix up to kFinestRadix, then in steps of under 1 %; `ranks` itself.
std::vector<int> RadicesUpTo(int ranks) {
  std::vector<int> radices;
  for (int radix = 2; radix < ranks; radix += std::max(1, radix / kFinestRadix * 4)) {
    radices.push_back(radix);
  }
  if (ranks >= 2) radices.push_back(ranks);
  return radices;
}

}  // namespace

std::string_view Name(Library library) { return kLibraries[static_cast<size_t>(library)]; }

Result<Library> ParseLibrary(std::string_view text) {
  const auto* found = std::find(std::begin(kLibraries), std::end(kLibraries), text);
  if (found != std::end(kLibraries)) return static_cast<Library>(found - std::begin(kLibraries));
  return InvalidArgument("unknown MPI library '" + std::string(text) +
                         "'; accepted are openmpi, mpich, smpi");
}

std::string_view Name(Origin origin) {
  switch (origin) {
    case Origin::kMeasured:
      return "measured";
    case Origin::kCrowded:
      return "crowded";
    case Origin::kAssumed:
      return "assumed";
  }
  return "";
}

CostModel DefaultModel(Library library) {
  const double copied_bytes_per_s = library == Library::kSmpi ? 8e9 : 24e9;
  return {.library = library,
          .inside = {.latency_s = 0.5e-6,
                     .flow_s_per_byte = 1 / 8e9,
                     .node_s_per_byte = 1 / 64e9,
                     .origin = Origin::kAssumed},
          .between = {.latency_s = 1.5e-6,
                      .flow_s_per_byte = 1 / 12.5e9,
                      .node_s_per_byte = 1 / 12.5e9,
                      .origin = Origin::kAssumed},
          .send_s = 0.3e-6,
          .receive_s = 0.3e-6,
          .copy_s = 10e-9,
          .copy_s_per_byte = 1 / copied_bytes_per_s};
}

Placement EvenPlacement(int ranks, int ranks_per_node) {
  TUTTI_CHECK(ranks >= 1 && ranks_per_node >= 1);
  return {.ranks = ranks,
          .nodes = (ranks + ranks_per_node - 1) / ranks_per_node,
          .largest_node = std::min(ranks, ranks_per_node)};
}

Placement PlacementOf(std::span<const int> node_of_rank) {
  std::map<int, int> ranks_of;
  int runs = 0;
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    ++ranks_of[node_of_rank[rank]];
    if (rank == 0 || node_of_rank[rank] != node_of_rank[rank - 1]) ++runs;
  }
  Placement placement{.ranks = static_cast<int>(node_of_rank.size()),
                      .nodes = static_cast<int>(ranks_of.size())};
  for (const auto& [node, ranks] : ranks_of) {
    placement.largest_node = std::max(placement.largest_node, ranks);
  }
  placement.consecutive = runs == placement.nodes;
  return placement;
}

std::vector<TunaRound> TunaRounds(int ranks, int radix) {
  TUTTI_CHECK(ranks >= 1 && radix >= 2);
  std::vector<TunaRound> rounds;
  for (int64_t base = 1; base < ranks; base *= radix) {
    for (int64_t z = 1; z < radix && z * base < ranks; ++z) {
      rounds.push_back({z * base, Builder::BlocksOfDigit(ranks, radix, base, z)});
    }
  }
  return rounds;
}

double Formula::Seconds(const BlockSizes& sizes) const {
  // Sizes uniform around the mean up to the largest deviate by half the range / sqrt 3.
  constexpr double kInverseSqrt3 = 0.57735026918962576;
  const double spread = std::max(0.0, sizes.largest_bytes - sizes.mean_bytes) * kInverseSqrt3;
  const double bytes_of_a_size =
      sizes.largest_bytes < 0x100 ? 1 : (sizes.largest_bytes < 0x10000 ? 2 : 4);
  double seconds = 0;
  for (const Phase& phase : phases_) {
    const double moved = phase.per_mean * sizes.mean_bytes + phase.per_spread * spread +
                         phase.per_largest * sizes.largest_bytes + phase.per_size * bytes_of_a_size;
    const double message_bytes = phase.message_blocks * sizes.mean_bytes;
    const double rate = message_bytes <= eager_bytes_ ? eager_s_per_byte_ : 0;
    const double first = message_bytes * rate;
    const double others = phase.sent_blocks * sizes.mean_bytes * rate - first;
    seconds += phase.times * (phase.fixed_s + first + std::max(phase.floor_s + others, moved));
  }
  return seconds;
}

void Formula::Add(const Phase& phase) { phases_.push_back(phase); }

Formula MakeFormula(const CostModel& model, const Placement& placement, const Algorithm& named) {
  TUTTI_CHECK(named.method != Method::kAuto);
  const Algorithm algorithm = Resolved(named, placement.ranks);
  const Builder builder(model, placement);
  Formula formula(model.eager_bytes, model.eager_s_per_byte);
  if (algorithm.method == Method::kMpi) {
    return MakeFormula(model, placement, NativeOf(model.library, placement.ranks));
  }
  Formula::Phase own_block;
  builder.AddCopies(1, 1, own_block);
  formula.Add(own_block);
  if (placement.ranks == 1) return formula;
  switch (algorithm.method) {
    case Method::kLinear:
    case Method::kSpreadOut:
      builder.AddSpreadOut(placement.ranks, formula);
      break;
    case Method::kPairwise:
      builder.AddSpreadOut(1, formula);
      break;
    case Method::kScattered:
      builder.AddSpreadOut(BlockCountOf(algorithm), formula);
      break;
    case Method::kXor:
      AddXor(builder, formula);
      break;
    case Method::kTwoPhaseBruck: {
      builder.AddTuna(placement.ranks, 2, 1, false, true, 1, formula);
      Formula::Phase maximum;
      AddMaximum(builder, maximum);
      formula.Add(maximum);
      break;
    }
    case Method::kPaddedBruck:
      formula.Add(PaddedBruck(builder));
      break;
    case Method::kTuna:
      builder.AddTuna(placement.ranks, algorithm.radix, 1, false, false, kRoundsInFlight, formula);
      break;
    case Method::kMultilevel:
      if (HasThreeLevels(placement)) {
        AddThreeLevels(builder, algorithm, formula);
        break;
      }
      [[fallthrough]];  // two levels are coalesced
    case Method::kCoalesced:
    case Method::kStaggered:
      AddTwoLevels(builder, algorithm, formula);
      break;
    case Method::kShared:
    case Method::kSharedCoalesced:
      AddShared(builder, algorithm, formula);
      break;
    case Method::kAuto:
    case Method::kMpi:
      break;
  }
  return formula;
}

CostTables::CostTables(const CostModel& model, const Placement& placement)
    : model_(model), placement_(placement) {
  std::vector<Candidate> all;
  const auto add = [&](const Algorithm& algorithm) {
    all.push_back({algorithm, MakeFormula(model_, placement_, algorithm)});
  };
  add({.method = Method::kMpi});
  const int ranks = placement_.ranks;
  for (const Method method : {Method::kSpreadOut, Method::kLinear, Method::kPairwise, Method::kXor,
                              Method::kTwoPhaseBruck, Method::kPaddedBruck}) {
    add({.method = method});
  }
  for (const int count : PowersUpTo(ranks - 1)) {
    if (count > 1 && count < ranks - 1) add({.method = Method::kScattered, .block_count = count});
  }
  for (const int radix : RadicesUpTo(ranks)) add({.method = Method::kTuna, .radix = radix});
  const bool levels = placement_.nodes > 1 && placement_.largest_node > 1;
  if (levels) {
    for (const int radix : RadicesUpTo(placement_.largest_node)) {
      for (const int count : PowersUpTo(placement_.nodes - 1)) {
        add({.method = Method::kCoalesced, .radix = radix, .block_count = count});
      }
      for (const int count : PowersUpTo(ranks - placement_.largest_node)) {
        add({.method = Method::kStaggered, .radix = radix, .block_count = count});
      }
    }
  }
  if (placement_.nodes == 1 && placement_.largest_node > 1) add({.method = Method::kShared});
  if (levels) {
    for (const Method method : {Method::kShared, Method::kSharedCoalesced}) {
      for (const int count : PowersUpTo(placement_.nodes - 1)) {
        add({.method = method, .block_count = count});
      }
    }
  }
  if (HasThreeLevels(placement_)) {
    for (const int radix : RadicesUpTo(placement_.largest_socket)) {
      for (const int count : PowersUpTo(std::max(placement_.nodes - 1, 1))) {
        add({.method = Method::kMultilevel, .radix = radix, .block_count = count});
      }
    }
  }
  KeepWinners(std::move(all));
}

// Most candidates are never near the best: kept are, of each method, those among its fastest
// somewhere on a grid of sizes fine enough that nothing is lost between its points.
void CostTables::KeepWinners(std::vector<Candidate> all) {
  constexpr double kLargestBlock = 1 << 24;
  constexpr size_t kOfAMethod = 6;
  std::vector<char> keep(all.size(), 0);
  keep.front() = 1;
  std::vector<double> seconds(all.size());
  std::map<Method, std::vector<size_t>> of_method;
  for (size_t i = 1; i < all.size(); ++i) of_method[all[i].algorithm.method].push_back(i);
  for (double mean = 1; mean <= kLargestBlock; mean *= 2) {
    for (const double times : {1.0, 2.0, 8.0}) {
      const BlockSizes sizes{.mean_bytes = mean, .largest_bytes = mean * times};
      for (size_t i = 1; i < all.size(); ++i) seconds[i] = all[i].formula.Seconds(sizes);
      for (auto& [method, indices] : of_method) {
        const size_t most = std::min(kOfAMethod, indices.size());
        std::partial_sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(most),
                          indices.end(), [&](size_t a, size_t b) {
                            return std::pair{seconds[a], a} < std::pair{seconds[b], b};
                          });
        for (size_t i = 0; i < most; ++i) keep[indices[i]] = 1;
      }
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (keep[i] != 0) candidates_.push_back(all[i]);
  }
}

double CostTables::Seconds(const Algorithm& algorithm, const BlockSizes& sizes) const {
  const auto found =
      std::find_if(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& candidate) { return candidate.algorithm == algorithm; });
  return found != candidates_.end() ? found->formula.Seconds(sizes)
                                    : MakeFormula(model_, placement_, algorithm).Seconds(sizes);
}

Prediction CostTables::Best(const BlockSizes& sizes) const {
  Prediction best{candidates_.front().algorithm, candidates_.front().formula.Seconds(sizes)};
  for (const Candidate& candidate : candidates_) {
    const double seconds = candidate.formula.Seconds(sizes);
    if (seconds < best.seconds) best = {candidate.algorithm, seconds};
  }
  return best;
}

std::vector<Prediction> CostTables::Shortlist(const BlockSizes& sizes, size_t count,
                                              size_t of_a_method) const {
  std::vector<Prediction> all;
  for (size_t i = 1; i < candidates_.size(); ++i) {
    all.push_back({candidates_[i].algorithm, candidates_[i].formula.Seconds(sizes)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Prediction& a, const Prediction& b) { return a.seconds < b.seconds; });
  std::map<Method, size_t> taken;
  std::vector<Prediction> shortlist;
  for (const Prediction& each : all) {
    if (shortlist.size() == count) break;
    if (taken[each.algorithm.method]++ < of_a_method) shortlist.push_back(each);
  }
  return shortlist;
}

}  // namespace tutti::tune
