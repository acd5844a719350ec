// Where the bytes of a binary schedule come from: memory, a file, a pipe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "binary.h"
#include "tutti/base/result.h"

namespace tutti::binary {

std::unique_ptr<Source> MakeMemorySource(std::string_view bytes);  // which must outlive it
// A pipe offers no way back to its trailer, so it is read whole. kIo.
Result<std::unique_ptr<Source>> OpenPathSource(const std::string& path);

}  // namespace tutti::binary
