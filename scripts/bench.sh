#!/usr/bin/env bash
# Measures ours beside a peer, on the same work, and prints lines `CASE METRIC ours=V peer=V ratio=V`.
#
#   scripts/bench.sh runtime [--cases single-full,ddp2-full,zero3-2-full,single-lora,ddp2-lora] [--repeats N] [--steps N]
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

[ $# -gt 0 ] || die "usage: scripts/bench.sh runtime [OPTIONS]"
name=$1
shift
[ "$name" = runtime ] || die "there is no bench $name; there is: runtime"

{
  "$ROOT/scripts/setup.sh" --tests
  "$ROOT/scripts/fetch_model.sh"
  "$ROOT/scripts/fetch_data.sh" --blocks
  "$ROOT/scripts/build.sh" coxswain-runtime coxswain-worker
} >&2
exec "$PYTHON" "$ROOT/bench/runtime_bench.py" "$@"
