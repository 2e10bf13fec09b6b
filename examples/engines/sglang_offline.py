"""SGLang with structgen as its grammar backend: ``python examples/engines/sglang_offline.py MODEL``.

MODEL is a folder or a name on the hub. A server takes the same option: ``sglang serve --grammar-backend structgen``.
"""

from __future__ import annotations

import json
import sys

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
REQUESTS = [
    ("Ada Lovelace, as JSON: ", {"json_schema": json.dumps(PERSON)}),
    ("When was she born? ", {"regex": r"(18|19|20)\d\d-[01]\d-[0-3]\d"}),
    ("Add two numbers: ", {"ebnf": 'root ::= [1-9] ("+" [1-9])+'}),
]


def main(model: str) -> None:
    """Send all requests at once, and print what comes back."""
    import sglang

    engine = sglang.Engine(model_path=model, grammar_backend="structgen")
    params = [{"max_new_tokens": 100, **request} for _, request in REQUESTS]
    prompts = [prompt for prompt, _ in REQUESTS]
    for prompt, output in zip(prompts, engine.generate(prompts, params), strict=True):
        print(repr(prompt), "->", repr(output["text"]), output["meta_info"]["finish_reason"])


if __name__ == "__main__":
    main(sys.argv[1])
