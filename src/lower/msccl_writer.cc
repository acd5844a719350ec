// Plans as MSCCL algorithm XML: streams become thread blocks, instructions steps.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "lower_internal.h"
#include "msccl_file.h"
#include "tutti/base/index.h"

namespace tutti::lower {
namespace {

size_t OpOf(OpCode op) {
  switch (op) {
    case OpCode::kSend:
      return 0;
    case OpCode::kRecv:
      return 1;
    case OpCode::kRecvReduce:
      return 4;
    case OpCode::kCopy:
      break;
  }
  return 6;
}

// Gives each connection (sender, receiver, channel of the plan) a channel of the file on which
// neither end has too many peers. `paired`: both directions of a pair get the same one.
class ChannelChooser {
 public:
  ChannelChooser(const Plan& plan, bool paired) {
    int64_t most = 1;  // streams of a rank in one direction
    for (const RankPlan& rank : plan.ranks) {
      const auto sends = std::count_if(rank.streams.begin(), rank.streams.end(),
                                       [](const Stream& s) { return s.send_peer >= 0; });
      const auto receives = std::count_if(rank.streams.begin(), rank.streams.end(),
                                          [](const Stream& s) { return s.recv_peer >= 0; });
      most = std::max<int64_t>({most, sends, receives});
    }
    spread_ = static_cast<int32_t>((most + kMscclMaxPeers - 1) / kMscclMaxPeers);
    for (size_t r = 0; r < plan.ranks.size(); ++r)
      for (const Stream& stream : plan.ranks[r].streams)
        if (stream.send_peer >= 0)
          Choose({static_cast<int32_t>(r), stream.send_peer, stream.channel}, paired);
  }
  int32_t Of(int32_t sender, int32_t receiver, int32_t channel) const {
    return chosen_.at({sender, receiver, channel});
  }
  int32_t num_channels() const { return num_channels_; }

 private:
  using Connection = std::tuple<int32_t, int32_t, int32_t>;

  static Connection Reverse(const Connection& of) {
    return {std::get<1>(of), std::get<0>(of), std::get<2>(of)};
  }

  void Choose(const Connection& connection, bool paired) {
    if (chosen_.count(connection) > 0) return;
    const Connection back = Reverse(connection);
    const auto [sender, receiver, channel] = connection;
    const int32_t first = (sender + receiver + channel) % spread_;
    int32_t c = first;
    for (int32_t tried = 0; !Free(connection, c) || (paired && !Free(back, c));) {
      ++tried;
      c = tried < spread_ ? (first + tried) % spread_ : tried;
    }
    Take(connection, c);
    if (paired) Take(back, c);
    num_channels_ = std::max(num_channels_, c + 1);
  }

  bool Free(const Connection& of, int32_t c) {
    return sends_[{std::get<0>(of), c}] < kMscclMaxPeers &&
           receives_[{std::get<1>(of), c}] < kMscclMaxPeers &&
           used_.count({std::get<0>(of), std::get<1>(of), c}) == 0;
  }

  void Take(const Connection& of, int32_t c) {
    ++sends_[{std::get<0>(of), c}];
    ++receives_[{std::get<1>(of), c}];
    used_.insert({std::get<0>(of), std::get<1>(of), c});
    chosen_[of] = c;
  }

  int32_t spread_ = 1;  // channels to spread the peers of a rank over
  std::map<Connection, int32_t> chosen_;
  std::set<Connection> used_;
  std::map<std::pair<int32_t, int32_t>, int64_t> sends_, receives_;
  int32_t num_channels_ = 1;
};

// How many chunks the reader cuts its own count of elements into.
int64_t ChunksPerLoop(const Collective& collective, int64_t units_per_shard) {
  const bool between_root_and_owners = collective.has_root() && collective.num_shards() > 1;
  return between_root_and_owners ? units_per_shard : units_per_shard * collective.weight_of_size();
}

// The two ends of each connection. Its streams hold nothing else, and what is sent first is
// received first: instructions of equal index are the two sides of one message.
class Connections {
 public:
  explicit Connections(const Plan& plan) {
    for (size_t r = 0; r < plan.ranks.size(); ++r) {
      const auto rank = static_cast<int32_t>(r);
      for (const Stream& stream : plan.ranks[r].streams) {
        if (stream.send_peer >= 0) send_[{rank, stream.send_peer, stream.channel}] = &stream;
        if (stream.recv_peer >= 0) receive_[{stream.recv_peer, rank, stream.channel}] = &stream;
      }
    }
  }

