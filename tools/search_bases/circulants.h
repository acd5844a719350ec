// All circulants of one size and degree: whether breadth-first broadcast is bandwidth-optimal on
// each (conjecture 1 of the paper), and one of the least diameter. Reference   [direct-connect]
// F.4, definition 18.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti {

struct CirculantSurvey {
  int64_t circulants = 0;               // offsets 1 <= a1 < a2 < ... < n / 2, connected
  std::optional<std::string> contrary;  // one that is not bandwidth-optimal, if any
  // The first of the least diameter that is.
  std::string best;
  int32_t best_tl = 0;
};

// Even degree, 2 <= degree < ranks.
CirculantSurvey SurveyCirculants(int32_t ranks, int32_t degree);

}  // namespace tutti
