"""Runs trainings with coxswain-worker, one process a rank, for the tests beside it. Without the agent: what is tested here
is the worker."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("COXSWAIN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
WORKER = pathlib.Path(os.environ.get("COXSWAIN_BINARY_DIR", SOURCE / "build/release")) / "bin/coxswain-worker"
sys.path.insert(0, str(SOURCE / "tests/fixtures"))

BAD_INPUT, INTERNAL, STORAGE, STOPPED, LOST_PEER = 2, 70, 74, 75, 76
PATIENCE_SECONDS = 240  # for a process that hangs; no test depends on how long anything takes


@contextlib.contextmanager
def temporary_folder():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_blocks(path, rows=64, length=24, vocab=320, seed=1):
    rng = random.Random(seed)
    blocks = [[rng.randrange(3, vocab) for _ in range(length)] for _ in range(rows)]
    path.write_text("".join(json.dumps({"input_ids": block}) + "\n" for block in blocks))
    return blocks


def write_config(folder, model, data, **params):
    """A YAML file (JSON is YAML) with settings under which nothing but the model decides the losses."""
    settings = dict(lr=1e-3, scheduler="constant", warmup_ratio=0, max_grad_norm=0, batch_size=1, gradient_accumulation=1,
                    block_size=24, max_steps=10, data_shuffle=False, save_strategy="no", logging_steps=1,
                    disable_gradient_checkpointing=True)
    settings.update(params)
    config = {"task": "llm-pretrain", "base_model": str(model), "project_name": str(folder / "out"),
              "data": {"path": str(data)}, "params": settings}
    path = folder / "config.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return path


class Training:
    """The ranks of one attempt, started at once. Ends them on leaving, whatever happened."""

    def __init__(self, config, ranks=1, uid="", attempt=0, recovery=None, interval=0, environment=None):
        self.out = config.parent / "out"
        port = str(free_port())
        self.processes = []
        for rank in range(ranks):
            env = dict(os.environ, COXSWAIN_CONFIG=str(config), RANK=str(rank), LOCAL_RANK=str(rank),
                       WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                       OMP_NUM_THREADS="1", COXSWAIN_RECOVERY_INTERVAL_SECONDS=str(interval),
                       TRAINING_JOB_ATTEMPT=str(attempt), **(environment or {}))
            if uid:
                env["TRAINING_JOB_UID"] = uid
            if recovery:
                env["COXSWAIN_RECOVERY_DIR"] = str(recovery)
            self.processes.append(subprocess.Popen([str(WORKER), "train"], env=env, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def wait(self):
        """Exit codes and the text of each rank's standard error."""
        outputs = [process.communicate(timeout=PATIENCE_SECONDS) for process in self.processes]
        self.stdout = [out for out, _ in outputs]
        self.stderr = [err for _, err in outputs]
        return [process.returncode for process in self.processes]


def train(config, ranks=1, expect=0, **kwargs):
    with Training(config, ranks, **kwargs) as training:
        codes = training.wait()
    assert codes == [expect] * ranks, f"exit codes {codes}, not {expect}:\n" + "\n".join(training.stderr + training.stdout)
    return training


class Hold:
    """Holds a rank inside a save (runtime/checkpoint/test_hold.h): the point of a run that a test acts on, however fast or
    slow the machine is."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.environment = {"COXSWAIN_TEST_HOLD_IN_SAVE": str(folder)}

    def arm(self, point, rank, step=0):
        (self.folder / "hold.tmp").write_text(f"{point} {rank} {step}")
        os.replace(self.folder / "hold.tmp", self.folder / "hold")

    def wait(self, run):
        """Until a rank is held; its step and process id."""
        held = self.folder / "held"
        wait_until(lambda: held.exists() or run.processes[0].poll() is not None, "a save is held")
        assert held.exists(), f"the run ended before a save was held: {run.wait()} {run.stderr}"
        step, pid = map(int, held.read_text().split())
        return step, pid

    def release(self):
        (self.folder / "hold").unlink()
        (self.folder / "held").unlink()


def metrics(out):
    return [json.loads(line) for line in (pathlib.Path(out) / "metrics.jsonl").read_text().splitlines()]


def losses(out):
    records = metrics(out)
    steps = [record["step"] for record in records]
    assert steps == list(range(1, len(steps) + 1)), f"metrics.jsonl holds the steps {steps}"
    return [record["loss"] for record in records]


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting until {what}"
        time.sleep(0.01)


def assert_close(ours, theirs, relative, what):
    assert len(ours) == len(theirs), f"{what}: {len(ours)} values against {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        assert abs(a - b) <= relative * max(abs(b), 1e-12), f"{what}: at {i} ours is {a}, theirs {b}\n{ours}\n{theirs}"


def complete_checkpoints(folder):
    return sorted(str(path.parent.name) for path in pathlib.Path(folder).glob("*/COMMIT"))


def run_tests(module):
    """Runs the functions named test_* of a module, or those named on the command line; reports all that fail."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends through what cleans up
    names = sys.argv[1:] or [name for name in vars(module) if name.startswith("test_")]
    failed = []
    for name in names:
        started = time.monotonic()
        try:
            getattr(module, name)()
            print(f"ok    {name} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as error:  # the next test tells more
            failed.append(name)
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
    sys.exit(1 if failed else 0)
