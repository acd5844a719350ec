#include "exchange/direct.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "buffer_pool.h"
#include "copy.h"
#include "message.h"
#include "tutti/base/check.h"

namespace tutti::mpi {
namespace {

using alltoallv::Method;

// Starts messages of one exchange into an array of requests with place for all of a batch.
class Messages {
 public:
  Messages(const DirectExchange& exchange, MPI_Request* requests, Trace* trace)
      : exchange_(exchange), requests_(requests), trace_(trace) {}

  void SendTo(int peer) {
    const BlockExchange& blocks = exchange_.blocks;
    const auto at = static_cast<size_t>(peer);
    if (blocks.send_bytes[at] == 0 || error_ != MPI_SUCCESS) return;
    const std::byte* from = blocks.send + blocks.send_offset[at];
    if (exchange_.send_counts == nullptr) {
      error_ =
          SendBytes(from, blocks.send_bytes[at], peer, Tag::kData, blocks.communicator, Next());
    } else {
      error_ = PMPI_Isend(from, exchange_.send_counts[CountAt(peer)], exchange_.send_type, peer,
                          static_cast<int>(Tag::kData), blocks.communicator, Next());
    }
    if (trace_ != nullptr && peer != blocks.rank) ++trace_->messages;
  }

  void ReceiveFrom(int peer) {
    const BlockExchange& blocks = exchange_.blocks;
    const auto at = static_cast<size_t>(peer);
    if (blocks.receive_bytes[at] == 0 || error_ != MPI_SUCCESS) return;
    std::byte* into = blocks.receive + blocks.receive_offset[at];
    if (exchange_.receive_counts == nullptr) {
      error_ = ReceiveBytes(into, blocks.receive_bytes[at], peer, Tag::kData, blocks.communicator,
                            Next());
    } else {
      error_ = PMPI_Irecv(into, exchange_.receive_counts[CountAt(peer)], exchange_.receive_type,
                          peer, static_cast<int>(Tag::kData), blocks.communicator, Next());
    }
  }

  // A copy if both sides are bytes, else a message to itself, which the MPI library (un)packs.
  void Own() {
    const BlockExchange& blocks = exchange_.blocks;
    const auto at = static_cast<size_t>(blocks.rank);
    if (exchange_.send_counts == nullptr && exchange_.receive_counts == nullptr) {
      CopyBytes(blocks.receive + blocks.receive_offset[at], blocks.send + blocks.send_offset[at],
                blocks.send_bytes[at]);
    } else {
      ReceiveFrom(blocks.rank);
      SendTo(blocks.rank);
    }
  }

  // Waits for what was started since the last Wait. After an error as well: buffers are the
  // caller's.
  void Wait() {
    const int error = WaitForAll({requests_, static_cast<size_t>(started_)});
    if (error_ == MPI_SUCCESS) error_ = error;
    started_ = 0;
  }

  int error() const { return error_; }

 private:
  int CountAt(int peer) const { return exchange_.one_count ? 0 : peer; }

  MPI_Request* Next() {
    requests_[started_] = MPI_REQUEST_NULL;
    return &requests_[started_++];
  }

