#include "choice/choose.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "choice/learned.h"
#include "exchange/run.h"
#include "flavour.h"
#include "hierarchy/groups.h"
#include "hierarchy/run.h"
#include "tutti/alltoallv/cost_model.h"
#include "tutti/alltoallv/memory.h"
#include "tutti/alltoallv/quiet_phase.h"
#include "tutti/alltoallv/trials.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::BlockSizes;
using alltoallv::CostModel;
using alltoallv::CostTables;
using alltoallv::Measured;
using alltoallv::Memory;
using alltoallv::Method;
using alltoallv::Placement;
using alltoallv::Prediction;
using alltoallv::QuietPhase;
using alltoallv::Trials;

constexpr Algorithm kOwn{.method = Method::kMpi};
constexpr int kFirstInterval = 16, kLastInterval = 512;
// Calls of a communicator before anything is set up, over all its ranks; fewer where they take
// long.
constexpr std::int64_t kQuietCallsOfAllRanks = 4096;
// What is tried: so many in all and of a method, none that is predicted to be slower than the MPI
// library's own by more than that.
#ifdef TUTTI_MPI_SMPI
constexpr double kQuietSeconds = std::numeric_limits<double>::infinity();
constexpr double kClockDeviation = alltoallv::kExactClock;
constexpr std::size_t kMostCandidates = 12, kOfAMethod = 3;
constexpr double kHopeless = 2;
#else
constexpr double kQuietSeconds = 0.2;
constexpr double kClockDeviation = alltoallv::kNoisyClock;
constexpr std::size_t kMostCandidates = 8, kOfAMethod = 3;
constexpr double kHopeless = 1.5;
#endif
// A call is over when its last rank is. Where the clock is not exact the slowest is mostly one that
// something else interrupted: there the mean over all ranks counts.
constexpr bool kSlowestRankCounts = kClockDeviation == alltoallv::kExactClock;
// Ranks agree on mean bytes, the largest block and what agreeing took; then on the trials' times.
constexpr std::size_t kBeforeTimes = 3;
// Of the calls between two agreements on sizes, the sizes of the last ones are looked at.
constexpr int kMeasuredCalls = 4;

alltoallv::Library OwnLibrary() {
  return alltoallv::ParseLibrary(FlavourName()).value_or(alltoallv::Library::kOpenMpi);
}

Placement PlacementOfGroups(const Groups& groups) {
  Placement placement = alltoallv::PlacementOf(NodesOf(groups));
  if (groups.levels.size() < 2) return placement;
  const Placement sockets = alltoallv::PlacementOf(groups.levels[groups.levels.size() - 2]);
  placement.largest_socket = sockets.largest_node;
  return placement;
}

struct OfClass {
  Trials trials;
  double own_s;  // believed before anything was measured
};

// What is decided for the calls of one function on one communicator.
struct Stream {
  std::map<int, OfClass> classes;
  std::optional<int> size_class;  // as agreed
  double bytes = 0, largest = 0;  // sums over the calls that were looked at
  int looked_at = 0;
  int calls = 0;  // since sizes were agreed
  int interval = kFirstInterval;
};

class Choice : public CommunicatorState::Part {
 public:
  // What is kept for a communicator; collective over `communicator` at the first call.
  static int Of(MPI_Comm communicator, CommunicatorState& state, Choice** choice) {
    auto& part = state.part(CommunicatorState::PartName::kChoice);
    if (part == nullptr) {
      auto made = std::make_unique<Choice>();
      bool remembers = false;
      if (const int error = SomeoneRemembers(communicator, state.rank(), &remembers)) return error;
      if (!remembers) {
        made->quiet_phase_ = QuietPhase(kQuietCallsOfAllRanks / state.size(), kQuietSeconds);
      }
      // Nothing is faster than one copy.
      if (state.size() == 1) {
        made->quiet_phase_ = QuietPhase(std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<double>::infinity());
      }
      part = std::move(made);
    }
    *choice = static_cast<Choice*>(part.get());
    return MPI_SUCCESS;
  }

  int Begin(MPI_Comm communicator, CommunicatorState& state, const CallSize& size,
            CallChoice* call);
  int End(const CallChoice& call);
  // `state` is that of CommunicatorState::Of.
  int Own(CommunicatorState& state, const CallSize& size, double* seconds);
  bool IsSettled() const {
    if (!v_.size_class) return false;
    const auto found = v_.classes.find(*v_.size_class);
    return found != v_.classes.end() && found->second.trials.settled();
  }
  const SettledChoice* Settled() {
    if (quiet_phase_.Passes()) return &quiet_;
    if (settled_calls_ == 0) return nullptr;
    --settled_calls_;
    return &settled_;
  }

