#!/bin/sh
# Runs an MPI program on several nodes that are all this machine: each has a name, processes, shared
# memory and System V objects of its own (unshare), so that to the MPI library, and to Tutti, ranks
# of two of them are as far from each other as on two computers. Between nodes messages go over TCP.
#   on_nodes.sh openmpi|mpich "NODES..." PROGRAM [ARGUMENTS...]
# NODES: the ranks of each node, as in 3,1,2; 3,1,2:cyclic deals the ranks to the nodes in turn. One
# run for each. Variables go to the program by env: ... env NAME=VALUE PROGRAM.
# Exit code 77 where this user may not make such nodes.
# MPICH 4.0.2 may wait forever in its own MPI_Finalize with ranks on two nodes (UCX): for use by hand.
set -eu
flavour=$1
runs=$2
shift 2
. "$(dirname "$0")/mpirun_environment.sh"
isolate="unshare --uts --ipc --pid --fork --kill-child --mount --mount-proc"
$isolate mount -t tmpfs none /dev/shm 2>/dev/null || {
  echo "on_nodes.sh: skipped: this user may not make nodes of its own (unshare, mount)"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What the launchers call in place of ssh: start OPTIONS... HOST COMMAND...
cat >"$folder/start" <<START
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec $isolate sh -c 'hostname "\$0" && mount -t tmpfs none /dev/shm && exec sh -c "\$1"' "\$host" "\$*"
START
chmod +x "$folder/start"
for nodes in $runs; do
  case $nodes in
    *:cyclic) by=node ;;
    *) by=slot ;;
  esac
  hosts=
  ranks=0
  node=1
  for here in $(echo "${nodes%:cyclic}" | tr , ' '); do
    hosts="${hosts:+$hosts,}tutti-node$node:$here"
    ranks=$((ranks + here))
    node=$((node + 1))
  done
  case $flavour in
    openmpi)
      mpirun.openmpi --mca plm_rsh_agent "$folder/start" --host "$hosts" --map-by "$by" -np "$ranks" "$@"
      ;;
    mpich)
      # Hydra deals in turn what it knows no number of.
      [ "$by" = slot ] || hosts=$(echo "$hosts" | sed 's/:[0-9]*//g')
      mpirun.mpich -launcher ssh -launcher-exec "$folder/start" -hosts "$hosts" -np "$ranks" "$@"
      ;;
  esac || {
    echo "on nodes $nodes ($flavour): failed"
    exit 1
  }
done
