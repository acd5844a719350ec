// Devices: one suite for the host and for CUDA, whose driver is a fake over host memory, or the true one where there is one.
#include "tutti/ipc/device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/device_ranks.h"
#include "support/quiet_fork.h"
#include "tutti/base/process.h"
#include "tutti/ipc/cuda_pointers.h"

namespace tutti::ipc {
namespace {

using testing::HasSubstr;

std::string FakeDriver() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" /
          "libfake_cuda.so")
      .string();
}

void AddFloats(void* dst, const void* a, const void* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    static_cast<float*>(dst)[i] = static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
}

// What device_peer, another program, made of the handles: its exit status. Not a fork: CUDA does not survive one.
int OpenInPeer(const std::string& device, const DeviceHandle& memory, const DeviceHandle& event) {
  const Result<std::string> program = FindProgram("device_peer", "it is built with the tests");
  if (!program) return -1;
  std::vector<std::string> words = {*program, device};
  std::string opaque;
  std::vector<Descriptor> inherited;
  for (const DeviceHandle* handle : {&memory, &event}) {
    words.push_back(std::to_string(handle->bytes));
    // A copy outlives the start of a program.
    inherited.emplace_back(handle->file.is_open() ? dup(handle->file.fd()) : -1);
    words.push_back(std::to_string(inherited.back().fd()));
    opaque.append(reinterpret_cast<const char*>(handle->opaque.data()), handle->opaque.size());
  }
  const auto ended = RunProcess(words, [](std::string_view, ProcessStream) {}, {.input = opaque});
  return ended && ended->signal == 0 ? ended->status : -1;
}

struct DeviceCase {
  const char* name;
  std::unique_ptr<Device> (*open)();
  std::string (*for_peer)();  // how it opens the same device
};

class Devices : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    device_ = GetParam().open();
    if (device_ == nullptr) GTEST_SKIP() << "this host has no such device";
  }
  std::unique_ptr<Device> device_;
};

TEST_P(Devices, CopiesAndReducesWithinItsMemory) {
  auto a = device_->Allocate(1'200'000 * 4), b = device_->Allocate(1'200'000 * 4 + 40);
  ASSERT_TRUE(a && b);
  std::vector<float> one(1'200'000), two(1'200'010), sum(1'200'000);
  for (size_t i = 0; i < two.size(); ++i) two[i] = static_cast<float>(i % 1000);
  for (size_t i = 0; i < one.size(); ++i) one[i] = static_cast<float>(i % 7);
  ASSERT_TRUE(device_->CopyIn(**a, 0, one.data(), (*a)->bytes()));
  ASSERT_TRUE(device_->CopyIn(**b, 0, two.data(), (*b)->bytes()));
  ASSERT_TRUE(device_->Reduce(**a, 0, **b, 40, 1'200'000, 4, AddFloats));
  ASSERT_TRUE(device_->CopyOut(**a, 0, sum.data(), (*a)->bytes()));
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], one[i] + two[i + 10]) << i;
  ASSERT_TRUE(device_->CopyOut(**a, 8, sum.data(), 4));
  EXPECT_EQ(sum[0], one[2] + two[12]);
}

TEST_P(Devices, RangesBeyondMemoryAreRefused) {
  auto a = device_->Allocate(64), b = device_->Allocate(32);
  ASSERT_TRUE(a && b);
  std::array<char, 128> host{};
  for (const auto& [offset, bytes] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 65}, {64, 1}, {-1, 1}, {1, -1}, {INT64_MAX, 1}, {1, INT64_MAX}}) {
    EXPECT_THAT(device_->CopyIn(**a, offset, host.data(), bytes).error().message,
                HasSubstr("of memory that has 64"));
    EXPECT_FALSE(device_->CopyOut(**a, offset, host.data(), bytes));
  }
  EXPECT_FALSE(device_->Reduce(**a, 0, **b, 0, 16, 4, AddFloats));
  EXPECT_FALSE(device_->Reduce(**b, 4, **a, 0, 8, 4, AddFloats));
  EXPECT_TRUE(device_->Reduce(**b, 0, **a, 32, 8, 4, AddFloats));
  EXPECT_FALSE(device_->Allocate(0));
  EXPECT_FALSE(device_->Allocate(-5));
}

