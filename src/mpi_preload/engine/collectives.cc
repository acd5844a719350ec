#include "engine/collectives.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "choice/learned.h"
#include "communicator_state.h"
#include "engine/agreement.h"
#include "engine/call_shape.h"
#include "engine/fortran.h"
#include "engine/handles.h"
#include "engine/node_calls.h"
#include "engine/reductions.h"
#include "engine/report.h"
#include "hierarchy/groups.h"
#include "hierarchy/run.h"
#include "tutti/tune/deferred_setup.h"
#include "tutti/tune/online_tuner.h"

namespace tutti::mpi::preload {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;
using tune::DeferredSetup;
using tune::OnlineTuner;

constexpr Algorithm kByLibrary{.method = Method::kMpi};
constexpr Algorithm kByNode{.method = Method::kShared};
// Communicators alive on a rank for which memory is shared.
constexpr int kMaxNodeEngines = 64;
// Calls of a communicator before anything is set up, over all its ranks; fewer where they take
// long.
constexpr int64_t kDeferredCalls = 4096;
constexpr double kDeferredSeconds = 0.2;
// By so much `shared` must be faster than the native algorithm to serve in its place.
constexpr double kWantedMargin = 0.1;
// By so much where ranks run ahead of each other in either, which is timed, too.
constexpr double kWantedOfShortSends = 0.5;
constexpr int kSizeClasses = 64;

const Settings* the_settings = nullptr;
const NextCalls* the_next = nullptr;
bool (*is_native_only)() = nullptr;

std::atomic<int64_t> engines_alive{0};

// 2^class - 1 is the most.
int SizeClassOf(int64_t bytes) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes)));
}

// Where `shared` is expected beside the native algorithm, before it was measured: faster, so that it is tried at once.
double ExpectedRatio(Collective which) { return Reduces(which) ? 0.6 : 0.8; }

// Who only sends a few bytes leaves at once in either: what is timed then is how far ranks run ahead
// of each other, which says nothing of what is faster. `auto` leaves these to the MPI library.
constexpr int64_t kMostUntimedBytes = 1024;
bool CanBeTimed(Collective which, int64_t bytes) {
  return !HasRoot(which) || bytes > kMostUntimedBytes;
}

// With some more bytes it still says little: there `shared` has to be twice as fast.
double WantedMargin(Collective which, int64_t bytes) {
  constexpr int64_t kShortBytes = int64_t{16} << 10;
  return HasRoot(which) && bytes <= kShortBytes ? kWantedOfShortSends : kWantedMargin;
}

class NodeService final : public CommunicatorState::Part {
 public:
  // Collective at the first call on an intracommunicator.
  static int Make(MPI_Comm communicator, CommunicatorState& state, NodeService** made);
  ~NodeService() override {
    if (counted_) --engines_alive;
  }

  bool passes_on(Collective which) const {
    return services_[static_cast<size_t>(which)] == Service::kNative;
  }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Of a collective with a root: calls of up to so many bytes, a block's where it gives blocks, are left to the MPI library.
  int64_t MostLeft(Collective which) const {
    constexpr int64_t kAny = std::numeric_limits<int>::max();
    if (passes_on(which)) return kAny;
    if (services_[static_cast<size_t>(which)] != Service::kAuto) return 0;
    return kMostUntimedBytes / (GivesBlocks(which) ? size_ : 1);
  }
  // Whether all of this communicator's ranks may leave this call to Tutti, and how many bytes it is
  // about, of all ranks together: all ranks find the same.
  bool MayServe(const CollectiveCall& call, int64_t* bytes);

  int Serve(const CollectiveCall& call, int64_t bytes, const Algorithm** served, double* native_s);

 private:
  struct SizeClass {
    OnlineTuner tuner;
    int64_t settled_calls = 0;  // that nothing is to be measured of
    bool shared = false;        // what serves those
  };

  int AgreeOnSetup(MPI_Comm communicator);
  int SetUp(MPI_Comm communicator);
  SizeClass& ClassFor(Collective which, int64_t bytes);
  int EndStage(SizeClass& size_class);
  void Pause(SizeClass& size_class);
  int Run(const CollectiveCall& call, bool shared);

