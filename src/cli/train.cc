// tutti train
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common.h"
#include "files.h"
#include "html.h"
#include "sim_flags.h"
#include "tutti/base/cancel.h"
#include "tutti/base/units.h"
#include "tutti/bounds/bounds.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/synth/auto.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/training/parallel_groups.h"
#include "tutti/training/schedule_times.h"
#include "tutti/training/training.h"
#include "tutti/training/training_workload.h"
#include "tutti/verify/verifier.h"

namespace tutti::cli {
namespace {

struct TrainFlags {
  std::string workload, topology, algorithms;
  int64_t batch = 0, tensor = 0;
  std::string bucket = "25MiB";
  bool no_overlap = false;
  std::string peak = "312e12", efficiency = "0.75", memory = "2039GB/s", launch = "0";
  int32_t chunks = 0;
  uint64_t seed = 1;
  SimFlags sim;
  HtmlFlag html;
};

Result<Accelerator> MakeAccelerator(const TrainFlags& flags) {
  const auto refused = [](const char* flag, const std::string& text, const char* accepted) {
    return InvalidArgument(fmt::format("{} is '{}'; accepted {}", flag, text, accepted));
  };
  const std::optional<Rational> peak = Rational::Parse(flags.peak);
  const std::optional<Rational> efficiency = Rational::Parse(flags.efficiency);
  if (!peak || *peak < Rational(1) || *peak > Rational(int64_t{1'000'000'000'000'000'000}))
    return refused("--peak", flags.peak, "are operations a second from 1 to 1e18, as 312e12");
  if (!efficiency || *efficiency <= Rational(0) || *efficiency > Rational(1))
    return refused("--efficiency", flags.efficiency, "is more than 0 and at most 1, as 0.75");
  const std::optional<int64_t> attained = (*peak * *efficiency).Floor().Num64();
  if (!attained || *attained < 1)
    return refused("--efficiency", flags.efficiency, "is what leaves one operation a second");
  const Result<int64_t> memory = ParseBandwidth(flags.memory);
  if (!memory) return Within("--memory", memory.error());
  if (*memory < 1) return refused("--memory", flags.memory, "is 1 byte a second and more");
  const Result<int64_t> launch = ParseDurationPs(flags.launch);
  if (!launch) return Within("--launch", launch.error());
  return Accelerator{*attained, *memory, *launch};
}

// What is trained, where.
struct TrainJob {
  TrainingWorkload workload;
  TrainingSplit split = {};
  Accelerator accelerator = kA100Fp16;
  int64_t bucket_bytes = 0;
  ParallelGroups groups = {};
  std::vector<TrainingStep> steps = {};
  int64_t largest_tensor_bytes = 0, largest_gradient_bytes = 0;  // of one collective
};

Result<TrainJob> MakeJob(const TrainFlags& flags, const Topology& topology) {
  Result<TrainingWorkload> workload = LoadTrainingWorkload(flags.workload);
  if (!workload) return tl::unexpected(workload.error());
  const Result<Accelerator> accelerator = MakeAccelerator(flags);
  if (!accelerator) return tl::unexpected(accelerator.error());
  Result<int64_t> bucket = kOneBucket;
  if (!flags.no_overlap) bucket = ParseSizeBytes(flags.bucket);
  if (!bucket) return Within("--bucket", bucket.error());
  if (*bucket < 1) return InvalidArgument("--bucket is 0; accepted are 1 byte and more");

  TrainJob job{.workload = *std::move(workload)};
  job.accelerator = *accelerator;
  job.bucket_bytes = *bucket;
  job.split.batch = flags.batch > 0 ? flags.batch : job.workload.batch;
  job.split.tensor = flags.tensor > 0 ? flags.tensor : job.workload.tensor;
  // Faults of the workload before those of the network; a tensor that does not divide the ranks is
  // one of the latter.
  job.split.replicas = std::max<int64_t>(1, topology.num_ranks() / job.split.tensor);
  Result<std::vector<TrainingStep>> steps =
      MakeTrainingSteps(job.workload, job.split, job.accelerator);
  if (!steps) return tl::unexpected(steps.error());
  job.steps = *std::move(steps);
  Result<ParallelGroups> groups = MakeParallelGroups(topology, job.split.tensor);
  if (!groups) return Within("--tensor", groups.error());
  job.groups = *std::move(groups);

  // What is asked for does not depend on how long it takes.
  const CollectiveTimes instant{
      .all_reduce_ps =
          [&job](int64_t bytes) {
            job.largest_gradient_bytes = std::max(job.largest_gradient_bytes, bytes);
            return int64_t{0};
          },
      .tensor_all_reduce_ps =
          [&job](int64_t bytes) {
            job.largest_tensor_bytes = std::max(job.largest_tensor_bytes, bytes);
            return int64_t{0};
          }};
  SimulateTraining(job.steps, instant, job.bucket_bytes);
  return job;
}

// A name and what it stands for; nothing: the best of all.
struct TrainEntry {
  std::string name;
  const Synthesizer* synthesizer = nullptr;
};

Result<Schedule> Synthesize(const TrainEntry& entry, const Topology& network,
                            const Collective& collective, const SynthOptions& options) {
  if (entry.synthesizer != nullptr)
    return RunSynthesizer(*entry.synthesizer, network, collective, options);
  Result<AutoChoice> choice = ChooseSynthesizer(network, collective, options);
  if (!choice) return tl::unexpected(choice.error());
  return std::move(choice->schedule);
}

// A proven all-reduce schedule for one network, made for the largest size, or nothing to reduce.
Result<std::optional<ScheduleTimes>> MakeTimes(const TrainFlags& flags, const TrainEntry& entry,
                                               const std::optional<Topology>& network,
                                               int64_t largest_bytes) {
  if (!network || largest_bytes == 0) return std::optional<ScheduleTimes>();
  Collective::Options options;
  options.all_reduce_shards =
      entry.synthesizer != nullptr && entry.synthesizer->one_shard_all_reduce ? 1 : 0;
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllReduce, network->num_ranks(), options);
  if (!collective) return tl::unexpected(collective.error());
  const SimOptions sim = flags.sim.Make();
  SynthOptions how;
  how.chunks = flags.chunks;
  how.seed = flags.seed;
  how.size_bytes = largest_bytes;
  how.element_bytes = 4;  // gradients are floats
  how.link_model = sim.link_model;
  Result<Schedule> schedule = Synthesize(entry, *network, *collective, how);
  if (!schedule) return tl::unexpected(schedule.error());
  const VerifyReport report = Verify(*network, schedule->collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the schedule of '{}' is not correct: {}", entry.name,
                                 report.violations.front().message));
  return std::optional<ScheduleTimes>(std::in_place, *network, *std::move(schedule), sim);
}

