// Plans as MSCCL++ execution plans: groups of events become thread blocks, messages puts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lower_internal.h"
#include "mscclpp_events.h"
#include "mscclpp_file.h"
#include "mscclpp_layers.h"
#include "tutti/base/cancel.h"
#include "tutti/base/index.h"
#include "tutti/lower/mscclpp.h"

namespace tutti::lower {
namespace {

constexpr size_t kMaxOperations = 64, kMaxChannels = 16, kMaxChannelsOfOperation = 8;
constexpr int32_t kMaxThreadBlocks = 256;

// The channels of a type are one list, and so are its buffers.
enum Type : uint8_t { kMemory, kPort };
constexpr std::array<std::string_view, 2> kTypeNames{"memory", "port"};

char Letter(Buffer buffer) { return "ios"[static_cast<size_t>(buffer)]; }

// The operations of one thread block, as text.
struct WrittenBlock {
  std::array<std::vector<int32_t>, 2> peers;  // of its channels
  std::array<std::vector<std::pair<int32_t, Buffer>>, 2> buffers;
  std::vector<std::string> operations;
};

// One contiguous piece that one rank puts into another, or reduces or copies at home.
struct WrittenPiece {
  Event event;
  Operand staging;  // at the receiver, where it reduces
};

// One thread block of one rank, written operation by operation. What only some threads have seen,
// or has not ended, is behind the next `nop`.
class BlockWriter {
 public:
  BlockWriter(int32_t rank, int32_t box_ranks) : rank_(rank), box_ranks_(box_ranks) {}

  Type TypeOf(int32_t peer) const {
    return box_ranks_ > 0 && rank_ / box_ranks_ != peer / box_ranks_ ? kPort : kMemory;
  }
  void Signal(std::string_view name, const std::set<int32_t>& peers) {
    if (peers.empty()) return;
    if (data_ || waited_) Nop();
    OverChannels(name, peers);
  }
  void Wait(std::string_view name, const std::set<int32_t>& peers) {
    if (peers.empty()) return;
    OverChannels(name, peers);
    waited_ = true;
  }
  void Flush(const std::set<int32_t>& peers) { Wait("flush", peers); }
  void Put(const std::vector<WrittenPiece>& pieces, int32_t level) {
    size_t first = 0;
    while (first < pieces.size()) {
      size_t last = first + 1;
      while (last < pieces.size() && last - first < kMaxChannelsOfOperation &&
             TypeOf(pieces[last].event.to) == TypeOf(pieces[first].event.to) &&
             pieces[last].event.src.buffer == pieces[first].event.src.buffer)
        ++last;
      PutSome({pieces.begin() + static_cast<std::ptrdiff_t>(first),
               pieces.begin() + static_cast<std::ptrdiff_t>(last)},
              level);
      first = last;
    }
  }
  // What is added to one place goes one after the other, what is added to others at once.
  void Reduce(std::vector<WrittenPiece> pieces, int32_t level) {
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const WrittenPiece& a, const WrittenPiece& b) {
                       return AddsOn(a.event) < AddsOn(b.event);
                     });
    if (pieces.size() > kMaxOperations) pieces.resize(kMaxOperations + 1);  // too many anyway
    while (!pieces.empty()) {
      std::vector<WrittenPiece> later;
      for (size_t i = 0; i < pieces.size(); ++i) {
        const auto same = [&](const WrittenPiece& other) {
          return Overlap(other.event, pieces[i].event);
        };
        if (std::any_of(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(i), same))
          later.push_back(pieces[i]);
        else
          ReduceOne(pieces[i], level);
      }
      pieces = std::move(later);
      if (!pieces.empty()) Nop();
    }
  }
  void Copy(const Event& event, int32_t level) {
    StartData(level);
    Add(fmt::format(R"({{"name":"copy","src_buff":[{}],"dst_buff":[{}]}})",
                    Local(event.src, event.count), Local(event.dst, event.count)));
  }
  const WrittenBlock& block() const { return block_; }

