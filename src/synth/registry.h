// One function a synthesizer, defined in the folder of its family; registry.cc lists them.
// Functions and not objects, so that the table is whole whenever it is first asked for.
#pragma once

#include "tutti/synth/synthesizer.h"

namespace tutti {

Synthesizer BfbSynthesizer();          // bfb/bfb.cc
Synthesizer TenSynthesizer();          // ten/ten.cc
Synthesizer RingSynthesizer();         // classic/ring.cc
Synthesizer UniringSynthesizer();      // classic/ring.cc
Synthesizer DirectSynthesizer();       // classic/direct.cc
Synthesizer RhdSynthesizer();          // classic/doubling.cc
Synthesizer DbtSynthesizer();          // classic/dbt.cc
Synthesizer BruckSynthesizer();        // classic/doubling.cc
Synthesizer TorusDimsSynthesizer();    // classic/torus_dims.cc
Synthesizer ExpandSynthesizer();       // expand/recipe.cc
Synthesizer StoredSynthesizer();       // stored/stored.cc
Synthesizer BlueConnectSynthesizer();  // baselines/blueconnect.cc
Synthesizer ThemisSynthesizer();       // baselines/themis.cc
Synthesizer CCubeSynthesizer();        // baselines/c_cube.cc
Synthesizer MultiTreeSynthesizer();    // baselines/multitree.cc
Synthesizer TtoSynthesizer();          // baselines/tto.cc
Synthesizer TacclLikeSynthesizer();    // baselines/taccl_like.cc
Synthesizer TsmcfSynthesizer();        // tsmcf/tsmcf.cc
Synthesizer McfSynthesizer();          // tsmcf/tsmcf.cc
Synthesizer ForestSynthesizer();       // forest/forest.cc
Synthesizer StepLpSynthesizer();       // step_lp/step_lp.cc

}  // namespace tutti