Result<TrainingTimeline> TrainBy(const TrainEntry& entry, const TrainFlags& flags,
                                 const TrainJob& job) {
  Result<std::optional<ScheduleTimes>> tensor =
      MakeTimes(flags, entry, job.groups.tensor, job.largest_tensor_bytes);
  if (!tensor) return tl::unexpected(tensor.error());
  Result<std::optional<ScheduleTimes>> data =
      MakeTimes(flags, entry, job.groups.data, job.largest_gradient_bytes);
  if (!data) return tl::unexpected(data.error());
  const auto asked = [](std::optional<ScheduleTimes>& times) {
    return [&times](int64_t bytes) { return times ? times->ps(bytes) : 0; };
  };
  const CollectiveTimes times{.all_reduce_ps = asked(*data),
                              .tensor_all_reduce_ps = asked(*tensor)};
  TrainingTimeline line = SimulateTraining(job.steps, times, job.bucket_bytes);
  for (const std::optional<ScheduleTimes>* used : {&*tensor, &*data})
    if (*used && (*used)->fault()) return tl::unexpected(*(*used)->fault());
  return line;
}

// What an all-reduce takes at some limit of its network.
using LimitSeconds = double (*)(const Bounds& bounds, int64_t bytes);
double ProvenSeconds(const Bounds& bounds, int64_t bytes) { return bounds.Seconds(bytes); }
double IdealSeconds(const Bounds& bounds, int64_t bytes) {
  const double latency_s =
      static_cast<double>(bounds.latency_ps) / static_cast<double>(kPicosecondsPerSecond);
  return latency_s + bounds.ideal_seconds_per_byte.value_or(Rational(0)).ToDouble() *
                         static_cast<double>(bytes);
}

