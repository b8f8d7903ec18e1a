#!/usr/bin/env python3
"""`coxswain run` with the real runtime: workers are killed (-9) inside saves, twenty times, and each time the job goes on
from a complete checkpoint by itself and ends with the losses of a run that nothing happened to; Ctrl-C and going on; bad
input."""
import atexit
import functools
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

COXSWAIN = harness.WORKER.parent / "coxswain"
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
MODEL = ROOT / "model"
MODEL.mkdir()
make_model(MODEL, "tied")
make_tokenizer(MODEL)
# Long rows: a step takes long enough for many recovery saves, a second apart, between the first and the last.
LENGTH = 192
harness.make_blocks(ROOT / "blocks.jsonl", rows=64, length=LENGTH)
POINTS = [("begun", 0), ("begun", 1), ("half", 0), ("half", 1), ("rank", 0), ("rank", 1), ("written", 0), ("renamed", 0)]
SHORT = 60


class Run:
    """One `coxswain run` of two pods. Interrupted on leaving, so that it ends its pods."""

    def __init__(self, name, environment=None, interval=0, data="blocks.jsonl", **params):
        self.output = ROOT / name / "output"
        self.log_path = ROOT / name / "log"
        self.output.mkdir(parents=True, exist_ok=True)
        params = dict(dict(lr=1e-3, scheduler="linear", batch_size=1, gradient_accumulation=4, block_size=LENGTH,
                           max_steps=SHORT, save_strategy="no", logging_steps=100, distributed_backend="zero3", peft=True,
                           lora_dropout=0.1), **params)
        manifest = {
            "apiVersion": "training.coxswain.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "job"},
            "spec": {
                "nodes": 2, "output": {"claimName": "output"}, "recovery": {"intervalSeconds": interval},
                "runPolicy": {"backoffLimit": 20},
                "env": [{"name": key, "value": value} for key, value in (environment or {}).items()],
                "config": {"task": "llm-pretrain", "base_model": str(MODEL), "project_name": "out", "params": params,
                           "data": {"path": str(ROOT / data)}}}}
        (ROOT / name / "job.yaml").write_text(json.dumps(manifest))
        self.log = open(self.log_path, "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(COXSWAIN), "run", str(ROOT / name / "job.yaml"), "--volume", f"output={self.output}", "--state-dir",
             str(ROOT / name / "state"), "--follow"], stdout=self.log, stderr=subprocess.STDOUT, cwd=ROOT / name)
        self.processes = [self.process]  # as Hold.wait looks at them
        self.project = self.output / "job/out"

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

    @property
    def status(self):
        return json.loads((self.log_path.parent / "state/job.json").read_text())["status"]

    def checkpoints(self):
        """Names of all complete ones: the user's and those for recovery."""
        folders = [self.project, *(self.output / "job/.recovery").glob("*")]
        return sorted(name for folder in folders for name in complete_checkpoints(folder))

    def steps_gone_on_from(self):
        return [int(step) for step in re.findall(r"job-0 \| .*Going on from step (\d+)", self.log_path.read_text())]


@functools.cache
def undisturbed(**params):
    with Run("undisturbed-" + str(params.get("max_steps", SHORT)), **params) as run:
        assert run.wait() == 0, run.stderr
        return losses(run.project)


def newest_step(checkpoints):
    return max((int(name.split("-")[1]) for name in checkpoints), default=0)


def wait_for_attempt(run, attempt):
    """Only then is nobody of the attempt before left who could be held."""
    def started():
        status = run.status
        return status["attempt"] == attempt and status["nodes"]["ready"] == 2
    wait_until(lambda: run.process.poll() is not None or started(), f"attempt {attempt} has started")


def kill_inside_a_save(run, hold):
    """Kills the rank that is held; the step of the save, and of the newest checkpoint that was complete then."""
    step, pid = hold.wait(run)
    before = run.checkpoints()
    assert newest_step(before) < step, "held, but not inside a save that is still to be done"
    os.kill(pid, signal.SIGKILL)
    hold.release()
    assert run.checkpoints() == before, "the save that was killed counts as complete"
    return step, newest_step(before)


def assert_went_on(run, kills, resumed_from, expected):
    assert run.wait() == 0, run.stderr
    assert run.steps_gone_on_from() == [step for step in resumed_from if step > 0], (run.steps_gone_on_from(), resumed_from)
    assert max(resumed_from) > 0, "no kill came after a complete checkpoint"
    assert run.status["restarts"]["counted"] == kills, run.status
    assert losses(run.project) == expected
    print(f"      {kills} kills, resumed from steps {resumed_from}", flush=True)


def test_twelve_kills_inside_recovery_saves():
    kills, steps = 12, 400
    hold, resumed_from = Hold(ROOT / "hold"), []
    hold.arm(*POINTS[0])
    with Run("killed", hold.environment, interval=1, max_steps=steps) as run:
        for kill in range(kills):
            step, newest = kill_inside_a_save(run, hold)
            resumed_from.append(newest)
            if kill + 1 < kills:
                wait_for_attempt(run, kill + 1)
                # Every third attempt gets a save done before the one that it dies in: the second is about twice as far.
                hold.arm(*POINTS[(kill + 1) % len(POINTS)], newest + 2 if kill % 3 else newest + (step - newest) * 8 // 5 + 1)
        assert_went_on(run, kills, resumed_from, undisturbed(max_steps=steps))


def test_eight_kills_inside_the_users_saves():
    every = 5
    hold, resumed_from = Hold(ROOT / "user-hold"), []
    hold.arm(*POINTS[0])
    with Run("killed-user", hold.environment, save_strategy="steps", save_steps=every, resume_from_checkpoint="auto") as run:
        for kill in range(len(POINTS)):
            step, newest = kill_inside_a_save(run, hold)
            resumed_from.append(newest)
            if kill + 1 < len(POINTS):
                wait_for_attempt(run, kill + 1)
                hold.arm(*POINTS[kill + 1], step + 1)
        assert resumed_from == list(range(0, every * len(POINTS), every)), resumed_from
        assert_went_on(run, len(POINTS), resumed_from, undisturbed())


def test_interrupted_and_gone_on_with():
    expected = undisturbed()
    with Run("interrupted") as run:
        wait_until(lambda: (run.project / "metrics.jsonl").exists() and len(losses(run.project)) >= 5, "five steps are done")
        run.process.send_signal(signal.SIGINT)
        assert run.wait() == 75, run.stderr
        done = len(losses(run.project))
        assert 5 <= done < SHORT, done
        assert [newest_step([name]) for name in run.checkpoints()] == [done], run.checkpoints()
    with Run("interrupted") as run:
        assert run.wait() == 0, run.stderr
        assert run.steps_gone_on_from() == [done], run.stderr
        assert losses(run.project) == expected


def test_bad_input_is_said_once_and_not_tried_again():
    (ROOT / "other-column.jsonl").write_text('{"words": "a"}\n')
    with Run("bad-input", data="other-column.jsonl") as run:
        assert run.wait() == 2, run.stderr
        assert "missing: text; available: words" in run.stderr, run.stderr
        assert run.status["restarts"]["counted"] == 0 and run.status["attempt"] == 0, run.status
        assert run.status["lastFailure"]["exitCode"] == 2, run.status


if __name__ == "__main__":
    harness.run_tests(sys.modules[__name__])