 private:
  void ReduceOne(const WrittenPiece& piece, int32_t level) {
    StartData(level);
    const Event& event = piece.event;
    Add(fmt::format(R"({{"name":"re","src_buff":[{},{}],"dst_buff":[{}],"reduce_op":"sum"}})",
                    Local(event.base, event.count), Local(piece.staging, event.count),
                    Local(event.dst, event.count)));
  }
  static bool Overlap(const Event& a, const Event& b) {
    return a.dst.buffer == b.dst.buffer && a.dst.offset < b.dst.offset + b.count &&
           b.dst.offset < a.dst.offset + a.count;
  }
  void Add(std::string operation) { block_.operations.push_back(std::move(operation)); }
  void Nop() {
    Add(R"({"name":"nop"})");
    data_ = waited_ = false;
  }
  void StartData(int32_t level) {
    if (waited_ || (data_ && level_ != level)) Nop();
    data_ = true;
    level_ = level;
  }
  static std::string Local(const Operand& operand, int64_t count) {
    return fmt::format(R"({{"type":"{}","index":{},"size":{}}})", Letter(operand.buffer),
                       operand.offset, count);
  }
  template <class T>
  static size_t NumberOf(std::vector<T>& list, const T& wanted) {
    const auto at = std::find(list.begin(), list.end(), wanted);
    if (at != list.end()) return static_cast<size_t>(at - list.begin());
    list.push_back(wanted);
    return list.size() - 1;
  }
  size_t ChannelTo(int32_t peer) { return NumberOf(block_.peers[TypeOf(peer)], peer); }

  void OverChannels(std::string_view name, const std::set<int32_t>& peers) {
    for (const Type type : {kMemory, kPort}) {
      std::vector<size_t> channels;
      for (const int32_t peer : peers)
        if (TypeOf(peer) == type) channels.push_back(ChannelTo(peer));
      for (size_t first = 0; first < channels.size(); first += kMaxChannelsOfOperation) {
        const auto begin = channels.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = channels.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                first + kMaxChannelsOfOperation, channels.size()));
        Add(fmt::format(R"({{"name":"{}","channel_type":"{}","channel_ids":[{}]}})", name,
                        kTypeNames[type], fmt::join(begin, end, ",")));
      }
    }
  }

  void PutSome(const std::vector<WrittenPiece>& pieces, int32_t level) {
    StartData(level);
    const Type type = TypeOf(pieces.front().event.to);
    std::vector<size_t> channels;
    std::vector<std::string> from, to;
    for (const WrittenPiece& piece : pieces) {
      const Event& event = piece.event;
      const Operand& target = event.reduces ? piece.staging : event.dst;
      channels.push_back(ChannelTo(event.to));
      from.push_back(Local(event.src, event.count));
      to.push_back(fmt::format(R"({{"buffer_id":{},"index":{},"size":{}}})",
                               NumberOf(block_.buffers[type], std::pair(event.to, target.buffer)),
                               target.offset, event.count));
    }
    Add(fmt::format(
        R"({{"name":"put","channel_type":"{}","channel_ids":[{}],"src_buff":[{}],"dst_buff":[{}]}})",
        kTypeNames[type], fmt::join(channels, ","), fmt::join(from, ","), fmt::join(to, ",")));
  }

  int32_t rank_, box_ranks_;
  WrittenBlock block_;
  bool data_ = false, waited_ = false;
  int32_t level_ = -1;
};

// Over one level: who puts what to whom, and who must be asked first.
struct Level {
  std::vector<WrittenPiece> puts;    // this rank sends
  std::vector<WrittenPiece> arrive;  // this rank reduces
  std::vector<Event> copies;
  std::set<int32_t> to, from, leave_to, leave_from, flush;  // ranks
};

// The thread blocks of one number, of all ranks: they talk to each other and to no others.
class Layer {
 public:
  Layer(const Events& events, int32_t ranks, int32_t box_ranks)
      : events_(events), ranks_(ranks), box_ranks_(box_ranks) {}

  void Add(size_t event) { members_.push_back(event); }

