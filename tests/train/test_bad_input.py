#!/usr/bin/env python3
"""Bad configurations, data and models: one sentence that names what is wrong, exit code 2, on every rank."""
import atexit
import json
import pathlib
import shutil
import struct
import sys
import tempfile

import harness
from harness import BAD_INPUT, Training, write_config
from make_tiny_llama import make_model, make_tokenizer

ROOT = pathlib.Path(tempfile.mkdtemp(prefix="coxswain-train-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
MODEL = ROOT / "model"
MODEL.mkdir()
make_model(MODEL, "tied")
make_tokenizer(MODEL)
DATA = ROOT / "blocks.jsonl"
harness.make_blocks(DATA, rows=8)


def refused(name, *said, model=MODEL, data=DATA, ranks=1, change=None, **params):
    path = write_config(ROOT / name, model, data, **params)
    if change:
        config = json.loads(path.read_text())
        change(config)
        path.write_text(json.dumps(config))
    with Training(path, ranks) as run:
        codes = run.wait()
    assert codes == [BAD_INPUT] * ranks, (codes, run.stderr)
    for text in run.stderr:
        assert len(text.strip().splitlines()) == 1, f"more than one line: {text}"
        for word in said:
            assert word in text, f"'{word}' is not in: {text}"


def file_with(name, content):
    path = ROOT / name
    path.write_bytes(content)
    return path


def model_with(name, **files):
    folder = ROOT / name
    shutil.copytree(MODEL, folder)
    for file, content in files.items():
        (folder / file.replace("__", ".")).write_bytes(content)
    return folder


def test_files_that_are_not_there():
    refused("no-model", "nowhere", model=ROOT / "nowhere")
    refused("no-data", "nothing.jsonl", data=ROOT / "nothing.jsonl")


def test_columns():
    data = file_with("columns.jsonl", b'{"prompt": "a", "answer": "b"}\n')
    refused("column", "text", "prompt", "answer", data=data)


def test_broken_lines():
    good = b'{"text": "some words"}\n'
    refused("json", "3", "broken.jsonl", data=file_with("broken.jsonl", good * 2 + b'{"text": \n' + good))
    refused("utf8", "2", "utf8.jsonl", data=file_with("utf8.jsonl", good + b'{"text": "\xff\xfe"}\n'))


def test_weights():
    weights = (MODEL / "model.safetensors").read_bytes()
    refused("cut", "model.safetensors", model=model_with("cut-model", model__safetensors=weights[:-100]))
    length = struct.unpack("<Q", weights[:8])[0]
    header = json.loads(weights[8:8 + length])
    name = next(key for key in header if key != "__metadata__")
    header[name]["data_offsets"][1] += 4
    text = json.dumps(header).encode()
    lying = struct.pack("<Q", len(text)) + text + weights[8 + length:]
    refused("lying", "model.safetensors", model=model_with("lying-model", model__safetensors=lying))


def test_model_type():
    config = json.loads((MODEL / "config.json").read_text())
    config["model_type"] = "mamba9"
    refused("type", "mamba9", "llama", model=model_with("type-model", config__json=json.dumps(config).encode()))


def test_unknown_key():
    refused("key", "batchsize", "batch_size", change=lambda c: c["params"].update(batchsize=3))


def test_template_that_raises():
    template = b"{{ raise_exception('only questions, please') }}"
    data = file_with("chat.jsonl", b'{"messages": [{"role": "user", "content": "a"}, '
                                   b'{"role": "assistant", "content": "b"}]}\n')

    def as_chat(config):
        config["task"] = "llm-sft"
        config["data"].update(chat_template="tokenizer", column_mapping={"text_column": "messages"})

    refused("template", "only questions, please", data=data, change=as_chat,
            model=model_with("template-model", chat_template__jinja=template))


def test_more_ranks_than_samples():
    refused("ranks", "2", "3", data=file_with("two.jsonl", DATA.read_bytes().split(b"\n")[0] + b"\n" +
                                             DATA.read_bytes().split(b"\n")[1] + b"\n"), ranks=3)


def test_checkpoint_that_is_not_there():
    refused("checkpoint", "resume_from_checkpoint", "does not exist", resume_from_checkpoint="checkpoint-77")


def test_what_is_in_the_way_of_the_results_is_said_before_training():
    (ROOT / "folder-in-the-way/out/README.md").mkdir(parents=True)
    refused("folder-in-the-way", "README.md", "is a folder")
    (ROOT / "foreign/out/checkpoint-2").mkdir(parents=True)
    (ROOT / "foreign/out/checkpoint-2/x").write_text("x")
    refused("foreign", "checkpoint-2", "not written by this program", save_strategy="steps", save_steps=2)
    assert (ROOT / "foreign/out/checkpoint-2/x").read_text() == "x"


def test_output_over_the_base_model():
    refused("over", "project_name", model=MODEL, change=lambda c: c.update(project_name=str(MODEL)))


if __name__ == "__main__":
    harness.run_tests(sys.modules[__name__])
