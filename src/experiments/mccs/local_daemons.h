// Daemons of the service in threads of this process, each as the one of a host would be; they reach each other over the
// loopback interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/service/daemon.h"

namespace tutti::mccs {

class LocalDaemons {
 public:
  // kIo: their sockets cannot be made.
  static Result<LocalDaemons> Start(int32_t number);
  LocalDaemons(LocalDaemons&&) noexcept = default;
  LocalDaemons& operator=(LocalDaemons&&) noexcept = default;
  ~LocalDaemons();

  // For the tenants, and for the operator, of a host.
  const std::string& socket(int32_t host) const { return at(host).socket; }
  const std::string& admin(int32_t host) const { return at(host).admin; }

 private:
  struct Running {
    std::string socket, admin;
    std::unique_ptr<service::Daemon> daemon;
    std::thread thread;
  };

  LocalDaemons() = default;
  const Running& at(int32_t host) const { return running_[static_cast<size_t>(host)]; }

  std::string folder_;
  std::vector<Running> running_;
};

}  // namespace tutti::mccs
