// tutti service bench: ranks of this process under the service, beside the same ranks without it.
#pragma once

#include "common.h"

namespace tutti::cli {

void AddServiceBench(Program& program, Command service);

}  // namespace tutti::cli
