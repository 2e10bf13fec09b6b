"""Long texts of which a part is to be quoted, as terminals that are not lexed.

`suffixes` puts what begins in a text in order, `machine` follows a part of it: an interval of that order.
"""

from __future__ import annotations
