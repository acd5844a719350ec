#include <fmt/format.h>

#include "compress.h"
#include "tutti/base/check.h"
#include "tutti/page/page.h"

namespace tutti {
namespace {

// Where web/index.html wants the data.
constexpr std::string_view kPlace = "<!--tutti-data-->";

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(bytes[i]); };
  char* at = out.data();
  size_t i = 0;
  for (; i + 2 < bytes.size(); i += 3) {
    const uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *at++ = kDigits[three >> 18];
    *at++ = kDigits[three >> 12 & 63];
    *at++ = kDigits[three >> 6 & 63];
    *at++ = kDigits[three & 63];
  }
  if (i == bytes.size()) return out;
  const bool two = i + 1 < bytes.size();
  const uint32_t rest = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
  *at++ = kDigits[rest >> 18];
  *at++ = kDigits[rest >> 12 & 63];
  if (two) *at = kDigits[rest >> 6 & 63];
  return out;
}

}  // namespace

Result<std::string> MakePage(std::string_view json) {
  const std::string_view whole = ExplorerTemplate();
  const size_t place = whole.find(kPlace);
  TUTTI_CHECK(place != std::string_view::npos);  // tests hold the artefact to it
  const Result<std::string> compressed = Compress(json);
  if (!compressed) return tl::unexpected(compressed.error());
  std::string page(whole.substr(0, place));
  page +=
      fmt::format("<script type=\"text/plain\" id=\"tutti-data\" data-bytes=\"{}\">", json.size());
  page += Base64(*compressed);
  page += "</script>";
  page += whole.substr(place + kPlace.size());
  return page;
}

}  // namespace tutti
