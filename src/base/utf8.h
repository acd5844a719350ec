// Code points of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

// The code point at `at` < text.size(), which moves behind it; kReplacementCharacter for bytes that start none, of
// which as many are passed over as could have started one (table 3-7 of the Unicode standard).
char32_t TakeCodePoint(std::string_view text, size_t& at);

}  // namespace tutti
