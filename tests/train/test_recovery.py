#!/usr/bin/env python3
"""Stops, kills and storage faults: what was trained is never lost, never repeated, and never half-saved."""
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
from harness import LOST_PEER, STOPPED, STORAGE, Hold, Training, complete_checkpoints, losses, train, wait_until, write_config
from make_tiny_llama import make_model, make_tokenizer

ROOT = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
MODEL = ROOT / "model"
MODEL.mkdir()
make_model(MODEL, "tied")
make_tokenizer(MODEL)
BLOCKS = harness.make_blocks(ROOT / "blocks.jsonl", rows=50)

# Dropout and shuffling make losses depend on random states and on the place in the data; LoRA and full, sharded and not.
KINDS = {
    "lora-ddp": dict(peft=True, lora_r=4, lora_dropout=0.2, lr=1e-2, distributed_backend="ddp"),
    "full-zero3": dict(distributed_backend="zero3"),
}


def config(name, **params):
    return write_config(ROOT / name, MODEL, ROOT / "blocks.jsonl",
                        **dict(dict(max_steps=12, data_shuffle=True, gradient_accumulation=2, scheduler="linear"),
                               **params))


def lines_of(out):
    path = out / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def test_files_of_others_in_the_project_folder_stay():
    for name, params in {"foreign-full": dict(save_strategy="steps", save_steps=6), "foreign-lora": KINDS["lora-ddp"]}.items():
        path = config(name, **params)
        others = [path.parent / "out" / file for file in
                  ["notes.txt", ".tmp-mine", "adapter_notes.txt", "model-card.safetensors", "adapter_v1/x", "checkpoint-99/x"]]
        for other in others:
            other.parent.mkdir(parents=True, exist_ok=True)
            other.write_text("mine")
        train(path)
        for other in others:
            assert other.read_text() == "mine", other


def catches_sigterm(pid):
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(caught[1], 16) >> (signal.SIGTERM - 1) & 1


def test_a_stop_before_the_first_step_ends_at_once():
    with Training(config("early"), 2) as run:
        run.processes[1].kill()  # rank 0 waits for it, for minutes
        wait_until(lambda: catches_sigterm(run.processes[0].pid), "rank 0 listens")
        run.processes[0].send_signal(signal.SIGTERM)
        codes = run.wait()
        assert codes[0] == STOPPED, (codes, run.stderr)


def test_a_diverged_loss_is_said_once():
    run = train(config("diverged", lr=1e30, save_strategy="no"))
    assert "".join(run.stderr + run.stdout).count("training has diverged") == 1, run.stdout
    assert "-nan" not in "".join(run.stderr + run.stdout + [(run.out / "README.md").read_text()])


def stop_at(path, ranks, recovery, rank, step):
    """A run of job u1 of which one rank gets SIGTERM at that step; all have to save that step and exit 75."""
    hold = Hold(path.parent / "hold")
    hold.arm("begun", 0, step)
    with Training(path, ranks, uid="u1", recovery=recovery, environment=hold.environment) as run:
        hold.wait(run)
        run.processes[rank].send_signal(signal.SIGTERM)
        hold.release()
        assert run.wait() == [STOPPED] * ranks, run.stderr
    (saved,) = complete_checkpoints(recovery)
    state = json.loads((recovery / saved / "coxswain_state.json").read_text())
    assert state["step"] == step == lines_of(run.out), (state, lines_of(run.out))
    return run


def test_sigterm_to_one_rank_stops_all_at_one_step_and_going_on_changes_no_bit():
    for kind, params in KINDS.items():
        params = dict(params, save_strategy="steps", save_steps=5)
        undisturbed = losses(train(config(kind + "-a", **params), 2).out)
        path, recovery = config(kind + "-b", **params), ROOT / (kind + "-recovery")
        stopped = stop_at(path, 2, recovery, rank=1, step=5)
        train(path, 2, uid="u1", recovery=recovery)  # after suspend: the same attempt
        assert losses(stopped.out) == undisturbed, kind


