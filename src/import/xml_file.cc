#include "xml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reader.h"
#include "text.h"

namespace tutti::import {

XmlFile::XmlFile(std::string_view text, const std::string& source) : text_(text), source_(source) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') line_ends_.push_back(i);
}

Result<pugi::xml_node> XmlFile::Parse(const char* name, std::string_view refused,
                                      const char* reason) {
  if (const size_t at = text_.find(refused); at != text_.npos)
    return FaultIn(source_, LineAt(at), reason);
  const pugi::xml_parse_result parsed =
      document_.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    return FaultIn(source_, LineAt(static_cast<size_t>(parsed.offset)),
                   fmt::format("no XML: {}", Lower(parsed.description())));
  const pugi::xml_node whole = document_.child(name);
  if (!whole) return FaultIn(source_, 1, fmt::format("no <{}> element", name));
  return whole;
}

int64_t XmlFile::LineAt(size_t offset) const {
  const auto end = std::lower_bound(line_ends_.begin(), line_ends_.end(), offset);
  return end - line_ends_.begin() + 1;
}

FactPlace XmlFile::PlaceOf(const pugi::xml_node& node) const {
  return {source_, LineAt(static_cast<size_t>(std::max<ptrdiff_t>(node.offset_debug(), 0)))};
}

tl::unexpected<Error> XmlFile::Fault(const pugi::xml_node& node, const std::string& message) const {
  return FaultIn(source_, PlaceOf(node).line, fmt::format("<{}>: {}", Shown(node.name()), message));
}

Status XmlFile::AddNic(const pugi::xml_node& node, NicFact nic, BoxFacts& box) const {
  if (!IsNodeName(nic.name))
    return Fault(node, fmt::format("the name '{}' is not printable", Shown(nic.name)));
  for (const NicFact& other : box.nics)
    if (other.name == nic.name)
      return Fault(node,
                   fmt::format("the name '{}' stands in line {}, too", nic.name, other.place.line));
  box.nics.push_back(std::move(nic));
  return {};
}

}  // namespace tutti::import
