#!/usr/bin/env python3
"""scripts/make_jargon.py and bench/make_blocks.py on small inputs of every shape that the real ones have."""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("COXSWAIN_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def to_base64(number):
    digits = BASE64[number % 64]
    while number := number // 64:
        digits = BASE64[number % 64] + digits
    return digits


def write_dictd(folder, entries):
    """entries: (keys, text)"""
    text, index = b"", []
    for keys, entry in entries:
        data = entry.encode()
        index += [f"{key}\t{to_base64(len(text))}\t{to_base64(len(data))}" for key in keys]
        text += data
    Path(folder, "jargon.dict.dz").write_bytes(gzip.compress(text))
    Path(folder, "jargon.index").write_text("\n".join(sorted(index)) + "\n", encoding="utf-8")


LONG = "A sentence of which there are many in this paragraph, more than will fit. "
ENTRIES = [
    (["00-database-info"], "\nnot an entry\n"),
    (["foo bar", "foobar"],
     "foo bar\n /foo bar/, n., vi.\n\n    [from {baz}] A thing that is wrapped (see “Worldcon”\n    ) over lines; compare {\n"
     "    quux} and the .sig file, too.\n\n    B\n\n"),
    (["short"], "short\n n.\n\n    See {foo bar}.\n\n"),
    (["silent"], "silent\n //\n\n    " + "Ω is a letter. " * 5 + "\n\n"),
    (["two"], "two\n adj.\n\n    " + "First paragraph. " * 10 + "\n\n    " + LONG * 6 + "\n\n"),
    (["long"], "long\n adj.\n\n    " + LONG * 20 + "\n\n"),
]


class JargonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        write_dictd(cls.folder.name, ENTRIES)
        cls.text, cls.chats = cls.make("a")

    @classmethod
    def make(cls, name):
        out = Path(cls.folder.name, name)
        subprocess.run([sys.executable, ROOT / "scripts/make_jargon.py", cls.folder.name, out], check=True)
        read = lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return read(out / "jargon-text/train.jsonl"), read(out / "jargon/train.jsonl")

    def test_each_entry_once_in_file_order_without_the_database_s_own_and_mere_pointers(self):
        self.assertEqual([row["text"].split(",")[0].split(":")[0] for row in self.text],
                         ["foo bar", "silent", "two", "long"])

    def test_lines_are_joined_and_links_are_plain(self):
        self.assertEqual(self.text[0]["text"], "foo bar, n., vi. [from baz] A thing that is wrapped (see “Worldcon”) over "
                                               "lines; compare quux and the .sig file, too.")

    def test_an_entry_without_part_of_speech_has_a_colon(self):
        self.assertTrue(self.text[1]["text"].startswith("silent: Ω is"))

    def test_long_definitions_end_with_a_whole_paragraph_or_else_a_whole_sentence(self):
        self.assertTrue(self.text[2]["text"].endswith("First paragraph."))
        self.assertTrue(self.text[3]["text"].endswith("will fit."))
        self.assertLess(len(self.text[3]["text"]), 500)

    def test_conversations_ask_for_the_word_and_answer_with_the_text(self):
        self.assertEqual([m["role"] for m in self.chats[0]["messages"]], ["user", "assistant"])
        self.assertIn("“foo bar”", self.chats[0]["messages"][0]["content"])
        self.assertEqual([c["messages"][1]["content"] for c in self.chats], [t["text"] for t in self.text])

    def test_the_same_input_gives_the_same_rows(self):
        self.assertEqual(self.make("b"), (self.text, self.chats))


class BlocksTest(unittest.TestCase):
    def test_blocks_are_the_text_cut_without_gaps_and_the_rest_is_dropped(self):
        from tokenizers import Tokenizer, models, pre_tokenizers
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            tokenizer = Tokenizer(models.WordLevel({"<end>": 0, **{str(i): i for i in range(1, 10)}}, unk_token="<end>"))
            tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
            tokenizer.add_special_tokens(["<end>"])
            tokenizer.save(str(folder / "tokenizer.json"))
            (folder / "text.jsonl").write_text('{"text": "1 2 3"}\n{"text": "4 5 6 7 8 9"}\n')
            subprocess.run([sys.executable, ROOT / "bench/make_blocks.py", "--tokenizer", folder / "tokenizer.json",
                            "--text", folder / "text.jsonl", "--length", "4", "--separator", "<end>",
                            "--out", folder / "blocks.jsonl"], check=True)
            rows = [json.loads(line)["input_ids"] for line in (folder / "blocks.jsonl").read_text().splitlines()]
            self.assertEqual(rows, [[1, 2, 3, 0], [4, 5, 6, 7]])


if __name__ == "__main__":
    unittest.main()