def test_a_user_save_goes_on_without_changing_a_bit():
    for kind, params in KINDS.items():
        save = dict(save_strategy="steps", save_steps=4, save_total_limit=2, **params)
        whole = train(config(kind + "-whole", **save), 2).out
        assert complete_checkpoints(whole) == ["checkpoint-12", "checkpoint-8"], complete_checkpoints(whole)
        before = losses(whole)
        shutil.rmtree(whole / "checkpoint-12")
        train(config(kind + "-whole", resume_from_checkpoint="auto", **save), 2)
        assert losses(whole) == before, kind


def test_user_saves_load_in_transformers_and_peft():
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM
    ids = torch.tensor(BLOCKS[:2])
    for kind, params in KINDS.items():
        out = train(config(kind + "-load", save_strategy="epoch", merge_adapter=False, **params), 2).out
        (name,) = complete_checkpoints(out)

        def loss(folder):
            if params.get("peft"):
                model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(MODEL), folder)
            else:
                model = AutoModelForCausalLM.from_pretrained(folder)
            return model(input_ids=ids, labels=ids).loss.item()

        assert loss(out / name) == loss(out), kind  # saved after the last step, as the final output


def test_a_new_job_starts_fresh_and_a_restarted_one_goes_on():
    path, recovery, hold = config("uid", max_steps=6), ROOT / "uid-recovery", Hold(ROOT / "uid-hold")
    hold.arm("begun", 0, 3)
    with Training(path, 1, uid="u1", recovery=recovery, interval=1e-6, environment=hold.environment) as killed:
        hold.wait(killed)
        killed.processes[0].kill()
        killed.wait()
    hold.release()
    assert complete_checkpoints(recovery) == ["step-1-attempt-0", "step-2-attempt-0"]
    again = train(path, 1, uid="u1", attempt=1, recovery=recovery)
    assert "Going on from step 2" in again.stdout[0], again.stdout[0]
    assert complete_checkpoints(recovery) == []  # finished
    finished = train(path, 1, uid="u1", attempt=2, recovery=recovery)
    assert "nothing left to do" in finished.stdout[0], finished.stdout[0]
    fresh = train(path, 1, uid="u2", recovery=ROOT / "uid-recovery-2")
    assert "Going on" not in fresh.stdout[0], fresh.stdout[0]


