"""A server's first mask of a definition: from the cache's folder, from an object store, from a bundle.

    python -m benchmarks.first_masks                     # 200 of MaskBench's schemas
    python -m benchmarks.first_masks --latency 0.02      # the store answers after 20 ms

A trial opens an index with ``compile_missing=False`` and asks a guide of it for a mask; each definition is opened
once from each place, in turns, so that what a machine does beside falls on all alike. *store* is a folder behind
obstore; *store, far* an S3 server in this process that waits ``--latency`` seconds before each answer. *beside* is
what is left without the time of requests. The folders before the stores are empty. Times are in ms of the wall clock;
*processor* is what the calling thread used, which other programs lengthen less.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import structgen as sg

from . import run, vocabularies
from .json_schema import instances

#: Milliseconds that are to be reached beside requests, by place.
GOALS = {"folder": 0.4, "store": 1.0, "store, far": 1.0, "bundle": 0.3}


def built(schemas: list[Any], vocabulary: sg.Vocabulary, cache: sg.Cache) -> list[sg.JsonSchema]:
    """Compile what can be into a cache; the definitions that are there then."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for schema in schemas:
            with suppress(sg.Error):
                definition = sg.JsonSchema(schema)
                sg.compile(definition, vocabulary, cache=cache)
                found.append(definition)
    return found


@contextmanager
def far_store(latency: float) -> Iterator[Any]:
    """The URL and options of a fake S3 server, and a function that has it answer late from then on."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from fakes.object_server import BUCKET, Answer, Objects, Request, Serve, serving_objects

    def late(request: Request, serve: Serve) -> Answer:
        time.sleep(latency)
        return serve(request)

    with serving_objects(Objects()) as server:
        yield f"s3://{BUCKET}/masks", server.options, lambda: setattr(server, "fault", late)


#: Milliseconds of one trial: of the wall clock, of these those of requests, and of this thread's processor time.
Times = tuple[float, float, float]


def first_mask(definition: sg.JsonSchema, vocabulary: sg.Vocabulary, cache: sg.Cache) -> tuple[Times, bytes]:
    """How long the first mask takes, and the mask."""
    before = cache.metrics().store_request_seconds
    began, worked = time.perf_counter(), time.thread_time()
    index = sg.compile(definition, vocabulary, cache=cache, compile_missing=False)
    mask = sg.Guide(index).bitmask()
    worked, taken = time.thread_time() - worked, time.perf_counter() - began
    requests = cache.metrics().store_request_seconds - before
    return (1e3 * taken, 1e3 * requests, 1e3 * worked), np.asarray(mask).tobytes()


def measured(
    definitions: list[sg.JsonSchema], vocabulary: sg.Vocabulary, caches: dict[str, sg.Cache]
) -> dict[str, list[Times]]:
    """Times by place. Raises `AssertionError` where masks differ."""
    times: dict[str, list[Times]] = {place: [] for place in caches}
    for cache in caches.values():
        first_mask(definitions[0], vocabulary, cache)  # what is opened and loaded once
    draw = random.Random(1)
    for definition in definitions[1:]:
        masks = set()
        for place, cache in draw.sample([*caches.items()], len(caches)):
            taken, mask = first_mask(definition, vocabulary, cache)
            times[place].append(taken)
            masks.add(mask)
            cache._settle()  # as between the requests of a server that is not busy
        assert len(masks) == 1, definition
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=200, help="how many schemas")
    parser.add_argument("--latency", type=float, default=0.01, help="seconds before the far store answers")
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        vocabulary = sg.Vocabulary.from_pretrained(vocabularies.TOKENIZERS / options.tokenizer)
        schemas = [line["schema"] for line in instances.read(run.MASKBENCH, limit=options.limit, seed=1)]
        url, remote, delay = stack.enter_context(far_store(options.latency))
        near = sg.ObjectStore((folder / "store").as_uri(), write="now")
        builder = stack.enter_context(sg.Cache(folder / "builder", store=near))
        definitions = built(schemas, vocabulary, builder)
        random.Random(0).shuffle(definitions)
        with sg.Cache(folder / "builder", store=sg.ObjectStore(url, options=remote, write="now")) as pushing:
            from structgen.cache.remote.upkeep import push

            assert not push(pushing).failed
        builder.export(folder / "masks.sgb")
        delay()
        caches = {
            "folder": sg.Cache(folder / "builder"),
            "store": sg.Cache(folder / "a", store=sg.ObjectStore(near.url, write="never")),
            "store, far": sg.Cache(folder / "b", store=sg.ObjectStore(url, options=remote, write="never")),
            "bundle": sg.Cache(folder / "masks.sgb"),
        }
        gc.collect()
        times = measured(definitions, vocabulary, caches)
    rows = {place: _row(found) for place, found in times.items()}
    _show(rows, f"The first mask of {len(definitions) - 1} schemas, {options.tokenizer}, ms")
    if options.json is not None:
        options.json.write_text(json.dumps({"definitions": len(definitions) - 1, "places": rows}, indent=2) + "\n")


def _row(times: list[Times]) -> dict[str, float]:
    whole = [taken for taken, _, _ in times]
    beside = [taken - requests for taken, requests, _ in times]
    return {
        "median": statistics.median(whole),
        "beside": statistics.median(beside),
        "beside_p90": statistics.quantiles(beside, n=10)[-1],
        "processor": statistics.median(worked for _, _, worked in times),
    }


def _show(rows: dict[str, dict[str, float]], title: str) -> None:
    table = Table(title=title)
    for column in ("from", "median", "beside requests", "90%", "processor", "to reach"):
        table.add_column(column, justify="left" if column == "from" else "right")
    for place, row in rows.items():
        figures = (f"{row[column]:.2f}" for column in ("median", "beside", "beside_p90", "processor"))
        table.add_row(place, *figures, f"{GOALS[place]}")
    run.console().print(table)


if __name__ == "__main__":
    main()
