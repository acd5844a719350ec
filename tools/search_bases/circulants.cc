#include "circulants.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "evaluator.h"
#include "tutti/base/check.h"

namespace tutti {
namespace {

// The next combination of ascending numbers in [1, most], in order of the alphabet.
bool Advance(std::vector<int32_t>& offsets, int32_t most) {
  for (size_t i = offsets.size(); i-- > 0;) {
    const auto behind = static_cast<int32_t>(offsets.size() - i - 1);
    if (offsets[i] >= most - behind) continue;
    std::iota(offsets.begin() + static_cast<std::ptrdiff_t>(i), offsets.end(), offsets[i] + 1);
    return true;
  }
  return false;
}

std::string RecipeOf(int32_t ranks, const std::vector<int32_t>& offsets) {
  return fmt::format("circulant({},{})", ranks, fmt::join(offsets, ","));
}

}  // namespace

CirculantSurvey SurveyCirculants(int32_t ranks, int32_t degree) {
  TUTTI_CHECK(degree % 2 == 0 && degree >= 2 && degree < ranks && ranks <= kMaxRanks);
  const Result<MetacyclicGroup> group = MetacyclicGroup::Make(ranks, 1, 1);
  TUTTI_CHECK(group);
  const LeftProducts products(*group);
  const Records none(ranks);
  Evaluator evaluator(ranks, degree);
  CirculantSurvey survey;
  std::vector<int32_t> offsets(static_cast<size_t>(degree / 2));
  std::iota(offsets.begin(), offsets.end(), 1);
  do {
    Generators generators;
    for (int32_t offset : offsets) {
      generators.push_back(offset);
      generators.push_back(ranks - offset);
    }
    Cost cost;
    if (!evaluator.Evaluate(products, generators, none, cost)) continue;  // not connected
    ++survey.circulants;
    if (cost.units != evaluator.OptimalUnits()) {
      if (!survey.contrary) survey.contrary = RecipeOf(ranks, offsets);
    } else if (survey.best.empty() || cost.tl < survey.best_tl) {
      survey.best = RecipeOf(ranks, offsets);
      survey.best_tl = cost.tl;
    }
  } while (Advance(offsets, (ranks - 1) / 2));
  return survey;
}

}  // namespace tutti
