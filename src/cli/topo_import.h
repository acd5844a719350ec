// tutti topo import | detect
#pragma once

#include "common.h"

namespace tutti::cli {

void AddTopoImport(Program& program, Command topo);

}  // namespace tutti::cli
