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
#include "tutti/tune/cost_model.h"
#include "tutti/tune/deferred_setup.h"
#include "tutti/tune/online_tuner.h"
#include "tutti/tune/tuning_database.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;
using tune::BlockSizes;
using tune::CostModel;
using tune::CostTables;
using tune::DeferredSetup;
using tune::Measured;
using tune::OnlineTuner;
using tune::Placement;
using tune::Prediction;
using tune::TuningDatabase;

constexpr Algorithm kNative{.method = Method::kMpi};
constexpr int kFirstInterval = 16, kLastInterval = 512;
// Calls of a communicator before anything is set up, over all its ranks; fewer where they take
// long.
constexpr int64_t kDeferredCallsOfAllRanks = 4096;
// What is tried: so many in all and of a method (and see TuningPolicy).
#ifdef TUTTI_MPI_SMPI
constexpr double kDeferredSeconds = std::numeric_limits<double>::infinity();
constexpr double kClockDeviation = tune::kExactClock;
constexpr size_t kMaxCandidates = 12, kOfAMethod = 3;
#else
constexpr double kDeferredSeconds = 0.2;
constexpr double kClockDeviation = tune::kNoisyClock;
constexpr size_t kMaxCandidates = 8, kOfAMethod = 3;
#endif
// A call is over when its last rank is. Where the clock is not exact the slowest is mostly one that
// something else interrupted: there the mean over all ranks counts.
constexpr bool kSlowestRankCounts = kClockDeviation == tune::kExactClock;
// Ranks agree on mean bytes, the largest block and what agreeing took; then on the tuner's times.
constexpr size_t kBeforeTimes = 3;
// The sizes of the last calls between two agreements on sizes are looked at.
constexpr int kMeasuredCalls = 4;

tune::Library ThisLibrary() {
  return tune::ParseLibrary(FlavourName()).value_or(tune::Library::kOpenMpi);
}

Placement PlacementOfGroups(const Groups& groups) {
  Placement placement = tune::PlacementOf(NodesOf(groups));
  if (groups.levels.size() < 2) return placement;
  const Placement sockets = tune::PlacementOf(groups.levels[groups.levels.size() - 2]);
  placement.largest_socket = sockets.largest_node;
  return placement;
}

struct SizeClass {
  OnlineTuner tuner;
  double native_s;  // believed before anything was measured
};

