#!/usr/bin/env python3
"""Every example is a manifest that `coxswain validate` accepts, and names only what the quickstart makes."""
import os
import subprocess
import unittest
from pathlib import Path

import yaml

ROOT = Path(os.environ.get("COXSWAIN_SOURCE_DIR", Path(__file__).resolve().parents[2]))
COXSWAIN = Path(os.environ.get("COXSWAIN_BINARY_DIR", ROOT / "build/release")) / "bin/coxswain"
MOUNTS = {"/models": ROOT / "build/models", "/data": ROOT / "build/data"}


class ExamplesTest(unittest.TestCase):
    examples = sorted((ROOT / "examples").glob("*.yaml"))

    def test_all_are_valid(self):
        self.assertGreaterEqual(len(self.examples), 4)
        run = subprocess.run([COXSWAIN, "validate", *self.examples], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_their_models_and_data_are_what_the_scripts_fetch(self):
        for example in self.examples:
            config = yaml.safe_load(example.read_text())["spec"].get("config")
            for path in [config["base_model"], config["data"]["path"]] if config else []:
                _, mount, rest = path.split("/", 2)
                self.assertTrue((MOUNTS["/" + mount] / rest).exists(), f"{example.name}: {path}")


if __name__ == "__main__":
    unittest.main()
