#include "tutti/base/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Heard {
  std::vector<std::string> output, errors;
  OnProcessLine Listener() {
    return [this](std::string_view line, ProcessStream stream) {
      (stream == ProcessStream::kOutput ? output : errors).emplace_back(line);
    };
  }
};

TEST(RunProcess, HandsOverLinesOfBothStreams) {
  Heard heard;
  const Result<ProcessEnd> end =
      RunProcess({"sh", "-c", "echo one; echo two >&2; printf three"}, heard.Listener());
  ASSERT_TRUE(end.has_value()) << end.error().message;
  EXPECT_TRUE(end->ok());
  EXPECT_THAT(heard.output, ElementsAre("one", "three"));
  EXPECT_THAT(heard.errors, ElementsAre("two"));
}

TEST(RunProcess, GivesInputOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{5}, size_t{1} << 20}) {
    Heard heard;
    const Result<ProcessEnd> end =
        RunProcess({"wc", "-c"}, heard.Listener(), {.input = std::string(size, 'x')});
    ASSERT_TRUE(end.has_value());
    EXPECT_THAT(heard.output, ElementsAre(std::to_string(size)));
  }
}

TEST(RunProcess, SaysHowItEnded) {
  const auto how = [](const char* script) {
    return RunProcess({"sh", "-c", script}, [](std::string_view, ProcessStream) {})->ToText();
  };
  EXPECT_EQ(how("exit 3"), "status 3");
  EXPECT_EQ(how("kill -9 $$"), "signal 9");
}

TEST(RunProcess, NamesWhatIsNotThere) {
  const auto ignore = [](std::string_view, ProcessStream) {};
  const Result<ProcessEnd> end = RunProcess({"no-such-program"}, ignore, {.package = "such"});
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(end.error().message, HasSubstr("apt-get install such"));
}

// Whether nothing of the group is left. What was killed stays until it has been waited for.
bool IsGone(pid_t group) {
  for (int look = 0; look < 6000; ++look) {
    if (kill(-group, 0) != 0 && errno == ESRCH) return true;
    usleep(10'000);
  }
  return false;
}

// Also what it started, and what does not listen.
TEST(RunProcess, EndsWithCancelledWork) {
  for (const char* script : {"echo $$; sleep 100", "trap '' TERM; echo $$; sleep 100 & wait"}) {
    SCOPED_TRACE(script);
    pid_t group = 0;
    const Result<ProcessEnd> end =
        RunProcess({"sh", "-c", script}, [&](std::string_view line, ProcessStream) {
          group = std::stoi(std::string(line));
          RequestCancel();
        });
    ResetCancel();
    ASSERT_FALSE(end.has_value());
    EXPECT_EQ(end.error().code, ErrorCode::kCancelled);
    ASSERT_GT(group, 0);
    EXPECT_TRUE(IsGone(group));
  }
}

TEST(FindProgram, NamesWhatWasLookedForAndWhatToDo) {
  const Result<std::string> found = FindProgram("no-such-program", "build it");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(found.error().message, HasSubstr("no program 'no-such-program' beside "));
  EXPECT_THAT(found.error().message, HasSubstr(": build it"));
  EXPECT_TRUE(FindProgram("base_test", "").has_value());
}

TEST(Fnv1a, IsThePublishedOne) {
  const auto of = [](std::string_view text) {
    Fnv1a hash;
    hash.AddBytes(text);
    return hash.value();
  };
  EXPECT_EQ(of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(of("foobar"), 0x85944171f73967e8u);
  Fnv1a words;
  words.AddWord(0x72616f6f66);  // "fooar" is what its bytes spell, and three zeros
  EXPECT_EQ(words.value(), of(std::string_view("fooar\0\0\0", 8)));
}

}  // namespace
}  // namespace tutti
