#include "forest/timing.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "memory.h"
#include "ten/link_jobs.h"
#include "ten/link_time.h"
#include "tutti/base/cancel.h"
#include "tutti/sched/transform.h"

namespace tutti::forest {
namespace {

constexpr uint32_t kNone = ten::LinkJobs::kNoLink;
// Messages of a schedule that is tried, and all passes over them: seconds.
constexpr int64_t kMaxToTry = 600'000, kMaxMessages = 20'000'000, kPassedMessages = 1'000'000;
constexpr int32_t kFewPasses = 2, kManyPasses = 16;
// Boundaries of chunks are exact up to so fine a unit.
constexpr int64_t kFinestUnits = int64_t{1} << 16;

// One chunk on one tree.
struct Chunk {
  const RoutedTree* up;
  const RoutedTree* down;
  ShardId shard;
  int32_t begin, end;  // units of the shard
  int32_t place;       // `begin`, counted as the cuts of the trees are
};

class Timing {
 public:
  Timing(const Topology& topology, const Collective& collective, const Forest& forest,
         const SynthOptions& options)
      : topology_(topology), collective_(collective), forest_(forest), options_(options) {}

  Result<Schedule> Run() {
    FindFullest();
    if (options_.chunks > 0) return TimeWith(options_.chunks);
    int32_t pieces = FirstPieces();
    if (Messages(pieces) > kMaxMessages)
      return MakeError(ErrorCode::kResourceExhausted,
                       "the trees of 'forest' take too many messages on this network");
    Result<Schedule> best = TimeWith(pieces);
    if (!best) return best;
    int64_t best_ps = CompletionPs(topology_, *best);
    const int64_t max_pieces =
        MostChunks(collective_, options_.size_bytes, WorthwhileChunkBytes(topology_));
    const int32_t first = pieces;
    // Whether it is worth another step.
    const auto tried = [&](int32_t count) -> Result<bool> {
      if (Messages(count) == Messages(pieces)) return true;  // nothing is cut anew
      Result<Schedule> next = TimeWith(count);
      if (!next) return tl::unexpected(next.error());
      const int64_t next_ps = CompletionPs(topology_, *next), before_ps = best_ps;
      if (next_ps < best_ps) {
        best_ps = next_ps;
        best = std::move(next);
      }
      return next_ps <= before_ps - before_ps / 200;
    };
    while (pieces <= max_pieces / 2 && Messages(int64_t{pieces} * 2) <= kMaxToTry) {
      const Result<bool> worth = tried(pieces * 2);
      if (!worth) return tl::unexpected(worth.error());
      pieces *= 2;
      if (!*worth) break;
    }
    // Or fewer and larger ones, where more did not help.
    if (pieces > first * 2) return best;
    for (pieces = first; pieces > 1; pieces /= 2) {
      const Result<bool> worth = tried(pieces / 2);
      if (!worth) return tl::unexpected(worth.error());
      if (!*worth) break;
    }
    return best;
  }

 private:
  struct Message {
    LinkId link;
    uint32_t chunk;
    TransferOp op;
  };

  // Into so many equal parts a tree of one copy is cut: stretches and chunks then end at whole parts.
  static int64_t PartsOf(int64_t trees, int64_t pieces) {
    return std::max<int64_t>(1, (pieces + trees - 1) / trees);
  }

  // A tree of `copies` out of `trees` a root is cut into so many chunks.
  static int64_t PiecesOf(const RoutedTree& tree, int64_t trees, int64_t pieces) {
    __extension__ using Wide = __int128;
    if (pieces >= trees) return tree.copies * PartsOf(trees, pieces);
    const Wide share = (static_cast<Wide>(tree.copies) * pieces + trees / 2) / trees;
    return std::max<int64_t>(1, static_cast<int64_t>(share));
  }

  int64_t Messages(int64_t pieces) const {
    int64_t sum = 0;
    const auto add = [&](const std::vector<RoutedTree>& trees, int64_t k) {
      for (const RoutedTree& tree : trees)
        for (const RoutedBranch& branch : tree.branches)
          sum += PiecesOf(tree, k, pieces) * static_cast<int64_t>(branch.links.size());
    };
    add(forest_.up, forest_.trees_up);
    add(forest_.down, forest_.trees_down);
    return sum;
  }

