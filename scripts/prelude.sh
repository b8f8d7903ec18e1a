# Sourced by the scripts here: strict mode, where things are, and how they speak to a person.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${COXSWAIN_VENV:-$ROOT/build/venv}
PYTHON=$VENV/bin/python
BUILD=$ROOT/build/release
MODEL=$ROOT/build/models/SmolLM2-135M-Instruct
JARGON=$ROOT/build/data/jargon
export PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin  # where rustup puts cargo, which is not on every shell's PATH

say() { printf '%s\n' "$*"; }
step() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }
[ -t 1 ] || step() { printf '\n==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# quietly LOG COMMAND...: runs it with its output in build/logs/LOG; shows the end of it if it fails. Tries again once
# where the network may be the reason (RETRY=1).
quietly() {
  local log=$ROOT/build/logs/$1.log tries=$((1 + ${RETRY:-0}))
  shift
  mkdir -p "$ROOT/build/logs"
  while :; do
    "$@" >"$log" 2>&1 </dev/null && return 0
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || break
    say "    that failed; trying again in 5 s (${log#"$ROOT"/})"
    sleep 5
  done
  tail -n 30 "$log" >&2
  die "this failed: $* – the whole output is in ${log#"$ROOT"/}"
}
