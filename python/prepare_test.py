#!/usr/bin/env python3
"""thinwire.prepare: the bytes that it writes and what it refuses, with stand-ins for transformers and pyarrow; and
beside the packages themselves where they are installed (prepare_test.sh).

usage: prepare_test.py PACKAGE [HF_TESTDATA]     with the second, data/hf_testdata, the packages are wanted
"""

import contextlib
import datetime
import gzip
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import types
import unittest

PACKAGE = pathlib.Path(sys.argv[1]).absolute()
TESTDATA = pathlib.Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None
sys.path.insert(0, str(PACKAGE.parent.parent))
from thinwire import prepare  # noqa: E402

MARKED = "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hoho!"}]


class FakeTokenizer:
    """An id a character; the assistant's are to be learned."""

    def __init__(self, size=1000, template=MARKED, greatest=999):
        self.size, self.chat_template, self.greatest = size, template, greatest

    def __len__(self):
        return self.size

    def get_vocab(self):
        return {"a": 0, "b": self.greatest}

    def get_chat_template(self):
        return self.chat_template

    def apply_chat_template(self, messages, tokenize, return_dict, return_assistant_tokens_mask):
        assert tokenize and return_dict
        ids, bits = [], []
        for message in messages:
            if message["role"] not in ("user", "assistant"):
                raise ValueError("Unexpected role " + message["role"])
            ids += map(ord, message["content"])
            bits += [int(message["role"] == "assistant")] * len(message["content"])
        return {"input_ids": ids, **({"assistant_masks": bits} if return_assistant_tokens_mask else {})}


def fake_transformers(tokenizer):
    module = types.ModuleType("transformers")
    module.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda folder: tokenizer)
    return module


def fake_pyarrow(*batches):
    """Files have these batches of rows of a column `text`, unless they are none of Parquet by their name."""

    def opened(path):
        if not path.endswith(".parquet"):
            raise ValueError("Parquet magic bytes not found in footer.")
        return types.SimpleNamespace(
            schema_arrow=types.SimpleNamespace(names=["text"]),
            iter_batches=lambda columns: [types.SimpleNamespace(to_pylist=lambda rows=rows: rows) for rows in batches])

    module = types.ModuleType("pyarrow")
    module.parquet = types.SimpleNamespace(ParquetFile=opened)
    return module


