#include "tutti/base/leftovers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class LeftoversTest : public testing::Test {
 protected:
  LeftoversTest() { fs::create_directory(folder_); }
  ~LeftoversTest() override {
    ResetCancel();
    fs::remove_all(folder_);
  }
  std::string Path(const char* name) const { return (folder_ / name).string(); }
  ptrdiff_t NumFiles() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / ("leftovers." + std::to_string(::getpid()));
};

TEST_F(LeftoversTest, AFileBeingWrittenIsRemovedAndTheOldOneStays) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old"));
  Result<AtomicFile> file = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(file);
  AtomicFile moved = std::move(*file);
  ASSERT_TRUE(moved.Write("half of the new"));
  EXPECT_EQ(NumFiles(), 2);
  RemoveLeftovers();
  EXPECT_EQ(NumFiles(), 1);
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
}

TEST_F(LeftoversTest, WrittenFilesAreNone) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "whole"));
  RemoveLeftovers();
  EXPECT_EQ(ReadFile(Path("a")).value(), "whole");
}

TEST_F(LeftoversTest, MoreThanThereIsRoomForAreNoFault) {
  for (int round = 0; round < 3; ++round) {  // the room is given back
    std::vector<TemporaryName> names;
    for (int i = 0; i < 1000; ++i) names.emplace_back(Path("x") + std::to_string(i));
  }
  ASSERT_TRUE(WriteFileAtomically(Path("y"), ""));
  const TemporaryName name(Path("y"));
  RemoveLeftovers();
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(LeftoversTest, StartedProgramsAreKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const StartedProgram started(child);
  RemoveLeftovers();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(LeftoversTest, NothingIsWrittenAfterAnInterrupt) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old"));
  RequestCancel();
  const Status written = WriteFileAtomically(Path("a"), "new");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  EXPECT_EQ(NumFiles(), 1);
}

}  // namespace
}  // namespace tutti
