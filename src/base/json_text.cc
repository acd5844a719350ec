#include "tutti/base/json_text.h"

#include <cstddef>

#include "utf8.h"

namespace tutti {
namespace {

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
    } else if (code == kReplacementCharacter) {
      out += kReplacementUtf8;
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out += '"';
}

}  // namespace tutti
