"""Attributes of rules, as llguidance has them; `re`, sets of texts and llguidance itself judge."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import pytest
from judges.guides import BYTES
from judges.lexemes import Peer, is_shortest, random_regex, walk

import structgen as sg
from structgen.budget import Budget
from structgen.errors import BudgetExceededError, DefinitionError, UnsupportedError
from structgen.runtime.index.index import Index

LETTERS = "ab;"


def compiled(grammar: str, vocabulary: sg.Vocabulary = BYTES) -> Index:
    return sg.compile(sg.Grammar(grammar), vocabulary, eager=False)


def matching(grammar: str) -> Callable[[str], bool]:
    """Whether texts are a grammar's; none is of one with a terminal that matches nothing."""
    try:
        index = compiled(grammar)
    except DefinitionError as error:
        if "matches nothing" not in str(error):
            raise
        return lambda text: False
    return lambda text: index.match(text.encode()).accepted


def texts(most: int) -> Iterator[str]:
    return ("".join(letters) for n in range(most + 1) for letters in itertools.product(LETTERS, repeat=n))


def test_random_lazy_lexemes_are_the_shortest_matches_of_re() -> None:
    random = Random(1)
    for _ in range(60):
        pattern = random_regex(random, 3)
        index = compiled(f'start: a "!"\na[lazy]: /{pattern}/')
        for text in texts(5):
            assert index.match(f"{text}!".encode()).accepted is is_shortest(pattern, text), (pattern, text)


@pytest.mark.parametrize("attribute", ["suffix", "stop"])
def test_random_ends(attribute: str) -> None:
    random = Random(2)
    for _ in range(60):
        pattern, end = random_regex(random, 2), random.choice(["a", ";", "ab", "a;", ";;"])
        most = random.choice([None, 1, 2])
        says = f", max_chars={most}" if most is not None else ""
        whole, longest = f"(?:{pattern}){re.escape(end)}", 99 if most is None else most + len(end)
        expected = {text for text in texts(5) if is_shortest(whole, text) and len(text) <= longest}
        match = matching(f'start: a "!"\na[{attribute}="{end}"{says}]: /{pattern}/')
        for text in texts(5):
            assert match(f"{text}!") is (text in expected), (pattern, end, text)


def test_captures_end_where_ends_of_several_lengths_begin() -> None:
    """There is one split into a body and an end wherever there is said to be one, by all splits that `re` knows."""
    random, judged = Random(12), 0
    while judged < 150:
        body, end = random_regex(random, 2), random_regex(random, 2)
        try:
            index = compiled(f'start: a "!"\na[capture="body", suffix=/{end}/, stop_capture="end"]: /{body}/')
        except (DefinitionError, UnsupportedError) as error:
            if "several lengths" not in str(error) and "matches nothing" not in str(error):
                raise
            continue
        for text in texts(4):
            if not text or not is_shortest(f"(?:{body})(?:{end})", text):
                continue
            splits = [
                (text[:i], text[i:])
                for i in range(len(text) + 1)
                if re.fullmatch(body, text[:i]) and re.fullmatch(end, text[i:])
            ]
            guide = sg.Guide(index)
            assert all(map(guide.advance, f"{text}!".encode())), (body, end, text)
            found = {each.name: each.data.decode() for each in guide.captures()}
            assert [(found["body"], found["end"])] == splits, (body, end, text)
            judged += 1


def test_random_texts_of_so_many_characters() -> None:
    random, alphabet = Random(3), "aé;"
    for _ in range(60):
        pattern, most = random_regex(random, 3).replace("b", "é"), random.randint(1, 3)
        match = matching(f'start: a "!"\na[max_chars={most}]: /{pattern}/')
        for text in ("".join(letters) for n in range(5) for letters in itertools.product(alphabet, repeat=n)):
            preferred = re.match(pattern, f"{text}!")
            expected = len(text) <= most and preferred is not None and preferred.end() == len(text)
            assert match(f"{text}!") is expected, (pattern, most, text)


