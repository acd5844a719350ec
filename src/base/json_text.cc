#include "tutti/base/json_text.h"

#include <cstddef>

namespace tutti {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

uint8_t ByteAt(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
}

// The code point at `at`, which moves behind it; of bytes that start none as many are passed over as could have
// started one (table 3-7 of the Unicode standard).
char32_t TakeCodePoint(std::string_view text, size_t& at) {
  const uint8_t first = ByteAt(text, at++);
  if (first < 0x80) return first;
  if (first < 0xC2 || first > 0xF4) return kReplacement;
  const int more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  uint8_t low = 0x80, high = 0xBF;  // of the next byte
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  char32_t code = first & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    const uint8_t next = ByteAt(text, at);
    if (next < low || next > high) return kReplacement;
    code = code << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
    ++at;
  }
  return code;
}

void AppendUtf16Escape(char32_t unit, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 0xF];
}

void AppendEscaped(char32_t code, std::string& out) {
  if (code < 0x10000) return AppendUtf16Escape(code, out);
  AppendUtf16Escape(0xD7C0 + (code >> 10), out);
  AppendUtf16Escape(0xDC00 + (code & 0x3FF), out);
}

// The letter after the backslash, 0: `code` has none.
char ShortEscape(char32_t code) {
  switch (code) {
    case '\b':
      return 'b';
    case '\t':
      return 't';
    case '\n':
      return 'n';
    case '\f':
      return 'f';
    case '\r':
      return 'r';
    case '"':
      return '"';
    case '\\':
      return '\\';
    default:
      return 0;
  }
}

}  // namespace

std::string QuotedJson(std::string_view text, JsonCharacters characters) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = TakeCodePoint(text, at);
    if (const char letter = ShortEscape(code); letter != 0) {
      out += '\\';
      out += letter;
    } else if (code < 0x20 || (code > 0x7E && characters == JsonCharacters::kAscii)) {
      AppendEscaped(code, out);
    } else if (code == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out += '"';
}

}  // namespace tutti
