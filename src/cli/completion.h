// Shell completion, made from the flags and the registries.
#pragma once

#include <string>

#include "flags.h"

namespace tutti::cli {

// A script for bash, and for zsh through bashcompinit: commands, options, and values where the
// program knows them; else files. Values may stand in a list after commas.
std::string BashCompletion(const Command& root);

}  // namespace tutti::cli
