#include "tutti/base/cancel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tutti/base/file.h"

namespace tutti {
namespace {

TEST(Cancel, InputOfAPipeIsAwaitedUntilItHasEnded) {
  const std::string path =
      testing::TempDir() + "cancel_test." + std::to_string(::getpid()) + ".fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ASSERT_FALSE(InputIsAwaited());
  Result<std::string> read;
  std::thread reader([&] { read = ReadFile(path); });
  while (!InputIsAwaited()) std::this_thread::yield();
  EXPECT_TRUE(WriteFileAtomically(path, "all of it"));
  reader.join();
  EXPECT_EQ(read.value_or("?"), "all of it");
  EXPECT_FALSE(InputIsAwaited());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tutti
