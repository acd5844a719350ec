// In which order commands, and the copies before and after them, are done. The device keeps its memory in that of the host.
#include "copied_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tutti/ipc/device.h"

namespace tutti::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Of the host, and fails where it is told to.
class FailingDevice final : public ipc::Device {
 public:
  explicit FailingDevice(bool& fails) : fails_(fails) {}
  ipc::DeviceKind kind() const override { return host_->kind(); }
  std::string name() const override { return "failing"; }
  std::string uuid() const override { return "failing"; }
  Result<std::unique_ptr<ipc::DeviceMemory>> Allocate(int64_t bytes) override {
    return host_->Allocate(bytes);
  }
  Result<std::unique_ptr<ipc::DeviceMemory>> AllocateStaging(int64_t bytes) override {
    return host_->AllocateStaging(bytes);
  }
  Result<ipc::DeviceHandle> Export(const ipc::DeviceMemory& memory) override {
    return host_->Export(memory);
  }
  Result<std::unique_ptr<ipc::DeviceMemory>> Open(const ipc::DeviceHandle& handle) override {
    return host_->Open(handle);
  }
  Result<std::unique_ptr<ipc::DeviceEvent>> MakeEvent() override { return host_->MakeEvent(); }
  Result<ipc::DeviceHandle> ExportEvent(const ipc::DeviceEvent& event) override {
    return host_->ExportEvent(event);
  }
  Result<std::unique_ptr<ipc::DeviceEvent>> OpenEvent(const ipc::DeviceHandle& handle) override {
    return host_->OpenEvent(handle);
  }
  Status CopyIn(ipc::DeviceMemory& to, int64_t offset, const void* from, int64_t bytes) override {
    if (fails_) return MakeError(ErrorCode::kIo, "cuMemcpyHtoD: error 700");
    return host_->CopyIn(to, offset, from, bytes);
  }
  Status CopyOut(const ipc::DeviceMemory& from, int64_t offset, void* to, int64_t bytes) override {
    if (fails_) return MakeError(ErrorCode::kIo, "cuMemcpyDtoH: error 700");
    return host_->CopyOut(from, offset, to, bytes);
  }
  Status Reduce(ipc::DeviceMemory& to, int64_t to_offset, const ipc::DeviceMemory& from,
                int64_t from_offset, int64_t count, int64_t element_bytes,
                ipc::CombineKernel combine) override {
    return host_->Reduce(to, to_offset, from, from_offset, count, element_bytes, combine);
  }

 private:
  std::unique_ptr<ipc::Device> host_ = ipc::MakeHostDevice();
  bool& fails_;
};

class CopiedCommandsTest : public testing::Test {
 protected:
  CopiedCommandsTest() { Restart(0); }

  void Restart(uint64_t completed) {
    copied_ = std::make_shared<CopiedCommands>(
        devices_, completed,
        CopiedCommands::Owner{
            .issue =
                [this](Command command) {
                  done_.push_back("issue " + std::to_string(command.bytes));
                  if (on_issue_) on_issue_();
                },
            .show = [this](uint64_t count,
                           uint32_t) { done_.push_back("show " + std::to_string(count)); },
            .fail = [this](const Error& why) { done_.push_back("fail: " + why.message); }});
  }
  std::shared_ptr<TenantBuffer> MakeBuffer(const std::string& text) {
    auto on = std::make_shared<OnDevice>();
    on->device = std::make_shared<FailingDevice>(fails_);
    on->memory = std::move(*on->device->Allocate(64));
    on->staging = std::move(*on->device->AllocateStaging(64));
    std::memcpy(on->memory->data(), text.data(), text.size());
    auto buffer = std::make_shared<TenantBuffer>(tenant_, 64, returns_);
    buffer->Fill(std::move(on));
    return buffer;
  }
  static std::string OnHost(const TenantBuffer& buffer, size_t bytes) {
    return {reinterpret_cast<const char*>(buffer.data()), bytes};
  }
  static std::string OnDeviceOf(const TenantBuffer& buffer, size_t bytes) {
    return {reinterpret_cast<const char*>(buffer.on_device()->memory->data()), bytes};
  }
  // Its `bytes` name it.
  static CommandOnDevices Named(int64_t name, std::vector<CommandOnDevices::Part> reads = {},
                                std::vector<CommandOnDevices::Part> writes = {}) {
    CommandOnDevices command;
    command.reads = std::move(reads);
    command.writes = std::move(writes);
    command.command.bytes = name;
    return command;
  }
  // Until so much was done.
  void Until(size_t done) {
    while (done_.size() < done) {
      devices_.RunFinished();
      std::this_thread::yield();
    }
  }

