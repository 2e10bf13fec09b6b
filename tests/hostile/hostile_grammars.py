"""Grammars that a stranger might send to keep a compiler busy or to fill the memory, each made when asked for."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import structgen as sg

#: More than any text can have of anything.
_HUGE = 10**18


class Case(NamedTuple):
    """A grammar's text, and the options that it is compiled with."""

    text: str
    options: Mapping[str, Any] = MappingProxyType({})


def lines(*parts: str) -> str:
    """A text of so many lines."""
    return "\n".join(parts)


def numbered(template: str, count: int, between: str = "\n") -> str:
    """A template for each number from 0 on, ``@`` being the number and ``#`` the next."""
    return between.join(template.replace("@", str(i)).replace("#", str(i + 1)) for i in range(count))


def words(count: int) -> str:
    """Alternatives of so many strings."""
    return numbered('"w@"', count, " | ")


def terminals(count: int, pattern: str, rule: str = "({})+", statement: str = "") -> str:
    """A rule of so many terminals, with such patterns."""
    return lines("start: " + rule.format(numbered("A@", count, " | ")), numbered(f"A@: {pattern}", count), statement)


# -- terminals by the thousand --------------------------------------------------------------------------------

_MANY: dict[str, Callable[[], Case]] = {
    "5,000 literal terminals": lambda: Case(f"start: ({words(5_000)})+"),
    "5,000 literal terminals and identifiers": lambda: Case(
        lines(f"start: ({words(5_000)} | NAME)+", "NAME: /[a-z][a-z0-9]*/")
    ),
    "5,000 literal terminals, spaces ignored": lambda: Case(lines(f"start: ({words(5_000)})+", "%ignore /[ \\t]+/")),
    "5,000 literal terminals, basic": lambda: Case(f"start: ({words(5_000)})+", {"lexer": "basic"}),
    "5,000 named terminals": lambda: Case(terminals(5_000, '"w@"')),
    "2,000 terminals in a row": lambda: Case(f"start: {numbered(chr(34) + 'w@' + chr(34), 2_000, ' ')}"),
    "2,000 regexes": lambda: Case(terminals(2_000, "/w@x*/")),
    "20,000 literal terminals": lambda: Case(f"start: ({words(20_000)})+"),
    "200,000 alternatives": lambda: Case(f"start: {words(200_000)}"),
    "200,000 alternatives of one regex": lambda: Case("start: /" + numbered("w@", 200_000, "|") + "/"),
    "20,000 alternatives of one terminal": lambda: Case(lines("start: A+", f"A: {words(20_000)}")),
    "1,000 terminals by letter and digits": lambda: Case(terminals(1_000, "/[a-z]{#}[0-9]*/")),
    "100 terminals by letter and digits": lambda: Case(terminals(100, "/[a-z]{#}[0-9]*/")),
    "300 priorities": lambda: Case(
        lines("start: (" + numbered("A@", 300, " | ") + ")+", numbered("A@.@: /[a-z]*x@[a-z]*/", 300))
    ),
    "300 priorities of words": lambda: Case(
        lines("start: (" + numbered("A@", 300, " | ") + ")+", numbered('A@.@: "w@"', 300), "N: /[a-z]+/")
    ),
    "500 rules with a context each": lambda: Case(
        lines("start: " + numbered("r@", 500, " | "), numbered('r@: "a@" N@ "b@"\nN@: /[a-z]+@[a-z]*/', 500))
    ),
    "200 contexts of 200 terminals": lambda: Case(
        lines(
            "start: " + numbered("r@", 200, " | "),
            *(
                f'r{i}: "k{i}" (' + " | ".join(f"A{(i * 7 + j * j) % 199}" for j in range(60)) + ")+"
                for i in range(200)
            ),
            numbered("A@: /x[a-f]*@/", 200),
        )
    ),
    "1,000 ignored terminals": lambda: Case(lines('start: "a" "b"', numbered("%ignore /c@[^d]*d/", 1_000))),
    "30 ignored comments that nest into each other": lambda: Case(
        lines('start: ("a" | "b")+', numbered("%ignore /[(]{#}[^)]*[)]/", 30))
    ),
    "200 declared names": lambda: Case(
        lines("start: " + numbered("T@", 200, " | "), "%declare " + numbered("T@", 200, " "))
    ),
}