def test_another_number_of_ranks_goes_on():
    params = dict(data_shuffle=False, max_steps=6, scheduler="constant", save_strategy="steps", save_steps=3)
    expected = losses(train(config("ranks-whole", batch_size=6, **params)).out)
    for before, after in [(("ddp", 2), ("ddp", 3)), (("zero3", 2), ("zero3", 3)), (("zero3", 3), ("zero3", 2)),
                          (("zero3", 3), ("none", 1)), (("none", 1), ("zero3", 2)), (("zero3", 2), ("ddp", 2))]:
        name = f"ranks-{before}-{after}"
        recovery = ROOT / (name + "-recovery")
        path = config(name, batch_size=6 // before[1], distributed_backend=before[0], **params)
        stopped = stop_at(path, before[1], recovery, rank=0, step=3)
        path = config(name, batch_size=6 // after[1], distributed_backend=after[0], **params)
        train(path, after[1], uid="u1", recovery=recovery)
        harness.assert_close(losses(stopped.out), expected, 1e-4, name)


def test_a_user_save_goes_on_with_other_ranks():
    params = dict(data_shuffle=False, scheduler="constant", save_strategy="steps", save_steps=3)
    expected = losses(train(config("saved-whole", batch_size=6, max_steps=6, **params)).out)
    for before, after in [(("zero3", 2), ("ddp", 3)), (("ddp", 2), ("zero3", 3))]:
        name = f"saved-{before}-{after}"
        train(config(name, batch_size=3, max_steps=3, distributed_backend=before[0], **params), 2)
        out = train(config(name, batch_size=2, max_steps=6, distributed_backend=after[0], resume_from_checkpoint="latest",
                           **params), 3).out
        harness.assert_close(losses(out), expected, 1e-4, name)


def test_another_training_is_refused():
    params, recovery = dict(save_strategy="steps", save_steps=2), ROOT / "kind-recovery"
    stop_at(config("kind", **params), 2, recovery, rank=0, step=2)
    other = train(config("kind", peft=True, **params), 2, uid="u1", recovery=recovery, expect=harness.BAD_INPUT)
    assert "it was made without peft" in other.stderr[0], other.stderr


def test_kill_inside_a_save_twenty_times():
    params = dict(max_steps=24, distributed_backend="zero3")
    undisturbed = losses(train(config("kills-a", **params), 2).out)
    path, recovery, hold = config("kills-b", **params), ROOT / "kills-recovery", Hold(ROOT / "kills-hold")
    points = [("begun", 0), ("begun", 1), ("half", 0), ("half", 1), ("rank", 0), ("rank", 1), ("written", 0), ("renamed", 0)]
    for kill in range(20):
        point, rank = points[kill % len(points)]
        hold.arm(point, rank, kill)  # one step further each time
        with Training(path, 2, uid="u1", attempt=kill, recovery=recovery, interval=1e-6,
                      environment=hold.environment) as run:
            step, pid = hold.wait(run)
            assert pid == run.processes[rank].pid
            before = complete_checkpoints(recovery)
            assert f"step-{step}-attempt-{kill}" not in before, "held, but not inside a save"
            os.kill(pid, signal.SIGKILL)
            codes = run.wait()
        hold.release()
        assert codes[rank] == -signal.SIGKILL, codes
        assert codes[1 - rank] == LOST_PEER, (codes, run.stderr)
        assert complete_checkpoints(recovery) == before, "the save that was killed counts as complete"
    train(path, 2, uid="u1", attempt=20, recovery=recovery)
    assert losses(run.out) == undisturbed


def test_an_attempt_that_was_replaced_cannot_save():
    path, recovery, hold = config("fence"), ROOT / "fence-recovery", Hold(ROOT / "fence-hold")
    hold.arm("written", 0)
    with Training(path, 1, uid="u1", attempt=0, recovery=recovery, interval=1e-6, environment=hold.environment) as old:
        hold.wait(old)
        (recovery / "ATTEMPT").write_text("1\n")
        hold.release()
        assert old.wait() == [LOST_PEER], old.stderr
    assert "replaced by attempt 1" in old.stderr[0], old.stderr
    assert complete_checkpoints(recovery) == []


def test_storage_that_fails_ends_with_74_and_leaves_no_half_checkpoint():
    # A file where a folder has to be: fails for root too, for whom nothing is read-only.
    path = config("storage")
    (ROOT / "storage/out").mkdir()
    (ROOT / "storage/out/runs").write_text("")
    failed = train(path, 1, expect=STORAGE)
    assert str(ROOT / "storage/out/runs") in failed.stderr[0], failed.stderr
    blocked = ROOT / "blocked"
    blocked.write_text("")
    failed = train(config("storage-2"), 2, uid="u1", recovery=blocked / "recovery", expect=STORAGE)
    assert str(blocked) in failed.stderr[0], failed.stderr


def test_a_full_disk_ends_with_74_and_the_checkpoint_before_it_stays():
    mount = ROOT / "disk"
    mount.mkdir()
    size = 3 * sum(f.stat().st_size for f in MODEL.glob("*.safetensors")) * 3 // 2  # one checkpoint, not two
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)], capture_output=True).returncode:
        print("      (no right to mount a small disk here: not tried)")
        return
    try:
        failed = train(config("full-disk"), 2, uid="u1", recovery=mount / "recovery", interval=1e-6, expect=STORAGE)
        assert "No space left" in failed.stderr[0], failed.stderr
        assert len(complete_checkpoints(mount / "recovery")) == 1, complete_checkpoints(mount / "recovery")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_lost_peer_ends_the_others_with_76():
    path = config("peer", max_steps=100000, distributed_backend="ddp")
    with Training(path, 2) as run:
        wait_until(lambda: lines_of(run.out) >= 2 or run.processes[0].poll() is not None, "two steps")
        run.processes[1].kill()
        assert run.wait() == [LOST_PEER, -signal.SIGKILL], run.stderr
    assert len(run.stderr[0].strip().splitlines()) == 1, run.stderr[0]


if __name__ == "__main__":
    harness.run_tests(sys.modules[__name__])
