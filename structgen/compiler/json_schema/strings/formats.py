r"""The formats of JSON Schema as regular languages.

A format's language is written here as a pattern of structgen's own `Regex` syntax, close to the grammar of its RFC,
and becomes an automaton over UTF-8 the first time that it is asked for. docs/guide/json_formats.md has the table of
what each accepts.

Two parties say what a format is: its RFC and the validators that people run. Nothing is accepted that either of
them refuses, so a format is the *intersection* of its RFC and of what Python's ``jsonschema`` checks with
``jsonschema[format]`` installed; but leap seconds, the year 0000 and all of URI templates, which the RFCs have in so
many words, and validators miss. Three formats are not regular, or only with an automaton that nobody can afford, and
are narrower than that: ``idn-hostname``, ``idn-email`` and ``regex``. What is above them says how.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

from ....budget import Budget, Meter
from ...automata.dfa import Dfa, intersect
from ...patterns.lower import language
from ...patterns.parser import parse
from .idn_labels import bidi_labels, u_label

#: RFC 1035, 2.3.4, in characters: 255 octets with the length octets of the first label and of the root.
HOSTNAME_LENGTH = 253


def format_dfa(name: str, meter: Meter) -> Dfa | None:
    """The minimal automaton, without counters, of a format's strings; None if there is no such format.

    The total length of a ``hostname`` is left to the caller (`HOSTNAME_LENGTH`): in the automaton it would multiply
    the states by 200. Raises `BudgetExceededError` where the automaton is larger than the caller's budget.
    """
    if name not in FORMATS:
        return None
    dfa = _built(name)
    meter.check_states(dfa.states, f"format {name!r}")
    return dfa


@cache
def _built(name: str) -> Dfa:
    """Once for the process, under a budget of its own, so that it does not depend on who asks first."""
    meter = Meter(Budget())
    patterns = _MADE[name]() if name in _MADE else (_PATTERNS[name],)
    found, *others = (language(parse(pattern), meter, count=False) for pattern in patterns)
    for other in others:
        found = intersect(found, other, meter)
    return found


# -- dates and times: RFC 3339 ----------------------------------------------------------------------------------

# 5.6, ``full-date``, with the days that the months have (5.7). The year 0000 was a leap year (appendix C).
_YEAR = "[0-9]{4}"
_FOURTH = "(?:0[48]|[2468][048]|[13579][26])"  # 04, 08, ... 96
_ANY_MONTH = "(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_BUT_FEBRUARY = "(?:0[13-9]|1[0-2])-(?:29|30)"
_LONG_MONTH = "(?:0[13578]|1[02])-31"
_LEAP_DAY = f"(?:[0-9]{{2}}{_FOURTH}|(?:{_FOURTH}|00)00)-02-29"
_DATE = f"(?:{_YEAR}-(?:{_ANY_MONTH}|{_BUT_FEBRUARY}|{_LONG_MONTH})|{_LEAP_DAY})"

# 5.6, ``full-time``.
_HOUR = "(?:[01][0-9]|2[0-3])"
_SIXTY = "[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]+)?"
_TIME = rf"{_HOUR}:{_SIXTY}:{_SIXTY}{_FRACTION}(?:[Zz]|[+-]{_HOUR}:{_SIXTY})"

#: Offsets from UTC, in minutes, that leap seconds can have: each has states of its own. A date has more of them, and
#: offsets of time zones only, without quarters of an hour.
_OFFSETS = {sign: range(30, 24 * 60, 30) for sign in "+-"}
_ZONES = {"+": (*range(60, 15 * 60, 60), 210, 270, 330, 390, 570, 630), "-": (*range(60, 13 * 60, 60), 150, 210, 570)}


def _leap_seconds(sign: str, offsets: Iterable[int]) -> str:
    """5.7: the second after 23:59:59 of UTC, in local times with these offsets of this sign."""
    found = []
    for offset in offsets:
        hour, minute = divmod(offset - 1 if sign == "+" else 24 * 60 - 1 - offset, 60)
        found.append(f"{hour:02}:{minute:02}:60{_FRACTION}[{sign}]{offset // 60:02}:{offset % 60:02}")
    return "|".join(found)


_LEAP_SECONDS_OF_UTC = f"23:59:60{_FRACTION}(?:[Zz]|[+-]00:00)"


def _time() -> str:
    return "|".join((_TIME, _LEAP_SECONDS_OF_UTC, *(_leap_seconds(sign, _OFFSETS[sign]) for sign in _OFFSETS)))


def _date_time() -> str:
    """``T`` and ``Z`` in either case, but no space in place of ``T``.

    Leap seconds are at the end of June and of December in UTC; east of it that is on the day after.
    """
    west, east = f"{_LEAP_SECONDS_OF_UTC}|{_leap_seconds('-', _ZONES['-'])}", _leap_seconds("+", _ZONES["+"])
    leap = f"{_YEAR}-(?:(?:06-30|12-31)[Tt](?:{west})|(?:07-01|01-01)[Tt](?:{east}))"
    return f"{_DATE}[Tt]{_TIME}|{leap}"


# Appendix A: no fractions, no signs, no unit left out between two others, weeks on their own.
_MINUTES = "[0-9]+M(?:[0-9]+S)?"
_HOURS = f"[0-9]+H(?:{_MINUTES})?"
_OF_DAY = f"T(?:{_HOURS}|{_MINUTES}|[0-9]+S)"
_MONTHS = "[0-9]+M(?:[0-9]+D)?"
_DURATION = f"P(?:(?:[0-9]+D|{_MONTHS}|[0-9]+Y(?:{_MONTHS})?)(?:{_OF_DAY})?|{_OF_DAY}|[0-9]+W)"

# -- addresses and names ----------------------------------------------------------------------------------------

# RFC 2673, 3.2, ``dotted-quad``, without leading zeros, which validators refuse.
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_HEX = "[0-9A-Fa-f]"


def _ipv6(room: int, ipv4: str) -> str:
    """RFC 4291, 2.2, no zone: those with ``::`` of at most ``room`` groups besides; ``ipv4`` counts for two."""
    group = f"{_HEX}{{1,4}}"

    def groups(least: int, most: int) -> str:
        return f"(?:{group}(?::{group}){{{max(0, least - 1)},{most - 1}}}){'' if least else '?'}" if most else ""

    def after(count: int) -> str:
        return groups(0, count) + (f"|(?:{group}:){{0,{count - 2}}}{ipv4}" if count > 1 else "")

    short = "|".join(f"{groups(before, before)}::(?:{after(room - before)})" for before in range(room + 1))
    return f"(?:{group}:){{6}}(?:{group}:{group}|{ipv4})|{short}"


_OF_32, _OF_128 = "(?:3[0-2]|[12]?[0-9])", "(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])"


def _multiples(power: int, most: int, form: str) -> str:
    """The numbers up to ``most`` whose last ``power`` bits are 0."""
    return "|".join(form.format(number) for number in range(0, most, 1 << power))


def _ipv4_network() -> tuple[str]:
    """An address and the length of its prefix, behind which its bits are 0."""
    networks = []
    for length in range(32):
        whole, bits = divmod(length, 8)
        rest = r"\.0" * (3 - whole)
        networks.append(rf"(?:{_OCTET}\.){{{whole}}}(?:{_multiples(8 - bits, 256, '{}')}){rest}/{length}")
    return ("|".join((*networks, f"{_IPV4}(?:/32)?")),)


def _ipv6_network() -> tuple[str, str]:
    """The same with ``::`` behind the prefix, or at most three groups of zeros; and what is an address at all."""
    group, zero = f"{_HEX}{{1,4}}", "0{1,4}"
    digit = [_multiples(bits, 16, "{:x}") for bits in range(4)]
    networks = ["[^/]*(?:/128)?"]
    for length in range(128):
        whole, bits = divmod(length, 16)
        free = f"(?:{group}(?::{group}){{0,{whole - 1}}})?" if whole else ""
        last = zero
        if bits:
            nibbles, bit = divmod(16 - bits, 4)
            ends = f"(?:{digit[bit]})" + "0" * nibbles
            last = f"(?:{_HEX}{{0,{3 - nibbles}}}{ends}|{zero})"
            networks.append(f"(?:{group}:){{{whole}}}{last}::/{length}")
        networks.append(f"{free}::/{length}")
        if whole > 3:  # zeros are written out where others before them are as many
            networks.append(f"[^/]*:{last}{f':{zero}' * (7 - whole)}/{length}")
    return "|".join(networks), f"(?:{_ipv6(7, _IPV4)})(?:/{_OF_128})?"


def _any_network() -> tuple[str, str]:
    (networks,), (prefixes, addresses) = _ipv4_network(), _ipv6_network()
    return f"{networks}|{prefixes}", f"{_IPV4}(?:/{_OF_32})?|{addresses}"


# RFC 1123, 2.1, on RFC 952: labels of at most 63 characters, any number of them; no dot at the end. Punycode
# (``xn--``) is one more label, as it is to DNS and to validators, whether it decodes or not.
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"


def _is_stable_letter(char: str) -> bool:
    """An assigned letter that lower-casing and compatibility normalisation leave as it is (RFC 5892, 2.2)."""
    if unicodedata.category(char) not in ("Ll", "Lo"):
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return folded == char or char in "ßς"  # RFC 5892, 2.6: exceptions


# The content of a class: letters that a U-label may have wherever it stands (PVALID of RFC 5892). All are written
# left to right and are normalised (NFC) next to any other, so that neither the Bidi Rule (RFC 5893) nor normalisation
# restricts what comes together. Latin, Greek, Cyrillic; kana, Han and Hangul.
_ALPHABETS = (*range(0xDF, 0x180), *range(0x3AC, 0x3CF), *range(0x430, 0x460))
_U_LETTERS = (
    "".join(filter(_is_stable_letter, map(chr, _ALPHABETS)))
    + "\u3041-\u3096\u30a1-\u30fa\u3005-\u3007\u3400-\u4db5\u4e00-\u9fd5\uac00-\ud7a3"
)

# A label of a domain in ``idn-email`` with letters beyond ASCII, lower case and digits, at most 11, without hyphens.
# Eleven always fit into the 63 octets of a label. Punycode (RFC 3492) writes them in the order of their code points,
# each as a ``delta`` from the one before; whatever the bias, 2, 3, 4, 5, 6, 7 digits need a delta of at least 1, 36,
# 1,261, 28,886, 288,886, 2,888,886. The letters lie below U+D7A4, so the deltas of n letters sum up to at most
# (0xd7a4 - 0x80) n + n**2, and the longest label has 60 octets, ``xn--`` included.
_U_LABEL = f"[a-z0-9{_U_LETTERS}]{{1,11}}"

# RFC 5890, 2.3.2.3: up to four labels, each a U-label or of ASCII; the four dots of IDNA2003 between them. Narrower
# than the RFC in the number of labels, which together with at most 62 octets for each bounds the total length; and in
# no labels with ``--`` in third place, A-labels (``xn--``) among them, since no automaton can tell those that decode.
# No dot at the end. Labels, how long they may be, and which may stand together are an automaton each, which are
# intersected: eleven characters fit into a label as they do in `_U_LABEL`.
_ALNUM, _LDH, _DOTS = "[A-Za-z0-9]", "[A-Za-z0-9-]", ".\u3002\uff0e\uff61"
_LONGER = f"{_LDH}(?:{_ALNUM}{_LDH}|-{_ALNUM}){_LDH}{{0,57}}{_ALNUM}"
_SHORT = f"{_LDH}{{1,62}}|[^{_DOTS}]{{1,11}}"


def _idn_label() -> str:
    return f"{_ALNUM}(?:{_ALNUM}|{_LDH}{_ALNUM}|{_LDH}{{2}}{_ALNUM}|{_LONGER})?|{u_label()}"


def _idn_hostname() -> tuple[str, str, str]:
    allowed, short = (_labels(label) for label in (_idn_label(), _SHORT))
    return allowed, short, "|".join(map(_labels, bidi_labels(_DOTS)))


def _labels(label: str) -> str:
    return f"(?:{label})(?:[{_DOTS}](?:{label})){{0,3}}"


# -- e-mail: RFC 5321 and 6531 ----------------------------------------------------------------------------------

_MAIL_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"


def _mailbox(more: str, label: str) -> str:
    """RFC 5321, 4.1.2, ``Mailbox``; ``more``: further characters of the local part.

    The lengths of 4.5.3.1 are what every mailer has to cope with, not a part of the syntax, and are not imposed.
    """
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~\-{more}]+"
    quoted = rf'"(?:[ !#-\[\]-~{more}]|\\[ -~])*"'
    octet = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
    ipv4 = rf"{octet}(?:\.{octet}){{3}}"
    # Here "::" stands for two groups at least.
    literal = rf"\[(?:{ipv4}|[Ii][Pp][Vv]6:(?:{_ipv6(6, ipv4)}))\]"
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|{literal})"


# -- URIs: RFC 3986 and 3987 ------------------------------------------------------------------------------------

_UCSCHAR = "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16 | (0x1000 if plane == 14 else 0))}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 15)
)
_IPRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:"
_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = "!$&'()*+,;="
_PERCENT = f"%{_HEX}{{2}}"


def _uri(more: str, private: str) -> str:
    """RFC 3986, 3, ``URI``: with a scheme; ``more`` are further unreserved characters, and ``private`` of queries."""
    return f"{_SCHEME}(?:{_hier_part(more)}|{_rootless(more)})?{_query_and_fragment(more, private)}"


def _reference(more: str, private: str) -> str:
    """4.1, ``URI-reference``: with or without a scheme; without, the first segment has no colon."""
    no_scheme = f"(?:{_pchar('@', more)})+{_segments(more)}"
    path = f"(?:{_SCHEME})?(?:{_hier_part(more)})?|{_SCHEME}{_rootless(more)}|{no_scheme}"
    return f"(?:{path}){_query_and_fragment(more, private)}"


def _hier_part(more: str) -> str:
    """``"//" authority path-abempty / path-absolute``."""
    segments = _segments(more)
    return f"//{_authority(more)}{segments}|/(?:(?:{_pchar(':@', more)})+{segments})?"


def _rootless(more: str) -> str:
    return f"(?:{_pchar(':@', more)})+{_segments(more)}"


def _segments(more: str) -> str:
    return f"(?:/(?:{_pchar(':@', more)})*)*"


def _authority(more: str) -> str:
    """``[ userinfo "@" ] host [ ":" port ]``; the IPv4 addresses are among the registered names.

    ``v`` of ``IPvFuture`` in lower case, as validators want it.
    """
    future = rf"v{_HEX}+\.[{_UNRESERVED}{_SUB_DELIMS}:]+"
    literal = rf"\[(?:{_ipv6(7, _IPV4)}|{future})\]"
    return f"(?:(?:{_pchar(':', more)})*@)?(?:{literal}|(?:{_pchar('', more)})*)(?::[0-9]*)?"


def _query_and_fragment(more: str, private: str) -> str:
    query = rf"(?:\?(?:{_pchar(':@/?', more + private)})*)?"
    return f"{query}(?:#(?:{_pchar(':@/?', more)})*)?"


def _pchar(also: str, more: str) -> str:
    return f"[{_UNRESERVED}{_SUB_DELIMS}{also}{more}]|{_PERCENT}"


# RFC 6570, 2: all that its grammar has, the operators that are reserved among it.
_LITERAL = rf"[!#$&(-;=?-\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|{_PERCENT}"
_VARCHAR = f"(?:[A-Za-z0-9_]|{_PERCENT})"
_VARIABLE = rf"{_VARCHAR}+(?:\.{_VARCHAR}+)*(?::[1-9][0-9]{{0,3}}|\*)?"
_URI_TEMPLATE = rf"(?:{_LITERAL}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"

# -- patterns ---------------------------------------------------------------------------------------------------

_ESCAPED = r"\\(?:[ -/:-@\[-`{-~dDsSwWfnrtv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
_ONE_CHAR = r"[^\\()\[{*+?|^$]|\{[A-Za-z_]"  # the dot is one; no count begins with a letter
_ANCHOR = r"[\^$|]|\\[bB]"  # or the next alternative: neither can be repeated


def _regex() -> str:
    r"""Patterns that ECMA-262 and Python's `re` both read.

    Neither language is regular, for groups nest. Accepted is a subset, chosen to be what people write:

    - characters, escapes, classes, ``.``, ``|``, anchors, ``\b`` and ``\B``, all repeats, lazy ones too;
    - groups, capturing or not, at most three deep; look-ahead at the outermost level, with groups one deep in it.

    ECMA-262 is taken with Annex B and without the flag ``u``, so that ``\-`` is a hyphen. Left out, besides deeper
    nesting: back-references, named groups, look-behind, ``\p``, ``\c``, ``\0``; ``[]`` and ``[^]``, which `re` reads
    otherwise; and a brace ``{`` that stands for itself, unless before a letter. So that the automaton stays small,
    ranges of a class are of digits, or of letters of one case that begin with the first or end with the last of them;
    counts have at most four digits; and the order of ``{m,n}`` shows in the number of digits, or in the first of one
    or two (not ``{12,17}``).
    """
    items = rf"{_ONE_CHAR}|{_ESCAPED}|{_regex_class()}"

    def terms(group: str = "", look_ahead: str = "") -> str:
        item = rf"{items}|\((?:\?:)?{group}\)" if group else items
        anchor = rf"{_ANCHOR}|\(\?[=!]{look_ahead}\)" if look_ahead else _ANCHOR
        return f"(?:(?:{item})(?:{_regex_repeat()})?|{anchor})*"

    return terms(terms(terms(terms())), look_ahead=terms(terms()))


def _regex_class() -> str:
    """``[...]`` of characters, escapes and ranges; a hyphen stands for itself first, last and behind a range."""
    digits = "|".join(f"{low}-[{low}-9]" for low in range(10))
    ranges = f"{digits}|a-[a-z]|[b-y]-z|A-[A-Z]|[B-Y]-Z"
    char = rf"[^\\\]\-^]|{_ESCAPED}|\\b"
    return rf"\[\^?(?:-?(?:(?:{ranges})-?|{char})(?:(?:{ranges})-?|{char}|\^)*-?|-)\]"


def _regex_repeat() -> str:
    """``*``, ``+``, ``?`` and counts, lazy or not."""
    longer = r"[0-9],[1-9][0-9]{1,3}|[1-9][0-9],[1-9][0-9]{2,3}|[1-9][0-9]{2},[1-9][0-9]{3}"
    one_digit = "|".join(f"{low},[{low}-9]" for low in range(10))
    two_digits = "|".join(f"{ten}(?:0,[{ten}-9]|[0-9],[{ten + 1}-9])[0-9]" for ten in range(1, 9))
    return rf"(?:[*+?]|\{{(?:[0-9]{{1,4}},?|{longer}|{one_digit}|{two_digits}|90,9[0-9])\}})\??"


_POINTER = "(?:/(?:[^/~]|~[01])*)*"

_UUID = "{hex}{{8}}-{hex}{{4}}-{version}{hex}{{3}}-{variant}{hex}{{3}}-{hex}{{12}}"
_IP = f"{_IPV4}|{_ipv6(7, _IPV4)}"

#: Those of Pydantic, whose names no other one has.
_OF_PYDANTIC = {
    # RFC 9562, 4.1 and 4.2.
    **{f"uuid{each}": _UUID.format(hex=_HEX, version=each, variant="[89ABab]") for each in (1, *range(3, 9))},
    # The addresses of `ipaddress`, without zones.
    "ipvanyaddress": _IP,
    "ipv4interface": f"{_IPV4}(?:/{_OF_32})?",
    "ipv6interface": f"(?:{_ipv6(7, _IPV4)})(?:/{_OF_128})?",
    "ipvanyinterface": f"{_IPV4}(?:/{_OF_32})?|(?:{_ipv6(7, _IPV4)})(?:/{_OF_128})?",
}

_PATTERNS = {
    "date": _DATE,
    "time": _time(),
    "date-time": _date_time(),
    "duration": _DURATION,
    "email": _mailbox("", _MAIL_LABEL),
    # RFC 6531, 3.3: beyond ASCII, any character in the local part, and in the domain U-labels.
    "idn-email": _mailbox("\x80-\U0010ffff", f"(?:{_MAIL_LABEL}|{_U_LABEL})"),
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _ipv6(7, _IPV4),
    "uri": _uri("", ""),
    "uri-reference": _reference("", ""),
    "iri": _uri(_UCSCHAR, _IPRIVATE),
    "iri-reference": _reference(_UCSCHAR, _IPRIVATE),
    "uri-template": _URI_TEMPLATE,
    # RFC 9562, 4: the text form, of any version and variant, in either case.
    "uuid": f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}",
    # RFC 6901, 3.
    "json-pointer": _POINTER,
    # draft-handrews-relative-json-pointer-01, 3; the number has a zero at its end only, as validators want it.
    "relative-json-pointer": f"(?:0|[1-9]+0?)(?:#|{_POINTER})",
    "regex": _regex(),
    **_OF_PYDANTIC,
}

#: Those whose patterns are long, or several that say it together.
_MADE: dict[str, Callable[[], tuple[str, ...]]] = {
    "idn-hostname": _idn_hostname,
    "ipv4network": _ipv4_network,
    "ipv6network": _ipv6_network,
    "ipvanynetwork": _any_network,
}

#: The names of all formats; any other is an annotation.
FORMATS = frozenset({*_PATTERNS, *_MADE})

#: Those whose automata are small enough for their rows to be shared by all schemas.
SHAREABLE_FORMATS = FORMATS - {"idn-email", "regex", *_MADE, *_OF_PYDANTIC}
