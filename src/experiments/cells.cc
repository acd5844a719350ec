#include "cells.h"

#include <utility>

namespace tutti {

ResultCell Figure(const Rational& ours, std::string paper) {
  return {.ours = ours, .paper = std::move(paper)};
}
ResultCell Word(std::string text, std::string paper) {
  return {.text = std::move(text), .paper = std::move(paper)};
}

bool WithinSize(const ExperimentOptions& options, int64_t ranks) {
  return options.max_ranks == 0 || ranks <= options.max_ranks;
}

}  // namespace tutti
