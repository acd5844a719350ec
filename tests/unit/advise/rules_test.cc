#include "tutti/advise/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nccl_tuner/table.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {
namespace {

using enum CollectiveKind;

std::string MustWrite(const char* format, std::vector<CollectiveRules> rules) {
  const Result<std::string> text = WriteRules(*FindRuleFormat(format), std::move(rules));
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text.value_or("");
}

TEST(RulesTest, FormatsNameAlgorithmsThatExistAndMakeTheCollective) {
  std::set<std::string_view> names;
  for (const RuleFormat& format : RuleFormats()) {
    SCOPED_TRACE(format.name);
    EXPECT_TRUE(names.insert(format.name).second);
    EXPECT_EQ(FindRuleFormat(format.name), &format);
    for (const CollectiveKind kind : format.Collectives()) EXPECT_GE(format.Of(kind).size(), 2U);
    for (const LibraryAlgorithm& algorithm : format.algorithms) {
      const Result<const Synthesizer*> ours = FindSynthesizer(algorithm.ours);
      ASSERT_TRUE(ours.has_value()) << algorithm.ours;
      const auto& makes = (*ours)->collectives;
      EXPECT_NE(std::find(makes.begin(), makes.end(), algorithm.kind), makes.end())
          << algorithm.ours << " " << Name(algorithm.kind);
      EXPECT_EQ(format.Find(algorithm.kind, algorithm.ours), &algorithm);
    }
  }
  EXPECT_EQ(FindRuleFormat("nccl"), nullptr);
  EXPECT_EQ(FindRuleFormat("openmpi")->Find(kBroadcast, "ring"), nullptr);
}

TEST(RulesTest, NcclTunerWorkedExample) {
  EXPECT_EQ(MustWrite("nccl-tuner", {{kAllReduce, 16, 2, {{0, "dbt"}, {65536, "ring"}}},
                                     {kAllReduce, 8, 0, {{0, "ring"}}},
                                     {kAllGather, 8, 1, {{0, "bruck"}, {4096, "ring"}}}}),
            "tutti-nccl-table 1\n"
            "# collective ranks nodes from to algorithm protocol channels\n"
            "allgather 8 1 0 4095 pat * *\n"
            "allgather 8 1 4096 * ring * *\n"
            "allreduce 8 * 0 * ring * *\n"
            "allreduce 16 2 0 65535 tree * *\n"
            "allreduce 16 2 65536 * ring * *\n"
            "end\n");
}

TEST(RulesTest, ThePlugInReadsItsTables) {
  const nccl_tuner::ReadTable table = nccl_tuner::ParseTable(
      MustWrite("nccl-tuner", {{kAllReduce, 8, 1, {{0, "dbt"}, {100, "ring"}, {200, "dbt"}}},
                               {kReduceScatter, 8, 1, {{0, "bruck"}, {300, "ring"}}}}));
  ASSERT_EQ(table.bad_line, 0) << table.reason;
  const nccl_tuner::Decisions decisions(table.rows, 8, 1);
  for (const auto& [bytes, tree] :
       {std::pair{0, true}, {99, true}, {100, false}, {199, false}, {200, true}, {1 << 30, true}})
    EXPECT_EQ(decisions.Find(4, static_cast<uint64_t>(bytes)).algorithm, tree ? 0 : 1) << bytes;
  EXPECT_EQ(decisions.Find(3, 299).algorithm, 6);
  EXPECT_EQ(decisions.Find(3, 300).algorithm, 1);
  EXPECT_EQ(nccl_tuner::Decisions(table.rows, 8, 2).num_ranges(), 0U);
}

TEST(RulesTest, OpenMpiWorkedExample) {
  EXPECT_EQ(MustWrite("openmpi", {{kAllReduce, 4, 0, {{0, "rhd"}, {65536, "ring"}}},
                                  {kAllReduce, 5, 0, {{0, "ring"}}}}),
            "1 # collectives\n"
            "2 # allreduce\n"
            "4 # communicator sizes\n"
            "0 # ranks\n1 # sizes\n0 0 0 0 # Open MPI's own choice\n"
            "4 # ranks\n2 # sizes\n0 6 0 0 # rabenseifner\n65536 4 0 0 # ring\n"
            "5 # ranks\n1 # sizes\n0 4 0 0 # ring\n"
            "6 # ranks\n1 # sizes\n0 0 0 0 # Open MPI's own choice\n");
}

TEST(RulesTest, OpenMpiJsonWorkedExample) {
  EXPECT_EQ(MustWrite("openmpi-json", {{kReduceScatter, 4, 1, {{0, "rhd"}, {1024, "ring"}}},
                                       {kAllGather, 4, 4, {{0, "ring"}}}}),
            "{\n  \"rule_file_version\": 3,\n  \"module\": \"tuned\",\n  \"collectives\": {\n"
            "    \"allgather\": [\n"
            "      {\"comm_size_min\": 4, \"comm_size_max\": 4, \"comm_rank_distribution\": "
            "\"one-per-node\", \"rules\": [\n"
            "        {\"msg_size_min\": 0, \"msg_size_max\": \"inf\", \"alg\": 4}]}],\n"
            "    \"reducescatter\": [\n"
            "      {\"comm_size_min\": 4, \"comm_size_max\": 4, \"comm_rank_distribution\": "
            "\"single-node\", \"rules\": [\n"
            "        {\"msg_size_min\": 0, \"msg_size_max\": 1023, \"alg\": 2},\n"
            "        {\"msg_size_min\": 1024, \"msg_size_max\": \"inf\", \"alg\": 3}]}]\n"
            "  }\n}\n");
}

constexpr const char* kMpichBase =
    R"({"collective=reduce_scatter":{"comm_type=intra":{"algorithm=A":{}},"comm_type=inter":{}},
        "collective=reduce_scatter_block":{"comm_type=intra":{"algorithm=B":{}}},
        "collective=allgather":{"comm_type=intra":{"algorithm=C":{}}},
        "collective=scan":{"algorithm=D":{}}})";

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(RulesTest, MpichWorkedExample) {
  const Result<std::string> text =
      WriteRules(*FindRuleFormat("mpich"),
                 {{kReduceScatter, 4, 0, {{0, "rhd"}, {1025, "direct"}}},
                  {kAllGather, 4, 0, {{0, "rhd"}, {1025, "ring"}}},
                  {kAllGather, 6, 0, {{0, "ring"}}}},
                 kMpichBase);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  // Of both reduce-scatters alike.
  const std::string reduce_scatter =
      R"("collective=NAME":{"comm_type=intra":{"comm_size<4":{"algorithm=OLD":{}},)"
      R"("comm_size<=4":{"is_commutative=no":{"algorithm=OLD":{}},"is_commutative=yes":)"
      R"({"total_msg_size<1025":{"algorithm=MPIR_Name_intra_recursive_halving":{}},)"
      R"("total_msg_size=any":{"algorithm=MPIR_Name_intra_pairwise":{}}}},)"
      R"("comm_size=any":{"algorithm=OLD":{}}})";
  const auto named = [&](const char* name, const char* in_algorithms, const char* old) {
    return Replaced(Replaced(Replaced(reduce_scatter, "NAME", name), "Name", in_algorithms), "OLD",
                    old);
  };
  EXPECT_EQ(
      Replaced(Replaced(*text, "\n", ""), " ", ""),
      "{" + named("reduce_scatter", "Reduce_scatter", "A") + R"(,"comm_type=inter":{}},)" +
          named("reduce_scatter_block", "Reduce_scatter_block", "B") + "}," +
          R"("collective=allgather":{"comm_type=intra":{"comm_size<4":{"algorithm=C":{}},)"
          R"("comm_size<=4":{"total_msg_size<1025":)"
          R"({"algorithm=MPIR_Allgather_intra_recursive_doubling":{}},)"
          R"("total_msg_size=any":{"algorithm=MPIR_Allgather_intra_ring":{}}},)"
          R"("comm_size<6":{"algorithm=C":{}},)"
          R"("comm_size<=6":{"total_msg_size=any":{"algorithm=MPIR_Allgather_intra_ring":{}}},)"
          R"("comm_size=any":{"algorithm=C":{}}}},"collective=scan":{"algorithm=D":{}}})");
}

