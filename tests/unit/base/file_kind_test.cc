#include "tutti/base/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tutti {
namespace {

using testing::HasSubstr;

std::string Binary(char version) {
  std::string text(kBinaryMagic);
  text += version;
  text.append(3, '\0');
  return text.append("whatever follows");
}

TEST(FileKind, IsToldByContents) {
  struct Row {
    std::string contents;
    FileKind kind;
  };
  const std::vector<Row> rows{
      {R"({"format": "tutti-topology", "version": 1})", FileKind::kTopology},
      {R"({"format":"tutti-schedule","transfers":[]})", FileKind::kSchedule},
      {R"({"format":"tutti-routing"})", FileKind::kRouting},
      {R"({"format":"tutti-flow"})", FileKind::kFlow},
      // Keys stand in any order, and only the outermost object's counts.
      {"\xef\xbb\xbf\n {\"topology\": {\"format\": \"tutti-topology\", \"a\": [1, {}]}, \"x\": "
       "\"format\", \"y\\\"\": \",\", \"format\"\t: \"tutti-routing\"}",
       FileKind::kRouting},
      {R"({"a": {"format": "tutti-topology"}})", FileKind::kUnknown},
      {R"({"format": "of others"})", FileKind::kUnknown},
      {R"({"format": )", FileKind::kUnknown},
      {R"({"format": "tutti-sched)", FileKind::kUnknown},
      {R"(["format", "tutti-routing"])", FileKind::kUnknown},
      {Binary(1), FileKind::kSchedule},
      {Binary(2), FileKind::kSymmetricSchedule},
      {Binary(3), FileKind::kRouting},
      // Its reader says that it does not know the version, or what was damaged.
      {Binary(4), FileKind::kSchedule},
      {"\x89TT", FileKind::kSchedule},
      {"<algo name=\"x\">", FileKind::kMscclXml},
      {"{\"name\": \"a\", \"gpus\": []}", FileKind::kMscclppPlan},
      {"  <?xml version=\"1.0\"?>", FileKind::kMscclXml},
      {"plan all-gather ranks=4", FileKind::kPlan},
      {"tutti-route-tables 1\n", FileKind::kRoutes},
      {"tutti-routes-per-rank 1\n", FileKind::kRoutes},
      {"# Made by hand\n#\ntutti-workload,1\n", FileKind::kWorkload},
      {"SQLite format 3", FileKind::kDatabase},
      {"0,1\n1,0\n", FileKind::kUnknown},
      {"# only a comment", FileKind::kUnknown},
      {"", FileKind::kUnknown}};
  for (const Row& row : rows) EXPECT_EQ(KindOfContents(row.contents), row.kind) << row.contents;
}

TEST(FileKind, OfFilesWhateverTheirNames) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("tutti_kind_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "x.sched") << R"({"format": "tutti-routing"})";
  EXPECT_EQ(KindOfFile(folder / "x.sched"), FileKind::kRouting);
  EXPECT_EQ(KindOfFile(folder), FileKind::kUnknown);
  EXPECT_EQ(KindOfFile("/dev/null"), FileKind::kUnknown);
  const Result<FileKind> missing = KindOfFile(folder / "missing");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_THAT(missing.error().message, HasSubstr("cannot open for reading: No such file"));
  std::filesystem::remove_all(folder);
}

TEST(FileKind, ErrorsSayWhatAFileIsAndWhoTakesIt) {
  EXPECT_EQ(WrongKind("x", FileKind::kRouting, FileKind::kSchedule).message,
            "x holds a routing, not a schedule; it is for verify, cost, sim and lower");
  EXPECT_EQ(WrongKind("x", FileKind::kPlan, FileKind::kSchedule).message,
            "x holds the text of a plan, not a schedule; no command reads it");
  EXPECT_EQ(WrongKind("x", FileKind::kUnknown, FileKind::kSchedule).message,
            "x holds nothing that Tutti knows, not a schedule");
}

}  // namespace
}  // namespace tutti