  // `scratch`: units in use at each rank; what is staged is added.
  std::vector<WrittenBlock> Write(std::vector<int64_t>& scratch) {
    levels_.assign(Index(ranks_), {});
    std::stable_sort(members_.begin(), members_.end(), [this](size_t a, size_t b) {
      return events_.all[a].level < events_.all[b].level;
    });
    known_.assign(Index(ranks_), std::vector<int32_t>(Index(ranks_), -1));
    for (size_t first = 0; first < members_.size();) {
      size_t last = first;
      const int32_t level = events_.all[members_[first]].level;
      while (last < members_.size() && events_.all[members_[last]].level == level) ++last;
      AddLevel({members_.begin() + static_cast<std::ptrdiff_t>(first),
                members_.begin() + static_cast<std::ptrdiff_t>(last)},
               level, scratch);
      first = last;
    }
    std::vector<WrittenBlock> blocks;
    for (int32_t r = 0; r < ranks_; ++r) blocks.push_back(WriteRank(r));
    return blocks;
  }

 private:
  // Times of a level: its puts have ended at 2 * level, its reductions and copies at one more.
  static int32_t EndOf(const Event& event, int32_t rank) {
    return 2 * event.level + (event.from == rank && event.to != rank ? 0 : 1);
  }

  // Whether `rank` knows before a level that everything has ended which `event` overwrites.
  bool MayOverwrite(const Event& event) const {
    return std::all_of(event.overwrites.begin(), event.overwrites.end(), [&](int32_t id) {
      const Event& other = events_.all[Index(id)];
      if (other.from == event.from && other.to == event.to && !other.reduces) return true;
      return known_[Index(event.from)][Index(event.to)] >= EndOf(other, event.to);
    });
  }

  void Learn(int32_t rank, const std::vector<int32_t>& news) {
    std::vector<int32_t>& known = known_[Index(rank)];
    for (size_t r = 0; r < known.size(); ++r) known[r] = std::max(known[r], news[r]);
  }

  void AddLevel(const std::vector<size_t>& members, int32_t level, std::vector<int64_t>& scratch) {
    std::map<int32_t, std::vector<int32_t>> before;  // what is known at the start of the level
    std::set<std::pair<int32_t, int32_t>> leaves;    // (receiver, sender)
    std::set<int32_t> active;
    for (const size_t m : members) {
      const Event& event = events_.all[m];
      active.insert({event.from, event.to});
      if (event.from != event.to && !event.reduces && !MayOverwrite(event))
        leaves.insert({event.to, event.from});
    }
    for (const auto& [receiver, sender] : leaves) before[receiver] = known_[Index(receiver)];
    for (const auto& [receiver, sender] : leaves) {
      before[receiver][Index(receiver)] = 2 * level - 1;
      Learn(sender, before[receiver]);
      LevelOf(receiver, level).leave_to.insert(sender);
      LevelOf(sender, level).leave_from.insert(receiver);
    }
    for (const WrittenPiece& piece : Merged(members, scratch)) Place(piece, level);
    for (const int32_t rank : active) known_[Index(rank)][Index(rank)] = 2 * level;
    std::map<int32_t, std::vector<int32_t>> signalled;
    for (const size_t m : members)
      signalled.try_emplace(events_.all[m].from, known_[Index(events_.all[m].from)]);
    for (const size_t m : members) Learn(events_.all[m].to, signalled[events_.all[m].from]);
    for (const int32_t rank : active) known_[Index(rank)][Index(rank)] = 2 * level + 1;
  }

  Level& LevelOf(int32_t rank, int32_t level) { return levels_[Index(rank)][level]; }

  // Events of one level between the same ranks whose places follow one another become one.
  std::vector<WrittenPiece> Merged(const std::vector<size_t>& members,
                                   std::vector<int64_t>& scratch) {
    std::vector<Event> sorted;
    for (const size_t m : members) sorted.push_back(events_.all[m]);
    const auto key = [](const Event& e) {
      return std::tuple(e.from, e.to, e.reduces, e.src.buffer, e.src.offset);
    };
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const Event& a, const Event& b) { return key(a) < key(b); });
    std::vector<WrittenPiece> pieces;
    const auto follows = [](const Operand& a, const Operand& b, int64_t count) {
      return a.buffer == b.buffer && a.offset + count == b.offset;
    };
    for (const Event& event : sorted) {
      if (!pieces.empty()) {
        Event& last = pieces.back().event;
        if (last.from == event.from && last.to == event.to && last.reduces == event.reduces &&
            follows(last.src, event.src, last.count) && follows(last.dst, event.dst, last.count) &&
            (!event.reduces || follows(last.base, event.base, last.count))) {
          last.count += event.count;
          last.source_overwritten = last.source_overwritten || event.source_overwritten;
          continue;
        }
      }
      pieces.push_back({event, {}});
    }
    for (WrittenPiece& piece : pieces) {
      if (!piece.event.reduces) continue;
      int64_t& used = scratch[Index(piece.event.to)];
      piece.staging = {Buffer::kScratch, used};
      used += piece.event.count;
    }
    return pieces;
  }

  void Place(const WrittenPiece& piece, int32_t level) {
    const Event& event = piece.event;
    Level& from = LevelOf(event.from, level);
    if (event.from == event.to) {
      from.copies.push_back(event);
      return;
    }
    from.puts.push_back(piece);
    from.to.insert(event.to);
    if (event.source_overwritten && BlockWriter(event.from, box_ranks_).TypeOf(event.to) == kPort)
      from.flush.insert(event.to);
    Level& to = LevelOf(event.to, level);
    to.from.insert(event.from);
    if (event.reduces) to.arrive.push_back(piece);
  }

  WrittenBlock WriteRank(int32_t rank) {
    BlockWriter writer(rank, box_ranks_);
    std::set<int32_t> put_to, put_from;
    for (const auto& [level, what] : levels_[Index(rank)]) {
      put_to.insert(what.to.begin(), what.to.end());
      put_from.insert(what.from.begin(), what.from.end());
    }
    // Nobody puts anything here before this rank has started.
    writer.Signal("rlxsignal", put_from);
    writer.Wait("rlxwait", put_to);
    for (auto& [level, what] : levels_[Index(rank)]) {
      writer.Signal("signal", what.leave_to);
      writer.Wait("wait", what.leave_from);
      std::stable_sort(what.puts.begin(), what.puts.end(),
                       [&](const WrittenPiece& a, const WrittenPiece& b) {
                         return std::tuple(writer.TypeOf(a.event.to), a.event.src.buffer) <
                                std::tuple(writer.TypeOf(b.event.to), b.event.src.buffer);
                       });
      writer.Put(what.puts, level);
      writer.Flush(what.flush);
      writer.Signal("signal", what.to);
      writer.Wait("wait", what.from);
      writer.Reduce(what.arrive, level);
      for (const Event& event : what.copies) writer.Copy(event, level);
    }
    return writer.block();
  }

  const Events& events_;
  int32_t ranks_, box_ranks_;
  std::vector<size_t> members_;
  std::vector<std::map<int32_t, Level>> levels_;  // of each rank
  std::vector<std::vector<int32_t>> known_;
};

std::string_view CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "allgather";
    case CollectiveKind::kReduceScatter:
      return "reducescatter";
    case CollectiveKind::kAllReduce:
      return "allreduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kAllToAll:
      return "alltoall";
    default:
      return "";
  }
}

// A file: for each rank its thread blocks, numbered by layer.
class FileWriter {
 public:
  FileWriter(const Plan& plan, const Events& events, const MscclppOptions& options)
      : plan_(plan), events_(events), options_(options) {
    for (const RankPlan& rank : plan.ranks)
      scratch_.push_back(rank.scratch_slots * events.units_per_slot);
  }

  // The limit that is broken, or the file.
  tl::expected<std::string, std::string> Write(const std::vector<int32_t>& layer_of,
                                               int32_t thread_blocks) {
    for (std::vector<WrittenBlock>& blocks : LayersOf(layer_of, thread_blocks))
      layers_.push_back(std::move(blocks));
    for (size_t l = 0; l < layers_.size(); ++l)
      for (size_t r = 0; r < layers_[l].size(); ++r)
        if (std::string excess = Excess(layers_[l][r]); !excess.empty())
          return tl::unexpected(fmt::format("{} (rank {})", excess, r));
    return Text();
  }

