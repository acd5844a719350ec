#include "tutti/topo/expression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tutti/topo/properties.h"

namespace tutti {
namespace {

std::string NameOf(const std::string& expression) {
  const Result<Topology> topology = ParseTopology(expression);
  return topology ? topology->name() : "error: " + topology.error().message;
}

TEST(Expression, NameIsTheCanonicalText) {
  EXPECT_EQ(NameOf("  torus ( 04 , 4 ) "), "torus(4,4)");
  EXPECT_EQ(NameOf("dgx1()"), "dgx1");
  EXPECT_EQ(NameOf("dgx1(alpha=0.7us)"), "dgx1(alpha=700ns)");
  EXPECT_EQ(NameOf("ring(8,alpha=0,bw=200Gbit/s)"), "ring(8,bw=25GB/s,alpha=0ps)");
  EXPECT_EQ(NameOf("mesh(5,8,bw=[35,80]GiB/s)"), "mesh(5,8,bw=[35GiB/s,80GiB/s])");
  EXPECT_EQ(NameOf("without( torus(3,3), seed=7,links=2 )"), "without(torus(3,3),links=2,seed=7)");
  EXPECT_EQ(NameOf("transpose(product(ring(3,parallel=2),complete(2)),bw=1GB/s)"),
            "transpose(product(ring(3,parallel=2),complete(2)),bw=1GB/s)");
  EXPECT_EQ(NameOf("switch(4,bw_per_link=2GB/s)"), "switch(4,bw_per_link=2GB/s)");
  EXPECT_EQ(NameOf("distreg( alpha=1us , pg23 )"), "distreg(pg23,alpha=1us)");
}

// The canonical text stands for the same network and is its own canonical text.
TEST(Expression, NameParsesToTheSameNetwork) {
  for (const char* expression :
       {"torus(4, 3,bw=[25,50]Gbit/s)", "rfs(2,4,8,bw=[200,100,50]GB/s,alpha=[1us,2us,3us])",
        "unwind(switch2d(4,3,bw=[300,25]GB/s),degree=2)", "dragonfly(4,5,bw=[400,200]GB/s)",
        "without(hypercube(4),links=3,nodes=2,seed=9)", "bidirectional(debruijn(3,2))",
        "power(uniring(2,3),2,bw=[1,2]GB/s)", "line(distreg(k55minus,parallel=2))",
        "circulant(8,4,1)", "twisted_torus(2,4,4)"}) {
    const Result<Topology> first = ParseTopology(expression);
    ASSERT_TRUE(first) << first.error().message;
    const Result<Topology> second = ParseTopology(first->name());
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(first->Fingerprint(), second->Fingerprint()) << expression;
    EXPECT_EQ(first->name(), second->name());
  }
}

TEST(Expression, FamiliesAreSortedAndTheirSignaturesBeginWithTheirNames) {
  const std::vector<FamilyInfo> families = TopologyFamilies();
  EXPECT_TRUE(
      std::is_sorted(families.begin(), families.end(),
                     [](const FamilyInfo& a, const FamilyInfo& b) { return a.name < b.name; }));
  for (const FamilyInfo& family : families) {
    EXPECT_EQ(family.signature.substr(0, family.name.size()), family.name);
    EXPECT_FALSE(family.summary.empty());
  }
  EXPECT_GE(families.size(), 27u);
}

struct BadExpression {
  const char* expression;
  const char* message;  // a part of it
};

const std::vector<BadExpression> kBadExpressions{
    // Syntax.
    {"", "column 1: found the end, wanted a family"},
    {"   ", "column 4: found the end"},
    {"(", "column 1: found '('"},
    {"torus(", "column 7: found the end"},
    {"torus(4", "column 8: found the end, wanted ',' or ')'"},
    {"torus(4,)", "column 9: found ')'"},
    {"torus(4 4)", "column 9: found '4)'"},
    {"torus(4))", "column 9: found ')' behind the end"},
    {"torus(4)x", "column 9: found 'x' behind the end"},
    {"4(4)", "column 1: '4' is no name of a family"},
    {"torus(4,bw=[1,2GB/s)", "column 20: found ')', wanted ',' or ']'"},
    {"torus(4,bw=[])", "column 13: found '])', wanted a value of the list"},
    {"torus(4,4=5)", "column 9: only a name may stand before '='"},
    {"transpose(\"a.json)", "column 11: this quotation mark is never closed"},
    {"transpose(\"a.txt\")", "column 11: 'a.txt': a quoted path must end in .json"},
    {"torus(\x01)", "column 7: found '\\x01)'"},
    // Names.
    {"tours(4,4)",
     "column 1: unknown family 'tours'; nearest: torus, hosts; accepted: bidirectional"},
    {"transpose(hypercub(3))", "column 11: unknown family 'hypercub'; nearest: hypercube"},
    {"zzzzzzzz", "unknown family 'zzzzzzzz'; accepted: bidirectional, bipartite"},
    {"Torus(4)", "nearest: torus"},
    // Arity and kinds of arguments.
    {"torus", "column 1: torus(a,b,...): got 0 numbers, wanted at least 1 number"},
    {"complete(3,4)", "complete(m): got 2 numbers, wanted 1 number"},
    {"dgx1(8)", "column 6: dgx1: found '8', wanted no argument"},
    {"twisted_torus(4)", "got 1 number, wanted 2 to 3 numbers"},
    {"twisted_torus(2,2,2,2)", "got 4 numbers, wanted 2 to 3 numbers"},
    {"transpose()", "transpose(G): got 0 networks, wanted 1 network"},
    {"transpose(4)", "column 11: transpose(G): found '4', wanted 1 network"},
    {"transpose(ring(3),ring(3))", "column 19: transpose(G): found 'ring', wanted 1 network"},
    {"power(ring(3))", "got 1 network and 0 numbers, wanted 1 network and 1 number"},
    {"torus(ring(4))", "column 7: torus(a,b,...): found 'ring', wanted a whole number"},
    {"torus(4.5)", "column 7: torus(a,b,...): found '4.5', wanted a whole number"},
    {"torus([4,4])", "column 7: torus(a,b,...): found '', wanted a whole number"},
    {"8", "column 1: found '8', wanted a network"},
    {"[8]", "wanted a network"},
    // Names of members.
    {"distreg", "column 1: distreg(name): the name is missing, wanted one of octahedron, paley9"},
    {"distreg(bw=1GB/s)", "the name is missing"},
    {"distreg(octahedrn)",
     "column 9: distreg(name): unknown name 'octahedrn'; nearest: octahedron; accepted: "
     "octahedron, paley9"},
    {"distreg(ag24)", "unknown name 'ag24'; nearest: ag24minus, "},
    {"distreg(4)", "column 9: distreg(name): found '4', wanted one of the names octahedron"},
    {"distreg(cube4(2))", "column 9: distreg(name): found 'cube4(', wanted one of the names"},
    {"distreg([1])", "wanted one of the names"},
    {"distreg(cube4.json)", "found 'cube4.json', wanted one of the names"},
    {"distreg(cube4,gq33)", "column 15: distreg(name): found 'gq33', wanted one name"},
    {"distreg(cube4,2)", "column 15: distreg(name): found '2', wanted one name"},
    {"distreg(cube4,bw=[1,2])", "a list of 2 values for distreg with 1 dimension"},
    {"distreg(gh33,parallel=9999)", "29117088 links: at most 16777216"},
    {"cube4", "unknown family 'cube4'"},
    // Sizes.
    {"torus(0,4)", "column 7: torus(a,b,...): got 0, wanted at least 1"},
    {"torus(4,-3)", "column 9: torus(a,b,...): got -3, wanted at least 1"},
    {"torus(99999999999999999999)", "column 7: torus(a,b,...): the number"},
    {"torus(999999999999999999,999999999999999999)", "too many nodes: at most 1048576"},
    {"torus(2000,2000)", "4000000 nodes: at most 1048576 are accepted"},
    {"hypercube(62)", "4611686018427387904 nodes: at most 1048576"},
    {"hypercube(999999999999999999)", "too many nodes"},
    {"complete(5000)", "24995000 links: at most 16777216"},
    {"hamming(1,1)", "column 11: hamming(n,q): got 1, wanted at least 2"},
    {"uniring(65000,65000)", "4225000000 links: at most 16777216"},
    {"ring(1000000,parallel=60)", "120000000 links: at most 16777216"},
    {"product(torus(300,300),torus(300,300))", "8100000000 nodes: at most 1048576"},
    {"power(torus(10,10),64)", "too many nodes"},
    {"power(ring(3),65)", "got 65, wanted at most 64"},
    {"biring(3,5)", "column 8: biring(d,m): the degree 3 is odd"},
    {"genkautz(4,4)", "column 12: genkautz(d,m): got 4, wanted at least 5"},
    {"genkautz_mod(4,4)", "column 16: genkautz_mod(d,m): got 4, wanted at least 5"},
    {"genkautz_mod(0,4)", "column 14: genkautz_mod(d,m): got 0, wanted at least 1"},
    {"twisted_hypercube(2)", "got 2, wanted at least 3"},
    {"twisted_torus(8,3)", "got 8 x 3, wanted a = 2b"},
    {"twisted_torus(4,4,4)", "got 4 x 4 x 4, wanted lengths k and 2k"},
    {"twisted_torus(4,6,8)", "got 4 x 6 x 8, wanted lengths k and 2k"},
    {"twisted_torus(2,1)", "got 1, wanted at least 2"},
    {"switch(1)", "got 1, wanted at least 2"},
    {"circulant(8,0)", "column 13: circulant(n,a1,...): got 0, wanted at least 1"},
    {"circulant(8,8)", "got 8, wanted at most 7"},
    {"circulant(8,3,5)", "the offset 3 (or 5) stands there twice"},
    {"circulant(8,2)",
     "column 1: circulant(8,2): the network is disconnected: no way leads from "
     "'0' to '1'"},
    // Link parameters.
    {"torus(4,bw=nan)", "column 12: bw=: bandwidth 'nan' is not a number"},
    {"torus(4,bw=inf)", "bandwidth 'inf' is not a number"},
    {"torus(4,bw=-1GB/s)", "is not a number of at least 0"},
    {"torus(4,bw=0)", "column 12: bw=: '0' is outside 1 .. "},
    {"torus(4,bw=9000TB/s)", "is outside 1 .. "},
    {"torus(4,bw=5furlongs)", "has an unknown unit"},
    {"torus(4,bw=5GB/s,bw=6GB/s)", "column 18: the keyword 'bw' stands there twice"},
    {"switch(4,bw=5GB/s,bw_per_link=6GB/s)", "exclude each other"},
    {"torus(4,bw_per_link=5GB/s)",
     "column 9: unknown keyword 'bw_per_link' of torus; accepted: alpha, bw, host_bw, parallel"},
    {"torus(4,speed=5)", "unknown keyword 'speed' of torus"},
    {"torus(4,alpha=5)", "column 15: alpha=: time '5' has no unit"},
    {"torus(4,alpha=2000s)", "is outside 0 .. "},
    {"torus(4,bw=[1,2]GB/s)", "column 12: a list of 2 values for torus with 1 dimension"},
    {"mesh(4,4,alpha=[1us,2us,3us])", "a list of 3 values for mesh with 2 dimensions"},
    {"mesh(4,4,bw=[1GB/s,2]GB/s)", "has an unknown unit"},
    {"torus(4,bw=ring(3))", "bw=: found 'ring', wanted a value with a unit"},
    {"torus(4,bw=ring.json)", "column 12: bw=: bandwidth 'ring.json'"},
    {"torus(4,bw=\"fast\")", "column 12: bw=: bandwidth 'fast'"},
    {"torus(4,parallel=0)", "column 18: got parallel=0, wanted at least 1"},
    {"torus(4,parallel=x)", "column 18: parallel=: found 'x', wanted a whole number"},
    {"switch(4,bw=1,parallel=2)", "bandwidth 0 is outside"},
    // Operators.
    {"without(ring(4),links=3)", "every one of 1000 draws without 3 cables and 0 nodes left"},
    {"without(ring(4),links=5)", "links=5: the network has 4 cables"},
    {"without(ring(4),nodes=4)", "nodes=4 of 4: at least one must stay"},
    {"without(ring(4),links=-1)", "got links=-1, wanted at least 0"},
    {"without(ring(4),links=1.5)", "found '1.5', wanted a whole number"},
    {"unwind(switch(4))", "degree= is missing"},
    {"unwind(switch(4),degree=0)", "got degree=0, wanted at least 1"},
    {"unwind(switch(4),degree=4)", "got degree=4, but switch '4' has 4 ranks: at most 3"},
    {"product(switch(4),ring(3))", "a factor has switches"},
    {"line(ring(4),0)", "column 14: line(G,k=1): got 0, wanted at least 1"},
    {"line(ring(4),2,k=2)", "k stands there twice"},
    {"line(mesh(3,3,bw=[1,2]GB/s))", "differ in bandwidth or alpha, wanted all alike"},
    {"line(complete(10),60)", "5314410 nodes: at most 1048576"},
    {"degree(debruijn(2,3),2)", "the network has self-loops, wanted none"},
    {"degree(ring(4),999999999999999999)", "3999999999999999996 nodes"},
    // Files.
    {"no/such/file.json", "no/such/file.json: cannot open"},
    {"transpose(no/such/file.json)", "no/such/file.json: cannot open"},
};

TEST(Expression, NamesTheColumnAndWhatIsAccepted) {
  for (const BadExpression& bad : kBadExpressions) {
    SCOPED_TRACE(bad.expression);
    const Result<Topology> topology = ParseTopology(bad.expression);
    ASSERT_FALSE(topology.has_value());
    EXPECT_NE(topology.error().message.find(bad.message), std::string::npos)
        << topology.error().message;
  }
}

TEST(Expression, NestingIsLimited) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "transpose(";
    return text + "ring(3)" + std::string(static_cast<size_t>(depth), ')');
  };
  EXPECT_TRUE(ParseTopology(nested(60)).has_value());
  const Result<Topology> deep = ParseTopology(nested(50'000));
  ASSERT_FALSE(deep.has_value());
  EXPECT_NE(deep.error().message.find("nested deeper than 64"), std::string::npos);
  const Result<Topology> quoted = ParseTopology(std::string(2'000'000, '('));
  ASSERT_FALSE(quoted.has_value());
  EXPECT_NE(quoted.error().message.find("at most 1048576"), std::string::npos);
}

TEST(Expression, LimitsAreTheCallersToo) {
  const ParseLimits limits{.max_nodes = 10, .max_links = 30, .allow_files = false};
  EXPECT_TRUE(ParseTopology("ring(10)", limits).has_value());
  EXPECT_FALSE(ParseTopology("ring(11)", limits).has_value());
  EXPECT_FALSE(ParseTopology("complete(6,parallel=2)", limits).has_value());
  EXPECT_FALSE(ParseTopology("distreg(gh33)", limits).has_value());
  EXPECT_NE(ParseTopology("a.json", limits).error().message.find("files are not accepted"),
            std::string::npos);
}

// Every prefix and every single changed character of an expression is parsed or refused.
TEST(ExpressionProperty, DamagedTextsAreRefusedOrParsed) {
  const std::string whole = "without(rfs(2,4,8,bw=[200,100,50]GB/s,alpha=0.5us),links=3,seed=1)";
  const ParseLimits limits{.max_nodes = 200, .max_links = 2000, .allow_files = false};
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    refused += ParseTopology(whole.substr(0, at), limits).has_value() ? 0 : 1;
    for (char c : {'(', ')', ',', '=', '[', ']', '"', '0', 'x', ' ', '\0', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = c;
      const Result<Topology> topology = ParseTopology(damaged, limits);
      EXPECT_TRUE(topology.has_value() || !topology.error().message.empty());
    }
  }
  EXPECT_EQ(refused, static_cast<int>(whole.size()));
}

}  // namespace
}  // namespace tutti
