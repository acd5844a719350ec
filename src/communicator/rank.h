// One rank of a communicator, whoever runs its operations: this process, or a service.
//
// Memory      Operations run on memory of the host. What lies on a CUDA device goes through such memory, unless the rank
//             takes it as it is (device_staging.h).
// Threads     One at a time, but for Abort() and health().
// Errors      Those of communicator.h.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective_call.h"
#include "device_staging.h"
#include "regroup.h"
#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"

namespace tutti {

class Communicator::Rank {
 public:
  Rank(int32_t num_ranks, int32_t rank, const CommunicatorOptions& options)
      : num_ranks_(num_ranks), rank_(rank), options_(options) {}
  virtual ~Rank() = default;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int32_t rank() const { return rank_; }
  int32_t num_ranks() const { return num_ranks_; }
  const CommunicatorOptions& options() const { return options_; }

  // Why it has failed.
  Status health() const {
    const std::lock_guard lock(fault_mutex_);
    if (fault_) return tl::unexpected(*fault_);
    return {};
  }
  virtual void Abort() = 0;
  Status Run(const CollectiveCall& call);
  // Messages that not all ranks need exchange are named so.
  static constexpr const char* kMessages = "messages";
  // `text` names the messages in errors.
  Status Exchange(std::span<const Message> messages, const std::string& text);
  // What each rank said, by rank; at most 4,096 bytes of each.
  virtual Result<std::vector<std::string>> Share(const std::string& mine,
                                                 const std::string& text) = 0;
  virtual Result<std::string> ScheduleFor(const CollectiveCall& call) = 0;
  // By which others join, who reach this rank's host as the ranks of this communicator do.
  virtual Result<UniqueId> MakeId() const = 0;
  // With the ranks that are there, also when it has failed: what this one becomes.
  virtual Result<Regrouped> Regroup(const RegroupAsk& ask, const Deadline& deadline) = 0;
  // As that.
  virtual Result<std::unique_ptr<Rank>> JoinAgain(const Regrouped& regrouped) = 0;

 protected:
  friend class DeviceStaging;
  virtual Status RunHere(const CollectiveCall& call) = 0;
  virtual Status ExchangeHere(std::span<const Message> messages, const std::string& text) = 0;
  // Memory of a device that RunHere and ExchangeHere understand.
  virtual bool Understands(const void* /*of_device*/, int64_t /*bytes*/) const { return false; }
  // Memory of the host that operations use in place.
  virtual Result<std::shared_ptr<std::byte>> AllocateHost(int64_t bytes);

  // For the only rank there is.
  static void Copy(const CollectiveCall& call);

  // From now on; the first counts.
  Status FailFor(const Error& error) {
    const std::lock_guard lock(fault_mutex_);
    if (!fault_) fault_ = error;
    return tl::unexpected(*fault_);
  }

  int32_t num_ranks_, rank_;
  CommunicatorOptions options_;

 private:
  DeviceStaging staging_{*this};
  mutable std::mutex fault_mutex_;
  std::optional<Error> fault_;
};

// A rank whose operations run in the thread that calls them.
Result<std::unique_ptr<Communicator::Rank>> JoinInProcess(const UniqueId& id, int32_t num_ranks,
                                                          int32_t rank,
                                                          const CommunicatorOptions& options);
// A rank of the service at `socket`; its process talks to the daemon once, whatever it joins.
Result<std::unique_ptr<Communicator::Rank>> JoinService(const std::string& socket,
                                                        const UniqueId& id, int32_t num_ranks,
                                                        int32_t rank,
                                                        const CommunicatorOptions& options);

}  // namespace tutti
