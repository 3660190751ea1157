"""Everything about one direction of one cut: each message decoded, made anew and compared."""

import dataclasses

import numpy as np

import casts
import codec
import digests
import division
import feedback
import floats
import frames
import measures
import principal
import streams
from boundary_pb2 import DIRECTION_ACTIVATION, DIRECTION_GRADIENT, FrameHeader
from boundary_pb2 import PHASE_EVALUATE_COMPRESSED, PHASE_TRAIN

_DIRECTIONS = {"activation": DIRECTION_ACTIVATION, "gradient": DIRECTION_GRADIENT}
_DTYPES = {FrameHeader.ELEMENT_TYPE_FP32: "fp32", FrameHeader.ELEMENT_TYPE_BF16: "bf16"}
# Without state these carry NaN and infinity, which under others make a message go exact.
_CARRY_NONFINITE = ("none", "bf16", "fp16")


def _is_made_anew(spec):
    """False where the page leaves to the code what decides of the payload: low_rank's order of sums,
    the step that a rate takes."""
    return spec.kind != "low_rank" and spec.rate == 0


@dataclasses.dataclass
class _Crossing:
    """One tensor's way across."""

    message: frames.Message
    entry: dict  # of run.json
    x: np.ndarray
    shape: tuple

    @property
    def dtype(self):
        """Of the tensor at both ends."""
        return _DTYPES[self.message.header.dtype]

    @property
    def spec(self):
        """The codec that the header names."""
        return codec.spec_of(self.message.header.codec)

    def check_payload(self, content, part=None):
        """Compares what the codec should have made with what came, or with a part of it."""
        payload = self.message.payload if part is None else part
        met = codec.content(payload, self.spec, self.shape, self.message.header.document_starts)
        assert met == content, "payload"


