// Memory of CUDA devices as a program holds it: by its address, whoever allocated it.
//
// Model       The driver is asked what an address is (unified addressing). Copies are done when the call returns; they come
//             behind what the program gave the device's default stream, not behind its other streams.
// Errors      kInvalidArgument: the memory is of no device. kIo: what the driver said.
// Threads     Any; what was current in a thread stays so.
// Cost        OfThisProcess without a driver: 10 ns. IsOfDevice: a call of the driver's.
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/base/result.h"

namespace tutti::ipc {

class CudaPointers {
 public:
  // Null: this process has not loaded the driver. Never loads it.
  static CudaPointers* OfThisProcess();

  ~CudaPointers();
  bool IsOfDevice(const void* pointer) const;
  Status CopyToHost(void* to, const void* from, int64_t bytes);
  Status CopyToDevice(void* to, const void* from, int64_t bytes);
  // Until the memory's device has done what this program gave its default stream.
  Status WaitFor(const void* of_device);
  // Copies of this memory of the host go at the full speed of the bus from now on. False: they do not. `of_device`: memory of
  // the device that copies.
  bool Pin(void* host, int64_t bytes, const void* of_device);
  void Unpin(void* host);

 private:
  struct Driver;
  explicit CudaPointers(std::unique_ptr<Driver> driver);
  std::unique_ptr<Driver> driver_;
};

}  // namespace tutti::ipc
