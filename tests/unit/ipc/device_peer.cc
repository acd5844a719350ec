// The other process of the tests of devices: opens memory and an event that one has exported, waits for the event, reads
// 2 at byte 400 and writes 5 at byte 800, both floats.
//
// Usage   device_peer host|NUMBER:LIBRARY BYTES FD HEX BYTES FD HEX: the handles of the memory and of the event
// Exit    0: done; 1: no such device; 2: the memory did not open; 3: the event did not; 4: it did not happen;
//         5: there is no 2; 6: it could not write
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/ipc/device.h"

namespace {

using tutti::Result;
using tutti::ipc::Device;
using tutti::ipc::DeviceHandle;
using tutti::ipc::DeviceKind;

Result<std::unique_ptr<Device>> OpenDevice(const std::string& named) {
  if (named == "host") return tutti::ipc::MakeHostDevice();
  const size_t colon = named.find(':');
  return tutti::ipc::OpenCudaDevice(std::stoi(named.substr(0, colon)), named.substr(colon + 1));
}

DeviceHandle HandleOf(const Device& device, const char* const* words) {
  constexpr int kHex = 16;
  DeviceHandle handle{.kind = device.kind(), .bytes = std::stoll(words[0])};
  handle.file = tutti::ipc::Descriptor(std::stoi(words[1]));
  const std::string_view hex = words[2];
  for (size_t i = 0; i < handle.opaque.size(); ++i)
    handle.opaque[i] =
        static_cast<std::byte>(std::stoi(std::string(hex.substr(2 * i, 2)), nullptr, kHex));
  return handle;
}

int Work(Device& device, const DeviceHandle& of_memory, const DeviceHandle& of_event) {
  constexpr int kLooks = 100'000;
  auto memory = device.Open(of_memory);
  if (!memory) return 2;
  auto event = device.OpenEvent(of_event);
  if (!event) return 3;
  Result<bool> happened = (*event)->HasHappened();
  for (int look = 0; look < kLooks && happened && !*happened; ++look)
    happened = (*event)->HasHappened();
  if (!happened || !*happened) return 4;
  float value = 0;
  if (!device.CopyOut(**memory, 400, &value, sizeof(value)) || value != 2) return 5;
  value = 5;
  return device.CopyIn(**memory, 800, &value, sizeof(value)) ? 0 : 6;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kArguments = 8;
  if (argc != kArguments) return 1;
  auto device = OpenDevice(argv[1]);
  if (!device) return 1;
  return Work(**device, HandleOf(**device, argv + 2), HandleOf(**device, argv + 5));
}
