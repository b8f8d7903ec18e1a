#!/usr/bin/env python3
"""The training runtime beside PyTorch's own training, on the same work, in turns.

For each case both sides train SmolLM2-135M-Instruct on the same token blocks in the same order; their losses must agree
at every step before anything is timed as equal. Prints one line for each measure:

  CASE METRIC ours=V peer=V ratio=V        (medians over the repeats; ratio is ours / peer)

tokens_per_s     tokens of a step, all ranks, over the median step
first_forward_s  from the start of the program to the start of its first forward
peak_rss_mib     most resident memory of one rank up to the end of its last step (ru_maxrss)
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_LOSS_DIFFERENCE = 1e-3
LEARNING_RATE = 1e-4
LORA_RANK = 16


@dataclass(frozen=True)
class Case:
    name: str
    ranks: int
    backend: str    # ours
    strategy: str   # the peer's
    lora: bool = False


CASES = [
    Case("single-full", 1, "none", "single"),
    Case("ddp2-full", 2, "ddp", "ddp"),
    Case("zero3-2-full", 2, "zero3", "fsdp2"),
    Case("single-lora", 1, "none", "single", lora=True),
    Case("ddp2-lora", 2, "ddp", "ddp", lora=True),
]
METRICS = ("tokens_per_s", "first_forward_s", "peak_rss_mib")


@dataclass
class Run:
    losses: list
    tokens_per_s: float
    first_forward_s: float
    peak_rss_mib: float


class BenchError(Exception):
    pass


def start(command, environment, log):
    """Runs the command to its end; returns when it was started."""
    with log.open("w") as output:
        started = time.time()
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL)
        try:
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        raise BenchError(f"{Path(command[0]).name} exited {process.returncode}:\n{log.read_text()[-3000:]}")
    return started


def our_config(case, arguments, project, steps, learning_rate):
    params = {
        "max_steps": steps, "batch_size": arguments.global_batch // case.ranks, "gradient_accumulation": 1,
        "block_size": arguments.length, "lr": learning_rate, "scheduler": "constant", "warmup_ratio": 0,
        "weight_decay": 0, "max_grad_norm": 0, "data_shuffle": False, "disable_gradient_checkpointing": True,
        "distributed_backend": case.backend, "save_strategy": "no", "seed": 1,
    }
    if case.lora:
        params |= {"peft": True, "lora_r": LORA_RANK, "lora_alpha": 2 * LORA_RANK, "lora_dropout": 0,
                   "target_modules": "all-linear", "merge_adapter": False}
    return {"task": "llm", "base_model": str(arguments.model), "project_name": str(project), "log": "none",
            "data": {"path": str(arguments.blocks), "chat_template": "none"}, "params": params}


def run_ours(case, arguments, folder, steps=None, learning_rate=LEARNING_RATE):
    steps = steps or arguments.steps
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    project, config = folder / "project", folder / "config.yaml"
    config.write_text(json.dumps(our_config(case, arguments, project, steps, learning_rate)))  # JSON is YAML
    command = [str(arguments.bin / "coxswain-runtime"), "--config", str(config), "--nproc-per-node", str(case.ranks)]
    started = start(command, os.environ, folder / "log")
    metrics = project / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    if [row["step"] for row in rows] != list(range(1, steps + 1)):
        raise BenchError(f"{metrics} does not hold the steps 1 to {steps}, each once")
    step_seconds = statistics.median(row["step_seconds"] for row in rows[1:] or rows)
    tokens = arguments.global_batch * arguments.length
    state = json.loads((project / "trainer_state.json").read_text())
    return Run([row["loss"] for row in rows], tokens / step_seconds,
               max(state["first_forward_unix_seconds"]) - started, max(state["peak_rss_mib"]))


def run_peer(case, arguments, folder, adapter):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, str(ROOT / "bench/peers/torch_sft.py"), "--model", str(arguments.model),
               "--blocks", str(arguments.blocks), "--strategy", case.strategy, "--ranks", str(case.ranks),
               "--steps", str(arguments.steps), "--batch", str(arguments.global_batch // case.ranks),
               "--lr", str(LEARNING_RATE), "--threads", str(max(1, len(os.sched_getaffinity(0)) // case.ranks))]
    if adapter:
        command += ["--adapter", str(adapter)]
    environment = dict(os.environ, HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    start(command, environment, folder / "log")
    report = json.loads(next(line for line in (folder / "log").read_text().splitlines() if line.startswith('{"peer"')))
    return Run(report["losses"], report["tokens_per_s"], report["first_forward_s"], report["peak_rss_mib"])


def initial_adapter(case, arguments, folder):
    """The adapter that our seed starts from: one step at a rate so small that it changes nothing."""
    run_ours(case, arguments, folder, steps=1, learning_rate=1e-12)
    return folder / "project"


def check_equal_losses(case, ours, peer):
    for step, (a, b) in enumerate(zip(ours.losses, peer.losses, strict=True), 1):
        if not abs(a - b) <= MAX_LOSS_DIFFERENCE:
            raise BenchError(f"{case.name}: the losses differ at step {step}: ours {a}, peer {b}; not the same work")


def bench_case(case, arguments, folder):
    adapter = initial_adapter(case, arguments, folder / "initial") if case.lora else None
    ours, peers = [], []
    for _ in range(arguments.repeats):
        ours.append(run_ours(case, arguments, folder / "ours"))
        peers.append(run_peer(case, arguments, folder / "peer", adapter))
        check_equal_losses(case, ours[-1], peers[-1])
    for metric in METRICS:
        a, b = (statistics.median(getattr(run, metric) for run in runs) for runs in (ours, peers))
        print(f"{case.name} {metric} ours={a:.4g} peer={b:.4g} ratio={a / b:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/SmolLM2-135M-Instruct")
    parser.add_argument("--blocks", type=Path, default=ROOT / "build/data/jargon-blocks.jsonl")
    parser.add_argument("--cases", default=",".join(case.name for case in CASES), help="default: all")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--global-batch", type=int, default=4, help="rows a step, over all ranks")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    wanted = arguments.cases.split(",")
    unknown = sorted(set(wanted) - {case.name for case in CASES})
    if unknown:
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(case.name for case in CASES)}")
    with arguments.blocks.open(encoding="utf-8") as file:
        arguments.length = len(json.loads(file.readline())["input_ids"])
    with tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT / "build") as folder:
        try:
            for case in CASES:
                if case.name in wanted:
                    bench_case(case, arguments, Path(folder, case.name))
        except BenchError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
