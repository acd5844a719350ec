// AdminConnection: an operator's connection: one request, a line of JSON, and its answer.
//
// Trust       Who can open the socket, which is its owner's alone.
// Threads     The daemon's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "event_loop.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

// May be called later, once.
using AdminReply = std::function<void(const std::string& answer)>;

class AdminHost {
 public:
  virtual ~AdminHost() = default;
  virtual void Answer(const std::string& request, AdminReply reply) = 0;
};

class AdminConnection {
 public:
  AdminConnection(EventLoop& loop, AdminHost& host, ipc::Descriptor socket);
  ~AdminConnection();
  AdminConnection(const AdminConnection&) = delete;
  AdminConnection& operator=(const AdminConnection&) = delete;

  bool is_over() const { return over_; }

 private:
  static constexpr size_t kMaxPacketBytes = size_t{256} << 20;

  void Hear();
  void Keep(std::string_view part);
  void Ask();
  // `answer`: a line.
  void Say(std::string_view answer);
  void Write();
  void End();

  EventLoop& loop_;
  AdminHost& host_;
  ipc::Descriptor socket_;
  std::string request_, answer_;
  bool asked_ = false, over_ = false;
  bool lacks_memory_ = false;  // for what is asked
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tutti::service