# -- regexes --------------------------------------------------------------------------------------------------

_REGEXES: dict[str, Callable[[], Case]] = {
    "a long counted class": lambda: Case("start: A\nA: /[a-z]{1,100000}!/"),
    "a long counted class, later": lambda: Case("start: A\nA: /[a-z]{100000}!/"),
    "a long counted class of all": lambda: Case("start: A\nA: /.{1,20000}!/s"),
    "a counted class beside another": lambda: Case("start: (A | B)+\nA: /[a-z]{1,3000}!/\nB: /[a-m]{1,2000}[?]/"),
    "two subsets": lambda: Case(lines("start: A B", "A: /(a|b)*a(a|b){14}/", "B: /(a|b)*b(a|b){14}/")),
    "two subsets, one the other": lambda: Case(
        lines("start: A | B", "A: /(a|b)*a(a|b){14}/", "B: /(a|b)*a(a|b){13}c/")
    ),
    "a subset": lambda: Case(lines("start: A", "A: /(a|b)*a(a|b){25}c/")),
    "counts in counts": lambda: Case("start: A\nA: /(?:a{1,50}|a{1,70}|a{1,90}b){1,40}/"),
    "lazy counts": lambda: Case("start: A\nA: /(?:a{1,50}?|a{1,70}?|a{1,90}b){1,40}?c/"),
    "lazy dots": lambda: Case("start: A\nA: /.*?a.*?b.*?c.*?d.*?e.*?f.*?g.*?h/s"),
    "preferences of subsets": lambda: Case("start: A\nA: /(?:a|ab|abc|b|bc|c)*?(a|b|c){0,12}x/"),
    "20 terminals side by side": lambda: Case(
        lines(
            "start: " + numbered("A@", 20, " | "), *(f"A{i}: /[a-z]*{chr(97 + i)}[a-z]{{{i + 5}}}!/" for i in range(20))
        )
    ),
    "3 terminals side by side": lambda: Case(
        lines(
            "start: " + numbered("A@", 3, " | "), *(f"A{i}: /[a-z]*{chr(97 + i)}[a-z]{{{i + 7}}}!/" for i in range(3))
        )
    ),
    "periods of primes": lambda: Case(
        lines(
            "start: (" + numbered("A@", 8, " | ") + ")+",
            *(f"A{i}: /(a{{{p}}})+{chr(98 + i)}/" for i, p in enumerate((5, 7, 11, 13, 17, 19, 23, 29))),
        )
    ),
    "look-aheads of subsets": lambda: Case("start: (A | B)+\nA: /a+(?!(a|b)*a(a|b){9}c)/\nB: /b+/"),
    "20 look-aheads": lambda: Case(
        "start: A+\nA: /x" + "".join(f"(?![a-z]{{{i}}}{i})" for i in range(20)) + "[a-z0-9]*/"
    ),
    "look-aheads on the way": lambda: Case("start: A\nA: /(?:a(?=[ab]{0,12}c)|b(?![ab]{3,14}d))+[a-d]*/"),
    "look-aheads of words": lambda: Case(
        lines("start: (" + numbered("A@", 60, " | ") + ")+", numbered("A@: /w@(?![a-z0-9]*(?:x@|y)[0-9]{#})/", 60))
    ),
    "look-behinds": lambda: Case("start: A\nA: /[ab]{12}(?:(?<=a[ab]{9})x|(?<!b[ab]{8})y)+/"),
    "a look-behind of a long count": lambda: Case("start: A\nA: /[ab]{3000}(?<=a[ab]{2000})x/"),
    "1,000 groups of a regex": lambda: Case("start: /" + "(" * 1_000 + "a" + ")" * 1_000 + "/"),
    "400 groups of a regex": lambda: Case("start: /" + "(?:" * 400 + "a" + ")+" * 400 + "/"),
    "a string of a megabyte": lambda: Case('start: "' + "ab" * 500_000 + '"'),
    "a regex of a megabyte": lambda: Case("start: /" + "ab" * 500_000 + "/"),
    "a string of a megabyte, either case": lambda: Case('start: "' + "ab" * 500_000 + '"i'),
    "a string of 20,000 characters, either case": lambda: Case('start: "' + "ab" * 10_000 + '"i'),
    "40 strings of 2,000 characters, either case": lambda: Case(
        "start: (" + " | ".join(f'"{chr(97 + i % 26)}{"é" * 2_000}{i}"i' for i in range(40)) + ")+"
    ),
    "escapes by the hundred thousand": lambda: Case('start: "' + "\\u00e9" * 150_000 + '"'),
    "two alternatives with a long prefix": lambda: Case("start: /" + "a" * 150_000 + "b|" + "a" * 150_000 + "c/"),
    "Unicode's letters, many times": lambda: Case(terminals(60, r"/\w+@\W/")),
    "Unicode's letters, counted": lambda: Case(r"start: A" + "\n" + r"A: /(?:\w{1,30}[^\w\s]\d{2,40}){1,20}/"),
    "Unicode's letters, either case": lambda: Case("start: A\nA: /[À-ž\\u0400-\\u04ff]{1,200}[^a-z]{3}/i"),
    "a class of 20,000 characters": lambda: Case(
        "start: A\nA: /[" + "".join(chr(0x4E00 + 2 * i) for i in range(8_000)) + "]{1,50}/"
    ),
    "a class of thousands, in 300 terminals": lambda: Case(
        terminals(300, "/[" + "".join(chr(0x4E00 + 2 * i) for i in range(500)) + "]@+/")
    ),
    "ranges": lambda: Case("start: (" + " | ".join(f'"{a}".."z" "!"' for a in string.ascii_lowercase) + ")+"),
    "an intersection of identifiers": lambda: Case(
        lines("start: (" + numbered("A@", 12, " | ") + ")+", numbered("A@: /(?=[a-z]*@)[a-z0-9_]+/", 12))
    ),
    "a keyword for each prefix": lambda: Case(
        "start: (" + " | ".join(f'"{"a" * i}b"' for i in range(1, 400)) + " | N)+\nN: /a+/"
    ),
    "strings that are prefixes": lambda: Case("start: (" + " | ".join(f'"{"a" * i}"' for i in range(1, 400)) + ")+"),
}

