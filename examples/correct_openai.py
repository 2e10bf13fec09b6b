"""What a server's model writes is corrected while it comes: any server that speaks the OpenAI protocol.

    $ transformers serve Qwen/Qwen3-0.6B
    $ python examples/correct_openai.py http://localhost:8000/v1 Qwen/Qwen3-0.6B examples/definitions/invoice.json \
        "An invoice for two chairs, as JSON."
"""

from __future__ import annotations

import argparse
import os
import sys

from openai import OpenAI

import structgen as sg
from structgen.correction.values import CorrectionError
from structgen.definitions.loading import load_definitions
from structgen.integrations.apis.openai import ChatModel, CompletionModel


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="where the API is; the key is OPENAI_API_KEY, if there is one")
    parser.add_argument("model", help="its name there")
    parser.add_argument("definition", help="a file such as those in examples/definitions, or MODULE:TYPE")
    parser.add_argument("prompt", help="what is asked")
    parser.add_argument("--completions", action="store_true", help="ask /v1/completions, which goes on with any text")
    parser.add_argument("--extract", choices=["fence", "json"], help="where the text is in a chatty reply")
    parser.add_argument("--max-tokens", type=int, default=512, help="of each reply (512)")
    parser.add_argument("--page", help="an HTML file for a page that shows what was corrected")
    return parser.parse_args()


def told(event: sg.CorrectionEvent) -> None:
    """Say what was put in the place of a mistake, when it is."""
    print(f"{event.number}. {event.choice!r} for {event.dropped[:60]!r}, by {event.chosen_by}", file=sys.stderr)


def main() -> None:
    """Ask the model, and print a text of the definition."""
    options = arguments()
    [named] = load_definitions([options.definition])
    client = OpenAI(base_url=options.url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    kind = CompletionModel if options.completions else ChatModel
    model = kind(client, options.model, max_tokens=options.max_tokens)
    try:
        result = sg.correct(model, named.definition, options.prompt, extract=options.extract, on_correction=told)
    except CorrectionError as error:  # its correction has what there was, and could be gone on with
        sys.exit(f"{error}\nwritten so far: {error.correction.text}")
    print(result.text)
    if options.page:
        result.save_html(options.page)


if __name__ == "__main__":
    main()
