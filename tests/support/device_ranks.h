// The program device_ranks: ranks with buffers on CUDA devices, over a driver that keeps their memory in that of the host.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/process.h"

namespace tutti::test_support {

inline std::string FakeCudaFolder() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" /
          "fake")
      .string();
}

// `service`: the socket of a daemon, or none.
inline void ExpectDeviceRanksAreRight(const std::string& service, int ranks, int devices) {
  const Result<std::string> program = FindProgram("device_ranks", "it is built with the tests");
  ASSERT_TRUE(program) << program.error().message;
  std::string said;
  // An empty name is as none.
  const auto ended = RunProcess(
      {"env", "LD_LIBRARY_PATH=" + FakeCudaFolder(), "TUTTI_SERVICE=" + service, *program,
       std::to_string(ranks), std::to_string(devices)},
      [&said](std::string_view line, ProcessStream) { said += std::string(line) + "\n"; });
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_TRUE(ended->ok()) << ended->ToText() << ":\n" << said;
  EXPECT_EQ(said, std::to_string(ranks) + " ranks: every result is right\n");
}

}  // namespace tutti::test_support
