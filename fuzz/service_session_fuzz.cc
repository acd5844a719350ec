// A tenant's process that says anything, to a daemon that runs: packets, raw messages, slots and tails of its queue. It may be
// refused or ended; the daemon answers an honest one all the while.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ServedDaemon served("tutti-session-fuzz");
  static RawTenant honest = served.Come();
  if (!honest.is_welcome()) std::abort();
  RawTenant tenant = served.Come();
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
        const Packet id = honest.AskOf({.kind = Kind::kMakeId});
        tenant.Send({.kind = Kind::kJoin, .words = {1, 0}, .text = id.text});
        break;
      }
    }
    tenant.Ring();
    served.Work();
  }
  // Whatever came of it, the daemon has read it when it answers this, or it has closed.
  if (tenant.Send({.kind = Kind::kWhy, .request = 99}))
    while (const auto answer = tenant.Receive())
      if (answer->packet.request == 99) break;
  if (honest.AskOf({.kind = Kind::kMakeId}).kind != Kind::kIdMade) std::abort();
  return 0;
}
