// What all experiments fill their tables with.
#pragma once

#include <cstdint>
#include <string>

#include "experiment.h"
#include "tutti/base/rational.h"

namespace tutti {

// A figure of ours, or the word that stands for its absence.
ResultCell Figure(const Rational& ours, std::string paper = "");
ResultCell Word(std::string text, std::string paper = "");

// Is it among those that the options leave in?
bool WithinSize(const ExperimentOptions& options, int64_t ranks);

}  // namespace tutti