def test_masks_are_those_of_all_continuations() -> None:
    random = Random(4)
    tokens = ["a", "b", ";", "!", "ab", "b;", ";;", ";!", "a;!", "!!", "a;b", "ba;"]
    vocabulary = sg.Vocabulary.from_bytes([*(token.encode() for token in tokens), None], eos_ids=[len(tokens)])
    for _ in range(12):
        pattern, end = random_regex(random, 2), random.choice(["a", ";", ";a"])
        index = compiled(f'start: a "!"\na[suffix="{end}"]: /{pattern}/', vocabulary)
        accepted = {f"{text}!" for text in texts(8) if is_shortest(f"(?:{pattern}){end}", text)}
        begun = {text[:length] for text in accepted for length in range(len(text) + 1)}
        for text in sorted(begun, key=lambda text: (len(text), text)):
            if len(text) > 3:
                break
            guide = sg.Guide(index)
            ids = [tokens.index(letter) for letter in text]
            assert all(map(guide.advance, ids))
            expected = [text + token in begun for token in tokens]
            assert [guide.allows(i) for i in range(len(tokens))] == expected, (pattern, end, text)


TOOLS = r"""
start: (f_foo | f_bar)* f_end
f_end: TEXT
TEXT: /(.|\n)*/
f_foo_hd[lazy]: TEXT "<f"
f_foo: f_foo_hd "=foo>" "x" "</f>"
f_bar_hd[lazy]: TEXT "<f"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</f>"
"""


@pytest.mark.parametrize(
    ("grammar", "accepted", "refused"),
    [
        ("start: a\na[lazy]: /.*<end>/", ["foo<end>"], ["foo", "foo<end>b", "<end><end>"]),
        ('start: a "b"\na[lazy]: /[0-9]*/', ["b", "1b"], ["12b"]),
        ('start: a "b"\na[lazy]: "x" "y" | "z"', ["xyb", "zb"], ["xb"]),
        ('start: a "b"\na[stop=""]: /[0-9]+/', ["1b", "12b"], ["b"]),
        ('start: a "b"\na[stop="<end>"]: /.*/', ["foo<end>b"], ["foob", "foo<end><end>b"]),
        ('start: a "<end>"\na[stop="<end>"]: /.*/', ["foo<end>"], ["foo<end><end>", "foo"]),
        ('start: a "ab" "c"\na[stop="ab"]: /[0-9a]*/', ["1abc", "aabc"], ["1ababc"]),
        ('start: a "abc"\na[stop="ab"]: /[0-9a]*/', ["1abc"], ["1ababc"]),
        ('start: a "a" "bc"\na[stop="ab"]: /[0-9a]*/', ["1abc"], ["1ababc"]),
        ('start: a c\nc: "ab" "c" | "ab" "d"\na[stop="ab"]: /[0-9a]*/', ["1abc", "abd"], ["1ababc"]),
        ('start: a "ab"+ "c"\na[stop="ab"]: /[0-9a]*/', ["1abc", "1ababc"], ["1c"]),
        ('start: a b\na[lazy]: "xy"\nb[suffix=/;|,/]: /\\w+/', ["xyab;", "xya,"], ["xy;", "xya;;"]),
        ('start: a b\na[suffix=END]: /\\w*/\nEND: ","\nb[ suffix = "." , capture ] : /\\w*/', ["a,b."], ["a.b,"]),
        ('start: a "b"\n?a[lazy]: /x+/', ["xb"], ["xxb"]),
        # Strings and regexes elsewhere are not those with attributes, though they are written the same.
        ('start: a "," /[0-9]+/ "," "foo" b\na[suffix=";"]: /[0-9]+/\nb[suffix="."]: "foo"',
         ["12;,34,foofoo."], ["12;,34;,foofoo.", "12;,34,foo.foo."]),
        ('start: a SEMI NUM ";" /[0-9]+/\na[suffix=";"]: /[0-9]+/\nSEMI: ";"\nNUM: /[0-9]+/',
         ["1;;12;12"], ["1;12;12"]),
        (TOOLS, ["", "abc", "ab<f=foo>x</f>", "a<f=bar>12</f>x", "a<f=foo>x</f>b<f=bar>1</f>"],
         ["a<f", "a<f=bar>x</f>"]),
        ('start: a b\na[lazy]: /[a-z]+;/ & ~/x.*/\nb[suffix=END]: /.*/ & ~/.*y.*/\nEND: "."',
         ["ab;c."], ["xb;c.", "a;y."]),
        ('start: a b\na[capture]: "x"\nb[temperature=0.5]: /[0-9]+/', ["x12"], ["x"]),
    ],
)  # fmt: skip
def test_grammars(grammar: str, accepted: list[str], refused: list[str]) -> None:
    index = compiled(grammar)
    for text in [*accepted, *refused]:
        assert index.match(text.encode()).accepted is (text in accepted), text


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("a[soft]: /x/", "there is no attribute soft"),
        ("a[lazy=1]: /x/", "lazy is given 1"),
        ("a[stop]: /x/", "stop is given nothing"),
        ('a[stop="a", suffix="b"]: /x/', "not both"),
        ('a[stop_capture="b"]: /x/', "stop_capture"),
        ("a[lazy, lazy]: /x/", "twice"),
        ("a[-]: /x/", "no attribute"),
        ("A[lazy]: /x/", "can't be"),
        ("a[lazy]: /x(?=y)/", "looks ahead"),
        ("a[capture, suffix=/;+x/]: /x+/", "several lengths"),
        ("a[capture, suffix=END]: /x+/\nEND: /y/ & /./", "several lengths"),
        ("a[max_chars=3, suffix=/;/]: /x/", "no string"),
    ],
)
def test_what_is_refused(rule: str, what: str) -> None:
    name = rule[0]
    with pytest.raises(DefinitionError, match=what) as caught:
        compiled(f"start: {name}\n{rule}")
    assert caught.value.where


