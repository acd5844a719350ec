/* Ranks that go on when one of them has ended: start it once for each rank, with a file that all see,
 *   for r in 0 1 2 3; do ./go_on_without 4 $r /tmp/my.id 2 & done; wait
 * The rank that is named last ends without a word after a few all-reduces; the others make a communicator without it. */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

static void check(tuttiResult_t result) {
  if (result == tuttiSuccess) return;
  fprintf(stderr, "%s: %s\n", tuttiGetErrorString(result), tuttiGetLastError(NULL));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s RANKS RANK FILE RANK_THAT_ENDS\n", argv[0]);
    return 2;
  }
  const int ranks = atoi(argv[1]), rank = atoi(argv[2]), ends = atoi(argv[4]);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.timeout_s = 30;
  tuttiComm_t comm;
  check(tuttiCommInitFile(&comm, ranks, rank, argv[3], &config));
  for (int step = 0; step < 10; ++step) {
    if (rank == ends && step == 5) _Exit(0);
    float sum = 1;
    if (tuttiAllReduce(&sum, &sum, 1, tuttiFloat, tuttiSum, comm, NULL) == tuttiSuccess) continue;
    /* Somebody has gone: who is left goes on from this step. */
    tuttiComm_t left;
    check(tuttiCommShrink(comm, NULL, 0, &left, NULL, TUTTI_SHRINK_DEFAULT));
    check(tuttiCommDestroy(comm));
    comm = left;
    --step;
  }
  int count = 0, new_rank = 0;
  check(tuttiCommCount(comm, &count));
  check(tuttiCommUserRank(comm, &new_rank));
  if (new_rank == 0) printf("%d of %d ranks went on\n", count, ranks);
  check(tuttiCommFinalize(comm));
  check(tuttiCommDestroy(comm));
  return 0;
}
