"""The grammar of GNU C that comes with structgen: programs, headers, guides; gcc and Lark are judges."""

from __future__ import annotations

import platform
import re
from functools import cache
from random import Random
from unittest.mock import Mock

import numpy as np
import pytest
from judges.c_judge import HAS_GCC, complaints, preprocessed, syntax_errors, typedef_names
from judges.guides import with_bytes
from judges.lark_judge import parses
from lark import Lark
from test_c_grammar import PROGRAM as C_PROGRAM

import structgen as sg
from structgen import Budget, grammars
from structgen.budget import Meter
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.parser import lalr
from structgen.runtime.grammar.completability.pop_summaries import PopSummaries

WORDS = """
    int char void struct return if else while for ( ) { } ; ; ; ) } x y f 0 1 = + * & , . -> ++ == static
    const unsigned enum union sizeof switch case break default: goto do [ ] ? size_t __attribute__((a))
    __attribute__((b(x,1))) __attribute__(( __attribute__ __extension__ asm volatile __inline __restrict
    __signed__ typeof( __typeof__(x) __builtin_va_list __builtin_va_arg( __builtin_offsetof(
    __builtin_types_compatible_p( ({ }) ... ?: __label__ && &&x __real__ __int128 _Float32 __alignof__
    __thread __auto_type {} [1...2] x: : : $ asm("a") __complex__ _Static_assert
"""

PROGRAM = r"""# 0 "first.c"
# 0 "<built-in>"
# 1 "/usr/include/stdc-predef.h" 1 3 4
# 1 "first.c" 2
#ident "one line"

#pragma GCC diagnostic push // all of this is ignored
typedef __builtin_va_list va; ;
__extension__ typedef struct __attribute__((__packed__, , aligned(2 * 8))) node
{
    struct node *next __attribute__((unused)), *other __attribute__((unused));
    unsigned flag : 3 __attribute__((packed)), : 0;
    __extension__ union { int i; double d; } __attribute__((aligned)) v; ;
    __extension__ long long __const __attribute__((mode(DI))) wide;
    char rest[0];
} __attribute__((__may_alias__)) node;
struct empty {}; union __attribute__(()) nothing { };
enum __attribute__((packed)) colour { RED __attribute__((deprecated)) = 0b11, GREEN __attribute((unused)), };
extern int scan(const char *__restrict __s, ...) __asm__("" "__isoc99_scan")
    __attribute__((__format__(__scanf__, 1, 2))) __attribute__((const, __nonnull__(1), nothrow));
extern __inline __attribute__((__gnu_inline__)) int __attribute__((always_inline)) twice(int $a) { return $a + $a; }
static void *(__attribute__((unused)) *hook)(void *, int (__attribute__((unused)) *)(void)), *plain;
_Float128 quad = 1.0F128; _Float32x f32; _Float64 f64 = 1.f64; __int128 big;
unsigned __int128 ubig; _Decimal64 dec = 1.5DD;
__complex__ double z = 1.0 + 2.0i; __signed__ char sc; __thread int local; _Complex float zf = 1.0iF + 3i + 2ju;
__volatile__ int vol, table[10] = { [1 ... 3] = 7, [5] 8 }, none[] = {};
typeof(int *) p1, p2; __typeof__(p1 + 1) p3; __typeof(sizeof(int)) p4;
struct point { int x, y; } here = { y: 1, x: 2 }, there = {};
asm(".section .text\n\t"); __asm__("");
_Static_assert(__alignof__(int) <= __alignof__ table && __alignof(double));

int old(a, b) int a __attribute__((unused)), *b; { a += *b; return a; }

__attribute__((noreturn)) void stop(int *const __restrict__ argument,
                                    double matrix[static const 2] __attribute__((unused)));

int main(int argc __attribute__((unused)), __attribute__((unused)) char **argv, ...)
{
    __label__ first, second; __label__ third;
    int n = 0, m = ({ int t = n; t ? t : 1; }), *where = &n; void *labels[] = { &&first, &&second, &&third };
    __auto_type copy = n; register int r __asm__("ebx") __attribute__((unused)) = 0;
    va list; __builtin_va_start(list, argv); n = __builtin_va_arg(list, struct point *)->x;
# 40 "first.c" 3 4
    n = __builtin_offsetof(node, v.i) + __builtin_offsetof(struct node, rest[3]);
    if (__builtin_types_compatible_p(typeof(n), const int) && __extension__ ({ 1; })) goto *labels[n ?: 1];
first: __attribute__((unused));
second: __attribute__((cold)) n++;
    switch (n) { case 1 ... 5: n = 1; __attribute__((fallthrough)); case 'a' ... 'z': case 10:
                 if (n) __attribute__((__fallthrough__)); default: n = '\e'; }
    __asm__ __volatile__("nop");
    asm("mov %1, %0" : "=r"(n) : [in] "r"(m), "i"(1) : "cc", "mem" "ory");
    asm volatile("" ::: "memory"); __asm("" : [out] "+m"(*where)); asm inline("" : : "r"(n));
    asm goto("" : : : : third); asm volatile goto("" : : "r"(n) : "cc" : first, third);
third: n = __real__ z + __imag z + __extension__ 1 + (int) __real 2i;
    (void)(struct point){}; (void)(__attribute__((unused)) int)n; (void)sizeof(struct point *__attribute__((unused)));
    for (__extension__ int i __attribute__((unused)) = 0; i < n; ++i) ;
    return __builtin_choose_expr(1, __alignof__(int[3]), "no") + (n ? : m);
}
#pragma GCC diagnostic pop
"""


