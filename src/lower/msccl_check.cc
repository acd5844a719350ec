// Judges MSCCL algorithm XML: what its reader enforces, what it silently relies on, and a symbolic
// run with the queues of a real connection.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "machine.h"
#include "msccl_file.h"
#include "tutti/base/cancel.h"
#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

class Judge {
 public:
  Judge(const MscclFile& file, const MscclReader& reader, std::vector<PlanFault>& faults)
      : file_(file), reader_(reader), faults_(faults) {}

  std::optional<MscclMeaning> Run() {
    for (MscclExcess& excess : FindExcess(file_, reader_)) Fault("limit", excess.message);
    FindUses();
    for (size_t g = 0; g < file_.gpus.size(); ++g)
      for (size_t t = 0; t < file_.gpus[g].tbs.size(); ++t) CheckThreadBlock(g, t);
    std::optional<Collective> collective = MakeCollective();
    if (!faults_.empty() || !collective) return std::nullopt;
    for (const bool in_place : {false, true})
      if (in_place ? file_.in_place : file_.out_of_place) RunOnce(*collective, in_place);
    for (size_t g = 0; g < file_.gpus.size(); ++g)
      for (size_t t = 0; t < file_.gpus[g].tbs.size(); ++t) CompareEnds(g, t);
    return MscclMeaning{std::move(*collective), chunks_per_slot_};
  }

 private:
  void Fault(const std::string& where, const std::string& what) {
    if (faults_.size() < kMaxFaults) faults_.push_back({where + ": " + what});
  }

  static std::string Where(size_t g, size_t t, size_t s) {
    return fmt::format("gpu {} tb {} step {}", g, t, s);
  }

  // Connections need a thread block at both ends, also where no step uses them.
  void FindUses() {
    for (size_t g = 0; g < file_.gpus.size(); ++g)
      for (size_t t = 0; t < file_.gpus[g].tbs.size(); ++t) {
        const MscclThreadBlock& tb = file_.gpus[g].tbs[t];
        const auto id = static_cast<int64_t>(g);
        if (tb.send >= 0 &&
            !Has(tb.send, tb.chan, [&](const MscclThreadBlock& other) { return other.recv == id; }))
          Fault(fmt::format("gpu {} tb {}", g, t),
                fmt::format("sends to gpu {}, which has no thread block that receives from it on "
                            "channel {}",
                            tb.send, tb.chan));
        if (tb.recv >= 0 &&
            !Has(tb.recv, tb.chan, [&](const MscclThreadBlock& other) { return other.send == id; }))
          Fault(fmt::format("gpu {} tb {}", g, t),
                fmt::format("receives from gpu {}, which has no thread block that sends to it on "
                            "channel {}",
                            tb.recv, tb.chan));
      }
  }

  template <class Predicate>
  bool Has(int64_t gpu, int64_t chan, const Predicate& wanted) const {
    const std::vector<MscclThreadBlock>& tbs = file_.gpus[Index(gpu)].tbs;
    return std::any_of(tbs.begin(), tbs.end(),
                       [&](const MscclThreadBlock& tb) { return tb.chan == chan && wanted(tb); });
  }

  // What a step says of the places of the message that it sends or receives, where it has room for
  // them: a reduction's source is what it reduces with, and what is forwarded goes where only the
  // next rank says.
  struct Ends {
    size_t step = 0;
    std::optional<Operand> from, to;
  };
  static std::vector<Ends> EndsOf(const MscclThreadBlock& tb, bool sent) {
    std::vector<Ends> messages;
    for (size_t s = 0; s < tb.steps.size(); ++s) {
      const MscclStep& step = tb.steps[s];
      const MscclOp& op = kMscclOps[step.op];
      if (!(sent ? op.sends : op.receives)) continue;
      Ends& ends = messages.emplace_back();
      ends.step = s;
      if (sent) {
        if (!op.receives) ends.from = step.src;
        if (!op.receives) ends.to = step.dst;
        if (op.receives && op.writes) ends.from = step.dst;
      } else {
        if (!op.reads) ends.from = step.src;
        if (op.writes) ends.to = step.dst;
      }
    }
    return messages;
  }

