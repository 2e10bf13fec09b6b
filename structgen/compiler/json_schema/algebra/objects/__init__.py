"""Objects in the algebra: conjunctions of what keywords say about members.

Comes in: assertions on members by name, pattern and number. Goes out: cases that `normal_form.shaping` spells out.

Read `object_case`, `member_rules` (what a name's member must be), `object_cases` (keywords to cases), `dnf`.
"""
