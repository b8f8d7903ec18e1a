"""Token ids and masks of conversations and texts equal those of transformers.

The judge is transformers itself: ids by apply_chat_template(tokenize=True); masks by its own assistant_masks where the
template has generation tags, else by prefix rendering with its own tokens. Tokenizers are trained here; SmolLM2's real one
joins where scripts/ has put it under build/models.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

SOURCE = Path(os.environ["COXSWAIN_SOURCE_DIR"])
DUMP_ROWS = Path(os.environ["COXSWAIN_BINARY_DIR"]) / "bin" / "coxswain-dump-rows"
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"]

CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""
TEMPLATES = {
    "chatml": CHATML,
    "default_system": "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{% endif %}"
    + CHATML,
    # Trims contents, writes BOS itself, as Llama 3's does.
    "headers": """{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    # No special tokens around the turns: boundaries fall inside what the tokenizer might merge.
    "words": "{% for m in messages %}{% if m.role == 'assistant' %}{{ 'Assistant: ' + m.content + '\n' }}{% else %}"
    "{{ m.role | capitalize }}: {{ m.content }}\n\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}",
    "tagged": """{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
            {{- message.content + '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- else %}
        {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}""",
    "tagged_words": "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %} {{ m.content }}\n"
    "{% endgeneration %}{% else %} {{ m.content }}{% endif %}\n{% endfor %}",
    # Keeps parts, shows other keys, uses much of the language.
    "language": """{%- macro show(content) -%}
{%- if content is string %}{{ content }}{% else %}{% for part in content %}{{ part.text }}{% endfor %}{% endif -%}
{%- endmacro -%}
{%- set ns = namespace(n=0) -%}
{%- for m in messages -%}
{%- set ns.n = ns.n + 1 -%}
{%- if m.role == 'system' and not loop.first -%}{%- continue -%}{%- endif -%}
<|im_start|>{{ m['role'].upper() }} {{ ns.n }} {{ loop.first }} {{ none }} {{ {'a': [1, true, 'ü'], 'b': ns.n} | tojson }}
{{ show(m.content) }}{{ m.name is defined and m.name }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>ASSISTANT {% endif -%}""",
}

WORDS = ["Hello", "world", "the", "a", "Grüße", "naïve", "東京", "🙂", "👩‍👩‍👧", "e\u0301", "don't", "1234", "\t", "x=1;", "  ",
         "\n", "\n\n", "<|im_end|>", "Ω", "\u200b", "—", "def f(x):", "ﬁ", "."]


def train_tokenizer(kind):
    corpus = [path.read_text(encoding="utf-8") for path in sorted((SOURCE / "runtime").rglob("*.h"))]
    tokenizer = Tokenizer(models.BPE(byte_fallback=kind == "metaspace", unk_token="<unk>" if kind == "metaspace" else None))
    if kind == "metaspace":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
        alphabet, special = [f"<0x{byte:02X}>" for byte in range(256)], ["<unk>"] + SPECIAL
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special + alphabet, show_progress=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=kind == "trimmed")
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=SPECIAL, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus, trainer)
    if kind == "bos":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer


def write_model(folder, tokenizer, template, **config):
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**values, **config}))
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    model = {"vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": 2048, "model_type": "llama"}
    (folder / "config.json").write_text(json.dumps(model))


def conversations(seed, parts=False):
    rng = random.Random(seed)
    text = lambda: "".join(rng.choice(WORDS) + rng.choice(["", " ", " "]) for _ in range(rng.choice([0, 1, 2, 8, 30])))
    for _ in range(25):
        messages = [{"role": "system", "content": text()}] if rng.random() < 0.3 else []
        for _ in range(rng.randint(1, 4)):
            messages.append({"role": "user", "content": text()})
            messages.append({"role": "assistant", "content": text(), "name": rng.choice([None, "Ann"])})
        if rng.random() < 0.2:
            messages.append({"role": "user", "content": text()})
        if parts:
            messages[0]["content"] = [{"type": "text", "text": text()}, {"type": "text", "text": text()}]
        yield messages


