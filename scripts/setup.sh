#!/usr/bin/env bash
# Sets up a fresh Debian 12 (as root): Debian packages, Rust, and one Python environment that carries LibTorch.
#
#   scripts/setup.sh            what the quickstart needs
#   scripts/setup.sh --tests    also what the tests need: the judges (torch as a whole, transformers, peft, trl, …)
#
# Everything is pinned in scripts/requirements/. Running it again does nothing, in a second.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

MINIMUM_RUST=1.85  # rust-version in runtime/tokenizer/Cargo.toml

tests=no
case "${1:-}" in
  '') ;;
  --tests) tests=yes ;;
  *) die "unknown argument $1; usage: scripts/setup.sh [--tests]" ;;
esac

# --- Debian packages ---------------------------------------------------------------------------------------
listed() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
  done
}

recent_rust() {
  local have
  have=$(rustc --version 2>/dev/null | cut -d' ' -f2) && [ -n "$have" ] && command -v cargo >/dev/null &&
    [ "$(printf '%s\n' "$MINIMUM_RUST" "$have" | sort -V | head -n 1)" = "$MINIMUM_RUST" ]
}

install_packages() {
  local lists=("$ROOT/scripts/requirements/debian.txt") missing
  [ $tests = no ] || lists+=("$ROOT/scripts/requirements/debian-tests.txt")
  mapfile -t wanted < <(listed "${lists[@]}")
  recent_rust || wanted+=(rustc-web cargo-web)
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "this needs Debian 12; elsewhere, install the like of: ${missing[*]}"
  [ "$(id -u)" = 0 ] || die "these Debian packages are missing; as root run: apt-get install ${missing[*]}"
  say "    installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  RETRY=2 quietly apt-update apt-get update --quiet --quiet
  RETRY=2 quietly apt-install apt-get install --yes --quiet --no-install-recommends "${missing[@]}"
  recent_rust || die "Rust $MINIMUM_RUST or newer is needed, but $(command -v rustc) is older; update it, or take it off PATH"
}

# --- The Python environment --------------------------------------------------------------------------------
base_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or newer with its venv module is needed; on Debian 12: apt-get install python3-venv"
}

# install_requirements NAME WHAT: what requirements/NAME.txt pins, without their dependencies (which it pins as well).
# The stamp holds the file that was installed.
install_requirements() {
  local file=$ROOT/scripts/requirements/$1.txt stamp=$VENV/.coxswain-$1.txt
  cmp -s "$file" "$stamp" && return 0
  say "    installing $2 into ${VENV#"$ROOT"/}"
  RETRY=2 quietly "pip-$1" "$PYTHON" -m pip install --disable-pip-version-check --no-input --no-deps \
    --progress-bar off --requirement "$file"
  cp "$file" "$stamp"
}

install_python() {
  if ! "$PYTHON" -c '' 2>/dev/null; then
    local base
    base=$(base_python)
    say "    making the Python environment ${VENV#"$ROOT"/}"
    rm -rf "$VENV"
    quietly venv "$base" -m venv "$VENV"
  fi
  install_requirements runtime "LibTorch (539 MB) and the conversion packages"
  [ $tests = no ] || install_requirements judges "the judges (torch's own libraries, transformers, peft, trl, …; about 2.5 GB)"
}

install_packages
install_python
