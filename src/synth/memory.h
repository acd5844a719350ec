// Whether a schedule can be held at all, asked before it is allocated.
#pragma once

#include <cstdint>

#include "tutti/base/result.h"

namespace tutti {

// kResourceExhausted: so many transfers need more memory than is available.
Status CheckMemoryFor(int64_t num_transfers);

}  // namespace tutti
