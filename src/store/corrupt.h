// Files that are not what they say.
#pragma once

#include <string>
#include <utility>

#include "tutti/base/result.h"

namespace tutti {

inline tl::unexpected<Error> Corrupt(std::string message) {
  return MakeError(ErrorCode::kCorrupt, std::move(message));
}

}  // namespace tutti
