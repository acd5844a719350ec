// An SVG picture in the making, and the style that all figures share: colours, sizes of text.
// Lengths are in units of the picture, which is kFigureWidth wide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tutti {

inline constexpr double kFigureWidth = 960;
inline constexpr double kFont = 13, kSmall = 12, kTitle = 14, kLine = 17;
inline constexpr double kBold = 1.11;  // as wide as
inline constexpr size_t kLooks = 8;
// Told apart by people who see few colours, too (Okabe and Ito's, the light ones darker); in grey by the markers.
// Those of the explorer page.
inline constexpr std::array<const char*, kLooks> kColours = {
    "#0072b2", "#d55e00", "#009e73", "#b5518f", "#2f9fd6", "#a87600", "#56616e", "#7a1f1f"};
inline constexpr const char* kGrey = "#8a939e";
inline constexpr const char* kInk = "#1a1a1a";
inline constexpr const char* kSoft = "#3b4550";

struct SvgBox {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// Tenths of a unit are enough.
std::string SvgNumber(double value);

enum class TextAnchor : uint8_t { kStart, kMiddle, kEnd };

class SvgWriter {
 public:
  void Add(std::string_view markup) { out_ += markup; }
  void Text(double x, double y, std::string_view text, double size, const char* colour,
            TextAnchor anchor = TextAnchor::kStart, bool bold = false, double turn = 0);
  void Path(std::string_view way, std::string_view attributes);
  void Line(double x0, double y0, double x1, double y1, std::string_view attributes);
  void Rectangle(const SvgBox& box, std::string_view attributes);
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace tutti
