// docs/guide/choose-an-algorithm.md has a row for everything that can be named, and only for that.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tutti/route/router.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {
namespace {

// Of one section of the page: the cells behind each name, `name` | cell | cell ...
std::map<std::string, std::vector<std::string>> Rows(const std::string& section) {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream page("docs/guide/choose-an-algorithm.md");
  EXPECT_TRUE(page.is_open());
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line.starts_with("## " + section);
    if (!inside || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream text(line.substr(2, line.size() - 4));
    for (std::string cell; std::getline(text, cell, '|');) {
      const size_t begin = cell.find_first_not_of(' ');
      EXPECT_NE(begin, cell.npos) << line;
      if (begin != cell.npos)
        cells.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
    }
    const std::string name = cells.front().substr(1, cells.front().size() - 2);
    EXPECT_TRUE(rows.emplace(name, std::vector(cells.begin() + 1, cells.end())).second) << name;
  }
  return rows;
}

// "AG RS AR", or "all".
std::string Short(const std::vector<CollectiveKind>& kinds) {
  const std::map<CollectiveKind, std::string> names{
      {CollectiveKind::kAllGather, "AG"},  {CollectiveKind::kReduceScatter, "RS"},
      {CollectiveKind::kAllReduce, "AR"},  {CollectiveKind::kBroadcast, "B"},
      {CollectiveKind::kReduce, "R"},      {CollectiveKind::kGather, "G"},
      {CollectiveKind::kScatter, "S"},     {CollectiveKind::kAllToAll, "A2A"},
      {CollectiveKind::kAllToAllV, "A2AV"}};
  if (kinds.size() == names.size()) return "all";
  std::string text;
  for (const auto& [kind, name] : names)
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end())
      text += (text.empty() ? "" : " ") + name;
  return text;
}

TEST(AlgorithmGuide, HasARowForEveryAlgorithm) {
  auto rows = Rows("Algorithms");
  for (const Synthesizer& synthesizer : Synthesizers()) {
    const std::string name(synthesizer.name);
    ASSERT_TRUE(rows.contains(name)) << name;
    ASSERT_EQ(rows[name].size(), 5u) << name;
    EXPECT_EQ(rows[name][1], Short(synthesizer.collectives)) << name;
    EXPECT_EQ(rows[name][4].find("only when it is named") != std::string::npos,
              synthesizer.on_request_only)
        << name;
  }
  EXPECT_EQ(rows.size(), Synthesizers().size());
}

TEST(AlgorithmGuide, HasARowForEveryRouter) {
  auto rows = Rows("Routers");
  for (const Router& router : Routers()) {
    const std::string name(router.name);
    ASSERT_TRUE(rows.contains(name)) << name;
    ASSERT_EQ(rows[name].size(), 4u) << name;
    EXPECT_EQ(rows[name][3].find("only when it is named") != std::string::npos,
              router.on_request_only)
        << name;
  }
  EXPECT_EQ(rows.size(), Routers().size());
}

}  // namespace
}  // namespace tutti
