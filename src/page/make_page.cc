#include <fmt/format.h>
#include <zlib.h>

#include <array>

#include "tutti/base/check.h"
#include "tutti/page/page.h"

namespace tutti {
namespace {

// Where web/index.html wants the data.
constexpr std::string_view kPlace = "<!--tutti-data-->";

Result<std::string> Compress(std::string_view text) {
  constexpr int kLevel = 6;
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::string out(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                             reinterpret_cast<const Bytef*>(text.data()),
                             static_cast<uLong>(text.size()), kLevel);
  if (code != Z_OK)
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("the {} bytes of a page cannot be compressed", text.size()));
  out.resize(size);
  return out;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  const auto byte = [&](size_t i) -> uint32_t {
    return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0;
  };
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += kDigits[three >> 18];
    out += kDigits[three >> 12 & 63];
    out += i + 1 < bytes.size() ? kDigits[three >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kDigits[three & 63] : '=';
  }
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
