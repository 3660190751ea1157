#!/usr/bin/python3
"""Writes bert_masked_tiny, bert_classes_tiny and vit_tiny.safetensors (transformer_parity_test.cc).

What PyTorch makes of tiny encoders. They are written here in plain PyTorch, with the names and
layouts that Hugging Face gives the parameters of BertForMaskedLM, BertForSequenceClassification and
ViTForImageClassification. Run once, on Debian 12 with python3-torch (deploy/setup.sh --bench); the
results are committed. Tensors are those of make_language_fixtures.py without Muon's, but for inputs
and labels of two batches, used in turn:
  ids.K [3, 12]                             two texts in each sample, then padding
  images.K [3, 3, 8, 12]
  labels.K                                  [3], or [3, 12] with -100 where a label is ignored
"""
import math
import os

import torch
from torch import nn
from torch.nn import functional

from make_fixtures import save
from make_language_fixtures import (BATCH, CONTEXT, HEADS, HEAD_SIZE, HIDDEN, LAYERS, POSITIONS,
                                    VOCABULARY, WIDTH, perturb, train)

PAD, SEPARATOR, CLASSES, PATCH, HEIGHT, IMAGE_WIDTH = 0, 1, 5, 4, 8, 12
EPSILON = 1e-12
CLIP_NORM = 0.2


def norm():
    return nn.LayerNorm(WIDTH, eps=EPSILON)


def attend(part, x, seen):
    """Attention in which each position sees those where `seen` [batch, positions] is true."""
    def heads(name):
        return part[name](x).view(*x.shape[:2], HEADS, HEAD_SIZE).transpose(1, 2)
    scores = heads("query") @ heads("key").transpose(2, 3) / math.sqrt(HEAD_SIZE)
    scores = scores.masked_fill(~seen[:, None, None, :], -math.inf)
    return (scores.softmax(dim=-1) @ heads("value")).transpose(1, 2).reshape(x.shape)


def parts(**modules):
    return nn.ModuleDict(modules)


def linears(*names):
    return parts(**{name: nn.Linear(WIDTH, WIDTH) for name in names})


def mlp(block, x):
    return block["output"]["dense"](functional.gelu(block["intermediate"]["dense"](x)))