# -- rules ----------------------------------------------------------------------------------------------------

_RULES: dict[str, Callable[[], Case]] = {
    "a million rules": lambda: Case("start: a\n" * 1_000_000),
    "a million repeats": lambda: Case('start: "a"~1000000'),
    "a huge repeat": lambda: Case(f'start: "a"~{_HUGE}'),
    "a huge range": lambda: Case(f'start: "a"~0..{_HUGE} "b"'),
    "a repeat of 5,000 digits": lambda: Case('start: "a"~' + "9" * 5_000),
    "repeats of repeats": lambda: Case('start: ((("a" | "b")~2..9)~2..9)~2..9'),
    "repeats of repeats of one": lambda: Case('start: ((("a"~2..40)~2..40)~2..40)~2..40 "b"'),
    "options": lambda: Case("start: " + '"a"? ' * 60),
    "11 options": lambda: Case("start: " + " ".join(f'"a{i}"?' for i in range(11))),
    "14 options": lambda: Case("start: " + " ".join(f'"a{i}"?' for i in range(14))),
    "choices": lambda: Case("start: " + '("a" | "b" "c") ' * 40),
    "300 groups in a row": lambda: Case("start: " + "".join(f'("a{i}") ' for i in range(300))),
    "2,000 groups in a row": lambda: Case("start: " + "".join(f'("a{i}") ' for i in range(2_000))),
    "300 stars in a row": lambda: Case("start: " + "".join(f'"a{i}"+ ' for i in range(300))),
    "brackets": lambda: Case("start: " + '["a"] ' * 40),
    "200 groups": lambda: Case("start: " + "(" * 200 + '"a"' + ")" * 200),
    "200 groups with a plus": lambda: Case("start: " + "(" * 200 + '"a"' + ' "b")+' * 200),
    "60,000 groups": lambda: Case("start: " + "(" * 60_000 + '"a"' + ")" * 60_000),
    "a chain of 3,000 rules": lambda: Case(lines("start: r0", numbered("r@: r#", 3_000), 'r3000: "a"')),
    "a chain of 20,000 rules": lambda: Case(lines("start: r0", numbered('r@: "x" r#', 20_000), 'r20000: "a"')),
    "a chain of 1,000 rules with choices": lambda: Case(
        lines("start: r0", numbered('r@: "x@" r# | "y"', 1_000), 'r1000: "a"')
    ),
    "8,000 unused rules": lambda: Case(lines('start: "a"', numbered("r@: r#", 8_000), 'r8000: "a"')),
    "nullable rules in a row": lambda: Case(
        lines("start: " + numbered("r@", 400, " ") + ' "z"', numbered('r@: | "a@"', 400))
    ),
    "nullable rules in a row, all ambiguity": lambda: Case(
        lines("start: " + numbered("r@", 100, " ") + ' "z"', numbered('r@: | "a@" r@', 100)), {"ambiguity": "all"}
    ),
    "a chain of nullable rules": lambda: Case(lines("start: r0", numbered('r@: r# "a@"? |', 1_000), 'r1000: "a"')),
    "rules that all begin alike": lambda: Case(
        lines("start: " + numbered("r@", 300, " | "), numbered('r@: "a" r@ "b@" | "c@"', 300))
    ),
    "rules that all call all": lambda: Case(
        lines(
            "start: r0",
            *(f"r{i}: " + " | ".join(f'"a{i}" r{j} "b{j}"' for j in range(60)) + f' | "c{i}"' for i in range(60)),
        )
    ),
    "left corners of left corners": lambda: Case(
        lines(
            "start: r0",
            *(f"r{i}: " + " | ".join(f'r{j} "b{j}x{i}"' for j in range(i + 1, 50)) for i in range(49)),
            'r49: "a"',
        )
    ),
    "LR states by the exponential": lambda: Case(
        # L = (a|b)^* a (a|b)^n: the items behind it are the subsets of the places (Nijholt 1980, for LR(0)).
        lines(
            "start: s",
            's: "a" s | "b" s | "a" t0',
            *(f't{i}: "a" t{i + 1} | "b" t{i + 1}' for i in range(24)),
            't24: "c"',
        )
    ),
    "LR states by the exponential, all ambiguity": lambda: Case(
        lines(
            "start: s",
            's: "a" s | "b" s | "a" t0',
            *(f't{i}: "a" t{i + 1} | "b" t{i + 1}' for i in range(24)),
            't24: "c"',
        ),
        {"ambiguity": "all"},
    ),
    "LR states by subsets of rules": lambda: Case(
        # Earley 1968: n rules, each of which shifts all but one terminal to itself.
        lines(
            "start: " + numbered("a@", 16, " | "),
            *(
                f"a{i}: " + " | ".join(f'"x{j}" a{i}' for j in range(16) if j != i) + f' | "y{i}" b{i}'
                for i in range(16)
            ),
            numbered('b@: "x@" | "x@" b@', 16),
        )
    ),
    "conflicts by the hundred": lambda: Case(
        lines("start: e", "e: " + " | ".join(f'e "o{i}" e' for i in range(150)) + ' | "x"')
    ),
    "conflicts by the hundred, all ambiguity": lambda: Case(
        lines("start: e", "e: " + " | ".join(f'e "o{i}" e' for i in range(150)) + ' | "x"'), {"ambiguity": "all"}
    ),
    "conflicts of long rules": lambda: Case(
        lines("start: e", "e: " + " | ".join(" ".join(["e", f'"o{i}"'] * 20) + " e" for i in range(20)) + ' | "x"')
    ),
    "reductions that compete, all ambiguity": lambda: Case(
        lines("start: (" + numbered("r@", 200, " | ") + ")+", numbered('r@: "x" | "y@"', 200)), {"ambiguity": "all"}
    ),
    "reductions that compete by priority": lambda: Case(
        lines("start: (" + numbered("r@", 200, " | ") + ")+", numbered('r@.@: "x" | "y@"', 200))
    ),
    "s s s": lambda: Case(lines("start: s", 's: "a" s s s s s s s s | "b"'), {"ambiguity": "all"}),
    "rules of 2,000 symbols, 50 of them": lambda: Case(
        lines("start: " + numbered("r@", 50, " | "), *(f'r{i}: "k{i}" ' + '"a" ' * 2_000 for i in range(50)))
    ),
    "a grammar of 3,000 statements": lambda: Case(
        lines(
            "start: s+",
            "s: " + numbered("s@", 3_000, " | "),
            numbered('s@: "k@" e ";"', 3_000),
            'e: N | "(" e ")" | e "+" N',
            "N: /[a-z0-9]+/",
            "%ignore / +/",
        )
    ),
    "a grammar of keywords and operators": lambda: Case(
        lines(
            "start: s+",
            "s: " + numbered("s@", 400, " | "),
            numbered('s@: "k@" e "t@" s? ";" | "k@" "e@"', 400),
            *(f'e{i}: e{i + 1} | e{i} "o{i}" e{i + 1}' for i in range(30)),
            "e: e0",
            'e30: N | "(" e ")"',
            "N: /[a-z0-9]+/",
            "%ignore / +/",
        )
    ),
    "shortest texts that double": lambda: Case(lines("start: r0", numbered('r@: "x@" r# r# "y@"', 40), 'r40: "a"')),
    "shortest texts that double, with conflicts": lambda: Case(
        lines("start: r0", numbered('r@: "x" r# r# | "x" r# r# "y@"', 30), 'r30: "a" r30 "a" | "a"')
    ),
}

