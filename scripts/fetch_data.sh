#!/usr/bin/env bash
# Makes build/data/jargon (conversations) and build/data/jargon-text (plain text) of the Jargon File, which Debian
# packages as dict-jargon; and build/data/jargon-blocks.jsonl with --blocks (token blocks for tests and benches).
# Does nothing when they are there.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

if [ ! -f "$JARGON/train.jsonl" ] || [ "$ROOT/scripts/make_jargon.py" -nt "$JARGON/train.jsonl" ]; then
  dictd=/usr/share/dictd
  if [ ! -f $dictd/jargon.dict.dz ]; then
    partial=$(mktemp -d)
    trap 'rm -rf "$partial"' EXIT
    RETRY=1 quietly fetch_data bash -c 'cd "$1" && apt-get download --quiet dict-jargon && dpkg-deb -x dict-jargon_*.deb .' - "$partial"
    dictd=$partial/usr/share/dictd
  fi
  python3 "$ROOT/scripts/make_jargon.py" "$dictd" "$ROOT/build/data"
  say "    $(wc -l <"$JARGON/train.jsonl") definitions of the Jargon File in ${JARGON#"$ROOT"/}"
fi

BLOCKS=$ROOT/build/data/jargon-blocks.jsonl
if [ "${1:-}" = --blocks ] && { [ ! -f "$BLOCKS" ] || [ "$JARGON/train.jsonl" -nt "$BLOCKS" ]; }; then
  "$PYTHON" "$ROOT/bench/make_blocks.py" --tokenizer "$MODEL/tokenizer.json" --text "$JARGON-text/train.jsonl" --length 128 --out "$BLOCKS"
fi
