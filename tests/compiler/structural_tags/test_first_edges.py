"""What a state does is told whole to whoever calls it, however the program says it."""

from __future__ import annotations

import numpy as np

from structgen.compiler.programs.program import REFUSED, Program, bytes_of, edge_of
from structgen.compiler.programs.tables import to_tables


def test_edges_of_a_state_that_is_like_another_one() -> None:
    program = Program()
    end, other = program.state(returns=True), program.state()
    start = program.state(like=other)
    program.edge(other, 0x61, 0x7A, end)
    program.blocks.append(np.array([(other, 0x30, 0x30, 1 + end), (start, 0x31, 0x31, 1 + end)], np.int32).T)
    program.edges[start] = edge_of(0x62, 0x62, REFUSED), edge_of(0x63, 0x63, program.target((end, other)))
    program.start = start
    tables = to_tables(program)
    found = {byte: program.sequence(edge >> 16) for edge in program.edges_at(start) for byte in bytes_of([edge])}
    assert found.keys() == tables.edges(tables.start).keys()
    assert found[0x63] == (end, other)
    assert 0x62 not in found
    assert sum(len(bytes_of([edge])) for edge in program.edges_at(start)) == len(found)
