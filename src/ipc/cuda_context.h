// The driver of CUDA, found at run time, and its devices' primary contexts.
//
// Errors      LoadDriver: kInfeasible, with what was looked for. Checked: kResourceExhausted where memory is full, else kIo.
// Threads     Any; a context is current in a thread while it has an Entered of it, and what was current before is so again.
#pragma once

#include <memory>
#include <string>

#include "cuda_driver.h"
#include "tutti/base/result.h"

namespace tutti::ipc::cuda {

// Its library is never closed: it has threads of its own.
struct LoadedDriver {
  Driver call;

  Status Checked(Result result, const char* what) const;
};

enum class Load : uint8_t { kIfNeeded, kOnlyIfThere };
tutti::Result<LoadedDriver> LoadDriver(const std::string& library, Load load);

// A device's primary context, which is shared with what else uses CUDA in this process; kept while memory or events of it live.
class PrimaryContext {
 public:
  PrimaryContext(const LoadedDriver& driver, DeviceNumber device, Context context)
      : driver_(driver), device_(device), context_(context) {}
  ~PrimaryContext() { driver_.call.PrimaryCtxRelease(device_); }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  // Of the number-th device.
  static tutti::Result<std::shared_ptr<const PrimaryContext>> Retain(const LoadedDriver& driver,
                                                                     int number);

  const LoadedDriver& driver() const { return driver_; }
  const Driver& call() const { return driver_.call; }
  DeviceNumber device() const { return device_; }
  Context context() const { return context_; }
  Status Checked(Result result, const char* what) const { return driver_.Checked(result, what); }

 private:
  LoadedDriver driver_;
  DeviceNumber device_;
  Context context_;
};

using SharedContext = std::shared_ptr<const PrimaryContext>;

class Entered {
 public:
  explicit Entered(const PrimaryContext& context)
      : context_(context),
        status_(context.Checked(context.call().CtxPushCurrent(context.context()),
                                "cuCtxPushCurrent")) {}
  ~Entered() {
    Context before = nullptr;
    if (status_) context_.call().CtxPopCurrent(&before);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  const Status& status() const { return status_; }
  // What the driver says to a call in this context.
  Status Checked(Result result, const char* what) const { return context_.Checked(result, what); }

 private:
  const PrimaryContext& context_;
  Status status_;
};

}  // namespace tutti::ipc::cuda
