"""The SQL grammar that comes with structgen: real statements, names that are keywords, and what guides write.

SQLite is the judge, and Lark. SQLite takes errors beyond syntax, too; only those of its parser count.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from random import Random

import numpy as np
import pytest
from judges.guides import with_bytes
from judges.lark_judge import parses
from judges.sqlite_syntax import syntax_error
from lark import Lark

import structgen as sg
from structgen import grammars

#: One statement each, up to a semicolon at the end of a line.
ACCEPTED = r"""
SELECT 1;
select a, b as "B", c [C], d `D`, 'x' AS 'label', t.*, main.t.a FROM main.t AS t WHERE a = 1 AND NOT b OR c
    <> 'it''s';
SELECT count(*), sum(DISTINCT x) FILTER (WHERE x > 0), avg(y) FROM t GROUP BY a, b + 1 HAVING count(*) > 1;
SELECT u.name, o.total FROM users u JOIN orders o ON o.user_id = u.id LEFT OUTER JOIN items USING (order_id)
    NATURAL JOIN x CROSS JOIN y, z RIGHT JOIN r ON 1 FULL JOIN s USING (a, b);
WITH RECURSIVE cnt(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM cnt WHERE x<1000000) SELECT x FROM cnt;
WITH a AS MATERIALIZED (SELECT 1), b(c) AS NOT MATERIALIZED (SELECT 2) SELECT * FROM a, b;
SELECT a FROM t1 UNION SELECT b FROM t2 INTERSECT SELECT c FROM t3 EXCEPT SELECT d FROM t4 ORDER BY 1;
SELECT row_number() OVER (PARTITION BY g ORDER BY v DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    EXCLUDE TIES), lag(v, 1, 0) OVER w FROM t WINDOW w AS (ORDER BY d), w2 AS (w RANGE 5 PRECEDING);
SELECT CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END, CASE WHEN a THEN b END;
SELECT CAST(a AS VARCHAR(10, 2)), CAST(b AS UNSIGNED BIG INT), -1, +2, ~3, - -4;
SELECT * FROM t WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN c AND d AND e IN (1, 2, 3) AND f NOT IN (SELECT g
    FROM h) AND i IN () AND j IN k;
SELECT * FROM t WHERE a IS NULL AND b IS NOT NULL AND c ISNULL AND d NOTNULL AND e NOT NULL AND f IS
    DISTINCT FROM g AND h IS NOT DISTINCT FROM i;
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) AND NOT EXISTS (VALUES (1));
SELECT (1, 2) = (SELECT a, b FROM t), (SELECT max(x) FROM y);
SELECT ?, ?1, :name, @name, $name, x'00fF', 0x1F, 1.5e-3, .5, 5., 1e10, CURRENT_TIMESTAMP;
SELECT a || b -> '$.c' ->> 'd', a << 2 | b >> 1 & c, a % b * c / d, a == b, a != b, a >= b, a <= b;
SELECT json_extract(data, '$.a.b') FROM j, json_each(j.data) AS e WHERE e.value MATCH 'x' AND glob('*', a)
    AND a REGEXP '^x' AND b GLOB '[a-z]*';
SELECT a = NOT b, NOT a = NOT b;
SELECT * FROM (SELECT a FROM t) AS s, (t JOIN u ON t.a = u.a), ((SELECT 1)) JOIN v INDEXED BY iv, w NOT
    INDEXED;
SELECT * FROM t INDEXED BY i WHERE rowid = 1;
SELECT key, value, date, action, first, last, row, rows, groups, range, match, plan, query, view, temp, no,
    "order", offset FROM settings;
SELECT left, right, full FROM tree natural join other;
VALUES (1, 'a'), (2, 'b');
INSERT INTO t VALUES (1, 2, NULL);
INSERT OR REPLACE INTO main.t AS x (a, b) SELECT * FROM u;
REPLACE INTO t (a) VALUES (1), (2);
INSERT INTO t DEFAULT VALUES RETURNING *;
INSERT INTO t (a, b) VALUES (1, 2) ON CONFLICT (a) WHERE b > 0 DO UPDATE SET b = excluded.b, (c, d) = (1, 2)
    WHERE t.b < 5 ON CONFLICT DO NOTHING RETURNING a, b AS c, d e;
INSERT INTO t SELECT a FROM u WHERE true ON CONFLICT (a COLLATE NOCASE DESC) DO NOTHING;
INSERT INTO t SELECT a FROM u LIMIT 1 ON CONFLICT DO NOTHING;
WITH x AS (SELECT 1) INSERT INTO t WITH y AS (SELECT 2) SELECT * FROM y;
UPDATE t SET a = a + 1, b = 'x' WHERE id = ?1 RETURNING id;
UPDATE OR IGNORE main.t AS x INDEXED BY i SET (a, b) = (SELECT 1, 2) FROM u JOIN v USING (k) WHERE x.id =
    u.id;
