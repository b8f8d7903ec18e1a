#!/usr/bin/env python3
"""A real model: 8 steps of full fp32 training of SmolLM2-135M give PyTorch's losses, as one process, DDP and ZeRO-3; and
what a rank holds under ZeRO-3 falls as 1/ranks plus one unit."""
import atexit
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import SOURCE, losses, train, write_config

MODEL = SOURCE / "build/models/SmolLM2-135M-Instruct"
PEER = SOURCE / "bench/peers/torch_sft.py"
STEPS, BLOCK, LR = 8, 32, 1e-4
TOLERANCE = 1e-3
PARAMETERS = 134515008
EMBEDDING_BYTES = 49152 * 576 * 4

ROOT = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
BLOCKS = ROOT / "blocks.jsonl"


def make_blocks():
    """The start of each of the first token blocks; the whole ones only take longer."""
    with open(SOURCE / "build/data/jargon-blocks.jsonl", encoding="utf-8") as lines:
        rows = [json.loads(next(lines))["input_ids"][:BLOCK] for _ in range(STEPS * 3)]
    BLOCKS.write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows))


def peer_losses(rows_a_step):
    # One process over the global batch: the same rows, in the same order, as any number of ranks.
    run = subprocess.run([sys.executable, str(PEER), "--model", str(MODEL), "--blocks", str(BLOCKS), "--steps", str(STEPS),
                          "--batch", str(rows_a_step), "--lr", str(LR), "--threads", "2"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.strip().splitlines()[-1])
    return report["losses"]


def our_run(backend, ranks):
    config = write_config(ROOT / f"{backend}-{ranks}", MODEL, BLOCKS, max_steps=STEPS, block_size=BLOCK, lr=LR,
                          distributed_backend=backend)
    out = train(config, ranks).out
    state = json.loads((out / "trainer_state.json").read_text())
    result = losses(out), state
    shutil.rmtree(out)
    return result


def check_memory(state, ranks):
    whole = PARAMETERS * 4
    for rank in range(ranks):
        assert state["parameter_bytes"][rank] <= 1.01 * whole / ranks, state
        assert state["optimizer_bytes"][rank] <= 1.01 * 2 * whole / ranks, state
        assert state["peak_parameter_bytes"][rank] <= 1.01 * whole / ranks + 1.2 * EMBEDDING_BYTES, state
        assert state["peak_gradient_bytes"][rank] <= 1.01 * whole / ranks + 1.2 * EMBEDDING_BYTES, state


def test_losses_are_those_of_pytorch():
    make_blocks()
    for ranks in (1, 2, 3):
        expected = peer_losses(ranks)
        for backend in ["none"] if ranks == 1 else ["ddp", "zero3"]:
            ours, state = our_run(backend, ranks)
            worst = max(abs(a - b) for a, b in zip(ours, expected, strict=True))
            print(f"      {backend} on {ranks}: largest difference {worst:.1e}, rank 0 peak {state['peak_rss_mib'][0]} MiB",
                  flush=True)
            assert worst <= TOLERANCE, f"{backend} on {ranks}: {ours} against {expected}"
            if backend == "zero3":
                check_memory(state, ranks)


if __name__ == "__main__":
    subprocess.run([str(SOURCE / "scripts/fetch_model.sh")], check=True)
    subprocess.run([str(SOURCE / "scripts/fetch_data.sh"), "--blocks"], check=True)
    harness.run_tests(sys.modules[__name__])
