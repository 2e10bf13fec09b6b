"""Finite automata over bytes.

Comes in: edges between states, labelled with bytes or, on the way, markers. Goes out: minimal deterministic
automata, as `Tables`. Algorithms: Thompson's construction (1968), subset construction (Rabin and Scott 1959) with
counters beside the states, minimisation (Valmari and Lehtinen 2008).

Read `nfa`, then `dfa`; `edge_lists` has automata as lists, `charset` sets of characters; `utf8` writes those as
automata of their bytes, `words` sets of texts, `factors` what stands somewhere in a text; `fsm` takes interegular's.
"""
