#!/usr/bin/env python3
"""Turns a GGUF file of the llama architecture with a byte-level BPE tokenizer into a Hugging Face model folder.

  convert_gguf.py MODEL.gguf FOLDER

Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json, chat_template.jinja and
model.safetensors (float32: every value that the quantised file stands for, exactly). The folder appears whole or not
at all. Needs gguf, numpy, safetensors and tokenizers; neither torch nor transformers.
"""
import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import numpy
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

# GGUF name -> Hugging Face name; {} is the block's number.
TENSOR_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "blk.{}.attn_norm": "model.layers.{}.input_layernorm",
    "blk.{}.attn_q": "model.layers.{}.self_attn.q_proj",
    "blk.{}.attn_k": "model.layers.{}.self_attn.k_proj",
    "blk.{}.attn_v": "model.layers.{}.self_attn.v_proj",
    "blk.{}.attn_output": "model.layers.{}.self_attn.o_proj",
    "blk.{}.ffn_norm": "model.layers.{}.post_attention_layernorm",
    "blk.{}.ffn_gate": "model.layers.{}.mlp.gate_proj",
    "blk.{}.ffn_up": "model.layers.{}.mlp.up_proj",
    "blk.{}.ffn_down": "model.layers.{}.mlp.down_proj",
}

CONTROL_TOKEN = 3  # in tokenizer.ggml.token_type

# How each of llama.cpp's named pre-tokenizers splits text before byte-level BPE.
PRE_TOKENIZERS = {
    "smollm": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
    ]),
}


class Unsupported(Exception):
    """The file holds something that this conversion does not know."""


class Metadata:
    def __init__(self, reader):
        self._fields = reader.fields

    def get(self, key, default=None):
        field = self._fields.get(key)
        return default if field is None else field.contents()

    def need(self, key):
        value = self.get(key)
        if value is None:
            raise Unsupported(f"the file has no {key}")
        return value


def hf_tensor_name(name):
    stem, kind = name.rsplit(".", 1)
    parts = stem.split(".")
    block = parts[1] if parts[0] == "blk" else ""
    pattern = ".".join(["blk", "{}", *parts[2:]]) if block else stem
    if pattern not in TENSOR_NAMES or kind != "weight":
        raise Unsupported(f"the tensor {name} is not one of a Llama model's")
    return TENSOR_NAMES[pattern].format(block) + ".weight"


def undo_rope_permutation(weight, heads):
    """llama.cpp stores q and k so that a head's rotated pairs are neighbours; Hugging Face keeps them in two halves."""
    rows, columns = weight.shape
    return (weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns))


def read_tensors(reader, metadata):
    heads = metadata.need("llama.attention.head_count")
    kv_heads = metadata.get("llama.attention.head_count_kv", heads)
    tensors = {}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32, copy=False)
        weight = weight.reshape([int(n) for n in reversed(tensor.shape)])
        name = hf_tensor_name(tensor.name)
        if name.endswith("q_proj.weight"):
            weight = undo_rope_permutation(weight, heads)
        elif name.endswith("k_proj.weight"):
            weight = undo_rope_permutation(weight, kv_heads)
        tensors[name] = numpy.ascontiguousarray(weight)
    return tensors


def shortest_float32(value):
    """0.00001 instead of the digits that a float32 gains when it is widened."""
    return float(numpy.format_float_positional(numpy.float32(value), unique=True))


def model_config(metadata, tensors):
    hidden = metadata.need("llama.embedding_length")
    heads = metadata.need("llama.attention.head_count")
    if metadata.get("llama.rope.scaling.type", "none") != "none":
        raise Unsupported("the model scales its rotary embedding")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "head_dim": metadata.get("llama.rope.dimension_count", hidden // heads),
        "intermediate_size": metadata.need("llama.feed_forward_length"),
        "num_hidden_layers": metadata.need("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv", heads),
        "max_position_embeddings": metadata.need("llama.context_length"),
        "rms_norm_eps": shortest_float32(metadata.need("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": metadata.get("llama.rope.freq_base", 10000.0),
        "initializer_range": hidden**-0.5,
        "vocab_size": tensors["model.embed_tokens.weight"].shape[0],
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "bos_token_id": metadata.need("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.need("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "torch_dtype": "float32",
        "use_cache": True,
    }


def build_tokenizer(metadata):
    if metadata.need("tokenizer.ggml.model") != "gpt2":
        raise Unsupported(f"the tokenizer is a {metadata.need('tokenizer.ggml.model')} one, not byte-level BPE (gpt2)")
    splitter = PRE_TOKENIZERS.get(metadata.need("tokenizer.ggml.pre"))
    if splitter is None:
        raise Unsupported(f"the pre-tokenizer {metadata.need('tokenizer.ggml.pre')} is not one of {sorted(PRE_TOKENIZERS)}")
    tokens = metadata.need("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in metadata.need("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = splitter()
    tokenizer.decoder = decoders.ByteLevel()
    types = metadata.need("tokenizer.ggml.token_type")
    tokenizer.add_special_tokens([
        AddedToken(token, special=True, normalized=False)
        for token, kind in zip(tokens, types) if kind == CONTROL_TOKEN])
    return tokenizer


def tokenizer_config(metadata):
    tokens = metadata.need("tokenizer.ggml.tokens")
    special = {
        "bos_token": "tokenizer.ggml.bos_token_id",
        "eos_token": "tokenizer.ggml.eos_token_id",
        "unk_token": "tokenizer.ggml.unknown_token_id",
        "pad_token": "tokenizer.ggml.padding_token_id",
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": metadata.get("tokenizer.ggml.add_bos_token", False),
        "add_eos_token": metadata.get("tokenizer.ggml.add_eos_token", False),
        "add_prefix_space": metadata.get("tokenizer.ggml.add_space_prefix", False),
        "clean_up_tokenization_spaces": False,
        "model_max_length": metadata.need("llama.context_length"),
    }
    for name, key in special.items():
        if metadata.get(key) is not None:
            config[name] = tokens[metadata.get(key)]
    if metadata.get("tokenizer.chat_template"):
        config["chat_template"] = metadata.get("tokenizer.chat_template")
    return config


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_folder(gguf_path, folder):
    reader = GGUFReader(gguf_path)
    metadata = Metadata(reader)
    if metadata.need("general.architecture") != "llama":
        raise Unsupported(f"its architecture is {metadata.need('general.architecture')}; this converts llama")
    tensors = read_tensors(reader, metadata)
    config = model_config(metadata, tensors)
    weights = folder / "model.safetensors"
    save_file(tensors, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # safetensors makes it readable by its owner only; the pods of a cluster run as someone else
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json",
               {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if config[key] is not None})
    build_tokenizer(metadata).save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config(metadata))
    if metadata.get("tokenizer.chat_template"):
        (folder / "chat_template.jinja").write_text(metadata.get("tokenizer.chat_template"), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("gguf", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()

    arguments.folder.parent.mkdir(parents=True, exist_ok=True)
    partial = arguments.folder.with_name(f".{arguments.folder.name}.partial-{os.getpid()}")
    partial.mkdir()
    try:
        write_folder(arguments.gguf, partial)
        partial.rename(arguments.folder)
    except Unsupported as error:
        sys.exit(f"error: {arguments.gguf} can't be converted: {error}")
    except OSError as error:
        sys.exit(f"error: could not write {arguments.folder}: {error.strerror}")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


if __name__ == "__main__":
    main()
