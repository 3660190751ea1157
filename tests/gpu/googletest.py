"""What the output of a GoogleTest program says."""
import re

# After one of these every call of CUDA fails until the process ends: what later tests say is not
# theirs.
POISON = re.compile("illegal memory access|misaligned address|unspecified launch failure|"
                    "illegal instruction|device-side assert|invalid program counter|"
                    "hardware stack error|launch timed out|uncorrectable ECC error")
_LINE = re.compile(r"^\[ *(RUN|OK|FAILED|SKIPPED) *\] ([\w/]+\.[\w/]+)")


class Report:
    """`failed`: what each failed test said, by name, in the order in which they ran."""

    def __init__(self, text):
        self.passed, self.skipped, self.failed = [], [], {}
        self.running = None  # at the end: what it crashed or hung in
        self.poisoned_by = None  # after which test nothing can be believed
        self.poisoned = []  # the tests that failed after it
        said = []
        for line in text.splitlines():
            match = _LINE.match(line)
            if match is None:
                said.append(line)
            elif match[1] == "RUN":
                self.running, said = match[2], []
            elif match[2] == self.running:
                self._end(match[1], "\n".join(said))
        if self.running is not None:
            self.failed[self.running] = "\n".join(said)
            self.poisoned_by = self.poisoned_by or self.running

    def _end(self, verdict, said):
        name, self.running = self.running, None
        if verdict == "FAILED" and self.poisoned_by is not None:
            self.poisoned.append(name)
        elif verdict == "FAILED":
            self.failed[name] = said
            self.poisoned_by = name if POISON.search(said) else None
        else:
            (self.passed if verdict == "OK" else self.skipped).append(name)

    def ended(self):
        """Tests with a verdict of their own."""
        return {*self.passed, *self.skipped, *self.failed}


def names(listing):
    """The tests that --gtest_list_tests prints."""
    tests, suite = [], ""
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if re.fullmatch(r"  [\w/]+", name):
            tests.append(suite + name.strip())
        elif re.fullmatch(r"[\w/]+\.", name):
            suite = name
    return tests
