"""The vocabularies that the benchmark runs on, and how they travel to the processes that measure."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import structgen as sg

#: Folders with a ``tokenizer.json`` each, such as a model's snapshot; beside the repository, not in it.
TOKENIZERS = Path(
    os.environ.get("STRUCTGEN_BENCH_TOKENIZERS")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "tokenizers"
)

#: What mistral-common ships, for when no tokenizer folder is there.
FALLBACK = "tekken"


@dataclass(frozen=True)
class NamedVocabulary:
    """A vocabulary under the name that the tables show.

    Parameters
    ----------
    name:
        Such as ``"llama3"``.
    size:
        Number of token ids.
    path:
        The vocabulary in structgen's container format (`Vocabulary.to_bytes`).
    tokenizer_json:
        The file of the Hugging Face tokenizer it came from, or None.
    """

    name: str
    size: int
    path: Path
    tokenizer_json: Path | None


def load(names: list[str], folder: Path) -> tuple[list[NamedVocabulary], list[str]]:
    """Read tokenizers, write each as one file into ``folder``, and say what had to be replaced.

    A name is a folder in `TOKENIZERS` or ``"tekken"``, which also stands in for folders that are absent.
    """
    notes: list[str] = []
    present: dict[str, None] = {}
    for name in names:
        if name == FALLBACK or (TOKENIZERS / name / "tokenizer.json").is_file():
            present[name] = None
        else:
            notes.append(f"there is no tokenizer {name} in {TOKENIZERS.name}/; {FALLBACK} stands in for it")
            present[FALLBACK] = None
    return [_write(name, folder) for name in present], notes


def _write(name: str, folder: Path) -> NamedVocabulary:
    source = TOKENIZERS / name
    vocabulary = sg.Vocabulary.from_tekken() if name == FALLBACK else sg.Vocabulary.from_pretrained(source)
    path = folder / f"{name}.vocabulary"
    path.write_bytes(vocabulary.to_bytes())
    return NamedVocabulary(name, vocabulary.size, path, None if name == FALLBACK else source / "tokenizer.json")


def read(path: Path) -> sg.Vocabulary:
    """What `load` wrote."""
    return sg.Vocabulary.from_buffer(path.read_bytes(), str(path))
