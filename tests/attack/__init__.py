"""What strangers, other users and other processes may try, all of it in one run: ``make attack``.

In: the collections of hostile definitions (`hostile_definitions`, `hostile_grammars`, `mixed_definitions`,
`scaled_definitions`), the fuzzer of files (`index_fuzzer`) and the tests of caches, users, threads, forks and
arguments. Out: one table, and a status other than 0 where anything did not hold.

Read `areas`, the table of what is run; `definitions`, which compiles each definition in a process of its own and
steps over it; `outcome`, what an area reports.
"""
