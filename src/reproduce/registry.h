// The experiments, one function each; registry.cc lists them.
#pragma once

#include "tutti/reproduce/experiment.h"

namespace tutti {

Experiment DirectTable5();
Experiment DirectTable6();
Experiment DirectFigure18();

}  // namespace tutti
