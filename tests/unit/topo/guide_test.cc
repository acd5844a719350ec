// The guide names every family and operator, and its examples are right.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tutti/base/file.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

namespace tutti {
namespace {

TEST(TopologyGuide, NamesEveryFamily) {
  const Result<std::string> guide = ReadFile("docs/guide/topologies.md");
  ASSERT_TRUE(guide.has_value()) << guide.error().message;
  for (const FamilyInfo& family : TopologyFamilies())
    EXPECT_NE(guide->find("| `" + std::string(family.signature) + "` |"), std::string::npos)
        << family.signature;
}

// The last cell of a row `| signature | meaning | example |` holds an expression in backticks.
TEST(TopologyGuide, ExamplesAreAccepted) {
  const Result<std::string> guide = ReadFile("docs/guide/topologies.md");
  ASSERT_TRUE(guide.has_value()) << guide.error().message;
  std::istringstream lines(*guide);
  int examples = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t cell = line.rfind("| `");
    if (line.substr(0, 3) != "| `" || cell == 0 || line.substr(line.size() - 3) != "` |") continue;
    const std::string example = line.substr(cell + 3, line.size() - cell - 6);
    const Result<Topology> topology = ParseTopology(example);
    EXPECT_TRUE(topology.has_value()) << example << ": " << topology.error().message;
    ++examples;
  }
  EXPECT_EQ(examples, static_cast<int>(TopologyFamilies().size()));
}

TEST(TopologyFormat, ExampleInTheDescriptionIsAccepted) {
  const Result<std::string> text = ReadFile("docs/formats/topology.md");
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const size_t begin = text->find("```json\n") + 8;
  const Result<Topology> topology =
      TopologyFromJson(text->substr(begin, text->find("```", begin) - begin));
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  EXPECT_EQ(topology->num_ranks(), 2);
  EXPECT_EQ(topology->num_links(), 4);
}

}  // namespace
}  // namespace tutti
