// Flags of the simulator, shared by `sim` and `compare`; how links are held also by `synth`.
#pragma once

#include <string>

#include "common.h"
#include "tutti/sim/simulator.h"

namespace tutti::cli {

struct LinkModelFlag {
  std::string name = "held";

  void AddTo(Command command) {
    command
        .AddOption("--link-model", name,
                   "held: a message holds its link for alpha + m/bandwidth; pipelined: for "
                   "m/bandwidth, and arrives alpha later")
        .ShowDefault()
        .OneOf({"held", "pipelined"});
  }

  LinkModel model() const { return name == "held" ? LinkModel::kHeld : LinkModel::kPipelined; }
};

struct SimFlags {
  LinkModelFlag links;
  std::string mode = "eager";

  void AddTo(Command command) {
    links.AddTo(command);
    command
        .AddOption("--mode", mode,
                   "barrier: steps start together; eager: a message starts when its data is there")
        .ShowDefault()
        .OneOf({"barrier", "eager"});
  }

  SimOptions Make() const {
    SimOptions options;
    options.link_model = links.model();
    options.step_mode = mode == "barrier" ? StepMode::kBarrier : StepMode::kEager;
    return options;
  }
};

}  // namespace tutti::cli
