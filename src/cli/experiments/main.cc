// tutti-experiments: what `tutti bench` becomes, so that who plans collectives does not wait for
// the figures of the papers to be compiled, nor links what they need.
#include "bench.h"

int main(int argc, char** argv) {
  return tutti::cli::RunProgram(argc, argv, tutti::cli::AddExperiments);
}
