// Buffers on CUDA devices, without a service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/device_ranks.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

TEST(DeviceStagingProcessTest, EveryCallTakesMemoryOfDevices) {
  test_support::ExpectDeviceRanksAreRight("", 3, 2);
}

TEST(DeviceStagingProcessTest, AlsoOfTheOnlyRank) {
  test_support::ExpectDeviceRanksAreRight("", 1, 1);
}

TEST(DeviceStagingTest, ADeviceThatIsNotThereIsNamed) {
  void* memory = nullptr;
  EXPECT_EQ(tuttiMemAllocDevice(&memory, 64, 4711), tuttiInvalidArgument);
  EXPECT_THAT(tuttiGetLastError(nullptr), testing::HasSubstr("CUDA"));
  EXPECT_EQ(tuttiMemAllocDevice(nullptr, 64, 0), tuttiInvalidArgument);
  EXPECT_EQ(memory, nullptr);
}

}  // namespace
}  // namespace tutti
