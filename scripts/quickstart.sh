#!/usr/bin/env bash
# From a fresh Debian 12 (as root) to a fine-tuned model: sets up, builds, fetches a small model and real text, and trains
# from examples/smollm2-sft.yaml on this machine, as two pods of one process each.
#
#   scripts/quickstart.sh [--steps N] [--full]
#
#   --steps N   optimizer steps (30)
#   --full      full fine-tuning with ZeRO-3 instead of a LoRA adapter
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"

usage() { sed -n 's/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed -n '2,8p'; }

steps=30 job=smollm2-sft project=adapter
while [ $# -gt 0 ]; do
  case $1 in
    --steps) steps=${2:-}; shift ;;
    --steps=*) steps=${1#*=} ;;
    --full) job=smollm2-full project=model ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown argument $1; usage: scripts/quickstart.sh [--steps N] [--full]" ;;
  esac
  shift
done
[[ $steps =~ ^[1-9][0-9]*$ ]] || die "--steps takes a whole number from 1, not '$steps'"

OUTPUT=$ROOT/build/output
RESULT=$OUTPUT/$job/$project
QUESTION='What does “hacker” mean in hacker jargon?'

answer() { OMP_NUM_THREADS=$(nproc) "$BUILD/bin/coxswain-worker" generate --prompt "$QUESTION" --max-new-tokens 60 "$@"; }
quoted() { fold -s -w 90 | sed 's/^/    | /'; }

loss_summary() {
  python3 - "$RESULT/metrics.jsonl" <<'PY'
import json, statistics, sys
losses = [json.loads(line)["loss"] for line in open(sys.argv[1])]
some = max(1, min(5, len(losses) // 2))
print(f"    loss {statistics.mean(losses[:some]):.3f} over the first {some} steps, "
      f"{statistics.mean(losses[-some:]):.3f} over the last {some} (of {len(losses)})")
PY
}

step "Setting up"
"$ROOT/scripts/setup.sh"

step "Building"
"$ROOT/scripts/build.sh" coxswain coxswain-runtime coxswain-worker

step "Fetching a model and text to learn"
"$ROOT/scripts/fetch_model.sh"
"$ROOT/scripts/fetch_data.sh"
say "    model: build/models/SmolLM2-135M-Instruct    text: build/data/jargon/train.jsonl"

cd "$ROOT"
mkdir -p "$OUTPUT"
before=$(answer --model "$MODEL")

step "Training: coxswain run examples/$job.yaml"
if ! "$BUILD/bin/coxswain" run "examples/$job.yaml" --set "config.params.max_steps=$steps" \
  --volume "models=$ROOT/build/models" --volume "data=$ROOT/build/data" --volume "output=$OUTPUT" \
  --state-dir "$OUTPUT/.state/$job"; then
  die "the training did not complete; the lines above say why. What was done is kept: run this again to go on"
fi

step "What it learnt"
loss_summary
say
say "    $QUESTION"
say "    before:"
quoted <<<"$before"
say "    after:"
if [ "$project" = adapter ]; then
  answer --model "$MODEL" --adapter "$RESULT" | quoted
else
  answer --model "$RESULT" | quoted
fi

step "Where it is"
if [ "$project" = adapter ]; then
  say "    ${RESULT#"$ROOT"/}    a LoRA adapter, as peft loads it, with metrics.jsonl and TensorBoard files beside it"
else
  say "    ${RESULT#"$ROOT"/}    a Hugging Face model folder, with metrics.jsonl and TensorBoard files beside it"
fi

step "What to try next"
cat <<E
    Train longer:              scripts/quickstart.sh --steps 200
    Train all of its weights:  scripts/quickstart.sh --full
    Ask it something else:     build/release/bin/coxswain-worker generate --model build/models/SmolLM2-135M-Instruct \\
                                 --adapter build/output/smollm2-sft/adapter --prompt "What is a hacker?"
    Change the job:            copy examples/smollm2-sft.yaml; build/release/bin/coxswain validate FILE says if it is right
    See what a cluster gets:   build/release/bin/coxswain render examples/smollm2-sft.yaml
E