 private:
  static CostModel ModelIn(const Memory& memory) {
    const auto found = memory.models.find(OwnLibrary());
    return found == memory.models.end() ? alltoallv::DefaultModel(OwnLibrary()) : found->second;
  }

  double MeanBytes(const CallSize& size) const {
    return static_cast<double>(size.total_bytes) / size_;
  }
  alltoallv::Situation SituationOf(int size_class) const {
    return {.library = OwnLibrary(),
            .ranks = size_,
            .largest_node = tables_->placement().largest_node,
            .size_class = size_class};
  }
  int AgreeOnQuiet(MPI_Comm communicator, int ranks);
  int SetUp(CommunicatorState& state);
  std::vector<Prediction> Candidates(const BlockSizes& sizes, double own_s) const;
  OfClass MakeKnown(int size_class, const BlockSizes& sizes, const Measured& best,
                    double own_s) const;
  OfClass Make(int size_class, const BlockSizes& sizes, bool uniform) const;
  OfClass& ClassOf(Stream& stream, int size_class, const BlockSizes& sizes);
  int Agree(Stream& stream);
  void Agreed(Stream& stream, std::span<const double> agreed);

  QuietPhase quiet_phase_;
  SettledChoice quiet_{.algorithm = kOwn};
  std::int64_t settled_calls_ = 0;  // of v_, that settled_ serves
  SettledChoice settled_;

  // From SetUp on.
  MPI_Comm duplicate_ = MPI_COMM_NULL;
  int size_ = 0;
  Memory memory_;
  std::optional<CostTables> tables_;
  Stream v_, uniform_;
  Stream* stream_ = nullptr;  // of the call that runs; null: nothing is asked of it
  OfClass* class_ = nullptr;  // null: not agreed
  double agreement_s_ = 0;    // the latest on this rank
};

int Choice::SetUp(CommunicatorState& state) {
  duplicate_ = state.duplicate();
  size_ = state.size();
  if (const int error = ShareMemory(duplicate_, state.rank(), &memory_)) return error;
  const Groups* groups = nullptr;
  if (const int error = GroupsOf(state, &groups)) return error;
  tables_.emplace(ModelIn(memory_), PlacementOfGroups(*groups));
  quiet_phase_ = QuietPhase();
  return MPI_SUCCESS;
}

std::vector<Prediction> Choice::Candidates(const BlockSizes& sizes, double own_s) const {
  std::vector<Prediction> shortlist = tables_->Shortlist(sizes, kMostCandidates, kOfAMethod);
  std::erase_if(shortlist, [own_s](const Prediction& each) {
    return each.seconds > kHopeless * own_s || !CanRunExchange(each.algorithm.method);
  });
  return shortlist;
}

// Measured at the end of the class, and on one distribution of sizes: the best of the classes
// beside it challenge it.
OfClass Choice::MakeKnown(int size_class, const BlockSizes& sizes, const Measured& best,
                          double own_s) const {
  const auto ratio_of = [](const Measured& measured) {
    return measured.own_seconds > 0 ? measured.seconds / measured.own_seconds : 1;
  };
  bool asks_own = false;
  std::vector<Prediction> others;
  for (const int beside : {size_class - 1, size_class + 1}) {
    const auto found = memory_.best.find(SituationOf(beside));
    if (found == memory_.best.end()) continue;
    const Algorithm& algorithm = found->second.algorithm;
    asks_own |= algorithm == kOwn || ratio_of(found->second) >= 1;
    if (algorithm == kOwn || !CanRunExchange(algorithm.method)) continue;
    others.push_back({algorithm, ratio_of(found->second) * own_s});
  }
  if (kClockDeviation == alltoallv::kExactClock) {
    const std::vector<Prediction> more = Candidates(sizes, own_s);
    others.insert(others.end(), more.begin(), more.end());
  }
  const bool own_is_faster = ratio_of(best) >= 1 && best.own_seconds > 0;
  return {Trials(own_is_faster ? kOwn : best.algorithm, ratio_of(best), asks_own, own_s, others,
                 kClockDeviation),
          best.own_seconds > 0 ? best.own_seconds : own_s};
}

