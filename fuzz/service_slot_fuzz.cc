// Commands in a tenant's queue, right and wrong ones, to a daemon whose communicator of one rank runs them. A tenant that was
// ended or whose communicator failed is followed by another; an honest one is answered all the while.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "bytes.h"
#include "support/served_daemon.h"
#include "tutti/ipc/layout.h"
#include "tutti/ipc/packet.h"

namespace {

using tutti::fuzz::Bytes;
using tutti::ipc::Kind;
using tutti::ipc::Packet;
using tutti::ipc::Slot;
using tutti::test_support::RawTenant;
using tutti::test_support::ServedDaemon;

// A rank with two pages of memory.
struct Joined {
  explicit Joined(RawTenant of) : tenant(std::move(of)) {
    if (!tenant.is_welcome()) std::abort();
    const Packet memory = tenant.AskOf({.kind = Kind::kAllocate, .words = {2 * 4096}});
    const Packet id = tenant.AskOf({.kind = Kind::kMakeId});
    const Packet joined = tenant.AskOf({.kind = Kind::kJoin, .words = {1, 0}, .text = id.text});
    if (memory.kind != Kind::kAllocated || joined.kind != Kind::kJoined) std::abort();
    buffer = static_cast<uint32_t>(memory.words[0]);
    line = static_cast<uint32_t>(joined.words[0]);
  }
  bool goes_on() const {
    char byte = 0;
    const bool is_open = recv(tenant.socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
    return is_open && tenant.status().lines[line].state.load() == tutti::ipc::LineState::kActive;
  }

  RawTenant tenant;
  uint32_t buffer = 0, line = 0;
  uint64_t sequence = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ServedDaemon served("tutti-slot-fuzz");
  static RawTenant honest = served.Come();
  static std::optional<Joined> rank;
  if (!rank) rank.emplace(served.Come());
  Bytes bytes(data, size);
  constexpr int kMostCommands = 32;
  for (int command = 0; command < kMostCommands && !bytes.empty(); ++command) {
    const auto how = bytes.Take<uint8_t>();
    if (how == UINT8_MAX) {
      rank->tenant.commands().page.tail.store(bytes.Take<uint64_t>());
      break;
    }
    auto slot = bytes.Take<Slot>();
    // As a library would write it, but for what these bits say.
    if ((how & 1) == 0) slot.line = rank->line;
    if ((how & 2) == 0) slot.sequence = ++rank->sequence;
    if ((how & 4) == 0) {
      slot.reserved = 0;
      slot.zero = {};
    }
    if ((how & 8) == 0) slot.input = slot.output = rank->buffer;
    if ((how & 16) == 0) {
      constexpr uint64_t kSmall = 1024;
      slot.count %= kSmall;
      slot.root = 0;
    }
    rank->tenant.SubmitSilently(slot);
  }
  rank->tenant.Ring();
  served.Work();
  if (!rank->goes_on()) {
    rank.reset();
    served.Work();
    if (honest.AskOf({.kind = Kind::kMakeId}).kind != Kind::kIdMade) std::abort();
  }
  return 0;
}
