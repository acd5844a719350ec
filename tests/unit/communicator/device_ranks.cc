// Ranks in threads of one program, whose buffers are on CUDA devices: of tuttiMemAllocDevice, or the driver's own as any
// framework has them, or of the host on one side. Under a service where TUTTI_SERVICE is set.
//
// Usage   device_ranks NUMBER_OF_RANKS [DEVICES]: rank r is on device r mod DEVICES (1)
// Exit    0: every result is right; 1: what was wrong is on standard error
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "tutti/ipc/cuda_pointers.h"
#include "tutti/tutti.h"

namespace {

using Ints = std::vector<int32_t>;

int num_ranks = 0, num_devices = 1;
std::atomic<int> wrong = 0;

void Complain(const std::string& what) {
  ++wrong;
  std::cerr << what + "\n";
}

void Expect(const std::string& what, tuttiResult_t result) {
  if (result != tuttiSuccess) Complain(what + ": " + tuttiGetLastError(nullptr));
}

// A buffer of integers, wherever it is.
class Buffer {
 public:
  enum class Kind { kOurs, kForeign, kHost };

  Buffer(Kind kind, size_t count, int device) : kind_(kind), count_(count) {
    if (kind == Kind::kHost) {
      host_.resize(count);
      at_ = host_.data();
    } else if (kind == Kind::kOurs) {
      Expect("tuttiMemAllocDevice", tuttiMemAllocDevice(&at_, count * sizeof(int32_t), device));
    } else {
      uint64_t pointer = 0;
      const Current current(device);
      if (Call<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&pointer, count * sizeof(int32_t)) != 0)
        Complain("cuMemAlloc");
      at_ = reinterpret_cast<void*>(pointer);
      device_ = device;
    }
  }
  ~Buffer() {
    if (kind_ == Kind::kOurs) Expect("tuttiMemFree", tuttiMemFree(at_));
    if (kind_ != Kind::kForeign) return;
    const Current current(device_);
    Call<int(uint64_t)>("cuMemFree_v2")(reinterpret_cast<uint64_t>(at_));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* At(size_t first = 0) const { return static_cast<int32_t*>(at_) + first; }
  void Write(const Ints& values) const {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(int32_t));
    if (kind_ == Kind::kHost)
      std::copy(values.begin(), values.end(), static_cast<int32_t*>(at_));
    else if (!Cuda().CopyToDevice(at_, values.data(), bytes))
      Complain("to the device");
  }
  Ints Read() const {
    if (kind_ == Kind::kHost) return host_;
    Ints values(count_);
    if (!Cuda().CopyToHost(values.data(), at_, static_cast<int64_t>(count_ * sizeof(int32_t))))
      Complain("from the device");
    return values;
  }

 private:
  template <class Function>
  static Function* Call(const char* name) {
    return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
  }
  // A context of the device, in this thread, as a framework has it.
  struct Current {
    explicit Current(int device) {
      void* context = nullptr;
      Call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
      Call<int(void*)>("cuCtxPushCurrent_v2")(context);
    }
    ~Current() {
      void* context = nullptr;
      Call<int(void**)>("cuCtxPopCurrent_v2")(&context);
    }
  };
  static tutti::ipc::CudaPointers& Cuda() { return *tutti::ipc::CudaPointers::OfThisProcess(); }

  Kind kind_;
  size_t count_;
  int device_ = 0;
  void* at_ = nullptr;
  Ints host_;
};

Ints Values(int rank, size_t count) {
  Ints values(count);
  for (size_t i = 0; i < count; ++i) values[i] = rank * 1000 + static_cast<int32_t>(i % 997);
  return values;
}

// What a rank does with buffers of two kinds.
class Rank {
 public:
  Rank(tuttiComm_t comm, int rank, Buffer::Kind input, Buffer::Kind output, size_t count)
      : comm_(comm),
        rank_(rank),
        count_(count),
        ranks_(static_cast<size_t>(num_ranks)),
        input_(input, count * ranks_, rank % num_devices),
        output_(output, count * ranks_, rank % num_devices) {}

  void DoAll() {
    AllReduce();
    AllReduceInPlace();
    AllGatherInPlace();
    ReduceScatterInPlace();
    Broadcast();
    Gather();
    AllToAll();
    Messages();
  }

