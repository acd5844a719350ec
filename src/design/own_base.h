// A base of the asker's own: measured, since nothing is known of it.
#pragma once

#include "base.h"
#include "tutti/base/result.h"
#include "tutti/design/finder.h"

namespace tutti::design {

// kInvalidArgument: switches, unequal links, or not the same number of ports everywhere.
Result<BaseEntry> MeasureBase(const OwnBase& base);

}  // namespace tutti::design
