#!/usr/bin/env python3
"""Broken model folders: one sentence that names what is wrong, and exit code 2."""
import json
import os
import shutil

import judge
import make_tiny_llama
import torch
from safetensors.torch import load_file, save_file


def folder_of(folder, name, kind="plain"):
    source = os.path.join(folder, "source-" + kind)
    if not os.path.exists(source):
        make_tiny_llama.make_model(source, kind)
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, path)
    return path


def refused(path, *words):
    code, _, err = judge.tool(do="load", model=path)
    assert code == 2, (code, err)
    assert len(err.strip().splitlines()) == 1, err
    for word in words:
        assert word in err, (word, err)


def change_config(path, **changes):
    name = os.path.join(path, "config.json")
    with open(name) as file:
        config = json.load(file)
    config.update(changes)
    with open(name, "w") as file:
        json.dump(config, file)


def change_weights(path, change):
    name = os.path.join(path, "model.safetensors")
    tensors = load_file(name)
    change(tensors)
    save_file(tensors, name)


def test_no_folder(folder):
    refused(os.path.join(folder, "nowhere"), "nowhere", "no such model folder")


def test_no_config(folder):
    path = folder_of(folder, "a")
    os.remove(os.path.join(path, "config.json"))
    refused(path, "config.json", "is not there")


def test_config_is_not_json(folder):
    path = folder_of(folder, "a")
    with open(os.path.join(path, "config.json"), "w") as file:
        file.write("{")
    refused(path, "config.json", "not a JSON object")


def test_unsupported_model_type(folder):
    path = folder_of(folder, "a")
    change_config(path, model_type="gpt2")
    refused(path, "model_type 'gpt2' is not supported", "supported: llama")


def test_no_weights(folder):
    path = folder_of(folder, "a")
    os.remove(os.path.join(path, "model.safetensors"))
    refused(path, "model.safetensors")


def test_truncated_at_every_part(folder):
    path = folder_of(folder, "a")
    name = os.path.join(path, "model.safetensors")
    with open(name, "rb") as file:
        content = file.read()
    for size in (0, 5, 8, 100, 3000, len(content) // 2, len(content) - 1):
        with open(name, "wb") as file:
            file.write(content[:size])
        refused(path, "model.safetensors", "truncated")


def test_missing_tensor(folder):
    path = folder_of(folder, "a")
    change_weights(path, lambda t: t.pop("model.layers.1.mlp.up_proj.weight"))
    refused(path, "'model.layers.1.mlp.up_proj.weight' is missing")


def test_unexpected_shape(folder):
    path = folder_of(folder, "a")
    change_weights(path, lambda t: t.update({"model.norm.weight": torch.ones(31)}))
    refused(path, "'model.norm.weight' has shape [31]", "asks for [32]")


def test_config_that_asks_for_more(folder):
    path = folder_of(folder, "a")
    change_config(path, num_hidden_layers=3)
    refused(path, "model.layers.2.", "missing")


def test_unsupported_dtype(folder):
    path = folder_of(folder, "a")
    change_weights(path, lambda t: t.update({"model.norm.weight": torch.ones(32, dtype=torch.int32)}))
    refused(path, "'model.norm.weight' has dtype I32")


def test_index_names_a_file_that_is_not_there(folder):
    path = folder_of(folder, "a", "sharded")
    shard = sorted(name for name in os.listdir(path) if name.endswith(".safetensors"))[1]
    os.remove(os.path.join(path, shard))
    refused(path, shard, "not there")


def test_tensors_without_use_are_told(folder):
    path = folder_of(folder, "a")
    change_weights(path, lambda t: t.update({"extra.weight": torch.ones(1)}))
    code, _, err = judge.tool(do="load", model=path)
    assert code == 0 and "extra.weight" in err, (code, err)


def test_tied_weight_under_the_name_of_the_head(folder):
    path = folder_of(folder, "a", "tied")
    change_weights(path, lambda t: t.update({"lm_head.weight": t.pop("model.embed_tokens.weight")}))
    code, _, err = judge.tool(do="load", model=path)
    assert code == 0 and err == "", (code, err)


if __name__ == "__main__":
    judge.run_all(globals())
