// The experiments, one function each; registry.cc lists them.
#pragma once

#include "experiment.h"

namespace tutti {

Experiment DirectTable4();
Experiment DirectTable5();
Experiment DirectTable6();
Experiment DirectTable7();
Experiment DirectTable8();
Experiment DirectFigure7();
Experiment DirectFigure9();
Experiment DirectFigure15();
Experiment DirectFigure18();
Experiment TacosFigure1();
Experiment TacosFigure2a();
Experiment TacosFigure2b();
Experiment TacosFigure14();
Experiment TacosFigure15();
Experiment TacosTable5();
Experiment TacosFigure16();
Experiment TacosFigure17();
Experiment TacosFigure18();
Experiment TacosFigure19();
Experiment TacosFigure20();
Experiment TacosFigure21();
Experiment McfFigure3();
Experiment McfFigure4();
Experiment McfFigure5();
Experiment McfFigure6();
Experiment McfFigure7();
Experiment McfFigure8();
Experiment McfFigure9();
Experiment McfFigure10();
Experiment McfLayers();
Experiment ClustersLimits();
Experiment ClustersCollectives();
Experiment ClustersGrowth();
Experiment TunaFigure7();
Experiment TunaFigure8();
Experiment TunaFigure9();
Experiment TunaFigure10();
Experiment TunaFigure11();
Experiment TunaFigure12();
Experiment TunaFigure13();
Experiment TunaFigure14();
Experiment TunaFigure15();
Experiment TunaFigure16();
Experiment TunaAuto();
Experiment TunaLocal();
Experiment MccsFigure3();
Experiment MccsLatency();
Experiment MccsFigure6();
Experiment MccsFigure7();
Experiment MccsFigure8();
Experiment MccsFigure9();
Experiment MccsFigure10();
Experiment MccsFigure11();
Experiment MccsPolicyTime();
Experiment MccsReconfigure();
Experiment MccsBeyond();
Experiment MccsBySize();
Experiment MccsLostLink();

}  // namespace tutti
