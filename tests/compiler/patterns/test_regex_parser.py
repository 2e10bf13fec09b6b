r"""The regex parser, judged by `re`: which patterns are malformed, and which texts a tree matches.

A tree is run by the matcher below, which follows the definitions in `structgen.compiler.patterns.syntax` word
for word: a node, started at a position, ends at a set of positions. It is slow, recursive and has no state to
get wrong.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import draws

from structgen.budget import Budget, Meter
from structgen.compiler.patterns.parser import parse
from structgen.compiler.patterns.syntax import EMPTY, Alternate, Chars, Concat, Look, Node, Repeat
from structgen.errors import BudgetExceededError, DefinitionError, UnsupportedError


def fullmatch(tree: Node, text: str) -> bool:
    @cache
    def ends(node: Node, start: int) -> frozenset[int]:
        if isinstance(node, Chars):
            inside = start < len(text) and any(low <= ord(text[start]) <= high for low, high in node.ranges)
            return frozenset({start + 1} if inside else ())
        if isinstance(node, Concat):
            reached = frozenset({start})
            for part in node.parts:
                reached = all_ends(part, reached)
            return reached
        if isinstance(node, Alternate):
            return frozenset().union(*(ends(option, start) for option in node.options))
        if isinstance(node, Repeat):
            return repeat(node, start)
        return frozenset({start} if holds(node, start) != node.negate else ())

    def all_ends(node: Node, starts: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(ends(node, start) for start in starts))

    def repeat(node: Repeat, start: int) -> frozenset[int]:
        reached = frozenset({start})
        for _ in range(node.min):
            reached = all_ends(node.item, reached)
        seen = reached
        for _ in range(len(text) + 1 if node.max is None else node.max - node.min):
            seen |= all_ends(node.item, seen)
        return seen

    def holds(look: Look, here: int) -> bool:
        if look.behind:
            return any(here in ends(look.item, start) for start in ([0] if look.whole else range(here + 1)))
        return len(text) in ends(look.item, here) if look.whole else bool(ends(look.item, here))

    return len(text) in ends(tree, 0)


def agree(pattern: str, texts: Iterator[str] | list[str], flags: int = 0) -> None:
    """Assert that the tree of a pattern matches what `re` matches."""
    tree = parse(pattern, flags)
    judge = compile_quietly(pattern, flags)
    for text in texts:
        assert fullmatch(tree, text) == bool(judge.fullmatch(text)), f"{pattern!r}, flags {flags}, on {text!r}"


def compile_quietly(pattern: str, flags: int = 0) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern, flags)


def texts_over(alphabet: str, longest: int) -> Iterator[str]:
    return ("".join(letters) for length in range(longest + 1) for letters in product(alphabet, repeat=length))


def nodes(tree: Node) -> Iterator[Node]:
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Concat):
            todo.extend(node.parts)
        elif isinstance(node, Alternate):
            todo.extend(node.options)
        elif isinstance(node, Repeat | Look):
            todo.append(node.item)


# --- languages --------------------------------------------------------------------------------------------


def rows(table: str) -> list[str]:
    """The lines of a table that is written as one text."""
    return table.strip("\n").split("\n")


OVER_AB = rows(r"""
a
ab|ba|
(a|b)*
(?:)
()
|
a||b
(|a)+
(a|)*b
(?:a?){2,3}b
(a*)*
(a*b*)*
(?:a*?)+?
a{0}
a{2}
a{2,}
a{,2}
a{1,2}?
a{,}
a{01,002}
a+?b??
(?P<x>a)(?P<y>b)?
(?#comment)a(?#another (one)b
(?#with \) inside)a
a(?#)*b
(?i)A
(?i:A)b
(?i)(?s)a.B
(?-i:a)B
(?i:a(?-i:b))
(?u:a)|(?a:b)
a(?=b)b
(?=a)a*
(?!a)b*
a(?!b).*
.*(?<=a)
.*(?<!a)
(?<=a)b|(?<!a)b
(?<!^)a
a*(?=b*\Z)b*
(?=(?:ab)*$)[ab]*
(?!.*aa)(?!.*bb)[ab]*
(?=a)*a
(?!a)?a
(?=a){2}a
(?:(?=a)a|b(?!b))+
(?<![ab])a|b
(?<=\Ab)a|a
(?=)a(?!)|b
^a
^^a$$
a$b
a^b
(?:^|a)b
(?:^a)*
\Aa\Z
a\Z|b
\ba\b
a\b
\Ba
a\Bb\b
\B
\b
\b|\B
(?:\B)*
(?:\b)*a
[a]
[^a]
[ab]{2}
[a-b]
[]a]
[^]a]
[a-]
[-a]
[a\-b]
[^^]
[\x61-\x62]
[\141]
[a&&b]
[[a]
[\b]|a
\141\142
\x61\u0062
\U00000061
\N{LATIN SMALL LETTER A}b
[\N{LATIN SMALL LETTER A}-\N{LATIN SMALL LETTER B}]
.
.*b
""")


@pytest.mark.parametrize("pattern", OVER_AB)
def test_language_over_a_and_b(pattern: str) -> None:
    agree(pattern, texts_over("ab", 5))
    agree(pattern, texts_over("aAB", 3), re.IGNORECASE)


CHARACTERS = [*"azZ0_- \t\n\v\x00\x08\x1c\x85\xa0éßſKİı٣²Ⅷǅ\u2028一😀\U0010ffff][^\\{S"]

ONE_CHARACTER = rows(r"""
\d
\D
\s
\S
\w
\W
.
[\d]
[^\d]
[\w\s]
[^\w\s]
[\W\d]
[^\W\d]
[\S_]
[\s\S]
[^\s\S]
[\w-]
[-\w]
[^\w-]
[\w\-z]
k
s
i
[k]
[^k]
[s-t]
[^s-t]
[i]
[^i]
[\Wk]
[^\Wk]
[\d\Ws]
ß
ı
\u0130
[\u0130]
[K]
[é-ö]
[^É]
\xc9
[\x00-\x1f]
[\a\b\f\n\r\t\v\\]
\a
\f
\n
\r
\t
\v
\\
\0
\07
\010
[\0-\10]
\]
\[
\^
\-
\_
\{
[\]]
[\^]
[[-\]]
[^\]\[]
\é
[\é]
""")


@pytest.mark.parametrize("pattern", ONE_CHARACTER)
def test_one_character(pattern: str) -> None:
    for flags in (0, re.ASCII, re.IGNORECASE, re.IGNORECASE | re.ASCII, re.DOTALL | re.UNICODE):
        agree(pattern, CHARACTERS, flags)
    agree(f"(?a:{pattern})|(?i:{pattern})", CHARACTERS)
    agree(f"(?u:{pattern})|(?a-i:{pattern})", CHARACTERS, re.ASCII | re.IGNORECASE)


LINES = rows(r"""
^a
a$
^
$
^$
a\nb
(?m)^b$
a$\n
a$\n?b
a\Z
a$\n$
(?m:a$)\n^
[^a]
a.b
(?s:a.)b?
(?m:^)b|a(?s:.*)
(?:^[ab]*\n?)*
(?:[ab]*$\n?)*
\A.*$\s*
^^\n$$
""")


@pytest.mark.parametrize("pattern", LINES)
@pytest.mark.parametrize("flags", [0, re.MULTILINE, re.DOTALL, re.MULTILINE | re.DOTALL])
def test_anchors_and_lines(pattern: str, flags: int) -> None:
    agree(pattern, texts_over("ab\n", 4), flags)


@pytest.mark.parametrize("pattern", [r"\b.*", r".*\b", r".\b.", r".\B.", r"\B.\B", r"(?:\b.)*", r"(?a:.\b.)|(?u:.\B.)"])
@pytest.mark.parametrize("flags", [0, re.ASCII])
def test_word_boundaries(pattern: str, flags: int) -> None:
    agree(pattern, texts_over("a_é-٣", 3), flags)


BRACES = rows(r"""
{
a{
a{,
x{a}
a{}
{}
a{1
a{1,
a{1,2
a{1;2}
a{-1}
a{ 1}
a{1,2,3}
a{,}
}
a}
{1
{,a}
a{{2}
a{2}}
{{2}
a{1a}
a{a,1}
a{٣}
a{{,}
a\{2}
a{2\}
a{2\,}
""")


@pytest.mark.parametrize("pattern", BRACES)
def test_braces_that_are_no_quantifier(pattern: str) -> None:
    unescaped = pattern.replace("\\", "")
    texts = [unescaped, pattern, "", "a", "aa", "aaa", "{", "{{", "{{{", "a{", "a{{", "a{{{", "aa}", "{}"]
    agree(pattern, texts)
    agree(pattern, texts, re.VERBOSE)


VERBOSE = [
    "a b", "a # comment\nb", "a #", "a # \\\nb\nb", "a\\ b", "a\\#b", "[ #]a", "a +", "a {2}",
    "( a | b ) *", "a# (\n|b", "(?-x: a)b", "(?x: a b)", "\ta\v\fb\r\n", "a\x1cb", "a\xa0b", "a (?#x y) ?",
    "[^ ] a", "\\  a",
]  # fmt: skip


@pytest.mark.parametrize("pattern", VERBOSE)
def test_verbose_mode(pattern: str) -> None:
    texts = ["", "a", "b", "A", " a", "a b", "ab", "abb", "aa", "a#b", "#a", "ba", "abab", " ab", "a\x1cb", "a\xa0b"]
    agree(pattern, texts, re.VERBOSE)
    agree("(?x)" + pattern, texts)
    agree(f"(?x:{pattern}\n)", texts)


def test_verbose_mode_lets_flags_come_late() -> None:
    agree(" (?i)a", ["a", "A", " a"], re.VERBOSE)
    agree("#c\n(?i)(?#d)(?s).", ["a", "\n", " a"], re.VERBOSE)


VARIABLE_LOOK_BEHIND = rows(r"""
(?<=a|bb)b*|a(?<=a|bb)b*
.*(?<=ab*)
.*(?<!ab*)
b*(?<=ba*)b
a*(?<=(?=b)|aa)b*
(?:a(?<!a{2,})b?)*
[ab]*(?<=a.?)b
.*(?<=(?<!a)b+)
.*(?<=^a*)b*
(?<!a*)b|a
""")


CONDITIONALS = rows(r"""
(?(?=a)a*|b*)
(?(?!a)b|a*)b?
[ab]*(?(?<=a)b|a)
(?(?<!b)a)b*
(?(?=ab)|b*)[ab]*
(?:(?(?=b)b{2}|a))*
(?(?=a)(?(?=ab)ab|a)|b+)
(?(?=a|bb)[ab]{2}|(?:b|ba)*)
(?(?=b)|)a*
(?(?=.*b$)[ab]*)
(?i:(?(?=A)ab|b))
""")


@pytest.mark.parametrize("pattern", [*VARIABLE_LOOK_BEHIND, *CONDITIONALS])
def test_look_behind_of_any_width_and_conditionals_on_look_around(pattern: str) -> None:
    """`re` wants a fixed width, and has no such conditionals; the `regex` package judges here."""
    regex = pytest.importorskip("regex")
    tree = parse(pattern)
    for text in texts_over("ab", 5):
        assert fullmatch(tree, text) == bool(regex.fullmatch(pattern, text)), text


@pytest.mark.parametrize(
    ("pattern", "column"), [("(?(?=a)*b|c)", 8), ("b(?(?=a)b|c|d)", 2), ("(?(?=a)ab", 1), ("(?(?=a|b", 3)]
)
def test_malformed_conditional(pattern: str, column: int) -> None:
    regex = pytest.importorskip("regex")
    with pytest.raises(regex.error):
        regex.compile(pattern)
    with pytest.raises(DefinitionError) as caught:
        parse(pattern)
    assert caught.value.where == f"column {column}"


PROPERTIES = rows(r"""
\p{L}
\pL
\P{L}
\PL
\p{Lu}
[\p{Lu}\d]
[^\p{Lu}\d]
[\P{Lu}]
\p{Letter}
[\pN-]
\p{Uppercase_Letter}
\p{LC}
\p{Nd}
\p{Zs}
(?i)\p{Lu}
(?i)\P{Ll}
(?i)\p{Lt}
(?i)[\p{Lu}_]
(?i)\p{L}
""")


@pytest.mark.parametrize("pattern", PROPERTIES)
def test_general_categories(pattern: str) -> None:
    """Judged by the `regex` package, on characters that have been assigned for long."""
    regex = pytest.importorskip("regex")
    tree = parse(pattern)
    for char in CHARACTERS:
        assert fullmatch(tree, char) == bool(regex.fullmatch(pattern, char)), char


def test_lone_surrogates_match_nothing() -> None:
    for pattern in ("\ud800", r"\udfff", "[\ud800]", r"[\ud800-\udfff]", "(?i)\ud800"):
        tree = parse(pattern)
        assert isinstance(tree, Chars)
        assert tree.ranges == ()
    spanning = parse(r"[\ud7ff-\ue000]")
    assert isinstance(spanning, Chars)
    assert spanning.ranges == ((0xD7FF, 0xD7FF), (0xE000, 0xE000))


def test_capitals_past_the_basic_plane_in_a_class_of_several() -> None:
    """Without case, `re` missed them there until it was mended (gh-126505, in 3.14 and late versions before).

    It has always matched the capital alone, and in a range. The tree matches it in all three.
    """
    capital = "\U00010400"
    for pattern in (capital, f"[{capital}-\U00010401]"):
        agree(pattern, [capital, capital.lower(), "a"], re.IGNORECASE)
    tree = parse(f"[{capital}a]", re.IGNORECASE)
    assert all(fullmatch(tree, char) for char in (capital, capital.lower(), "a", "A"))


# --- random languages -------------------------------------------------------------------------------------


def joined(pieces: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(pieces, max_size=3).map("".join)


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = ["({})", "(?:{})", "(?i:{})", "(?s-i:{})", "(?m:{})", "(?a:{})", "(?=(?:{}))", "(?!{})", "(?x: {} )"]
    quantifiers = ["*", "+", "?", "{2}", "{1,}", "{,2}", "{0,1}", "*?", "+?", "??", "{1,2}?"]
    group = st.builds(str.format, st.sampled_from(groups), inner)
    quantified = st.builds("(?:{}){}".format, inner, st.sampled_from(quantifiers))
    options = st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format)
    return joined(group | quantified | options)


ATOMS = [
    "a",
    "b",
    "A",
    "_",
    ".",
    r"\w",
    r"\W",
    r"\s",
    r"\n",
    "[ab]",
    "[^a]",
    "[a-b_]",
    r"[^\w\n]",
    "^",
    "$",
    r"\A",
    r"\Z",
]
ATOMS += [r"\b", r"\B", "(?<=a)", "(?<!b)", r"(?<=\n)", r"(?<=^)", "(?<=a|b)", "a*", "b+?", "a{2}", "[ab]?"]

patterns = st.recursive(joined(st.sampled_from(ATOMS)), wrapped, max_leaves=8)
short_texts = st.text("abA_\n ", max_size=5)
any_flags = st.sets(st.sampled_from([re.A, re.I, re.M, re.S])).map(lambda flags: sum(map(int, flags)))


@settings(max_examples=draws(300))
@given(patterns, any_flags, st.lists(short_texts, min_size=1, max_size=8))
def test_random_patterns(pattern: str, flags: int, texts: list[str]) -> None:
    agree(pattern, texts, flags)


# --- malformed patterns -----------------------------------------------------------------------------------


def verdict_of_re(pattern: str, flags: int) -> str:
    """``""`` where `re` compiles the pattern, else its complaint."""
    try:
        compile_quietly(pattern, flags)
    except (re.error, OverflowError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


def verdict(pattern: str, flags: int) -> DefinitionError | None:
    """None where the parser accepts the pattern, else its error."""
    try:
        parse(pattern, flags)
    except DefinitionError as error:
        return error
    return None


def check_verdict(pattern: str, flags: int = 0) -> None:
    """Assert that a pattern is malformed here exactly when it is for `re`; what is refused is left aside."""
    complaint, error = verdict_of_re(pattern, flags), verdict(pattern, flags)
    if error is None:
        beyond = "look-behind" in complaint or r"\p" in complaint.lower() or "(?(?" in pattern
        assert not complaint or beyond, f"{pattern!r}: {complaint}"
    elif not isinstance(error, UnsupportedError):
        # Python 3.10 only warns of late flags, and "t" was an undocumented flag up to 3.12.
        late_flags = sys.version_info < (3, 11) and "flags not at the start" in error.what
        template_flag = sys.version_info < (3, 13) and re.search(r"\(\?[a-z-]*t", pattern)
        assert complaint or late_flags or template_flag, f"{pattern!r} is fine for re: {error}"
        assert re.fullmatch(r"column [1-9]\d*", error.where)
        assert int(error.where.split()[1]) <= len(pattern) + 1


TOKENS = [
    *"ab09|()[]{}*+?.^$\\-,:=!<>P#imsxau \n_é", "(?", "(?P<", "(?:", "(?<=", "(?i", "(?P=", "(?#", "(?-",
    "[^", "[a-", "{1,", "{2}", "{,3}", "*?", "||", "()", "(?m)", "(?x)", "x>", r"\x4", r"\u004",
    r"\U0010ffff", r"\N{DIGIT ONE}", r"\N{", r"\1", r"\8", r"\07", r"\40", r"\777", r"\b", r"\Z", r"\A",
    r"\d", r"\w", r"\]", r"\)",
]  # fmt: skip

token_soup = st.lists(st.sampled_from(TOKENS), max_size=12).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    pattern, token = draw(patterns), draw(st.sampled_from([*TOKENS, ""]))
    at = draw(st.integers(0, len(pattern)))
    return f"{pattern[:at]}{token}{pattern[at + draw(st.integers(0, 2)) :]}"


@settings(max_examples=draws(400))
@given(token_soup | mutated(), st.sampled_from([0, 0, int(re.X), int(re.A)]))
@example(r"(?#\)", 0)
@example("a#\\", int(re.X))
@example("(?u)", int(re.A))
@example("(?a)(?u)", 0)
@example("(?i)*", 0)
@example("(?:)(?i)", 0)
@example("|(?i)", 0)
def test_random_strings_are_malformed_as_in_re(pattern: str, flags: int) -> None:
    check_verdict(pattern, flags)


# The column where the error is, and the pattern.
MALFORMED = rows(r"""
1 (
2 a(b
4 (a))
1 )
3 (?
4 (?P
4 (?<
1 (?P<
1 (?P<n
1 (?P<>a)
1 (?P<1>a)
9 (?P<n>a)(?P<n>b)
1 (?P=n)
1 (?Px)
1 (?<n>a)
1 (?q)
1 (?)
1 (?#
1 (?i
1 (?i-)
1 (?i-:a)
1 (?-i)
1 (?i-i:a)
1 (?au:a)
1 (?-a:b)
2 a(?i)
9 (?i)(?a)(?u)
1 [
2 a[b
1 []
1 [^]
1 [a-
1 [a\
2 [b-a]
2 [a-\d]
2 [\d-a]
2 [\A]
2 [\8]
2 [\400]
1 *
1 +a
3 a|*
2 (*a)
2 ^*
2 $+
3 \b?
3 \Z{2}
3 a**
4 a*??
5 a{2}{3}
1 {,}
2 a{2,1}
2 a{4294967295}
2 a{0,4294967295}
2 \
1 \q
3 \é\Q
1 \x4
1 \u123
1 \U0011ffff
1 \U0000
3 \N
1 \N{}
1 \N{NO SUCH NAME}
1 \N{DIGIT ONE
1 \477
1 \1
4 (a)\2
3 \p
1 \p{
1 \p{}
""")


@pytest.mark.parametrize("row", MALFORMED)
def test_malformed_patterns_name_their_column(row: str) -> None:
    column, pattern = row.split(" ", 1)
    if sys.version_info >= (3, 11) or pattern != "a(?i)":
        assert verdict_of_re(pattern, 0)
    with pytest.raises(DefinitionError) as caught:
        parse(pattern)
    assert type(caught.value) is DefinitionError
    assert caught.value.where == f"column {column}"


def test_counts_of_many_digits() -> None:
    with pytest.raises(DefinitionError, match="too large"):
        parse(f"a{{{'9' * 100_000}}}")
    tree = parse(f"a{{{'0' * 100_000}7}}")
    assert isinstance(tree, Repeat)
    assert (tree.min, tree.max) == (7, 7)


def test_flags_that_exclude_each_other() -> None:
    with pytest.raises(DefinitionError, match="ASCII and UNICODE"):
        parse("a", re.ASCII | re.UNICODE)


# The column, a word of the message, and the pattern.
REFUSED = rows(r"""
4 backreference (a)\1
9 backreference (?P<n>a)(?P=n)
5 conditional (a)?(?(1)b|c)
10 conditional (?P<n>a)?(?(n)b)
1 recursion (?R)
2 recursion a(?1)
1 recursion (?&n)
1 recursion (?P>n)
1 atomic (?>a)
2 possessive a*+
2 possessive a++
2 possessive a?+
2 possessive a{1,2}+
1 locale (?L)a
1 locale (?L:a)
1 \X \X
2 \R a\R
1 \G \Ga
2 \K a\Kb
1 branch (?|a|b)
1 'Greek' \p{Greek}
2 'Script=Greek' [\p{Script=Greek}]
1 'x' \px
""")


@pytest.mark.parametrize("row", REFUSED)
def test_refused_constructs(row: str) -> None:
    column, word, pattern = row.split(" ", 2)
    with pytest.raises(UnsupportedError) as caught:
        parse(pattern)
    assert word in caught.value.what
    assert caught.value.where == f"column {column}"
    assert caught.value.remedy


# --- depth and size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("opening", ["(", "(?:", "(?=", "(?<!", "(?i:", "(?P<n{}>"])
def test_depth_is_bounded(opening: str) -> None:
    def nested(depth: int) -> str:
        return "".join(opening.format(i) for i in range(depth)) + "a" + ")" * depth

    assert sum(isinstance(node, Chars) for node in nodes(parse(nested(1000)))) == 1
    for pattern in (nested(1001), nested(100_000)):
        with pytest.raises(BudgetExceededError, match=r"depth=1,000.*Budget\(depth="):
            parse(pattern)
    meter = Meter(Budget(depth=3))
    assert parse(nested(3), meter=meter)
    with pytest.raises(BudgetExceededError, match="depth=3"):
        parse(nested(4), meter=meter)


def test_depth_counts_open_groups_only() -> None:
    tree = parse("(?:a)" * 50, meter=Meter(Budget(depth=1)))
    assert isinstance(tree, Concat)
    assert len(tree.parts) == 50


# --- the shape of the tree --------------------------------------------------------------------------------


def test_equal_characters_share_a_node() -> None:
    tree = parse(r"aba\x61", re.IGNORECASE)
    assert isinstance(tree, Concat)
    a, b, *rest = tree.parts
    assert a is not b
    assert all(node is a for node in rest)


def test_trivial_nodes_are_collapsed() -> None:
    assert isinstance(parse("((?:(a)))"), Chars)
    assert parse("") is EMPTY
    assert parse("(?:)") is EMPTY
    assert isinstance(parse("a|b"), Alternate)


def test_quantifiers_and_look_around_know_their_column() -> None:
    tree = parse(r"ab{2,3}?(?<!c)\b")
    assert isinstance(tree, Concat)
    _, repeat, look, boundary = tree.parts
    assert isinstance(repeat, Repeat)
    assert (repeat.min, repeat.max, repeat.column) == (2, 3, 3)
    assert isinstance(look, Look)
    assert (look.behind, look.negate, look.whole, look.column) == (True, True, False, 9)
    assert {node.column for node in nodes(boundary) if isinstance(node, Look)} == {15}


def test_large_counts_are_kept_as_numbers() -> None:
    tree = parse("a{4294967294}")
    assert isinstance(tree, Repeat)
    assert (tree.min, tree.max) == (4294967294, 4294967294)
    unbounded = parse("a{7,}")
    assert isinstance(unbounded, Repeat)
    assert unbounded.max is None
