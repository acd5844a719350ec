// Whole files, read and written safely.
// Errors  kIo with the path and the operating system's words.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/result.h"

namespace tutti {

Result<std::string> ReadFile(const std::string& path);
// Writes to a temporary name beside `path`, syncs and renames: readers see the old file or the new
// one. On failure (also a full disk) the temporary file is removed.
Status WriteFileAtomically(const std::string& path, std::string_view contents);

}  // namespace tutti
