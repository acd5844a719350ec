// The data that a figure carries: docs/formats/chart-data.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "chart.h"

namespace tutti {

// Whether it can be drawn; if not, what is wrong and where.
Status CheckDrawable(std::span<const Chart> charts, int32_t charts_a_row);

// One line of JSON in ASCII, in which points have 10 digits and values 6. `charts` can be drawn.
std::string ChartsJson(std::span<const Chart> charts, int32_t charts_a_row);
Result<DrawnCharts> ParseChartsJson(std::string_view text);

}  // namespace tutti
