// Any text is a figure's data or an error, and what is read is drawn, carries itself and is drawn to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../src/experiments/chart.h"
#include "../src/experiments/chart_data.h"
#include "tutti/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = tutti::ChartsOf(text);
  const auto read = whole ? whole : tutti::ParseChartsJson(text);
  if (!read) {
    TUTTI_CHECK(!read.error().message.empty());
    return 0;
  }
  const auto svg = tutti::DrawSvg(read->charts, read->charts_a_row);
  if (!svg) return 0;  // a value too small for six digits of a logarithmic axis
  const auto again = tutti::ChartsOf(*svg);
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(*tutti::DrawSvg(again->charts, again->charts_a_row) == *svg);
  return 0;
}
