#!/usr/bin/python3
"""Writes gpt2_tiny.safetensors and llama_tiny.safetensors (transformer_parity_test.cc).

What PyTorch makes of a tiny GPT-2 and a tiny Llama with all that these models have. They are
written here in plain PyTorch, with the names and layouts that Hugging Face gives the parameters of
GPT2LMHeadModel and LlamaForCausalLM. Run once, on Debian 12 with python3-torch (deploy/setup.sh
--bench); the results are committed. Tensors, all fp32 (tokens too):
  tokens.K [3, 13]                          two batches, used in turn: inputs, each followed by the
                                            next one's label
  initial.NAME                              parameters before the first step
  logits [3, 12, 37], gradient.NAME         of the first step
  losses [10], norms [10]                   of every step: mean loss, norm of all gradients together
  final.NAME                                after ten steps of AdamW, gradients clipped to norm 1,
                                            decay of matrices only
  evaluated [3, 12, 37]                     logits of the first batch then
  muon.losses [10], muon.final.NAME         the same of ten steps of Muon from the same begin, as
                                            nn/muon.h has it, and AdamW for what is not hidden
"""
import math
import os

import torch
from torch import nn
from torch.nn import functional

from make_fixtures import save

BATCH, POSITIONS, CONTEXT, VOCABULARY = 3, 12, 16, 37
WIDTH, HEADS, KV_HEADS, HIDDEN, LAYERS, ROPE_THETA = 32, 4, 2, 48, 2, 10000.0
HEAD_SIZE = WIDTH // HEADS
STEPS, LR, BETAS, WEIGHT_DECAY, CLIP_NORM = 10, 3e-3, (0.9, 0.999), 0.1, 1.0
# Keys' biases have no influence, so that their gradients are rounding errors. PyTorch's 1e-8 would
# make steps of them.
EPSILON = 1e-6
MUON_LR, MUON_MOMENTUM, MUON_DECAY, MUON_STEPS = 0.02, 0.95, 0.1, 5
QUINTIC = (3.4445, -4.7750, 2.0315)


class Conv1D(nn.Module):
    """A linear layer whose weight is [in, out], as GPT-2's."""

    def __init__(self, out_features, in_features):
        super().__init__()
        self.weight = nn.Parameter(0.2 * torch.randn(in_features, out_features))
        self.bias = nn.Parameter(0.2 * torch.randn(out_features))

    def forward(self, x):
        return x @ self.weight + self.bias


def attend(q, k, v):
    """Causal attention; [batch, heads, positions, head size], k and v perhaps of fewer heads."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    scores = q @ k.transpose(2, 3) / math.sqrt(HEAD_SIZE)
    mask = torch.ones(POSITIONS, POSITIONS, dtype=torch.bool).tril()
    y = scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v
    return y.transpose(1, 2).reshape(BATCH, POSITIONS, WIDTH)


def split_heads(x, heads):
    return x.view(BATCH, POSITIONS, heads, HEAD_SIZE).transpose(1, 2)


class Gpt2Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(3 * WIDTH, WIDTH), Conv1D(WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(attend(*(split_heads(part, HEADS)
                                    for part in self.c_attn(x).split(WIDTH, dim=2))))


class Gpt2Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(4 * WIDTH, WIDTH), Conv1D(WIDTH, 4 * WIDTH)

    def forward(self, x):
        x = self.c_fc(x)
        gelu = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))
        return self.c_proj(gelu)


class Gpt2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), Gpt2Attention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), Gpt2Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCABULARY, WIDTH), "wpe": nn.Embedding(CONTEXT, WIDTH),
            "h": nn.ModuleList(Gpt2Block() for _ in range(LAYERS)), "ln_f": nn.LayerNorm(WIDTH)})

    def forward(self, ids):
        part = self.transformer
        x = part["wte"](ids) + part["wpe"](torch.arange(POSITIONS))
        for block in part["h"]:
            x = block(x)
        return part["ln_f"](x) @ part["wte"].weight.T


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def rotate(x):
    """Turns features (i, i + half) of each position by an angle of its own."""
    half = HEAD_SIZE // 2
    frequencies = ROPE_THETA ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(POSITIONS, dtype=torch.float32), frequencies)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class LlamaAttention(nn.Module):
    def __init__(self):
        super().__init__()
        kv_width = KV_HEADS * HEAD_SIZE
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj = nn.Linear(WIDTH, kv_width, bias=False)
        self.v_proj = nn.Linear(WIDTH, kv_width, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q = rotate(split_heads(self.q_proj(x), HEADS))
        k = rotate(split_heads(self.k_proj(x), KV_HEADS))
        return self.o_proj(attend(q, k, split_heads(self.v_proj(x), KV_HEADS)))


class LlamaMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up_proj = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.self_attn = RmsNorm(), LlamaAttention()
        self.post_attention_layernorm, self.mlp = RmsNorm(), LlamaMlp()

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(VOCABULARY, WIDTH),
            "layers": nn.ModuleList(LlamaBlock() for _ in range(LAYERS)), "norm": RmsNorm()})
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.model["embed_tokens"](ids)
        for block in self.model["layers"]:
            x = block(x)
        return self.lm_head(self.model["norm"](x))


def perturb(model):
    for parameter in model.parameters():  # ones and zeros would hide mistakes
        parameter.data += 0.2 * torch.randn_like(parameter)


def train(model, batches, clip_norm=CLIP_NORM):
    """Returns what ten steps of AdamW on `batches`, used in turn, begin with, meet and leave. A batch
    is the model's inputs and the labels."""
    state = lambda: {name: value.clone() for name, value in model.state_dict().items()}
    tensors = {"initial." + name: value for name, value in state().items()}
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0}],
                                  LR, BETAS, EPSILON, WEIGHT_DECAY)
    losses, norms = [], []
    for step in range(STEPS):
        inputs, labels = batches[step % 2]
        logits = model(*inputs)
        loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach()
            for name, parameter in model.named_parameters():
                tensors["gradient." + name] = parameter.grad.clone()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), clip_norm).item())
        optimizer.step()
        losses.append(loss.item())
    assert min(norms) > clip_norm, norms
    tensors["losses"], tensors["norms"] = torch.tensor(losses), torch.tensor(norms)
    tensors.update({"final." + name: value for name, value in state().items()})
    with torch.no_grad():
        tensors["evaluated"] = model(*batches[0][0])
    return tensors