DELETE FROM t WHERE a IN (SELECT b FROM u);
WITH x AS (SELECT 1) DELETE FROM main.t AS q NOT INDEXED RETURNING *;
CREATE TABLE x (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE ON CONFLICT IGNORE, age INT
    DEFAULT 0 CHECK (age >= 0), price DECIMAL(10, 2) DEFAULT -1.5, created DATETIME DEFAULT CURRENT_TIMESTAMP,
    active BOOLEAN DEFAULT TRUE, owner REFERENCES users (id) ON DELETE CASCADE ON UPDATE SET NULL NOT DEFERRABLE
    INITIALLY DEFERRED NOT NULL, total AS (price * 2) STORED, x DOUBLE PRECISION GENERATED ALWAYS AS (1) VIRTUAL
    COLLATE NOCASE, plain);
CREATE TEMP TABLE IF NOT EXISTS temp.x (a, b, CONSTRAINT pk PRIMARY KEY (a, b COLLATE NOCASE DESC) ON
    CONFLICT ROLLBACK, UNIQUE (b), CHECK (a <> b), CONSTRAINT fk FOREIGN KEY (a) REFERENCES u ON DELETE NO
    ACTION MATCH FULL DEFERRABLE INITIALLY IMMEDIATE) WITHOUT ROWID, STRICT;
CREATE TABLE x AS SELECT * FROM u;
CREATE TABLE "my table" ([col 1] TEXT, `col 2` INTEGER DEFAULT (1 + 1));
CREATE UNIQUE INDEX IF NOT EXISTS main.i ON t (lower(a), b COLLATE NOCASE DESC, c + d) WHERE a IS NOT NULL;
CREATE VIEW v (a, b) AS SELECT 1, 2 UNION ALL VALUES (3, 4);
CREATE TEMPORARY VIEW IF NOT EXISTS v AS WITH x AS (SELECT 1) SELECT * FROM x;
CREATE TRIGGER IF NOT EXISTS trg AFTER UPDATE OF a, b ON t FOR EACH ROW WHEN old.a <> new.a BEGIN UPDATE t
    SET b = new.a WHERE id = old.id; INSERT INTO u (a) VALUES (new.a) ON CONFLICT DO NOTHING; DELETE FROM u
    WHERE a = 1; SELECT RAISE(ABORT, 'no'), RAISE(IGNORE); END;
CREATE TRIGGER trg INSTEAD OF INSERT ON v BEGIN SELECT 1; END;
CREATE VIRTUAL TABLE docs USING fts5(title, body UNINDEXED, tokenize = 'porter', prefix = '2 3');
CREATE VIRTUAL TABLE IF NOT EXISTS r USING rtree;
ALTER TABLE t RENAME TO u;
ALTER TABLE main.t RENAME COLUMN a TO b;
ALTER TABLE t RENAME a TO b;
ALTER TABLE t ADD COLUMN c TEXT NOT NULL DEFAULT '';
ALTER TABLE t ADD d;
ALTER TABLE t DROP COLUMN c;
DROP TABLE IF EXISTS main.t;
DROP INDEX i;
DROP VIEW IF EXISTS v;
DROP TRIGGER trg;
BEGIN;
BEGIN IMMEDIATE TRANSACTION;
COMMIT TRANSACTION;
END;
ROLLBACK;
ROLLBACK TRANSACTION TO SAVEPOINT s;
ROLLBACK TO s;
SAVEPOINT s;
RELEASE SAVEPOINT s;
RELEASE s;
EXPLAIN SELECT 1;
EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 1;
PRAGMA foreign_keys = ON;
PRAGMA main.table_info(t);
PRAGMA cache_size = -2000;
PRAGMA journal_mode=WAL;
ATTACH DATABASE 'file.db' AS other;
DETACH other;
VACUUM main INTO 'copy.db';
ANALYZE main.t;
REINDEX;
CREATE TABLE 't'('a' 'int', b 'long' 'name' (1));
SELECT 1 'a', 't'.a, 't'.*, 'a'.'b'.'c' AS 'd' FROM 't' 'x' JOIN main.'u' AS 'v' USING ('a');
WITH 'a' AS (SELECT 1) SELECT sum(a) OVER 'w', sum(b) OVER ('w' ORDER BY 'c') FROM t WINDOW 'w' AS ();
SELECT * FROM (t) AS x, (t, u) y;
SELECT if, if(1, 2), if.a b, a if, window('x'), window(1) OVER () FROM main.if if WINDOW w AS ();
CREATE TABLE IF NOT EXISTS if (if);
DROP TABLE IF EXISTS if;
CREATE VIRTUAL TABLE x USING m(a, order=DESC);
CREATE VIRTUAL TABLE x USING m('x', b=(c,(d),,), select * from t where 1, 2 -> 3, x'00' ?1,);
CREATE TRIGGER 'x' AFTER UPDATE OF 'a' ON main.'t' BEGIN UPDATE 't' SET 'a' = 1; END;
CREATE TABLE x(a CONSTRAINT c CONSTRAINT d NOT NULL CONSTRAINT 'e', b CONSTRAINT f, CONSTRAINT g CHECK (1)
    CONSTRAINT h UNIQUE (a), CONSTRAINT i);
