#include "chart_svg.h"

#include <fmt/format.h>

#include "tutti/base/xml_text.h"

namespace tutti {

std::string SvgNumber(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

void SvgWriter::Text(double x, double y, std::string_view text, double size, const char* colour,
                     TextAnchor anchor, bool bold, double turn) {
  static constexpr std::array<const char*, 3> kAnchors = {"", " text-anchor=\"middle\"",
                                                          " text-anchor=\"end\""};
  out_ +=
      fmt::format("<text x=\"{0}\" y=\"{1}\" font-size=\"{2}\" fill=\"{3}\"{4}{5}{6}>{7}</text>\n",
                  SvgNumber(x), SvgNumber(y), SvgNumber(size), colour,
                  kAnchors[static_cast<size_t>(anchor)], bold ? " font-weight=\"600\"" : "",
                  turn == 0 ? ""
                            : fmt::format(" transform=\"rotate({} {} {})\"", SvgNumber(turn),
                                          SvgNumber(x), SvgNumber(y)),
                  EscapedXml(text));
}

void SvgWriter::Path(std::string_view way, std::string_view attributes) {
  out_ += fmt::format("<path d=\"{}\" {}/>\n", way, attributes);
}

void SvgWriter::Line(double x0, double y0, double x1, double y1, std::string_view attributes) {
  Path(fmt::format("M{} {}L{} {}", SvgNumber(x0), SvgNumber(y0), SvgNumber(x1), SvgNumber(y1)),
       attributes);
}

void SvgWriter::Rectangle(const SvgBox& box, std::string_view attributes) {
  out_ +=
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", SvgNumber(box.left),
                  SvgNumber(box.top), SvgNumber(box.width), SvgNumber(box.height), attributes);
}

}  // namespace tutti
