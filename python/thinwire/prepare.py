"""Brings data into the formats that Thinwire reads: python -m thinwire.prepare --help"""

import argparse
import array
import contextlib
import gzip
import json
import os
import pathlib
import sys
import time

EXAMPLES = """\
examples:
  python -m thinwire.prepare --chat models/Qwen3-0.6B chats.jsonl --out train
  python -m thinwire.prepare --chat models/Qwen3-0.6B --template qwen3_training.jinja chats.jsonl --out train
  python -m thinwire.prepare --parquet a.parquet b.parquet --column text --out texts.jsonl

--chat writes the conversations of JSONL files, {"messages": [{"role": "user", "content": "Hi"}, ...]}, as the
model's own tokenizer and chat template render them: OUT.bin, their ids one behind another, and OUT.mask, a bit for
each id: 1 where the template marks what the assistant says, between {% generation %} and {% endgeneration %}. The
files may be packed by gzip. An experiment reads the ids by

  data: {name: tokens, file: OUT.bin, tokens: hf, vocabulary: DIR}

A template without these marks needs a twin that has them (--template; the package trl comes with some, called
*_training.jinja), or --all, with which everything is learned.

--parquet writes the columns of Parquet files as JSONL, an object a row, for `data: {name: jsonl, file: OUT}`.
"""

# llm.c's header of files of ids: its number and version, by the width of an id in bytes.
HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
HEADER_WORDS = 256


class PrepareError(Exception):
    """What cannot be prepared: where it is, what was met and what is wanted."""


@contextlib.contextmanager
def named(place):
    """Errors of other libraries get the place where they were met, unless they name a file."""
    try:
        yield
    except Exception as error:  # whatever they find wrong
        if isinstance(error, PrepareError) or isinstance(error, OSError) and error.filename:
            raise
        raise PrepareError(f"{place}: {error}") from error


def wanted(packages, what):
    return PrepareError(f"{what} wants other packages: pip install {packages}")


class Progress:
    """A line on a terminal that tells how far something is, at most once a second."""

    def __init__(self, what):
        self.what, self.shown = what, time.monotonic()

    def tell(self, count):
        if sys.stderr.isatty() and time.monotonic() - self.shown >= 1:
            self.shown = time.monotonic()
            print(f"\r{count} {self.what}", end="", file=sys.stderr, flush=True)


class Replacing:
    """A file that takes its place when it is complete, and leaves none otherwise."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not self.path.name:
            raise PrepareError(f"--out {path!r}, want a file's name")
        self.draft = self.path.with_name("." + self.path.name + ".tmp")

    def __enter__(self):
        self.file = open(self.draft, "wb")
        return self.file

    def __exit__(self, kind, *_):
        try:
            self.file.close()
            if kind is None:
                os.replace(self.draft, self.path)
        finally:
            self.draft.unlink(missing_ok=True)


def packed(values, width):
    """Unsigned numbers of that many bytes, little-endian."""
    numbers = array.array({2: "H", 4: "I"}[width], values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


class Bits:
    """Bits that become bytes, the first one the lowest of the first byte."""

    def __init__(self, file):
        self.file, self.waiting = file, []

    def add(self, bits):
        self.waiting += bits
        whole = len(self.waiting) // 8 * 8
        self._write(self.waiting[:whole])
        del self.waiting[:whole]

    def end(self):
        self._write(self.waiting + [0] * (-len(self.waiting) % 8))

    def _write(self, bits):
        self.file.write(bytes(sum(bits[at + i] << i for i in range(8)) for at in range(0, len(bits), 8)))


@contextlib.contextmanager
def unpacked(path):
    """A file's bytes, which gzip may have packed."""
    with open(path, "rb") as file:
        begin = file.peek(4)[:4]
        if begin == b"\x28\xb5\x2f\xfd":
            raise PrepareError(f"{path}: is packed (zstd), want it unpacked, or packed by gzip")
        with contextlib.nullcontext(file) if begin[:2] != b"\x1f\x8b" else gzip.GzipFile(fileobj=file) as plain:
            yield plain