OfClass Choice::Make(int size_class, const BlockSizes& sizes, bool uniform) const {
  double own_s = tables_->Seconds(kOwn, sizes);
  if (uniform) {
    // MPI libraries have a Bruck for small equal blocks.
    own_s = std::min(own_s, tables_->Seconds({.method = Method::kTuna, .radix = 2}, sizes));
  } else if (const auto found = memory_.best.find(SituationOf(size_class));
             found != memory_.best.end()) {
    return MakeKnown(size_class, sizes, found->second, own_s);
  }
  return {Trials(own_s, Candidates(sizes, own_s), kClockDeviation), own_s};
}

OfClass& Choice::ClassOf(Stream& stream, int size_class, const BlockSizes& sizes) {
  const auto found = stream.classes.find(size_class);
  if (found != stream.classes.end()) return found->second;
  return stream.classes.emplace(size_class, Make(size_class, sizes, &stream == &uniform_))
      .first->second;
}

int Choice::Own(CommunicatorState& state, const CallSize& size, double* seconds) {
  if (!tables_) {
    if (const int error = SetUp(state)) return error;
  }
  const BlockSizes sizes{MeanBytes(size), static_cast<double>(size.largest_block_bytes)};
  const int size_class = alltoallv::SizeClassOf(sizes.mean_bytes);
  *seconds = ClassOf(size.uniform ? uniform_ : v_, size_class, sizes).own_s;
  return MPI_SUCCESS;
}

// Over the program's own communicator: none of ours is made yet.
int Choice::AgreeOnQuiet(MPI_Comm communicator, int ranks) {
  const double mine = quiet_phase_.spent_s();
  double sum = 0;
  if (const int error = PMPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator)) {
    return error;
  }
  quiet_phase_.Decide(sum / ranks);
  return MPI_SUCCESS;
}

int Choice::Begin(MPI_Comm communicator, CommunicatorState& state, const CallSize& size,
                  CallChoice* call) {
  call->algorithm = kOwn;
  stream_ = nullptr;
  if (quiet_phase_.asks()) {
    if (const int error = AgreeOnQuiet(communicator, state.size())) return error;
  }
  if (quiet_phase_.Passes()) return MPI_SUCCESS;
  if (!quiet_phase_.over()) {
    call->begin_s = PMPI_Wtime();
    return MPI_SUCCESS;
  }
  if (!tables_) {
    CommunicatorState* complete = nullptr;
    if (const int error = CommunicatorState::Of(communicator, &complete)) return error;
    if (const int error = SetUp(state)) return error;
  }
  Stream& stream = size.uniform ? uniform_ : v_;
  const BlockSizes sizes{MeanBytes(size), static_cast<double>(size.largest_block_bytes)};
  stream_ = &stream;
  if (size.uniform) stream.size_class = alltoallv::SizeClassOf(sizes.mean_bytes);
  ++stream.calls;
  ++stream.looked_at;
  stream.bytes += sizes.mean_bytes;
  stream.largest += sizes.largest_bytes;
  class_ = nullptr;
  if (!stream.size_class) return MPI_SUCCESS;
  class_ = &ClassOf(stream, *stream.size_class, sizes);
  const Trials& trials = class_->trials;
  call->algorithm = trials.Next();
  call->own_s = trials.own_s() > 0 ? trials.own_s() : class_->own_s;
  if (!trials.rests()) call->begin_s = PMPI_Wtime();
  return MPI_SUCCESS;
}

int Choice::End(const CallChoice& call) {
  if (stream_ == nullptr) {
    if (call.begin_s >= 0) quiet_phase_.Note(PMPI_Wtime() - call.begin_s);
    return MPI_SUCCESS;
  }
  bool agrees = class_ == nullptr;
  if (class_ != nullptr) {
    Trials& trials = class_->trials;
    if (call.begin_s >= 0) {
      trials.Note(PMPI_Wtime() - call.begin_s);
      agrees = trials.stage_ended();
    } else {
      trials.Skip(1);
      agrees = stream_ != &uniform_ && stream_->calls >= stream_->interval;
    }
  }
  return agrees ? Agree(*stream_) : MPI_SUCCESS;
}

