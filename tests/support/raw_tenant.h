// RawTenant: a process of a tenant without our library, which may say anything to the daemon.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/ipc/layout.h"
#include "tutti/ipc/packet.h"
#include "tutti/ipc/socket.h"

namespace tutti::test_support {

class RawTenant {
 public:
  // `drive` is called before an answer is waited for: it lets a daemon of this thread work.
  explicit RawTenant(
      const std::string& socket, const std::string& token = "", std::function<void()> drive = [] {})
      : drive_(std::move(drive)) {
    Result<ipc::Descriptor> connected = ipc::Connect(socket, ipc::SocketKind::kPackets);
    if (!connected) return;
    socket_ = std::move(*connected);
    // A daemon that does not answer must not hold a test for ever.
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    std::optional<ipc::Received> welcome = Ask({.kind = ipc::Kind::kHello, .text = token});
    why_not_ = welcome ? welcome->packet.text : "closed";
    if (!welcome || welcome->packet.kind != ipc::Kind::kWelcome || welcome->descriptors.size() != 3)
      return;
    auto commands = ipc::Memory::Map(welcome->descriptors[0].fd(), sizeof(ipc::CommandArea), true);
    auto status = ipc::Memory::Map(welcome->descriptors[1].fd(), sizeof(ipc::StatusArea), false);
    if (!commands || !status) return;
    commands_ = std::move(*commands);
    status_ = std::move(*status);
    doorbell_ = std::move(welcome->descriptors[2]);
  }

  bool is_welcome() const { return doorbell_.is_open(); }
  // What the daemon said in place of a welcome.
  const std::string& why_not() const { return why_not_; }
  int socket() const { return socket_.fd(); }
  bool Send(const ipc::Packet& packet, const std::vector<int>& descriptors = {}) const {
    return ipc::Send(socket_.fd(), packet, descriptors).has_value();
  }
  // The next that comes; nothing: the daemon has closed.
  std::optional<ipc::Received> Receive() const {
    drive_();
    Result<std::optional<ipc::Received>> received = ipc::Receive(socket_.fd(), true, true);
    if (!received || !*received) return std::nullopt;
    return std::move(**received);
  }
  std::optional<ipc::Received> Ask(const ipc::Packet& packet) const {
    if (!Send(packet)) return std::nullopt;
    return Receive();
  }
  // Of the answer; kRefused where there is none.
  ipc::Packet AskOf(const ipc::Packet& packet) const {
    std::optional<ipc::Received> answer = Ask(packet);
    return answer ? answer->packet : ipc::Packet{.text = "closed"};
  }
  ipc::CommandArea& commands() const {
    return *reinterpret_cast<ipc::CommandArea*>(commands_.data());
  }
  const ipc::StatusArea& status() const {
    return *reinterpret_cast<const ipc::StatusArea*>(status_.data());
  }
  void Ring() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = write(doorbell_.fd(), &one, sizeof(one));
  }
  // As a correct library does.
  void Submit(const ipc::Slot& slot) {
    SubmitSilently(slot);
    Ring();
  }
  void SubmitSilently(const ipc::Slot& slot) {
    commands().slots[tail_ % ipc::kSlots] = slot;
    commands().page.tail.store(++tail_);
  }
  // Whether so many slots have room.
  bool has_room(uint64_t slots = 1) const {
    return tail_ + slots - status().head.load() <= ipc::kSlots;
  }

 private:
  std::function<void()> drive_;
  ipc::Descriptor socket_, doorbell_;
  ipc::Memory commands_, status_;
  std::string why_not_ = "no service";
  uint64_t tail_ = 0;
};

}  // namespace tutti::test_support