// What is decided for the calls of one function on one communicator.
struct Stream {
  std::map<int, SizeClass> classes;
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
      bool has_data = false;
      if (const int error = HasTuningData(communicator, state.rank(), &has_data)) return error;
      if (!has_data) {
        made->deferred_setup_ =
            DeferredSetup(kDeferredCallsOfAllRanks / state.size(), kDeferredSeconds);
      }
      // Nothing is faster than one copy.
      if (state.size() == 1) {
        made->deferred_setup_ = DeferredSetup(std::numeric_limits<int64_t>::max(),
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
  int PredictNative(CommunicatorState& state, const CallSize& size, double* seconds);
  bool IsSettled() const {
    if (!v_.size_class) return false;
    const auto found = v_.classes.find(*v_.size_class);
    return found != v_.classes.end() && found->second.tuner.settled();
  }
  const SettledChoice* Settled() {
    if (deferred_setup_.Passes()) return &deferred_;
    if (settled_calls_ == 0) return nullptr;
    --settled_calls_;
    return &settled_;
  }

 private:
  static CostModel ModelIn(const TuningDatabase& database) {
    const auto found = database.models.find(ThisLibrary());
    return found == database.models.end() ? tune::DefaultModel(ThisLibrary()) : found->second;
  }

  double MeanBytes(const CallSize& size) const {
    return static_cast<double>(size.total_bytes) / size_;
  }
  tune::Situation SituationOf(int size_class) const {
    return {.library = ThisLibrary(),
            .ranks = size_,
            .largest_node = tables_->placement().largest_node,
            .size_class = size_class};
  }
  int AgreeOnSetup(MPI_Comm communicator, int ranks);
  int SetUp(CommunicatorState& state);
  tune::TuningPolicy PolicyOf(const BlockSizes& sizes) const {
    return tune::PolicyFor(size_, sizes.mean_bytes, kClockDeviation);
  }
  std::vector<Prediction> Candidates(const BlockSizes& sizes, double native_s) const;
  SizeClass MakeKnown(int size_class, const BlockSizes& sizes, const Measured& best,
                      double native_s) const;
  SizeClass Make(int size_class, const BlockSizes& sizes, bool uniform) const;
  SizeClass& ClassOf(Stream& stream, int size_class, const BlockSizes& sizes);
  int Agree(Stream& stream);
  void Agreed(Stream& stream, std::span<const double> agreed);

  DeferredSetup deferred_setup_;
  SettledChoice deferred_{.algorithm = kNative};
  int64_t settled_calls_ = 0;  // of v_, that settled_ serves
  SettledChoice settled_;

  // From SetUp on.
  MPI_Comm duplicate_ = MPI_COMM_NULL;
  int size_ = 0;
  TuningDatabase database_;
  std::optional<CostTables> tables_;
  Stream v_, uniform_;
  Stream* stream_ = nullptr;    // of the call that runs; null: nothing is asked of it
  SizeClass* class_ = nullptr;  // null: not agreed
  double agreement_s_ = 0;      // the latest on this rank
};

int Choice::SetUp(CommunicatorState& state) {
  duplicate_ = state.duplicate();
  size_ = state.size();
  if (const int error = ShareTuningDatabase(duplicate_, state.rank(), &database_)) return error;
  const Groups* groups = nullptr;
  if (const int error = GroupsOf(state, &groups)) return error;
  tables_.emplace(ModelIn(database_), PlacementOfGroups(*groups));
  deferred_setup_ = DeferredSetup();
  return MPI_SUCCESS;
}

std::vector<Prediction> Choice::Candidates(const BlockSizes& sizes, double native_s) const {
  std::vector<Prediction> shortlist = tables_->Shortlist(sizes, kMaxCandidates, kOfAMethod);
  const double max_s = PolicyOf(sizes).max_predicted_ratio * native_s;
  std::erase_if(shortlist, [max_s](const Prediction& each) {
    return each.seconds > max_s || !CanRunExchange(each.algorithm.method);
  });
  return shortlist;
}

// Measured at the end of the class, and on one distribution of sizes: the best of the classes
// beside it challenge it.
SizeClass Choice::MakeKnown(int size_class, const BlockSizes& sizes, const Measured& best,
                            double native_s) const {
  const auto ratio_of = [](const Measured& measured) {
    return measured.native_seconds > 0 ? measured.seconds / measured.native_seconds : 1;
  };
  bool compares_native = false;
  std::vector<Prediction> others;
  for (const int beside : {size_class - 1, size_class + 1}) {
    const auto found = database_.best.find(SituationOf(beside));
    if (found == database_.best.end()) continue;
    const Algorithm& algorithm = found->second.algorithm;
    compares_native |= algorithm == kNative || ratio_of(found->second) >= 1;
    if (algorithm == kNative || !CanRunExchange(algorithm.method)) continue;
    others.push_back({algorithm, ratio_of(found->second) * native_s});
  }
  if (kClockDeviation == tune::kExactClock) {
    const std::vector<Prediction> more = Candidates(sizes, native_s);
    others.insert(others.end(), more.begin(), more.end());
  }
  const bool native_is_faster = ratio_of(best) >= 1 && best.native_seconds > 0;
  return {OnlineTuner(native_is_faster ? kNative : best.algorithm, ratio_of(best), compares_native,
                      native_s, others, kClockDeviation, PolicyOf(sizes).margin),
          best.native_seconds > 0 ? best.native_seconds : native_s};
}

SizeClass Choice::Make(int size_class, const BlockSizes& sizes, bool uniform) const {
  double native_s = tables_->Seconds(kNative, sizes);
  if (uniform) {
    // MPI libraries have a Bruck for small equal blocks.
    native_s = std::min(native_s, tables_->Seconds({.method = Method::kTuna, .radix = 2}, sizes));
  } else if (const auto found = database_.best.find(SituationOf(size_class));
             found != database_.best.end()) {
    return MakeKnown(size_class, sizes, found->second, native_s);
  }
  return {
      OnlineTuner(native_s, Candidates(sizes, native_s), kClockDeviation, PolicyOf(sizes).margin),
      native_s};
}

SizeClass& Choice::ClassOf(Stream& stream, int size_class, const BlockSizes& sizes) {
  const auto found = stream.classes.find(size_class);
  if (found != stream.classes.end()) return found->second;
  return stream.classes.emplace(size_class, Make(size_class, sizes, &stream == &uniform_))
      .first->second;
}

int Choice::PredictNative(CommunicatorState& state, const CallSize& size, double* seconds) {
  if (!tables_) {
    if (const int error = SetUp(state)) return error;
  }
  const BlockSizes sizes{MeanBytes(size), static_cast<double>(size.largest_block_bytes)};
  const int size_class = tune::SizeClassOf(sizes.mean_bytes);
  *seconds = ClassOf(size.uniform ? uniform_ : v_, size_class, sizes).native_s;
  return MPI_SUCCESS;
}

// Over the program's own communicator: none of ours is made yet.
int Choice::AgreeOnSetup(MPI_Comm communicator, int ranks) {
  const double mine = deferred_setup_.spent_s();
  double sum = 0;
  if (const int error = PMPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator)) {
    return error;
  }
  deferred_setup_.Decide(sum / ranks);
  return MPI_SUCCESS;
}

int Choice::Begin(MPI_Comm communicator, CommunicatorState& state, const CallSize& size,
                  CallChoice* call) {
  call->algorithm = kNative;
  stream_ = nullptr;
  if (deferred_setup_.asks()) {
    if (const int error = AgreeOnSetup(communicator, state.size())) return error;
  }
  if (deferred_setup_.Passes()) return MPI_SUCCESS;
  if (!deferred_setup_.over()) {
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
  if (size.uniform) stream.size_class = tune::SizeClassOf(sizes.mean_bytes);
  ++stream.calls;
  ++stream.looked_at;
  stream.bytes += sizes.mean_bytes;
  stream.largest += sizes.largest_bytes;
  class_ = nullptr;
  if (!stream.size_class) return MPI_SUCCESS;
  class_ = &ClassOf(stream, *stream.size_class, sizes);
  const OnlineTuner& tuner = class_->tuner;
  call->algorithm = tuner.Next();
  call->native_s = tuner.native_s() > 0 ? tuner.native_s() : class_->native_s;
  if (!tuner.paused()) call->begin_s = PMPI_Wtime();
  return MPI_SUCCESS;
}

int Choice::End(const CallChoice& call) {
  if (stream_ == nullptr) {
    if (call.begin_s >= 0) deferred_setup_.Note(PMPI_Wtime() - call.begin_s);
    return MPI_SUCCESS;
  }
  bool agrees = class_ == nullptr;
  if (class_ != nullptr) {
    OnlineTuner& tuner = class_->tuner;
    if (call.begin_s >= 0) {
      tuner.Note(PMPI_Wtime() - call.begin_s);
      agrees = tuner.stage_ended();
    } else {
      tuner.Skip(1);
      agrees = stream_ != &uniform_ && stream_->calls >= stream_->interval;
    }
  }
  return agrees ? Agree(*stream_) : MPI_SUCCESS;
}

int Choice::Agree(Stream& stream) {
  std::vector<double> mine = {stream.bytes / stream.looked_at, stream.largest / stream.looked_at,
                              agreement_s_};
  if (class_ != nullptr && class_->tuner.stage_ended()) {
    const std::vector<double> times = class_->tuner.Times();
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
    const int size_class = tune::SizeClassOf(agreed[0]);
    const double upper = stream.size_class ? std::ldexp(1, *stream.size_class) : 0;
    moved = !stream.size_class || (size_class != *stream.size_class &&
                                   (agreed[0] > upper * kSlack || agreed[0] < upper / 2 / kSlack));
    if (moved) stream.size_class = size_class;
  }
  if (class_ != nullptr && class_->tuner.stage_ended()) {
    OnlineTuner& tuner = class_->tuner;
    tuner.EndStage(agreed.subspan(kBeforeTimes), !moved, agreed[2]);
    if (tuner.settled() && tuner.native_s() > 0 && !uniform && !moved) {
      Learn(SituationOf(*stream.size_class), {.algorithm = tuner.serving(),
                                              .seconds = tuner.serving_s(),
                                              .native_seconds = tuner.native_s()});
    }
  }
  stream.interval = moved ? kFirstInterval : std::min(stream.interval * 2, kLastInterval);
  stream.bytes = stream.largest = 0;
  stream.calls = stream.looked_at = 0;
  if (uniform) return;
  SizeClass& now = ClassOf(stream, *stream.size_class, {agreed[0], agreed[1]});
  if (!now.tuner.paused()) return;
  // The calls up to those whose sizes are looked at again pass by all this.
  settled_ = {now.tuner.Next(), now.tuner.native_s() > 0 ? now.tuner.native_s() : now.native_s};
  settled_calls_ = std::min<int64_t>(stream.interval - kMeasuredCalls, now.tuner.pause_calls());
  stream.calls = static_cast<int>(settled_calls_);
  now.tuner.Skip(settled_calls_);
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

int PredictNative(CommunicatorState& state, const CallSize& size, double* seconds) {
  Choice* choice = nullptr;
  if (const int error = Choice::Of(state.duplicate(), state, &choice)) return error;
  return choice->PredictNative(state, size, seconds);
}

bool IsSettled(MPI_Comm communicator) {
  CommunicatorState* state = nullptr;
  if (CommunicatorState::FindOrCreateLocal(communicator, &state) != MPI_SUCCESS) return false;
  auto* choice = static_cast<Choice*>(state->part(CommunicatorState::PartName::kChoice).get());
  return choice != nullptr && choice->IsSettled();
}

const SettledChoice* Settled(CommunicatorState& state) {
  auto* choice = static_cast<Choice*>(state.part(CommunicatorState::PartName::kChoice).get());
  return choice == nullptr ? nullptr : choice->Settled();
}

}  // namespace tutti::mpi