 private:
  std::vector<std::vector<WrittenBlock>> LayersOf(const std::vector<int32_t>& layer_of,
                                                  int32_t thread_blocks) {
    const auto ranks = static_cast<int32_t>(plan_.ranks.size());
    std::vector<Layer> layers(Index(thread_blocks), Layer(events_, ranks, options_.box_ranks));
    for (size_t e = 0; e < events_.all.size(); ++e)
      layers[Index(layer_of[Index(events_.all[e].group)])].Add(e);
    std::vector<std::vector<WrittenBlock>> blocks;
    for (Layer& layer : layers) blocks.push_back(layer.Write(scratch_));
    return blocks;
  }

  static std::string Excess(const WrittenBlock& block) {
    if (block.operations.size() > kMaxOperations)
      return fmt::format("MSCCL++ takes at most {} operations a thread block, got {}",
                         kMaxOperations, block.operations.size());
    for (const Type type : {kMemory, kPort}) {
      if (block.peers[type].size() > kMaxChannels)
        return fmt::format("MSCCL++ takes at most {} {} channels a thread block, got {}",
                           kMaxChannels, kTypeNames[type], block.peers[type].size());
      if (block.buffers[type].size() > kMaxChannels)
        return fmt::format("MSCCL++ takes at most {} remote buffers a thread block, got {}",
                           kMaxChannels, block.buffers[type].size());
    }
    return {};
  }

  std::string Name() const {
    std::string name = fmt::format("tutti_{}_{}_{}", CollectiveName(plan_.collective.kind()),
                                   plan_.algorithm, plan_.ranks.size());
    for (char& c : name)
      if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) c = '_';
    return name;
  }

  std::string Text() {
    std::string text;
    fmt::format_to(
        std::back_inserter(text),
        "{{\"name\":\"{}\",\"collective\":\"{}\",\"protocol\":\"Simple\",\"inplace\":{},\n"
        "\"reuse_resources\":false,\"use_double_scratch_buffer\":false,\"buffer_alignment\":16,"
        "\"num_threads_per_block\":1024,\n\"min_message_size\":{},\"max_message_size\":{},\n"
        "\"gpus\":[",
        Name(), CollectiveName(plan_.collective.kind()), options_.in_place, options_.min_bytes,
        options_.max_bytes > 0 ? static_cast<uint64_t>(options_.max_bytes) : UINT64_MAX);
    for (size_t r = 0; r < plan_.ranks.size(); ++r) AddRank(r, text);
    text += "\n]}\n";
    return text;
  }

  void AddRank(size_t r, std::string& text) {
    const RankPlan& rank = plan_.ranks[r];
    auto out = std::back_inserter(text);
    fmt::format_to(
        out,
        "{}\n{{\"id\":{},\"input_chunks\":{},\"output_chunks\":{},\"scratch_chunks\":{},\n"
        " \"threadblocks\":[",
        r == 0 ? "" : ",", r, rank.input_slots * events_.units_per_slot,
        rank.output_slots * events_.units_per_slot, scratch_[r]);
    std::array<std::vector<int32_t>, 2> peers;
    std::vector<std::tuple<int32_t, Buffer, Type>> buffers;
    int32_t id = 0;
    for (const std::vector<WrittenBlock>& layer : layers_)
      if (!layer[r].operations.empty()) AddBlock(layer[r], id++, peers, buffers, text);
    text += "],\n \"channels\":[";
    bool first = true;
    for (const Type type : {kMemory, kPort}) {
      if (peers[type].empty()) continue;
      fmt::format_to(out, R"({}{{"channel_type":"{}","connected_to":[{}]}})", first ? "" : ",",
                     kTypeNames[type], fmt::join(peers[type], ","));
      first = false;
    }
    text += "],\n \"remote_buffers\":[";
    for (size_t b = 0; b < buffers.size(); ++b) {
      const auto& [peer, buffer, type] = buffers[b];
      fmt::format_to(out, R"({}{{"rank":{},"type":"{}","access_channel_types":["{}"]}})",
                     b == 0 ? "" : ",", peer, Letter(buffer), kTypeNames[type]);
    }
    text += "]}";
  }

  // Channels of a rank are numbered in the order of the layers, so that the k-th between two ranks
  // is the same at both.
  static void AddBlock(const WrittenBlock& block, int32_t id,
                       std::array<std::vector<int32_t>, 2>& peers,
                       std::vector<std::tuple<int32_t, Buffer, Type>>& buffers, std::string& text) {
    auto out = std::back_inserter(text);
    fmt::format_to(out, "{}\n  {{\"id\":{},\"channels\":[", id == 0 ? "" : ",", id);
    bool first = true;
    for (const Type type : {kMemory, kPort}) {
      std::vector<size_t> ids;
      for (const int32_t peer : block.peers[type]) {
        ids.push_back(peers[type].size());
        peers[type].push_back(peer);
      }
      if (ids.empty()) continue;
      fmt::format_to(out, R"({}{{"channel_type":"{}","channel_ids":[{}]}})", first ? "" : ",",
                     kTypeNames[type], fmt::join(ids, ","));
      first = false;
    }
    text += "],\"remote_buffer_refs\":[";
    first = true;
    for (const Type type : {kMemory, kPort}) {
      std::vector<size_t> ids;
      for (const auto& [peer, buffer] : block.buffers[type]) {
        const std::tuple wanted(peer, buffer, type);
        const auto at = std::find(buffers.begin(), buffers.end(), wanted);
        ids.push_back(static_cast<size_t>(at - buffers.begin()));
        if (at == buffers.end()) buffers.push_back(wanted);
      }
      if (ids.empty()) continue;
      fmt::format_to(out, R"({}{{"access_channel_type":"{}","remote_buffer_ids":[{}]}})",
                     first ? "" : ",", kTypeNames[type], fmt::join(ids, ","));
      first = false;
    }
    fmt::format_to(out, "],\n   \"ops\":[\n    {}]}}", fmt::join(block.operations, ",\n    "));
  }

  const Plan& plan_;
  const Events& events_;
  const MscclppOptions& options_;
  std::vector<int64_t> scratch_;
  std::vector<std::vector<WrittenBlock>> layers_;
};