int Choice::Agree(Stream& stream) {
  std::vector<double> mine = {stream.bytes / stream.looked_at, stream.largest / stream.looked_at,
                              agreement_s_};
  if (class_ != nullptr && class_->trials.stage_ended()) {
    const std::vector<double> times = class_->trials.Times();
    mine.insert(mine.end(), times.begin(), times.end());
  }
  std::vector<double> agreed(mine.size());
  const double begin = PMPI_Wtime();
  if (const int error = PMPI_Allreduce(mine.data(), agreed.data(), static_cast<int>(mine.size()),
                                       MPI_DOUBLE, MPI_SUM, duplicate_)) {
    return error;
  }
  agreement_s_ = PMPI_Wtime() - begin;
  for (double& each : agreed) each /= size_;
  if (kSlowestRankCounts && mine.size() > kBeforeTimes) {
    if (const int error = PMPI_Allreduce(mine.data() + kBeforeTimes, agreed.data() + kBeforeTimes,
                                         static_cast<int>(mine.size() - kBeforeTimes), MPI_DOUBLE,
                                         MPI_MAX, duplicate_)) {
      return error;
    }
  }
  Agreed(stream, agreed);
  return MPI_SUCCESS;
}

void Choice::Agreed(Stream& stream, std::span<const double> agreed) {
  // Sizes near the end of a class stay in it, so that it does not change to and fro.
  constexpr double kSlack = 1.25;
  const bool uniform = &stream == &uniform_;
  bool moved = false;
  if (!uniform) {
    const int size_class = alltoallv::SizeClassOf(agreed[0]);
    const double upper = stream.size_class ? std::ldexp(1, *stream.size_class) : 0;
    moved = !stream.size_class || (size_class != *stream.size_class &&
                                   (agreed[0] > upper * kSlack || agreed[0] < upper / 2 / kSlack));
    if (moved) stream.size_class = size_class;
  }
  if (class_ != nullptr && class_->trials.stage_ended()) {
    Trials& trials = class_->trials;
    trials.EndStage(agreed.subspan(kBeforeTimes), !moved, agreed[2]);
    if (trials.settled() && trials.own_s() > 0 && !uniform && !moved) {
      Learn(SituationOf(*stream.size_class), {.algorithm = trials.serving(),
                                              .seconds = trials.serving_s(),
                                              .own_seconds = trials.own_s()});
    }
  }
  stream.interval = moved ? kFirstInterval : std::min(stream.interval * 2, kLastInterval);
  stream.bytes = stream.largest = 0;
  stream.calls = stream.looked_at = 0;
  if (uniform) return;
  OfClass& now = ClassOf(stream, *stream.size_class, {agreed[0], agreed[1]});
  if (!now.trials.rests()) return;
  // The calls up to those whose sizes are looked at again pass by all this.
  settled_ = {now.trials.Next(), now.trials.own_s() > 0 ? now.trials.own_s() : now.own_s};
  settled_calls_ =
      std::min<std::int64_t>(stream.interval - kMeasuredCalls, now.trials.rest_calls());
  stream.calls = static_cast<int>(settled_calls_);
  now.trials.Skip(settled_calls_);
}

}  // namespace

int BeginCall(MPI_Comm communicator, CommunicatorState& state, const CallSize& size,
              CallChoice* call) {
  Choice* choice = nullptr;
  if (const int error = Choice::Of(communicator, state, &choice)) return error;
  return choice->Begin(communicator, state, size, call);
}

int EndCall(CommunicatorState& state, const CallChoice& call) {
  auto* choice = static_cast<Choice*>(state.part(CommunicatorState::PartName::kChoice).get());
  return choice->End(call);
}

int BelieveOwn(CommunicatorState& state, const CallSize& size, double* seconds) {
  Choice* choice = nullptr;
  if (const int error = Choice::Of(state.duplicate(), state, &choice)) return error;
  return choice->Own(state, size, seconds);
}

bool IsSettled(MPI_Comm communicator) {
  CommunicatorState* state = nullptr;
  if (CommunicatorState::Light(communicator, &state) != MPI_SUCCESS) return false;
  auto* choice = static_cast<Choice*>(state->part(CommunicatorState::PartName::kChoice).get());
  return choice != nullptr && choice->IsSettled();
}

const SettledChoice* Settled(CommunicatorState& state) {
  auto* choice = static_cast<Choice*>(state.part(CommunicatorState::PartName::kChoice).get());
  return choice == nullptr ? nullptr : choice->Settled();
}

}  // namespace tutti::mpi