  int rank_ = 0, size_ = 1;
  Services services_{};
  bool reorders_ = false;
  DeferredSetup deferred_;
  bool set_up_ = false, counted_ = false;
  MPI_Comm duplicate_ = MPI_COMM_NULL;
  std::unique_ptr<NodeCalls> node_;  // null: the native algorithm serves
  std::vector<std::unique_ptr<SizeClass>> classes_;
  double agreement_s_ = 0;  // the latest on this rank

  // The latest reduction that was looked at.
  MPI_Datatype latest_type_ = MPI_DATATYPE_NULL;
  MPI_Op latest_op_ = MPI_OP_NULL;
  bool latest_keeps_bits_ = false;
};

int NodeService::Make(MPI_Comm communicator, CommunicatorState& state, NodeService** made) {
  auto service = std::make_unique<NodeService>();
  service->rank_ = state.rank();
  service->size_ = state.size();
  service->services_.fill(Service::kNative);
  if (service->size_ > 1) {
    // The largest are those of rank 0, but for the last word.
    constexpr size_t kFirst = 2, kWords = kFirst + kNumCollectives + 1;
    std::array<int, kWords> words{};
    if (service->rank_ == 0) {
      words[0] = the_settings->reorders ? 1 : 0;
      words[1] = RemembersTuningData() ? 1 : 0;
      for (int which = 0; which < kNumCollectives; ++which) {
        words[kFirst + static_cast<size_t>(which)] =
            static_cast<int>(the_settings->services[static_cast<size_t>(which)]);
      }
    }
    words[kWords - 1] = is_native_only() ? 1 : 0;
    const int error =
        PMPI_Allreduce(MPI_IN_PLACE, words.data(), kWords, MPI_INT, MPI_MAX, communicator);
    if (error != MPI_SUCCESS) return error;
    service->reorders_ = words[0] != 0;
    if (words[kWords - 1] == 0) {
      for (int which = 0; which < kNumCollectives; ++which) {
        service->services_[static_cast<size_t>(which)] =
            static_cast<Service>(words[kFirst + static_cast<size_t>(which)]);
      }
      if (words[1] == 0) {
        service->deferred_ = DeferredSetup(kDeferredCalls / service->size_, kDeferredSeconds);
      }
    }
  }
  *made = service.get();
  state.part(CommunicatorState::PartName::kDropin) = std::move(service);
  return MPI_SUCCESS;
}

bool NodeService::MayServe(const CollectiveCall& call, int64_t* bytes) {
  if (!IsSound(call, rank_, size_) || !BytesOf(call, rank_, size_, bytes)) return false;
  if (!Reduces(call.which)) return true;
  const auto type = FromHandle<MPI_Datatype>(call.receive_type);
  const auto op = FromHandle<MPI_Op>(call.op);
  if (type != latest_type_ || op != latest_op_) {
    latest_type_ = type;
    latest_op_ = op;
    const OrderOf order = OrderOfReduction(type, op);
    latest_keeps_bits_ = order == OrderOf::kNever ||
                         (order == OrderOf::kCommutes && (size_ == 2 || reorders_)) ||
                         (order == OrderOf::kMatters && reorders_);
  }
  return latest_keeps_bits_;
}

// Over the program's own communicator: none of ours is made yet.
int NodeService::AgreeOnSetup(MPI_Comm communicator) {
  const double mine = deferred_.spent_s();
  double sum = 0;
  if (const int error = PMPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator)) {
    return error;
  }
  deferred_.Decide(sum / size_);
  return MPI_SUCCESS;
}

int NodeService::SetUp(MPI_Comm communicator) {
  set_up_ = true;
  int full = engines_alive >= kMaxNodeEngines ? 1 : 0;
  if (const int error = PMPI_Allreduce(MPI_IN_PLACE, &full, 1, MPI_INT, MPI_MAX, communicator)) {
    return error;
  }
  if (full != 0) return MPI_SUCCESS;
  CommunicatorState* state = nullptr;
  if (const int error = CommunicatorState::Of(communicator, &state)) return error;
  const Groups* groups = nullptr;
  if (const int error = GroupsOf(*state, &groups)) return error;
  const std::vector<int> nodes = NodesOf(*groups);
  duplicate_ = state->duplicate();
  if (const int error = NodeCalls::Make(duplicate_, rank_, nodes, *the_next, &node_)) return error;
  if (node_ == nullptr) return MPI_SUCCESS;
  counted_ = true;
  ++engines_alive;
  classes_.resize(static_cast<size_t>(kNumCollectives) * kSizeClasses);
  return MPI_SUCCESS;
}