TEST_P(Devices, NewMemoryIsZeroAndStagingIsOfTheHost) {
  constexpr int64_t kBytes = int64_t{3} << 20;
  std::vector<char> seen(kBytes, 1);
  auto memory = device_->Allocate(kBytes);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(device_->CopyOut(**memory, 0, seen.data(), kBytes));
  EXPECT_EQ(seen, std::vector<char>(kBytes, 0));
  EXPECT_NE((*memory)->address(), 0U);
  auto staging = device_->AllocateStaging(kBytes);
  ASSERT_TRUE(staging);
  ASSERT_NE((*staging)->data(), nullptr);
  EXPECT_EQ((*staging)->address(), reinterpret_cast<uint64_t>((*staging)->data()));
  std::memset((*staging)->data(), 7, kBytes);
  ASSERT_TRUE(device_->CopyIn(**memory, 0, (*staging)->data(), kBytes));
  ASSERT_TRUE(device_->CopyOut(**memory, 0, seen.data(), kBytes));
  EXPECT_EQ(seen, std::vector<char>(kBytes, 7));
  EXPECT_FALSE(device_->AllocateStaging(0));
}

TEST_P(Devices, AreFoundByTheirUuid) {
  if (device_->kind() == DeviceKind::kHost) {
    EXPECT_EQ(device_->uuid(), "");
    return;
  }
  const bool is_fake = device_->name() == "Fake GPU 1";
  const std::string library = is_fake ? FakeDriver() : "libcuda.so.1";
  const auto same = OpenCudaDeviceByUuid(device_->uuid(), library);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ((*same)->name(), device_->name());
  EXPECT_EQ((*same)->uuid(), device_->uuid());
  if (is_fake) {
    EXPECT_EQ(device_->uuid(), "01a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
  }
  const auto none = OpenCudaDeviceByUuid("no-such-device", library);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(none.error().message, HasSubstr("CUDA device no-such-device: not among the"));
}

TEST_P(Devices, AnotherProcessWritesAndRecords) {
  auto memory = device_->Allocate(4096);
  auto event = device_->MakeEvent();
  ASSERT_TRUE(memory && event);
  const float begun = 2;
  ASSERT_TRUE(device_->CopyIn(**memory, 400, &begun, 4));
  const auto handle = device_->Export(**memory);
  const auto of_event = device_->ExportEvent(**event);
  ASSERT_TRUE(handle && of_event);
  EXPECT_EQ(handle->bytes, 4096);
  ASSERT_TRUE((*event)->Record());
  EXPECT_EQ(OpenInPeer(GetParam().for_peer(), *handle, *of_event), 0);
  float value = 0;
  ASSERT_TRUE(device_->CopyOut(**memory, 800, &value, 4));
  EXPECT_EQ(value, 5);
}

TEST_P(Devices, AnyThreadFrees) {
  if (device_->kind() == DeviceKind::kHost) GTEST_SKIP() << "a descriptor keeps its memory";
  auto memory = device_->Allocate(int64_t{8} << 20);
  auto event = device_->MakeEvent();
  ASSERT_TRUE(memory && event);
  const auto handle = device_->Export(**memory);
  const auto of_event = device_->ExportEvent(**event);
  ASSERT_TRUE(handle && of_event);
  std::thread([&] { memory->reset(); }).join();
  constexpr int kMemoryNotOpened = 2;
  EXPECT_EQ(OpenInPeer(GetParam().for_peer(), *handle, *of_event), kMemoryNotOpened);
  std::thread([&] {
    EXPECT_TRUE((*event)->Record());
    event->reset();
    device_.reset();
  }).join();
}

TEST_P(Devices, HandlesOfAnotherKindAreRefused) {
  DeviceHandle wrong{
      .kind = device_->kind() == DeviceKind::kHost ? DeviceKind::kCuda : DeviceKind::kHost,
      .bytes = 8};
  EXPECT_EQ(device_->Open(wrong).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(device_->OpenEvent(wrong).error().code, ErrorCode::kInvalidArgument);
  wrong.kind = device_->kind();
  EXPECT_FALSE(device_->Open(wrong));
}

INSTANTIATE_TEST_SUITE_P(All, Devices,
                         testing::Values(DeviceCase{"Host", [] { return MakeHostDevice(); },
                                                    [] { return std::string("host"); }},
                                         DeviceCase{"FakeCuda",
                                                    [] {
                                                      auto opened = OpenCudaDevice(1, FakeDriver());
                                                      EXPECT_TRUE(opened) << opened.error().message;
                                                      return opened ? std::move(*opened) : nullptr;
                                                    },
                                                    [] { return "1:" + FakeDriver(); }},
                                         DeviceCase{"Cuda",
                                                    []() -> std::unique_ptr<Device> {
                                                      auto opened = OpenCudaDevice(0);
                                                      return opened ? std::move(*opened) : nullptr;
                                                    },
                                                    [] { return std::string("0:libcuda.so.1"); }}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(HostDeviceTest, HandlesThatClaimMoreThanThereIsAreRefused) {
  const auto device = MakeHostDevice();
  auto memory = device->Allocate(100);
  ASSERT_TRUE(memory);
  auto handle = device->Export(**memory);
  ASSERT_TRUE(handle);
  handle->bytes = 1 << 20;
  EXPECT_THAT(device->Open(*handle).error().message,
              HasSubstr("the handle says 1048576 bytes, its memory has 4096"));
  EXPECT_EQ(device->OpenEvent(*device->Export(**memory)).error().message,
            "the handle is of no event");
}

TEST(CudaDeviceTest, WhatIsNotThereIsNamed) {
  EXPECT_THAT(OpenCudaDevice(0, "libno-such-driver.so").error().message,
              HasSubstr("libno-such-driver.so"));
  EXPECT_EQ(OpenCudaDevice(0, "libno-such-driver.so").error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(OpenCudaDevice(0, "libm.so.6").error().message, HasSubstr("libm.so.6 has no cu"));
  EXPECT_EQ(OpenCudaDevice(2, FakeDriver()).error().message, "CUDA device 2: this host has 2");
  auto device = OpenCudaDevice(0, FakeDriver());
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->name(), "Fake GPU 0");
  const auto full = (*device)->Allocate(int64_t{1} << 30);
  EXPECT_EQ(full.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(full.error().message,
            "1073741824 bytes of Fake GPU 0: cuMemAlloc: error 2 (out of memory)");
  // As with CUDA, who exported a handle does not open it.
  auto memory = (*device)->Allocate(64);
  ASSERT_TRUE(memory);
  auto handle = (*device)->Export(**memory);
  ASSERT_TRUE(handle);
  EXPECT_THAT((*device)->Open(*handle).error().message, HasSubstr("cuIpcOpenMemHandle: error 201"));
}

// Threads that ask for the first time at once: each process has one chance to get it wrong.
TEST(CudaPointersProcessTest, WhoLooksWhileAnotherFindsTheDriverHasItToo) {
  if (CudaPointers::OfThisProcess() != nullptr) GTEST_SKIP() << "the true driver has been loaded";
  const auto all_find = [] {
    if (!OpenCudaDevice(1, test_support::FakeCudaFolder() + "/libcuda.so.1")) return false;
    std::atomic<bool> go = false;
    std::atomic<int> found = 0;
    std::vector<std::thread> threads;
    constexpr int kThreads = 4;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        if (CudaPointers::OfThisProcess() != nullptr) ++found;
      });
    go = true;
    for (std::thread& thread : threads) thread.join();
    return found == kThreads;
  };
  for (int i = 0; i < 300; ++i) {
    const pid_t child = test_support::QuietFork();
    if (child == 0) _exit(all_find() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "process " << i;
  }
}

// In a process of its own: the driver that is found first is kept.
TEST(CudaPointersTest, WhatAnAddressIsTheDriverSays) {
  if (CudaPointers::OfThisProcess() != nullptr) GTEST_SKIP() << "the true driver has been loaded";
  const auto look = [] {
    const std::string library = test_support::FakeCudaFolder() + "/libcuda.so.1";
    auto device = OpenCudaDevice(1, library);
    auto memory = device ? (*device)->Allocate(4096) : tl::unexpected(device.error());
    CudaPointers* cuda = CudaPointers::OfThisProcess();
    if (!memory || cuda == nullptr || CudaPointers::OfThisProcess() != cuda) return 1;
    auto* address = reinterpret_cast<char*>((*memory)->address());
    std::array<char, 16> host{"of the host"}, back{};
    if (!cuda->IsOfDevice(address) || !cuda->IsOfDevice(address + 4095)) return 2;
    if (cuda->IsOfDevice(host.data()) || cuda->IsOfDevice(nullptr)) return 3;
    if (!cuda->CopyToDevice(address + 100, host.data(), 16)) return 4;
    if (!cuda->CopyToHost(back.data(), address + 100, 16) || back != host) return 5;
    if (!cuda->WaitFor(address)) return 6;
    const Status refused = cuda->CopyToHost(back.data(), host.data(), 16);
    if (refused || refused.error().code != ErrorCode::kInvalidArgument) return 7;
    if (!cuda->Pin(host.data(), 16, address) || cuda->Pin(host.data(), 16, address)) return 8;
    if (cuda->IsOfDevice(host.data())) return 9;  // pinned, but of the host
    cuda->Unpin(host.data());
    if (!cuda->Pin(host.data(), 16, address)) return 10;
    cuda->Unpin(host.data());
    // What was current in this thread (nothing) is so again.
    uint64_t pointer = 0;
    void* driver = dlopen(library.c_str(), RTLD_NOW);
    const auto allocate =
        reinterpret_cast<int (*)(uint64_t*, size_t)>(dlsym(driver, "cuMemAlloc_v2"));
    constexpr int kNoContext = 201;
    return allocate(&pointer, 16) == kNoContext ? 0 : 11;
  };
  EXPECT_EXIT(std::_Exit(look()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tutti::ipc
