#!/usr/bin/env bash
# Formats our C++ files by .clang-format; with --check only says which would change, and fails if one would.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

cd "$ROOT"
command -v clang-format >/dev/null || die "clang-format is missing; run scripts/setup.sh --tests"
mapfile -d '' -t files < <(find contract operator runtime cli tests bench \
  \( -name target -o -name node_modules \) -prune -o \( -name '*.h' -o -name '*.cpp' \) -print0)
if [ "${1:-}" = --check ]; then
  clang-format --dry-run -Werror "${files[@]}" || die "some files are not formatted; run scripts/format.sh"
else
  clang-format -i "${files[@]}"
fi