def make(model):
    perturb(model)
    batches = [torch.randint(VOCABULARY, (BATCH, POSITIONS + 1)) for _ in range(2)]
    tensors = train(model, [((tokens[:, :-1],), tokens[:, 1:]) for tokens in batches])
    for i, tokens in enumerate(batches):
        tensors[f"tokens.{i}"] = tokens.float()
    return tensors


def orthogonalised(matrix):
    """Newton-Schulz steps on a matrix of Frobenius norm 1, through its singular value decomposition,
    which is another way than ours; in fp64."""
    u, singular, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    singular = singular / (matrix.double().norm() + 1e-7)
    a, b, c = QUINTIC
    for _ in range(MUON_STEPS):
        singular = a * singular + b * singular ** 3 + c * singular ** 5
    return (u * singular @ v).float()


def is_hidden(name, parameter):
    ends = ("wte", "wpe", "embed_tokens", "lm_head")
    return parameter.dim() == 2 and not any(end in name for end in ends)


def train_by_muon(model, tensors):
    model.load_state_dict({name[8:]: value.clone() for name, value in tensors.items()
                           if name.startswith("initial.")})
    named = list(model.named_parameters())
    hidden = [parameter for name, parameter in named if is_hidden(name, parameter)]
    adamw = torch.optim.AdamW([p for name, p in named if not is_hidden(name, p)], LR, BETAS,
                              EPSILON, MUON_DECAY)
    momenta = [torch.zeros_like(parameter) for parameter in hidden]
    is_gpt2 = isinstance(model, Gpt2)
    losses = []
    for step in range(STEPS):
        tokens = tensors[f"tokens.{step % 2}"].long()
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        model.zero_grad()
        loss.backward()
        adamw.step()
        with torch.no_grad():
            for parameter, momentum in zip(hidden, momenta):
                momentum.mul_(MUON_MOMENTUM).add_(parameter.grad)
                update = orthogonalised(parameter.grad + MUON_MOMENTUM * momentum)
                outputs, inputs = parameter.shape[::-1] if is_gpt2 else parameter.shape
                parameter.mul_(1 - MUON_LR * MUON_DECAY)
                parameter.sub_(MUON_LR * math.sqrt(max(1, outputs / inputs)) * update)
        losses.append(loss.item())
    tensors["muon.losses"] = torch.tensor(losses)
    tensors.update({"muon.final." + name: value.clone()
                    for name, value in model.state_dict().items()})


if __name__ == "__main__":
    for name, kind in (("gpt2_tiny", Gpt2), ("llama_tiny", Llama)):
        torch.manual_seed(1)
        model = kind()
        tensors = make(model)
        train_by_muon(model, tensors)
        print(name, tensors["losses"].tolist(), tensors["norms"].tolist())
        save(tensors, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                   name + ".safetensors"))
