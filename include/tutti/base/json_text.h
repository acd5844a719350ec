// Strings as JSON writes them, for files that are written by hand, line by line.
//
//   text += "\"name\": " + QuotedJson(topology.name());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

enum class JsonCharacters : uint8_t { kUtf8, kAscii };  // kAscii: all others as \uXXXX

// In quotation marks, escaped. Bytes that are no UTF-8 become U+FFFD. O(size).
std::string QuotedJson(std::string_view text, JsonCharacters characters = JsonCharacters::kUtf8);

}  // namespace tutti
