// CopiedCommands: the commands of a rank that read or write buffers on CUDA devices, and those behind them.
//
// Model       One after the other: when all before it are complete, what the command reads is copied from the device to the
//             buffer's memory of the host; the command is issued; when it is complete, what it wrote is copied to the device,
//             and only then it is shown as complete. So no copy meets an operation on the same rank's buffers.
// Shape       The first of `waiting_` is copied in, runs or is copied out; the others wait.
// Threads     The daemon's; copies run in the device's.
// Errors      A copy that fails fails the rank's communicator with what the driver said.
// Reference   [mccs] 4.1, 4.2: buffers of devices, proxy engine
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "served_devices.h"
#include "service_communicator.h"
#include "tenant.h"
#include "tutti/base/result.h"
#include "worker.h"

namespace tutti::service {

// A command, and which parts of buffers on devices it reads and writes.
struct CommandOnDevices {
  struct Part {
    std::shared_ptr<TenantBuffer> buffer;
    int64_t offset = 0, bytes = 0;
  };
  Command command;
  std::vector<Part> reads, writes;

  bool has_copies() const { return !reads.empty() || !writes.empty(); }
};

class CopiedCommands : public std::enable_shared_from_this<CopiedCommands> {
 public:
  // What the owner does, who may end in each of them, but not before it returns.
  struct Owner {
    std::function<void(Command)> issue;
    std::function<void(uint64_t completed, uint32_t epoch)> show;
    std::function<void(const Error&)> fail;
  };

  // `completed`: the rank's commands so far that are.
  CopiedCommands(ServedDevices& devices, uint64_t completed, Owner owner)
      : devices_(devices), completed_(completed), owner_(std::move(owner)) {}

  // Nothing waits: commands without copies need not come here.
  bool is_idle() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  // The sequence-th command of the rank.
  void Add(uint64_t sequence, CommandOnDevices command) {
    waiting_.push_back({sequence, std::move(command)});
    if (waiting_.size() == 1) Begin();
  }
  // So many commands of the rank have been executed.
  void Completed(uint64_t completed, uint32_t epoch) {
    completed_ = completed;
    if (is_idle() || completed < waiting_.front().sequence) owner_.show(completed, epoch);
    if (is_idle()) return;
    if (completed >= waiting_.front().sequence)
      CopyOut(epoch);
    else
      Begin();
  }

 private:
  struct Waiting {
    uint64_t sequence = 0;
    CommandOnDevices what;
  };
  using Parts = std::vector<CommandOnDevices::Part>;

  static Status CopyParts(const Parts& parts, bool to_host) {
    for (const CommandOnDevices::Part& part : parts) {
      OnDevice& on = *part.buffer->on_device();
      std::byte* host = part.buffer->data() + part.offset;
      if (Status copied = to_host ? on.device->CopyOut(*on.memory, part.offset, host, part.bytes)
                                  : on.device->CopyIn(*on.memory, part.offset, host, part.bytes);
          !copied)
        return copied;
    }
    return {};
  }
  // Then goes on in the daemon's thread, if this and its owner are still there.
  void Copy(Parts parts, bool to_host, std::function<void()> then) {
    if (parts.empty()) return then();
    Worker& copier = devices_.CopierOf(*parts.front().buffer->on_device()->device);
    copier.Add([self = weak_from_this(), parts = std::move(parts), to_host,
                then = std::move(then)]() -> Worker::Finish {
      return [self, then, copied = CopyParts(parts, to_host)] {
        const std::shared_ptr<CopiedCommands> alive = self.lock();
        if (alive == nullptr) return;
        if (copied) return then();
        alive->waiting_.clear();
        alive->owner_.fail(copied.error());
      };
    });
  }
  void Begin() {
    if (waiting_.front().sequence != completed_ + 1) return;  // earlier ones run
    Copy(waiting_.front().what.reads, true,
         [this] { owner_.issue(std::move(waiting_.front().what.command)); });
  }
  void CopyOut(uint32_t epoch) {
    Copy(waiting_.front().what.writes, false, [this, epoch] {
      const std::shared_ptr<CopiedCommands> self = shared_from_this();  // whom the owner may let go
      const uint64_t sequence = waiting_.front().sequence;
      waiting_.pop_front();
      owner_.show(sequence, epoch);
      if (!waiting_.empty()) Begin();
    });
  }

  ServedDevices& devices_;
  uint64_t completed_;
  Owner owner_;
  std::deque<Waiting> waiting_;
};

}  // namespace tutti::service