def vocabulary_of(words: list[str]) -> sg.Vocabulary:
    spaced = (text for word in words for text in (word, word + " "))
    return with_bytes(*spaced, ");\n", "(x)", " = 0;\n", '"a"', '\n# 1 "a.h" 3\n', "\n#pragma x\n", "x y;")


VOCABULARY = vocabulary_of(WORDS.split())


def grammar(*names: str) -> str:
    added = " | ".join(f'"{name}"' for name in names)
    return grammars.path("gnu_c").read_text() + (f"\n%extend typedef_name: {added}\n" if names else "")


@cache
def index_of(*names: str) -> sg.Index:
    return sg.compile(sg.Grammar(grammar(*names), lexer="basic"), VOCABULARY, eager=False)


@cache
def judge(*names: str) -> Lark:
    return Lark(grammar(*names), parser="lalr", lexer="basic", import_paths=[str(grammars.FOLDER)])


def refusal(text: str, *names: str) -> str | None:
    """Where an index ends a text; None where it accepts it."""
    match = index_of(*names).match(text.encode())
    return None if match.accepted else f"{text[: match.consumed][-200:]}<here>{text[match.consumed :][:50]}"


@pytest.mark.parametrize("program", [PROGRAM, C_PROGRAM], ids=["gnu", "c11"])
def test_a_program(program: str) -> None:
    names = ("va", "node", "size")
    assert refusal(program, *names) is None
    assert parses(judge(*names), program)
    for broken in (program + "}", program.replace("return ", "return return ", 1), program.replace(";", " ", 3)):
        assert refusal(broken, *names) is not None
        assert not parses(judge(*names), broken)


def test_gcc_takes_the_program() -> None:
    errors = complaints(PROGRAM.encode(), "gnu11")
    assert not (errors if platform.machine() == "x86_64" else syntax_errors(errors))


ACCEPTED = (
    "", ";", '# 1 "a.c"\n', "\n", "int x;\n\n  #pragma once\n  # 2\nint y;",
    "__attribute__((x)) int f(void) { return 0; }", "int *__attribute__((x)) *p;",
    "int f(int [], int (*)(void) __attribute__((x)), ...);", "struct a { int x; } __attribute__((x)) b;",
    "void f(void) { __attribute__((x)) int a; a: __attribute__((x)) ; }",
    "int f(void) { return ({ ; }) ?: ({ 1; }); }", "void f(void) { if (1) { } else __attribute__((fallthrough)); }",
    "int (__attribute__((x)) f)(int);", "int x = 1 ? : 2, y = 1 ?: 2;", 'char s[] = L"\\e" "\\E";',
    "void f(a) int a; char b; { }", 'int a, b asm("c");', "__extension__ int f(void) { }",
    "__extension__ __extension__ int x;", 'void f(void) { asm("a" : : : ); }',
    'void f(void) { asm goto("" :::: x); x: ; }', "int x = sizeof(int) { 1 } . x;",
)  # fmt: skip

REFUSED = (
    'int x; # 1 "a.c"\n', "#pragma x /* \n", '# 1 "a" 3 1\n', "__attribute__(x) int a;",
    "__attribute__((x y)) int a;", "int a __attribute__((x)) { }", "int f(void) __attribute__((x)) { }",
    "typeof() x;", "void f(void) { asm; }", 'void f(void) { asm("a" : "r"); }', 'void f(void) { asm goto("a"); }',
    'void f(void) { asm("a" : : : : x); }', "int x = { [1 ... ] = 2 };", "void f(void) { goto *; }",
    "int x = __real__;", "void f(void) { __label__ ; }", "void f(void) { int a; __label__ b; }", "int a asm(1);",
    "void f(void) { case 1 ... : ; }", "int x = __builtin_va_arg(int, int);", "int x = __builtin_offsetof(1, a);",
    "int x = 0b2;", "int x = ({ 1; };", 'int a __asm__("x") __asm__("y");', "enum { };", "__auto_type int x = 1;",
    "int f(__auto_type x);", "typeof(int) int x;", "struct { __thread; };", "int a, __extension__ b;",
)  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    assert refusal(text) is None
    assert parses(judge(), text)
    assert not syntax_errors(complaints(text.encode(), "gnu11"))


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    assert refusal(text) is not None
    assert not parses(judge(), text)
    assert complaints(text.encode() + b"\n;", "gnu11") or not HAS_GCC


