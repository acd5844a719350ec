// Groups of ranks in schedule and routing files: one fault a row.
#include <gtest/gtest.h>

#include <string>

#include "tutti/base/file.h"
#include "tutti/store/routing_store.h"
#include "tutti/store/store.h"
#include "tutti/verify/verifier.h"

namespace tutti::store_groups_test {
namespace {

std::string Read(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.has_value()) << path;
  return text.value_or("");
}

std::string With(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(StoreGroupsTest, AFileOfTwoGroupsIsReadAndRight) {
  const Result<ScheduleFile> file = ReadScheduleFile("tests/data/sched/ring4_groups_v1.sched.json");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const Collective& collective = file->schedule.collective;
  ASSERT_EQ(collective.groups().size(), 2U);
  EXPECT_EQ(collective.groups()[0].members, (std::vector<NodeId>{NodeId{2}, NodeId{0}}));
  EXPECT_EQ(collective.others(), Others::kForward);
  EXPECT_TRUE(Verify(file->topology, collective, file->schedule).verified());
  const Result<ScheduleFile> again =
      ScheduleFromJson(ScheduleToJson(file->topology, file->schedule));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->schedule, file->schedule);
}

struct BadFile {
  const char *from, *to, *message;
};

TEST(StoreGroupsTest, SchedulesNameTheFault) {
  const std::string good = Read("tests/data/sched/ring4_groups_v1.sched.json");
  const BadFile kBad[] = {
      {"[[2, 0], [1, 3]]", "[]", "collective.groups must be lists"},
      {"[[2, 0], [1, 3]]", "[2, 0]", "collective.groups must be lists"},
      {"[[2, 0], [1, 3]]", "\"0-3\"", "collective.groups must be lists"},
      {"[2, 0]", "[2]", "at least 2 ranks"},
      {"[2, 0]", "[2, 4]", "of 0 .. 3"},
      {"[2, 0]", "[2, -1]", "of 0 .. 3"},
      {"[2, 0]", "[2, 0.5]", "of 0 .. 3"},
      {"[2, 0]", "[2, 2]", "rank 2 is in it twice"},
      {"[1, 3]]", "[1, 3]], \"others\": \"rest\"", "others"},
      {"[1, 3]]", "[1, 3]], \"root\": 0", "unknown key 'root'"},
      {"\"groups\": [[2, 0], [1, 3]]", "\"others\": \"idle\"", "idle"},
      {"\"shard\": 3", "\"shard\": 4", "shard"},
  };
  for (const BadFile& bad : kBad) {
    const Result<ScheduleFile> file = ScheduleFromJson(With(good, bad.from, bad.to));
    ASSERT_FALSE(file.has_value()) << bad.to;
    EXPECT_EQ(file.error().code, ErrorCode::kCorrupt) << bad.to;
    EXPECT_NE(file.error().message.find(bad.message), std::string::npos) << file.error().message;
  }
}

TEST(StoreGroupsTest, RoutingsNameTheFault) {
  const std::string good = Read("fuzz/corpus/store_routing_json_fuzz/groups.json");
  ASSERT_TRUE(RoutingFromJson(good).has_value()) << RoutingFromJson(good).error().message;
  const BadFile kBad[] = {
      {"[[0, 2]]", "[[0]]", "groups must be lists"},
      {"[[0, 2]]", "[[0, 3]]", "groups must be lists"},
      {"[[0, 2]]", "[[0, 0]]", "twice"},
      {"\"groups\": [[0, 2]]",
       "\"groups\": [[0, 2]], \"demand\": [[0, 0, 1], [0, 0, 0], [1, 0, 0]]", "and a demand"},
  };
  for (const BadFile& bad : kBad) {
    const Result<RoutingFile> file = RoutingFromJson(With(good, bad.from, bad.to));
    ASSERT_FALSE(file.has_value()) << bad.to;
    EXPECT_NE(file.error().message.find(bad.message), std::string::npos) << file.error().message;
  }
}

}  // namespace
}  // namespace tutti::store_groups_test
