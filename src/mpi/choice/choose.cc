#include "choice/choose.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
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
#include "tutti/alltoallv/trials.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::BlockSizes;
using alltoallv::CostModel;
using alltoallv::CostTables;
using alltoallv::Memory;
using alltoallv::Method;
using alltoallv::Placement;
using alltoallv::Prediction;
using alltoallv::Trials;

constexpr Algorithm kOwn{.method = Method::kMpi};
constexpr std::size_t kMostCandidates = 8;
constexpr std::size_t kOfAMethod = 3;
// Not worth a trial: predicted to be slower than the MPI library's own by more.
constexpr double kHopeless = 1.5;
constexpr int kFirstInterval = 4, kLastInterval = 128;
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
  // Collective at the first call.
  static int Of(CommunicatorState& state, Choice** choice) {
    auto& part = state.part(CommunicatorState::PartName::kChoice);
    if (part == nullptr) {
      Memory memory;
      if (const int error = ShareMemory(state.duplicate(), state.rank(), &memory)) return error;
      const Groups* groups = nullptr;
      if (const int error = GroupsOf(state, &groups)) return error;
      part = std::make_unique<Choice>(state, std::move(memory), PlacementOfGroups(*groups));
    }
    *choice = static_cast<Choice*>(part.get());
    return MPI_SUCCESS;
  }

  Choice(const CommunicatorState& state, Memory memory, const Placement& placement)
      : duplicate_(state.duplicate()),
        size_(state.size()),
        memory_(std::move(memory)),
        tables_(ModelIn(memory_), placement) {}

  int Begin(const CallSize& size, CallChoice* call);
  int End(CallChoice& call);
  double Own(const CallSize& size) {
    const BlockSizes sizes{MeanBytes(size), static_cast<double>(size.largest_block_bytes)};
    const int size_class = alltoallv::SizeClassOf(sizes.mean_bytes);
    return ClassOf(size.uniform ? uniform_ : v_, size_class, sizes).own_s;
  }
  const SettledChoice* Settled() {
    if (!settled_ || v_.calls + kMeasuredCalls >= v_.interval) return nullptr;
    ++v_.calls;
    return &*settled_;
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
            .largest_node = tables_.placement().largest_node,
            .size_class = size_class};
  }
  OfClass Make(int size_class, const BlockSizes& sizes, bool uniform) const;
  OfClass& ClassOf(Stream& stream, int size_class, const BlockSizes& sizes);
  void Agreed(Stream& stream, std::span<const double> sum);

  MPI_Comm duplicate_;
  int size_;
  Memory memory_;
  CostTables tables_;
  Stream v_, uniform_;
  std::optional<SettledChoice> settled_;  // of v_
  Stream* stream_ = nullptr;              // of the call that runs
  OfClass* class_ = nullptr;              // null: not agreed
};

OfClass Choice::Make(int size_class, const BlockSizes& sizes, bool uniform) const {
  double own_s = tables_.Seconds(kOwn, sizes);
  if (uniform) {
    // MPI libraries have a Bruck for small equal blocks.
    own_s = std::min(own_s, tables_.Seconds({.method = Method::kTuna, .radix = 2}, sizes));
  } else if (const auto found = memory_.best.find(SituationOf(size_class));
             found != memory_.best.end()) {
    const alltoallv::Measured& best = found->second;
    const bool own_is_faster = best.own_seconds > 0 && best.own_seconds <= best.seconds;
    return {Trials(own_is_faster ? kOwn : best.algorithm),
            best.own_seconds > 0 ? best.own_seconds : own_s};
  }
  std::vector<Prediction> shortlist = tables_.Shortlist(sizes, kMostCandidates, kOfAMethod);
  std::erase_if(shortlist, [own_s](const Prediction& each) {
    return each.seconds > kHopeless * own_s || !CanRunExchange(each.algorithm.method);
  });
  return {Trials(own_s, shortlist), own_s};
}

OfClass& Choice::ClassOf(Stream& stream, int size_class, const BlockSizes& sizes) {
  const auto found = stream.classes.find(size_class);
  if (found != stream.classes.end()) return found->second;
  return stream.classes.emplace(size_class, Make(size_class, sizes, &stream == &uniform_))
      .first->second;
}

