#include "tutti/design/workload.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

Design Of(int32_t tl, Rational tb) {
  Design design;
  design.ranks = 1024;
  design.degree = 4;
  design.tl = tl;
  design.tb = std::move(tb);
  return design;
}

// Table 4: line(circulant(16,3,4),3) at alpha = 10 us, 1 MiB and 100 Gbit/s.
TEST(Workload, Table4) {
  Workload workload;
  workload.sizes = {{1 << 20, 1}};
  const Design design = Of(6, Rational(1044, 1024));
  EXPECT_NEAR(*ExpectedSeconds(design, workload), 291.0e-6, 0.1e-6);
  workload.collective = CollectiveKind::kAllGather;
  EXPECT_NEAR(*ExpectedSeconds(design, workload), 145.5e-6, 0.05e-6);
  workload.collective = CollectiveKind::kAllToAll;
  EXPECT_NEAR(*ExpectedSeconds(design, workload, 8.12e-4), 403.5e-6, 0.3e-6);
  EXPECT_FALSE(ExpectedSeconds(design, workload));
  workload.collective = CollectiveKind::kBroadcast;
  EXPECT_FALSE(ExpectedSeconds(design, workload));
}

TEST(Workload, SizesMayBeADistribution) {
  Workload workload;
  workload.alpha_s = 0;
  workload.bandwidth = 1e6;
  workload.sizes = *ParseSizeDistribution("1MB:0.75,5MB:0.25");
  EXPECT_DOUBLE_EQ(*ExpectedSeconds(Of(1, Rational(1)), workload), 4);
  workload.sizes = *ParseSizeDistribution("1MB,5MB");
  EXPECT_DOUBLE_EQ(*ExpectedSeconds(Of(1, Rational(1)), workload), 6);
}

TEST(Workload, RefusesWhatIsNoDistribution) {
  for (const char* text : {"", "1MiB:", "1MiB:0", "1MiB:-1", "1MiB:x", "0", "1MiB,,2MiB", "1MiB,"})
    EXPECT_FALSE(ParseSizeDistribution(text)) << text;
}

}  // namespace
}  // namespace tutti
