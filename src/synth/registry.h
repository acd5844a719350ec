// One function a synthesizer, defined in the folder of its family; registry.cc lists them.
// Functions and not objects, so that the table is whole whenever it is first asked for.
#pragma once

#include "tutti/synth/synthesizer.h"

namespace tutti {

Synthesizer BfbSynthesizer();  // bfb/bfb.cc

}  // namespace tutti
