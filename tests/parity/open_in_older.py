#!/usr/bin/env python3
"""Opens a model that we write with whichever transformers it finds, and compares its logits with those in a file.

usage: open_in_older.py FOLDER TENSORS    TENSORS: safetensors with `ids` and `logits`; prints the largest difference
"""
import sys

import torch
import transformers
from safetensors.torch import load_file

tensors = load_file(sys.argv[2])
# As in version 5, which calls it dtype; both know this name.
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], torch_dtype=torch.float32, attn_implementation="eager")
with torch.no_grad():
    print((model(tensors["ids"]).logits - tensors["logits"]).abs().max().item())
