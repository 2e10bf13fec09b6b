r"""The formats of JSON Schema as regular languages.

A format's language is written here as a pattern of structgen's own `Regex` syntax, close to the grammar of its RFC,
and becomes an automaton over UTF-8 the first time that it is asked for. docs/guide/json_formats.md has the table of
what each accepts.

Two parties say what a format is: its RFC and the validators that people run. Nothing is accepted that either of
them refuses, so a format is the *intersection* of its RFC and of what Python's ``jsonschema`` checks with
``jsonschema[format]`` installed. Three formats are not regular, or only with an automaton that nobody can afford,
and are narrower than that: ``idn-hostname``, ``idn-email`` and ``regex``. Their docstrings say how.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

from ....budget import Budget, Meter
from ...automata.dfa import Dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from .regex_format import regex_format

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
    return regex_format(meter) if name == "regex" else language(parse(_PATTERNS[name]()), meter, count=False)


# -- dates and times: RFC 3339 ----------------------------------------------------------------------------------

_HOUR = "(?:[01][0-9]|2[0-3])"
_SIXTY = "[0-5][0-9]"
_FULL_TIME = rf"{_HOUR}:{_SIXTY}:{_SIXTY}(?:\.[0-9]+)?(?:[Zz]|[+-]{_HOUR}:{_SIXTY})"


def _date() -> str:
    """RFC 3339, 5.6, ``full-date``, with the days that the months have (5.7). No year 0000: validators refuse it."""
    year = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
    fourth = "(?:0[48]|[2468][048]|[13579][26])"  # 04, 08, ... 96
    leap_year = f"(?:[0-9]{{2}}{fourth}|{fourth}00)"
    day_28 = "(?:0[1-9]|1[0-9]|2[0-8])"
    any_month = f"(?:0[1-9]|1[0-2])-{day_28}"
    but_february = "(?:0[13-9]|1[0-2])-(?:29|30)"
    long_month = "(?:0[13578]|1[02])-31"
    return f"{year}-(?:{any_month}|{but_february}|{long_month})|{leap_year}-02-29"


def _time() -> str:
    """RFC 3339, 5.6, ``full-time``. No leap seconds (``:60``): validators refuse them."""
    return _FULL_TIME


def _date_time() -> str:
    """RFC 3339, 5.6, ``date-time``; ``T`` and ``Z`` in either case, but no space in place of ``T``."""
    return f"(?:{_date()})[Tt]{_FULL_TIME}"


def _duration() -> str:
    """RFC 3339, appendix A: no fractions, no signs, no unit left out between two others, weeks on their own."""
    second = "[0-9]+S"
    minute = f"[0-9]+M(?:{second})?"
    hour = f"[0-9]+H(?:{minute})?"
    time = f"T(?:{hour}|{minute}|{second})"
    day = "[0-9]+D"
    month = f"[0-9]+M(?:{day})?"
    year = f"[0-9]+Y(?:{month})?"
    return f"P(?:(?:{day}|{month}|{year})(?:{time})?|{time}|[0-9]+W)"


# -- addresses and names ----------------------------------------------------------------------------------------

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_HEX = "[0-9A-Fa-f]"


def _ipv4() -> str:
    """RFC 2673, 3.2, ``dotted-quad``, without leading zeros, which validators refuse."""
    return _IPV4


def _ipv6() -> str:
    """RFC 4291, 2.2, as RFC 3986, 3.2.2 spells it out; no zone."""
    return _ipv6_address(7, _IPV4)


def _ipv6_address(room: int, ipv4: str) -> str:
    """IPv6 addresses, those with ``::`` of at most ``room`` groups besides; an ``ipv4`` at the end counts for two."""
    group = f"{_HEX}{{1,4}}"

    def after(groups: int) -> str:
        return f"(?:{group}(?::{group}){{0,{groups - 1}}})?" if groups > 0 else ""

    # Both nested so that reading is deterministic: what may follow once ``read`` groups are there.
    rest, rest_before_ipv4 = f":{group}", ":"
    for read in range(7, 0, -1):
        longer = rest if read == 7 else f":{group}{rest}"
        rest = f"(?:::{after(room - read)}|{longer})" if read <= room else longer
    for read in range(6, 0, -1):
        longer = ":" if read == 6 else f":{group}{rest_before_ipv4}"
        groups = room - 2 - read
        rest_before_ipv4 = f"(?:::(?:{group}:){{0,{groups}}}|{longer})" if groups >= 0 else longer
    before_ipv4 = f"(?:::(?:{group}:){{0,{room - 2}}}|{group}{rest_before_ipv4})"
    return f"::{after(room)}|{group}{rest}|{before_ipv4}{ipv4}"


def _hostname() -> str:
    """RFC 1123, 2.1, on RFC 952: labels of at most 63 characters, any number of them; no dot at the end.

    Punycode (``xn--``) is one more label, as it is to DNS and to validators, whether it decodes or not.
    """
    label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    return rf"{label}(?:\.{label})*"


def _idn_hostname() -> str:
    """RFC 5890, 2.3.2.3: up to four labels, each a `_u_label` or of ASCII; the four dots of IDNA2003 between them.

    Narrower than the RFC in the number of labels, which together with at most 62 octets for each bounds the
    total length; and in no labels with ``--`` in third place, A-labels (``xn--``) among them, since no automaton can
    tell those that decode. No dot at the end.
    """
    alnum, ldh = "[A-Za-z0-9]", "[A-Za-z0-9-]"
    longer = f"{ldh}(?:{alnum}{ldh}|-{alnum}){ldh}{{0,57}}{alnum}"
    label = f"(?:{alnum}(?:{alnum}|{ldh}{alnum}|{ldh}{{2}}{alnum}|{longer})?|{_u_label()})"
    return f"{label}(?:[.\u3002\uff0e\uff61]{label}){{0,3}}"


@cache
def _u_letters() -> str:
    """The content of a class: letters that a U-label may have wherever it stands (PVALID of RFC 5892).

    All are written left to right and are normalised (NFC) next to any other, so that neither the Bidi Rule (RFC 5893)
    nor normalisation restricts what comes together. Latin, Greek, Cyrillic; kana, Han and Hangul.
    """
    alphabets = (0xDF, 0x17F), (0x3AC, 0x3CE), (0x430, 0x45F)
    letters = [chr(code) for low, high in alphabets for code in range(low, high + 1) if _is_stable_letter(chr(code))]
    return "".join(letters) + "\u3041-\u3096\u30a1-\u30fa\u3005-\u3007\u3400-\u4db5\u4e00-\u9fd5\uac00-\ud7a3"


def _is_stable_letter(char: str) -> bool:
    """An assigned letter that lower-casing and compatibility normalisation leave as it is (RFC 5892, 2.2)."""
    if unicodedata.category(char) not in ("Ll", "Lo"):
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return folded == char or char in "ßς"  # RFC 5892, 2.6: exceptions


def _u_label() -> str:
    """A label with letters beyond ASCII: `_u_letters`, lower case and digits, at most 11 of them, no hyphens.

    Eleven always fit into the 63 octets of a label. Punycode (RFC 3492) writes them in the order of their code
    points, each as a ``delta`` from the one before; whatever the bias, 2, 3, 4, 5, 6, 7 digits need a delta of at
    least 1, 36, 1,261, 28,886, 288,886, 2,888,886. The letters lie below U+D7A4, so the deltas of n letters sum up
    to at most (0xd7a4 - 0x80) n + n**2, and the longest label has 60 octets, ``xn--`` included.
    """
    return f"[a-z0-9{_u_letters()}]{{1,11}}"


# -- e-mail: RFC 5321 and 6531 ----------------------------------------------------------------------------------

_ATEXT = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"


def _email() -> str:
    """RFC 5321, 4.1.2, ``Mailbox``, with IPv4 and IPv6 address literals.

    The lengths of 4.5.3.1 are what every mailer has to cope with, not a part of the syntax, and are not imposed.
    """
    label = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    return _mailbox("", label)


def _idn_email() -> str:
    """RFC 6531, 3.3: beyond ASCII, any character in the local part, and in the domain `_u_label`."""
    label = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    return _mailbox("\x80-\U0010ffff", f"(?:{label}|{_u_label()})")


def _mailbox(more: str, label: str) -> str:
    """``Local-part "@" ( Domain / address-literal )``; ``more``: further characters of the local part."""
    atom = f"[{_ATEXT}{more}]+"
    quoted = rf'"(?:[ !#-\[\]-~{more}]|\\[ -~])*"'
    octet = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
    ipv4 = rf"{octet}(?:\.{octet}){{3}}"
    # Here "::" stands for two groups at least.
    literal = rf"\[(?:{ipv4}|[Ii][Pp][Vv]6:(?:{_ipv6_address(6, ipv4)}))\]"
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


def _uri() -> str:
    """RFC 3986, 3, ``URI``: with a scheme. ``v`` of ``IPvFuture`` in lower case, as validators want it."""
    return f"{_SCHEME}(?:{_hier_part('')}|{_rootless('')})?{_query_and_fragment('', '')}"


def _uri_reference() -> str:
    """RFC 3986, 4.1, ``URI-reference``: a URI or a relative reference."""
    return _reference("", "")


def _iri() -> str:
    """RFC 3987, 2.2, ``IRI``."""
    return f"{_SCHEME}(?:{_hier_part(_UCSCHAR)}|{_rootless(_UCSCHAR)})?{_query_and_fragment(_UCSCHAR, _IPRIVATE)}"


def _iri_reference() -> str:
    """RFC 3987, 2.2, ``IRI-reference``."""
    return _reference(_UCSCHAR, _IPRIVATE)


def _reference(more: str, private: str) -> str:
    """With or without a scheme; without, the first segment has no colon. ``more``: further unreserved characters."""
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
    """``[ userinfo "@" ] host [ ":" port ]``; the IPv4 addresses are among the registered names."""
    future = rf"v{_HEX}+\.[{_UNRESERVED}{_SUB_DELIMS}:]+"
    literal = rf"\[(?:{_ipv6()}|{future})\]"
    return f"(?:(?:{_pchar(':', more)})*@)?(?:{literal}|(?:{_pchar('', more)})*)(?::[0-9]*)?"


def _query_and_fragment(more: str, private: str) -> str:
    query = rf"(?:\?(?:{_pchar(':@/?', more + private)})*)?"
    return f"{query}(?:#(?:{_pchar(':@/?', more)})*)?"


def _pchar(also: str, more: str) -> str:
    return f"[{_UNRESERVED}{_SUB_DELIMS}{also}{more}]|{_PERCENT}"


def _uri_template() -> str:
    """RFC 6570, 2: what its grammar has, less what validators refuse.

    These are the operators that are reserved, names that begin with ``%``, and prefixes of four digits.
    """
    literal = rf"[!#$&(-;=?-\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|{_PERCENT}"
    char = f"(?:[A-Za-z0-9_]|{_PERCENT})"
    name = rf"[A-Za-z0-9_]{char}*(?:\.{char}+)*"
    variable = rf"{name}(?::[1-9][0-9]{{0,2}}|\*)?"
    expression = rf"\{{[+#./;?&]?{variable}(?:,{variable})*\}}"
    return f"(?:{literal}|{expression})*"


# -- identifiers and pointers -----------------------------------------------------------------------------------

_POINTER = "(?:/(?:[^/~]|~[01])*)*"


def _uuid() -> str:
    """RFC 9562, 4: the text form, of any version and variant, in either case."""
    return f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"


def _json_pointer() -> str:
    """RFC 6901, 3."""
    return _POINTER


def _relative_json_pointer() -> str:
    """draft-handrews-relative-json-pointer-01, 3; the number has a zero at its end only, as validators want it."""
    return f"(?:0|[1-9]+0?)(?:#|{_POINTER})"


_PATTERNS: dict[str, Callable[[], str]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": _duration,
    "email": _email,
    "idn-email": _idn_email,
    "hostname": _hostname,
    "idn-hostname": _idn_hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "uri": _uri,
    "uri-reference": _uri_reference,
    "iri": _iri,
    "iri-reference": _iri_reference,
    "uri-template": _uri_template,
    "uuid": _uuid,
    "json-pointer": _json_pointer,
    "relative-json-pointer": _relative_json_pointer,
}

#: The names of all formats; any other is an annotation.
FORMATS = frozenset({*_PATTERNS, "regex"})

#: Those whose automata are small enough for their rows to be shared by all schemas.
SHAREABLE_FORMATS = FORMATS - {"idn-email", "idn-hostname", "regex"}
