// MSCCL XML as block programs. A connection is a ring of kMscclQueue cells in the scratch of its
// receiver, with one counter of full and one of free cells; a step moves its chunks one by one, as
// the judge does.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "block_builder.h"
#include "msccl_file.h"
#include "tutti/base/cancel.h"

namespace tutti::lower {
namespace {

class MscclBlockWriter {
 public:
  MscclBlockWriter(const MscclFile& file, const MscclMeaning& meaning, bool in_place)
      : file_(file), builder_(Empty(file, meaning, in_place)) {}

  Result<BlockProgram> Write() && {
    for (int32_t g = 0; g < NumGpus(); ++g) {
      done_.push_back(builder_.AddCounters(std::ssize(GpuAt(g).tbs)));
      Connect(g);
    }
    for (int32_t g = 0; g < NumGpus() && !builder_.too_large(); ++g)
      for (size_t t = 0; t < GpuAt(g).tbs.size() && !builder_.too_large(); ++t) WriteBlock(g, t);
    return std::move(builder_).Finish();
  }

 private:
  struct Queue {
    int32_t rank = 0;  // whose scratch holds it
    int64_t first = 0;
    int32_t full = 0, free = 0;  // counters
    // Messages of each end so far; both ends are written in order of their steps.
    int64_t sent = 0, received = 0;
  };

  static BlockProgram Empty(const MscclFile& file, const MscclMeaning& meaning, bool in_place) {
    BlockProgram program{meaning.collective};
    program.name = file.name;
    program.in_place = in_place;
    program.cells_per_slot = meaning.chunks_per_slot;
    for (const MscclGpu& gpu : file.gpus) program.scratch_cells.push_back(gpu.chunks[2]);
    return program;
  }

  int32_t NumGpus() const { return static_cast<int32_t>(file_.gpus.size()); }
  const MscclGpu& GpuAt(int32_t g) const { return file_.gpus[static_cast<size_t>(g)]; }

  void Connect(int32_t g) {
    for (const MscclThreadBlock& tb : GpuAt(g).tbs) {
      if (tb.recv < 0) continue;
      Queue queue;
      queue.rank = g;
      queue.first = builder_.AddScratch(g, kMscclQueue);
      queue.full = builder_.AddCounters(1);
      queue.free = builder_.AddCounters(1, kMscclQueue);
      queues_[{tb.recv, g, tb.chan}] = queue;
    }
  }

  void WriteBlock(int32_t g, size_t t) {
    const MscclThreadBlock& tb = GpuAt(g).tbs[t];
    builder_.AddBlock(g, static_cast<int32_t>(t));
    const int32_t done = done_[static_cast<size_t>(g)];
    for (size_t s = 0; s < tb.steps.size(); ++s) {
      const MscclStep& step = tb.steps[s];
      builder_.SetOrigin(s);
      if (step.depid >= 0)
        builder_.Reach(done + static_cast<int32_t>(step.depid),
                       static_cast<int32_t>(step.deps) + 1);
      WriteStep(g, tb, step);
      builder_.Post(done + static_cast<int32_t>(t));
    }
  }

  void WriteStep(int32_t g, const MscclThreadBlock& tb, const MscclStep& step) {
    const MscclOp& op = kMscclOps[step.op];
    if (step.op == kMscclNop) return;
    if (op.sends || op.receives) {
      for (int64_t chunk = 0; chunk < step.cnt && !builder_.too_large(); ++chunk)
        WritePiece(g, tb, step, chunk);
      return;
    }
    const BlockRange src{g, step.src.buffer, step.src.offset};
    const BlockRange dst{g, step.dst.buffer, step.dst.offset};
    if (op.reads_dst)
      builder_.Reduce(std::vector{dst, src}, std::vector{dst}, step.cnt);
    else
      builder_.Reduce(std::vector{src}, std::vector{dst}, step.cnt);
  }

  void WritePiece(int32_t g, const MscclThreadBlock& tb, const MscclStep& step, int64_t chunk) {
    const MscclOp& op = kMscclOps[step.op];
    Queue* in = op.receives ? &queues_.at({tb.recv, g, tb.chan}) : nullptr;
    Queue* out = op.sends ? &queues_.at({g, tb.send, tb.chan}) : nullptr;
    if (in != nullptr) builder_.Take(in->full);
    if (out != nullptr) builder_.Take(out->free);
    std::vector<BlockRange> from, to;
    if (in != nullptr)
      from.push_back({in->rank, Buffer::kScratch, in->first + in->received++ % kMscclQueue});
    if (op.reads) from.push_back({g, step.src.buffer, step.src.offset + chunk});
    if (op.writes) to.push_back({g, step.dst.buffer, step.dst.offset + chunk});
    if (out != nullptr)
      to.push_back({out->rank, Buffer::kScratch, out->first + out->sent++ % kMscclQueue});
    builder_.Reduce(from, to, 1);
    if (in != nullptr) builder_.Post(in->free);
    if (out != nullptr) builder_.Post(out->full);
  }

  const MscclFile& file_;
  BlockBuilder builder_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, Queue> queues_;  // sender, receiver, channel
  std::vector<int32_t> done_;  // first counter of each gpu's thread blocks: steps that are over
};

}  // namespace
}  // namespace tutti::lower

namespace tutti {

Result<std::vector<BlockProgram>> BlockProgramsOfMsccl(std::string_view xml, MscclDialect dialect) {
  const lower::MscclReader& reader = lower::ReaderOf(dialect);
  std::vector<PlanFault> faults;
  const Result<lower::MscclFile> file = lower::ReadMsccl(xml, reader, faults);
  if (!file) return tl::unexpected(file.error());
  std::optional<lower::MscclMeaning> meaning;
  if (faults.empty()) meaning = lower::JudgeMsccl(*file, reader, faults);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (!faults.empty()) return tl::unexpected(lower::NotCorrect(faults));
  std::vector<BlockProgram> programs;
  for (const bool in_place : {false, true}) {
    if (!(in_place ? file->in_place : file->out_of_place)) continue;
    Result<BlockProgram> program = lower::MscclBlockWriter(*file, *meaning, in_place).Write();
    if (!program) return tl::unexpected(program.error());
    programs.push_back(std::move(*program));
  }
  return programs;
}

}  // namespace tutti