class Preparing(unittest.TestCase):
    """A folder for files, and what the program does with them."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.work = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def write(self, *objects, name="chats.jsonl"):
        path = self.work / name
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))
        return str(path)

    def run_it(self, *arguments):
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            code = prepare.main([str(argument) for argument in arguments])
        return code, out.getvalue(), error.getvalue()

    def refusal(self, *arguments):
        code, _, error = self.run_it(*arguments, "--out", self.work / "out")
        self.assertEqual(code, 1)
        self.assertEqual(list(self.work.glob("*out*")), [], "nothing is left")
        return error

    def read(self, width):
        content = (self.work / "out.bin").read_bytes()
        header = struct.unpack("<256I", content[:1024])
        ids = struct.unpack("<%d%s" % ((len(content) - 1024) // width, {2: "H", 4: "I"}[width]), content[1024:])
        return header, list(ids), (self.work / "out.mask").read_bytes()


class PrepareTest(Preparing):

    def setUp(self):
        super().setUp()
        modules = {name: sys.modules.get(name) for name in ("transformers", "pyarrow")}
        self.addCleanup(self.restore, modules)
        sys.modules["transformers"] = fake_transformers(FakeTokenizer())

    @staticmethod
    def restore(modules):
        for name, module in modules.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module

    def test_the_program_runs_and_shows_examples(self):
        shown = subprocess.run([sys.executable, "-m", "thinwire.prepare", "--help"], cwd=PACKAGE.parent.parent,
                               capture_output=True, text=True, check=True).stdout
        self.assertIn("python -m thinwire.prepare --chat models/", shown)

    def test_ids_have_a_header_and_a_bit_each(self):
        code, out, _ = self.run_it("--chat", "dir", self.write({"messages": CHAT}, {"messages": CHAT}), "--out",
                                   self.work / "out")
        self.assertEqual(code, 0)
        self.assertIn("2 conversations, 14 ids, 10 of them to learn", out)
        header, ids, mask = self.read(2)
        self.assertEqual(header[:4], (20240520, 1, 14, 0))
        self.assertEqual(ids, list(map(ord, "HiHoho!" * 2)))
        self.assertEqual(mask, bytes([0b01111100, 0b00111110]), "the first bit is the lowest")

    def test_large_vocabularies_have_ids_of_32_bits(self):
        sys.modules["transformers"] = fake_transformers(FakeTokenizer(size=65537))
        self.run_it("--chat", "dir", self.write({"messages": CHAT}), "--out", self.work / "out")
        header, ids, _ = self.read(4)
        self.assertEqual(header[:3], (20240801, 7, 7))
        self.assertEqual(ids, list(map(ord, "HiHoho!")))

    def test_all_may_be_learned_also_without_marks(self):
        sys.modules["transformers"] = fake_transformers(FakeTokenizer(template="{{ messages }}"))
        chats = self.write({"turns": CHAT})
        self.assertIn("does not mark what the assistant says", self.refusal("--chat", "dir", chats))
        self.run_it("--chat", "dir", chats, "--all", "--key", "turns", "--out", self.work / "out")
        self.assertEqual(self.read(2)[2], bytes([0b01111111]))

    def test_a_template_may_be_given(self):
        tokenizer = FakeTokenizer(template="{{ messages }}")
        sys.modules["transformers"] = fake_transformers(tokenizer)
        template = self.work / "marked.jinja"
        template.write_text(MARKED)
        code, _, _ = self.run_it("--chat", "dir", self.write({"messages": CHAT}), "--template", template, "--out",
                                 self.work / "out")
        self.assertEqual(code, 0)
        self.assertEqual(tokenizer.chat_template, MARKED)

    def test_a_line_that_is_no_conversation_is_named(self):
        chats = self.write({"messages": CHAT}, {"text": "a"})
        self.assertIn(f"{chats}:2: has no messages, want a list of messages", self.refusal("--chat", "dir", chats))
        chats = self.write({"messages": [{"role": "judge", "content": "a"}]})
        self.assertIn(f"{chats}:1: Unexpected role judge", self.refusal("--chat", "dir", chats))
        path = self.work / "broken.jsonl"
        path.write_text('\n{"messages": \n')
        self.assertIn(f"{path}:2: is no JSON", self.refusal("--chat", "dir", path))

    def test_lines_may_be_packed_and_have_a_byte_order_mark(self):
        path = self.work / "chats.jsonl.gz"
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps({"messages": CHAT}).encode()))
        code, out, _ = self.run_it("--chat", "dir", path, "--out", self.work / "out")
        self.assertEqual(code, 0)
        self.assertIn("1 conversations, 7 ids", out)

    def test_bytes_that_are_no_lines_are_named(self):
        path = self.work / "bad.jsonl"
        for content, what in ((b'{"messages": []\xff}', ":1: is no UTF-8"), (b"\n\xef\xbb\xbf{}", ":2: is no JSON"),
                              (b"[" * 100000, ":1: is no JSON"), (b"\x28\xb5\x2f\xfd", ": is packed (zstd)"),
                              (gzip.compress(b"{}" * 100)[:-9], ": Compressed file ended"), (b"\x1f\x8bno", ": ")):
            path.write_bytes(content)
            self.assertIn(f"thinwire.prepare: {path}{what}", self.refusal("--chat", "dir", path))

    def test_ids_that_a_small_vocabulary_hides_are_written_or_named(self):
        chats = self.write({"messages": [{"role": "assistant", "content": "\U0001f600"}]})
        self.assertIn(f"{chats}:1: id 128512, want 0 to 65535", self.refusal("--chat", "dir", chats))
        sys.modules["transformers"] = fake_transformers(FakeTokenizer(greatest=200000))
        self.run_it("--chat", "dir", chats, "--out", self.work / "out")
        self.assertEqual(self.read(4)[1], [128512])

    def test_a_tokenizer_or_a_template_that_cannot_be_read_is_named(self):
        template = self.work / "bad.jinja"
        template.write_bytes(b"\xff")
        chats = self.write({"messages": CHAT})
        self.assertIn(f"{template}: ", self.refusal("--chat", "dir", chats, "--template", template))
        module = types.ModuleType("transformers")
        module.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda folder: {}["model_type"])
        sys.modules["transformers"] = module
        self.assertIn("thinwire.prepare: dir: 'model_type'", self.refusal("--chat", "dir", chats))

    def test_rows_become_lines_or_are_named(self):
        sys.modules["pyarrow"] = fake_pyarrow([{"text": "a"}, {"text": None}], [{"text": 0.5}])
        code, out, _ = self.run_it("--parquet", "a.parquet", "--out", self.work / "out")
        self.assertEqual((code, (self.work / "out").read_text()), (0, '{"text": "a"}\n{"text": 0.5}\n'))
        self.assertIn("2 rows; 1 with a null left out", out)
        (self.work / "out").unlink()
        for value in (b"a", datetime.date(2026, 1, 2), float("nan"), [float("inf")]):
            sys.modules["pyarrow"] = fake_pyarrow([{"text": "a"}], [{"text": "b"}, {"text": value}])
            error = self.refusal("--parquet", "a.parquet")
            self.assertIn("thinwire.prepare: a.parquet: row 3: ", error)
            self.assertIn(", want text, finite numbers, and lists and objects of them", error)

    def test_what_is_no_parquet_and_no_name_is_refused(self):
        sys.modules["pyarrow"] = fake_pyarrow()
        self.assertIn("thinwire.prepare: a.csv: Parquet magic bytes", self.refusal("--parquet", "a.csv"))
        self.assertIn("a.parquet has no column body", self.refusal("--parquet", "a.parquet", "--column", "body"))
        code, _, error = self.run_it("--parquet", "a.parquet", "--out", "")
        self.assertEqual((code, error), (1, "thinwire.prepare: --out '', want a file's name\n"))
        code, _, error = self.run_it("--parquet", "a.parquet", "--out", self.work)
        self.assertEqual((code, list(self.work.parent.glob(f".{self.work.name}*"))), (1, []), "no draft is left")

    def test_what_has_nothing_to_learn_is_refused(self):
        self.assertIn("the assistant says nothing", self.refusal("--chat", "dir", self.write({"messages": CHAT[:1]})))
        self.assertIn("there are 0 ids", self.refusal("--chat", "dir", self.write()))
        sys.modules["transformers"] = fake_transformers(FakeTokenizer(template=None))
        self.assertIn("dir has no chat template", self.refusal("--chat", "dir", self.write({"messages": CHAT})))
        sys.modules["transformers"] = fake_transformers(FakeTokenizer())
        self.assertEqual(self.refusal("--chat", "dir", self.work / "none.jsonl").count("none.jsonl"), 1)

    def test_packages_that_are_missing_are_named_with_what_brings_them(self):
        sys.modules["transformers"] = sys.modules["pyarrow"] = None  # an import of either fails
        self.assertIn("--chat wants other packages: pip install transformers jinja2",
                      self.refusal("--chat", "dir", self.write()))
        self.assertIn("--parquet wants other packages: pip install pyarrow", self.refusal("--parquet", "a"))


@unittest.skipUnless(TESTDATA, "prepare_test.sh brings the packages")
class WithPackagesTest(Preparing):

    def test_ids_and_mask_are_those_of_transformers(self):
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
        folder = self.work / "model"
        made = PreTrainedTokenizerFast(tokenizer_file=str(TESTDATA / "bytes" / "tokenizer.json"))
        made.chat_template = ("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
                              "{{ m.content }}\n{% endgeneration %}{% else %}{{ m.content }}\n{% endif %}{% endfor %}")
        made.save_pretrained(folder)
        code, _, error = self.run_it("--chat", folder, self.write({"messages": CHAT * 3}), "--out", self.work / "out")
        self.assertEqual((code, error), (0, ""))
        _, ids, mask = self.read(2)
        text = AutoTokenizer.from_pretrained(folder).decode(ids)
        self.assertEqual(text, "<user>Hi\n<assistant>Hoho!\n" * 3)
        learned = [id for at, id in enumerate(ids) if mask[at // 8] >> (at % 8) & 1]
        self.assertEqual(made.decode(learned), "Hoho!\n" * 3)

    def test_columns_become_lines(self):
        import pyarrow
        from pyarrow import parquet
        path = self.work / "a.parquet"
        parquet.write_table(pyarrow.table({"text": ["\u00e9", None, "b\n"], "n": [1, 2, 3], "messages": [CHAT] * 3}), path)
        code, out, _ = self.run_it("--parquet", path, path, "--out", self.work / "out")
        self.assertEqual(code, 0)
        self.assertIn("4 rows; 2 with a null left out", out)
        self.assertEqual((self.work / "out").read_text(), '{"text": "\u00e9"}\n{"text": "b\\n"}\n' * 2)
        self.run_it("--parquet", path, "--column", "messages", "--out", self.work / "out")
        self.assertEqual(json.loads((self.work / "out").read_text().splitlines()[2]), {"messages": CHAT})
        (self.work / "out").unlink()
        self.assertIn("has no column body, want one of text, n, messages",
                      self.refusal("--parquet", path, "--column", "body"))
        path.write_bytes(path.read_bytes()[:-1])
        self.assertIn(f"thinwire.prepare: {path}: Parquet magic bytes", self.refusal("--parquet", path))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
