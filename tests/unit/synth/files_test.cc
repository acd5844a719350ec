// Algorithms that use what is known of a network answer the same on its file as on its expression.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "classic_support.h"
#include "support/text.h"
#include "tutti/bounds/bounds.h"
#include "tutti/route/router.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/translations.h"

namespace tutti::classic_test {
namespace {

Topology FromFile(const Topology& topology) {
  Result<Topology> back = TopologyFromJson(TopologyToJson(topology));
  EXPECT_TRUE(back) << (back ? "" : back.error().message);
  return back ? *std::move(back) : topology;
}

void ExpectSameSchedules(const Topology& a, const Topology& b, CollectiveKind kind) {
  for (const Synthesizer& synthesizer : Synthesizers()) {
    // ten takes long, and looks at links only.
    if (synthesizer.on_request_only || synthesizer.name == "ten") continue;
    SCOPED_TRACE(synthesizer.name);
    const Collective collective = CollectiveFor(synthesizer.name, kind, a.num_ranks());
    const Result<Schedule> one = Synthesize(synthesizer.name, a, collective, {});
    const Result<Schedule> other = Synthesize(synthesizer.name, b, collective, {});
    ASSERT_EQ(one.has_value(), other.has_value());
    if (one) {
      EXPECT_EQ(one->transfers, other->transfers);
    } else {
      EXPECT_EQ(one.error().message, other.error().message);
    }
  }
}

void ExpectSameBounds(const Topology& a, const Topology& b, CollectiveKind kind) {
  const Result<Collective> collective = Collective::Make(kind, a.num_ranks());
  ASSERT_TRUE(collective);
  const Result<Bounds> one = ComputeBounds(a, *collective), other = ComputeBounds(b, *collective);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->steps, other->steps);
  EXPECT_EQ(one->latency_ps, other->latency_ps);
  EXPECT_EQ(one->seconds_per_byte, other->seconds_per_byte);
}

void ExpectSameAnswers(const Topology& a, const Topology& b) {
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
    ExpectSameSchedules(a, b, kind);
    ExpectSameBounds(a, b, kind);
  }
  EXPECT_EQ(FindTranslations(a).has_value(), FindTranslations(b).has_value());
  const Router* dor = FindRouter("dor");
  EXPECT_EQ(RunRouter(*dor, a, {}).has_value(), RunRouter(*dor, b, {}).has_value());
}

TEST(NetworksInFiles, GiveTheSameAnswers) {
  for (const char* expression :
       {"torus(3,4)", "mesh(2,3)", "hypercube(3)", "hamming(2,3)", "dgx1", "diamond",
        "line(uniring(2,3))", "power(ring(3),2)", "transpose(genkautz(2,7))",
        "cayley(5,2,4,1,0,0,1)", "bidirectional(genkautz(2,5))", "degree(ring(3),2)",
        "debruijn_mod(2,3)", "unwind(switch2d(3,4,bw=[450,50]GB/s),degree=2)",
        "unwind(rfs(2,2,3),degree=1)", "rfs(2,2,2)", "switch(4)", "torus(3,3,host_bw=60GB/s)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    ExpectSameAnswers(topology, FromFile(topology));
  }
}

// The networks of the command line: a saved network, unwound as a file.
TEST(NetworksInFiles, AreUnwoundWithTheirDimensions) {
  const std::string path = test_support::OwnPath("files.topo.json");
  ASSERT_TRUE(WriteTopologyFile(path, Parse("switch2d(3,4,bw=[450,50]GB/s)")));
  const Topology unwound = Parse("unwind(\"" + path + "\",degree=2)");
  const Collective all_gather = CollectiveFor("themis", CollectiveKind::kAllGather, 12);
  EXPECT_TRUE(Synthesize("themis", unwound, all_gather, {}).has_value());
  ExpectSameAnswers(unwound, Parse("unwind(switch2d(3,4,bw=[450,50]GB/s),degree=2)"));
}

}  // namespace
}  // namespace tutti::classic_test
