#include "tutti/base/xml_text.h"

#include <array>
#include <cstddef>
#include <utility>

#include "utf8.h"

namespace tutti {
namespace {

constexpr std::array<std::pair<char, std::string_view>, 4> kReferences = {
    {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}}};

std::string_view ReferenceOf(char32_t code) {
  for (const auto& [character, reference] : kReferences)
    if (code == static_cast<unsigned char>(character)) return reference;
  return {};
}

}  // namespace

std::string EscapedXml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = TakeCodePoint(text, at);
    if (const std::string_view reference = ReferenceOf(code); !reference.empty())
      out += reference;
    else if (code < 0x20)
      out += ' ';
    else if (code == kReplacementCharacter)
      out += kReplacementUtf8;
    else
      out += text.substr(begin, at - begin);
  }
  return out;
}

std::string UnescapedXml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t taken = 1;
    char c = text.front();
    for (const auto& [character, reference] : kReferences)
      if (text.starts_with(reference)) {
        taken = reference.size();
        c = character;
      }
    out += c;
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace tutti