  const DirectExchange& exchange_;
  MPI_Request* requests_;
  Trace* trace_;
  int started_ = 0;
  int error_ = MPI_SUCCESS;
};

// Every pair of ranks below `size` meets in one step below the next power of two.
int StepsOfXor(int size) {
  int steps = 1;
  while (steps < size) steps *= 2;
  return steps;
}

int AllAtOnce(const DirectExchange& exchange, bool round_robin, Trace* trace) {
  StopWatch watch(trace);
  const BlockExchange& blocks = exchange.blocks;
  const int size = blocks.size;
  const LeasedArray<MPI_Request> requests(int64_t{2} * size);
  if (!requests.ok()) return MPI_ERR_NO_MEM;
  Messages messages(exchange, requests.data(), trace);
  // In round-robin order ranks start at different peers, so that none is flooded at first.
  const int first = round_robin ? blocks.rank : 0;
  for (int k = 0; k < size; ++k) {
    const int peer = round_robin ? (first - k + size) % size : k;
    if (peer != blocks.rank) messages.ReceiveFrom(peer);
  }
  for (int k = 0; k < size; ++k) {
    const int peer = (first + k) % size;
    if (peer != blocks.rank) messages.SendTo(peer);
  }
  messages.Own();
  messages.Wait();
  watch.Charge(&Trace::data_s);
  return messages.error();
}

}  // namespace

bool IsDirect(Method method) { return alltoallv::FamilyOf(method) == alltoallv::Family::kDirect; }

int LinearExchange(const DirectExchange& exchange, Trace* trace) {
  return AllAtOnce(exchange, /*round_robin=*/false, trace);
}

int SpreadOutExchange(const DirectExchange& exchange, Trace* trace) {
  return AllAtOnce(exchange, /*round_robin=*/true, trace);
}

int ScatteredExchange(const DirectExchange& exchange, int block_count, Trace* trace) {
  StopWatch watch(trace);
  const BlockExchange& blocks = exchange.blocks;
  const int size = blocks.size;
  const int batch = std::min(block_count == 0 ? alltoallv::kDefaultBlockCount : block_count, size);
  const LeasedArray<MPI_Request> requests(int64_t{2} * batch + 2);
  if (!requests.ok()) return MPI_ERR_NO_MEM;
  Messages messages(exchange, requests.data(), trace);
  messages.Own();
  for (int first = 1; first < size && messages.error() == MPI_SUCCESS; first += batch) {
    const int end = std::min(size, first + batch);
    for (int k = first; k < end; ++k) messages.ReceiveFrom((blocks.rank - k + size) % size);
    for (int k = first; k < end; ++k) messages.SendTo((blocks.rank + k) % size);
    messages.Wait();
  }
  messages.Wait();
  watch.Charge(&Trace::data_s);
  return messages.error();
}

int PairwiseExchange(const DirectExchange& exchange, Trace* trace) {
  return ScatteredExchange(exchange, 1, trace);
}

int XorExchange(const DirectExchange& exchange, Trace* trace) {
  StopWatch watch(trace);
  const BlockExchange& blocks = exchange.blocks;
  MPI_Request requests[2];
  Messages messages(exchange, requests, trace);
  messages.Own();
  messages.Wait();
  for (int k = 1; k < StepsOfXor(blocks.size) && messages.error() == MPI_SUCCESS; ++k) {
    const int partner = blocks.rank ^ k;
    if (partner >= blocks.size) continue;
    messages.ReceiveFrom(partner);
    messages.SendTo(partner);
    messages.Wait();
  }
  watch.Charge(&Trace::data_s);
  return messages.error();
}

std::vector<DirectStep> StepsOf(const alltoallv::Algorithm& algorithm, int rank, int size,
                                int* batch) {
  std::vector<DirectStep> steps;
  const Method method = algorithm.method;
  TUTTI_CHECK(IsDirect(method));
  *batch = size;
  if (method == Method::kPairwise || method == Method::kXor) *batch = 1;
  if (method == Method::kScattered) {
    *batch = algorithm.block_count == 0 ? alltoallv::kDefaultBlockCount : algorithm.block_count;
  }
  for (int k = 0; k < StepsOfXor(size); ++k) {
    if (method == Method::kXor) {
      const int partner = rank ^ k;
      if (k > 0 && partner < size) steps.push_back({partner, partner});
    } else if (method == Method::kLinear) {
      if (k < size && k != rank) steps.push_back({k, k});
    } else if (k > 0 && k < size) {
      steps.push_back({(rank + k) % size, (rank - k + size) % size});
    }
  }
  return steps;
}

namespace {

struct DirectRow {
  Method method;
  int (*run)(const DirectExchange& exchange, const alltoallv::Algorithm& algorithm, Trace* trace);
};

template <int (*kRun)(const DirectExchange&, Trace*)>
int WithoutParameters(const DirectExchange& exchange, const alltoallv::Algorithm& /*algorithm*/,
                      Trace* trace) {
  return kRun(exchange, trace);
}

int Scattered(const DirectExchange& exchange, const alltoallv::Algorithm& algorithm, Trace* trace) {
  return ScatteredExchange(exchange, algorithm.block_count, trace);
}

constexpr DirectRow kDirect[] = {
    {Method::kLinear, WithoutParameters<LinearExchange>},
    {Method::kPairwise, WithoutParameters<PairwiseExchange>},
    {Method::kXor, WithoutParameters<XorExchange>},
    {Method::kSpreadOut, WithoutParameters<SpreadOutExchange>},
    {Method::kScattered, Scattered},
};

}  // namespace

int RunDirect(const DirectExchange& exchange, const alltoallv::Algorithm& algorithm, Trace* trace) {
  const auto* row =
      std::find_if(std::begin(kDirect), std::end(kDirect),
                   [&](const DirectRow& each) { return each.method == algorithm.method; });
  return row == std::end(kDirect) ? MPI_ERR_ARG : row->run(exchange, algorithm, trace);
}

}  // namespace tutti::mpi