  // The link that takes longest, by what it carries in shards.
  void FindFullest() {
    std::vector<Rational> shards(static_cast<size_t>(topology_.num_links()));
    const auto add = [&](const std::vector<RoutedTree>& trees, int64_t k) {
      std::vector<int64_t> copies(shards.size(), 0);
      for (const RoutedTree& tree : trees)
        for (const RoutedBranch& branch : tree.branches)
          for (const LinkId link : branch.links) copies[link.index()] += tree.copies;
      for (size_t l = 0; l < copies.size(); ++l) shards[l] += Rational(copies[l], k);
    };
    add(forest_.up, forest_.trees_up);
    add(forest_.down, forest_.trees_down);
    const Rational bytes = collective_.ShardBytes(ShardId{0}, options_.size_bytes);
    for (const LinkId link : topology_.Links()) {
      const int64_t ps = BandwidthPs(bytes * shards[link.index()], topology_.bandwidth(link));
      if (ps < fullest_ps_) continue;
      fullest_ps_ = ps;
      fullest_shards_ = shards[link.index()];
    }
  }

  // So that the fullest link has some messages.
  int32_t FirstPieces() const {
    const Rational messages(8);
    const int64_t most =
        MostChunks(collective_, options_.size_bytes, WorthwhileChunkBytes(topology_));
    int32_t pieces = 1;
    while (Rational(pieces) * fullest_shards_ < messages && pieces <= most / 2 &&
           Messages(int64_t{pieces} * 2) <= kMaxToTry)
      pieces *= 2;
    return pieces;
  }

  Schedule Header(int32_t units) const {
    Schedule header{.collective = collective_};
    header.kind = ScheduleKind::kTimed;
    header.units_per_shard = units;
    header.size_bytes = options_.size_bytes;
    header.link_model = options_.link_model;
    header.topology_fingerprint = topology_.Fingerprint();
    header.algorithm = "forest";
    header.seed = options_.seed;
    return header;
  }

  // Where a shard is cut, in trees / units exactly or rounded to the nearest of them.
  static int32_t CutAt(int64_t tree, int64_t trees, int64_t units) {
    __extension__ using Wide = __int128;
    return static_cast<int32_t>((static_cast<Wide>(tree) * units + trees / 2) / trees);
  }

  // As many units as make all cuts exact, where they are not too fine.
  int32_t UnitsFor(int32_t pieces) const {
    if (options_.chunks > 0) return options_.chunks;
    int64_t units = 1;
    const auto add = [&](const std::vector<RoutedTree>& trees, int64_t k) {
      const int64_t parts = k <= kFinestUnits ? k * PartsOf(k, pieces) : k;
      if (trees.empty() || units > kFinestUnits) return;
      units = parts <= kFinestUnits ? std::lcm(units, parts) : parts;
    };
    add(forest_.up, forest_.trees_up);
    add(forest_.down, forest_.trees_down);
    if (units > kFinestUnits) units = kFinestUnits;
    const int64_t most = options_.element_bytes > 0
                             ? MostChunks(collective_, options_.size_bytes, options_.element_bytes)
                             : units;
    return static_cast<int32_t>(std::min(units, most));
  }

  // The cuts of one root's shard by these trees, ascending, with the tree before each.
  std::map<int32_t, const RoutedTree*> CutsOf(const std::vector<const RoutedTree*>& trees,
                                              int64_t k, int32_t units, int32_t pieces) const {
    std::map<int32_t, const RoutedTree*> cuts;
    for (const RoutedTree* tree : trees) {
      const int32_t begin = CutAt(tree->first, k, units);
      const int32_t end = CutAt(tree->first + tree->copies, k, units);
      if (begin == end) continue;
      const int64_t parts = options_.chunks > 0
                                ? end - begin
                                : std::min<int64_t>(PiecesOf(*tree, k, pieces), end - begin);
      const int64_t fine = PartsOf(k, pieces);  // whole parts, where units are as fine
      for (int64_t part = 1; part < parts; ++part) {
        const int64_t whole = tree->first * fine + tree->copies * fine * part / parts;
        const int32_t cut = options_.chunks > 0
                                ? begin + static_cast<int32_t>(part)
                                : std::clamp(CutAt(whole, k * fine, units), begin + 1, end);
        cuts[cut] = tree;
      }
      cuts[end] = tree;
    }
    return cuts;
  }

  // Where the first tree of a root begins.
  int32_t FirstCut(const std::vector<const RoutedTree*>& up,
                   const std::vector<const RoutedTree*>& down, int32_t units) const {
    int32_t first = std::numeric_limits<int32_t>::max();
    for (const RoutedTree* tree : up)
      first = std::min(first, CutAt(tree->first, forest_.trees_up, units));
    for (const RoutedTree* tree : down)
      first = std::min(first, CutAt(tree->first, forest_.trees_down, units));
    return first;
  }

  std::vector<Chunk> ChunksOf(int32_t units, int32_t pieces) const {
    std::vector<Chunk> chunks;
    const auto n = static_cast<size_t>(topology_.num_nodes());
    std::vector<std::vector<const RoutedTree*>> up(n), down(n);
    for (const RoutedTree& tree : forest_.up) up[tree.root.index()].push_back(&tree);
    for (const RoutedTree& tree : forest_.down) down[tree.root.index()].push_back(&tree);
    for (NodeId root : topology_.Nodes()) {
      const auto ups = CutsOf(up[root.index()], forest_.trees_up, units, pieces);
      const auto downs = CutsOf(down[root.index()], forest_.trees_down, units, pieces);
      std::vector<int32_t> ends;
      for (const auto& [end, tree] : ups) ends.push_back(end);
      for (const auto& [end, tree] : downs) ends.push_back(end);
      int32_t begin = FirstCut(up[root.index()], down[root.index()], units);
      if (forest_.over_all_shards && !ends.empty()) {
        const int32_t last = *std::max_element(ends.begin(), ends.end());
        for (int32_t edge = (begin / units + 1) * units; edge < last; edge += units)
          ends.push_back(edge);
      }
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
      for (const int32_t end : ends) {
        const auto a = ups.lower_bound(end), b = downs.lower_bound(end);
        const int32_t number = forest_.over_all_shards         ? begin / units
                               : collective_.num_shards() == 1 ? 0
                                                               : root.value;
        const int32_t before = forest_.over_all_shards ? number * units : 0;
        chunks.push_back({a == ups.end() ? nullptr : a->second,
                          b == downs.end() ? nullptr : b->second, ShardId{number}, begin - before,
                          end - before, begin});
        begin = end;
      }
    }
    return chunks;
  }

  // How much later than the first chunks of its tree a chunk counts: trees that share a link then
  // all advance at the pace of their copies. Trees of one chunk take turns.
  int64_t Later(const Chunk& chunk, const RoutedTree& tree, int64_t k, int32_t units) const {
    __extension__ using Wide = __int128;
    int64_t begin = CutAt(tree.first, k, units);
    int64_t end = CutAt(tree.first + tree.copies, k, units);
    if (begin == chunk.place && end == chunk.place + chunk.end - chunk.begin) {
      begin = 0;
      end = units;
    }
    const Wide place = (static_cast<Wide>(chunk.place) - begin) * fullest_ps_ / (end - begin);
    return static_cast<int64_t>(place);
  }

  // The messages of all chunks as jobs.
  struct Work {
    ten::LinkJobs jobs;
    std::vector<Message> messages;
    std::vector<uint32_t> last_into = {}, last_out = {};  // of the nodes, scratch
  };

  uint32_t Add(Work& work, const Schedule& header, const std::vector<Chunk>& chunks, uint32_t chunk,
               LinkId link, TransferOp op, int64_t later_ps) const {
    const Chunk& piece = chunks[chunk];
    const Transfer transfer{
        .shard = piece.shard, .link = link, .begin = piece.begin, .end = piece.end};
    work.messages.push_back({link, chunk, op});
    return work.jobs.Add(static_cast<uint32_t>(link.value),
                         ten::LinkTimeOf(header, topology_, transfer), later_ps);
  }

  // Who has the whole sum, and what they wait for: messages into them, joined.
  struct Reduced {
    uint32_t at_root = kNone;
    NodeId early{-1};  // a rank that has it before a root that is a switch
    uint32_t at_early = kNone;
  };

  static uint32_t Joined(Work& work, uint32_t chunk, const std::vector<uint32_t>& needed) {
    if (needed.size() <= 1) return needed.empty() ? kNone : needed.front();
    const uint32_t join = work.jobs.AddJoin();
    work.messages.push_back({LinkId{-1}, chunk, TransferOp::kCopy});
    for (const uint32_t job : needed) work.jobs.Need(job, join);
    return join;
  }

  // The only one that a switch at the root, or those behind it, are reached from.
  NodeId EarlyIn(const RoutedTree& tree) const {
    NodeId at = tree.root;
    while (!topology_.is_rank(at)) {
      NodeId only{-1};
      for (const RoutedBranch& branch : tree.branches)
        if (branch.tail == at) {
          if (only.value >= 0) return NodeId{-1};
          only = branch.head;
        }
      at = only;
    }
    return at == tree.root ? NodeId{-1} : at;
  }

  Reduced AddReduce(Work& work, const Schedule& header, const std::vector<Chunk>& chunks,
                    uint32_t chunk, int64_t later_ps) const {
    const RoutedTree& tree = *chunks[chunk].up;
    std::vector<std::vector<uint32_t>> into(static_cast<size_t>(topology_.num_nodes()));
    work.last_out.assign(static_cast<size_t>(topology_.num_nodes()), kNone);
    for (auto branch = tree.branches.rbegin(); branch != tree.branches.rend(); ++branch) {
      uint32_t before = kNone;
      for (const LinkId link : branch->links) {
        const NodeId head = topology_.head(link), tail = topology_.tail(link);
        const bool reduces = head == branch->tail;  // the end of the branch
        const uint32_t job = Add(work, header, chunks, chunk, link,
                                 reduces ? TransferOp::kReduce : TransferOp::kCopy, later_ps);
        if (before == kNone) {
          for (const uint32_t earlier : into[tail.index()]) work.jobs.Need(earlier, job);
        } else {
          work.jobs.Need(before, job);
          work.last_out[tail.index()] = job;
        }
        if (!reduces && work.last_out[head.index()] != kNone)
          work.jobs.Need(work.last_out[head.index()], job);
        before = job;
        if (reduces) into[head.index()].push_back(job);
      }
    }
    Reduced reduced{.at_root = Joined(work, chunk, into[tree.root.index()]),
                    .early = EarlyIn(tree)};
    if (reduced.early.value >= 0)
      reduced.at_early = Joined(work, chunk, into[reduced.early.index()]);
    return reduced;
  }

  void AddSpread(Work& work, const Schedule& header, const std::vector<Chunk>& chunks,
                 uint32_t chunk, const Reduced& reduced, int64_t later_ps) const {
    const RoutedTree& tree = *chunks[chunk].down;
    work.last_into.assign(static_cast<size_t>(topology_.num_nodes()), kNone);
    work.last_into[tree.root.index()] = reduced.at_root;
    for (const RoutedBranch& branch : tree.branches) {
      if (branch.head == reduced.early) {
        work.last_into[branch.head.index()] = reduced.at_early;
        continue;
      }
      uint32_t before = work.last_into[branch.tail.index()];
      for (const LinkId link : branch.links) {
        const uint32_t job = Add(work, header, chunks, chunk, link, TransferOp::kCopy, later_ps);
        if (before != kNone) work.jobs.Need(before, job);
        before = job;
      }
      work.last_into[branch.head.index()] = before;
    }
  }

  Result<Schedule> TimeWith(int32_t pieces) const {
    Schedule header = Header(UnitsFor(pieces));
    const std::vector<Chunk> chunks = ChunksOf(header.units_per_shard, pieces);
    const int64_t count = Messages(pieces);
    if (const Status fits = CheckMemoryFor(count * 6); !fits) return tl::unexpected(fits.error());
    Work work{ten::LinkJobs(static_cast<size_t>(topology_.num_links())), {}};
    for (uint32_t chunk = 0; chunk < chunks.size(); ++chunk) {
      Reduced reduced;
      const Chunk& piece = chunks[chunk];
      const int32_t units = header.units_per_shard;
      if (piece.up != nullptr)
        reduced = AddReduce(work, header, chunks, chunk,
                            Later(piece, *piece.up, forest_.trees_up, units));
      if (piece.down != nullptr)
        AddSpread(work, header, chunks, chunk, reduced,
                  Later(piece, *piece.down, forest_.trees_down, units));
    }
    ten::TimingOptions timing;
    timing.passes = static_cast<int32_t>(std::clamp<int64_t>(
        kPassedMessages / std::max<int64_t>(1, count), kFewPasses, kManyPasses));
    timing.seed = options_.seed;
    const Result<ten::JobTimes> times = ten::TimeJobs(work.jobs, timing);
    if (!times) return tl::unexpected(times.error());
    return Written(std::move(header), chunks, work.messages, *times);
  }

  static Schedule Written(Schedule schedule, const std::vector<Chunk>& chunks,
                          const std::vector<Message>& messages, const ten::JobTimes& times) {
    std::vector<uint32_t> order;
    for (uint32_t job = 0; job < messages.size(); ++job)
      if (messages[job].link.value >= 0) order.push_back(job);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(times.start_ps[a], a) < std::pair(times.start_ps[b], b);
    });
    for (const uint32_t job : order) {
      const Message& message = messages[job];
      const Chunk& chunk = chunks[message.chunk];
      schedule.transfers.push_back({.shard = chunk.shard,
                                    .link = message.link,
                                    .begin = chunk.begin,
                                    .end = chunk.end,
                                    .step = 0,
                                    .op = message.op});
      schedule.start_ps.push_back(times.start_ps[job]);
    }
    return schedule;
  }

  const Topology& topology_;
  const Collective& collective_;
  const Forest& forest_;
  const SynthOptions& options_;
  int64_t fullest_ps_ = 0;
  Rational fullest_shards_;
};

}  // namespace

Result<Schedule> TimeForest(const Topology& topology, const Collective& collective,
                            const Forest& forest, const SynthOptions& options) {
  return Timing(topology, collective, forest, options).Run();
}

}  // namespace tutti::forest
