// Session: the front end of one process of a tenant: its socket, the memory it shares with the daemon, its
// buffers, and the lines of its ranks.
//
// Model       Slots are copied once, checked, and become commands of a communicator. What a correct library
//             would never send ends the session, with the reason in the log; what a program may get
//             wrong fails the one communicator.
// Lifetime    When it closes, its ranks leave their communicators; buffers live until the last
//             operation on them has ended.
// Threads     The daemon's.
// Reference   [mccs] 4.1: shim library and front-end engine
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "copied_commands.h"
#include "served_devices.h"
#include "service_communicator.h"
#include "tenant.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/packet.h"
#include "tutti/ipc/socket.h"

namespace tutti::service {

// What a session asks of the daemon.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // Null: nobody with this user and token may use the daemon.
  virtual Tenant* FindTenant(uint32_t user, const std::string& token) = 0;
  virtual Result<UniqueId> MakeId(const Tenant& tenant) = 0;
  // For what takes long.
  virtual Worker& planner() = 0;
  virtual ServedDevices& devices() = 0;
  virtual MemoryReturns& returns() = 0;
  virtual Result<ServiceCommunicator*> JoinCommunicator(Tenant& tenant, const UniqueId& id,
                                                        int32_t num_ranks, int32_t rank,
                                                        RankOwner& owner, uint32_t line) = 0;
};

class Session final : public RankOwner {
 public:
  static constexpr uint64_t kMaxAtOnce = 64;  // commands

  Session(SessionHost& host, ipc::Descriptor socket, const ipc::Caller& caller)
      : host_(host),
        socket_(std::move(socket)),
        process_(ipc::WatchProcess(caller.process)),
        caller_(caller) {}
  ~Session() override {
    *alive_ = false;
    Close("its process has ended");
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int socket() const { return socket_.fd(); }
  int doorbell() const { return doorbell_.fd(); }
  // The process, where it can be watched: children of it may hold the socket, too. Else -1.
  int process() const { return process_.fd(); }
  int32_t process_number() const override { return caller_.process; }
  bool is_open() const { return !closed_; }
  const std::string& why_closed() const { return why_closed_; }
  Tenant* tenant() const { return tenant_; }

  // Answers what has come on the socket.
  void Hear();
  // True: there were commands. At most so many are taken.
  bool TakeCommands(uint64_t most = kMaxAtOnce);
  bool has_commands() const;
  void SayWhetherSleeping(bool sleeps);
  void Close(const std::string& why);

  void Joined(uint32_t line) override;
  void JoinRefused(uint32_t line, const Error& why) override;
  void Completed(uint32_t line, uint64_t completed, uint32_t epoch) override;
  void Failed(uint32_t line, const Error& why) override;

 private:
  struct Line {
    bool used = false, joined = false;
    uint64_t request = 0;  // of the join
    ServiceCommunicator* communicator = nullptr;
    int32_t rank = 0;
    uint64_t sequence = 0;                       // of the last command
    std::unique_ptr<CommandOnDevices> exchange;  // messages so far; null: none
    // Null: it had no command for a device yet.
    std::shared_ptr<CopiedCommands> copied;
    std::optional<Error> failure;
  };

  void Answer(const ipc::Packet& packet, const std::vector<int>& descriptors = {});
  void Refuse(uint64_t request, const Error& why);
  void Handle(const ipc::Packet& packet);
  Status Welcome(const ipc::Packet& hello);
  Status Allocate(const ipc::Packet& packet);
  void AllocateOnHost(uint64_t request, const std::shared_ptr<TenantBuffer>& buffer);
  void AllocateOnDevice(uint64_t request, const std::shared_ptr<TenantBuffer>& buffer,
                        const std::string& uuid);
  // Its number, from now on.
  uint32_t Keep(std::shared_ptr<TenantBuffer> buffer);
  Status Join(const ipc::Packet& packet);
  Status Regroup(const ipc::Packet& packet);
  void Abort(const ipc::Packet& packet);
  Line* FindLine(uint64_t line);
  void Leave(uint32_t line, const std::string& why);
  void LeaveAll(const std::string& why);
  void Take(const ipc::Slot& slot);
  Status TakeCollective(const ipc::Slot& slot, Line& line);
  Status TakeMessage(const ipc::Slot& slot, Line& line);
  enum class Access : uint8_t { kRead, kWrite };
  // `bytes` from an offset of a buffer on, kept in use by `command`.
  Result<std::byte*> Locate(uint32_t buffer, uint64_t offset, int64_t bytes, int64_t alignment,
                            Access access, CommandOnDevices& command);
  void Issue(uint32_t index, Line& line, CommandOnDevices&& command);
  void IssueNow(uint32_t index, Line& line, Command&& command);
  CopiedCommands& CopiedOf(uint32_t index, Line& line);
  void Show(uint32_t line, uint64_t completed, uint32_t epoch);
  void FailLine(Line& line, const Error& why);
  void FailForQueue(Line& line);

  ipc::CommandArea& commands() const {
    return *reinterpret_cast<ipc::CommandArea*>(command_memory_.data());
  }
  ipc::StatusArea& status() const {
    return *reinterpret_cast<ipc::StatusArea*>(status_memory_.data());
  }

  SessionHost& host_;
  ipc::Descriptor socket_, process_, doorbell_;
  ipc::Caller caller_;
  Tenant* tenant_ = nullptr;
  ipc::Memory command_memory_, status_memory_;
  std::map<uint32_t, std::shared_ptr<TenantBuffer>> buffers_;
  uint32_t last_buffer_ = ipc::kNoBuffer;
  std::array<Line, ipc::kLines> lines_;
  uint64_t head_ = 0;
  int64_t taken_ns_ = 0;  // when commands were taken last
  bool closed_ = false;
  std::string why_closed_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tutti::service
