"""What the process gives: locks and their order, bounded memories, the collector, folders of one's own.

Comes in: nothing of structgen but its errors. Goes out: `Lock`, `Memo`, `cached_property`, which all other rooms
build their state from.

Read `locks` first (the order of all locks, forks, giving way), then `memo`, `properties`, `garbage`, and `folders`
with `private_folder` for what lies on disk.
"""