NodeService::SizeClass& NodeService::ClassFor(Collective which, int64_t bytes) {
  std::unique_ptr<SizeClass>& found =
      classes_[static_cast<size_t>(which) * kSizeClasses + static_cast<size_t>(SizeClassOf(bytes))];
  if (found == nullptr) {
    // Ratios are all that counts.
    const tune::Prediction expected{kByNode, ExpectedRatio(which)};
    found = std::make_unique<SizeClass>(
        SizeClass{OnlineTuner(1, {&expected, 1}, tune::kNoisyClock, WantedMargin(which, bytes))});
  }
  return *found;
}

// Up to the next stage calls are not looked at.
void NodeService::Pause(SizeClass& size_class) {
  OnlineTuner& tuner = size_class.tuner;
  if (!tuner.paused()) return;
  size_class.shared = tuner.Next() == kByNode;
  size_class.settled_calls = tuner.pause_calls();
  tuner.Skip(size_class.settled_calls);
}

int NodeService::EndStage(SizeClass& size_class) {
  std::vector<double> mine = size_class.tuner.Times();
  mine.push_back(agreement_s_);
  std::vector<double> agreed(mine.size());
  const double begin = PMPI_Wtime();
  if (const int error = PMPI_Allreduce(mine.data(), agreed.data(), static_cast<int>(mine.size()),
                                       MPI_DOUBLE, MPI_SUM, duplicate_)) {
    return error;
  }
  agreement_s_ = PMPI_Wtime() - begin;
  for (double& each : agreed) each /= size_;
  const double agreement_s = agreed.back();
  agreed.pop_back();
  size_class.tuner.EndStage(agreed, true, agreement_s);
  Pause(size_class);
  return MPI_SUCCESS;
}

int NodeService::Run(const CollectiveCall& call, bool shared) {
  return shared ? node_->Run(call) : the_next->collective(call);
}

int NodeService::Serve(const CollectiveCall& call, int64_t bytes, const Algorithm** served,
                       double* native_s) {
  *served = &kByLibrary;
  const auto communicator = FromHandle<MPI_Comm>(call.communicator);
  const Service service = services_[static_cast<size_t>(call.which)];
  if (service == Service::kAuto && !CanBeTimed(call.which, bytes))
    return the_next->collective(call);
  if (!set_up_) {
    if (service == Service::kAuto) {
      if (deferred_.asks()) {
        if (const int error = AgreeOnSetup(communicator)) return error;
      }
      if (deferred_.Passes()) return the_next->collective(call);
      if (!deferred_.over()) {
        const double begin = PMPI_Wtime();
        const int error = the_next->collective(call);
        deferred_.Note(PMPI_Wtime() - begin);
        return error;
      }
    }
    if (const int error = SetUp(communicator)) return error;
  }
  if (node_ == nullptr || !node_->Serves(call.which)) return the_next->collective(call);
  if (service == Service::kShared) {
    *served = &kByNode;
    return node_->Run(call);
  }
  SizeClass& size_class = ClassFor(call.which, bytes);
  OnlineTuner& tuner = size_class.tuner;
  *native_s = tuner.native_s() > 0 ? tuner.native_s() : -1;
  if (size_class.settled_calls > 0) {
    --size_class.settled_calls;
    if (size_class.shared) *served = &kByNode;
    return Run(call, size_class.shared);
  }
  const bool shared = tuner.Next() == kByNode;
  if (shared) *served = &kByNode;
  const double begin = PMPI_Wtime();
  const int error = Run(call, shared);
  if (tuner.paused()) {
    tuner.Skip(1);
  } else {
    tuner.Note(PMPI_Wtime() - begin);
  }
  if (tuner.stage_ended()) {
    if (const int agreed = EndStage(size_class)) return agreed;
  }
  return error;
}

// --- From calls to communicators ------------------------------------------------------------------

// Null before the first call.
NodeService* MadeFor(CommunicatorState& state) {
  return static_cast<NodeService*>(state.part(CommunicatorState::PartName::kDropin).get());
}

