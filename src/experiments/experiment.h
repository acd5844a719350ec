// Experiments: tables and figures of the papers, made again and laid beside the printed ones.
//
// Model       An experiment fills tables. A row says what was measured, a column which quantity; a
//             cell holds our figure, the paper's (as it is printed) or both, or a word where a
//             method gives no answer. What the paper only draws is made as a chart, and what it
//             says of the drawing in words ("ten times better near N = 1000") is a row.
// Exactness   Our figures are exact where the method is; "=" means that ours, rounded to as many
//             digits as the paper prints, is (or, known between limits, may be) the paper's.
// Threads     Run one experiment at a time; each uses base/parallel.h inside.
// Errors      kNotFound: no such experiment (names the nearest). kInvalidArgument: options out of
//             range. kCancelled. A method that fails on one network is a word in its cell, not an
//             error.
// Reference   docs/papers.md; each experiment names its table or figure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"

namespace tutti {

struct ResultCell {
  std::optional<Rational> ours = {};
  std::optional<Rational> limit = {};  // proven: what is best lies between ours and this
  std::string text = {};               // instead of a figure of ours
  std::string paper = {};  // "1.020", "5.71e-2", "8/5", "<= 2", "< 0.01", or a word; "": none
};

// How figures of a column are written.
enum class FigureStyle : uint8_t {
  kFixed,       // 1.020
  kScientific,  // 5.71e-02
  kExact,       // 15/16
};

struct ResultColumn {
  std::string name;       // "TB"
  std::string unit = {};  // "M/B"; "" for counts and words
  FigureStyle style = FigureStyle::kFixed;
  int32_t digits = 0;  // behind the point
  bool timed = false;  // measured on this machine: shown beside the paper's, not counted as equal
};

struct ResultRow {
  std::string label;
  std::vector<ResultCell> cells;  // one a column
};

struct ResultTable {
  std::string title;
  std::string label_name;  // what the labels are: "topology"
  std::vector<ResultColumn> columns;
  std::vector<ResultRow> rows = {};
};

struct ChartSeries {
  std::string name;
  bool line = true;       // otherwise points
  bool grey = false;      // something to compare with; others get a colour by their name
  std::string like = {};  // takes the colour of the series of this name, drawn hollow
  std::vector<std::pair<double, double>> points = {};
};

// Cells of one colour each, from light (0) to dark (1); or of words, each with a colour of its own.
struct HeatMap {
  int32_t columns = 0;
  std::vector<std::optional<double>> cells = {};  // row after row from the top; none: white
  std::vector<std::string> column_names = {}, row_names = {};  // empty: numbers from 0
  std::vector<std::string> words = {};                         // in place of `cells`; "": none
  std::string low = "0", high = "1";                           // what the scale says at its ends
};

// Lines and points, bars, or a heat map.
struct Chart {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::optional<double> y_min = {};  // nothing below is drawn
  std::vector<ChartSeries> series = {};
  // Names of bars, in which the series lie on each other, the first at the bottom; each series has
  // the points (0, ..), (1, ..), ... of all bars.
  std::vector<std::string> bars = {};
  bool beside = false;  // bars of the series stand beside each other instead
  std::optional<HeatMap> heat = {};
};

struct ExperimentResult {
  std::vector<ResultTable> tables = {};
  std::vector<std::string> notes = {};  // how it was measured, where and why it differs
  std::vector<Chart> charts = {};
  int32_t charts_a_row = 1;
};

struct ExperimentOptions {
  int64_t max_ranks = 0;       // leave out larger networks; 0: as large as the paper's
  int64_t step = 0;            // of sweeps over N, every step-th N; 0: what the experiment takes
  bool large = false;          // also what takes minutes: each experiment says what that is
  std::string simulated = {};  // folder that keeps simulated points and testbed runs; "": none
};

struct Experiment {
  std::string_view name;     // "direct-table5": key of the paper, then its table or figure
  std::string_view source;   // "[direct-connect] table 5"
  std::string_view summary;  // one line
  Result<ExperimentResult> (*run)(const ExperimentOptions& options);
};

// In the order of the papers.
std::span<const Experiment> Experiments();
Result<const Experiment*> FindExperiment(std::string_view name);

// What callers use: checks the options, then runs.
Result<ExperimentResult> RunExperiment(const Experiment& experiment,
                                       const ExperimentOptions& options);

// Our figure as its column writes it, or the cell's word.
std::string OursText(const ResultCell& cell, const ResultColumn& column);

struct Comparison {
  bool agrees = false;
  // "=" where both agree, "holds" for a limit; "+1" between small whole numbers, "-0.31 %", "12
  // times less" where they are further apart than a factor of 2; "differs" between words.
  std::string text;
  std::optional<double> relative = {};  // ours / paper - 1
};
// nullopt where the cell lacks one of the two, or one is a word and the other is not.
std::optional<Comparison> Compare(const ResultCell& cell);

}  // namespace tutti
