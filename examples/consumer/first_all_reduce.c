/* A first all-reduce in C, between processes of one host or of several: start it once for each rank,
 *   for r in 0 1 2 3; do ./first_all_reduce 4 $r /tmp/my.id & done; wait
 * The file is where rank 0 says how it is reached; all ranks have to see it. */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

static void check(tuttiResult_t result) {
  if (result == tuttiSuccess) return;
  fprintf(stderr, "%s: %s\n", tuttiGetErrorString(result), tuttiGetLastError(NULL));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s RANKS RANK FILE\n", argv[0]);
    return 2;
  }
  const int ranks = atoi(argv[1]), rank = atoi(argv[2]);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.timeout_s = 30;
  tuttiComm_t comm;
  check(tuttiCommInitFile(&comm, ranks, rank, argv[3], &config));

  enum { kCount = 1000000 };
  float* data = malloc(kCount * sizeof(float));
  if (data == NULL) return 1;
  for (int i = 0; i < kCount; ++i) data[i] = (float)(rank + 1);
  check(tuttiAllReduce(data, data, kCount, tuttiFloat, tuttiSum, comm, NULL));

  const float wanted = (float)(ranks * (ranks + 1) / 2);
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += data[i] != wanted;
  if (rank == 0) printf("%d ranks, sum %g, %d elements wrong\n", ranks, data[0], wrong);
  free(data);
  check(tuttiCommFinalize(comm));
  check(tuttiCommDestroy(comm));
  return wrong != 0;
}
