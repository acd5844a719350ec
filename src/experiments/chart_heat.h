// Heat maps: cells in tones of one colour, or in words, and the scale of the tones.
#pragma once

#include "chart.h"
#include "chart_svg.h"

namespace tutti {

// One scale for all heat maps of a figure, from `top` down; how high it is. Nothing is drawn without `svg`.
double DrawHeatScale(const HeatMap& heat, double width, double top, SvgWriter* svg);

// Draws `chart.heat`, which is set, with the names of its axes within `rest`, what its titles leave of `panel`.
void DrawHeatMap(const Chart& chart, const SvgBox& panel, SvgBox rest, SvgWriter& svg);

}  // namespace tutti