  Tenant tenant_;
  MemoryReturns returns_;
  bool fails_ = false;
  ServedDevices devices_{[] {}};
  std::vector<std::string> done_;
  std::function<void()> on_issue_;
  std::shared_ptr<CopiedCommands> copied_;
};

TEST_F(CopiedCommandsTest, ReadsAreCopiedBeforeAndWritesAfter) {
  const auto buffer = MakeBuffer("abcdefgh");
  copied_->Add(1, Named(1, {{buffer, 2, 4}}, {{buffer, 4, 3}}));
  EXPECT_FALSE(copied_->is_idle());
  Until(1);
  EXPECT_THAT(done_, ElementsAre("issue 1"));
  EXPECT_EQ(OnHost(*buffer, 8).substr(2, 4), "cdef");
  std::memcpy(buffer->data(), "ABCDEFGH", 8);
  copied_->Completed(1, 0);
  Until(2);
  EXPECT_THAT(done_, ElementsAre("issue 1", "show 1"));
  EXPECT_EQ(OnDeviceOf(*buffer, 8), "abcdEFGh");  // what it wrote, and no more
  EXPECT_TRUE(copied_->is_idle());
}

TEST_F(CopiedCommandsTest, TheNextReadsWhatTheLastWrote) {
  const auto buffer = MakeBuffer("old");
  on_issue_ = [&] {
    if (done_.size() == 1) std::memcpy(buffer->data(), "new", 3);
  };
  copied_->Add(1, Named(1, {}, {{buffer, 0, 3}}));
  copied_->Add(2, Named(2, {{buffer, 0, 3}}));
  EXPECT_EQ(copied_->size(), 2U);
  EXPECT_THAT(done_, ElementsAre("issue 1"));
  copied_->Completed(1, 0);
  Until(3);
  EXPECT_THAT(done_, ElementsAre("issue 1", "show 1", "issue 2"));
  EXPECT_EQ(OnHost(*buffer, 3), "new");
  copied_->Completed(2, 0);
  EXPECT_EQ(done_.back(), "show 2");
}

TEST_F(CopiedCommandsTest, EarlierCommandsWithoutCopiesAreWaitedFor) {
  Restart(5);
  const auto buffer = MakeBuffer("abc");
  copied_->Add(8, Named(8, {{buffer, 0, 3}}));  // 6 and 7 run
  copied_->Add(9, Named(9));
  EXPECT_THAT(done_, ElementsAre());
  copied_->Completed(6, 0);
  EXPECT_THAT(done_, ElementsAre("show 6"));
  copied_->Completed(7, 0);
  Until(3);
  EXPECT_THAT(done_, ElementsAre("show 6", "show 7", "issue 8"));
  copied_->Completed(8, 0);
  copied_->Completed(9, 0);
  EXPECT_THAT(done_, ElementsAre("show 6", "show 7", "issue 8", "show 8", "issue 9", "show 9"));
  EXPECT_TRUE(copied_->is_idle());
}

TEST_F(CopiedCommandsTest, ACopyThatFailsIsSaidAndNothingIsIssued) {
  const auto buffer = MakeBuffer("abc");
  fails_ = true;
  copied_->Add(1, Named(1, {{buffer, 0, 3}}));
  copied_->Add(2, Named(2, {{buffer, 0, 3}}));
  Until(1);
  EXPECT_THAT(done_, ElementsAre("fail: cuMemcpyDtoH: error 700"));
  EXPECT_TRUE(copied_->is_idle());
}

TEST_F(CopiedCommandsTest, WhatCouldNotBeWrittenBackIsNotShown) {
  const auto buffer = MakeBuffer("abc");
  copied_->Add(1, Named(1, {}, {{buffer, 0, 3}}));
  fails_ = true;
  copied_->Completed(1, 0);
  Until(2);
  EXPECT_THAT(done_, ElementsAre("issue 1", "fail: cuMemcpyHtoD: error 700"));
}

TEST_F(CopiedCommandsTest, ARankThatHasLeftHearsOfNoCopy) {
  const auto buffer = MakeBuffer("abc");
  copied_->Add(1, Named(1, {{buffer, 0, 3}}));
  copied_.reset();
  bool heard = false;
  devices_.CopierOf(*buffer->on_device()->device).Add([&heard]() -> Worker::Finish {
    return [&heard] { heard = true; };
  });
  while (!heard) devices_.RunFinished();
  EXPECT_THAT(done_, ElementsAre());
}

}  // namespace
}  // namespace tutti::service