 private:
  void ExpectEqual(const std::string& what, const Ints& got, const Ints& wanted, size_t first = 0) {
    for (size_t i = 0; i < wanted.size(); ++i)
      if (got[first + i] != wanted[i])
        return Complain("rank " + std::to_string(rank_) + ", " + what + ", element " +
                        std::to_string(i) + ": " + std::to_string(got[first + i]) + ", not " +
                        std::to_string(wanted[i]));
  }
  Ints Sum(size_t first, size_t count) const {
    Ints sum(count);
    for (int rank = 0; rank < num_ranks; ++rank) {
      const Ints values = Values(rank, first + count);
      for (size_t i = 0; i < count; ++i) sum[i] += values[first + i];
    }
    return sum;
  }
  Ints All() const {
    Ints all;
    for (int rank = 0; rank < num_ranks; ++rank) {
      const Ints values = Values(rank, count_);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  size_t mine() const { return static_cast<size_t>(rank_) * count_; }

  void AllReduce() {
    input_.Write(Values(rank_, count_));
    Expect("all-reduce",
           tuttiAllReduce(input_.At(), output_.At(), count_, tuttiInt32, tuttiSum, comm_, nullptr));
    ExpectEqual("all-reduce", output_.Read(), Sum(0, count_));
    ExpectEqual("input of the all-reduce", input_.Read(), Values(rank_, count_));
  }
  // Two after another in a stream: the second reads what the first wrote.
  void AllReduceInPlace() {
    tuttiStream_t stream = nullptr;
    Expect("stream", tuttiStreamCreate(&stream));
    output_.Write(Values(rank_, count_));
    for (int i = 0; i < 2; ++i)
      Expect("all-reduce in place", tuttiAllReduce(output_.At(), output_.At(), count_, tuttiInt32,
                                                   tuttiSum, comm_, stream));
    Expect("stream", tuttiStreamSynchronize(stream));
    Expect("stream", tuttiStreamDestroy(stream));
    Ints wanted = Sum(0, count_);
    for (int32_t& value : wanted) value *= num_ranks;
    ExpectEqual("all-reduce in place", output_.Read(), wanted);
  }
  void AllGatherInPlace() {
    Ints values(count_ * ranks_, -1);
    const Ints own = Values(rank_, count_);
    std::copy(own.begin(), own.end(), values.begin() + static_cast<std::ptrdiff_t>(mine()));
    output_.Write(values);
    Expect("all-gather",
           tuttiAllGather(output_.At(mine()), output_.At(), count_, tuttiInt32, comm_, nullptr));
    ExpectEqual("all-gather in place", output_.Read(), All());
  }
  void ReduceScatterInPlace() {
    output_.Write(Values(rank_, count_ * ranks_));
    Expect("reduce-scatter", tuttiReduceScatter(output_.At(), output_.At(mine()), count_,
                                                tuttiInt32, tuttiSum, comm_, nullptr));
    ExpectEqual("reduce-scatter in place", output_.Read(), Sum(mine(), count_), mine());
  }
  void Broadcast() {
    const int root = num_ranks - 1;
    output_.Write(Values(rank_, count_));
    Expect("broadcast",
           tuttiBroadcast(output_.At(), output_.At(), count_, tuttiInt32, root, comm_, nullptr));
    ExpectEqual("broadcast in place", output_.Read(), Values(root, count_));
  }
  // The others give no output.
  void Gather() {
    input_.Write(Values(rank_, count_));
    Expect("gather", tuttiGather(input_.At(), rank_ == 0 ? output_.At() : nullptr, count_,
                                 tuttiInt32, 0, comm_, nullptr));
    if (rank_ == 0) ExpectEqual("gather", output_.Read(), All());
  }
  void AllToAll() {
    input_.Write(Values(rank_, count_ * ranks_));
    Expect("all-to-all",
           tuttiAlltoAll(input_.At(), output_.At(), count_, tuttiInt32, comm_, nullptr));
    Ints wanted;
    for (int rank = 0; rank < num_ranks; ++rank) {
      const Ints values = Values(rank, count_ * ranks_);
      const auto block = values.begin() + static_cast<std::ptrdiff_t>(mine());
      wanted.insert(wanted.end(), block, block + static_cast<std::ptrdiff_t>(count_));
    }
    ExpectEqual("all-to-all", output_.Read(), wanted);
  }
  // To the next rank, half of it a message of its own.
  void Messages() {
    const int next = (rank_ + 1) % num_ranks, before = (rank_ + num_ranks - 1) % num_ranks;
    const size_t half = count_ / 2;
    input_.Write(Values(rank_, count_));
    Expect("group", tuttiGroupStart());
    for (const auto& [first, count] :
         std::array<std::pair<size_t, size_t>, 2>{{{0, half}, {half, count_ - half}}}) {
      Expect("send", tuttiSend(input_.At(first), count, tuttiInt32, next, comm_, nullptr));
      Expect("recv", tuttiRecv(output_.At(first), count, tuttiInt32, before, comm_, nullptr));
    }
    Expect("group", tuttiGroupEnd());
    ExpectEqual("messages", output_.Read(), Values(before, count_));
  }

  tuttiComm_t comm_;
  int rank_;
  size_t count_, ranks_;
  Buffer input_, output_;
};

void RunRank(const tuttiUniqueId& id, int rank) {
  using Kind = Buffer::Kind;
  tuttiComm_t comm = nullptr;
  const tuttiResult_t joined = tuttiCommInitRank(&comm, num_ranks, id, rank);
  Expect("join", joined);
  if (joined != tuttiSuccess) return;
  for (const size_t count : {size_t{3}, size_t{5000}, size_t{300'000}})
    for (const auto& [input, output] :
         std::array<std::pair<Kind, Kind>, 5>{{{Kind::kOurs, Kind::kOurs},
                                               {Kind::kForeign, Kind::kForeign},
                                               {Kind::kHost, Kind::kOurs},
                                               {Kind::kOurs, Kind::kHost},
                                               {Kind::kForeign, Kind::kOurs}}})
      Rank(comm, rank, input, output, count).DoAll();
  Expect("end", tuttiCommDestroy(comm));
}

}  // namespace

int main(int argc, char** argv) {
  num_ranks = argc > 1 ? std::atoi(argv[1]) : 1;
  if (argc > 2) num_devices = std::atoi(argv[2]);
  tuttiUniqueId id;
  Expect("id", tuttiGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks && wrong == 0; ++rank)
    threads.emplace_back([&id, rank] { RunRank(id, rank); });
  for (std::thread& thread : threads) thread.join();
  if (wrong == 0) std::cout << num_ranks << " ranks: every result is right\n";
  return wrong == 0 ? 0 : 1;
}