  // Both ends of every message from this thread block on name the same places. That there are as
  // many messages at both ends is for the run to say.
  void CompareEnds(size_t g, size_t t) {
    const MscclThreadBlock& tb = file_.gpus[g].tbs[t];
    if (tb.send < 0) return;
    const std::vector<MscclThreadBlock>& others = file_.gpus[Index(tb.send)].tbs;
    for (size_t other = 0; other < others.size(); ++other) {
      if (others[other].recv != static_cast<int64_t>(g) || others[other].chan != tb.chan) continue;
      const std::vector<Ends> sent = EndsOf(tb, true), received = EndsOf(others[other], false);
      for (size_t i = 0; i < std::min(sent.size(), received.size()); ++i)
        for (const auto& [here, there, what] :
             {std::tuple(sent[i].from, received[i].from, "source"),
              std::tuple(sent[i].to, received[i].to, "destination")})
          if (here && there && *here != *there)
            Fault(Where(g, t, sent[i].step),
                  fmt::format("sends with the {} {}, and {} receives it with the {} {}", what,
                              PlaceText(*here), Where(Index(tb.send), other, received[i].step),
                              what, PlaceText(*there)));
    }
  }

  static std::string PlaceText(const Operand& operand) {
    return fmt::format("{}[{}]", "ios"[static_cast<size_t>(operand.buffer)], operand.offset);
  }

  void CheckThreadBlock(size_t g, size_t t) {
    const std::vector<MscclStep>& steps = file_.gpus[g].tbs[t].steps;
    for (size_t s = 0; s < steps.size(); ++s) {
      const MscclStep& step = steps[s];
      const MscclOp& op = kMscclOps[step.op];
      if (op.reads) CheckRange(g, t, s, step.src, "source");
      if (op.writes) CheckRange(g, t, s, step.dst, "destination");
      if (step.depid >= 0) CheckDependency(g, t, s);
      if (step.op == kMscclNop) CheckNop(g, t, s);
      if (s > 0) CheckFusion(g, t, s);
    }
  }

  void CheckRange(size_t g, size_t t, size_t s, const Operand& operand, std::string_view what) {
    const int64_t chunks = file_.gpus[g].chunks[static_cast<size_t>(operand.buffer)];
    const int64_t cnt = file_.gpus[g].tbs[t].steps[s].cnt;
    // In place a file may declare only one of the two buffers, and then use only that.
    if (operand.offset >= 0 && operand.offset + cnt <= chunks) return;
    Fault(Where(g, t, s), fmt::format("{} {}[{}, {}) is outside the buffer of {} chunks", what,
                                      "ios"[static_cast<size_t>(operand.buffer)], operand.offset,
                                      operand.offset + cnt, chunks));
  }

  void CheckDependency(size_t g, size_t t, size_t s) {
    const MscclStep& step = file_.gpus[g].tbs[t].steps[s];
    const std::vector<MscclThreadBlock>& tbs = file_.gpus[g].tbs;
    if (Index(step.depid) >= tbs.size() ||
        Index(step.deps) >= tbs[Index(step.depid)].steps.size()) {
      Fault(Where(g, t, s),
            fmt::format("waits for tb {} step {}, which does not exist", step.depid, step.deps));
      return;
    }
    const MscclStep& other = tbs[Index(step.depid)].steps[Index(step.deps)];
    const std::string target = Where(g, Index(step.depid), Index(step.deps));
    if (!other.hasdep)
      Fault(Where(g, t, s), fmt::format("waits for ever for {}, whose hasdep is 0", target));
    else if (other.op == kMscclNop)
      Fault(Where(g, t, s), fmt::format("waits for {}, a nop, which raises no flag", target));
  }