  // What the other rank does with the message of `stream`, one of `rank`.
  const Instruction& OtherEnd(int32_t rank, const Stream& stream, size_t instruction) const {
    const Stream* other = stream.send_peer >= 0
                              ? receive_.at({rank, stream.send_peer, stream.channel})
                              : send_.at({stream.recv_peer, rank, stream.channel});
    return other->instructions.at(instruction);
  }

 private:
  using Connection = std::tuple<int32_t, int32_t, int32_t>;  // sender, receiver, channel

  std::map<Connection, const Stream*> send_, receive_;
};

// One gpu of the file from one rank of the plan.
class GpuWriter {
 public:
  GpuWriter(const Plan& plan, int32_t rank, const ChannelChooser& channels,
            const Connections& connections, bool paired)
      : rank_(plan.ranks[Index(rank)]),
        id_(rank),
        channels_(channels),
        connections_(connections),
        paired_(paired) {
    const int64_t units = plan.units_per_shard;
    gpu_.chunks = {rank_.input_slots * units, rank_.output_slots * units,
                   rank_.scratch_slots * units};
  }

  MscclGpu Write() {
    AssignThreadBlocks();
    for (const auto& list : order_) WriteThreadBlock(list);
    for (const auto& [tb, step] : needed_) gpu_.tbs[Index(tb)].steps[Index(step)].hasdep = true;
    return std::move(gpu_);
  }

 private:
  // A stream to a thread block; paired: what is sent to a peer and what is received from it over
  // one channel share one, step by step.
  void AssignThreadBlocks() {
    std::map<std::tuple<int32_t, int32_t>, size_t> seen;
    tb_of_.resize(rank_.streams.size());
    for (size_t s = 0; s < rank_.streams.size(); ++s) {
      const Stream& stream = rank_.streams[s];
      const int32_t peer = std::max(stream.send_peer, stream.recv_peer);
      size_t tb = gpu_.tbs.size();
      if (paired_ && peer >= 0) tb = seen.try_emplace({peer, stream.channel}, tb).first->second;
      if (tb == gpu_.tbs.size()) {
        gpu_.tbs.emplace_back();
        order_.emplace_back();
      }
      tb_of_[s] = tb;
      if (stream.send_peer >= 0) {
        gpu_.tbs[tb].send = stream.send_peer;
        gpu_.tbs[tb].chan = channels_.Of(id_, stream.send_peer, stream.channel);
      }
      if (stream.recv_peer >= 0) {
        gpu_.tbs[tb].recv = stream.recv_peer;
        gpu_.tbs[tb].chan = channels_.Of(stream.recv_peer, id_, stream.channel);
      }
      for (size_t i = 0; i < stream.instructions.size(); ++i)
        order_[tb].push_back({static_cast<int32_t>(s), static_cast<int32_t>(i)});
    }
    for (std::vector<Dependency>& list : order_) Interleave(list);
    PlaceSteps();
  }

  const Instruction& At(const Dependency& which) const {
    return rank_.streams[Index(which.stream)].instructions[Index(which.instruction)];
  }

  // By step of the schedule; in one step message by message, each send before a receive.
  void Interleave(std::vector<Dependency>& list) const {
    std::map<std::pair<int32_t, int32_t>, int32_t> seen;  // (step, stream) -> instructions so far
    std::vector<std::tuple<int32_t, int32_t, int32_t, int32_t>> keys;
    for (const Dependency& which : list)
      keys.emplace_back(At(which).step, seen[{At(which).step, which.stream}]++, which.stream,
                        which.instruction);
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) list[i] = {std::get<2>(keys[i]), std::get<3>(keys[i])};
  }

  // Dependencies that the thread block's own order does not already give.
  std::vector<Dependency> Needed(const Dependency& which) const {
    std::vector<Dependency> needed;
    for (const Dependency& dep : At(which).after)
      if (tb_of_[Index(dep.stream)] != tb_of_[Index(which.stream)]) needed.push_back(dep);
    return needed;
  }

  static int64_t Pieces(const Instruction& instruction) {
    return (instruction.count + kMscclMaxCount - 1) / kMscclMaxCount;
  }

  // The step that ends each instruction: after its nops and pieces.
  void PlaceSteps() {
    last_step_.resize(rank_.streams.size());
    for (size_t s = 0; s < rank_.streams.size(); ++s)
      last_step_[s].resize(rank_.streams[s].instructions.size());
    for (const std::vector<Dependency>& list : order_) {
      int64_t next = 0;
      for (const Dependency& which : list) {
        const auto waits = static_cast<int64_t>(Needed(which).size());
        next += std::max<int64_t>(waits - 1, 0) + Pieces(At(which));
        last_step_[Index(which.stream)][Index(which.instruction)] = next - 1;
      }
    }
  }

