"""Hostile definitions: each is compiled in a process of its own under the budget of a request, and stepped over.

The processes are forked from one that has imported everything, and can be killed. A definition holds if it compiles,
or ends in a typed error, within the budget and a tenth more; if no step then raises, takes long, allows nothing, or
says of a token something else than its mask does.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import structgen as sg
from structgen.budget import Budget
from structgen.runtime import ids_of

from .outcome import Outcome

#: Beyond the budget: a tenth, and what is paid once in a process, such as reading cached kernels that come up first.
SLACK, ONCE_SECONDS, ONCE_BYTES = 1.1, 0.5, 48 << 20

#: Processor seconds that a step may take at most; texts, and steps of each; all are given up after so many seconds.
STEP, TEXTS, STEPS, STEPPING = 1.0, 2, 200, 5.0

#: Processor seconds after which a process is killed, and wall-clock seconds, for one that sleeps.
KILLED, ASLEEP = 60, 300


def vocabulary() -> sg.Vocabulary:
    """Some 18,000 tokens: bytes, pairs and triples of what JSON, code and prose are made of, words, long runs."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = [bytes([i]) for i in range(256)]
    for first in (*letters, *letters.upper(), *'0123456789 "{}[]():,.\n\\/_-+*=<>'):
        tokens += [(first + second).encode() for second in (*letters, *'0123456789 "{}[]:,\n')]
    tokens += [(a + b + c).encode() for a in letters for b in "aeiourst" for c in letters]
    tokens += [f"{i:03}".encode() for i in range(1000)]
    tokens += [b'":"', b'": "', b'","', b'", "', b'"},{"', b"]]", b"}}", b"[[", b'{"', b'"}', b'"]', b"null", b"true"]
    tokens += [b" " * i for i in range(2, 33)] + [b"a" * i for i in (4, 8, 16, 64)] + [b"\n" * i for i in (2, 3)]
    tokens += ["é".encode(), "日本".encode(), "😀".encode(), b"\xf0\x9f", b"\x98\x80"]
    unique = list(dict.fromkeys(tokens))
    return sg.Vocabulary.from_bytes([*unique, None], eos_ids=[len(unique)])


def attack(
    definitions: Iterable[tuple[str, Callable[[], Any]]], known: sg.Vocabulary, until: float = float("inf")
) -> Outcome:
    """Compile and step over definitions, by name, as far as there is time (``time.monotonic``)."""
    warm_up(known)
    outcome = Outcome()
    for name, make in definitions:
        if time.monotonic() > until:
            outcome.left += 1
            continue
        outcome.cases += 1
        found = in_a_process(lambda make=make, name=name: measured(make, known, name))  # type: ignore[misc]
        outcome.violations += [f"{name}: {each}" for each in violations(found)]
        outcome.refused += "refused" in found
        outcome.worst("seconds", found.get("seconds", 0.0), name)
        outcome.worst("nbytes", found.get("nbytes", 0), name)
        outcome.worst("step", found.get("step", 0.0), name)
    return outcome


def warm_up(known: sg.Vocabulary) -> None:
    """What the first of all compiles pays for: kernels, the trie."""
    for definition in (sg.Regex("a"), sg.JsonSchema({}), sg.Grammar('start: "a"'), sg.Gbnf('root ::= "a"')):
        sg.Guide(sg.compile(definition, known, eager=False)).bitmask()


def violations(found: dict[str, Any]) -> list[str]:
    """What a measurement says that must not be."""
    wrong: list[str] = list(found.get("wrong", ()))
    budget = Budget.request
    if found.get("seconds", 0) > budget.seconds * SLACK + ONCE_SECONDS:
        wrong.append(f"compiling took {found['seconds']:.1f} s of the processor, the budget is {budget.seconds:g} s")
    if found.get("nbytes", 0) > budget.memory * SLACK + ONCE_BYTES:
        wrong.append(f"compiling took {found['nbytes'] >> 20} MiB, the budget is {budget.memory >> 20} MiB")
    if found.get("step", 0) > STEP:
        wrong.append(f"a step took {found['step']:.2f} s of the processor, after {found['at']!r:.80}")
    return wrong


