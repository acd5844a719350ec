// Requests: what operators and other programs ask a controller, as JSON in and out (docs/formats/controller.md).
//
// Model       One at a time: a request sees the cluster as it is, not what another one is about to change. `policy` of a
//             request holds from then on.
// Errors      {"error": ...} names what was wrong; nothing else has happened then.
// Threads     Any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tutti/controller/controller.h"

namespace tutti::controller {

class Requests {
 public:
  explicit Requests(Controller controller);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  std::string Answer(const std::string& request);
  // Decides again and applies, where communicators have come or gone since the last time. What was done, a line each.
  std::vector<std::string> FollowChanges();

 private:
  class Handler;
  std::mutex mutex_;
  std::unique_ptr<Handler> handler_;
};

// Serves requests at a socket until `stops`: as service::AskDaemon asks. `ready` is called once it listens. kIo: it cannot.
Status ServeRequests(const std::string& socket, Requests& requests,
                     const std::function<void()>& ready, const std::function<bool()>& stops);

}  // namespace tutti::controller
