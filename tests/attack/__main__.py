"""``python tests/attack [--minutes 10] [--json report.json] [AREA ...]``: run the areas, print the table."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from attack.areas import AREAS  # noqa: E402
from attack.outcome import Outcome  # noqa: E402


def main() -> int:
    """Run what was asked for; 1 where anything did not hold."""
    parser = argparse.ArgumentParser(prog="python tests/attack", description=__doc__)
    parser.add_argument("areas", nargs="*", choices=[*AREAS, []], help="what to run; everything by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, about; some are left out then")
    parser.add_argument("--json", type=Path, help="write a report")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(stderr=True)
    wanted = {name: AREAS[name] for name in arguments.areas or AREAS}
    shares = sum(share for _, share in wanted.values())
    outcomes = {}
    for name, (area, share) in wanted.items():
        console.print(f"{name} …")
        outcomes[name] = area(arguments.minutes * 60 * share / shares)
    Console().print(table(outcomes))
    for name, outcome in outcomes.items():
        for violation in outcome.violations:
            print(f"{name}: {violation}")
    if arguments.json:
        report = {name: outcome.as_json() for name, outcome in outcomes.items()}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(any(outcome.violations for outcome in outcomes.values()))


def table(outcomes: dict[str, Outcome]) -> Table:
    """The outcomes, a row each."""
    made = Table(title="Attack")
    made.add_column("area")
    for name in ("cases", "no time", "refused", "did not hold", "worst compile", "worst memory", "worst step"):
        made.add_column(name, justify="right")
    for name, each in outcomes.items():
        if each.absent:
            made.add_row(name, "absent")
            continue
        made.add_row(
            name, f"{each.cases:,}", f"{each.left:,}", f"{each.refused:,}", f"{len(each.violations):,}",
            f"{each.seconds:.2f} s" if each.seconds else "",
            f"{each.nbytes >> 20:,} MiB" if each.nbytes else "",
            f"{1e3 * each.step:.1f} ms" if each.step else "",
        )  # fmt: skip
    return made


if __name__ == "__main__":
    sys.exit(main())