class Bert(nn.Module):
    """The trunk and one of its heads."""

    def __init__(self, is_masked):
        super().__init__()
        self.is_masked = is_masked
        trunk = parts(
            embeddings=parts(word_embeddings=nn.Embedding(VOCABULARY, WIDTH),
                             position_embeddings=nn.Embedding(CONTEXT, WIDTH),
                             token_type_embeddings=nn.Embedding(2, WIDTH), LayerNorm=norm()),
            encoder=parts(layer=nn.ModuleList(self.block() for _ in range(LAYERS))))
        if is_masked:
            predictions = nn.Module()
            predictions.bias = nn.Parameter(torch.zeros(VOCABULARY))
            predictions.transform = parts(dense=nn.Linear(WIDTH, WIDTH), LayerNorm=norm())
            self.cls = parts(predictions=predictions)
        else:
            trunk["pooler"] = linears("dense")
            self.classifier = nn.Linear(WIDTH, CLASSES)
        self.bert = trunk

    @staticmethod
    def block():
        return parts(
            attention=parts(self=linears("query", "key", "value"),
                            output=parts(dense=nn.Linear(WIDTH, WIDTH), LayerNorm=norm())),
            intermediate=parts(dense=nn.Linear(WIDTH, HIDDEN)),
            output=parts(dense=nn.Linear(HIDDEN, WIDTH), LayerNorm=norm()))

    def forward(self, ids, types):
        embeddings = self.bert["embeddings"]
        x = embeddings["LayerNorm"](embeddings["word_embeddings"](ids) +
                                    embeddings["position_embeddings"].weight[:ids.shape[1]] +
                                    embeddings["token_type_embeddings"](types))
        for block in self.bert["encoder"]["layer"]:
            attention = block["attention"]
            y = attention["output"]["dense"](attend(attention["self"], x, ids != PAD))
            x = attention["output"]["LayerNorm"](x + y)
            x = block["output"]["LayerNorm"](x + mlp(block, x))
        if not self.is_masked:
            return self.classifier(torch.tanh(self.bert["pooler"]["dense"](x[:, 0])))
        head = self.cls["predictions"]
        x = head.transform["LayerNorm"](functional.gelu(head.transform["dense"](x)))
        return x @ embeddings["word_embeddings"].weight.T + head.bias


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        patches = HEIGHT // PATCH * (IMAGE_WIDTH // PATCH)
        embeddings = nn.Module()
        embeddings.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        embeddings.position_embeddings = nn.Parameter(torch.randn(1, patches + 1, WIDTH))
        embeddings.patch_embeddings = parts(projection=nn.Conv2d(3, WIDTH, PATCH, PATCH))
        self.vit = parts(embeddings=embeddings, layernorm=norm(), encoder=parts(
            layer=nn.ModuleList(self.block() for _ in range(LAYERS))))
        self.classifier = nn.Linear(WIDTH, CLASSES)

    @staticmethod
    def block():
        return parts(attention=parts(attention=linears("query", "key", "value"),
                                     output=linears("dense")),
                     intermediate=parts(dense=nn.Linear(WIDTH, HIDDEN)),
                     output=parts(dense=nn.Linear(HIDDEN, WIDTH)),
                     layernorm_before=norm(), layernorm_after=norm())

    def forward(self, images):
        embeddings = self.vit["embeddings"]
        x = embeddings.patch_embeddings["projection"](images).flatten(2).transpose(1, 2)
        x = torch.cat([embeddings.cls_token.expand(len(x), -1, -1), x], dim=1)
        x = x + embeddings.position_embeddings
        seen = torch.ones(x.shape[:2], dtype=torch.bool)
        for block in self.vit["encoder"]["layer"]:
            attention = block["attention"]
            y = attend(attention["attention"], block["layernorm_before"](x), seen)
            x = x + attention["output"]["dense"](y)
            x = x + mlp(block, block["layernorm_after"](x))
        return self.classifier(self.vit["layernorm"](x)[:, 0])


def texts():
    """Returns ids and types of samples of two texts; the last sample has one text."""
    ids = torch.randint(2, VOCABULARY, (BATCH, POSITIONS))
    types = torch.zeros_like(ids)
    for row, (first, second, length) in enumerate([(4, 11, 12), (2, 6, 7), (4, None, 5)]):
        ids[row, first] = SEPARATOR
        if second is not None:
            ids[row, second] = SEPARATOR
            types[row, first + 1:second + 1] = 1
        ids[row, length:] = PAD
    return ids, types


def masked_labels(ids):
    labels = torch.randint(VOCABULARY, ids.shape)
    labels[torch.rand(ids.shape) > 0.4] = -100
    labels[ids == PAD] = -100
    return labels


def batch_of(kind):
    if kind == "vit":
        return (torch.randn(BATCH, 3, HEIGHT, IMAGE_WIDTH),), torch.randint(CLASSES, (BATCH,))
    ids, types = texts()
    labels = masked_labels(ids) if kind == "bert_masked" else torch.randint(CLASSES, (BATCH,))
    return (ids, types), labels


def make(kind, model):
    perturb(model)
    batches = [batch_of(kind) for _ in range(2)]
    tensors = train(model, batches, CLIP_NORM)
    for i, (inputs, labels) in enumerate(batches):
        tensors[f"{'images' if kind == 'vit' else 'ids'}.{i}"] = inputs[0].float()
        tensors[f"labels.{i}"] = labels.float()
    return tensors


if __name__ == "__main__":
    for kind in ("bert_masked", "bert_classes", "vit"):
        torch.manual_seed(1)
        model = Vit() if kind == "vit" else Bert(kind == "bert_masked")
        tensors = make(kind, model)
        print(kind, tensors["losses"].tolist(), tensors["norms"].tolist())
        save(tensors, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                   kind + "_tiny.safetensors"))