  // The nops before a step carry its other dependencies; the step itself must have one.
  void CheckNop(size_t g, size_t t, size_t s) {
    const std::vector<MscclStep>& steps = file_.gpus[g].tbs[t].steps;
    if (steps[s].depid < 0) return;
    if (s + 1 == steps.size())
      Fault(Where(g, t, s), "a nop at the end, with nothing to wait for its dependency");
    else if (steps[s + 1].op != kMscclNop && steps[s + 1].depid < 0)
      Fault(Where(g, t, s + 1), "follows a nop with a dependency and has none itself");
  }

  // Neighbouring reductions into one place become one, with one count.
  void CheckFusion(size_t g, size_t t, size_t s) {
    const MscclStep& last = file_.gpus[g].tbs[t].steps[s - 1];
    const MscclStep& step = file_.gpus[g].tbs[t].steps[s];
    const bool fused = step.op == kMscclReduce && last.op == kMscclReduce && step.depid < 0 &&
                       !last.hasdep && step.dst == last.dst && step.src.buffer == last.src.buffer;
    if (fused && step.cnt != last.cnt)
      Fault(Where(g, t, s),
            fmt::format("is fused with the step before, which has cnt {} and not {}", last.cnt,
                        step.cnt));
  }

  std::optional<Collective> MakeCollective() {
    const auto ranks = static_cast<int32_t>(file_.gpus.size());
    std::optional<CollectiveKind> kind;
    for (int k = 0; k <= static_cast<int>(CollectiveKind::kAllToAllV); ++k)
      if (CollOf(reader_, static_cast<CollectiveKind>(k)) == file_.coll)
        kind = static_cast<CollectiveKind>(k);
    if (!kind || file_.coll.empty()) {
      Fault("algo", fmt::format("coll=\"{}\" is none that {} knows and whose result is defined",
                                file_.coll, reader_.name));
      return std::nullopt;
    }
    if (*kind == CollectiveKind::kAllToAll && file_.in_place) {
      Fault("algo", "inplace=\"1\", but alltoall has no in-place form");
      return std::nullopt;
    }
    const bool shared = *kind == CollectiveKind::kAllGather ||
                        *kind == CollectiveKind::kReduceScatter ||
                        *kind == CollectiveKind::kAllToAll;
    if (shared && file_.nchunksperloop % ranks != 0) {
      Fault("algo", fmt::format("nchunksperloop {} is no multiple of ngpus {}",
                                file_.nchunksperloop, ranks));
      return std::nullopt;
    }
    chunks_per_slot_ = shared ? file_.nchunksperloop / ranks : file_.nchunksperloop;
    Collective::Options options;
    options.root = GuessRoot(*kind);
    if (*kind == CollectiveKind::kAllReduce) options.all_reduce_shards = 1;
    Result<Collective> made = Collective::Make(*kind, ranks, options);
    if (!made) {
      Fault("algo", made.error().message);
      return std::nullopt;
    }
    for (int32_t g = 0; g < ranks; ++g) CheckChunks(*made, NodeId{g});
    return std::move(*made);
  }

  // The file does not say which rank is the root: it is the one that only gives, or only takes.
  int32_t GuessRoot(CollectiveKind kind) const {
    const bool gives = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
    for (size_t g = 0; g < file_.gpus.size(); ++g) {
      bool takes_part = false;
      for (const MscclThreadBlock& tb : file_.gpus[g].tbs)
        for (const MscclStep& step : tb.steps)
          takes_part =
              takes_part || (gives ? kMscclOps[step.op].receives : kMscclOps[step.op].sends);
      if (!takes_part) return static_cast<int32_t>(g);
    }
    return 0;
  }

  void CheckChunks(const Collective& collective, NodeId rank) {
    const std::array<int64_t, 2> wanted{NumInputSlots(collective, rank) * chunks_per_slot_,
                                        NumOutputSlots(collective, rank) * chunks_per_slot_};
    for (size_t b = 0; b < 2; ++b) {
      const int64_t got = file_.gpus[rank.index()].chunks[b];
      if (got == 0 || got == wanted[b]) continue;
      Fault(fmt::format("gpu {}", rank.value),
            fmt::format("{}_chunks is {}, {} over {} chunks has {}", "io"[b], got, file_.coll,
                        file_.nchunksperloop, wanted[b]));
    }
  }

