#include "registry.h"

#include <fmt/format.h>

#include "tutti/base/nearest.h"

namespace tutti {

std::span<const Experiment> Experiments() {
  // One line an experiment.
  // clang-format off
  static const std::vector<Experiment> kTable = {
      DirectTable4(),
      DirectTable5(),
      DirectTable6(),
      DirectTable7(),
      DirectTable8(),
      DirectFigure7(),
      DirectFigure9(),
      DirectFigure15(),
      DirectFigure18(),
      TacosFigure1(),
      TacosFigure2a(),
      TacosFigure2b(),
      TacosFigure14(),
      TacosFigure15(),
      TacosTable5(),
      TacosFigure16(),
      TacosFigure17(),
      TacosFigure18(),
      TacosFigure19(),
      TacosFigure20(),
      TacosFigure21(),
      McfFigure3(),
      McfFigure4(),
      McfFigure5(),
      McfFigure6(),
      McfFigure7(),
      McfFigure8(),
      McfFigure9(),
      McfFigure10(),
      McfLayers(),
      ClustersLimits(),
      ClustersCollectives(),
      ClustersGrowth(),
      TunaFigure7(),
      TunaFigure8(),
      TunaFigure9(),
      TunaFigure10(),
      TunaFigure11(),
      TunaFigure12(),
      TunaFigure13(),
      TunaFigure14(),
      TunaFigure15(),
      TunaFigure16(),
      TunaAuto(),
      TunaLocal(),
      MccsFigure3(),
      MccsLatency(),
      MccsFigure6(),
      MccsFigure7(),
      MccsFigure8(),
      MccsFigure9(),
      MccsFigure10(),
      MccsFigure11(),
      MccsPolicyTime(),
      MccsReconfigure(),
      MccsBeyond(),
      MccsBySize(),
      MccsLostLink(),
  };
  // clang-format on
  return kTable;
}

Result<const Experiment*> FindExperiment(std::string_view name) {
  std::vector<std::string_view> names;
  std::string accepted;
  for (const Experiment& experiment : Experiments()) {
    if (experiment.name == name) return &experiment;
    names.push_back(experiment.name);
    accepted += accepted.empty() ? "" : ", ";
    accepted += experiment.name;
  }
  return MakeError(ErrorCode::kNotFound, fmt::format("unknown experiment '{}'{}; accepted are {}",
                                                     name, NearestHint(name, names), accepted));
}

Result<ExperimentResult> RunExperiment(const Experiment& experiment,
                                       const ExperimentOptions& options) {
  if (options.max_ranks < 0 || options.max_ranks == 1)
    return InvalidArgument(fmt::format(
        "the largest number of ranks is {}; accepted are 2 and more, or 0 for the paper's",
        options.max_ranks));
  if (options.step < 0)
    return InvalidArgument(
        fmt::format("the step is {}; accepted are 1 and more, or 0 for the usual", options.step));
  return experiment.run(options);
}

}  // namespace tutti