Status CheckOptions(const Collective& collective, const MscclppOptions& options) {
  if (CollectiveName(collective.kind()).empty())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("MSCCL++ plans have the same chunks at every rank and cannot "
                                 "express {}",
                                 Name(collective.kind())));
  if (options.in_place && collective.kind() == CollectiveKind::kAllToAll)
    return MakeError(ErrorCode::kInfeasible, "all-to-all has no in-place form");
  if (options.min_bytes < 0 || options.max_bytes < 0 ||
      (options.max_bytes > 0 && options.max_bytes < options.min_bytes))
    return InvalidArgument(fmt::format("sizes from {} to {} bytes are no range", options.min_bytes,
                                       options.max_bytes));
  if (options.thread_blocks < 1 || options.thread_blocks > kMaxThreadBlocks)
    return InvalidArgument(fmt::format("{} thread blocks; accepted are 1 to {}",
                                       options.thread_blocks, kMaxThreadBlocks));
  if (options.box_ranks < 0)
    return InvalidArgument(fmt::format("boxes of {} ranks", options.box_ranks));
  return {};
}

}  // namespace
}  // namespace tutti::lower

namespace tutti {

Result<std::string> ToMscclpp(const Topology& topology, const Schedule& schedule,
                              const MscclppOptions& options) {
  const Status sound = lower::CheckOptions(schedule.collective, options);
  if (!sound) return tl::unexpected(sound.error());
  const Result<Plan> plan = Lower(topology, schedule);
  if (!plan) return tl::unexpected(plan.error());
  const lower::Events events = lower::EventsOf(*plan, options.in_place);
  const lower::LayersOfGroups layers(events);
  std::string refused;
  for (int32_t blocks = options.thread_blocks;; blocks = 2 * blocks) {
    const int32_t tried =
        std::min({blocks, lower::kMaxThreadBlocks, std::max(1, events.num_groups)});
    for (const lower::Layering layering : {lower::Layering::kSpread, lower::Layering::kLevelled}) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      tl::expected<std::string, std::string> text =
          lower::FileWriter(*plan, events, options).Write(layers.Find(layering, tried), tried);
      if (text) return std::move(*text);
      if (refused.empty()) refused = text.error();
    }
    if (tried < blocks || blocks >= lower::kMaxThreadBlocks) break;
  }
  return MakeError(ErrorCode::kInfeasible,
                   refused + "; more thread blocks do not help, " + lower::kFewerChunks);
}

}  // namespace tutti
