// Buffers on CUDA devices that a daemon allocates and its tenants' processes open.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "running_daemon.h"
#include "support/device_ranks.h"
#include "support/raw_tenant.h"
#include "support/status.h"

namespace tutti::service {
namespace {

using test_support::RawTenant;
using testing::HasSubstr;

// The driver that this process, which the daemon is in, finds from now on.
void LoadFakeDriver() {
  ASSERT_NE(dlopen((test_support::FakeCudaFolder() + "/libcuda.so.1").c_str(), RTLD_NOW), nullptr)
      << dlerror();
}

int64_t MemoryOfTenants(const RunningDaemon& daemon) {
  int64_t bytes = 0;
  const nlohmann::json answer = daemon.Ask("tenants");
  for (const auto& tenant : answer["tenants"]) bytes += tenant["memory_bytes"].get<int64_t>();
  return bytes;
}

constexpr const char* kFirstDevice = "00a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf";

TEST(DaemonDevicesProcessTest, RanksWorkOnItsMemoryOfDevices) {
  LoadFakeDriver();
  const RunningDaemon daemon("devices");
  test_support::ExpectDeviceRanksAreRight(daemon.socket(), 3, 2);
  Until([&] { return MemoryOfTenants(daemon) == 0; });
}

TEST(DaemonDevicesProcessTest, SeveralThreadsOfTheDaemonShareTheCopiesMemory) {
  LoadFakeDriver();
  const RunningDaemon daemon("devices-shared", {}, true,
                             [](DaemonOptions& options) { options.runtimes = 3; });
  test_support::ExpectDeviceRanksAreRight(daemon.socket(), 4, 2);
}

TEST(DaemonDevicesTest, MemoryOfADeviceIsInBlocksAndCountsOnce) {
  LoadFakeDriver();
  constexpr int64_t kBlock = int64_t{2} << 20;
  const RunningDaemon daemon("devices-quota",
                             {{.name = "blue", .token = "b", .memory_bytes = 3 * kBlock}});
  {
    const RawTenant tenant(daemon.socket(), "b");
    ASSERT_TRUE(tenant.is_welcome());
    const ipc::Packet first =
        tenant.AskOf({.kind = ipc::Kind::kAllocate, .words = {100}, .text = kFirstDevice});
    ASSERT_EQ(first.kind, ipc::Kind::kAllocated) << first.text;
    EXPECT_EQ(first.words[1], static_cast<uint64_t>(kBlock));
    EXPECT_EQ(first.text.size(), 64U);  // its handle
    EXPECT_EQ(MemoryOfTenants(daemon), kBlock);
    const ipc::Packet second =
        tenant.AskOf({.kind = ipc::Kind::kAllocate, .words = {kBlock + 1}, .text = kFirstDevice});
    ASSERT_EQ(second.kind, ipc::Kind::kAllocated) << second.text;
    EXPECT_EQ(MemoryOfTenants(daemon), 3 * kBlock);
    const ipc::Packet third =
        tenant.AskOf({.kind = ipc::Kind::kAllocate, .words = {1}, .text = kFirstDevice});
    EXPECT_EQ(third.kind, ipc::Kind::kRefused);
    EXPECT_THAT(third.text, HasSubstr("0 of its quota of 6291456 bytes left"));
    EXPECT_EQ(tenant.AskOf({.kind = ipc::Kind::kFree, .words = {first.words[0]}}).kind,
              ipc::Kind::kFreed);
    Until([&] { return MemoryOfTenants(daemon) == 2 * kBlock; });
  }
  Until([&] { return MemoryOfTenants(daemon) == 0; });
}

TEST(DaemonDevicesTest, WhatCannotBeAllocatedIsRefusedAndCostsNothing) {
  LoadFakeDriver();
  const RunningDaemon daemon("devices-refused");
  const RawTenant tenant(daemon.socket());
  ASSERT_TRUE(tenant.is_welcome());
  for (const auto& [uuid, bytes, said] :
       std::vector<std::tuple<std::string, uint64_t, std::string>>{
           {"00a1", 64, "CUDA device 00a1: not among the 2"},
           {std::string(3000, 'x'), 64, "not among the 2"},
           {kFirstDevice, uint64_t{1} << 30,
            "of Fake GPU 0: cuMemAlloc: error 2 (out of memory)"}}) {
    const ipc::Packet refused =
        tenant.AskOf({.kind = ipc::Kind::kAllocate, .words = {bytes}, .text = uuid});
    EXPECT_EQ(refused.kind, ipc::Kind::kRefused);
    EXPECT_THAT(refused.text, HasSubstr(said));
  }
  Until([&] { return MemoryOfTenants(daemon) == 0; });
  EXPECT_EQ(tenant.AskOf({.kind = ipc::Kind::kAllocate, .words = {64}}).kind,
            ipc::Kind::kAllocated);
}

}  // namespace
}  // namespace tutti::service
