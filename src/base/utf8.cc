#include "utf8.h"

#include <cstdint>

namespace tutti {
namespace {

uint8_t ByteAt(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
}

}  // namespace

char32_t TakeCodePoint(std::string_view text, size_t& at) {
  const uint8_t first = ByteAt(text, at++);
  if (first < 0x80) return first;
  if (first < 0xC2 || first > 0xF4) return kReplacementCharacter;
  const int more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  uint8_t low = 0x80, high = 0xBF;  // of the next byte
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  char32_t code = first & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    const uint8_t next = ByteAt(text, at);
    if (next < low || next > high) return kReplacementCharacter;
    code = code << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
    ++at;
  }
  return code;
}

}  // namespace tutti
