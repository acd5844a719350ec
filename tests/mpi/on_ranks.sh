#!/bin/sh
# Runs an MPI test program on each of several numbers of ranks; stops at the first that fails.
#   on_ranks.sh openmpi|mpich|smpi PROGRAM RANKS...
set -eu
flavour=$1
program=$2
shift 2
. "$(dirname "$0")/mpirun_environment.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ranks in "$@"; do
  case $flavour in
    openmpi) mpirun.openmpi -np "$ranks" "$program" ;;
    mpich) mpirun.mpich -np "$ranks" "$program" ;;
    smpi)
      # One host a rank on a flat network: what is tested is the answer, not the time.
      cat >"$folder/platform.xml" <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-$((ranks - 1))" speed="1Gf" bw="10GBps" lat="1us"/>
</platform>
XML
      seq 0 $((ranks - 1)) | sed 's/^/n/' >"$folder/hosts"
      smpirun -np "$ranks" -platform "$folder/platform.xml" -hostfile "$folder/hosts" \
        --cfg=smpi/simulate-computation:no --log=root.thres:error "$program"
      ;;
  esac || { echo "on $ranks ranks ($flavour): failed"; exit 1; }
done
