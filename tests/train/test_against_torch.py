#!/usr/bin/env python3
"""Whole trainings of a tiny Llama: losses equal to PyTorch's own, however the batch is split; outputs that transformers and
peft load. Judges: transformers, peft, torch.optim."""
import atexit
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import assert_close, losses, metrics, train, write_config
from make_tiny_llama import make_model, make_tokenizer

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

STEPS, BLOCK = 10, 24
TOLERANCE = 1e-4

ROOT = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
MODEL = ROOT / "model"
MODEL.mkdir()
make_model(MODEL, "tied")
make_tokenizer(MODEL)
BLOCKS = harness.make_blocks(ROOT / "blocks.jsonl", rows=64, length=BLOCK)


def config(name, **params):
    return write_config(ROOT / name, MODEL, ROOT / "blocks.jsonl", max_steps=STEPS, **params)


def load(folder=MODEL):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def batch_loss(model, rows):
    ids = torch.tensor(rows)
    return model(input_ids=ids, labels=ids).loss


def torch_losses(model, rows_a_step, lr=1e-3, weight_decay=0.0, max_grad_norm=0.0):
    """PyTorch's training over the same rows; returns losses and gradient norms."""
    model.train()
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    decayed = [p for n, p in named if "norm" not in n and not n.endswith("bias")]
    others = [p for n, p in named if "norm" in n or n.endswith("bias")]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": weight_decay},
                                   {"params": others, "weight_decay": 0.0}], lr=lr, betas=(0.9, 0.999), eps=1e-8)
    out, norms = [], []
    for step in range(STEPS):
        rows = [BLOCKS[(step * rows_a_step + i) % len(BLOCKS)] for i in range(rows_a_step)]
        loss = batch_loss(model, rows)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_([p for _, p in named], max_grad_norm or float("inf")).item())
        optimizer.step()
        optimizer.zero_grad()
        out.append(loss.item())
    return out, norms


def test_full_training_equals_torch_however_it_is_split():
    expected, norms = torch_losses(load(), 6, weight_decay=0.1, max_grad_norm=1.0)
    splits = [(1, "none", 6, 1), (1, "none", 2, 3), (2, "ddp", 3, 1), (3, "ddp", 1, 2), (2, "zero3", 3, 1),
              (3, "zero3", 2, 1), (2, "zero3", 1, 3)]
    for ranks, backend, batch, accumulation in splits:
        name = f"{backend}-{ranks}x{batch}x{accumulation}"
        done = train(config(name, distributed_backend=backend, batch_size=batch, gradient_accumulation=accumulation,
                            weight_decay=0.1, max_grad_norm=1.0), ranks)
        assert_close(losses(done.out), expected, TOLERANCE, name + " loss")
        assert_close([r["grad_norm"] for r in metrics(done.out)], norms, 1e-3, name + " grad_norm")


def test_gradient_checkpointing_changes_nothing():
    plain = train(config("plain", batch_size=2))
    for backend, ranks in [("none", 1), ("zero3", 2)]:
        done = train(config("checkpointing-" + backend, batch_size=2 // ranks, disable_gradient_checkpointing=False,
                            distributed_backend=backend), ranks)
        assert_close(losses(done.out), losses(plain.out), TOLERANCE, backend)


def test_schedule_counts_optimizer_steps():
    from transformers import get_scheduler
    done = train(config("schedule", scheduler="cosine", warmup_ratio=0.2, gradient_accumulation=2), 2)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    schedule = get_scheduler("cosine", optimizer, num_warmup_steps=2, num_training_steps=STEPS)
    expected = []
    for _ in range(STEPS):
        expected.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert_close([r["learning_rate"] for r in metrics(done.out)], expected, 1e-9, "learning rate")


def test_same_seed_same_bits():
    params = dict(peft=True, lora_r=4, lora_dropout=0.1, data_shuffle=True, merge_adapter=False, seed=7)
    runs = [losses(train(config(f"seed-{i}", **params), 2).out) for i in range(2)]
    assert runs[0] == runs[1], runs
    params["seed"] = 8
    assert losses(train(config("other-seed", **params), 2).out) != runs[0]


