"""The libraries into which Debian divides Abseil, which change from version to version."""

_FOLDER = "/usr/lib/x86_64-linux-gnu"

def _abseil_repository(repository_ctx):
    names = sorted([
        file.basename[len("lib"):-len(".so")]
        for file in repository_ctx.path(_FOLDER).readdir()
        if file.basename.startswith("libabsl_") and file.basename.endswith(".so")
    ])
    if not names:
        fail("there is no Abseil in %s: deploy/setup.sh installs it" % _FOLDER)
    repository_ctx.file("BUILD")
    repository_ctx.file("libraries.bzl", "ABSEIL = %r\n" % names)

abseil_repository = repository_rule(
    implementation = _abseil_repository,
    configure = True,
    doc = "Makes libraries.bzl, whose ABSEIL names the libraries that are installed, as -l takes them.",
    local = True,
)
