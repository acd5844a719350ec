// One function a format, defined in the file of its library; registry.cc lists them.
#pragma once

#include "tutti/advise/rules.h"

namespace tutti::rules {

RuleFormat NcclTunerFormat();    // nccl_tuner.cc
RuleFormat OpenMpiFormat();      // openmpi.cc
RuleFormat OpenMpiJsonFormat();  // openmpi.cc
RuleFormat MpichFormat();        // mpich.cc

}  // namespace tutti::rules
