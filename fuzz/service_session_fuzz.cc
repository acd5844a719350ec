// A tenant's process that says anything, to a daemon that runs: packets, raw messages, slots and tails of its queue. It may be
// refused or ended; the daemon answers an honest one all the while.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "support/raw_tenant.h"
#include "tutti/service/daemon.h"

namespace {

using tutti::ipc::Kind;
using tutti::ipc::Packet;
using tutti::ipc::Slot;
using tutti::test_support::RawTenant;

struct Served {
  std::string folder =
      (std::filesystem::temp_directory_path() / ("tutti-session-fuzz-" + std::to_string(getpid())))
          .string();
  tutti::service::Daemon daemon;
  std::thread thread;
  RawTenant honest;

  Served() : daemon(Start()), thread([this] { daemon.Run(); }), honest(folder + "/s") {}
  ~Served() {
    daemon.Stop();
    thread.join();
    std::filesystem::remove_all(folder);
  }
  tutti::service::Daemon Start() const {
    auto started = tutti::service::Daemon::Start(
        {.socket = folder + "/s", .admin = folder + "/a", .listen = "127.0.0.1"});
    if (!started) std::abort();
    return std::move(*started);
  }
};

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <class Value>
  Value Take() {
    Value value{};
    const size_t size = std::min(sizeof(value), size_);
    std::memcpy(&value, data_, size);
    data_ += size;
    size_ -= size;
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Served served;
  if (!served.honest.is_welcome()) std::abort();
  RawTenant tenant(served.folder + "/s");
  if (!tenant.is_welcome()) std::abort();
  Bytes bytes(data, size);
  uint64_t sequence = 0, slot_number = 0;
  constexpr int kMostActions = 64;
  for (int action = 0; action < kMostActions && !bytes.empty(); ++action) {
    switch (bytes.Take<uint8_t>() % 6) {
      case 0:  // a slot as it comes
        tenant.commands().slots[bytes.Take<uint8_t>()] = bytes.Take<Slot>();
        break;
      case 1:  // the next in order
      {
        auto slot = bytes.Take<Slot>();
        slot.sequence = ++sequence;
        slot.line %= 2;
        slot.reserved = 0;
        slot.zero = {};
        tenant.commands().slots[slot_number++ % tutti::ipc::kSlots] = slot;
        tenant.commands().page.tail.store(slot_number);
        break;
      }
      case 2:
        tenant.commands().page.tail.store(bytes.Take<uint64_t>());
        break;
      case 3: {
        Packet packet{.kind = static_cast<Kind>(bytes.Take<uint8_t>() % 18), .request = 7};
        packet.words = {bytes.Take<uint16_t>(), bytes.Take<uint64_t>()};
        packet.text.assign(bytes.Take<uint8_t>(), 'x');
        tenant.Send(packet);
        break;
      }
      case 4: {
        const auto raw = bytes.Take<uint64_t>();
        send(tenant.socket(), &raw, raw % 8, MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
      }
      case 5: {  // so that there is something to be wrong with
        tenant.Send({.kind = Kind::kAllocate, .words = {4096}});
        const Packet id = served.honest.AskOf({.kind = Kind::kMakeId});
        tenant.Send({.kind = Kind::kJoin, .words = {1, 0}, .text = id.text});
        break;
      }
    }
    tenant.Ring();
  }
  // Whatever came of it, the daemon has read it when it answers this, or it has closed.
  if (tenant.Send({.kind = Kind::kWhy, .request = 99}))
    while (const auto answer = tenant.Receive())
      if (answer->packet.request == 99) break;
  if (served.honest.AskOf({.kind = Kind::kMakeId}).kind != Kind::kIdMade) std::abort();
  return 0;
}
