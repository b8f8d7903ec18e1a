#!/usr/bin/env python3
"""The converted SmolLM2 folder against transformers' own reading of the same GGUF file."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(os.environ.get("COXSWAIN_SOURCE_DIR", Path(__file__).resolve().parents[2]))
MODEL = ROOT / "build/models/SmolLM2-135M-Instruct"
GGUF = ROOT / "build/models/gguf/SmolLM2-135M-Instruct.Q4_1.gguf"

TEXTS = [
    "A kluge is a Rube Goldberg device, whether in hardware or software.",
    "In 1983 there were 12345 of them; 007 and 3.14159, too.",
    "  leading spaces, trailing ones  ",
    "don't we'll I'm THEY'RE",
    "tabs\tand\n\nnew lines\r\n   indented",
    "naïve café Ωmega 你好 👩‍🚀 \u200b zero width",
    "int main() { return x<<2 != 0xFF; }",
    "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|><repo_name>a/b<file_sep>x",
    "",
]

CHATS = [
    [{"role": "user", "content": "What is a kluge?"}],
    [{"role": "user", "content": "What is a kluge?"}, {"role": "assistant", "content": "A clever hack.\n\nSee {hack}."}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "foo?"},
     {"role": "assistant", "content": "bar"}, {"role": "user", "content": "  baz 42 "}],
]


class ConversionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(2)
        cls.ours = AutoTokenizer.from_pretrained(MODEL)
        cls.peer = AutoTokenizer.from_pretrained(GGUF.parent, gguf_file=GGUF.name)

    def test_logits_are_those_of_transformers_own_gguf_load(self):
        ours = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
        peer = AutoModelForCausalLM.from_pretrained(GGUF.parent, gguf_file=GGUF.name, dtype=torch.float32).eval()
        ids = torch.tensor([self.ours(" ".join(TEXTS))["input_ids"]])
        with torch.no_grad():
            torch.testing.assert_close(ours(ids).logits, peer(ids).logits, rtol=0, atol=1e-4)
        peer_weights = peer.state_dict()
        for name, weight in ours.state_dict().items():
            self.assertTrue(torch.equal(weight, peer_weights[name]), name)
        for key in ("hidden_size", "head_dim", "num_key_value_heads", "rms_norm_eps", "rope_parameters",
                    "max_position_embeddings", "tie_word_embeddings", "vocab_size", "hidden_act"):
            ours_value, peer_value = getattr(ours.config, key), getattr(peer.config, key)
            if isinstance(ours_value, float):
                self.assertAlmostEqual(ours_value, peer_value, places=9, msg=key)
            else:
                self.assertEqual(ours_value, peer_value, key)

    def test_text_has_the_same_tokens(self):
        for text in TEXTS:
            self.assertEqual(self.ours(text)["input_ids"], self.peer(text)["input_ids"], text)

    def test_tokens_decode_to_the_text(self):
        for text in TEXTS:
            self.assertEqual(self.ours.decode(self.ours(text)["input_ids"], skip_special_tokens=False), text)

    def test_the_vocabulary_is_the_same(self):
        self.assertEqual(self.ours.get_vocab(), self.peer.get_vocab())
        for token in ("bos_token", "eos_token", "pad_token", "unk_token"):
            self.assertEqual(getattr(self.ours, token), getattr(self.peer, token), token)

    def test_chats_render_the_same(self):
        for chat in CHATS:
            for prompt in (False, True):
                options = {"tokenize": False, "add_generation_prompt": prompt}
                self.assertEqual(self.ours.apply_chat_template(chat, **options),
                                 self.peer.apply_chat_template(chat, **options))

    def test_what_is_no_llama_model_is_refused_and_leaves_nothing(self):
        from gguf import GGUFWriter
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "other.gguf")
            writer = GGUFWriter(path, "gpt2")
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
            out = Path(folder, "out")
            run = subprocess.run([sys.executable, ROOT / "scripts/convert_gguf.py", path, out],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn("its architecture is gpt2", run.stderr)
            self.assertNotIn("Traceback", run.stderr)
            self.assertEqual([p.name for p in Path(folder).iterdir()], ["other.gguf"])


if __name__ == "__main__":
    unittest.main()
