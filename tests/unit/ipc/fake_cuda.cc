// The entry points of the CUDA driver that devices use, over shared memory of the host: what a GPU would do, as far as other
// processes can see it. Handles name the memory; a context has to be current, and who pushes one has to pop it; memory is full of
// what somebody left there; an event is ready at the second look. Memory of a device is read by copies only: what is at its
// address is kept elsewhere, and a program that touches it there ends.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201,
              kNotReady = 600;
constexpr size_t kMemory = size_t{64} << 20;

struct Part {
  std::string name;
  size_t bytes = 0;
  void* at = nullptr;       // where it is kept
  void* address = nullptr;  // of as many bytes that cannot be touched
  int device = 0;
  bool is_own = false;
};
struct Context {
  int device = 0;
  std::atomic<int> retained = 0;
};
struct FakeEvent {
  std::atomic<int>* looks_left = nullptr;  // shared
  Part part;
};

constexpr int kDevices = 2;
Context contexts[kDevices] = {{0, {}}, {1, {}}};
thread_local std::vector<Context*> current;
std::mutex mutex;
std::map<uint64_t, Part> parts;  // by their address
std::map<const void*, size_t> pinned;
std::atomic<int> made = 0;

// Where byte `address` of a device is kept, if `bytes` from there on are of one piece.
char* Find(uint64_t address, size_t bytes, const Part** part = nullptr) {
  const std::lock_guard lock(mutex);
  auto found = parts.upper_bound(address);
  if (found == parts.begin()) return nullptr;
  found = std::prev(found);
  const uint64_t offset = address - found->first;
  if (offset >= found->second.bytes || bytes > found->second.bytes - offset) return nullptr;
  if (part != nullptr) *part = &found->second;
  return static_cast<char*>(found->second.at) + offset;
}