def test_final_model_loads_in_transformers_with_our_loss():
    for backend, ranks in [("none", 1), ("ddp", 2), ("zero3", 2)]:
        # One step more than is compared: its loss is that of the model after STEPS - 1 updates.
        name = "final-" + backend
        shorter = write_config(ROOT / (name + "-a"), MODEL, ROOT / "blocks.jsonl", max_steps=4, batch_size=2 // ranks,
                               distributed_backend=backend)
        longer = write_config(ROOT / (name + "-b"), MODEL, ROOT / "blocks.jsonl", max_steps=5, batch_size=2 // ranks,
                              distributed_backend=backend)
        out = train(shorter, ranks).out
        fifth = losses(train(longer, ranks).out)[4]
        theirs = batch_loss(load(out), BLOCKS[8:10]).item()
        assert_close([theirs], [fifth], TOLERANCE, name)
        AutoTokenizer.from_pretrained(out)
        for file in ("README.md", "training_params.json", "trainer_state.json", "metrics.jsonl", "train.log",
                     "generation_config.json"):
            assert (out / file).is_file(), file
        assert "token" not in json.loads((out / "training_params.json").read_text())


def test_lora_adapter_and_merged_model_have_our_loss():
    params = dict(peft=True, lora_r=4, lora_alpha=8, lora_dropout=0.0, batch_size=2, lr=1e-2)
    for backend, ranks in [("none", 1), ("ddp", 2), ("zero3", 2)]:
        params.update(batch_size=2 // ranks, distributed_backend=backend)
        results = {}
        for steps, merge in [(4, False), (4, True), (5, False)]:
            folder = ROOT / f"lora-{backend}-{steps}-{merge}"
            results[steps, merge] = train(write_config(folder, MODEL, ROOT / "blocks.jsonl", max_steps=steps,
                                                       merge_adapter=merge, **params), ranks).out
        fifth = losses(results[5, False])[4]
        adapted = PeftModel.from_pretrained(load(), results[4, False])
        assert_close([batch_loss(adapted, BLOCKS[8:10]).item()], [fifth], TOLERANCE, backend + " adapter")
        assert_close([batch_loss(load(results[4, True]), BLOCKS[8:10]).item()], [fifth], TOLERANCE, backend + " merged")
        assert not list(results[4, True].glob("adapter_*"))


def test_lora_training_equals_peft():
    params = dict(peft=True, lora_r=4, lora_alpha=8, lora_dropout=0.0, merge_adapter=False)
    # A learning rate of zero leaves the adapter as it was drawn: where peft's training starts, too.
    start = train(config("lora-start", lr=1e-30, **params)).out
    model = PeftModel.from_pretrained(load(), start, is_trainable=True)
    expected, _ = torch_losses(model, 2, lr=1e-2)
    for backend, ranks in [("none", 1), ("ddp", 2), ("zero3", 2)]:
        done = train(config("lora-parity-" + backend, lr=1e-2, batch_size=2 // ranks, distributed_backend=backend,
                            **params), ranks)
        assert_close(losses(done.out), expected, TOLERANCE, backend)


def test_tensorboard_reads_the_losses_back():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    out = train(config("tensorboard")).out
    events = EventAccumulator(str(out / "runs"))
    events.Reload()
    assert_close([e.value for e in events.Scalars("train/loss")], losses(out), 1e-6, "train/loss")


def test_generate_answers_as_transformers():
    out = train(config("generate", peft=True, lora_r=4, lora_dropout=0.0, lr=1e-2, merge_adapter=False)).out
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    for adapter in (None, out):
        model = load() if adapter is None else PeftModel.from_pretrained(load(), adapter)
        model.eval()
        ids = tokenizer.apply_chat_template([{"role": "user", "content": "What is a kernel?"}], add_generation_prompt=True,
                                            return_tensors="pt", return_dict=True)["input_ids"]
        answer = model.generate(input_ids=ids, max_new_tokens=8, do_sample=False)[0][ids.shape[1]:]
        command = [str(harness.WORKER), "generate", "--model", str(MODEL), "--prompt", "What is a kernel?",
                   "--max-new-tokens", "8", *(["--adapter", str(adapter)] if adapter else [])]
        ours = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
        assert ours == tokenizer.decode(answer, skip_special_tokens=True) + "\n", (ours, answer)


def test_generate_without_a_template_goes_on_from_the_text():
    bare = ROOT / "bare"
    shutil.copytree(MODEL, bare)
    (bare / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((bare / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (bare / "tokenizer_config.json").write_text(json.dumps(settings))
    command = [str(harness.WORKER), "generate", "--model", str(bare), "--prompt", "A ship", "--max-new-tokens", "4"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    (bare / "chat_template.jinja").write_text("{% if %}")
    broken = subprocess.run(command, capture_output=True)
    assert broken.returncode == harness.BAD_INPUT, broken


if __name__ == "__main__":
    harness.run_tests(sys.modules[__name__])
