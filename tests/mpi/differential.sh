#!/bin/sh
# Runs the differential fuzzer (tests/mpi/differential/) on several numbers of ranks: CALLS calls in
# all, six of ten of them all-to-alls, with several settings of the environment that the drop-in library reads.
#   differential.sh openmpi|mpich PROGRAM CALLS [SEED [two]]
# `two`: all on two ranks, which two idle cores do at ten times the rate. 10^7 by hand, six minutes of two idle cores an MPI
# library (a core that others take, too, makes ranks wait for each other's turns); each run prints its seed:
#   tests/mpi/differential.sh openmpi build/release/bin/differential-openmpi 1000000 1
#   tests/mpi/differential.sh openmpi build/release/bin/differential-openmpi 9000000 2 two
set -eu
flavour=$1
program=$2
calls=$3
seed=${4:-1}
two=${5:-}
. "$(dirname "$0")/mpirun_environment.sh"
# Leaks are the MPI libraries' own.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A tuning database: `auto` defers no setup then, and takes these from the start.
remember() {
  echo "tutti-mpi 1"
  echo "model $flavour inside=9e-07,6e-11,1.1e-10 between=2e-06,8e-11,8e-11 send=2e-07 receive=2e-07 copy=5e-09,4e-11 eager=16384,5e-10"
  for of in 2 3 4 5 8; do
    for node in 1 2 3 4 5 8; do
      [ "$node" -le "$of" ] || continue
      for best in 1:tuna:r=2 4:tuna:r=3 16:shared 32:tuna:r=3 64:coalesced:r=2 128:scattered:b=2 256:staggered; do
        echo "best $flavour ranks=$of per-node=$node block=${best%%:*} algorithm=${best#*:} seconds=1e-06 own=1e-05"
      done
    done
  done
}

# one RANKS PER-CENT TUTTI_ALLTOALLV RANKS-A-NODE [OPTIONS...]
one() {
  ranks=$1
  share=$((calls * 6 / 10 * $2 / 100))
  algorithm=$3
  nodes=$4
  shift 4
  [ "$share" -gt 0 ] || return 0
  remember >"$folder/memory"
  seed=$((seed + 1))
  set -- env TUTTI_MPI_FILE="$folder/memory" TUTTI_ALLTOALLV="$algorithm" \
    ${nodes:+TUTTI_RANKS_PER_NODE="$nodes"} "$program" --seed="$seed" --calls="$share" "$@"
  "mpirun.$flavour" -np "$ranks" "$@" || {
    echo "differential.sh: failed: mpirun.$flavour -np $ranks $*"
    exit 1
  }
}

# others RANKS PER-CENT SERVICE [OPTIONS...]: the other collectives, in bursts of three calls or so.
others() {
  ranks=$1
  share=$((calls * 4 / 10 * $2 / 300))
  service=$3
  shift 3
  [ "$share" -gt 0 ] || return 0
  remember >"$folder/memory"
  seed=$((seed + 1))
  set -- "$program" --others --seed="$seed" --calls="$share" "$@"
  for name in ALLREDUCE ALLGATHER ALLGATHERV REDUCE_SCATTER REDUCE_SCATTER_BLOCK BCAST REDUCE GATHER SCATTER BARRIER; do
    set -- TUTTI_$name="$service" "$@"
  done
  set -- env TUTTI_MPI_FILE="$folder/memory" "$@"
  "mpirun.$flavour" -np "$ranks" "$@" || {
    echo "differential.sh: failed: mpirun.$flavour -np $ranks $*"
    exit 1
  }
}

if [ "$two" = two ]; then
  one 2 40 auto ''
  one 2 30 tuna:r=2 1
  one 2 20 shared 1
  one 2 10 auto 1 --threads=2
  others 2 50 shared
  others 2 30 auto
  others 2 20 native
elif [ "$flavour" = openmpi ]; then
  one 2 20 auto ''
  one 3 20 auto 2 --threads=3
  one 4 20 auto 2
  one 3 10 tuna:r=3 ''
  one 4 10 shared 1,2
  one 5 10 auto 2,4
  one 5 5 coalesced:r=2 3
  one 8 5 auto 4
  others 2 30 shared
  others 3 20 shared --threads=2
  others 4 20 auto
  others 5 10 native
  others 8 5 shared
  TUTTI_RANKS_PER_NODE=2 others 5 10 shared
  TUTTI_RANKS_PER_NODE=4 others 8 5 auto
  TUTTI_REORDER=1 others 4 5 shared
  TUTTI_REORDER=1 TUTTI_RANKS_PER_NODE=2 others 4 5 shared
else
  one 2 60 auto ''
  one 2 20 tuna:r=2 1 --threads=2
  one 3 15 auto 2
  one 4 5 shared-coalesced 2
  others 2 50 shared
  others 2 20 auto --threads=2
  others 3 10 native
  others 4 5 shared
  TUTTI_RANKS_PER_NODE=2 others 4 5 shared
  TUTTI_REORDER=1 others 3 10 shared
fi
