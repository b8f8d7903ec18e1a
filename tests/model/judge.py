"""What the judge tests share: the tool, a temporary folder of tiny models, comparisons."""
import json
import os
import subprocess
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, os.path.join(os.environ["COXSWAIN_SOURCE_DIR"], "tests", "fixtures"))

TOOL = os.path.join(os.environ["COXSWAIN_BINARY_DIR"], "bin", "model_tool")


def tool(**request):
    """Runs the tool; returns (exit code, stdout, stderr)."""
    done = subprocess.run([TOOL, json.dumps(request)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def ask(**request):
    code, out, err = tool(**request)
    assert code == 0, f"model_tool {request.get('do')} ended with {code}: {err}"
    return out


def relative(ours, theirs):
    """The largest difference, relative to the largest value."""
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-12)).item()


def make_rows(lengths, vocab, seed, masked=0.3):
    """Random rows; some labels are ignored."""
    import random

    rng = random.Random(seed)
    rows = []
    for length in lengths:
        ids = [rng.randrange(vocab) for _ in range(length)]
        rows.append({"ids": ids, "labels": [-100 if rng.random() < masked else i for i in ids]})
    return rows


def loss_sum_of(model, rows):
    """transformers' sum of token losses, each row by itself, so that padding plays no part."""
    import torch

    total = 0
    for row in rows:
        logits = model(input_ids=torch.tensor([row["ids"]])).logits[0, :-1].float()
        targets = torch.tensor(row["labels"][1:], dtype=torch.long)
        total = total + torch.nn.functional.cross_entropy(logits, targets, ignore_index=-100, reduction="sum")
    return total


def run_all(namespace):
    """Every test_… of a module, with a temporary folder; prints each, exits with the number of failures."""
    import tempfile
    import traceback

    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, function in list(namespace.items()):
            if not name.startswith("test_"):
                continue
            try:
                function(folder)
                print("ok  ", name, flush=True)
            except Exception:
                failures += 1
                print("FAIL", name, flush=True)
                traceback.print_exc()
    sys.exit(1 if failures else 0)
