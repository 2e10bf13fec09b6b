"""What mkdocs does beside its plugins: pages from outside docs/, notebooks as pages, links that work in the site."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
#: Pages from outside docs/, by their path in the repository.
INCLUDED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
#: How the page of options shows a call: its parameters alone.
PARAMETERS_ALONE = """
    options:
      docstring_section_style: table
      separate_signature: false
      show_docstring_description: false
      show_docstring_raises: false
      show_docstring_returns: false
      show_docstring_warns: false
      show_root_heading: false
      show_root_toc_entry: false
      skip_local_inventory: true
"""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of other files."""
    for source, page in INCLUDED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for notebook in sorted((ROOT / "docs").glob("**/*.ipynb")):
        page = notebook.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        files.append(File.generated(config, page, content=notebook_page(notebook)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links between files of the repository to pages, to `repo_url`, or, without one, nowhere."""
    if page.file.src_uri.startswith("reference/"):
        page.meta["search"] = {"boost": 2}
    if page.file.src_uri == "reference/options.md":
        markdown = re.sub(r"^::: .*\n", lambda call: call[0] + PARAMETERS_ALONE.lstrip("\n"), markdown, flags=re.M)
    origin = next((old for old, new in INCLUDED.items() if new == page.file.src_uri), f"docs/{page.file.src_uri}")

    def led(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        found = INCLUDED.get(target, target.removeprefix("docs/").replace(".ipynb", ".md"))
        if target == "README.md":  # the home page says the same, under other headings
            anchor = ""
        if files.get_file_from_path(found) is not None:
            return f"[{text}]({posixpath.relpath(found, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"
        if not (ROOT / target).exists():
            return link[0]  # which a strict build refuses
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/HEAD/{target}{anchor})"
        return text if "`" in text else f"{text} (`{target}`)" if text != target else f"`{target}`"

    markdown = re.sub(r"^```python no-run$", "```python", markdown, flags=re.M)  # a mark for the tests
    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)  # links in code are code
    return "".join(piece if piece.startswith("```") else LINK.sub(led, piece) for piece in pieces)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link names in the pages of the reference, where they stand as code."""
    if not page.file.src_uri.startswith("reference/"):
        return html
    name = r"(?:structgen\.[\w.]+|[A-Z]\w+(?:\.\w+)?)"

    def linked(code: re.Match[str]) -> str:
        full = code[1] if code[1].startswith("structgen.") else f"structgen.{code[1]}"
        if full.endswith(("Error", "Warning")):
            full = f"structgen.errors.{full.rpartition('.')[2]}"
        return f'<autoref optional identifier="{full}">{code[0]}</autoref>'

    return re.sub(rf"(?<!>)<code>({name})</code>(?!</)", linked, html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Write types as readers know them: ``InitVar[object]`` is an object, ``Foreign`` anything."""
    output = re.sub(r"<span[^>]*>InitVar</span>\[(<span[^>]*>\w+</span>)\]", r"\1", output)
    output = re.sub(r'<span class="n">InitVar</span>[^[]*\[</span>(<span.*?</span><span class="p">)\]', r"\1", output)
    return re.sub(r"(?<=>)Foreign(?=<)", "Any", output)


def notebook_page(notebook: Path) -> str:
    """Return the cells of a notebook, with the outputs that it was saved with, as Markdown."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            kinds = [kind for kind in ("image/svg+xml", "text/html", "image/png", "text/plain") if kind in data]
            value = "".join(data[kinds[0]]) if kinds else ""
            if kinds[:1] == ["image/png"]:
                value = f'<img alt="" src="data:image/png;base64,{value.strip()}">'
            elif kinds[:1] == ["text/plain"]:
                value = f"```text\n{value}\n```"
            else:  # a blank line would end the block
                value = re.sub(r"\n\s*\n", "\n", value[value.find("<") :])
                value = f'<div class="notebook-output">{value}</div>'
            parts.append(value)
    return "\n\n".join(part for part in parts if part) + "\n"
