#!/usr/bin/env bash
# Measures ours beside a peer, on the same work, and prints lines `CASE METRIC ours=V peer=V ratio=V`.
#
#   scripts/bench.sh runtime [--cases single-full,ddp2-full,zero3-2-full,single-lora,ddp2-lora] [--repeats N] [--steps N]
#   scripts/bench.sh operator [--cases sequential,burst,wide] [--rounds N] [--small] [--peer-batch-period 300ms] [--keep]
#
# `operator`: coxswain-operator beside an operator of controller-runtime (bench/peers/operator) on a real etcd and
# kube-apiserver. The first time it builds these, see scripts/build_control_plane.sh. Nothing else should be running.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"
. "$ROOT/scripts/go.sh"

bench_runtime() {
  {
    "$ROOT/scripts/setup.sh" --tests
    "$ROOT/scripts/fetch_model.sh"
    "$ROOT/scripts/fetch_data.sh" --blocks
    "$ROOT/scripts/build.sh" coxswain-runtime coxswain-worker
  } >&2
  exec "$PYTHON" "$ROOT/bench/runtime_bench.py" "$@"
}

bench_operator() {
  local ours=$ROOT/build/operator-release programs=$ROOT/build/operator-bench control_plane
  control_plane=${KUBEBUILDER_ASSETS:-$ROOT/build/control-plane/bin}
  {
    "$ROOT/scripts/build_control_plane.sh"
    cd "$ROOT"
    say "    building coxswain-operator"
    quietly configure-operator cmake --preset pure -B "$ours" -DCMAKE_BUILD_TYPE=Release -DCOXSWAIN_WITH_TESTS=OFF
    quietly build-operator cmake --build "$ours" --parallel "$(nproc)" --target coxswain-operator
    say "    building the peer"
    find_go
    mkdir -p "$programs"
    RETRY=1 quietly build-operator-peer env -C "$ROOT/bench" CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local \
      "$GO" build -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" -o "$programs/" ./peers/operator ./operator_bench
  } >&2
  exec "$programs/operator_bench" --control-plane "$control_plane" --ours "$ours/bin/coxswain-operator" \
    --peer "$programs/operator" --crd "$ROOT/crds/trainingjob.yaml" "$@"
}

name=${1:-}
[ $# -eq 0 ] || shift
case $name in
  runtime | operator) "bench_$name" "$@" ;;
  *) die "usage: scripts/bench.sh runtime|operator [OPTIONS]" ;;
esac