ATTACH x AS 'y';
DETACH 'a';
VACUUM 'main' INTO 'a' || b;
UPDATE t SET a = 1 FROM u WHERE b RETURNING a ORDER BY b LIMIT 2;
DELETE FROM t LIMIT 1 OFFSET 2;
ALTER TABLE t ADD 'c' 'int';
ALTER TABLE 't' RENAME 'c' TO 'd';
ROLLBACK TO 's';
SELECT * FROM users WHERE email LIKE '%@example.com' ESCAPE '\' OR 'it''s' = "a""b";
"""

ODD_SPACES = [
    'SELECT"a"FROM"t"WHERE"a"=.5e0-+-1',
    "\n/* / * ** */select/**/1--\n-- a -- b\n+\t1;;\r\n",
    "; ;select'a'||x'0F'from[t]where`a`;",
    "Select a-- b",
]

#: One statement each.
REFUSED = r"""
SELECT
SELECT FROM t
SELECT a,, b
SELECT a FROM
SELECT a FROM t WHERE
SELECT a FROM t GROUP a
SELECT (1
SELECT 1)
SELECT a b c
SELECT 'abc
SELECT "abc
SELECT [abc
SELECT 12abc
SELECT 1e
SELECT 1e5x
SELECT 0x
SELECT .5a
SELECT 1.x
SELECT x'abc'
SELECT x'zz'
SELECT X'
SELECT 1 ! 2
SELECT a FROM t LIMIT 1 WHERE a
SELECT order FROM t
SELECT select FROM t
SELECT CASE a END
SELECT a BETWEEN 1
SELECT a IS NOT
SELECT a IN 1, 2
SELECT cast(1)
SELECT a FROM t JOIN
SELECT a FROM t LEFT t
SELECT a FROM t ORDER BY a WHERE b
VALUES (1) ORDER BY 1
SELECT 1 UNION VALUES (2) LIMIT 1
SELECT 1 UNION
SELECT f(a OVER w
SELECT f(a) OVER (ROWS BETWEEN 1 AND 2)
INSERT t VALUES (1)
INSERT INTO t (a, b)
INSERT INTO t (a,) VALUES (1)
INSERT INTO t VALUES ()
INSERT INTO t SELECT * FROM u ON CONFLICT DO NOTHING
INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING ON CONFLICT (a) DO NOTHING
UPDATE t a = 1
UPDATE t SET a
UPDATE t SET a = 1,
UPDATE SET a = 1
DELETE t
DELETE FROM t WHERE
CREATE TABLE x
CREATE TABLE x ()
CREATE TABLE x (a,)
CREATE TABLE x (PRIMARY KEY (a))
CREATE TABLE x (a, PRIMARY KEY a)
CREATE TABLE x (a VARCHAR(10)
CREATE TABLE x (a INT DEFAULT)
CREATE TABLE index (a)
CREATE INDEX i t (a)
CREATE VIEW v SELECT 1
CREATE TRIGGER x AFTER INSERT ON t BEGIN END
CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1 END
CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1
ALTER TABLE t ADD
ALTER TABLE t RENAME a b
DROP t
DROP TABLE IF t
BEGIN IMMEDIATE WORK NOW
SAVEPOINT
PRAGMA
PRAGMA x =
EXPLAIN EXPLAIN SELECT 1
EXPLAIN QUERY SELECT 1
ATTACH 'x'
SELECT a -> FROM t
SELECT * * FROM t
SELECT # FROM t
SELECT : FROM t
WITH x SELECT 1
WITH x AS SELECT 1 SELECT 2
SELECT a.b.c.d FROM t
SELECT 'a' 'b' 'c'
SELECT 'f'(1)
SELECT a window b FROM t
CREATE TABLE if (a)
DROP VIEW if
CREATE VIRTUAL TABLE x USING m(a))
CREATE VIRTUAL TABLE x USING m((a)
CREATE TABLE x (CONSTRAINT c)
DELETE FROM t LIMIT 1 WHERE a
"""

#: Where a name can be; some may be keywords.
NAMES = """
CREATE TABLE {} (a)
CREATE TABLE x (a, {} int)
CREATE TABLE x (a {})
CREATE TABLE x (a, b, PRIMARY KEY ({}))
CREATE TABLE x (a DEFAULT {})
CREATE TABLE x (a CONSTRAINT {} UNIQUE COLLATE {} REFERENCES t ({}))
CREATE TRIGGER x AFTER UPDATE OF {} ON t BEGIN DELETE FROM {}; END
CREATE VIEW {} ({}) AS SELECT 1
SELECT {} FROM t
SELECT t.{}, {}.a FROM t
SELECT 1 {} FROM t {} WHERE 1
SELECT 1 {}, a {} FROM (SELECT 1) {} LEFT JOIN t {} ON 1
SELECT 1 AS {} FROM {} AS {} JOIN {}.t USING ({})
SELECT {}(1, 2) OVER ({} ORDER BY {})
SELECT sum(a) OVER (ROWS {} PRECEDING)
SELECT sum(a) OVER {} FROM t WINDOW {} AS ()
SELECT CASE {} WHEN {} THEN {} ELSE {} END
SELECT ({}) IN ({}) OR 1 IN {} OR 1 IN {}(1)
SELECT 1 GROUP BY {} HAVING {} ORDER BY {} DESC LIMIT {} OFFSET {}
WITH {} AS (SELECT 1) SELECT 1
INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {} = {} RETURNING {}
UPDATE {} SET {} = 1
ALTER TABLE t RENAME {} TO {}
ALTER TABLE t ADD {}
ALTER TABLE t DROP {}
DROP TABLE {}
RELEASE {}
ROLLBACK TO {}
PRAGMA {} = {}
DETACH {}
ATTACH 'x' AS {}
"""

#: What guides begin with.
BEGINNINGS = """
SELECT
SELECT a FROM
SELECT a FROM t JOIN t
SELECT a FROM t WHERE a
SELECT a GROUP BY a
SELECT f( a ) OVER (
SELECT f( a ) OVER ( ROWS BETWEEN
SELECT a ORDER BY
WITH
INSERT INTO t VALUES ( 1 ) ON
INSERT INTO t SELECT a FROM t
UPDATE t SET
DELETE FROM t
CREATE
CREATE TABLE x (
CREATE TABLE x ( b int
CREATE TABLE x ( b REFERENCES t
CREATE TABLE x ( b , FOREIGN KEY
CREATE TRIGGER x INSERT ON t BEGIN
CREATE VIRTUAL TABLE x USING t (
CREATE INDEX x ON t ( a
ALTER TABLE t
"""

#: With these, and a space before each, what has been begun comes to an end: the first that is allowed.
ENDINGS = ") END THEN 1 t SELECT ; KEY BY AS BEGIN FROM WHEN JOIN SET INTO ON NULL = ROW DO NOTHING ( 'a' INSERT"

PIECES = """
) , , ; . * = == != <> < <= > >= << >> & | || + - ~ / % -> ->> ( a b c t u t.a t.* 1 2.5 .5 1e3 0xF 'a' x'0F' "q" [q]
`q` ? ?1 :p @p $p -- /* f( count(* ) ), 'it''s'
"""

KEYWORDS = re.findall(r'^[A-Z_]+: "([A-Z_]+)"i$', grammars.path("sql").read_text(), re.MULTILINE)


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


def accepted() -> list[str]:
    return re.split(r";\n(?!    )", ACCEPTED.strip().removesuffix(";"))


@cache
def judge() -> Lark:
    return Lark(grammars.path("sql").read_text(), parser="lalr", lexer="basic", propagate_positions=True)


def statements(script: str) -> list[str]:
    """The statements of a script that Lark parses."""
    spans = [tree.meta for tree in judge().parse(script).find_data("statement")]
    return [script[span.start_pos : span.end_pos] for span in spans]


@pytest.fixture(scope="module")
def vocabulary() -> sg.Vocabulary:
    return with_bytes(*(f" {word}" for word in dict.fromkeys([*ENDINGS.split(), *KEYWORDS, *PIECES.split()])))


@pytest.fixture(scope="module")
def index(vocabulary: sg.Vocabulary) -> sg.Index:
    return sg.compile(sg.Grammar(grammars.path("sql"), lexer="basic", strict=True), vocabulary, eager=False)


def test_statements(index: sg.Index) -> None:
    for statement in accepted():
        assert parses(judge(), statement), statement
        assert index.match(statement.encode()).accepted, statement
        assert not syntax_error(statement), statement


def test_broken_statements(index: sg.Index) -> None:
    for statement in lines(REFUSED):
        assert not parses(judge(), statement), statement
        assert not index.match(statement.encode()).accepted, statement
        if sqlite3.sqlite_version_info >= (3, 39):
            assert syntax_error(statement), statement


def test_scripts_spaces_and_case(index: sg.Index) -> None:
    whole = ";\n".join(accepted())
    for script in [*ODD_SPACES, whole, whole.lower(), re.sub(r"\s+", " /* ; */ ", ";".join(accepted()))]:
        assert index.match(script.encode()).accepted, script
        assert not any(map(syntax_error, statements(script))), script
    assert len(statements(whole)) == len(accepted())
    assert not index.match(b"").accepted
    assert not index.match(b"-- nothing").accepted


def test_every_prefix_is_alive(index: sg.Index) -> None:
    for text in [*accepted(), "SELECT é, naïve AS 名 FROM größe WHERE 'π' -- ∞"]:
        octets = text.encode()
        for end in range(len(octets)):
            assert index.match(octets[:end]).consumed == end, octets[:end]


def test_names_that_are_keywords(index: sg.Index) -> None:
    """Reserved words are no names, and nothing is a name where SQLite takes it for something else."""
    known = 0
    for template in lines(NAMES):
        for word in [*KEYWORDS, '"order"', "[a b]", "`select`", "'a b'"]:
            statement = template.replace("{}", word)
            if parses(judge(), statement):
                assert not syntax_error(statement), statement
                known += 1
            if word in ("SELECT", "ORDER", "TABLE", "AND"):
                assert not index.match(statement.encode()).accepted, statement
    assert known > 2000


def written(index: sg.Index, random: Random, beginning: str, steps: int) -> str:
    """A text that a guide lets through: random tokens, then those that bring it to an end."""
    vocabulary = index.vocabulary
    numbers = {vocabulary.token(t): t for t in range(vocabulary.size)}
    guide, text = sg.Guide(index), beginning.encode()
    for octet in text:
        assert guide.advance(octet)
    for step in range(steps + 200):
        row = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[: vocabulary.size]
        if guide.is_accepting() and step >= steps:
            return text.decode()
        words = [t for t in range(256, vocabulary.size - 1) if row[t]]
        letters = [t for t in range(128) if row[t]]
        if row[1]:  # inside quotes or a comment, where everything is allowed
            endings = [t for t in b"'\"]`/*\n" if row[t]]
        else:
            ids = (numbers[f" {ending}".encode()] for ending in ENDINGS.split())
            endings = [t for t in ids if row[t]][:1]
        token = random.choice((endings if step >= steps and random.random() < 0.9 else []) or words or letters)
        text += vocabulary.token(token) or b""
        assert guide.advance(token)
    return ""


def test_what_guides_write_parses(index: sg.Index) -> None:
    random, judged = Random(1), 0
    for _ in range(10):
        for beginning in lines(BEGINNINGS):
            text = written(index, random, beginning, random.choice([2, 8, 20]))
            assert not text or parses(judge(), text), text
            for statement in statements(text) if text else []:
                assert not syntax_error(statement), statement
                judged += 1
    assert judged > 180


def test_masks_are_what_a_guide_allows(index: sg.Index) -> None:
    random, size = Random(2), index.vocabulary.size
    for statement in random.sample(accepted(), 15):
        guide = sg.Guide(index)
        for octet in statement.encode()[: random.randint(0, len(statement))]:
            assert guide.advance(octet)
        row = np.unpackbits(guide.bitmask().view(np.uint8), bitorder="little")[:size]
        assert [t for t in range(size) if guide.allows(t)] == np.flatnonzero(row).tolist(), statement


def test_tokens_of_a_model(tekken: sg.Vocabulary) -> None:
    index = sg.compile(sg.Grammar(grammars.path("sql"), lexer="basic"), tekken, budget=sg.Budget(seconds=600))
    numbers = {tekken.token(t): t for t in range(tekken.size)}
    for statement in accepted():
        guide, rest = sg.Guide(index), statement.encode()
        while rest:
            end = next(n for n in range(min(len(rest), 16), 0, -1) if rest[:n] in numbers)
            assert guide.advance(numbers[rest[:end]]), rest
            rest = rest[end:]
        assert guide.is_accepting(), statement