struct Limits {
  std::optional<Bounds> tensor, data;
};
Result<Limits> LimitsOf(const TrainJob& job) {
  Limits limits;
  const auto find = [](const std::optional<Topology>& network,
                       std::optional<Bounds>& out) -> Status {
    if (!network) return {};
    const Result<Collective> collective =
        Collective::Make(CollectiveKind::kAllReduce, network->num_ranks());
    if (!collective) return tl::unexpected(collective.error());
    Result<Bounds> bounds = BoundsOf(*network, *collective);
    if (!bounds) return tl::unexpected(bounds.error());
    out = *std::move(bounds);
    return {};
  };
  if (Status found = find(job.groups.tensor, limits.tensor); !found)
    return tl::unexpected(found.error());
  if (Status found = find(job.groups.data, limits.data); !found)
    return tl::unexpected(found.error());
  return limits;
}

TrainingTimeline TrainAt(LimitSeconds seconds, const Limits& limits, const TrainJob& job) {
  const auto asked = [seconds](const std::optional<Bounds>& bounds) {
    return [seconds, &bounds](int64_t bytes) {
      return bounds ? static_cast<int64_t>(std::floor(seconds(*bounds, bytes) *
                                                      static_cast<double>(kPicosecondsPerSecond)))
                    : int64_t{0};
    };
  };
  const CollectiveTimes times{.all_reduce_ps = asked(limits.data),
                              .tensor_all_reduce_ps = asked(limits.tensor)};
  return SimulateTraining(job.steps, times, job.bucket_bytes);
}

double InSeconds(int64_t ps) {
  return static_cast<double>(ps) / static_cast<double>(kPicosecondsPerSecond);
}

Json JsonOf(const TrainingTimeline& line) {
  Json row;
  row["iteration_s"] = InSeconds(line.iteration_ps);
  row["forward_s"] = InSeconds(line.compute_ps - line.backward_compute_ps);
  row["backward_s"] = InSeconds(line.backward_compute_ps);
  row["forward_tensor_s"] = InSeconds(line.tensor_ps - line.backward_tensor_ps);
  row["backward_tensor_s"] = InSeconds(line.backward_tensor_ps);
  row["gradients_s"] = InSeconds(line.all_reduce_ps);
  row["exposed_gradients_s"] = InSeconds(line.exposed_all_reduce_ps);
  return row;
}

std::vector<std::string> Cells(const std::string& name, const TrainingTimeline& line,
                               const TrainingTimeline& bound) {
  return {name,
          Seconds(InSeconds(line.iteration_ps)),
          Seconds(InSeconds(line.compute_ps - line.backward_compute_ps)),
          Seconds(InSeconds(line.backward_compute_ps)),
          Seconds(InSeconds(line.tensor_ps)),
          Seconds(InSeconds(line.exposed_all_reduce_ps)),
          Seconds(InSeconds(line.all_reduce_ps)),
          Percent(static_cast<double>(bound.iteration_ps) /
                  static_cast<double>(std::max<int64_t>(line.iteration_ps, 1)))};
}

void Describe(const TrainJob& job, Json& out) {
  out["workload"] = job.workload.name;
  out["parameters"] = job.workload.Parameters();
  out["forward_flops"] = job.workload.ForwardFlops();
  out["batch"] = job.split.batch;
  out["tensor"] = job.split.tensor;
  out["replicas"] = job.split.replicas;
  out["bucket_bytes"] = job.bucket_bytes == kOneBucket ? Json(nullptr) : Json(job.bucket_bytes);
  out["flops_per_s"] = job.accelerator.flops_per_s;
  out["memory_bytes_per_s"] = job.accelerator.memory_bytes_per_s;
  out["launch_s"] = InSeconds(job.accelerator.launch_ps);
}