def parsed(place, line, encoding):
    """The object of a line."""
    try:
        return json.loads(line.decode(encoding))
    except UnicodeDecodeError as error:
        raise PrepareError(f"{place}: is no UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise PrepareError(f"{place}: is no JSON: {error}") from error


def lines_of(paths):
    """Yields (path, number, object) of all lines that are not blank."""
    for path in paths:
        with named(path), unpacked(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield path, number, parsed(f"{path}:{number}", line, "utf-8-sig" if number == 1 else "utf-8")


def tokenizer_of(folder, template, learns_all):
    """The tokenizer of a folder or of a name in the hub, with the template that marks what is learned."""
    try:
        from transformers import AutoTokenizer  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise wanted("transformers jinja2", "--chat") from error
    with named(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder)
    if template:
        with named(template):
            tokenizer.chat_template = pathlib.Path(template).read_text(encoding="utf-8")
    with named(folder):
        text = tokenizer.get_chat_template() if getattr(tokenizer, "chat_template", None) else ""
    if not text:
        raise PrepareError(f"{folder} has no chat template: want one, or --template FILE")
    if not learns_all and "generation %}" not in text and "generation -%}" not in text:
        raise PrepareError(f"the chat template of {folder} does not mark what the assistant says by "
                           "{% generation %}: want --template FILE with one that does, or --all")
    return tokenizer


def rendered(tokenizer, messages, learns_all):
    """The ids of a conversation, and for each 1 if it is to be learned."""
    encoded = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True,
                                            return_assistant_tokens_mask=not learns_all)
    ids = list(encoded["input_ids"])
    return ids, [1] * len(ids) if learns_all else list(encoded["assistant_masks"])


def width_of(tokenizer):
    """The bytes of an id. A vocabulary with gaps has greater ids than its size says."""
    greatest = max(tokenizer.get_vocab().values(), default=0)
    return 2 if max(greatest, len(tokenizer) - 1) < 1 << 16 else 4


def check_ids(ids, width):
    wrong = [id for id in (min(ids, default=0), max(ids, default=0)) if not 0 <= id < 1 << 8 * width]
    if wrong:
        raise ValueError(f"id {wrong[0]}, want 0 to {(1 << 8 * width) - 1}")


def write_chats(folder, paths, out, template=None, key="messages", learns_all=False):
    """Writes OUT.bin and OUT.mask, and returns (conversations, ids, ids to learn)."""
    tokenizer = tokenizer_of(folder, template, learns_all)
    width = width_of(tokenizer)
    chats = ids_written = learned = 0
    progress = Progress("conversations")
    with Replacing(f"{out}.bin") as ids_file, Replacing(f"{out}.mask") as mask_file:
        ids_file.write(bytes(4 * HEADER_WORDS))
        mask = Bits(mask_file)
        for path, number, line in lines_of(paths):
            messages = line.get(key) if isinstance(line, dict) else None
            if not isinstance(messages, list) or not messages:
                raise PrepareError(f"{path}:{number}: has no {key}, want a list of messages")
            with named(f"{path}:{number}"):
                ids, bits = rendered(tokenizer, messages, learns_all)
                check_ids(ids, width)
            ids_file.write(packed(ids, width))
            mask.add(bits)
            chats += 1
            ids_written += len(ids)
            learned += sum(bits)
            progress.tell(chats)
        mask.end()
        if ids_written == 0 or ids_written >= 1 << 32:
            raise PrepareError(f"there are {ids_written} ids, want 1 to {(1 << 32) - 1}")
        if learned == 0:
            raise PrepareError("the assistant says nothing: want an id to learn, or --all")
        ids_file.seek(0)
        ids_file.write(packed([*HEADERS[width], ids_written], 4))
    return chats, ids_written, learned


def batches_of(path, columns):
    """Yields lists of a Parquet file's rows, of the columns."""
    try:
        from pyarrow import parquet  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise wanted("pyarrow", "--parquet") from error
    with named(path):
        table = parquet.ParquetFile(path)
        missing = [name for name in columns if name not in table.schema_arrow.names]
        if missing:
            raise PrepareError(f"{path} has no column {missing[0]}, want one of "
                               f"{', '.join(table.schema_arrow.names)}")
        for batch in table.iter_batches(columns=columns):
            yield batch.to_pylist()


def as_line(place, row):
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise PrepareError(f"{place}: {error}, want text, finite numbers, and lists and objects of them") from error


def write_parquet(paths, columns, out):
    """Writes an object of the columns for each row, and returns (rows, rows left out for a null)."""
    rows = nulls = 0
    progress = Progress("rows")
    with Replacing(out) as file:
        for path in paths:
            number = 0
            for batch in batches_of(path, columns):
                for number, row in enumerate(batch, number + 1):
                    if any(row[name] is None for name in columns):
                        nulls += 1
                        continue
                    file.write(as_line(f"{path}: row {number}", row))
                    rows += 1
                progress.tell(rows)
    return rows, nulls


def flags_of(arguments):
    parser = argparse.ArgumentParser(prog="python -m thinwire.prepare", description=__doc__.split(":")[0] + ".",
                                     epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--chat", metavar="DIR", help="render conversations: a model's folder, or its name in the hub")
    kind.add_argument("--parquet", action="store_true", help="write columns of Parquet files as JSONL")
    parser.add_argument("files", nargs="+", help="JSONL for --chat, else Parquet")
    parser.add_argument("--out", required=True, help="--chat: OUT.bin and OUT.mask; --parquet: the file to write")
    parser.add_argument("--template", metavar="FILE", help="--chat: template in place of the model's own")
    parser.add_argument("--key", default="messages", help="--chat: key of a line's messages (default: %(default)s)")
    parser.add_argument("--all", action="store_true", help="--chat: learn everything, not only the assistant's")
    parser.add_argument("--column", action="append", metavar="NAME",
                        help="--parquet: a column to write, again for others (default: text)")
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    flags = flags_of(arguments)
    try:
        if flags.chat:
            chats, ids, learned = write_chats(flags.chat, flags.files, flags.out, flags.template, flags.key, flags.all)
            print(f"{flags.out}.bin, {flags.out}.mask: {chats} conversations, {ids} ids, {learned} of them to learn")
        else:
            rows, nulls = write_parquet(flags.files, flags.column or ["text"], flags.out)
            print(f"{flags.out}: {rows} rows" + (f"; {nulls} with a null left out" if nulls else ""))
    except (PrepareError, OSError) as error:
        print(f"thinwire.prepare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