  void WriteThreadBlock(const std::vector<Dependency>& list) {
    for (const Dependency& which : list) {
      const Instruction& instruction = At(which);
      std::vector<MscclStep>& steps = gpu_.tbs[tb_of_[Index(which.stream)]].steps;
      const std::vector<Dependency> needed = Needed(which);
      for (size_t d = 0; d + 1 < needed.size(); ++d) {
        MscclStep nop;
        WaitFor(needed[d], nop);
        steps.push_back(nop);
      }
      for (int64_t done = 0; done < instruction.count; done += kMscclMaxCount) {
        MscclStep step = StepOf(which, done);
        if (done == 0 && !needed.empty()) WaitFor(needed.back(), step);
        steps.push_back(step);
      }
    }
  }

  void WaitFor(const Dependency& dep, MscclStep& step) {
    step.depid = static_cast<int64_t>(tb_of_[Index(dep.stream)]);
    step.deps = last_step_[Index(dep.stream)][Index(dep.instruction)];
    needed_.insert({step.depid, step.deps});
  }

  // Both ends of a message name where it leaves the sender and where it goes at the receiver: a
  // runtime looks at its own side only, checkers compare the two. A receive that reduces has no
  // room for the sender's place: its source is what it reduces with.
  MscclStep StepOf(const Dependency& which, int64_t done) const {
    const Instruction& instruction = At(which);
    const auto other = [&]() -> const Instruction& {
      return connections_.OtherEnd(id_, rank_.streams[Index(which.stream)],
                                   Index(which.instruction));
    };
    MscclStep step;
    step.op = OpOf(instruction.op);
    step.src = instruction.op == OpCode::kRecv ? other().src : instruction.src;
    step.dst = instruction.op == OpCode::kSend ? other().dst : instruction.dst;
    step.src.offset += done;
    step.dst.offset += done;
    step.cnt = std::min(instruction.count - done, kMscclMaxCount);
    return step;
  }

  const RankPlan& rank_;
  int32_t id_;
  const ChannelChooser& channels_;
  const Connections& connections_;
  bool paired_;
  MscclGpu gpu_;
  std::vector<size_t> tb_of_;                   // of each stream
  std::vector<std::vector<Dependency>> order_;  // instructions of each thread block
  std::vector<std::vector<int64_t>> last_step_;
  std::set<std::pair<int64_t, int64_t>> needed_;  // (tb, step) that others wait for
};

std::string NameOf(const Plan& plan) {
  std::string name = fmt::format("tutti_{}_{}_{}", Name(plan.collective.kind()), plan.algorithm,
                                 plan.ranks.size());
  for (char& c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) c = '_';
  return name.substr(0, 63);
}

MscclFile ToFile(const Plan& plan, const MscclReader& reader, const MscclOptions& options,
                 bool paired) {
  constexpr int64_t kDefaultLargest = int64_t{1} << 27;
  MscclFile file;
  file.name = NameOf(plan);
  file.proto = options.protocol;
  file.coll = CollOf(reader, plan.collective.kind());
  file.nchunksperloop = ChunksPerLoop(plan.collective, plan.units_per_shard);
  file.min_bytes = options.min_bytes;
  file.max_bytes = options.max_bytes;
  // This reader takes 0 for "never".
  if (!reader.reads_outofplace && file.max_bytes == 0) file.max_bytes = kDefaultLargest;
  // Plans are right both ways, so a reader with two flags may use the file for both.
  file.in_place = options.in_place;
  file.out_of_place = !options.in_place || reader.reads_outofplace;
  const ChannelChooser channels(plan, paired);
  const Connections connections(plan);
  file.nchannels = channels.num_channels();
  for (int32_t r = 0; r < static_cast<int32_t>(plan.ranks.size()); ++r)
    file.gpus.push_back(GpuWriter(plan, r, channels, connections, paired).Write());
  return file;
}

// From the counts alone: offsets have 16 bits, and a call must have a byte for each chunk.
Status CheckChunks(const Schedule& schedule, const MscclOptions& options) {
  const int64_t chunks = ChunksPerLoop(schedule.collective, schedule.units_per_shard);
  if (chunks > kMscclMaxOffset + 1)
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format(
            "{} chunks per shard make {} chunks of a call; 16-bit offsets number at most {}",
            schedule.units_per_shard, chunks, kMscclMaxOffset + 1));
  if (options.max_bytes > 0 && options.max_bytes < chunks)
    return InvalidArgument(
        fmt::format("calls of at most {} bytes cannot be cut into the {} chunks of this schedule",
                    options.max_bytes, chunks));
  return {};
}

