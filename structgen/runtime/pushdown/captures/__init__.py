"""What attributes of rules mean to a text that an automaton with a stack reads: parts given back, and temperatures.

A rule with such attributes is called by way of a *labelled* state, which has no edges and returns: it lies on the
stack below the rule's own states for as long as the rule is read. Comes in: the labels of states, and a text. Goes
out: `Captured` parts and temperatures.

Read `labels`, then `recording` and `temperatures`.
"""
