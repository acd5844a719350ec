// Compress: zlib's format (RFC 1950) of a text, made by several threads.
//
// The text is cut into pieces of equal size, whatever the number of threads, so the bytes are the
// same on every machine; each piece may refer back into the one before it, as a single stream would.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/result.h"

namespace tutti {

// O(bytes). kResourceExhausted: no memory for it.
Result<std::string> Compress(std::string_view text);

}  // namespace tutti