# -- in the process of one definition ----------------------------------------------------------------------------


def measured(make: Callable[[], Any], known: sg.Vocabulary, seed: str) -> dict[str, Any]:
    """Compile a definition, and step over some texts of it."""
    found: dict[str, Any] = {"wrong": []}
    before = reset_peak()
    began = time.process_time()
    try:
        definition = make()
        began = time.process_time()  # the making is the attacker's
        index = sg.compile(definition, known, eager=False, budget=Budget.request)
    except sg.Error as error:
        found["refused"] = type(error).__name__
        if isinstance(error, sg.errors.InternalError):
            found["wrong"].append(f"an internal error: {error}")
        return found
    except BaseException as error:
        found["wrong"].append(f"compiling raised {type(error).__name__}: {str(error)[:200]}, {innermost(error)}")
        return found
    finally:
        found["seconds"] = time.process_time() - began
        found["nbytes"] = max(0, peak() - before)
    try:
        found |= stepped(index, Random(seed))
    except BaseException as error:
        found["wrong"].append(f"a step raised {type(error).__name__}: {str(error)[:200]}, {innermost(error)}")
    return found


def stepped(index: sg.Index, random: Random) -> dict[str, Any]:
    """The worst step of some texts, and what was wrong with their masks."""
    worst, at, wrong = 0.0, b"", []
    size, eos = index.vocabulary.size, set(index.vocabulary.eos_ids)
    until = time.process_time() + STEPPING
    for _ in range(TEXTS):
        guide, text = sg.Guide(index, max_rollback=4), b""
        for _ in range(STEPS):
            began = time.process_time()
            allowed = ids_of(guide.bitmask()).tolist()
            if not allowed:
                wrong.append(f"nothing is allowed after {text[-60:]!r}")
                break
            going_on = [token for token in allowed if token not in eos]
            token = random.choice(going_on or allowed)
            if not guide.advance(token):
                wrong.append(f"token {token} of the mask is refused after {text[-60:]!r}")
                break
            step = time.process_time() - began
            if step > worst:
                worst, at = step, text[-60:]
            other = random.randrange(size)
            if guide.allows(other) != (other in set(ids_of(guide.bitmask()).tolist())):
                wrong.append(f"token {other} is not what the mask says after {text[-60:]!r}")
                break
            text += index.vocabulary.token(token) or b""
            if guide.is_finished() or time.process_time() > until:
                break
        if wrong or time.process_time() > until:
            break
    return {"step": worst, "at": at.decode(errors="backslashreplace"), "wrong": wrong}


def innermost(error: BaseException) -> str:
    """The last line of structgen's in a traceback."""
    lines = traceback.extract_tb(error.__traceback__)
    return f"{Path(lines[-1].filename).name}:{lines[-1].lineno}" if lines else ""


def reset_peak() -> int:
    """Begin to measure anew how much memory the process takes at most; returns what it takes now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Bytes of memory that the process took at most."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


# -- processes ---------------------------------------------------------------------------------------------------


def in_a_process(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What work returns in a forked process, or what became of that."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_CPU, (KILLED, KILLED + 5))
            with os.fdopen(writer, "w") as stream:
                json.dump(work(), stream)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        if not select.select([stream], [], [], ASLEEP)[0]:
            os.kill(child, signal.SIGKILL)
        said = stream.read()
    _, status = os.waitpid(child, 0)
    if said:
        return json.loads(said)  # type: ignore[no-any-return]
    how = "exited" if os.WIFEXITED(status) else signal.Signals(os.WTERMSIG(status)).name
    return {"wrong": [f"the process was ended: {how}"], "seconds": float(KILLED) if how == "SIGXCPU" else 0.0}
