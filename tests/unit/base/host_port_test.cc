#include "tutti/base/host_port.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti {
namespace {

TEST(HostPort, NamesAndAddressesOfBothVersions) {
  struct Row {
    const char* text;
    const char* host;
    std::optional<uint16_t> port;
  };
  for (const Row& row : std::vector<Row>{{"h0", "h0", {}},
                                         {"h0:80", "h0", 80},
                                         {"10.0.0.1:65535", "10.0.0.1", 65535},
                                         {"[fd00::1]", "fd00::1", {}},
                                         {"[::1]:21357", "::1", 21357}}) {
    SCOPED_TRACE(row.text);
    const std::optional<HostPort> parsed = ParseHostPort(row.text);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->host, row.host);
    EXPECT_EQ(parsed->port, row.port);
    if (row.port) {
      EXPECT_EQ(HostPortText(parsed->host, *parsed->port), row.text);
    }
  }
}

TEST(HostPort, RefusesWhatIsNeither) {
  for (const std::string text :
       {"", ":80", "h0:", "h0:0", "h0:65536", "h0:8x", "h0:-1", "fd00::1", "fd00::1:80", "[fd00::1",
        "[]", "[]:80", "[h0]:80", "[::1]80", "[::1]:", "[::1]:0", "[::1]:8:9", "h[0]:80", "a:1:2"})
    EXPECT_FALSE(ParseHostPort(text)) << text;
}

TEST(HostPort, TheHostIsSplitFromWhatIsBehindIt) {
  EXPECT_EQ(SplitBehindHost("[fd00::2]:4")->host, "fd00::2");
  EXPECT_EQ(SplitBehindHost("[fd00::2]:4")->rest, ":4");
  EXPECT_EQ(SplitBehindHost("h1:")->rest, ":");
  EXPECT_EQ(SplitBehindHost("h1")->rest, "");
}

}  // namespace
}  // namespace tutti