std::string Text(const TrainJob& job, const Topology& topology, const TrainFlags& flags) {
  std::string text = fmt::format(
      "{} on {}: {} replica{} of {} rank{}, {} sample{} each ({})\n", job.workload.name,
      NameOf(topology), job.split.replicas, job.split.replicas == 1 ? "" : "s", job.split.tensor,
      job.split.tensor == 1 ? "" : "s", job.split.batch, job.split.batch == 1 ? "" : "s",
      job.workload.sample.empty() ? "of the workload" : job.workload.sample);
  text += fmt::format("  parameters   {:.4g}\n  forward pass {:.4g} operations a sample\n",
                      static_cast<double>(job.workload.Parameters()),
                      static_cast<double>(job.workload.ForwardFlops()));
  text += fmt::format("  accelerator  {:.4g} operations a second, memory {}\n",
                      static_cast<double>(job.accelerator.flops_per_s),
                      BytesPerSecond(static_cast<double>(job.accelerator.memory_bytes_per_s)));
  if (job.largest_gradient_bytes > 0)
    text +=
        job.bucket_bytes == kOneBucket
            ? fmt::format("  gradients    {} in one all-reduce at the end\n",
                          ReadableSize(job.largest_gradient_bytes))
            : fmt::format("  gradients    in buckets of {} and more, the largest {}\n",
                          ReadableSize(job.bucket_bytes), ReadableSize(job.largest_gradient_bytes));
  return text +
         fmt::format("  simulated    links {}, steps {}\n", flags.sim.links.name, flags.sim.mode);
}

PageTraining::Activity ActivityOf(TrainingActivity activity) {
  switch (activity) {
    case TrainingActivity::kCompute:
      return PageTraining::Activity::kCompute;
    case TrainingActivity::kAllToAll:
      return PageTraining::Activity::kAllToAll;
    case TrainingActivity::kAllReduce:
      return PageTraining::Activity::kAllReduce;
    case TrainingActivity::kTensorAllReduce:
      break;
  }
  return PageTraining::Activity::kTensorAllReduce;
}

PageTraining::Row PageRow(const std::string& name, const TrainingTimeline& line) {
  PageTraining::Row row{.algorithm = name,
                        .iteration_ps = line.iteration_ps,
                        .forward_ps = line.compute_ps - line.backward_compute_ps,
                        .backward_ps = line.backward_compute_ps,
                        .tensor_ps = line.tensor_ps,
                        .all_to_all_ps = line.all_to_all_ps,
                        .exposed_ps = line.exposed_all_reduce_ps,
                        .gradients_ps = line.all_reduce_ps};
  for (const TrainingEvent& event : line.events)
    row.events.push_back({ActivityOf(event.activity), event.name, event.start_ps, event.end_ps});
  return row;
}

Status WriteTraining(const TrainFlags& flags, const Topology& topology,
                     const PageTraining& training) {
  if (!flags.html.given()) return {};
  PageData data("train");
  data.AddTraining(data.AddNetwork(topology), training);
  return flags.html.Write(data);
}

