"""Writes ``cases/json_schema_suite``: ``python tests/make_json_suite.py SUITE``.

``SUITE`` is a checkout of https://github.com/json-schema-org/JSON-Schema-Test-Suite, or the folder ``json`` in a
source distribution of the package jsonschema (4.26.0 was used). Every case becomes one line. What needs another
document than the schema itself is left out.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases" / "json_schema_suite"

DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")

#: Served by the suite's own web server.
REMOTE = "localhost:1234"


def cases(folder: Path) -> list[dict[str, Any]]:
    """All cases of a draft."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        subject = path.relative_to(folder).with_suffix("").as_posix()
        for case in json.loads(path.read_text("utf-8")):
            if REMOTE not in json.dumps(case["schema"]):
                tests = [[test["description"], test["data"], test["valid"]] for test in case["tests"]]
                about = {"subject": subject, "case": case["description"]}
                found.append({**about, "schema": case["schema"], "tests": tests})
    return found


def main(suite: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copy(suite / "LICENSE", FOLDER / "LICENSE")
    for draft in DRAFTS:
        lines = [json.dumps(case, separators=(",", ":")) for case in cases(suite / "tests" / draft)]
        (FOLDER / f"{draft}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
