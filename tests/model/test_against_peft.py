#!/usr/bin/env python3
"""Our LoRA against peft: the adapter and the merged model we write, and one that peft wrote."""
import json
import math
import os

import judge
import make_tiny_llama
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

ROWS = judge.make_rows([21, 40], 320, seed=2)
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def base_of(folder, kind):
    path = os.path.join(folder, kind)
    if not os.path.exists(path):
        make_tiny_llama.make_model(path, kind)
    return path, LlamaForCausalLM.from_pretrained(path)


def close(ours, theirs, bound=1e-5):
    theirs = theirs.item()
    assert abs(ours - theirs) <= bound * abs(theirs), (ours, theirs)


def check_adapter(folder, kind, targets, expected):
    path, base = base_of(folder, kind)
    out = os.path.join(folder, f"lora-{kind}-{len(targets)}")
    lora = {"rank": 4, "alpha": 12, "target_modules": targets}
    loss = float(judge.ask(do="lora", model=path, lora=lora, rows=ROWS, out=out))
    with torch.no_grad():
        assert abs(loss - judge.loss_sum_of(base, ROWS).item()) > 1e-2, "the adapter changes nothing"
        close(loss, judge.loss_sum_of(PeftModel.from_pretrained(base, out + "/adapter").eval(), ROWS))
        merged = LlamaForCausalLM.from_pretrained(out + "/merged")
        close(loss, judge.loss_sum_of(merged, ROWS))
    keys = set(load_file(out + "/adapter/adapter_model.safetensors"))
    assert {key.split(".lora_")[0].rsplit(".", 1)[1] for key in keys} == set(expected), keys
    assert not any("lora" in key for key in load_file(out + "/merged/model.safetensors"))


def test_all_linear(folder):
    check_adapter(folder, "plain", ["all-linear"], LINEARS)


def test_all_linear_of_a_tied_model(folder):
    check_adapter(folder, "tied", ["all-linear"], LINEARS)


def test_suffix_list(folder):
    check_adapter(folder, "bias", ["q_proj", "mlp.down_proj"], ["q_proj", "down_proj"])


def test_an_adapter_of_peft_loads(folder):
    path, base = base_of(folder, "plain")
    torch.manual_seed(4)
    model = get_peft_model(base, LoraConfig(r=3, lora_alpha=6, target_modules="all-linear",
                                            init_lora_weights=False, task_type="CAUSAL_LM")).eval()
    adapter = os.path.join(folder, "peft-adapter")
    model.save_pretrained(adapter)
    loss = float(judge.ask(do="lora", model=path, lora={"rank": 3, "alpha": 6}, rows=ROWS, adapter=adapter))
    with torch.no_grad():
        close(loss, judge.loss_sum_of(model, ROWS))


def test_gradients_and_initial_values(folder):
    path, base = base_of(folder, "plain")
    out = os.path.join(folder, "gradients.safetensors")
    judge.ask(do="gradients", model=path, lora={"rank": 4, "alpha": 8}, rows=ROWS, out=out)
    ours = {name[len("grad."):]: value for name, value in load_file(out).items() if name.startswith("grad.")}
    assert ours and all(".lora_" in name for name in ours), "only LoRA is trained"

    saved = os.path.join(folder, "initial")
    judge.ask(do="lora", model=path, lora={"rank": 4, "alpha": 8}, rows=ROWS, out=saved)
    again = os.path.join(folder, "initial-again")
    judge.ask(do="lora", model=path, lora={"rank": 4, "alpha": 8}, rows=ROWS, out=again)
    initial = load_file(saved + "/adapter/adapter_model.safetensors")
    repeated = load_file(again + "/adapter/adapter_model.safetensors")
    other = os.path.join(folder, "initial-other")
    judge.ask(do="lora", model=path, lora={"rank": 4, "alpha": 8}, rows=ROWS, out=other, seed=9)
    reseeded = load_file(other + "/adapter/adapter_model.safetensors")
    model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_A" not in name:
                continue
            key = name.replace(".default", "")
            a = initial[key]
            bound = 1 / math.sqrt(a.shape[1])
            assert a.abs().max() <= bound and a.std() > bound / math.sqrt(3) * 0.8
            assert torch.equal(a, repeated[key]) and not torch.equal(a, reseeded[key])
            parameter.copy_(a)
    judge.loss_sum_of(model, ROWS).backward()
    seen = 0
    for name, parameter in model.named_parameters():
        if ".lora_" not in name:
            continue
        gradient = ours[name.replace(".default", "").removeprefix("base_model.model.")]
        seen += 1
        if "lora_A" in name:  # B is zero
            assert (gradient == 0).all() and (parameter.grad == 0).all()
        else:
            assert judge.relative(gradient, parameter.grad) < 1e-4, name
    assert seen == len(ours) == 2 * 7 * 2


def test_config_file(folder):
    path, _ = base_of(folder, "plain")
    out = os.path.join(folder, "config-file")
    judge.ask(do="lora", model=path, lora={"rank": 2, "alpha": 32, "dropout": 0.05}, rows=ROWS, out=out)
    with open(out + "/adapter/adapter_config.json") as file:
        config = json.load(file)
    assert config["r"] == 2 and config["lora_alpha"] == 32 and isinstance(config["lora_alpha"], int)
    assert config["lora_dropout"] == 0.05 and config["base_model_name_or_path"] == path
    assert config["task_type"] == "CAUSAL_LM" and set(config["target_modules"]) == set(LINEARS)


def test_a_target_that_matches_nothing(folder):
    path, _ = base_of(folder, "plain")
    code, _, err = judge.tool(do="lora", model=path, lora={"target_modules": ["q_proj", "qkv"]}, rows=ROWS)
    assert code == 2 and "'qkv'" in err and all(name in err for name in LINEARS), err


if __name__ == "__main__":
    judge.run_all(globals())
