"""Everything about one direction of one cut: each message decoded, made anew and compared."""

import numpy as np

import casts
import codec
import digests
import feedback
import floats
import measures
import streams
from boundary_pb2 import DIRECTION_ACTIVATION, DIRECTION_GRADIENT, FrameHeader
from boundary_pb2 import PHASE_EVALUATE_COMPRESSED, PHASE_TRAIN

_DIRECTIONS = {"activation": DIRECTION_ACTIVATION, "gradient": DIRECTION_GRADIENT}
_DTYPES = {FrameHeader.ELEMENT_TYPE_FP32: "fp32", FrameHeader.ELEMENT_TYPE_BF16: "bf16"}
# Its payload depends on the order of sums, which the page leaves to the code.
_NOT_MADE_ANEW = ("low_rank",)


class DirectionCheck:
    """Both ends of one direction, as the pages have them."""

    def __init__(self, run, recorded, activations):
        self._run = run
        self._recorded = recorded
        self._about = recorded.about
        self._declared = codec.spec_from_text(self._about["codec"])
        about_state = dict(self._about["feedback"])
        self._kind = feedback.Kind(**about_state)
        self._sender = feedback.Sender(self._kind)
        self._receiver = feedback.Receiver(self._kind)
        self._activations = activations
        self._errors, self._traffic = measures.Errors(), measures.Traffic()
        self._slots = {}

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
        entry, header = self._about["messages"][index], message.header
        x, used = self._recorded.given[index], self._recorded.used[index]
        shape = self._recorded.shapes[index]
        self._check_header(header, entry, shape)
        is_training = header.phase == PHASE_TRAIN
        dtype = _DTYPES[header.dtype]
        made = self._cross(message, entry, x, shape, dtype)
        _same("used", used, made["used"])
        self._traffic.add(is_training, message, x.size, 4 if dtype == "fp32" else 2)
        if self._is_measured(entry):
            self._errors.add(measures.relative_error(x, used), made.get("error"))
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

    def _cross(self, message, entry, x, shape, dtype):
        """What the receiver uses, and under "error" what the codec lost. Checks the payload."""
        spec = codec.spec_of(message.header.codec)
        exact = not self._is_compressed(entry) or self._declared.is_exact
        exact = exact or not np.isfinite(x).all()
        if entry["phase"] != PHASE_TRAIN or self._kind.kind == "none":
            assert not message.header.first_visit
            assert not message.header.HasField("state_digest")
            if exact:
                return {"used": self._carry_exactly(message, spec, x, dtype)}
            self._check_codec(spec, entry)
            return self._carry_plainly(message, entry, spec, x, shape, dtype)
        return self._compensated(message, entry, x, shape, dtype, exact)

    def _carry_exactly(self, message, spec, x, dtype):
        assert spec.is_exact, f"codec {spec}, want none"
        assert message.payload == casts.encode_none(x, dtype), "payload"
        return casts.decode_none(message.payload, x.size, dtype)

    def _carry_plainly(self, message, entry, spec, x, shape, dtype):
        supported = self._supported(entry)
        if spec.kind not in _NOT_MADE_ANEW:
            payload = codec.encode(x, shape, dtype, spec, self._key(entry), supported)
            assert message.payload == payload, "payload"
        decoded = codec.decode(message.payload, shape, dtype, spec, supported)
        used = _in_type(decoded, dtype)
        error = {"relative_error": measures.relative_error(x, used), "residual": 0.0}
        return {"used": used, "error": error}

    def _compensated(self, message, entry, x, shape, dtype, exact):
        header, rows = message.header, self._rows(entry)
        spec = codec.spec_of(header.codec)
        first_visit = self._sender.is_first_visit(rows, x.size // len(rows))
        assert header.first_visit == first_visit, f"first_visit {header.first_visit}"
        if exact or first_visit:
            sent = _in_type(self._sender.exact(x, rows), dtype)
            made = {"used": self._carry_exactly(message, spec, sent, dtype)}
            if self._kind.kind == "ef21":
                self._receiver.exact(made["used"], rows)
        else:
            self._check_codec(spec, entry)
            made = self._carry_compensated(message, entry, spec, x, shape, dtype, rows)
        self._check_digest(header, rows)
        return made

    def _carry_compensated(self, message, entry, spec, x, shape, dtype, rows):
        m, e = self._sender.message(x, rows)
        key = self._key(entry)
        if self._kind.kind == "ef_mixed_b":
            decoded = self._carry_halves(message.payload, spec, (x, e), shape, key)
        else:
            if spec.kind not in _NOT_MADE_ANEW:
                payload = codec.encode(m, shape, "fp32", spec, key)
                assert message.payload == payload, "payload"
            decoded = codec.decode(message.payload, shape, "fp32", spec)
        error = {}
        if self._kind.kind == "ef21":
            used = _in_type(self._receiver.received(decoded, rows), dtype)
            error["residual"] = measures.relative_norm(m, x)
        else:
            used = decoded = _in_type(decoded, dtype)
            lost = m.astype(np.float64) - decoded
            error["residual"] = self._kind.decay * measures.relative_norm(lost, x)
        error["relative_error"] = measures.relative_error(m, decoded)
        self._sender.sent(m, decoded, rows)
        return {"used": used, "error": error}

    def _carry_halves(self, payload, spec, parts, shape, key):
        """Both parts of an ef_mixed_b payload; the sum of what they decode to."""
        specs = feedback.halves(spec, codec.scope_elements(spec, shape))
        keys = key, streams.event_key(key, 1)
        size = int.from_bytes(payload[:8], "little")
        cuts = payload[8 : 8 + size], payload[8 + size :]
        decoded = []
        for part, half, part_key, values in zip(cuts, specs, keys, parts):
            assert part == codec.encode(values, shape, "fp32", half, part_key), "payload"
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


def _same(what, recorded, made):
    """Bit for bit, but for which NaN a NaN is."""
    differs = recorded.view(np.uint32) != made.view(np.uint32)
    differs &= ~(np.isnan(recorded) & np.isnan(made))
    where = np.flatnonzero(differs)
    assert not where.size, (
        f"{what}: element {where[0]} is {recorded[where[0]]!r}, {made[where[0]]!r} here, "
        f"{where.size} differ"
    )
