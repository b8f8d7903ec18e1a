#!/usr/bin/env bash
# Configures and builds the release preset in build/release.
#
#   scripts/build.sh [--tests] [TARGET...]
#
# Without --tests a fresh build folder is configured without them, so that nothing of theirs is needed.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

options=(-DCOXSWAIN_VENV="$VENV" -DCMAKE_MESSAGE_LOG_LEVEL=WARNING)
if [ "${1:-}" = --tests ]; then
  shift
  options+=(-DCOXSWAIN_WITH_TESTS=ON)
elif [ ! -f "$BUILD/CMakeCache.txt" ]; then
  options+=(-DCOXSWAIN_WITH_TESTS=OFF)
fi

cd "$ROOT"
say "    configuring ${BUILD#"$ROOT"/}"
quietly configure cmake --preset release "${options[@]}"
say "    building with $(nproc) jobs"
if [ -t 1 ]; then
  cmake --build --preset release --parallel "$(nproc)" ${1:+--target "$@"}
else
  quietly build cmake --build --preset release --parallel "$(nproc)" ${1:+--target "$@"}
fi