bool Map(Part& part, int flags) {
  const int fd = shm_open(part.name.c_str(), O_RDWR | flags, 0600);
  if (fd < 0) return false;
  struct stat there {};
  const bool sized =
      flags != 0 ? ftruncate(fd, static_cast<off_t>(part.bytes)) == 0 : fstat(fd, &there) == 0;
  if (flags == 0) part.bytes = static_cast<size_t>(there.st_size);
  if (sized) part.at = mmap(nullptr, part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return sized && part.at != MAP_FAILED;
}

std::string NewName() {
  return "/tutti-fake-cuda-" + std::to_string(getpid()) + "-" + std::to_string(++made);
}

bool IsOwnName(const char* name) {
  const std::string own = "/tutti-fake-cuda-" + std::to_string(getpid()) + "-";
  return std::strncmp(name, own.c_str(), own.size()) == 0;
}

bool MapAtAddress(Part& part, int flags) {
  if (!Map(part, flags)) return false;
  part.address = mmap(nullptr, part.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return part.address != MAP_FAILED;
}

uint64_t Keep(const Part& part) {
  const std::lock_guard lock(mutex);
  const auto address = reinterpret_cast<uint64_t>(part.address);
  parts[address] = part;
  return address;
}

void Unmap(const Part& part) {
  munmap(part.at, part.bytes);
  if (part.address != nullptr) munmap(part.address, part.bytes);
  if (part.is_own) shm_unlink(part.name.c_str());
}

struct Handle {
  char bytes[64];
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return kSuccess; }
int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU %d", device);
  return kSuccess;
}
int cuDeviceGetUuid_v2(char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<char>(0xa0 + i);
  uuid[0] = static_cast<char>(device);
  return kSuccess;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = contexts[device].retained > 0 ? 1 : 0;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  ++contexts[device].retained;
  *context = &contexts[device];
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return --contexts[device].retained >= 0 ? kSuccess : kInvalidValue;
}
int cuCtxPushCurrent_v2(Context* context) {
  current.push_back(context);
  return kSuccess;
}
int cuCtxPopCurrent_v2(Context** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  if (current.empty()) return kInvalidContext;
  if (bytes > kMemory) return kOutOfMemory;
  Part part{.name = NewName(), .bytes = bytes, .device = current.back()->device, .is_own = true};
  if (!MapAtAddress(part, O_CREAT | O_EXCL)) return kOutOfMemory;
  std::memset(part.at, 0xa5, part.bytes);
  *pointer = Keep(part);
  return kSuccess;
}
int Drop(uint64_t pointer, bool is_own) {
  if (current.empty()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  const auto found = parts.find(pointer);
  if (found == parts.end() || found->second.is_own != is_own) return kInvalidValue;
  Unmap(found->second);
  parts.erase(found);
  return kSuccess;
}
int cuMemFree_v2(uint64_t pointer) { return Drop(pointer, true); }
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  if (current.empty()) return kInvalidContext;
  char* at = Find(to, bytes);
  if (at == nullptr) return kInvalidValue;
  std::memset(at, value, bytes);
  return kSuccess;
}
int cuMemHostRegister_v2(void* at, size_t bytes, unsigned) {
  if (current.empty()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  return pinned.emplace(at, bytes).second ? kSuccess : kInvalidValue;
}
int cuMemHostUnregister(void* at) {
  if (current.empty()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  return pinned.erase(at) == 1 ? kSuccess : kInvalidValue;
}
int cuMemAllocHost_v2(void** at, size_t bytes) {
  if (bytes > kMemory) return kOutOfMemory;
  *at = std::malloc(bytes);
  std::memset(*at, 0x5a, bytes);
  return cuMemHostRegister_v2(*at, bytes, 0);
}
int cuMemFreeHost(void* at) {
  const int done = cuMemHostUnregister(at);
  if (done == kSuccess) std::free(at);
  return done;
}
int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
  constexpr int kType = 2, kDevice = 9;
  if (current.empty()) return kInvalidContext;
  const Part* part = nullptr;
  if (Find(pointer, 0, &part) == nullptr) {
    const std::lock_guard lock(mutex);
    auto found = pinned.upper_bound(reinterpret_cast<const void*>(pointer));
    if (found == pinned.begin()) return kInvalidValue;
    found = std::prev(found);
    if (reinterpret_cast<uint64_t>(found->first) + found->second <= pointer) return kInvalidValue;
  }
  if (attribute == kType)
    *static_cast<unsigned*>(value) = part != nullptr ? 2 : 1;
  else if (attribute == kDevice)
    *static_cast<int*>(value) = part != nullptr ? part->device : 0;
  else
    return kInvalidValue;
  return kSuccess;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  if (current.empty()) return kInvalidContext;
  char* at = Find(to, bytes);
  if (at == nullptr) return kInvalidValue;
  std::memcpy(at, from, bytes);
  return kSuccess;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  if (current.empty()) return kInvalidContext;
  const char* at = Find(from, bytes);
  if (at == nullptr) return kInvalidValue;
  std::memcpy(to, at, bytes);
  return kSuccess;
}
int cuStreamSynchronize(void*) { return current.empty() ? kInvalidContext : kSuccess; }
int cuIpcGetMemHandle(Handle* handle, uint64_t pointer) {
  const std::lock_guard lock(mutex);
  const auto found = parts.find(pointer);
  if (found == parts.end() || !found->second.is_own) return kInvalidValue;
  std::snprintf(handle->bytes, sizeof(handle->bytes), "%s", found->second.name.c_str());
  return kSuccess;
}
int cuIpcOpenMemHandle_v2(uint64_t* pointer, Handle handle, unsigned) {
  if (current.empty()) return kInvalidContext;
  handle.bytes[sizeof(handle.bytes) - 1] = '\0';
  if (IsOwnName(handle.bytes)) return kInvalidContext;  // only another process may open it
  Part part{.name = handle.bytes, .device = current.back()->device};
  if (!MapAtAddress(part, 0)) return kInvalidValue;
  *pointer = Keep(part);
  return kSuccess;
}
int cuIpcCloseMemHandle(uint64_t pointer) { return Drop(pointer, false); }
int cuEventCreate(FakeEvent** event, unsigned flags) {
  if (flags != 6) return kInvalidValue;  // without timing, between processes
  auto* created = new FakeEvent{.part = {.name = NewName(), .bytes = 4096, .is_own = true}};
  if (!Map(created->part, O_CREAT | O_EXCL)) return kOutOfMemory;
  created->looks_left = static_cast<std::atomic<int>*>(created->part.at);
  *event = created;
  return kSuccess;
}
int cuEventDestroy_v2(FakeEvent* event) {
  if (current.empty()) return kInvalidContext;
  Unmap(event->part);
  delete event;
  return kSuccess;
}
int cuEventRecord(FakeEvent* event, void*) {
  if (current.empty()) return kInvalidContext;
  event->looks_left->store(1);
  return kSuccess;
}
int cuEventQuery(FakeEvent* event) {
  return event->looks_left->exchange(0) > 0 ? kNotReady : kSuccess;
}
int cuIpcGetEventHandle(Handle* handle, FakeEvent* event) {
  std::snprintf(handle->bytes, sizeof(handle->bytes), "%s", event->part.name.c_str());
  return kSuccess;
}
int cuIpcOpenEventHandle(FakeEvent** event, Handle handle) {
  handle.bytes[sizeof(handle.bytes) - 1] = '\0';
  auto* opened = new FakeEvent{.part = {.name = handle.bytes}};
  if (!Map(opened->part, 0)) {
    delete opened;
    return kInvalidValue;
  }
  opened->looks_left = static_cast<std::atomic<int>*>(opened->part.at);
  *event = opened;
  return kSuccess;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory      ? "out of memory"
          : error == kInvalidContext ? "invalid device context"
                                     : "invalid argument";
  return kSuccess;
}

}  // extern "C"
