// The layerings of this folder, for the table in registry.cc.
#pragma once

#include "tutti/route/layers.h"

namespace tutti {

Layering LashLayering();            // lash.cc
Layering LashSequentialLayering();  // lash.cc
Layering DfssspLayering();          // dfsssp.cc

}  // namespace tutti