def test_random_rules_within_lexemes() -> None:
    """By sets of texts: what `re` matches whole, in so many characters, or up to the first end; put together."""
    random, all_texts, found = Random(4), [*texts(5)], 0
    for _ in range(40):
        one, other, most = random_regex(random, 2), random_regex(random, 2), random.randint(1, 5)
        few, end = random.choice([None, 1, 2]), random.choice([None, ";", "a"])
        said = [f"max_chars={few}"] if few is not None else []
        said += [f'suffix="{end}"'] if end is not None else []
        bodies = {text for text in all_texts if re.fullmatch(other, text) and (few is None or len(text) <= few)}
        second = bodies if end is None else {text + end for text in bodies}
        if end is not None:
            second = {text for text in second if not any(text[:n] in second for n in range(len(text)))}
        first = {text for text in all_texts if re.fullmatch(one, text)} | second
        expected = {a + b for a in first for b in {"", *second} if 0 < len(a + b) <= most}
        attributes = f"[{', '.join(said)}]" if said else ""
        grammar = f"""
            start: a? "!"
            a[max_chars={most}]: b c?
            c{attributes}: /{other}/
            b: /{one}/
             | c
        """
        index = sg.compile(sg.Grammar(grammar, matches="longest"), BYTES, eager=False)
        for text in filter(None, all_texts):
            assert index.match(f"{text}!".encode()).accepted is (text in expected), (grammar, text)
        found += len(expected)
    assert found > 100


