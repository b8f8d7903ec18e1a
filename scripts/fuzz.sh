#!/usr/bin/env bash
# Fuzzes what reads others' bytes, with libFuzzer under ASan and UBSan. Needs Debian's clang-16 and libclang-rt-16-dev.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]     60 s each, all targets (the folders of tests/fuzz/corpus)
#
# A finding lies in build/fuzz/findings/TARGET/: run build/fuzz/bin/fuzz_TARGET on it; once it is mended it goes to
# tests/fuzz/corpus/TARGET. What was learned stays in build/fuzz/corpus/TARGET for the next time.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls "$ROOT/tests/fuzz/corpus")

command -v clang++-16 >/dev/null || die "clang++-16 is missing; apt-get install clang-16 libclang-rt-16-dev"
cd "$ROOT"
step "Building"
quietly fuzz_configure cmake --preset fuzz
quietly fuzz_build cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}"
failed=()
for target in "${targets[@]}"; do
  [ -d "tests/fuzz/corpus/$target" ] || die "there is no target $target; there are: $(ls tests/fuzz/corpus | xargs)"
  step "$target, $seconds s"
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/findings/$target"
  "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -max_len=16384 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target/" \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" 2>&1 | tail -n 25 || failed+=("$target")
done
[ ${#failed[@]} -eq 0 ] || die "findings in: ${failed[*]}"