def test_conflicts_are_those_of_c11() -> None:
    def conflicts(name: str) -> set[frozenset[str]]:
        rules = load(grammars.path(name).read_text(), "start", Meter(Budget()))
        table = lalr.build(rules, Meter(Budget()))
        assert all(conflict.winner is not None for conflict in table.conflicts)
        return {frozenset(table.symbols.shown(rule) for rule in conflict.rules) for conflict in table.conflicts}

    assert conflicts("gnu_c") == conflicts("c")


#: Of C11, of POSIX, of Linux and of gcc: those that are there are included, in this order.
HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
    stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype aio
    arpa/inet cpio dirent dlfcn fcntl fmtmsg fnmatch ftw glob grp iconv langinfo libgen monetary mqueue ndbm
    net/if netdb netinet/in netinet/tcp nl_types poll pthread pwd regex sched search semaphore spawn strings
    stropts sys/ipc sys/mman sys/msg sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs
    sys/time sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog tar termios ulimit unistd utime
    utmpx wordexp argp elf err error execinfo fts getopt ifaddrs link malloc mntent obstack printf resolv
    shadow sys/epoll sys/inotify sys/ptrace sys/sysinfo ucontext xmmintrin arm_neon
"""


def with_headers(*names: str) -> tuple[str, list[str]]:
    """A small program behind headers, preprocessed, and the names that they declare."""
    included = "\n".join(f"#if __has_include(<{name}.h>)\n#include <{name}.h>\n#endif" for name in names)
    text = preprocessed(f"#define _GNU_SOURCE 1\n{included}\nint main(void) {{ size_t n = 0; return (int)n; }}\n")
    if text is None or not re.search(r"^#.*features\.h", text, re.MULTILINE):
        pytest.skip("gcc preprocesses glibc's headers here")
    known = re.findall(r'"(\w+)"', grammar() + grammars.path("c").read_text())
    return text, sorted(typedef_names(text) - set(known))


def test_system_headers() -> None:
    text, names = with_headers(*HEADERS.split())
    assert len(text) > 300_000
    assert refusal(text, *names) is None
    assert refusal(text.replace("int main(void) {", "int main(void {"), *names) is not None


def test_lark_reads_headers_too() -> None:
    text, names = with_headers("stdio", "stdlib", "errno")
    assert refusal(text, *names) is None
    assert parses(judge(*names), text)


def test_what_guides_write_parses() -> None:
    index, random, written, deep = index_of(), Random(1), 0, 0
    closing = [t for t in range(256) if bytes([t]) in b';)}]x "']
    for attempt in range(60):
        guide, text = sg.Guide(index), b"void g(int x, ...) { x: y: ; int y;" if attempt % 2 else b""
        assert all(guide.advance(byte) for byte in text)
        length = random.choice([20, 40, 80])
        for step in range(400):
            row = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: VOCABULARY.size]
            if guide.is_accepting() and (step > length or random.random() < 0.1):
                judge().parse(text.decode())
                errors = complaints(text, "gnu11")
                # An unknown name, a star and a name: gcc takes it for a declaration. Behind a block outside of
                # functions it skips too much. And a typedef's name may have become a variable's.
                if not re.search("unknown type name|braced-group", "".join(errors)) and b"typedef" not in text:
                    assert not syntax_errors(errors), text
                    deep += attempt % 2
                written += 1
                break
            words = [t for t in range(256, VOCABULARY.size - 1) if row[t]]
            ends = [t for t in closing if row[t]] if step > length else []
            letters = [t for t in range(128) if row[t]]
            token = random.choice(ends or (words if random.random() < 0.95 else letters) or words or letters)
            text += VOCABULARY.token(token) or b""
            assert guide.advance(token)
    assert written > 30
    assert deep > 5


def test_nothing_is_left_to_be_asked_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lexemes can be ended, which is proved when compiling: no step solves for what the stack can complete."""
    solved = Mock()
    monkeypatch.setattr(PopSummaries, "find", solved)
    vocabulary = with_bytes()
    guide = sg.Guide(sg.compile(sg.Grammar(grammars.path("gnu_c"), lexer="contextual"), vocabulary, eager=False))
    for byte in b"int f(int a) { return a; }":
        guide.bitmask()
        assert guide.advance(byte)
    assert not solved.called
