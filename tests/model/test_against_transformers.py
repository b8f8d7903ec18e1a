#!/usr/bin/env python3
"""Our Llama against transformers: logits, loss, every gradient, packing, files, generation."""
import json
import os

import judge
import make_tiny_llama
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

MODELS = {}


def model_of(folder, kind):
    path = os.path.join(folder, kind)
    if kind not in MODELS:
        make_tiny_llama.make_model(path, kind)
        MODELS[kind] = LlamaForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa")
    return path, MODELS[kind]


def check_gradients(folder, kind, lengths):
    path, model = model_of(folder, kind)
    rows = judge.make_rows(lengths, 320, seed=len(kind))
    out = os.path.join(folder, "out.safetensors")
    judge.ask(do="gradients", model=path, rows=rows, out=out)
    ours = load_file(out)
    model.zero_grad()
    loss = judge.loss_sum_of(model, rows)
    loss.backward()
    assert judge.relative(ours["loss"], loss.detach()) < 1e-5, (ours["loss"], loss)
    with torch.no_grad():
        logits = torch.cat([model(input_ids=torch.tensor([row["ids"]])).logits[0] for row in rows])
    assert judge.relative(ours["logits"], logits) < 1e-5, judge.relative(ours["logits"], logits)
    names = {name for name, _ in model.named_parameters()}
    assert {"grad." + name for name in names} == {name for name in ours if name.startswith("grad.")}
    for name, parameter in model.named_parameters():
        difference = judge.relative(ours["grad." + name], parameter.grad)
        assert difference < 1e-4, f"{kind} {name}: {difference}"


def test_plain_uneven_rows(folder):
    check_gradients(folder, "plain", [33, 7, 1, 64])


def test_plain_even_rows(folder):
    check_gradients(folder, "plain", [48, 48])


def test_tied(folder):
    check_gradients(folder, "tied", [20, 31])


def test_llama3_rope_beyond_the_original_context(folder):
    check_gradients(folder, "llama3", [120])


def test_biases(folder):
    check_gradients(folder, "bias", [25, 11])


def test_sharded(folder):
    path, _ = model_of(folder, "sharded")
    assert os.path.exists(os.path.join(path, "model.safetensors.index.json"))
    check_gradients(folder, "sharded", [17])


def test_bf16_weights_train_in_fp32(folder):
    check_gradients(folder, "bf16", [17, 5])


def test_packed_rows_equal_their_samples(folder):
    path, model = model_of(folder, "plain")
    samples = judge.make_rows([13, 29, 2, 40], 320, seed=5)
    packed = []
    for pair in (samples[:3], samples[3:]):
        packed.append({"ids": sum((s["ids"] for s in pair), []), "labels": sum((s["labels"] for s in pair), []),
                       "segments": [len(s["ids"]) for s in pair]})
    out = os.path.join(folder, "out.safetensors")
    judge.ask(do="gradients", model=path, rows=packed, out=out)
    ours = load_file(out)
    loss = judge.loss_sum_of(model, samples).detach()
    assert judge.relative(ours["loss"], loss) < 1e-5
    assert ours["count"].item() == sum(label != -100 for s in samples for label in s["labels"][1:])


def test_no_target_is_zero_with_zero_gradients(folder):
    path, _ = model_of(folder, "tied")
    rows = judge.make_rows([9], 320, seed=6, masked=1.1)
    out = os.path.join(folder, "out.safetensors")
    judge.ask(do="gradients", model=path, rows=rows, out=out)
    ours = load_file(out)
    assert ours["loss"].item() == 0
    gradients = {name: value for name, value in ours.items() if name.startswith("grad.")}
    assert len(gradients) == 2 * 9 + 2
    assert all((value == 0).all() for value in gradients.values())


def test_what_we_write_loads_bitwise(folder):
    for kind in ("plain", "tied", "sharded"):
        path, model = model_of(folder, kind)
        out = os.path.join(folder, "written-" + kind)
        judge.ask(do="rewrite", model=path, out=out)
        theirs = LlamaForCausalLM.from_pretrained(out)
        for (name, a), (_, b) in zip(model.named_parameters(), theirs.named_parameters(), strict=True):
            assert a.dtype == b.dtype and torch.equal(a, b), name
        again = os.path.join(folder, "again-" + kind)
        judge.ask(do="rewrite", model=out, out=again)
        with open(os.path.join(out, "model.safetensors"), "rb") as a, \
                open(os.path.join(again, "model.safetensors"), "rb") as b:
            assert a.read() == b.read()
        stored = load_file(os.path.join(out, "model.safetensors"))
        assert ("lm_head.weight" in stored) == (kind != "tied")


def test_greedy_generation(folder):
    for kind in ("plain", "llama3", "bias"):
        path, model = model_of(folder, kind)
        ids = judge.make_rows([11], 320, seed=8)[0]["ids"]
        ours = json.loads(judge.ask(do="generate", model=path, ids=ids, tokens=30))
        theirs = model.generate(torch.tensor([ids]), max_new_tokens=30, do_sample=False, pad_token_id=1)[0, len(ids):]
        assert ours == theirs.tolist(), (kind, ours, theirs.tolist())


if __name__ == "__main__":
    judge.run_all(globals())
