#!/usr/bin/env bash
# Sets up, builds, checks the format and runs all tests.
#
#   scripts/test.sh [ARGUMENTS FOR CTEST...]     for example: scripts/test.sh -R config
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

step "Setting up"
"$ROOT/scripts/setup.sh" --tests
"$ROOT/scripts/fetch_model.sh"
"$ROOT/scripts/fetch_data.sh" --blocks
"$ROOT/scripts/build_control_plane.sh"

step "Checking the format"
"$ROOT/scripts/format.sh" --check

step "Building"
"$ROOT/scripts/build.sh" --tests

step "Testing"
cd "$ROOT"
# Tests that start ranks take two of these for themselves; those on a control plane mostly wait.
exec ctest --preset release --parallel "${COXSWAIN_TEST_JOBS:-$(( $(nproc) + 1 ))}" "$@"