  void RunOnce(const Collective& collective, bool in_place) {
    Machine machine{collective, chunks_per_slot_, {}, in_place, true, false, kMscclQueue, {}, {}};
    machine.words = {"gpu", "tb", "step", {"i", "o", "s"}, "chunk"};
    int64_t total = 0;
    for (size_t g = 0; g < file_.gpus.size(); ++g) {
      MachineRank& rank = machine.ranks.emplace_back();
      const NodeId node{static_cast<int32_t>(g)};
      rank.cells = {NumInputSlots(collective, node) * chunks_per_slot_,
                    NumOutputSlots(collective, node) * chunks_per_slot_, file_.gpus[g].chunks[2]};
      for (const int64_t cells : rank.cells) total += cells;
      for (const MscclThreadBlock& tb : file_.gpus[g].tbs) rank.streams.push_back(ToStream(tb));
    }
    constexpr int64_t kMaxChunks = int64_t{1} << 25;
    if (total > kMaxChunks) {
      Fault("algo",
            fmt::format("too large to check: {} chunks of memory, at most {}", total, kMaxChunks));
      return;
    }
    // What orders accesses keeps a number for each action and thread block of a gpu.
    constexpr int64_t kMaxClocks = int64_t{1} << 28;
    int64_t clocks = 0;
    for (size_t g = 0; g < machine.ranks.size(); ++g) {
      const std::vector<ActionStream>& streams = machine.ranks[g].streams;
      for (const ActionStream& stream : streams)
        clocks += std::ssize(stream.actions) * std::ssize(streams);
      if (clocks <= kMaxClocks) continue;
      Fault(fmt::format("gpu {}", g),
            fmt::format("too large to check: more than {} pairs of a step and a thread block up "
                        "to it",
                        kMaxClocks));
      return;
    }
    for (PlanFault& fault : RunMachine(machine))
      Fault(in_place ? "in place" : "out of place", fault.message);
  }

  static ActionStream ToStream(const MscclThreadBlock& tb) {
    ActionStream stream;
    stream.send_peer = static_cast<int32_t>(tb.send);
    stream.recv_peer = static_cast<int32_t>(tb.recv);
    stream.channel = static_cast<int32_t>(tb.chan);
    for (const MscclStep& step : tb.steps) {
      const MscclOp& op = kMscclOps[step.op];
      Action& action = stream.actions.emplace_back();
      action.receives = op.receives;
      action.sends = op.sends;
      action.reads = op.reads;
      action.writes = op.writes;
      action.reads_dst = op.reads_dst;
      action.src = step.src;
      action.dst = step.dst;
      action.count = step.op == kMscclNop ? 0 : step.cnt;
      action.units = action.count;
      if (step.depid >= 0)
        action.after.push_back({static_cast<int32_t>(step.depid), static_cast<int32_t>(step.deps)});
    }
    return stream;
  }

  const MscclFile& file_;
  const MscclReader& reader_;
  std::vector<PlanFault>& faults_;
  int64_t chunks_per_slot_ = 1;
};

}  // namespace

std::optional<MscclMeaning> JudgeMsccl(const MscclFile& file, const MscclReader& reader,
                                       std::vector<PlanFault>& faults) {
  return Judge(file, reader, faults).Run();
}

}  // namespace tutti::lower

namespace tutti {

Result<std::vector<PlanFault>> CheckMscclXml(std::string_view xml, MscclDialect dialect) {
  const lower::MscclReader& reader = lower::ReaderOf(dialect);
  std::vector<PlanFault> faults;
  const Result<lower::MscclFile> file = lower::ReadMsccl(xml, reader, faults);
  if (!file) return tl::unexpected(file.error());
  if (faults.empty()) lower::JudgeMsccl(*file, reader, faults);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return faults;
}

}  // namespace tutti
