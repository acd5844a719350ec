// Devices: one suite for the host and for CUDA, whose driver is a fake over host memory, or the true one where there is one.
#include "tutti/ipc/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tutti/base/process.h"

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

}  // namespace
}  // namespace tutti::ipc
