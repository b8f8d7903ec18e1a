#!/usr/bin/env python3
"""`coxswain run` while workers are killed (-9) inside a save, twenty times: each time the job goes on from a complete
checkpoint by itself, and it ends with the losses of a run that nothing happened to."""
import atexit
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import harness
from harness import Hold, complete_checkpoints, losses, wait_until
from make_tiny_llama import make_model, make_tokenizer

KILLS, STEPS, INTERVAL_SECONDS = 20, 1200, 1
COXSWAIN = harness.WORKER.parent / "coxswain"
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
MODEL = ROOT / "model"
MODEL.mkdir()
make_model(MODEL, "tied")
make_tokenizer(MODEL)
# Long rows: a step takes long enough for twenty saves to fit between the first and the last.
harness.make_blocks(ROOT / "blocks.jsonl", rows=64, length=192)


class Run:
    """One `coxswain run` of two pods. Interrupted on leaving, so that it ends its pods."""

    def __init__(self, name, environment):
        self.output = ROOT / name / "output"
        self.log_path = ROOT / name / "log"
        self.output.mkdir(parents=True)
        params = dict(lr=1e-3, scheduler="linear", batch_size=1, gradient_accumulation=4, block_size=192, max_steps=STEPS,
                      save_strategy="no", logging_steps=100, distributed_backend="zero3", peft=True, lora_dropout=0.1)
        manifest = {
            "apiVersion": "training.coxswain.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "kills"},
            "spec": {
                "nodes": 2, "output": {"claimName": "output"}, "recovery": {"intervalSeconds": INTERVAL_SECONDS},
                "runPolicy": {"backoffLimit": KILLS},
                "env": [{"name": key, "value": value} for key, value in environment.items()],
                "config": {"task": "llm-pretrain", "base_model": str(MODEL), "project_name": "out", "params": params,
                           "data": {"path": str(ROOT / "blocks.jsonl")}}}}
        (ROOT / name / "job.yaml").write_text(json.dumps(manifest))
        self.log = open(self.log_path, "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(COXSWAIN), "run", str(ROOT / name / "job.yaml"), "--volume", f"output={self.output}", "--state-dir",
             str(ROOT / name / "state"), "--follow"], stdout=self.log, stderr=subprocess.STDOUT, cwd=ROOT / name)
        self.processes = [self.process]  # as Hold.wait looks at them

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            for _ in range(2):
                self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)
        self.log.close()

    def wait(self):
        self.process.wait(timeout=harness.PATIENCE_SECONDS)
        return self.process.returncode

    @property
    def stderr(self):
        return self.log_path.read_text(encoding="utf-8")[-3000:]

    def recovery(self):
        folders = list((self.output / "kills/.recovery").glob("*"))
        return folders[0] if folders else self.output / "none-yet"

    def steps_gone_on_from(self):
        return [int(step) for step in re.findall(r"kills-0 \| .*Going on from step (\d+)", self.log_path.read_text())]


def newest_step(complete):
    return max((int(name.split("-")[1]) for name in complete), default=0)


def test_twenty_kills_inside_saves():
    with Run("undisturbed", {}) as run:
        assert run.wait() == 0, run.stderr
        expected = losses(run.output / "kills/out")

    hold = Hold(ROOT / "hold")
    points = [("begun", 0), ("begun", 1), ("half", 0), ("half", 1), ("rank", 0), ("rank", 1), ("written", 0), ("renamed", 0)]
    resumed_from = []
    hold.arm(*points[0])
    with Run("killed", hold.environment) as run:
        for kill in range(KILLS):
            step, pid = hold.wait(run)
            before = complete_checkpoints(run.recovery())
            assert f"step-{step}-attempt-{kill}" not in before, "held, but not inside a save"
            os.kill(pid, signal.SIGKILL)
            hold.release()
            assert complete_checkpoints(run.recovery()) == before, "the save that was killed counts as complete"
            newest = newest_step(before)
            resumed_from.append(newest)
            if kill + 1 < KILLS:
                point, rank = points[(kill + 1) % len(points)]
                # Every third attempt gets a save done before the one that it dies in: the second is about twice as far.
                hold.arm(point, rank, newest + 2 if kill % 3 else newest + (step - newest) * 8 // 5 + 1)
        assert run.wait() == 0, run.stderr
        assert run.steps_gone_on_from() == [step for step in resumed_from if step > 0], (run.steps_gone_on_from(), resumed_from)
        assert max(resumed_from) > 0, "no kill came after a complete checkpoint"
        assert losses(run.output / "kills/out") == expected
    print(f"      {KILLS} kills, resumed from steps {resumed_from}", flush=True)


if __name__ == "__main__":
    harness.run_tests(sys.modules[__name__])