@pytest.mark.parametrize(
    "rules",
    [
        'a[max_chars=3]: b\nb: "x" | "(" b ")"',
        'a[max_chars=3]: b\nb[capture]: "x"',
        'a[max_chars=3]: b\nb: "x"\n%ignore " "',
        'a[max_tokens=3]: b\nb[max_tokens=2]: "x"',
        'a[max_chars=3]: b\nb[temperature=0.5]: "x"',
        'a[max_chars=3]: b\nb: "x" -> c',
        'a[max_chars=3]: b{"x"}\nb{t}: t',
        "a[max_chars=3]: b\nb[lazy]: /x*/",
        'a[max_chars=3]: b "!"\nb[stop="!"]: /x*/',
    ],
)
def test_rules_that_no_terminal_says_are_refused(rules: str) -> None:
    with pytest.raises(DefinitionError, match=r"aren't allowed inside terminals|does not load"):
        compiled(f"start: a\n{rules}")


def test_no_characters_are_the_empty_text() -> None:
    assert matching("start: a\na[max_chars=0]: /a*/")("")
    match = matching('start: a "!" a\na[max_chars=0]: T\nT: /(a|b)*/')
    assert [text for text in ("", "!", "a!", "!b") if match(text)] == ["!"]
    with pytest.raises(DefinitionError, match="matches nothing"):
        compiled('start: a "!"\na[max_chars=0]: /a+/')


def test_a_stop_that_may_be_there_twice_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="begins with its stop"):
        compiled('start: b "ab"\nb: a\na[stop="ab"]: /x*/')


@pytest.mark.parametrize(
    "grammar",
    [
        "start: a\na[max_chars=999999999]: /[a-z]*/",
        "start: r0\n" + "".join(f"r{i}[capture]: /a/\n" for i in range(20_000)),
        "start: "
        + " ".join(f"r{i}" for i in range(3000))
        + "\n"
        + "".join(f'r{i}[stop="ab"]: /a{i}x*/ \n' for i in range(3000)),
    ],
    ids=["characters", "captures", "stops"],
)
def test_large_ones_keep_to_the_budget(grammar: str) -> None:
    with pytest.raises(BudgetExceededError):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False, budget=Budget(seconds=0.3))


# -- llguidance ---------------------------------------------------------------------------------------------------


def allowed(guide: sg.Guide) -> list[int]:
    return [token for token in range(257) if guide.allows(token)]


def random_grammar(random: Random) -> str:
    parts = random.choices(["p", "q", '"x"', "(p | q)", "q*"], k=random.randint(1, 3))
    rules = [f'start: {" ".join(parts)} "!"']
    for name, letter in ("p", "x"), ("q", "y"):
        attribute = random.choice(["lazy", 'suffix=";"', 'stop=";"', 'suffix="ab"', 'stop=""', "temperature=0.5"])
        rules.append(f'{name}: "{letter}" {name}_text\n{name}_text[{attribute}]: /{random_regex(random, 2)}/')
    return "\n".join(rules)


@pytest.mark.nightly
def test_texts_are_those_of_llguidance() -> None:
    random, judged = Random(5), 0
    for _ in range(150):
        grammar = random_grammar(random)
        try:
            index = sg.compile(sg.Grammar(grammar, strict=True), BYTES, eager=False)
        except sg.Error:  # ambiguous
            continue
        for _ in range(4):
            guide, peer = sg.Guide(index), Peer(grammar)
            ours = walk(partial(allowed, guide), guide.advance, random)
            if ours is not None:
                assert all(map(peer.advance, ours)), (grammar, ours)
                assert peer.matcher.is_accepting(), (grammar, ours)
            peer = Peer(grammar)
            theirs = walk(peer.allowed, peer.advance, random)
            if theirs is not None:
                assert index.match(theirs).accepted, (grammar, theirs)
            judged += (ours is not None) + (theirs is not None)
    assert judged > 100


