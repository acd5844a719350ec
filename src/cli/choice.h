// What the commands say of a choice among algorithms (synth/auto.h).
#pragma once

#include <string>

#include "common.h"
#include "tutti/synth/auto.h"

namespace tutti::cli {

// A name of `-a`; nullptr: auto, the best of all.
Result<const Synthesizer*> FindAlgorithm(const std::string& name);

// Keys `chosen why candidates`.
void DescribeChoice(const AutoChoice& choice, Json& out);
// Which and why, then a table of the others by time and why some are not in it.
std::string ChoiceText(const AutoChoice& choice);

}  // namespace tutti::cli
