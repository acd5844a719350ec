// A schedule that had to be read whole, handed out piece by piece.
#pragma once

#include <memory>

#include "tutti/store/store.h"

namespace tutti {

std::unique_ptr<ScheduleReader> MakeWholeFileReader(ScheduleFile file);

}  // namespace tutti
