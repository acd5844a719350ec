#include "forest/exchange_packing.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include "forest/shifted_packing.h"
#include "tutti/base/index.h"

namespace tutti::forest {
namespace {

// Branches of all trees that are grown.
constexpr int64_t kMaxExchangeBranches = 4'000'000;

class ExchangePacker {
 public:
  ExchangePacker(const TreeNetwork& network, const RankShifts& shifts)
      : n_(network.num_ranks),
        first_(shifts.first()),
        shifts_(shifts),
        out_(Index(first_)),
        into_(Index(first_)) {
    for (const auto& [ends, lane] : network.lanes) {
      if (ends.first >= first_) continue;
      out_[Index(ends.first)].push_back(orbits_.size());
      into_[Index(shifts.FirstOf(ends.second))].push_back(orbits_.size());
      Orbit& orbit = orbits_.emplace_back();
      orbit.most = lane.trees();
      orbit.heads.resize(Index(shifts.members()));
      orbit.tails.resize(Index(shifts.members()));
      for (int32_t member = 0; member < shifts.members(); ++member) {
        const int32_t tail = shifts.Image(member, ends.first);
        const int32_t head = shifts.Image(member, ends.second);
        orbit.heads[Index(shifts.MemberTo(tail))] = head;
        orbit.tails[Index(shifts.MemberTo(head))] = tail;
      }
    }
  }

