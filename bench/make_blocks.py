#!/usr/bin/env python3
"""Cuts text into token blocks of one length: {"input_ids": [...]} a line, in the order of the text.

What tests and benches train on where ours and a peer must see exactly the same tokens. The texts follow one another
with the end-of-text token between them; what is left at the end is dropped. Needs tokenizers.
"""
import argparse
import json
from pathlib import Path

from tokenizers import Tokenizer


def blocks(tokenizer, texts, length, separator):
    pending = []
    for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
        pending += [*encoding.ids, separator]
        while len(pending) >= length:
            yield pending[:length]
            pending = pending[length:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    parser.add_argument("--text", type=Path, required=True, help='JSONL of {"text": ...}')
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--separator", default="<|endoftext|>", help="the token between two texts")
    parser.add_argument("--rows", type=int, help="stop after this many")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    separator = tokenizer.token_to_id(arguments.separator)
    if separator is None:
        parser.error(f"the tokenizer has no token {arguments.separator}")
    with arguments.text.open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    partial = arguments.out.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        for row, ids in enumerate(blocks(tokenizer, texts, arguments.length, separator)):
            if row == arguments.rows:
                break
            file.write(json.dumps({"input_ids": ids}) + "\n")
    partial.replace(arguments.out)


if __name__ == "__main__":
    main()