class DirectionCheck:
    """Both ends of one direction, as the pages have them."""

    def __init__(self, run, recorded, activations):
        self._run = run
        self._recorded = recorded
        self._about = recorded.about
        self._declared = codec.spec_from_text(self._about["codec"])
        self._kind = feedback.Kind(**self._about["feedback"])
        self._sender = feedback.Sender(self._kind)
        self._receiver = feedback.Receiver(self._kind)
        self._activations = activations
        self._errors, self._traffic = measures.Errors(), measures.Traffic()
        self._slots = {}
        self._axes, self._in_axes = None, 0  # and how many messages have been in them
        self._channels = None

    def check(self):
        """Checks all messages in their order."""
        entries = iter(range(len(self._about["messages"])))
        for message in self._recorded.messages:
            is_training = message.header.phase == PHASE_TRAIN
            if self._about["direction"] == "gradient" and not is_training:
                self._check_acknowledgement(message)
                continue
            index = next(entries)
            try:
                self._check_message(message, index)
            except AssertionError as error:
                where = " ".join(str(message.header).split())
                raise AssertionError(f"{self._recorded.name}/{index}: {error} ({where})") from error
        assert next(entries, None) is None, "a tensor without a message"
        assert self._traffic.wire_bytes == self._recorded.wire_bytes

    def _check_acknowledgement(self, message):
        header = message.header
        assert message.payload == b"" and list(header.shape) == [0], str(header)
        assert codec.spec_of(header.codec).is_exact and header.sample_digest == 0
        self._traffic.add(False, message, 0, 0)

    def _check_message(self, message, index):
        crossing = _Crossing(
            message,
            self._about["messages"][index],
            self._recorded.given[index],
            self._recorded.shapes[index],
        )
        entry, x, used = crossing.entry, crossing.x, self._recorded.used[index]
        self._check_header(message.header, entry, crossing.shape)
        made, error = self._cross(crossing)
        _check_same(used, made)
        is_training = message.header.phase == PHASE_TRAIN
        self._traffic.add(is_training, message, x.size, 4 if crossing.dtype == "fp32" else 2)
        if self._is_measured(entry):
            self._errors.add(measures.relative_error(x, used), error)
        self._traffic.check(entry["counted"])
        self._errors.check(entry["counted"]["errors"])

    def _check_header(self, header, entry, shape):
        for field in ("phase", "epoch", "step", "microbatch"):
            assert getattr(header, field) == entry[field], field
        assert header.run == digests.of_bytes(self._run["run"].encode()), "run"
        assert header.generation == self._run["generation"], "generation"
        assert header.cut == self._about["cut"], "cut"
        assert header.direction == _DIRECTIONS[self._about["direction"]], "direction"
        assert tuple(header.shape) == shape, "shape"
        assert header.sample_digest == digests.of_words(entry["ids"]), "sample_digest"
        asks = self._about["direction"] == "activation" or self._declared.first_position == "exact"
        assert list(header.document_starts) == (entry["document_starts"] if asks else []), "document_starts"

    def _is_compressed(self, entry):
        """True unless both ends know beforehand that the message goes exact."""
        if entry["phase"] != PHASE_TRAIN:
            by_sample = self._kind.kind == "ef21" and self._kind.key == "sample"
            return entry["phase"] == PHASE_EVALUATE_COMPRESSED and not by_sample
        if entry["epoch"] <= self._run["warmup_epochs"]:
            return False
        if entry["step"] <= self._run["warmup_steps"]:
            return False
        # The receiver of a cut's gradients is the segment before it. Of 1F1B's stages the one that
        # has n stages behind it has its last n microbatches in its cool-down.
        behind = self._run["cuts"] - self._about["cut"]
        in_cool_down = entry["microbatch"] >= entry["microbatches"] - behind
        return in_cool_down or not self._about["epilogue_only"]

    def _is_measured(self, entry):
        every = self._about["error_every"]
        if entry["phase"] != PHASE_TRAIN or not every or entry["step"] % every:
            return False
        return self._is_compressed(entry)

    def _rows(self, entry):
        """The row of each sample."""
        count = len(entry["ids"])
        if self._kind.key == "stream":
            return list(range(count))
        if self._kind.key == "sample":
            return entry["ids"]
        # The samples of a batch are dealt to its microbatches in order.
        step = entry["step"]
        first = self._slots.get((step, entry["microbatch"]), 0)
        self._slots[(step, entry["microbatch"] + 1)] = first + count
        base = entry["batch"] * self._run["batch_size"] if self._kind.key == "batch" else 0
        return [base + first + i for i in range(count)]

    def _key(self, entry):
        """The message's random key."""
        name = f"{self._recorded.name}/{entry['phase']}"
        stream = streams.named_key(self._run["codec_seed"], name)
        return streams.event_key(stream, entry["step"], entry["microbatch"])

    def _supported(self, entry):
        if not self._declared.needs_support:
            return None
        return self._activations[(entry["step"], entry["microbatch"])] != 0

    def _check_codec(self, met, entry):
        """The codec in force: the declared one, but for its level."""
        wanted = self._declared
        level = self._about["level"]
        if level["kind"] == "by_epoch" and entry["phase"] == PHASE_TRAIN:
            for epoch, value in sorted(level["by_epoch"]):
                if entry["epoch"] >= epoch:
                    wanted = codec.at_level(wanted, value)
        elif level["kind"] == "by_epoch":
            wanted = codec.at_level(wanted, max(level["by_epoch"])[1])
        elif level["kind"] == "by_error":
            wanted = codec.at_level(wanted, met.bits or met.ratio)
        assert met == wanted, f"codec {met}, want {wanted}"

    def _cross(self, crossing):
        """What the receiver uses, and what the codec lost unless the message went exact. Checks the
        payload."""
        header, entry = crossing.message.header, crossing.entry
        exact = not self._is_compressed(entry) or self._declared.is_exact
        is_finite = np.isfinite(crossing.x).all()
        if entry["phase"] == PHASE_TRAIN and self._kind.kind != "none":
            return self._cross_with_state(crossing, exact or not is_finite)
        exact = exact or not (is_finite or self._declared.kind in _CARRY_NONFINITE)
        assert not header.first_visit and not header.HasField("state_digest")
        if exact:
            return _carry_exactly(crossing, crossing.x), None
        return self._cross_plainly(crossing)

    def _cross_plainly(self, crossing):
        self._check_codec(crossing.spec, crossing.entry)
        x, shape, dtype, spec = crossing.x, crossing.shape, crossing.dtype, crossing.spec
        supported = self._supported(crossing.entry)
        parts, axes = self._parts_of(crossing, x, dtype), self._axes_of(crossing)
        if _is_made_anew(spec):
            key = self._key(crossing.entry)
            crossing.check_payload(codec.encode(x, shape, dtype, spec, key, supported, axes, parts))
        decoded = codec.decode(crossing.message.payload, shape, dtype, spec, supported, axes, parts)
        used = _in_type(decoded, dtype)
        return used, {"relative_error": measures.relative_error(x, used), "residual": 0.0}

    def _cross_with_state(self, crossing, exact):
        header, x = crossing.message.header, crossing.x
        rows = self._rows(crossing.entry)
        first_visit = self._sender.is_first_visit(rows, x.size // len(rows))
        assert header.first_visit == first_visit, f"first_visit {header.first_visit}"
        error = None
        if exact or first_visit:
            used = _carry_exactly(crossing, self._sender.exact(x, rows))
            if self._kind.kind == "ef21":
                self._receiver.exact(used, rows)
        else:
            self._check_codec(crossing.spec, crossing.entry)
            used, error = self._cross_compensated(crossing, rows)
        self._check_digest(header, rows)
        return used, error

    def _cross_compensated(self, crossing, rows):
        x, dtype = crossing.x, crossing.dtype
        m, e = self._sender.message(x, rows)
        if self._kind.kind == "ef_mixed_b":
            decoded = self._decode_halves(crossing, (x, e))
        else:
            decoded = self._decode_compensated(crossing, m)
        if self._kind.kind == "ef21":
            used = _in_type(self._receiver.received(decoded, rows), dtype)
            residual = measures.relative_norm(m, x)
        else:
            used = decoded = _in_type(decoded, dtype)
            lost = m.astype(np.float64) - decoded
            residual = self._kind.decay * measures.relative_norm(lost, x)
        self._sender.sent(m, decoded, rows)
        return used, {
            "relative_error": measures.relative_error(m, decoded),
            "residual": residual,
        }

    def _decode_compensated(self, crossing, m):
        spec, shape = crossing.spec, crossing.shape
        parts, axes = self._parts_of(crossing, m, "fp32"), self._axes_of(crossing)
        if _is_made_anew(spec):
            key = self._key(crossing.entry)
            content = codec.encode(m, shape, "fp32", spec, key, axes=axes, parts=parts)
            crossing.check_payload(content)
        return codec.decode(crossing.message.payload, shape, "fp32", spec, axes=axes, parts=parts)

    def _parts_of(self, crossing, x, dtype):
        """How a coded message is divided, as its payload has it too; channels of training are kept."""
        spec, shape = crossing.spec, crossing.shape
        if not spec.divides:
            return None
        documents = crossing.message.header.document_starts
        parts = division.choose(x, spec, shape, dtype, self._channels, documents)
        met = division.of_payload(crossing.message.payload, spec, shape, self._channels, documents)
        assert met == parts, f"{met}, want {parts}"
        if crossing.entry["phase"] == PHASE_TRAIN:
            self._channels = parts.channels
        return parts

    def _axes_of(self, crossing):
        """What a coded message is in; those of training are kept."""
        if not crossing.spec.is_principal:
            return None
        payload = crossing.message.payload
        is_training = crossing.entry["phase"] == PHASE_TRAIN
        if crossing.spec.divides:
            documents = crossing.message.header.document_starts
            parts = division.of_payload(payload, crossing.spec, crossing.shape, None, documents)
            payload = payload[parts.head_bytes :]
        takes = self._axes is None or self._in_axes >= crossing.spec.rotation_every
        form = principal.PLAIN if self._axes is None else principal.KEPT_AXES
        if is_training and takes:
            form = principal.NEW_AXES
        assert payload[0] == form, f"form {payload[0]}, want {form}"
        axes = principal.axes_of(payload, codec.channels_of(crossing.shape)) or self._axes
        if is_training:
            self._in_axes = 1 if takes else self._in_axes + 1
            self._axes = axes
        return axes

    def _decode_halves(self, crossing, values):
        """The sum of both parts of an ef_mixed_b payload, which are those of x and e."""
        shape, payload = crossing.shape, crossing.message.payload
        halves = feedback.halves(crossing.spec, codec.scope_elements(crossing.spec, shape))
        key = self._key(crossing.entry)
        size = int.from_bytes(payload[:8], "little")
        parts = payload[8 : 8 + size], payload[8 + size :]
        decoded = []
        for part, half, of, part_key in zip(parts, halves, values, (key, streams.event_key(key, 1))):
            crossing.check_payload(codec.encode(of, shape, "fp32", half, part_key), part)
            decoded.append(codec.decode(part, shape, "fp32", half))
        return decoded[0] + decoded[1]

    def _check_digest(self, header, rows):
        every = self._kind.digest_every if self._kind.kind == "ef21" else 0
        assert header.HasField("state_digest") == (every > 0 and header.step % every == 0)
        if header.HasField("state_digest"):
            for end in (self._sender, self._receiver):
                met = end.digest(rows)
                assert header.state_digest == met, f"state_digest, {met:x} here"


def _in_type(x, dtype):
    return x if dtype == "fp32" else floats.round_to_bf16(x)


def _carry_exactly(crossing, x):
    """What the receiver gets of x, which goes exact."""
    assert crossing.spec.is_exact, f"codec {crossing.spec}, want none"
    crossing.check_payload(casts.encode_none(x, crossing.dtype))
    return casts.decode_none(crossing.message.payload, x.size, crossing.dtype)


def _check_same(recorded, made):
    """Bit for bit, but for which NaN a NaN is."""
    differs = recorded.view(np.uint32) != made.view(np.uint32)
    differs &= ~(np.isnan(recorded) & np.isnan(made))
    where = np.flatnonzero(differs)
    assert not where.size, (
        f"element {where[0]} is {recorded[where[0]]!r}, {made[where[0]]!r} here, "
        f"{where.size} differ"
    )
