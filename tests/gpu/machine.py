"""What this machine has of what our programs want: a driver that runs kernels, libraries."""
import importlib.metadata
import re

from session import Failed, Unusable

PROGRAMS = ("libthinwire_cuda.so", "stage_server", "step_bench", "message_bench", "twins",
            "device_tests", "codec_bench")


def look(session, results):
    """Records what there is. Unusable if no kernel runs, Failed naming the libraries that lack."""
    results.facts["NVIDIA's wheels"] = wheels()
    try:
        session.run(["nvidia-smi", "-q"], may_fail=True)
    except Failed as reason:
        session.log(str(reason))
    probe = session.run([session.program("kernel_probe")], may_fail=True)
    results.facts["kernel_probe"] = "; ".join(probe.out.split("\n")).strip("; ")
    lacking = missing_libraries(session)
    if probe.status != 0:
        raise Unusable("no kernel of this build runs here: " + probe.reason(), lacking)
    if lacking:
        raise Failed("libraries are missing: " + "; ".join(lacking))


def wheels():
    """ "nvidia-cudnn-cu13 9.19.0.56, ..." """
    found = {f"{one.metadata['Name']} {one.version}" for one in importlib.metadata.distributions()
             if (one.metadata["Name"] or "").startswith("nvidia-")}
    return ", ".join(sorted(found)) or "none"


def missing_libraries(session):
    """A text for each library that a program of ours does not find."""
    users = {}
    for name in PROGRAMS:
        try:
            path = session.plugin if name.endswith(".so") else session.program(name)
        except Failed:
            continue  # the part that wants it says so
        for line in session.run(["ldd", path], may_fail=True).out.splitlines():
            if "not found" in line:
                library = re.sub(r" => not found.*", "", line.strip())
                users.setdefault(library, []).append(name)
    return [f"{library} (for {', '.join(names)})" for library, names in users.items()]
