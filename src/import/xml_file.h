// An XML file that knows the line of each element.
#pragma once

#include <cstdint>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/import/facts.h"

namespace tutti::import {

class XmlFile {
 public:
  // Keeps views of both.
  XmlFile(std::string_view text, const std::string& source);

  // The element `name` that the file consists of. Where `refused` occurs ("<!ENTITY" say, which pugixml
  // does not expand), `reason` is the error.
  Result<pugi::xml_node> Parse(const char* name, std::string_view refused, const char* reason);

  FactPlace PlaceOf(const pugi::xml_node& node) const;
  tl::unexpected<Error> Fault(const pugi::xml_node& node, const std::string& message) const;

  // Adds a NIC that `node` describes. An error: its name is not printable, or stands there already.
  Status AddNic(const pugi::xml_node& node, NicFact nic, BoxFacts& box) const;

 private:
  int64_t LineAt(size_t offset) const;

  std::string_view text_;
  const std::string& source_;
  std::vector<size_t> line_ends_;
  pugi::xml_document document_;
};

}  // namespace tutti::import
