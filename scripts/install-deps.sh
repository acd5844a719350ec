#!/bin/sh
# Installs what Tutti needs to build, test and run, from Debian's packages. Idempotent: installs only
# what is missing and says what. Works as root or through sudo.
#
#   scripts/install-deps.sh          build, run and test
#   scripts/install-deps.sh --lean   build and run the command `tutti`, nothing else
#   scripts/install-deps.sh --dev    also clang, sanitizer runtimes, the linters that CI uses, node and a browser
#   scripts/install-deps.sh --list   prints the packages and installs nothing
set -eu

lean="ca-certificates cmake g++ libcli11-dev libexpected-dev libfmt-dev libgmp-dev libpugixml-dev libspdlog-dev libsqlite3-dev \
  libtbb-dev libxxhash-dev libyaml-dev libzstd-dev coinor-libcbc-dev coinor-libclp-dev ninja-build nlohmann-json3-dev pkg-config \
  zlib1g-dev"
whole="git libbenchmark-dev libfftw3-dev libgloo-dev libgmock-dev libgrpc++-dev libgtest-dev libhwloc-dev libmpich-dev libopenmpi-dev libsimgrid-dev libssl-dev make gfortran \
  mpich openmpi-bin libprotobuf-dev protobuf-compiler protobuf-compiler-grpc python3"
dev="abigail-tools ccache chromium clang-14 clang-format-14 clang-tidy-14 ibsim-utils infiniband-diags iproute2 lammps libclang-rt-14-dev man-db nftables python3-grpcio python3-protobuf spin"
# Of the explorer page (web/); where they stand already, from wherever they came, they stay.
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || dev="$dev nodejs npm"

packages="$lean $whole"
list=no
for argument in "$@"; do
  case $argument in
    --lean) packages=$lean ;;
    --dev) packages="$packages $dev" ;;
    --list) list=yes ;;
    *) echo "install-deps.sh: unknown argument '$argument'; accepted are --lean, --dev and --list" >&2; exit 2 ;;
  esac
done
if [ $list = yes ]; then
  for package in $packages; do echo "$package"; done
  exit 0
fi

missing=
for package in $packages; do
  case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) in
    installed) ;;
    *) missing="$missing $package" ;;
  esac
done
if [ -z "$missing" ]; then
  exit 0
fi

as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install-deps.sh: missing:$missing" >&2
    echo "install-deps.sh: run this as root, or install sudo" >&2
    exit 1
  fi
  as_root=sudo
fi
echo "installing:$missing"
$as_root apt-get update -q
# shellcheck disable=SC2086  # a list of packages
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