  // Anywhere first; by boxes where that leaves lanes between boxes too full.
  std::optional<std::vector<PackedTree>> Run(const std::vector<int64_t>& trees_of) {
    for (const Growth growth : {Growth::kAnywhere, Growth::kByBoxes}) {
      if (growth == Growth::kByBoxes && !shifts_.are_boxes()) break;
      if (auto packed = Pack(trees_of, growth)) return packed;
      trees_.clear();
      for (Orbit& orbit : orbits_) {
        orbit.used = 0;
        orbit.users.clear();
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kNoOrbit = static_cast<size_t>(-1);
  enum class Growth : uint8_t { kAnywhere, kByBoxes };

  std::optional<std::vector<PackedTree>> Pack(const std::vector<int64_t>& trees_of, Growth growth) {
    const auto first = trees_of.begin();
    total_ = std::accumulate(first, first + first_, int64_t{0});
    if (total_ > kMaxExchangeBranches / n_) return std::nullopt;
    const int64_t most = *std::max_element(first, first + first_);
    for (int64_t copy = 0; copy < most; ++copy)
      for (int32_t root = 0; root < first_; ++root)
        if (copy < trees_of[Index(root)] && !Grow(root, growth)) return std::nullopt;
    for (size_t tree = 0; tree < trees_.size(); ++tree)
      for (int32_t rank = 0; rank < n_; ++rank)
        if (rank != trees_[tree].root)
          orbits_[trees_[tree].over[Index(rank)]].users.push_back({tree, rank});
    for (size_t orbit = 0; orbit < orbits_.size(); ++orbit)
      while (orbits_[orbit].room() < 0)
        if (!Relieve(orbit)) return std::nullopt;
    return AllShifted(Written(), shifts_);
  }

  // A rank of a tree that hangs on an orbit.
  struct User {
    size_t tree;
    int32_t rank;
  };
  struct Orbit {
    std::vector<int32_t> heads, tails;  // of its lanes, by MemberTo() of the other end
    int64_t most = 0, used = 0;
    std::vector<User> users = {};
    int64_t room() const { return most - used; }
  };
  struct Tree {
    int32_t root;
    std::vector<size_t> over;  // the orbit that leads into each rank; kNoOrbit: not in it, or root
  };

  int32_t TailOf(int32_t rank, size_t orbit) const {
    return orbits_[orbit].tails[Index(shifts_.MemberTo(rank))];
  }
  static bool Holds(const Tree& tree, int32_t rank) {
    return rank == tree.root || tree.over[Index(rank)] != kNoOrbit;
  }
  int32_t DepthOf(const Tree& tree, int32_t rank) const {
    int32_t depth = 0;
    for (; rank != tree.root; ++depth) rank = TailOf(rank, tree.over[Index(rank)]);
    return depth;
  }
  bool IsBelow(const Tree& tree, int32_t rank, int32_t top) const {
    while (rank != top && rank != tree.root) rank = TailOf(rank, tree.over[Index(rank)]);
    return rank == top;
  }

  // Used no more than its share of the trees so far.
  bool IsOnPace(const Orbit& orbit) const {
    __extension__ using Wide = __int128;
    const auto grown = static_cast<int64_t>(trees_.size());
    return orbit.room() > 0 &&
           static_cast<Wide>(orbit.used) * total_ <= static_cast<Wide>(orbit.most) * grown;
  }

  bool Grow(int32_t root, Growth growth) {
    Tree tree{root, std::vector<size_t>(Index(n_), kNoOrbit)};
    const bool grown = growth == Growth::kByBoxes
                           ? SpanByBoxes(tree)
                           : Span(tree, root, n_, [](int32_t, int32_t) { return true; });
    if (grown) trees_.push_back(std::move(tree));
    return grown;
  }

  void Add(Tree& tree, int32_t rank, size_t orbit) {
    tree.over[Index(rank)] = orbit;
    ++orbits_[orbit].used;
  }

  // From one rank to `count` over lanes of which `uses(tail, head)` is true.
  template <class Uses>
  bool Span(Tree& tree, int32_t from, int32_t count, const Uses& uses) {
    std::vector<int32_t> reached{from};
    const auto add = [&](int32_t rank, size_t orbit) {
      Add(tree, rank, orbit);
      reached.push_back(rank);
    };
    for (size_t next = 0; reached.size() < Index(count);) {
      if (next < reached.size()) {
        const int32_t tail = reached[next++];
        for (const size_t orbit : out_[Index(tail % first_)]) {
          const int32_t head = orbits_[orbit].heads[Index(shifts_.MemberTo(tail))];
          if (uses(tail, head) && !Holds(tree, head) && IsOnPace(orbits_[orbit])) add(head, orbit);
        }
        continue;
      }
      const std::optional<std::pair<int32_t, size_t>> widest =
          WidestInto(tree, [&](int32_t tail, int32_t head, size_t orbit) {
            return uses(tail, head) ? std::optional(orbits_[orbit].room()) : std::nullopt;
          });
      if (!widest) return false;
      add(widest->first, widest->second);
    }
    return true;
  }

  // Every other box once, preferably from the root's own; inside of a box from where it is entered.
  bool SpanByBoxes(Tree& tree) {
    const auto in_one_box = [this](int32_t a, int32_t b) { return a / first_ == b / first_; };
    std::vector<bool> entered(Index(n_ / first_), false);
    const auto enter = [&](int32_t rank) {
      entered[Index(rank / first_)] = true;
      return Span(tree, rank, first_, in_one_box);
    };
    if (!enter(tree.root)) return false;
    for (int32_t left = n_ / first_ - 1; left > 0; --left) {
      using Worth = std::tuple<bool, bool, int64_t>;
      const auto crossing =
          WidestInto(tree, [&](int32_t tail, int32_t head, size_t orbit) -> std::optional<Worth> {
            if (entered[Index(head / first_)]) return std::nullopt;
            const int64_t room = orbits_[orbit].room();
            return Worth{room > 0, in_one_box(tail, tree.root), room};
          });
      if (!crossing) return false;
      Add(tree, crossing->first, crossing->second);
      if (!enter(crossing->first)) return false;
    }
    return true;
  }

  // Among orbits from a rank in the tree to one that is not, the first of the largest worth; nullopt: none.
  template <class WorthOf>
  std::optional<std::pair<int32_t, size_t>> WidestInto(const Tree& tree,
                                                       const WorthOf& worth_of) const {
    std::optional<std::pair<int32_t, size_t>> widest;
    decltype(worth_of(0, 0, size_t{0})) most;
    for (int32_t rank = 0; rank < n_; ++rank) {
      if (Holds(tree, rank)) continue;
      for (const size_t orbit : into_[Index(rank % first_)]) {
        const int32_t tail = TailOf(rank, orbit);
        if (!Holds(tree, tail)) continue;
        const auto worth = worth_of(tail, rank, orbit);
        if (!worth || (most && *worth <= *most)) continue;
        most = worth;
        widest = {rank, orbit};
      }
    }
    return widest;
  }

  // Where a user may go from its orbit to another.
  struct Move {
    User user;
    size_t from, to;
  };

  bool IsPossible(const Move& move) const {
    const Tree& tree = trees_[move.user.tree];
    return tree.over[Index(move.user.rank)] == move.from &&
           !IsBelow(tree, TailOf(move.user.rank, move.to), move.user.rank);
  }

  void Make(const Move& move) {
    trees_[move.user.tree].over[Index(move.user.rank)] = move.to;
    std::erase_if(orbits_[move.from].users, [&](const User& user) {
      return user.tree == move.user.tree && user.rank == move.user.rank;
    });
    orbits_[move.to].users.push_back(move.user);
    --orbits_[move.from].used;
    ++orbits_[move.to].used;
  }

  // Takes one user off, by the shortest chain of moves that ends at an orbit with room; of those, of
  // one move, the one that hangs a rank highest.
  bool Relieve(size_t full) {
    if (const std::optional<Move> move = HighestMove(full)) {
      Make(*move);
      return true;
    }
    std::vector<std::optional<Move>> reached_by(orbits_.size());
    std::vector<size_t> queue{full};
    for (size_t next = 0; next < queue.size(); ++next) {
      const size_t from = queue[next];
      for (const User& user : orbits_[from].users)
        for (const size_t to : into_[Index(user.rank % first_)]) {
          if (to == full || reached_by[to] || !IsPossible({user, from, to})) continue;
          reached_by[to] = Move{user, from, to};
          if (orbits_[to].room() > 0) return MakeAll(reached_by, full, to);
          queue.push_back(to);
        }
    }
    return false;
  }

  std::optional<Move> HighestMove(size_t full) const {
    std::optional<Move> highest;
    int32_t min_depth = n_;
    for (const User& user : orbits_[full].users)
      for (const size_t to : into_[Index(user.rank % first_)]) {
        const Move move{user, full, to};
        if (orbits_[to].room() <= 0 || !IsPossible(move)) continue;
        const int32_t depth = DepthOf(trees_[user.tree], TailOf(user.rank, to));
        if (depth >= min_depth) continue;
        min_depth = depth;
        highest = move;
      }
    return highest;
  }

  // From the last on, so that each finds room; one move may be in the way of the next in its tree.
  bool MakeAll(const std::vector<std::optional<Move>>& reached_by, size_t full, size_t last) {
    for (size_t at = last; at != full; at = reached_by[at]->from) {
      if (!IsPossible(*reached_by[at])) return false;
      Make(*reached_by[at]);
    }
    return true;
  }

  std::vector<PackedTree> Written() const {
    std::vector<PackedTree> packed;
    std::vector<int32_t> order(Index(n_));
    for (const Tree& tree : trees_) {
      std::vector<int32_t> depth;
      for (int32_t rank = 0; rank < n_; ++rank) depth.push_back(DepthOf(tree, rank));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t a, int32_t b) { return depth[Index(a)] < depth[Index(b)]; });
      PackedTree one{.root = NodeId{tree.root}, .copies = 1, .branches = {}};
      for (const int32_t rank : order)
        if (rank != tree.root) one.branches.push_back({TailOf(rank, tree.over[Index(rank)]), rank});
      packed.push_back(std::move(one));
    }
    return packed;
  }

  const int32_t n_, first_;
  const RankShifts& shifts_;
  int64_t total_ = 0;  // trees
  std::vector<Orbit> orbits_;
  std::vector<std::vector<size_t>> out_, into_;  // orbits out of, and into, each of the first ranks
  std::vector<Tree> trees_;
};

}  // namespace

std::optional<std::vector<PackedTree>> PackByExchange(const TreeNetwork& network,
                                                      const RankShifts& shifts) {
  return ExchangePacker(network, shifts).Run(network.trees_of);
}

}  // namespace tutti::forest
