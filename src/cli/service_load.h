// tutti service load: ranks of a tenant that communicate as a training job does.
#pragma once

#include "common.h"

namespace tutti::cli {

void AddServiceLoad(Program& program, Command service);

}  // namespace tutti::cli
