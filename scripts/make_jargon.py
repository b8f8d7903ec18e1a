#!/usr/bin/env python3
"""Makes training text of the Jargon File (public domain), from Debian's dict-jargon package.

  make_jargon.py DICTD_FOLDER OUT

Reads DICTD_FOLDER/jargon.index and jargon.dict.dz. Writes OUT/jargon/train.jsonl, where each line is a conversation
{"messages": [...]} that asks for a headword and answers with its definition, and OUT/jargon-text/train.jsonl with the
same definitions as plain {"text": ...}. The same input gives the same bytes. Standard library only.
"""
import argparse
import gzip
import json
import re
from pathlib import Path

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
MAX_DEFINITION_CHARS = 480  # about 120 tokens: whole paragraphs, else whole sentences
MIN_DEFINITION_CHARS = 60   # shorter ones only point to another entry


def from_base64(digits):
    number = 0
    for digit in digits:
        number = number * 64 + BASE64.index(digit)
    return number


def entries(folder):
    """Each entry's text once, in the order of the file (several keys of the index may name one entry)."""
    text = gzip.decompress((folder / "jargon.dict.dz").read_bytes())
    spans = set()
    for line in (folder / "jargon.index").read_text(encoding="utf-8").splitlines():
        key, offset, length = line.rsplit("\t", 2)
        if not key.startswith("00-database"):
            spans.add((from_base64(offset), from_base64(length)))
    for offset, length in sorted(spans):
        yield text[offset:offset + length].decode("utf-8")


def clean(paragraph):
    """Unwrapped, without the braces of links and the spaces that line breaks left around punctuation."""
    text = re.sub(r"\s+", " ", paragraph).strip()
    text = re.sub(r"\{\s*([^{}]*?)\s*\}", r"\1", text)
    return re.sub(r"\s+([),.;:!?”’])(?=\W|$)", r"\1", re.sub(r"([(“‘])\s+", r"\1", text))


def part_of_speech(line):
    """`/klooj/, n.` -> `n.`; a pronunciation alone -> nothing."""
    words = re.sub(r"/[^/]*/", "", line)
    return re.sub(r"\s+", " ", words).strip(" ,")


def shorten(paragraphs):
    text = ""
    for paragraph in paragraphs:
        if text and len(text) + 1 + len(paragraph) > MAX_DEFINITION_CHARS:
            return text
        text = f"{text}\n{paragraph}" if text else paragraph
        if len(text) > MAX_DEFINITION_CHARS:
            end = max(text.rfind(stop, 0, MAX_DEFINITION_CHARS) for stop in (". ", "? ", "! "))
            return text[:end + 1] if end > 0 else ""
    return text


def parse(entry):
    """(headword, part of speech or empty, definition), or None where no definition of a useful length is left."""
    head, _, body = entry.strip("\n").partition("\n\n")
    headword, _, grammar = head.partition("\n")
    paragraphs = [clean(p) for p in re.split(r"\n\s*\n", body)]
    paragraphs = [p for p in paragraphs if len(p) > 1]  # a lone letter is the next chapter's heading
    definition = shorten(paragraphs)
    if len(definition) < MIN_DEFINITION_CHARS:
        return None
    return clean(headword), part_of_speech(grammar), definition


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    partial.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("dictd", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()

    parsed = [entry for entry in map(parse, entries(arguments.dictd)) if entry]
    answers = [f"{word}, {grammar} {text}" if grammar else f"{word}: {text}" for word, grammar, text in parsed]
    write_jsonl(arguments.out / "jargon-text/train.jsonl", ({"text": answer} for answer in answers))
    write_jsonl(arguments.out / "jargon/train.jsonl", ({"messages": [
        {"role": "user", "content": f"What does “{word}” mean in hacker jargon?"},
        {"role": "assistant", "content": answer},
    ]} for (word, _, _), answer in zip(parsed, answers)))


if __name__ == "__main__":
    main()