# -- what Lark writes out -------------------------------------------------------------------------------------

_LOADING: dict[str, Callable[[], Case]] = {
    "templates with ever more arguments": lambda: Case('start: a{"x"}\na{x}: x | a{b{x}}\nb{x}: x x'),
    "templates that double": lambda: Case('start: a{"x"}\na{x}: x | a{b{x, x}}\nb{x, y}: x y'),
    "1,500 instances of a template": lambda: Case(
        lines("start: " + numbered('t{"a@"}', 1_500, " | "), "t{x}: x " + '"b" ' * 60)
    ),
    "1,500 instances among 20,000 rules": lambda: Case(
        lines("start: " + numbered('t{"a@"}', 1_500, " | "), numbered('r@: "a"', 20_000), 't{x}: x "b"')
    ),
    "templates nested in calls": lambda: Case("start: " + "a{" * 150 + '"x"' + "}" * 150 + '\na{x}: "(" x ")"'),
    "templates nested in calls, deeply": lambda: Case(
        "start: " + "a{" * 5_000 + '"x"' + "}" * 5_000 + '\na{x}: "(" x ")"'
    ),
    "a template of 10,000 parameters": lambda: Case(
        lines("start: t{" + ", ".join(['"a"'] * 10_000) + "}", "t{" + numbered("x@", 10_000, ", ") + "}: x0")
    ),
    "a template of 1,000 parameters, 100 times": lambda: Case(
        lines(
            "start: " + " | ".join("t{" + ", ".join([f'"a{i}"'] * 1_000) + "}" for i in range(100)),
            "t{" + numbered("x@", 1_000, ", ") + "}: x0",
        )
    ),
    "terminals of terminals": lambda: Case(lines("start: T0", numbered("T@: T# T#", 40), 'T40: "a"')),
    "terminals of terminals, 14 deep": lambda: Case(lines("start: T0", numbered("T@: T# T#", 14), 'T14: "a"')),
    "terminals of 2,000 terminals": lambda: Case(lines("start: T0", numbered("T@: T#", 2_000), 'T2000: "a"')),
    "a chain of 140 terminals": lambda: Case(lines("start: T0", numbered('T@: "x@" T#', 140), 'T140: "a"')),
    "a regex of a megabyte, a thousand times": lambda: Case(
        lines("start: A", "A: " + "B " * 1_000, "B: /" + "[ab]c" * 200_000 + "/")
    ),
    "a regex of 20,000 characters in 30 terminals": lambda: Case(
        lines("start: T0", numbered('T@: T# | "x@"', 30), "T30: /" + "[ab]c" * 4_000 + "/")
    ),
    "a terminal of 5,000 parts": lambda: Case(lines("start: A", "A: " + '"b" /[a-z]/ ' * 2_500)),
    "a terminal of 3,000 alternatives of regexes": lambda: Case(
        lines("start: A", "A: " + numbered("/w@[a-z]*x/", 3_000, " | "))
    ),
    "nested terminals' groups": lambda: Case("start: A\nA: " + "(" * 300 + '"a"' + ' "b")+' * 300),
    "a thousand %extend": lambda: Case(lines('start: "a"', numbered('%extend start: "b@"', 10_000))),
    "a thousand %override": lambda: Case(lines('start: "a"', numbered('%override start: "b@"', 5_000))),
    "every grammar that there is": lambda: Case(
        lines(
            'start: "a" x',
            "%import python.file_input -> x",
            "%import python3.file_input -> y",
            "%import c.translation_unit -> z",
            "%import gnu_c.translation_unit -> g",
            "%import sql.start -> w",
            "%import json.start -> v",
            "%import markdown.start -> m",
            "%import lark.start -> u",
            "%import unicode.LETTER -> T",
        )
    ),
    "Unicode's letters of Lark": lambda: Case(
        lines("start: (LETTER DIGIT)~40", "%import unicode.LETTER", "%import unicode.DIGIT")
    ),
    "a thousand imports": lambda: Case(
        lines("start: " + numbered("I@", 1_000, " | "), numbered("%import common.INT -> I@", 1_000))
    ),
    "an import of many folders": lambda: Case("start: x\n%import " + "a." * 100_000 + "x"),
    "an import that goes on": lambda: Case('start: "a"\n%import' + " " * 200_000 + "!"),
    "30,000 imports": lambda: Case('start: "a"\n' + numbered("%import a@.b", 30_000)),
    "what is not imported": lambda: Case(lines("start: x", numbered("%import nowhere@.x -> y@", 1_000))),
    "blank lines": lambda: Case('start: "a"' + "\n" * 200_000),
    "blank lines with spaces": lambda: Case('start: "a"' + " \n\t\r\n" * 100_000),
    "blank lines before each rule": lambda: Case('start: "a"\n' + ("\n" * 1_900 + 'r: "a"\n') * 50),
    "spaces": lambda: Case('start: "a"' + " " * 1_000_000),
    "spaces between": lambda: Case("start: " + ('"a"' + " " * 5_000) * 500),
    "comments": lambda: Case('start: "a"\n' + "// nothing \\\\\\\\\\\\ \" ' / ((((\n" * 20_000),
    "a name of a megabyte": lambda: Case("start: " + "x" * 2_000_000),
    "a string that never ends": lambda: Case('start: "' + "\\\\a" * 100_000),
    "slashes that close nothing": lambda: Case("start: /" + "\\/" * 200_000),
    "quotes that close nothing": lambda: Case('start: "' + '\\"' * 200_000),
    "declarations on one line": lambda: Case(
        'start: "a" D\n%declare ' + "%declare " * 100_000, {"definitions": {"D": sg.Regex("a")}}
    ),
    "groups around 10,000 rules": lambda: Case("start: " + "(" * 150 + "r " * 10_000 + ")" * 150 + '\nr: "x"'),
    "a bad regex behind ranges of all characters": lambda: Case(
        lines("start: " + numbered("A@", 100, " "), numbered("A@: /[\\0-\\U0010ffff]{@}a/i", 100), "B: /a(/")
    ),
    "strings of backslashes": lambda: Case("start: " + ('"' + "\\" * 200 + '" ') * 500),
    "special tokens by the thousand": lambda: Case("start: " + numbered("<[@]>", 3_000, " | ")),
    "schemas by the hundred": lambda: Case("start: " + " | ".join(f'%json {{"const": {i}}}' for i in range(300))),
    "a hostile schema": lambda: Case(
        'start: "a" %json '
        + json.dumps({"anyOf": [{"type": "object", "properties": {f"p{i}": {"minLength": i}}} for i in range(60)]})
    ),
    "a schema of patterns": lambda: Case(
        'start: "a" %json ' + json.dumps({"type": "string", "pattern": "(a|b)*a(a|b){25}"})
    ),
    "a nested schema": lambda: Case("start: %json " + '{"items":' * 5_000 + "{}" + "}" * 5_000),
    "definitions by the hundred": lambda: Case(
        "start: " + numbered("D@", 200, " | "),
        {"definitions": {f"D{i}": sg.Regex(f"(a|b)*a{i}(a|b){{8}}") for i in range(200)}},
    ),
    "a definition that is hostile": lambda: Case(
        'start: "x" D', {"definitions": {"D": sg.Regex("(?:a{1,50}|a{1,70}|a{1,90}b){1,40}")}}
    ),
}

