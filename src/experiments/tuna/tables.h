// Tables and charts of what was simulated for [tuna]: cells, columns and lines of algorithms, and
// comparisons over sizes of blocks and numbers of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "experiment.h"
#include "tuna.h"
#include "tutti/base/result.h"

namespace tutti::tuna {

// The fastest of those of this size that are of one of these methods ("tuna") or just these
// ("scattered:b=32"); null: none.
const Measured* Fastest(std::span<const Measured> all, int64_t size,
                        const std::vector<std::string_view>& names);
// Its parameters: "r=4,b=7".
std::string ParametersOf(const Measured& measured);

// Microseconds, as exact as they were printed.
ResultCell Microseconds(double seconds, std::string paper = "");
// a / b.
ResultCell Ratio(double a, double b, std::string paper = "");
// The time over that of what was measured; "" where it was not simulated.
ResultCell TimesFaster(const Measured* measured, double than_s);

// What is compared in a column: the fastest of a method, or one algorithm.
struct Family {
  std::string_view algorithm;  // as Fastest() takes it
  const char* name;
};
// Microseconds of each family; "" where it was not simulated.
std::vector<ResultCell> CellsOf(std::span<const Measured> all, int64_t size,
                                std::span<const Family> families);
std::vector<ResultColumn> ColumnsOf(std::span<const Family> families);
// A point of each family's series, where it was simulated.
void AddPoints(std::span<const Measured> all, int64_t size, double x,
               std::span<const Family> families, Chart* chart);
Chart ChartOf(std::string title, std::string x_label, std::span<const Family> families);

// What an all-to-all takes at least.
struct Floors {
  double direct_s = 0;   // of algorithms that send each block as a message of its own
  double network_s = 0;  // of all algorithms
};

// Algorithms over sizes of blocks and numbers of ranks: of each platform a table with a row, and a
// chart with a point, for each pair that fits the memory.
struct Comparison {
  std::string title;  // "title, platform"
  std::span<const char* const> platforms;
  std::span<const int64_t> sizes;  // bytes
  std::vector<int64_t> ranks;
  std::span<const Family> families;  // the first columns, and the lines of the charts
  std::function<std::vector<std::string>(const Machine& machine, int64_t size)> algorithms;
  std::vector<ResultColumn> more_columns;  // behind those and the floors'
  std::function<std::vector<ResultCell>(std::span<const Measured> all, int64_t size, Floors floors)>
      more_cells;
};
Result<ExperimentResult> Compare(const Comparison& comparison, const ExperimentOptions& options);

// How a floor is to be read; a note.
std::string FloorNote();

}  // namespace tutti::tuna
