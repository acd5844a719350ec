// Charts as SVG, drawn by gnuplot (docs/adr).
//
// Errors      kNotFound: there is no gnuplot on the PATH. kIo: it could not be run or failed, with
//             its own words. kInvalidArgument: nothing to draw, a heat map that is no rectangle, or
//             bars of which a series has no part.
// Threads     Any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "experiment.h"
#include "tutti/base/result.h"

namespace tutti {

// The program that draws the charts, so many in a row, and writes SVG to its standard output. The
// same bytes for the same charts.
std::string GnuplotScript(std::span<const Chart> charts, int32_t charts_a_row = 1);

// What gnuplot makes of it.
Result<std::string> DrawSvg(std::span<const Chart> charts, int32_t charts_a_row = 1);

}  // namespace tutti
