"""Sets of numbers, closed under and, or and not: intervals, multiples, constants.

Comes in: assertions on numbers, as decimals of any size. Goes out: a `Dfa` of their spellings;
docs/internals/json_numbers.md derives it.

Read `numbers` and `interval_set` (the sets), `dfa` (the automaton's states), `sides`, `comparators` (less, equal,
greater while digits are read), `divisors` (remainders), `literals`, `table`.
"""