TEST(RulesTest, MpichBasesThatAreNone) {
  const auto refused = [](const std::string& base) {
    const Result<std::string> text =
        WriteRules(*FindRuleFormat("mpich"), {{kAllGather, 4, 0, {{0, "rhd"}}}}, base);
    return text ? "" : text.error().message;
  };
  EXPECT_EQ(refused(kMpichBase), "");
  for (const char* base : {"", "[1]", "{", "7", "{\"a\":1}}"})
    EXPECT_EQ(refused(base), "--base holds no JSON object; MPICH's own selection is wanted")
        << base;
  const std::string missing =
      "--base has no \"collective=allgather\" with \"comm_type=intra\" in it";
  for (const char* base : {"{}", R"({"collective=allgather":1})", R"({"collective=allgather":{}})",
                           R"({"collective=allgather":{"comm_type=intra":[]}})"})
    EXPECT_EQ(refused(base), missing) << base;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{\"a\":";
  EXPECT_EQ(refused(deep + "1" + std::string(100, '}')), "--base is nested deeper than 64 levels");
}

TEST(RulesTest, RulesThatAreThereTwiceAreNamed) {
  const auto refused = [](const char* format, int32_t nodes) {
    const Result<std::string> text =
        WriteRules(*FindRuleFormat(format),
                   {{kAllReduce, 8, 1, {{0, "ring"}}}, {kAllReduce, 8, nodes, {{0, "rhd"}}}});
    return text ? "" : text.error().message;
  };
  EXPECT_EQ(refused("openmpi", 1), "two rules for all-reduce among 8 ranks on 1 nodes");
  EXPECT_EQ(refused("openmpi", 2),
            "two rules for all-reduce among 8 ranks: this file cannot tell nodes apart");
  EXPECT_EQ(refused("openmpi-json", 2), "");
}

}  // namespace
}  // namespace tutti
