// Runs an experiment and prints its tables.
#include "bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>

#include "bench_flags.h"
#include "experiments/chart.h"
#include "experiments/experiment.h"
#include "tutti/base/file.h"
#include "tutti/base/parallel.h"

namespace tutti::cli {
namespace {

bool HasPaper(const ResultTable& table, size_t column) {
  for (const ResultRow& row : table.rows)
    if (!row.cells[column].paper.empty()) return true;
  return false;
}

std::string Titled(const ResultColumn& column) {
  return column.unit.empty() ? column.name : fmt::format("{} ({})", column.name, column.unit);
}

// What was measured on this machine is not the paper's because it rounds to its digits.
std::optional<Comparison> CompareIn(const ResultColumn& column, const ResultCell& cell) {
  std::optional<Comparison> comparison = Compare(cell);
  if (comparison && column.timed && comparison->agrees && comparison->relative.value_or(0) != 0) {
    comparison->agrees = false;
    comparison->text = fmt::format("{:+.2f} %", 100 * *comparison->relative);
  }
  return comparison;
}

// Header and rows as they are shown: beside a quantity of which the paper prints figures stand the
// paper's and the difference.
std::vector<std::vector<std::string>> Shown(const ResultTable& table) {
  std::vector<std::vector<std::string>> lines(1);
  lines[0].push_back(table.label_name);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    lines[0].push_back(Titled(table.columns[i]));
    if (!HasPaper(table, i)) continue;
    lines[0].push_back("paper");
    lines[0].push_back("diff");
  }
  for (const ResultRow& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(row.label);
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const ResultCell& cell = row.cells[i];
      line.push_back(OursText(cell, table.columns[i]));
      if (!HasPaper(table, i)) continue;
      line.push_back(cell.paper);
      const std::optional<Comparison> comparison = CompareIn(table.columns[i], cell);
      line.push_back(comparison ? comparison->text : "");
    }
  }
  return lines;
}

std::string Text(const ResultTable& table) {
  std::vector<std::vector<std::string>> lines = Shown(table);
  Table text(std::move(lines[0]));
  for (size_t i = 1; i < lines.size(); ++i) text.AddRow(std::move(lines[i]));
  return fmt::format("{}\n\n{}", table.title, text.ToString());
}

std::string Markdown(const ResultTable& table) {
  std::string text = fmt::format("**{}**\n\n", table.title);
  bool header = true;
  for (const std::vector<std::string>& line : Shown(table)) {
    text += "|";
    for (const std::string& cell : line) text += fmt::format(" {} |", cell);
    text += "\n";
    if (header) {
      text += "|---|";
      for (size_t i = 1; i < line.size(); ++i) text += "---:|";
      text += "\n";
    }
    header = false;
  }
  return text;
}

Json ToJson(const ResultTable& table) {
  Json out;
  out["title"] = table.title;
  out["label"] = table.label_name;
  out["columns"] = Json::array();
  for (const ResultColumn& column : table.columns)
    out["columns"].push_back(
        {{"name", column.name}, {"unit", column.unit}, {"measured", column.timed}});
  out["rows"] = Json::array();
  for (const ResultRow& row : table.rows) {
    Json shown;
    shown["label"] = row.label;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const ResultCell& cell = row.cells[i];
      Json& entry = shown["cells"][table.columns[i].name];
      entry["ours"] = cell.ours ? cli::ToJson(*cell.ours) : Json(nullptr);
      if (cell.limit) entry["limit"] = cli::ToJson(*cell.limit);
      if (!cell.text.empty()) entry["text"] = cell.text;
      if (!cell.paper.empty()) entry["paper"] = cell.paper;
      if (const std::optional<Comparison> comparison = CompareIn(table.columns[i], cell)) {
        entry["agrees"] = comparison->agrees;
        entry["difference"] = comparison->relative ? Json(*comparison->relative) : Json(nullptr);
      }
    }
    out["rows"].push_back(shown);
  }
  return out;
}

Json ToJson(const Chart& chart) {
  Json out;
  out["title"] = chart.title;
  out["x"] = chart.x_label;
  out["y"] = chart.y_label;
  out["series"] = Json::array();
  for (const ChartSeries& series : chart.series)
    out["series"].push_back({{"name", series.name}, {"points", series.points}});
  if (!chart.bars.empty()) out["bars"] = chart.bars;
  if (chart.heat) {
    out["columns"] = chart.heat->columns;
    out["cells"] = Json::array();
    for (const std::optional<double>& cell : chart.heat->cells)
      out["cells"].push_back(cell ? Json(*cell) : Json(nullptr));
    for (const std::string& word : chart.heat->words)
      out["cells"].push_back(word.empty() ? Json(nullptr) : Json(word));
  }
  return out;
}

int List(const Program& program) {
  if (program.json) {
    Json out;
    out["experiments"] = Json::array();
    for (const Experiment& experiment : Experiments())
      out["experiments"].push_back({{"name", experiment.name},
                                    {"source", experiment.source},
                                    {"summary", experiment.summary}});
    Print(out);
    return kDone;
  }
  Table table({"experiment", "what is made again"}, Table::Last::kProse);
  for (const Experiment& experiment : Experiments())
    table.AddRow({std::string(experiment.name),
                  fmt::format("{}: {}", experiment.source, experiment.summary)});
  fmt::print("{}", table.ToString());
  return kDone;
}

// As the system calls it: "AMD EPYC 7763".
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != line.npos) return line.substr(begin);
  }
  return "an unnamed processor";
}

