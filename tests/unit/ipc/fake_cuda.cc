// The entry points of the CUDA driver that devices use, over shared memory of the host: what a GPU would do, as far as other
// processes can see it. Handles name the memory; a context has to be current; an event is ready at the second look.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201,
              kNotReady = 600;
constexpr size_t kMemory = size_t{64} << 20;

struct Part {
  std::string name;
  size_t bytes = 0;
  void* at = nullptr;
  bool is_own = false;
};
struct FakeEvent {
  std::atomic<int>* looks_left = nullptr;  // shared
  Part part;
};

thread_local void* current = nullptr;
std::map<uint64_t, Part> parts;
int made = 0;

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

void Unmap(const Part& part) {
  munmap(part.at, part.bytes);
  if (part.is_own) shm_unlink(part.name.c_str());
}

struct Handle {
  char bytes[64];
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return kSuccess; }
int cuDeviceGetCount(int* count) {
  *count = 2;
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
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int any;
  *context = &any;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void* context) {
  current = context;
  return kSuccess;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  if (current == nullptr) return kInvalidContext;
  if (bytes > kMemory) return kOutOfMemory;
  Part part{.name = NewName(), .bytes = bytes, .is_own = true};
  if (!Map(part, O_CREAT | O_EXCL)) return kOutOfMemory;
  *pointer = reinterpret_cast<uint64_t>(part.at);
  parts[*pointer] = part;
  return kSuccess;
}
int cuMemFree_v2(uint64_t pointer) {
  if (current == nullptr) return kInvalidContext;
  const auto found = parts.find(pointer);
  if (found == parts.end() || !found->second.is_own) return kInvalidValue;
  Unmap(found->second);
  parts.erase(found);
  return kSuccess;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  if (current == nullptr) return kInvalidContext;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  if (current == nullptr) return kInvalidContext;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}
int cuIpcGetMemHandle(Handle* handle, uint64_t pointer) {
  const auto found = parts.find(pointer);
  if (found == parts.end() || !found->second.is_own) return kInvalidValue;
  std::snprintf(handle->bytes, sizeof(handle->bytes), "%s", found->second.name.c_str());
  return kSuccess;
}
int cuIpcOpenMemHandle_v2(uint64_t* pointer, Handle handle, unsigned) {
  if (current == nullptr) return kInvalidContext;
  handle.bytes[sizeof(handle.bytes) - 1] = '\0';
  if (IsOwnName(handle.bytes)) return kInvalidContext;  // only another process may open it
  Part part{.name = handle.bytes};
  if (!Map(part, 0)) return kInvalidValue;
  *pointer = reinterpret_cast<uint64_t>(part.at);
  parts[*pointer] = part;
  return kSuccess;
}
int cuIpcCloseMemHandle(uint64_t pointer) {
  if (current == nullptr) return kInvalidContext;
  const auto found = parts.find(pointer);
  if (found == parts.end() || found->second.is_own) return kInvalidValue;
  Unmap(found->second);
  parts.erase(found);
  return kSuccess;
}
int cuEventCreate(FakeEvent** event, unsigned flags) {
  if (flags != 6) return kInvalidValue;  // without timing, between processes
  auto* created = new FakeEvent{.part = {.name = NewName(), .bytes = 4096, .is_own = true}};
  if (!Map(created->part, O_CREAT | O_EXCL)) return kOutOfMemory;
  created->looks_left = static_cast<std::atomic<int>*>(created->part.at);
  *event = created;
  return kSuccess;
}
int cuEventDestroy_v2(FakeEvent* event) {
  if (current == nullptr) return kInvalidContext;
  Unmap(event->part);
  delete event;
  return kSuccess;
}
int cuEventRecord(FakeEvent* event, void*) {
  if (current == nullptr) return kInvalidContext;
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
