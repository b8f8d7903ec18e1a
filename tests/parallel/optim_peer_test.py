"""AdamW, clipping and schedules: the steps of optim_steps, made by torch and transformers."""

import json
import math
import subprocess
import sys

import torch
from transformers import get_scheduler

STEPS = 12


def wave(size, scale, phase):
    return (torch.sin(torch.arange(size, dtype=torch.double) * 0.7 + phase) * scale).float()


def peer(schedule):
    weight = torch.nn.Parameter(wave(257 * 3, 0.5, 0).view(257, 3))
    norm = torch.nn.Parameter(wave(19, 0.5, 1))
    groups = [{"params": [weight], "weight_decay": 0.1}, {"params": [norm], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.999), eps=1e-8)
    scheduler = get_scheduler(schedule, optimizer, math.ceil(0.21 * STEPS), STEPS)
    norms, rates = [], []
    for step in range(STEPS):
        weight.grad = wave(257 * 3, 0.02 * (step + 1), step).view(257, 3)
        norm.grad = wave(19, 0.1, step * 2)
        norms.append(torch.nn.utils.clip_grad_norm_([weight, norm], 1.0).item())
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return {"weight": weight.flatten().tolist(), "norm": norm.tolist(), "norms": norms, "rates": rates}


def main():
    for schedule in ["linear", "cosine", "constant", "constant_with_warmup"]:
        ours = json.loads(subprocess.check_output([sys.argv[1], schedule]))
        theirs = peer(schedule)
        assert max(theirs["norms"]) > 1 > min(theirs["norms"]), "both sides of clipping are to be seen"
        for key, want in theirs.items():
            want, got = torch.tensor(want, dtype=torch.double), torch.tensor(ours[key], dtype=torch.double)
            difference = ((got - want).norm() / want.norm()).item()
            print(f"{schedule} {key}: {difference:.2e}")
            assert difference < 1e-6, f"{schedule}: {key} differs by {difference}"


main()
