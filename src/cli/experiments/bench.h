#pragma once

#include "common.h"

namespace tutti::cli {

void AddExperiments(Program& program);

}  // namespace tutti::cli
