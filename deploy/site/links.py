"""A hook of mkdocs: links of docs/ as GitHub understands them, for a site of docs/ alone.

A link to a folder is one to its README.md. A link out of docs/ becomes the words alone, or with SOURCE_URL in the
environment a link to the file there (https://github.com/OWNER/NAME/blob/main). A link to nothing is an error.
"""
import os
import pathlib
import re

from mkdocs.exceptions import PluginError

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(```.*?```)", re.DOTALL)


def _link(match, page, docs):
    words, target, anchor = match[1], match[2], match[3] or ""
    path = (page.parent / target).resolve()
    if path.is_dir() and (path / "README.md").is_file():
        path = path / "README.md"
    if not path.exists():
        raise PluginError(f"{page}: link to {target}, which is not there")
    if docs in path.parents:
        return f"[{words}]({os.path.relpath(path, page.parent)}{anchor})" if path.is_file() else words
    source = os.environ.get("SOURCE_URL", "").rstrip("/")
    return f"[{words}]({source}/{path.relative_to(docs.parent)})" if source else words


def on_page_markdown(markdown, page, config, **_):
    """The page's text, with its links for the site."""
    docs = pathlib.Path(config["docs_dir"]).resolve()
    file = pathlib.Path(page.file.abs_src_path).resolve()
    parts = CODE.split(markdown)  # every second part is a block of code
    parts[::2] = [LINK.sub(lambda match: _link(match, file, docs), part) for part in parts[::2]]
    return "".join(parts)
