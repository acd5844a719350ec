// The process's side of a service: its one connection to the daemon of its host, the memory that the daemon gave
// it, and the queue of its commands.
//
// Model       Made on first use and kept as long as something uses it. Each thread that asks something waits
//             for its own answer; one of those that wait reads for all.
// Memory      Only what Allocate() gave can be named in commands.
// Threads     Any.
// Errors      kPeerFailed: the daemon has gone. What the daemon refuses has its code and words.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"
#include "tutti/ipc/device.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/socket.h"

namespace tutti {

// The socket of the service whose ranks this process's are: as `wanted` says, else $TUTTI_SERVICE; empty: none.
std::string ServiceSocket(const std::string& wanted = {});
Result<UniqueId> MakeServiceId(const std::string& socket);

class ServiceClient {
 public:
  struct Place {
    uint32_t buffer = ipc::kNoBuffer;
    uint64_t offset = 0;
    bool of_device = false;
  };

  static Result<std::shared_ptr<ServiceClient>> Get(const std::string& socket);

  // `asked` is set to the number of the request before anything is waited for. kCancelled: `stop` was set.
  Result<ipc::Packet> Ask(ipc::Packet packet, const Deadline& deadline,
                          const std::atomic<bool>* stop = nullptr, uint64_t* asked = nullptr);
  // Without an answer.
  Status Tell(ipc::Packet packet);

  Result<void*> Allocate(int64_t bytes);
  // Memory of the number-th CUDA device of this process, whatever its number is for the daemon; its address there. It is at
  // most read and written here by copies and kernels.
  Result<void*> AllocateOnDevice(int64_t bytes, int32_t number);
  // False: it is none of ours.
  bool Free(void* memory);
  // The same of any daemon's that this process has known, whether or not it is still there.
  static bool FreeOfAny(void* memory);
  // Where `bytes` from `memory` on lie, if all of them are of the service.
  std::optional<Place> Find(const void* memory, int64_t bytes) const;

  // In this order; waits while the queue is full. False: the daemon has gone.
  bool Submit(std::span<const ipc::Slot> slots);
  const ipc::StatusLine& line(uint32_t index) const { return status().lines[index]; }
  // Until the line has changed from `completed`, or a while.
  void WaitForLine(uint32_t index, uint64_t completed);
  bool has_gone() const { return gone_.load(); }
  // Looks whether the daemon is still there.
  bool IsServed();

 private:
  struct Owned {
    uint32_t buffer = 0;
    int64_t bytes = 0;
    ipc::Memory memory = {};
    std::unique_ptr<ipc::DeviceMemory> of_device = nullptr;
  };

  ServiceClient() = default;
  Status Open(const std::string& socket);
  Result<ipc::Received> AskAll(ipc::Packet packet, const Deadline& deadline,
                               const std::atomic<bool>* stop, uint64_t* asked);
  // Memory that the daemon allocated and that this process does not use.
  void GiveBack(uint32_t buffer);
  // One packet, for whomever it is. `lock` is held before and after, and not meanwhile.
  void ReadOne(std::unique_lock<std::mutex>& lock);
  ipc::CommandArea& commands() const {
    return *reinterpret_cast<ipc::CommandArea*>(command_memory_.data());
  }
  const ipc::StatusArea& status() const {
    return *reinterpret_cast<const ipc::StatusArea*>(status_memory_.data());
  }

  ipc::Descriptor socket_, doorbell_;
  ipc::Memory command_memory_, status_memory_;
  std::atomic<bool> gone_ = false;

  std::mutex mutex_;  // of what is asked
  std::condition_variable answered_;
  uint64_t requests_ = 0;
  bool somebody_reads_ = false;
  std::map<uint64_t, ipc::Received> answers_;

  mutable std::mutex memory_mutex_;
  std::map<const std::byte*, Owned> owned_;  // by where it begins

  std::mutex submit_mutex_;
};

}  // namespace tutti