# -- indentation ----------------------------------------------------------------------------------------------

_BLOCKS = """
start: (_NL | s)+
s: "k" b | N _NL
b: _NL _INDENT s+ _DEDENT
N: /[a-z]+/
"""


def _laid_out(newline: str, more: str = "", **options: Any) -> Case:
    indentation = {"newline": "_NL", "indent": "_INDENT", "dedent": "_DEDENT", **options}
    return Case(
        lines(_BLOCKS, f"_NL: {newline}", "%declare _INDENT _DEDENT", "%ignore / +/", more),
        {"postlex": sg.Indentation(**indentation)},
    )


_LAYOUTS: dict[str, Callable[[], Case]] = {
    "line ends": lambda: _laid_out(r"/(\r?\n[\t ]*)+/"),
    "line ends of many kinds": lambda: _laid_out(r"/(\r?\n[\t ]*|#[^\n]*\n[\t ]*|%(a|b)*a(a|b){6}\n)+/"),
    "line ends of subsets": lambda: _laid_out(r"/(\n[\t ]*)+((a|b)*a(a|b){10}\n +)?/"),
    "line ends, lazy": lambda: _laid_out(r"/(\n[\t ]*?x?)+?\n/"),
    "line ends with 60 columns": lambda: _laid_out(r"/(\r?\n[\t ]*)+/", columns=60),
    "line ends with all columns": lambda: _laid_out(r"/(\r?\n[\t ]*)+/", columns=1_024),
    "line ends with all columns, and subsets": lambda: _laid_out(r"/((a|b)*a(a|b){9})?(\n[\t ]*)+/", columns=1_024),
    "line ends of 300 kinds, with all columns": lambda: _laid_out(r"/(\n[a-z]{0,300}[\t ]*)+/", columns=1_024),
    "line ends with look-aheads": lambda: _laid_out(r"/(\r?\n[\t ]*)+(?![a-z]{5}x)/"),
    "line ends among 200 comments": lambda: _laid_out(r"/(\r?\n[\t ]*)+/", numbered("%ignore /!@[^\\n]*/", 200)),
    "line ends among 40 texts in quotes": lambda: _laid_out(
        r"/(\r?\n[\t ]*)+/",
        lines("%extend s: q", "q: " + numbered("Q@", 40, " | "), numbered("Q@: /q@'''[^']*(''?[^']+)*'''/", 40)),
    ),
    "blocks that do not nest": lambda: _laid_out(r"/(\r?\n[\t ]*)+/", '%extend s: "x" _INDENT | "y" _DEDENT'),
    "300 statements with blocks": lambda: _laid_out(
        r"/(\r?\n[\t ]*)+/", lines("%extend s: " + numbered('"k@" b ("e@" b)*', 300, " | "))
    ),
    "brackets by the hundred": lambda: _laid_out(
        r"/(\r?\n[\t ]*)+/",
        lines("%extend s: " + numbered("L@ s+ R@ _NL", 100, " | "), numbered('L@: "<@"\nR@: "@>"', 100)),
        opening=tuple(f"L{i}" for i in range(100)),
        closing=tuple(f"R{i}" for i in range(100)),
    ),
}

#: By name: what makes a case.
CASES: dict[str, Callable[[], Case]] = {**_MANY, **_REGEXES, **_RULES, **_LOADING, **_LAYOUTS}
