#include "tutti/mpi/persistent.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "call.h"
#include "communicator_state.h"
#include "copy.h"
#include "exchange/direct.h"
#include "exchange/tuna.h"
#include "message.h"
#include "tutti/mpi/alltoallv.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

struct Arguments {
  CallSide send, receive;
  MPI_Comm communicator;
  Algorithm algorithm;
};

// A communicator of its own, and the call as bytes.
class Own {
 public:
  Own() = default;
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own() {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (communicator_ != MPI_COMM_NULL && finalized == 0) PMPI_Comm_free(&communicator_);
  }

  int Make(const Arguments& arguments, bool direct) {
    if (const int error = SameRanks(arguments.communicator, &communicator_)) return error;
    int rank = 0;
    int size = 0;
    if (const int error = PMPI_Comm_rank(communicator_, &rank)) return error;
    if (const int error = PMPI_Comm_size(communicator_, &size)) return error;
    for (auto* each :
         {&bytes_.send_offset, &bytes_.send_bytes, &bytes_.receive_offset, &bytes_.receive_bytes}) {
      each->resize(static_cast<size_t>(size));
    }
    return call_.Prepare(communicator_, rank, size, arguments.send, arguments.receive, direct,
                         bytes_);
  }

  Call& call() { return call_; }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  CommunicatorState::Bytes bytes_;
  Call call_;
};

// Algorithms without anything to prepare.
class Repeated final : public PersistentAlltoallv {
 public:
  explicit Repeated(const Arguments& arguments) : arguments_(arguments) {}

  int Start() override {
    const CallSide& send = arguments_.send;
    const CallSide& receive = arguments_.receive;
    return Alltoallv(send.base, send.counts, send.displacements, send.type,
                     const_cast<void*>(receive.base), receive.counts, receive.displacements,
                     receive.type, arguments_.communicator, arguments_.algorithm);
  }
  int Wait() override { return MPI_SUCCESS; }

 private:
  Arguments arguments_;
};

class PersistentTuna final : public PersistentAlltoallv {
 public:
  int Make(const Arguments& arguments) {
    if (const int error = own_.Make(arguments, /*direct=*/false)) return error;
    const BlockExchange& blocks = own_.call().blocks();
    const int radix = arguments.algorithm.radix;
    if (const int error = ExchangeTunaSizes(blocks, radix, &sizes_)) return error;
    tuna_ = std::make_unique<Tuna>(
        blocks, TunaOptions{.radix = radix, .known_sizes = sizes_.data()}, nullptr);
    return MPI_SUCCESS;
  }

  int Start() override {
    if (const int error = own_.call().Pack(nullptr)) return error;
    return tuna_->Begin();
  }
  int Wait() override {
    if (const int error = tuna_->Finish()) return error;
    return own_.call().Unpack(nullptr);
  }

 private:
  Own own_;
  std::vector<int64_t> sizes_;
  std::unique_ptr<Tuna> tuna_;
};

// Persistent requests of the MPI library, in batches.
class PersistentDirect final : public PersistentAlltoallv {
 public:
  ~PersistentDirect() override {
    for (MPI_Request& each : requests_) PMPI_Request_free(&each);
  }

  int Make(const Arguments& arguments) {
    if (const int error = own_.Make(arguments, /*direct=*/true)) return error;
    exchange_ = own_.call().direct();
    own_is_message_ = exchange_.send_counts != nullptr || exchange_.receive_counts != nullptr;
    int batch = 0;
    const std::vector<DirectStep> steps =
        StepsOf(arguments.algorithm, exchange_.blocks.rank, exchange_.blocks.size, &batch);
    if (own_is_message_) {
      const int rank = exchange_.blocks.rank;
      if (const int error = AddStep({.send_to = rank, .receive_from = rank})) return error;
    }
    int in_batch = 0;
    for (const DirectStep& step : steps) {
      if (const int error = AddStep(step)) return error;
      if (++in_batch % batch == 0) batch_ends_.push_back(requests_.size());
    }
    batch_ends_.push_back(requests_.size());
    return MPI_SUCCESS;
  }

  int Start() override {
    if (const int error = own_.call().Pack(nullptr)) return error;
    if (const int error = StartBatch(0)) return error;
    if (own_is_message_) return MPI_SUCCESS;
    const BlockExchange& blocks = exchange_.blocks;
    const auto own = static_cast<size_t>(blocks.rank);
    CopyBytes(blocks.receive + blocks.receive_offset[own], blocks.send + blocks.send_offset[own],
              blocks.send_bytes[own]);
    return MPI_SUCCESS;
  }

