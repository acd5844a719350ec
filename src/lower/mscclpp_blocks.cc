// MSCCL++ plans as block programs. Signals are counters at the end where they are waited for, and
// every cell of scratch that packets lie in has one: 1 once they are there.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "block_builder.h"
#include "mscclpp_file.h"
#include "tutti/base/cancel.h"

namespace tutti::lower {
namespace {

class MscclppBlockWriter {
 public:
  MscclppBlockWriter(const PpFile& file, const PpMeaning& meaning, Collective collective)
      : file_(file),
        per_chunk_(meaning.cells_per_chunk),
        builder_(Empty(file, meaning, std::move(collective))) {}

  Result<BlockProgram> Write() && {
    for (size_t g = 0; g < file_.ranks.size(); ++g) AddCounters(g);
    for (size_t g = 0; g < file_.ranks.size() && !builder_.too_large(); ++g)
      for (size_t t = 0; t < file_.ranks[g].blocks.size() && !builder_.too_large(); ++t)
        WriteBlock(g, t);
    return std::move(builder_).Finish();
  }

 private:
  // The k-th channel of one type from a to b.
  using End = std::tuple<size_t, size_t, int32_t, int64_t>;  // type, a, b, k

  static BlockProgram Empty(const PpFile& file, const PpMeaning& meaning, Collective collective) {
    BlockProgram program{std::move(collective)};
    program.name = file.name;
    program.in_place = program.one_buffer_everywhere = file.in_place;
    program.cells_per_slot = meaning.chunks_per_slot * meaning.cells_per_chunk;
    for (const PpRank& rank : file.ranks)
      program.scratch_cells.push_back(rank.chunks[2] * meaning.cells_per_chunk);
    return program;
  }

  void AddCounters(size_t g) {
    const PpRank& rank = file_.ranks[g];
    barriers_.push_back(builder_.AddCounters(2 * kPpMaxBarriers));
    semaphores_.emplace_back();
    for (const int64_t start : rank.semaphores)
      semaphores_.back().push_back(builder_.AddCounters(1, static_cast<int32_t>(start)));
    packets_.push_back(HasPackets() ? builder_.AddCounters(rank.chunks[2] * per_chunk_) : -1);
    for (size_t type = 0; type < 2; ++type) {
      std::map<int32_t, int64_t> seen;
      for (const int32_t peer : rank.peers[type]) {
        const End end{type, g, peer, seen[peer]++};
        ends_.push_back(end);
        inboxes_[end] = builder_.AddCounters(1);
      }
      (type == 0 ? first_memory_ : first_port_).push_back(ends_.size() - rank.peers[type].size());
    }
  }

  bool HasPackets() const {
    const auto by_packets = [](const PpOperation& operation) {
      return operation.name->src.find('p') != std::string_view::npos ||
             operation.name->dst.find_first_of("pP") != std::string_view::npos;
    };
    for (const PpRank& rank : file_.ranks)
      for (const PpBlock& block : rank.blocks)
        for (const PpOperation& operation : block.operations)
          if (by_packets(operation) ||
              std::any_of(operation.inner.begin(), operation.inner.end(), by_packets))
            return true;
    return false;
  }

  void WriteBlock(size_t g, size_t t) {
    builder_.AddBlock(static_cast<int32_t>(g), static_cast<int32_t>(t));
    const std::vector<PpOperation>& operations = file_.ranks[g].blocks[t].operations;
    for (size_t i = 0; i < operations.size(); ++i) {
      const PpOperation& operation = operations[i];
      builder_.SetOrigin(i);
      if (operation.name->kind != PpKind::kPipeline) {
        WriteOperation(g, operation, -1);
        continue;
      }
      for (int64_t piece = 0; piece < operation.pipeline_chunks * kPpPiecesOfChunk; ++piece)
        for (const PpOperation& inner : operation.inner) WriteOperation(g, inner, piece);
    }
  }

  void WriteOperation(size_t g, const PpOperation& operation, int64_t piece) {
    switch (operation.name->kind) {
      case PpKind::kNop:
      case PpKind::kFlush:  // puts are over when they return, here
      case PpKind::kPipeline:
        break;
      case PpKind::kBarrier:
        builder_.Meet(barriers_[g] + 2 * static_cast<int32_t>(operation.barrier),
                      operation.barrier_blocks);
        break;
      case PpKind::kSignal:
        Signal(g, operation);
        break;
      case PpKind::kWait:
        for (const int32_t channel : operation.channels)
          builder_.Take(inboxes_.at(EndOf(g, operation, channel)));
        break;
      case PpKind::kAcquire:
        for (const int32_t id : operation.semaphores)
          builder_.Take(semaphores_[g][static_cast<size_t>(id)]);
        break;
      case PpKind::kRelease:
        for (const int32_t id : operation.semaphores)
          builder_.Post(semaphores_[g][static_cast<size_t>(id)]);
        break;
      case PpKind::kMove:
      case PpKind::kReduce:
        WriteData(operation, piece);
        if (operation.name->signals) Signal(g, operation);
        break;
    }
  }

  const End& EndOf(size_t g, const PpOperation& operation, int32_t channel) const {
    const std::vector<size_t>& first =
        operation.type == PpChannelType::kMemory ? first_memory_ : first_port_;
    return ends_[first[g] + static_cast<size_t>(channel)];
  }

  // The k-th channel from a to b is the k-th from b to a.
  void Signal(size_t g, const PpOperation& operation) {
    for (const int32_t channel : operation.channels) {
      const auto& [type, from, to, place] = EndOf(g, operation, channel);
      builder_.Post(
          inboxes_.at({type, static_cast<size_t>(to), static_cast<int32_t>(from), place}));
    }
  }

  struct Cells {
    int64_t first = 0, last = 0;
  };
  Cells CellsOf(const PpReference& reference, const PpOperation& operation, int64_t piece) const {
    const int64_t total = reference.size * per_chunk_, start = reference.index * per_chunk_;
    int64_t first = total * operation.slice / operation.slices;
    int64_t last = total * (operation.slice + 1) / operation.slices;
    if (piece >= 0) {
      const int64_t size = per_chunk_ / kPpPiecesOfChunk, begin = first + piece * size;
      last = std::min(last, begin + size);
      first = std::min(begin, last);
    }
    return {start + first, start + last};
  }

  // One range for each rank of the reference.
  void AddRanges(const PpReference& reference, const PpOperation& operation, int64_t piece,
                 std::vector<BlockRange>& to) const {
    for (const int32_t rank : reference.ranks)
      to.push_back({rank, reference.buffer, CellsOf(reference, operation, piece).first});
  }

  void WriteData(const PpOperation& operation, int64_t piece) {
    const Cells one = CellsOf(operation.src.front(), operation, piece);
    if (operation.name->kind == PpKind::kMove) {
      for (size_t i = 0; i < operation.src.size(); ++i) WriteMove(operation, i, piece);
      return;
    }
    std::vector<BlockRange> from, to;
    for (const PpReference& source : operation.src) {
      AwaitPackets(source, operation, piece);
      AddRanges(source, operation, piece, from);
    }
    for (const PpReference& target : operation.dst) AddRanges(target, operation, piece, to);
    builder_.Reduce(from, to, one.last - one.first);
    for (const PpReference& target : operation.dst) PostPackets(target, operation, piece);
  }

  void WriteMove(const PpOperation& operation, size_t i, int64_t piece) {
    const PpReference& source = operation.src[i];
    const PpReference& target = operation.dst[i];
    const Cells cells = CellsOf(source, operation, piece);
    AwaitPackets(source, operation, piece);
    std::vector<BlockRange> from, to;
    AddRanges(source, operation, piece, from);
    AddRanges(target, operation, piece, to);
    from.resize(1);
    builder_.Reduce(from, to, cells.last - cells.first);
    PostPackets(target, operation, piece);
  }

  void AwaitPackets(const PpReference& source, const PpOperation& operation, int64_t piece) {
    const auto [first, last] = CellsOf(source, operation, piece);
    if (source.role == 'p' && first < last)
      builder_.Reach(PacketCounter(source.ranks.front(), first), 1, last - first);
  }
  void PostPackets(const PpReference& target, const PpOperation& operation, int64_t piece) {
    const auto [first, last] = CellsOf(target, operation, piece);
    if ((target.role != 'p' && target.role != 'P') || first >= last) return;
    for (const int32_t rank : target.ranks) builder_.Post(PacketCounter(rank, first), last - first);
  }
  int32_t PacketCounter(int32_t rank, int64_t cell) const {
    return packets_[static_cast<size_t>(rank)] + static_cast<int32_t>(cell);
  }

  const PpFile& file_;
  int64_t per_chunk_;
  BlockBuilder builder_;
  std::vector<int32_t> barriers_, packets_;  // first counters of each rank
  std::vector<std::vector<int32_t>> semaphores_;
  std::vector<End> ends_;
  std::vector<size_t> first_memory_, first_port_;  // of each rank, in ends_
  std::map<End, int32_t> inboxes_;
};

Result<Collective> CollectiveOf(const PpFile& file, const PpMeaning& meaning) {
  const Result<CollectiveKind> kind = ParseCollectiveKind(file.collective);
  if (!kind) return tl::unexpected(kind.error());
  Collective::Options options;
  options.root = meaning.root;
  if (*kind == CollectiveKind::kAllReduce) options.all_reduce_shards = 1;
  return Collective::Make(*kind, static_cast<int32_t>(file.ranks.size()), std::move(options));
}

}  // namespace
}  // namespace tutti::lower

namespace tutti {

Result<std::vector<BlockProgram>> BlockProgramsOfMscclpp(std::string_view json) {
  std::vector<PlanFault> faults;
  const Result<lower::PpFile> file = lower::ReadMscclppPlan(json, faults);
  if (!file) return tl::unexpected(file.error());
  std::optional<lower::PpMeaning> meaning;
  if (faults.empty()) meaning = lower::RunMscclppPlan(*file, faults).meaning;
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (!faults.empty()) return tl::unexpected(lower::NotCorrect(faults));
  Result<Collective> collective = lower::CollectiveOf(*file, *meaning);
  if (!collective) return tl::unexpected(collective.error());
  Result<BlockProgram> program =
      lower::MscclppBlockWriter(*file, *meaning, std::move(*collective)).Write();
  if (!program) return tl::unexpected(program.error());
  std::vector<BlockProgram> programs;
  programs.push_back(std::move(*program));
  return programs;
}

}  // namespace tutti
