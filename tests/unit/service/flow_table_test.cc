#include "flow_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gate.h"

namespace tutti::service {
namespace {

using testing::HasSubstr;

TEST(FlowTableTest, SaysWhichWayConnectionsTake) {
  const auto table = FlowTable::Parse(R"({"flows": [
      {"from": 0, "to": 2, "channel": 1, "source": "10.1.0.2", "target": "10.1.2.1", "ports": [50000, 1000],
       "others": [[51000, 1000], [52000, 10]]},
      {"from": 2, "to": 0}]})",
                                      3);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->size(), 2u);
  const FlowPath* path = table->Find(0, 2, 1);
  ASSERT_NE(path, nullptr);
  EXPECT_EQ(path->source.address, 0x0a010002u);
  EXPECT_EQ(path->target, 0x0a010201u);
  EXPECT_EQ(path->source.first_port, 50000);
  EXPECT_EQ(path->source.num_ports, 1000);
  // In turn, and from the first one again.
  std::vector<int> firsts;
  for (size_t route = 0; route < 5; ++route) firsts.push_back(path->source.PortsOf(route).first);
  EXPECT_EQ(firsts, (std::vector<int>{50000, 51000, 52000, 50000, 51000}));
  ASSERT_NE(table->Find(2, 0, 0), nullptr);
  EXPECT_EQ(table->Find(2, 0, 0)->source.num_ports, 0);
  EXPECT_EQ(table->Find(0, 2, 0), nullptr);
  EXPECT_TRUE(FlowTable::Parse("", 3)->empty());
}

TEST(FlowTableTest, FaultsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"({"from": 0, "to": 0})", "from and to: wanted two of the ranks 0 to 2"},
      {R"({"from": 0, "to": 3})", "from and to"},
      {R"({"from": -1, "to": 2})", "from and to"},
      {R"({"from": 0})", "from and to"},
      {R"({"from": 0, "to": 1, "channel": -1})", "channel: wanted"},
      {R"({"from": 0, "to": 1, "source": "10.1"})", "source: wanted an IPv4 address"},
      {R"({"from": 0, "to": 1, "target": 7})", "target: wanted an IPv4 address"},
      {R"({"from": 0, "to": 1, "ports": [50000]})", "ports: wanted"},
      {R"({"from": 0, "to": 1, "ports": [0, 10]})", "ports: wanted"},
      {R"({"from": 0, "to": 1, "ports": [65000, 1000]})", "ports: wanted"},
      {R"({"from": 0, "to": 1, "ports": "all"})", "ports: wanted"},
      {R"({"from": 0, "to": 1, "others": [[65000, 1000]]})", "others: wanted"},
      {R"({"from": 0, "to": 1, "others": [50000, 1000]})", "others: wanted"},
      {R"({"from": 0, "to": 1, "others": {}})", "others: wanted"},
      {R"([])", "is no object"},
  };
  for (const auto& [flow, fault] : faults) {
    const auto table = FlowTable::Parse(R"({"flows": [)" + flow + "]}", 3);
    ASSERT_FALSE(table) << flow;
    EXPECT_THAT(table.error().message, HasSubstr("flows[0]: " + fault)) << flow;
  }
  const std::string twice = R"({"from": 0, "to": 1, "channel": 2})";
  EXPECT_THAT(FlowTable::Parse(R"({"flows": [)" + twice + "," + twice + "]}", 3).error().message,
              HasSubstr("flows[1]: 0 -> 1 channel 2 is there twice"));
  for (const char* text : {"7", "[]", "{", R"({"flows": 1})"})
    EXPECT_FALSE(FlowTable::Parse(text, 3)) << text;
}

TEST(GateTest, IsOpenInItsWindowsByTheClock) {
  Gate gate;
  EXPECT_TRUE(gate.IsOpen(5, 5));
  gate.Set({.period_ns = 100, .phase_ns = 30, .length_ns = 20});
  int64_t steady = 1000;
  for (const auto& [real, open] : std::vector<std::pair<int64_t, bool>>{{29, false},
                                                                        {30, true},
                                                                        {49, true},
                                                                        {50, false},
                                                                        {130, true},
                                                                        {150, false},
                                                                        {-70, true},
                                                                        {-71, false}})
    EXPECT_EQ(gate.IsOpen(real, ++steady), open) << real;
  // A window that goes round.
  gate.Set({.period_ns = 100, .phase_ns = 90, .length_ns = 20});
  for (const auto& [real, open] :
       std::vector<std::pair<int64_t, bool>>{{89, false}, {90, true}, {109, true}, {110, false}})
    EXPECT_EQ(gate.IsOpen(real, ++steady), open) << real;
}

// Whatever the clock does, nobody waits for longer than a period.
TEST(GateTest, AClockThatStandsStillOrJumpsEndsInFairSharing) {
  Gate gate;
  gate.Set({.period_ns = 100, .phase_ns = 0, .length_ns = 10});
  EXPECT_FALSE(gate.IsOpen(50, 1));
  EXPECT_FALSE(gate.IsOpen(50, 101));
  EXPECT_TRUE(gate.IsOpen(50, 102));
  EXPECT_TRUE(gate.has_given_up());
  EXPECT_TRUE(gate.IsOpen(60, 103));
  gate.Set({.period_ns = 100, .phase_ns = 0, .length_ns = 10});  // told again
  EXPECT_FALSE(gate.has_given_up());
  EXPECT_FALSE(gate.IsOpen(60, 104));
  EXPECT_TRUE(gate.IsOpen(200, 105));
  gate.Set({});
  EXPECT_TRUE(gate.IsOpen(60, 106));
}

// Shut while those that it follows are busy, but for no longer than its patience; until they have ended then.
TEST(GateTest, FollowsWhoIsBusyForAsLongAsItHasPatience) {
  Gate gate;
  gate.Set({.period_ns = 100, .phase_ns = 0, .length_ns = 1});
  gate.Follow(50);
  EXPECT_FALSE(gate.has_windows());
  EXPECT_TRUE(gate.IsOpen(99, 1, false));
  EXPECT_FALSE(gate.IsOpen(99, 2, true));
  EXPECT_FALSE(gate.IsOpen(99, 52, true));
  EXPECT_TRUE(gate.IsOpen(99, 60, false));
  EXPECT_EQ(gate.closed_ns(), 58);
  EXPECT_FALSE(gate.IsOpen(99, 70, true));
  EXPECT_TRUE(gate.IsOpen(99, 121, true));
  EXPECT_TRUE(gate.has_given_up());
  EXPECT_TRUE(gate.IsOpen(99, 500, true));
  EXPECT_TRUE(gate.IsOpen(99, 501, false));  // it has ended
  EXPECT_FALSE(gate.IsOpen(99, 502, true));
  gate.Set({});
  EXPECT_FALSE(gate.follows());
  EXPECT_TRUE(gate.IsOpen(99, 503, true));
}

TEST(GateTest, WindowsThatCannotBe) {
  EXPECT_TRUE((GateWindows{}.AreValid()));
  EXPECT_TRUE((GateWindows{100, 99, 100}.AreValid()));
  for (const GateWindows& wrong :
       {GateWindows{-1, 0, 1}, GateWindows{100, 100, 1}, GateWindows{100, -1, 1},
        GateWindows{100, 0, 0}, GateWindows{100, 0, 101}})
    EXPECT_FALSE(wrong.AreValid());
}

}  // namespace
}  // namespace tutti::service