// Null: the MPI library's to serve. Collective at the first call on a communicator.
int ServiceOf(MPI_Comm communicator, NodeService** service) {
  *service = nullptr;
  CommunicatorState* state = CommunicatorState::Latest(communicator);
  if (state == nullptr) {
    if (communicator == MPI_COMM_NULL || !IsMpiRunning()) return MPI_SUCCESS;
    int inter = 0;
    // Who gave something else than a communicator hears so from the call itself.
    if (PMPI_Comm_test_inter(communicator, &inter) != MPI_SUCCESS || inter != 0) return MPI_SUCCESS;
    if (const int error = CommunicatorState::FindOrCreateLocal(communicator, &state)) return error;
  }
  *service = MadeFor(*state);
  return *service != nullptr ? MPI_SUCCESS : NodeService::Make(communicator, *state, service);
}

}  // namespace

void StartCollectives(const Settings& given, const NextCalls& next_calls, bool (*native_only)()) {
  the_settings = &given;
  the_next = &next_calls;
  is_native_only = native_only;
}

bool LeavesCollective(Collective which, Handle communicator, int root, int send_count,
                      Handle send_type, int receive_count, Handle receive_type, LeftCalls* others) {
  if (the_settings->report != Report::kNobody) return false;
  CommunicatorState* state = CommunicatorState::Latest(FromHandle<MPI_Comm>(communicator));
  const NodeService* service = state != nullptr ? MadeFor(*state) : nullptr;
  if (service == nullptr) return false;
  const bool sends = CountsWhereItSends(which, root == service->rank());
  const int count = sends ? send_count : receive_count;
  const Handle type = sends ? send_type : receive_type;
  const int64_t of_element = NamedTypeSize(FromHandle<MPI_Datatype>(type));
  if (of_element == 0) return service->passes_on(which);
  *others = {.communicator = communicator,
             .type = type,
             .max_count = static_cast<int>(service->MostLeft(which) / of_element),
             .rank = service->rank(),
             .num_freed = &CommunicatorState::NumFreed(),
             .as_of = CommunicatorState::NumFreed()};
  return 0 < count && count <= others->max_count;
}

int ServeCollective(const CollectiveCall& call) {
  NodeService* service = nullptr;
  if (const int error = ServiceOf(FromHandle<MPI_Comm>(call.communicator), &service)) return error;
  const bool reports = the_settings->report != Report::kNobody;
  if (service == nullptr || (service->passes_on(call.which) && !reports)) {
    return the_next->collective(call);
  }
  int64_t bytes = 0;
  const bool serves = service->MayServe(call, &bytes) && !service->passes_on(call.which);
  if (!serves && !reports) return the_next->collective(call);
  const Algorithm* served = &kByLibrary;
  double native_s = -1;
  if (!reports) return service->Serve(call, bytes, &served, &native_s);
  const double begin = PMPI_Wtime();
  const int code =
      serves ? service->Serve(call, bytes, &served, &native_s) : the_next->collective(call);
  Record({.function = NameOf(call.which).function,
          .ranks = service->size(),
          .largest_block_bytes = bytes,
          .algorithm = *served,
          .seconds = PMPI_Wtime() - begin,
          .native_seconds = native_s});
  return code;
}

int ServeFortranCollective(const FortranCollectiveCall& f) {
  const auto number = [](const int* argument) { return argument == nullptr ? 0 : *argument; };
  const auto type = [](const int* argument) {
    return argument == nullptr ? Handle{0} : ToHandle(PMPI_Type_f2c(*argument));
  };
  return ServeCollective({.which = f.which,
                          .send = FortranAddress(f.send),
                          .send_count = number(f.send_count),
                          .send_type = type(f.send_type),
                          .receive = FortranAddress(f.receive),
                          .receive_count = number(f.receive_count),
                          .receive_type = type(f.receive_type),
                          .counts = f.counts,
                          .displacements = f.displacements,
                          .op = f.op == nullptr ? Handle{0} : ToHandle(PMPI_Op_f2c(*f.op)),
                          .root = number(f.root),
                          .communicator = ToHandle(PMPI_Comm_f2c(*f.communicator))});
}

}  // namespace tutti::mpi::preload
