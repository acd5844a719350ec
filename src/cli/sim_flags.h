// Flags of the simulator, shared by `sim` and `compare`.
#pragma once

#include <string>

#include "common.h"
#include "tutti/sim/simulator.h"

namespace tutti::cli {

struct SimFlags {
  std::string link_model = "held", mode = "eager";

  void AddTo(CLI::App* command) {
    command
        ->add_option("--link-model", link_model,
                     "held: a message holds its link for alpha + m/bandwidth; pipelined: for "
                     "m/bandwidth, and arrives alpha later")
        ->capture_default_str()
        ->check(CLI::IsMember({"held", "pipelined"}));
    command
        ->add_option(
            "--mode", mode,
            "barrier: steps start together; eager: a message starts when its data is there")
        ->capture_default_str()
        ->check(CLI::IsMember({"barrier", "eager"}));
  }

  SimOptions Make() const {
    SimOptions options;
    options.link_model = link_model == "held" ? LinkModel::kHeld : LinkModel::kPipelined;
    options.step_mode = mode == "barrier" ? StepMode::kBarrier : StepMode::kEager;
    return options;
  }
};

}  // namespace tutti::cli
