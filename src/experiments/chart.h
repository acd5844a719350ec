// Charts as SVG: the figures of docs/results, in one style.
//
// Model       A figure is some charts, each a panel. Colours, dashes and markers go by the names of series, the
//             same in all panels, and can be told apart by the colour-blind and in grey print. A chart of
//             lines by itself has its names at their ends; panels, bars and points have one legend on top.
//             The figure carries its data as text (docs/formats/chart-data.md), from which it can be drawn again.
// Invariants  F1  The same charts give the same bytes on every machine.
//             F2  ChartsOf(DrawSvg(c)) is c, points to 10 and values to 6 digits; drawn again, it is the same bytes.
// Complexity  O(points + cells) time and bytes.
// Errors      kInvalidArgument: nothing to draw, a heat map that is no rectangle, bars of which a series has no
//             part, a number that is none; a text that is no figure of ours, or damaged.
// Threads     Any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiment.h"
#include "tutti/base/result.h"

namespace tutti {

Result<std::string> DrawSvg(std::span<const Chart> charts, int32_t charts_a_row = 1);

struct DrawnCharts {
  std::vector<Chart> charts;
  int32_t charts_a_row = 1;
};
// What DrawSvg() drew.
Result<DrawnCharts> ChartsOf(std::string_view svg);

}  // namespace tutti
