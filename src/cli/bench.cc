// tutti bench
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "common.h"
#include "tutti/base/file.h"
#include "tutti/base/parallel.h"
#include "tutti/reproduce/chart.h"
#include "tutti/reproduce/experiment.h"

namespace tutti::cli {
namespace {

struct Flags {
  std::string name, output;
  bool markdown = false;
  ExperimentOptions options;
};

bool HasPaper(const ResultTable& table, size_t column) {
  for (const ResultRow& row : table.rows)
    if (!row.cells[column].paper.empty()) return true;
  return false;
}

std::string Titled(const ResultColumn& column) {
  return column.unit.empty() ? column.name : fmt::format("{} ({})", column.name, column.unit);
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
      const std::optional<Comparison> comparison = Compare(cell);
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
    out["columns"].push_back({{"name", column.name}, {"unit", column.unit}});
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
      if (const std::optional<Comparison> comparison = Compare(cell)) {
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
  if (chart.heat) {
    out["columns"] = chart.heat->columns;
    out["cells"] = Json::array();
    for (const std::optional<double>& cell : chart.heat->cells)
      out["cells"].push_back(cell ? Json(*cell) : Json(nullptr));
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

int Bench(const Program& program, const Flags& flags) {
  if (flags.name.empty()) return List(program);
  const Result<const Experiment*> found = FindExperiment(flags.name);
  if (!found) return Report(found.error());
  const Experiment& experiment = **found;
  const auto before = std::chrono::steady_clock::now();
  const Result<ExperimentResult> result = RunExperiment(experiment, flags.options);
  if (!result) return Report(result.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  if (!flags.output.empty()) {
    const Result<std::string> svg = DrawSvg(result->charts, result->charts_a_row);
    if (!svg) return Report(svg.error());
    if (const Status written = WriteFileAtomically(flags.output, *svg); !written)
      return Report(written.error());
  }
  const Score score = ScoreOf(*result);
  if (program.json) {
    Json out;
    out["experiment"] = experiment.name;
    out["source"] = experiment.source;
    out["summary"] = experiment.summary;
    out["tables"] = Json::array();
    for (const ResultTable& table : result->tables) out["tables"].push_back(ToJson(table));
    out["charts"] = Json::array();
    for (const Chart& chart : result->charts) out["charts"].push_back(ToJson(chart));
    out["notes"] = result->notes;
    out["compared"] = score.compared;
    out["same"] = score.same;
    out["elapsed_s"] = elapsed.count();
    out["threads"] = NumThreads();
    out["peak_rss_bytes"] = PeakRssBytes();
    Print(out);
    return kDone;
  }
  std::string text;
  if (!flags.markdown)
    text += fmt::format("{} ({}): {}\n\n", experiment.name, experiment.source, experiment.summary);
  for (const ResultTable& table : result->tables)
    text += (flags.markdown ? Markdown(table) : Text(table)) + "\n";
  for (const std::string& note : result->notes)
    text += flags.markdown ? note + "\n\n" : fmt::format("* {}\n", note);
  if (!flags.markdown) text += "\n";
  if (score.compared > 0)
    text += fmt::format("{} of {} figures of the paper: ours are the same to its last digit. ",
                        score.same, score.compared);
  text += fmt::format("Took {} on {} threads.\n", Seconds(elapsed.count()), NumThreads());
  if (!flags.output.empty() && !flags.markdown) text += fmt::format("drawn in {}\n", flags.output);
  fmt::print("{}", text);
  return kDone;
}

}  // namespace

void AddBench(Program& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      program.AddCommand(&program.app, "bench",
                         "Makes a table or figure of a paper again, side by side with the paper's "
                         "figures; without a name, lists them",
                         "tutti bench direct-table5");
  command->add_option("name", flags->name, "Experiment; none: list them");
  command->add_option("-o,--output", flags->output,
                      "Also draw the figure to this SVG file (needs gnuplot)");
  command->add_flag("--markdown", flags->markdown, "Print tables as Markdown");
  command
      ->add_option("--max-ranks", flags->options.max_ranks,
                   "Leave out larger networks; 0: as large as the paper's")
      ->capture_default_str();
  command
      ->add_option("--step", flags->options.step,
                   "Of sweeps over N take every STEPth N; 0: what the experiment takes")
      ->capture_default_str();
  command->add_flag("--large", flags->options.large,
                    "Also what takes minutes; each experiment's notes say what that is");
  command->add_option("--simulated", flags->options.simulated,
                      "Keep simulated points in this folder, and take from there what is known");
  command->callback(
      [&program, flags] { program.action = [&program, flags] { return Bench(program, *flags); }; });
}

}  // namespace tutti::cli