// How many figures of the paper were compared, those that depend on the machine left out, and how
// many of ours are the same.
struct Score {
  int64_t compared = 0, same = 0;
};
Score ScoreOf(const ExperimentResult& result) {
  Score score;
  for (const ResultTable& table : result.tables)
    for (const ResultRow& row : table.rows)
      for (size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].timed) continue;
        const std::optional<Comparison> comparison = Compare(row.cells[i]);
        if (!comparison) continue;
        ++score.compared;
        score.same += comparison->agrees ? 1 : 0;
      }
  return score;
}

// What tables have that another machine would have otherwise: "synthesis, seconds"; "" where there
// is none.
std::string MeasuredHere(const ExperimentResult& result) {
  std::vector<std::string> names;
  for (const ResultTable& table : result.tables)
    for (const ResultColumn& column : table.columns)
      if (column.timed && std::find(names.begin(), names.end(), column.name) == names.end())
        names.push_back(column.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// An error where there is nothing to draw, or no place for the file.
Status Draw(const Experiment& experiment, const ExperimentResult& result,
            const std::string& output) {
  if (result.charts.empty())
    return InvalidArgument(fmt::format("-o {}: {} has no chart to draw, so no file was written",
                                       output, experiment.name));
  const Result<std::string> svg = DrawSvg(result.charts, result.charts_a_row);
  if (!svg) return tl::unexpected(svg.error());
  return WriteFileAtomically(output, *svg);
}

Json JsonOf(const Experiment& experiment, const ExperimentResult& result, double elapsed_s) {
  const Score score = ScoreOf(result);
  Json out;
  out["experiment"] = experiment.name;
  out["source"] = experiment.source;
  out["summary"] = experiment.summary;
  out["tables"] = Json::array();
  for (const ResultTable& table : result.tables) out["tables"].push_back(ToJson(table));
  out["charts"] = Json::array();
  for (const Chart& chart : result.charts) out["charts"].push_back(ToJson(chart));
  out["notes"] = result.notes;
  out["compared"] = score.compared;
  out["same"] = score.same;
  out["elapsed_s"] = elapsed_s;
  out["threads"] = NumThreads();
  out["processor"] = ProcessorName();
  out["peak_rss_bytes"] = PeakRssBytes();
  return out;
}

std::string TextOf(const Experiment& experiment, const ExperimentResult& result, bool markdown,
                   double elapsed_s) {
  const Score score = ScoreOf(result);
  std::string text;
  if (!markdown)
    text += fmt::format("{} ({}): {}\n\n", experiment.name, experiment.source, experiment.summary);
  for (const ResultTable& table : result.tables)
    text += (markdown ? Markdown(table) : Text(table)) + "\n";
  for (const std::string& note : result.notes)
    text += markdown ? note + "\n\n" : fmt::format("* {}\n", note);
  if (!markdown) text += "\n";
  if (score.compared > 0)
    text += fmt::format("{} of {} figures of the paper: ours are the same to its last digit. ",
                        score.same, score.compared);
  text += fmt::format("Took {} on {} threads of {}.", Seconds(elapsed_s), NumThreads(),
                      ProcessorName());
  if (const std::string measured = MeasuredHere(result); !measured.empty())
    text += fmt::format(" Measured on this machine: {}.", measured);
  return text + "\n";
}

int Redraw(const Program& program, const BenchFlags& flags) {
  if (!flags.name.empty())
    return Report({ErrorCode::kInvalidArgument,
                   fmt::format("--redraw {}: it measures nothing, so the experiment '{}' is left "
                               "over",
                               flags.redraw, flags.name)});
  const auto in_file = [&](Error error) {
    error.message = fmt::format("{}: {}", flags.redraw, error.message);
    return Report(error);
  };
  const Result<std::string> before = ReadFile(flags.redraw);
  if (!before) return Report(before.error());
  const Result<DrawnCharts> carried = ChartsOf(*before);
  if (!carried) return in_file(carried.error());
  const Result<std::string> svg = DrawSvg(carried->charts, carried->charts_a_row);
  if (!svg) return in_file(svg.error());
  const std::string& path = flags.output.empty() ? flags.redraw : flags.output;
  if (const Status written = WriteFileAtomically(path, *svg); !written)
    return Report(written.error());
  if (program.json)
    Print({{"drawn", path}, {"charts", carried->charts.size()}, {"changed", *svg != *before}});
  else
    fmt::print("drawn in {}{}\n", path, *svg == *before ? ": the same bytes" : "");
  return kDone;
}

int Bench(const Program& program, const BenchFlags& flags) {
  if (!flags.redraw.empty()) return Redraw(program, flags);
  if (flags.name.empty()) return List(program);
  const Result<const Experiment*> found = FindExperiment(flags.name);
  if (!found) return Report(found.error());
  const Experiment& experiment = **found;
  const auto before = std::chrono::steady_clock::now();
  const Result<ExperimentResult> result = RunExperiment(experiment, {.max_ranks = flags.max_ranks,
                                                                     .step = flags.step,
                                                                     .large = flags.large,
                                                                     .simulated = flags.simulated});
  if (!result) return Report(result.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  // The tables took minutes: they are printed whatever becomes of the drawing.
  const Status drawn = flags.output.empty() ? Status() : Draw(experiment, *result, flags.output);
  if (program.json) {
    Print(JsonOf(experiment, *result, elapsed.count()));
  } else {
    fmt::print("{}", TextOf(experiment, *result, flags.markdown, elapsed.count()));
    if (drawn && !flags.output.empty() && !flags.markdown)
      fmt::print("drawn in {}\n", flags.output);
  }
  return drawn ? kDone : Report(drawn.error());
}

}  // namespace

void AddExperiments(Program& program) {
  auto flags = std::make_shared<BenchFlags>();
  AddBenchCommand(program, flags).Runs([&program, flags] { return Bench(program, *flags); });
}

}  // namespace tutti::cli
