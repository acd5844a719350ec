// What the fuzzers of import's readers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "import/reader.h"
#include "tutti/base/check.h"
#include "tutti/import/import.h"

namespace tutti::import {

// Any bytes as a file of a reader: an error that names the file, or facts that merge into a network or
// an error.
inline int FuzzReader(bool (*looks_like)(std::string_view),
                      Result<Facts> (*read)(std::string_view, const std::string&),
                      const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)looks_like(text);
  Result<Facts> facts = read(text, "fuzz");
  if (!facts) {
    TUTTI_CHECK(facts.error().message.starts_with("fuzz"));
    return 0;
  }
  constexpr size_t kSmall = 1000;
  if (facts->cables.size() > kSmall) return 0;
  for (BoxFacts& box : facts->boxes) box.host = "host";
  const auto merged = MergeFacts({*std::move(facts)}, {.nic_bandwidth = 1'000'000'000});
  TUTTI_CHECK(merged || !merged.error().message.empty());
  return 0;
}

}  // namespace tutti::import