def random_tags(random: Random) -> str:
    """Free text up to one of several tags, each with a body, and free text at the end."""
    tags = random.sample(["ab", "x", "xy", ";;", "ba", "axb"], random.randint(2, 3))
    rules = [f'start: ({" | ".join(f"f{i}" for i in range(len(tags)))})* (TEXT | "!")', "TEXT: /[abxy;]+/"]
    for i, tag in enumerate(tags):
        attribute, end = random.choice([("lazy", f' "{tag}"'), (f'suffix="{tag}"', "")])
        rules.append(f'f{i}: f{i}_head "{random.choice("abxy;")}" "!"\nf{i}_head[{attribute}]: TEXT{end}')
    return "\n".join(rules)


def test_where_a_lazy_lexeme_ends_others_do_as_in_llguidance() -> None:
    random, judged = Random(6), 0
    for _ in range(25):
        grammar = random_tags(random)
        index = sg.compile(sg.Grammar(grammar, ambiguity="all"), BYTES, eager=False)
        for _ in range(15):
            guide, peer = sg.Guide(index), Peer(grammar)
            for token in random.choices(b"aabxy;!", k=12):
                assert guide.allows(token) == (token in peer.allowed()), (grammar, token)
                if guide.advance(token):
                    assert peer.advance(token)
                judged += 1
            assert guide.is_accepting() == peer.matcher.is_accepting(), grammar
    assert judged > 1000


def test_free_text_up_to_one_tag_holds_no_other() -> None:
    matches = matching("""
        start: (call | query)* TEXT
        call: call_head /[a-z]+/ "</call>"
        call_head[lazy]: TEXT "<call>"
        query: query_head /[0-9]+/ "</query>"
        query_head[lazy]: TEXT "<query>"
        TEXT: /.+/
    """)
    assert matches("a<query>1</query>b<call>f</call>c")
    assert not matches("a<query>f<call>f</call>c")
    assert not matches("a<call>1<query>1</query>c")


def test_regexes_over_several_lines_hold_no_attributes() -> None:
    matches = matching("start: A\nA: /(?:\nx[ab]:\n)+/x")
    assert [matches(text) for text in ("xa:", "xa:xb:", "xlazy:")] == [True, True, False]


@pytest.mark.parametrize("end", ["\n", "\r\n", " // with a comment\n", "  # another\r\n", ""])
def test_definitions_alone_in_rules_may_be_tempered(end: str) -> None:
    grammar = sg.Grammar(f"start: x\nx[temperature=0.5]: @digit{end}", definitions={"DIGIT": sg.Regex("[0-9]")})
    assert sg.compile(grammar, BYTES, eager=False).match(b"5").accepted


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("[a-z]{3}", "[0-9]{2}", "abc:12\nxyz:34\n"),
        ("ab|abc", "[0-9]{1,2}", "abc:12\nab:3\n"),
        ("[a-z]+", "-|--", "a:--\nbc:-\n"),
        ('"[a-z]*"', "1|12|123", '"ab":123\n"":1\n'),
    ],
)
def test_lexemes_that_cannot_go_on_are_over(key: str, value: str, text: str) -> None:
    """Temperatures and captures behind each byte are those of XGrammar's EBNF, which has no lexer."""
    rules = 'line[capture]: key ":" value\nkey[capture, temperature=0.7]: K\nvalue[temperature=0.2, capture]: V'
    lark = f'start: (line "\\n")+\n{rules}'.replace("K", f"/{key}/").replace("V", f"/{value}/")
    ebnf = re.sub(r"(?m)^(\w+\[.*?\]):", r"\1 ::=", f'root ::= (line "\\n")+\n{rules}')
    ebnf = ebnf.replace("K", f"Regex({json.dumps(key)})").replace("V", f"Regex({json.dumps(value)})")
    definitions = sg.Grammar(lark, matches="longest"), sg.Ebnf(ebnf)
    guides = [sg.Guide(sg.compile(each, BYTES, eager=False)) for each in definitions]
    for at in range(len(text) + 1):
        ours, theirs = guides
        assert ours.temperature == theirs.temperature, text[:at]
        assert ours.captures() == theirs.captures(), text[:at]
        assert at == len(text) or all(guide.advance(ord(text[at])) for guide in guides)
