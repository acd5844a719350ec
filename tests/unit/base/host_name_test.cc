#include "tutti/base/host_name.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(HostName, EndsAtTheFirstDot) {
  EXPECT_EQ(ShortHostName("node1.cluster.example"), "node1");
  EXPECT_EQ(ShortHostName("node1"), "node1");
  EXPECT_EQ(ShortHostName(".example"), "");
  const std::string here = ShortHostName();
  EXPECT_FALSE(here.empty());
  EXPECT_EQ(here, ShortHostName(here));
}

}  // namespace
}  // namespace tutti