int Choice::Begin(const CallSize& size, CallChoice* call) {
  Stream& stream = size.uniform ? uniform_ : v_;
  const BlockSizes sizes{MeanBytes(size), static_cast<double>(size.largest_block_bytes)};
  stream_ = &stream;
  if (size.uniform) stream.size_class = alltoallv::SizeClassOf(sizes.mean_bytes);
  ++stream.calls;
  ++stream.looked_at;
  stream.bytes += sizes.mean_bytes;
  stream.largest += sizes.largest_bytes;
  class_ = nullptr;
  call->algorithm = kOwn;
  call->agrees = true;
  if (stream.size_class) {
    class_ = &ClassOf(stream, *stream.size_class, sizes);
    const Trials& trials = class_->trials;
    const bool tries = !trials.settled() && !trials.idle();
    call->agrees = tries ? trials.cycle_ended() : !size.uniform && stream.calls >= stream.interval;
    call->algorithm = trials.Next();
    call->own_s = trials.own_s() > 0 ? trials.own_s() : class_->own_s;
    if (!call->agrees) {
      if (tries) call->begin_s = PMPI_Wtime();
      return MPI_SUCCESS;
    }
  }
  call->mine = {stream.bytes / stream.looked_at, stream.largest / stream.looked_at};
  if (class_ != nullptr && class_->trials.cycle_ended()) {
    const std::vector<double> medians = class_->trials.Medians();
    call->mine.insert(call->mine.end(), medians.begin(), medians.end());
  }
  call->sum.resize(call->mine.size());
  const auto count = static_cast<int>(call->mine.size());
#ifdef TUTTI_MPI_SMPI
  // There a nonblocking all-reduce is a message to every rank.
  return PMPI_Allreduce(call->mine.data(), call->sum.data(), count, MPI_DOUBLE, MPI_SUM,
                        duplicate_);
#else
  return PMPI_Iallreduce(call->mine.data(), call->sum.data(), count, MPI_DOUBLE, MPI_SUM,
                         duplicate_, &call->request);
#endif
}

int Choice::End(CallChoice& call) {
  if (call.begin_s >= 0) class_->trials.Note(PMPI_Wtime() - call.begin_s);
  if (!call.agrees) {
    if (stream_ == &uniform_ && class_->trials.idle()) class_->trials.Skip(1);
    return MPI_SUCCESS;
  }
  if (const int error = PMPI_Wait(&call.request, MPI_STATUS_IGNORE)) return error;
  Agreed(*stream_, call.sum);
  return MPI_SUCCESS;
}

void Choice::Agreed(Stream& stream, std::span<const double> sum) {
  // Sizes near the end of a class stay in it, so that it does not change to and fro.
  constexpr double kSlack = 1.25;
  std::vector<double> mean(sum.begin(), sum.end());
  for (double& each : mean) each /= size_;
  const bool uniform = &stream == &uniform_;
  bool moved = false;
  if (!uniform) {
    const int size_class = alltoallv::SizeClassOf(mean[0]);
    const double upper = stream.size_class ? std::ldexp(1, *stream.size_class) : 0;
    moved = !stream.size_class || (size_class != *stream.size_class &&
                                   (mean[0] > upper * kSlack || mean[0] < upper / 2 / kSlack));
    if (moved) stream.size_class = size_class;
  }
  if (class_ != nullptr && class_->trials.idle()) class_->trials.Skip(stream.calls);
  if (class_ != nullptr && class_->trials.cycle_ended()) {
    Trials& trials = class_->trials;
    trials.EndCycle(std::span(mean).subspan(2), !moved);
    if (trials.settled() && trials.own_s() > 0 && !uniform && !moved) {
      Learn(SituationOf(*stream.size_class), {.algorithm = trials.Next(),
                                              .seconds = trials.choice_s(),
                                              .own_seconds = trials.own_s()});
    }
  }
  stream.interval = moved ? kFirstInterval : std::min(stream.interval * 2, kLastInterval);
  stream.bytes = stream.largest = 0;
  stream.calls = stream.looked_at = 0;
  if (uniform) return;
  const OfClass& now = ClassOf(stream, *stream.size_class, {mean[0], mean[1]});
  settled_.reset();
  if (now.trials.settled() || now.trials.idle()) {
    settled_ = {now.trials.Next(), now.trials.own_s() > 0 ? now.trials.own_s() : now.own_s};
  }
}

}  // namespace

int BeginCall(CommunicatorState& state, const CallSize& size, CallChoice* call) {
  Choice* choice = nullptr;
  if (const int error = Choice::Of(state, &choice)) return error;
  return choice->Begin(size, call);
}

int EndCall(CommunicatorState& state, CallChoice& call) {
  auto* choice = static_cast<Choice*>(state.part(CommunicatorState::PartName::kChoice).get());
  return choice->End(call);
}

int BelieveOwn(CommunicatorState& state, const CallSize& size, double* seconds) {
  Choice* choice = nullptr;
  if (const int error = Choice::Of(state, &choice)) return error;
  *seconds = choice->Own(size);
  return MPI_SUCCESS;
}

const SettledChoice* Settled(CommunicatorState& state) {
  auto* choice = static_cast<Choice*>(state.part(CommunicatorState::PartName::kChoice).get());
  return choice == nullptr ? nullptr : choice->Settled();
}

}  // namespace tutti::mpi