def expected_chat(tokenizer, messages, all_tokens):
    if all_tokens:
        ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
        return ids, ids
    if "generation %}" in tokenizer.chat_template:
        out = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        return out["input_ids"], [i if m else -100 for i, m in zip(out["input_ids"], out["assistant_masks"])]
    ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
    labels = [-100] * len(ids)
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        begin = len(tokenizer.apply_chat_template(messages[:i], tokenize=True, return_dict=False, add_generation_prompt=True))
        end = len(tokenizer.apply_chat_template(messages[: i + 1], tokenize=True, return_dict=False))
        labels[begin:end] = ids[begin:end]
    return ids, labels


def dump_rows(folder, rows, *flags):
    data = folder / "train.jsonl"
    data.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    done = subprocess.run([DUMP_ROWS, "--model", folder, "--data", data, "--block-size", "2048", *flags],
                          capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{folder.name}: coxswain-dump-rows failed: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(what, ours, theirs):
    if ours != theirs:
        place = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        sys.exit(f"{what} differs at {place}: ours {ours[place:place + 8]}, transformers {theirs[place:place + 8]}")


def judge_chats(folder, rows, all_tokens=False):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    flags = ["--sft", "--all-tokens"] if all_tokens else ["--sft"]
    ours = dump_rows(folder, [{"messages": messages} for messages in rows], *flags)
    assert len(ours) == len(rows)
    trained = 0
    for number, (row, messages) in enumerate(zip(ours, rows)):
        ids, labels = expected_chat(tokenizer, messages, all_tokens)
        ids, labels = ids[:2048], labels[:2048]
        same(f"{folder.name}, conversation {number}: ids", row["ids"], ids)
        same(f"{folder.name}, conversation {number}: labels", row["labels"], labels)
        same(f"{folder.name}, conversation {number}: text", row["text"],
             tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))
        trained += sum(label != -100 for label in labels)
    assert trained > 0, f"{folder.name}: the judge trains on nothing"


def judge_texts(folder, texts):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ours = dump_rows(folder, [{"text": text} for text in texts], "--sft", "--no-eos")
    theirs = [ids for ids in (tokenizer(text)["input_ids"] for text in texts) if ids]
    assert len(ours) == len(theirs)
    for number, (row, ids) in enumerate(zip(ours, theirs)):
        same(f"{folder.name}, text {number}", row["ids"], ids)


def main():
    scratch = Path(tempfile.mkdtemp(prefix="coxswain-judge-"))
    try:
        tokenizers = {kind: train_tokenizer(kind) for kind in ["plain", "trimmed", "bos", "metaspace"]}
        texts = [m["content"] for messages in conversations(1) for m in messages]
        for kind, tokenizer in tokenizers.items():
            for name, template in TEMPLATES.items():
                folder = scratch / f"{kind}-{name}"
                write_model(folder, tokenizer, template)
                rows = list(conversations(f"{kind}{name}", parts=name == "language"))
                judge_chats(folder, rows, all_tokens=name == "language")
            judge_texts(folder, texts)
        for flags in [{"add_bos_token": True}, {"add_eos_token": True}, {"add_bos_token": False}]:
            folder = scratch / ("frame-" + "-".join(map(str, flags.items())))
            write_model(folder, tokenizers["bos"], TEMPLATES["tagged_words"], **flags)
            judge_texts(folder, texts)
            judge_chats(folder, list(conversations("frame")))
        model = SOURCE / "build" / "models" / "SmolLM2-135M-Instruct"
        if (model / "tokenizer.json").exists():
            folder = scratch / model.name
            folder.mkdir()
            for file in model.iterdir():
                if file.suffix in (".json", ".jinja") and not file.name.endswith(".index.json"):
                    shutil.copy(file, folder)
            judge_chats(folder, list(conversations("SmolLM2")))
            judge_texts(folder, texts)
        print("ok")
    finally:
        shutil.rmtree(scratch)


main()
