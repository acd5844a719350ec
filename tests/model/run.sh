#!/bin/sh
# Checks tests/model/barrier.pml with spin: the protocol as it is holds, with and without a controller
# that dies, and each of the three seeded faults is found.
#
#   tests/model/run.sh [--large]     --large: also 3 daemons with a second request (a minute)
#
# Exit code 77 without spin: the test is skipped.
set -eu

model=$(cd "$(dirname "$0")" && pwd)/barrier.pml
command -v spin >/dev/null || { echo "skipped: there is no spin (scripts/install-deps.sh --dev)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check holds|found NAME DEFINES...
check() {
  wanted=$1 name=$2
  shift 2
  spin "$@" -a "$model" >/dev/null
  gcc -O1 -w -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c
  ./pan -m100000 >pan.log
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  if grep -q 'errors: 0' pan.log; then result=holds; else result=found; fi
  grep -q 'max search depth too small' pan.log && result="unfinished"
  echo "$name: $result, $states states"
  if [ "$result" != "$wanted" ]; then
    echo "wanted: $wanted" >&2
    cat pan.log >&2
    exit 1
  fi
}

check holds "2 daemons, 2 collectives, 2 requests" -DN=2
check holds "3 daemons, 2 collectives, 1 request" -DE=1
check holds "3 daemons, 2 collectives, 1 request, controller may die" -DE=1 -DCRASH
check found "everybody waits for his own commit, controller may die" -DE=1 -DCRASH -DOWN_COMMIT
check holds "everybody waits for his own commit, nobody dies" -DN=2 -DE=1 -DOWN_COMMIT
check found "own number instead of the maximum" -DE=1 -DOWN_NUMBER
check found "no barrier" -DE=1 -DNO_BARRIER
if [ "${1:-}" = --large ]; then
  check holds "3 daemons, 2 collectives, 2 requests" -DE=2
fi