  int Wait() override {
    for (size_t batch = 0; batch < batch_ends_.size(); ++batch) {
      if (batch > 0) {
        if (const int error = StartBatch(batch)) return error;
      }
      const size_t begin = BatchBegin(batch);
      if (const int error = WaitForAll({requests_.data() + begin, batch_ends_[batch] - begin})) {
        return error;
      }
    }
    return own_.call().Unpack(nullptr);
  }

 private:
  size_t BatchBegin(size_t batch) const { return batch == 0 ? 0 : batch_ends_[batch - 1]; }

  int StartBatch(size_t batch) {
    SettleCopies();
    const size_t begin = BatchBegin(batch);
    const auto count = static_cast<int>(batch_ends_[batch] - begin);
    return count == 0 ? MPI_SUCCESS : PMPI_Startall(count, requests_.data() + begin);
  }

  // A persistent request of `bytes` bytes, or of `count` elements of a type.
  template <class InitOf>
  int Add(int64_t bytes, const int* count, MPI_Datatype type, const InitOf& init) {
    if (bytes == 0) return MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
    if (count != nullptr) {
      error = init(*count, type, &request);
    } else if (bytes <= kLargestPiece) {
      error = init(static_cast<int>(bytes), MPI_BYTE, &request);
    } else {
      MPI_Datatype pieces = MPI_DATATYPE_NULL;
      error = MakePiecesType(bytes, kLargestPiece, &pieces);
      if (error != MPI_SUCCESS) return error;
      error = init(1, pieces, &request);
      PMPI_Type_free(&pieces);
    }
    if (error == MPI_SUCCESS) requests_.push_back(request);
    return error;
  }

  int AddStep(const DirectStep& step) {
    const BlockExchange& blocks = exchange_.blocks;
    if (step.receive_from >= 0) {
      const auto from = static_cast<size_t>(step.receive_from);
      const int* counts = exchange_.receive_counts;
      const int error =
          Add(blocks.receive_bytes[from], counts == nullptr ? nullptr : counts + from,
              exchange_.receive_type, [&](int count, MPI_Datatype type, MPI_Request* request) {
                return PMPI_Recv_init(blocks.receive + blocks.receive_offset[from], count, type,
                                      step.receive_from, static_cast<int>(Tag::kData),
                                      blocks.communicator, request);
              });
      if (error != MPI_SUCCESS) return error;
    }
    if (step.send_to < 0) return MPI_SUCCESS;
    const auto to = static_cast<size_t>(step.send_to);
    const int* counts = exchange_.send_counts;
    return Add(blocks.send_bytes[to], counts == nullptr ? nullptr : counts + to,
               exchange_.send_type, [&](int count, MPI_Datatype type, MPI_Request* request) {
                 return PMPI_Send_init(blocks.send + blocks.send_offset[to], count, type,
                                       step.send_to, static_cast<int>(Tag::kData),
                                       blocks.communicator, request);
               });
  }

  Own own_;
  DirectExchange exchange_;
  bool own_is_message_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<size_t> batch_ends_;
};

template <class Kind>
int MakeKind(const Arguments& arguments, std::unique_ptr<PersistentAlltoallv>* made) {
  auto kind = std::make_unique<Kind>();
  if (const int error = kind->Make(arguments)) return error;
  *made = std::move(kind);
  return MPI_SUCCESS;
}

}  // namespace

int PersistentAlltoallv::Init(const void* send, const int send_counts[],
                              const int send_displacements[], MPI_Datatype send_type, void* receive,
                              const int receive_counts[], const int receive_displacements[],
                              MPI_Datatype receive_type, MPI_Comm communicator,
                              const Algorithm& algorithm,
                              std::unique_ptr<PersistentAlltoallv>* made) {
  int inter = 0;
  if (const int error = PMPI_Comm_test_inter(communicator, &inter)) return error;
  if (inter != 0) return MPI_ERR_COMM;
  int size = 0;
  if (const int error = PMPI_Comm_size(communicator, &size)) return error;
  const Arguments arguments{.send = {.base = send,
                                     .counts = send_counts,
                                     .displacements = send_displacements,
                                     .type = send_type},
                            .receive = {.base = receive,
                                        .counts = receive_counts,
                                        .displacements = receive_displacements,
                                        .type = receive_type},
                            .communicator = communicator,
                            .algorithm = Resolved(algorithm, size)};
  const Method method = arguments.algorithm.method;
  if (IsDirect(method)) return MakeKind<PersistentDirect>(arguments, made);
  if (method == Method::kTuna) return MakeKind<PersistentTuna>(arguments, made);
  *made = std::make_unique<Repeated>(arguments);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi
