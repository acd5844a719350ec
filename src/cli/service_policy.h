// tutti service policy: what operators ask of the controller of a cluster.
#pragma once

#include "common.h"

namespace tutti::cli {

void AddServicePolicy(Program& program, Command service);

}  // namespace tutti::cli
