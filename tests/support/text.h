// Files and texts of tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

namespace tutti::test_support {

// The test fails where there is none.
inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Among the temporary files, and no other process's of tests.
inline std::string OwnPath(const std::string& name) {
  return testing::TempDir() + "tutti_" + std::to_string(getpid()) + "_" + name;
}

// The first `from` replaced; the test fails where there is none.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace tutti::test_support
