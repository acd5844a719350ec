// DeviceStaging: a rank's calls on memory of CUDA devices, by way of memory of the host.
//
// Model       What is read is copied to the host, the call runs there, and what it wrote is copied back, when it has succeeded.
//             Buffers that share bytes (in place) keep their distance. The memory is pinned, grows as it is needed and is kept.
// Threads     Calls wait for each other.
// Cost        A program that has not loaded the driver: 10 ns a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "collective_call.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"
#include "tutti/ipc/cuda_pointers.h"

namespace tutti {

class DeviceStaging {
 public:
  explicit DeviceStaging(Communicator::Rank& rank) : rank_(rank) {}

  // Nothing: no buffer of it has to go by the host.
  std::optional<Status> Run(const CollectiveCall& call);
  std::optional<Status> Exchange(std::span<const Message> messages, const std::string& text);

 private:
  // Memory of the host, of one direction.
  class Stage {
   public:
    Stage() = default;
    ~Stage() { Release(); }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    // `of_device`: what is to be copied.
    Result<std::byte*> OfSize(Communicator::Rank& rank, ipc::CudaPointers& cuda, int64_t bytes,
                              const void* of_device);

   private:
    void Release();

    ipc::CudaPointers* pinned_by_ = nullptr;
    std::shared_ptr<std::byte> memory_;
    int64_t bytes_ = 0;
  };

  bool IsStaged(ipc::CudaPointers& cuda, const void* data, int64_t bytes) const;
  Status RunStaged(ipc::CudaPointers& cuda, const CollectiveCall& call, int64_t reads,
                   int64_t writes);

  Communicator::Rank& rank_;
  std::mutex running_;
  Stage input_, output_;
};

}  // namespace tutti
