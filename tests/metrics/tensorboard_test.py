"""The tensorboard package reads back what the runtime wrote, also after a kill and a resume."""

import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WRITER = pathlib.Path(os.environ["COXSWAIN_BINARY_DIR"]) / "bin" / "write_event_files"
TAGS = ["train/epoch", "train/grad_norm", "train/learning_rate", "train/loss", "train/rss_mib",
        "train/step_seconds", "train/tokens_per_second"]


def write(folder, resume_step, last_step, factor):
    subprocess.run([WRITER, folder, str(resume_step), str(last_step), str(factor)], check=True)


def read(folder):
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def check(accumulator, factor_of_step):
    assert sorted(accumulator.Tags()["scalars"]) == TAGS, accumulator.Tags()
    losses = accumulator.Scalars("train/loss")
    assert [event.step for event in losses] == sorted(factor_of_step), losses
    for event in losses:
        expected = math.nan if event.step == 2 else factor_of_step[event.step] / event.step
        assert numpy.array_equal(event.value, numpy.float32(expected), equal_nan=True), event
        assert event.wall_time > 1.6e9, event
    rates = accumulator.Scalars("train/learning_rate")
    assert all(event.value == numpy.float32(1e-5 * event.step) for event in rates)
    assert math.isinf(accumulator.Scalars("train/grad_norm")[2].value)
    assert accumulator.Scalars("train/rss_mib")[0].value == 345


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write(folder, 0, 8, 10)
        check(read(folder), {step: 10 for step in range(1, 9)})

        # Killed after step 8, resumed from the checkpoint of step 5, the last record torn.
        first = next(folder.iterdir())
        os.truncate(first, first.stat().st_size - 7)
        write(folder, 5, 10, 20)
        expected = {step: 10 if step <= 5 else 20 for step in range(1, 11)}
        check(read(folder), expected)

        # And from the start again: nothing of the earlier runs is left.
        write(folder, 0, 4, 30)
        check(read(folder), {step: 30 for step in range(1, 5)})

        names = sorted(path.name for path in folder.iterdir())
        assert len(names) == 3 and all(name.startswith("events.out.tfevents.") for name in names), names
    return 0


if __name__ == "__main__":
    sys.exit(main())
