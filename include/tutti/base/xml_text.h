// Text of XML and HTML, of files that are written by hand, element by element.
//
//   svg += "<title>" + EscapedXml(topology.name()) + "</title>";
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// As an element's text or an attribute's value between double quotes. Characters below space become a space, bytes
// that are no UTF-8 U+FFFD: neither can stand in XML. O(size).
std::string EscapedXml(std::string_view text);

// Back again, of what EscapedXml writes; other references stay as they are. O(size).
std::string UnescapedXml(std::string_view text);

}  // namespace tutti
