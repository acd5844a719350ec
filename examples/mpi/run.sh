#!/bin/sh
# Runs an example without and with the drop-in library; both must end well and print the same but
# for times.
#   run.sh RANKS LIBRARY|none openmpi|mpich PROGRAM [FLAGS...]
set -eu
ranks=$1
library=$2
flavour=$3
shift 3
. "$(dirname "$0")/../../tests/mpi/mpirun_environment.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"mpirun.$flavour" -np "$ranks" "$@" >"$folder/plain" || { cat "$folder/plain"; exit 1; }
cat "$folder/plain"
[ "$library" != none ] || exit 0
echo "the same with $(basename "$library"):"
"mpirun.$flavour" -np "$ranks" env LD_PRELOAD="$library" "$@" >"$folder/preloaded" || {
  cat "$folder/preloaded"
  exit 1
}
cat "$folder/preloaded"
for output in plain preloaded; do
  sed 's/[0-9.]* us//g' "$folder/$output" >"$folder/$output.answer"
done
cmp "$folder/plain.answer" "$folder/preloaded.answer"