Status CheckOptions(const Schedule& schedule, const MscclReader& reader,
                    const MscclOptions& options) {
  const CollectiveKind kind = schedule.collective.kind();
  if (options.protocol != "Simple" && options.protocol != "LL" && options.protocol != "LL128")
    return InvalidArgument(
        fmt::format("unknown protocol '{}'; accepted are Simple, LL, LL128", options.protocol));
  if (options.min_bytes < 0 || options.max_bytes < 0 ||
      (options.max_bytes > 0 && options.max_bytes < options.min_bytes))
    return InvalidArgument(fmt::format("sizes from {} to {} bytes are no range", options.min_bytes,
                                       options.max_bytes));
  if (kind == CollectiveKind::kAllToAllV)
    return MakeError(ErrorCode::kInfeasible,
                     "MSCCL XML has equal chunks only and cannot express all-to-allv");
  if (CollOf(reader, kind).empty())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} has no collective {}", reader.name, Name(kind)));
  if (options.in_place && kind == CollectiveKind::kAllToAll)
    return MakeError(ErrorCode::kInfeasible, "all-to-all has no in-place form");
  return CheckChunks(schedule, options);
}

}  // namespace

std::string WriteMsccl(const MscclFile& file) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" "
                 "ngpus=\"{}\" coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"{}\" "
                 "maxBytes=\"{}\">\n",
                 file.name, file.proto, file.nchannels, file.nchunksperloop, file.gpus.size(),
                 file.coll, int{file.in_place}, int{file.out_of_place}, file.min_bytes,
                 file.max_bytes);
  const auto letter = [](Buffer buffer) { return "ios"[static_cast<size_t>(buffer)]; };
  for (size_t g = 0; g < file.gpus.size(); ++g) {
    const MscclGpu& gpu = file.gpus[g];
    fmt::format_to(out, "  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", g,
                   gpu.chunks[0], gpu.chunks[1], gpu.chunks[2]);
    for (size_t t = 0; t < gpu.tbs.size(); ++t) {
      const MscclThreadBlock& tb = gpu.tbs[t];
      fmt::format_to(out, "    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", t, tb.send,
                     tb.recv, tb.chan);
      for (size_t s = 0; s < tb.steps.size(); ++s) {
        const MscclStep& step = tb.steps[s];
        fmt::format_to(out,
                       "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" "
                       "dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" depid=\"{}\" deps=\"{}\" "
                       "hasdep=\"{}\"/>\n",
                       s, kMscclOps[step.op].name, letter(step.src.buffer), step.src.offset,
                       letter(step.dst.buffer), step.dst.offset, step.cnt, step.depid, step.deps,
                       int{step.hasdep});
      }
      text += "    </tb>\n";
    }
    text += "  </gpu>\n";
  }
  text += "</algo>\n";
  return text;
}

}  // namespace tutti::lower

namespace tutti {

Result<std::string> ToMscclXml(const Topology& topology, const Schedule& schedule,
                               const MscclOptions& options) {
  const lower::MscclReader& reader = lower::ReaderOf(options.dialect);
  const Status sound = lower::CheckOptions(schedule, reader, options);
  if (!sound) return tl::unexpected(sound.error());
  // Steps are spared by more channels, thread blocks by using each for both directions.
  std::string refused;
  for (const bool paired : {false, true})
    for (int32_t channels = 1; channels <= reader.max_channels; channels *= 2) {
      lower::Choices choices;
      choices.channels = channels;
      choices.copy_own_first = !schedule.collective.reduces();
      const Result<Plan> plan = lower::LowerWith(topology, schedule, choices);
      if (!plan) return tl::unexpected(plan.error());
      const lower::MscclFile file = lower::ToFile(*plan, reader, options, paired);
      const std::vector<lower::MscclExcess> excess = lower::FindExcess(file, reader);
      if (excess.empty()) {
        std::string xml = lower::WriteMsccl(file);
        if (!paired) return xml;
        // Both directions in one thread block may wait for each other: only a run can tell.
        const Result<std::vector<PlanFault>> faults = CheckMscclXml(xml, options.dialect);
        if (!faults && faults.error().code == ErrorCode::kCancelled)
          return tl::unexpected(faults.error());
        if (faults && faults->empty()) return xml;
        continue;
      }
      if (refused.empty()) refused = excess.front().message;
      const bool splittable = std::all_of(
          excess.begin(), excess.end(),
          [](const lower::MscclExcess& e) { return e.limit == lower::MscclLimit::kSteps; });
      if (!splittable) break;
    }
  return MakeError(ErrorCode::kInfeasible,
                   refused + "; more channels or shared thread blocks do not help");
}

}  // namespace tutti