int Train(const Program& program, const TrainFlags& flags) {
  std::vector<std::string> inputs = FilesOf(flags.topology);
  inputs.push_back(flags.workload);
  if (const Status kept = flags.html.Check(inputs, ""); !kept) return Report(kept.error());
  const Result<Topology> topology = ParseTopology(flags.topology);
  if (!topology) return Report(topology.error());
  const Result<TrainJob> job = MakeJob(flags, *topology);
  if (!job) return Report(job.error());
  std::vector<TrainEntry> chosen;
  for (const std::string& name : SplitAtCommas(flags.algorithms)) {
    chosen.push_back({name});
    if (name == kAutoName) continue;
    const Result<const Synthesizer*> found = FindSynthesizer(name);
    if (!found) return Report(found.error());
    chosen.back().synthesizer = *found;
  }
  const Result<Limits> limits = LimitsOf(*job);
  if (!limits) return Report(limits.error());
  const TrainingTimeline bound = TrainAt(ProvenSeconds, *limits, *job);
  const TrainingTimeline ideal = TrainAt(IdealSeconds, *limits, *job);

  Json out;
  DescribeTopology(*topology, out);
  Describe(*job, out);
  out["rows"] = Json::array();
  Table table({"all-reduce by", "iteration", "forward", "backward", "tensor all-reduces",
               "gradients exposed", "gradients busy", "efficiency"});
  PageTraining page{
      .workload = job->workload.name,
      .how = fmt::format("simulated, links {}, steps {}", flags.sim.links.name, flags.sim.mode)};
  std::string reasons;
  bool some = false;
  for (const TrainEntry& entry : chosen) {
    if (CancelRequested()) return Report(CancelledError());
    const Result<TrainingTimeline> line = TrainBy(entry, flags, *job);
    if (!line) {
      if (line.error().code == ErrorCode::kCancelled) return Report(line.error());
      out["rows"].push_back({{"algorithm", entry.name}, {"error", line.error().message}});
      reasons += fmt::format("  {}: {}\n", entry.name, line.error().message);
      continue;
    }
    some = true;
    Json row;
    row["algorithm"] = entry.name;
    row.update(JsonOf(*line));
    row["efficiency"] = InSeconds(bound.iteration_ps) / InSeconds(line->iteration_ps);
    out["rows"].push_back(row);
    table.AddRow(Cells(entry.name, *line, bound));
    page.rows.push_back(PageRow(entry.name, *line));
  }
  page.rows.push_back(PageRow("bound", bound));
  if (const Status written = WriteTraining(flags, *topology, page); !written)
    return Report(written.error());
  out["bound"] = JsonOf(bound);
  out["ideal"] = JsonOf(ideal);
  out["peak_rss_bytes"] = PeakRssBytes();
  if (program.json) {
    Print(out);
    return some ? kDone : kAnswerIsNo;
  }
  table.AddRow(Cells("(bound)", bound, bound));
  table.AddRow(Cells("(ideal)", ideal, bound));
  fmt::print("{}", Text(*job, *topology, flags));
  if (some) fmt::print("\n{}", table.ToString());
  if (!reasons.empty()) fmt::print("\nnot in the table:\n{}", reasons);
  fmt::print("{}", flags.html.Text());
  return some ? kDone : kAnswerIsNo;
}

}  // namespace

void AddTrain(Program& program) {
  auto flags = std::make_shared<TrainFlags>();
  Command command = program.AddCommand(
      program.line.root(), "train",
      "Simulate an iteration of training: what computes, what communicates, what of that shows",
      "tutti train msft-1t 'torus(8,8,16)' -a ring,themis,ten");
  command
      .AddOption("workload", flags->workload,
                 fmt::format("{}, or a .csv file", fmt::join(BuiltInWorkloads(), ", ")))
      .Required();
  command.AddOption("topology", flags->topology, "Expression or path of a .json file").Required();
  command
      .AddOption("-a,--algorithm", flags->algorithms,
                 "Algorithms of the all-reduces, separated by commas; auto: the best of all")
      .Required();
  command
      .AddOption("--tensor", flags->tensor,
                 "Ranks that a replica of the model is split over; 0: as the workload says")
      .ShowDefault()
      .Within(0, 1 << 24);
  command.AddOption("--batch", flags->batch, "Samples a replica; 0: as the workload says")
      .ShowDefault()
      .Within(0, 1 << 20);
  command
      .AddOption("--bucket", flags->bucket,
                 "Gradients are all-reduced as soon as so many bytes are ready")
      .ShowDefault();
  command.AddFlag("--no-overlap", flags->no_overlap,
                  "All gradients in one all-reduce after the backward pass");
  command.AddOption("--peak", flags->peak, "Operations a second of a rank at best (A100, fp16)")
      .ShowDefault();
  command.AddOption("--efficiency", flags->efficiency, "Share of --peak that is attained")
      .ShowDefault();
  command.AddOption("--memory", flags->memory, "Memory bandwidth of a rank").ShowDefault();
  command.AddOption("--launch", flags->launch, "Time that every kernel takes to be launched")
      .ShowDefault();
  command
      .AddOption("--chunks", flags->chunks, "Equal chunks per shard; 0: what the algorithm needs")
      .ShowDefault()
      .Within(0, 1 << 30);
  command.AddOption("--seed", flags->seed, "Seed of algorithms that draw").ShowDefault();
  flags->sim.AddTo(command);
  flags->html.AddTo(command);
  command.Runs([&program, flags] { return Train(program, *flags); });
}

}  // namespace tutti::cli
