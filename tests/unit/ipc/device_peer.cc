// The other process of the tests of devices: opens memory and an event that one has exported, waits for the event, reads
// 2 at byte 400 and writes 5 at byte 800, both floats.
//
// Usage   device_peer host|NUMBER:LIBRARY BYTES FD BYTES FD: the handles of the memory and of the event; what is opaque in
//         them, 64 bytes each, on its standard input
// Exit    0: done; 1: no such device; 2: the memory did not open; 3: the event did not; 4: it did not happen;
//         5: there is no 2; 6: it could not write
#include <iostream>
#include <memory>
#include <string>

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

DeviceHandle ReadHandle(const Device& device, const char* const* words) {
  DeviceHandle handle{.kind = device.kind(), .bytes = std::stoll(words[0])};
  handle.file = tutti::ipc::Descriptor(std::stoi(words[1]));
  std::cin.read(reinterpret_cast<char*>(handle.opaque.data()),
                static_cast<std::streamsize>(handle.opaque.size()));
  return handle;
}

int Work(Device& device, const DeviceHandle& of_memory, const DeviceHandle& of_event) {
  constexpr int kLooks = 1000;
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
  constexpr int kArguments = 6;
  if (argc != kArguments) return 1;
  auto device = OpenDevice(argv[1]);
  if (!device) return 1;
  const DeviceHandle memory = ReadHandle(**device, argv + 2),
                     event = ReadHandle(**device, argv + 4);
  return Work(**device, memory, event);
}
