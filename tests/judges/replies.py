"""Replies read back: what a client makes of the stream, and random replies that a mask allows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import structgen as sg


def calls_of(message: Mapping[str, Any]) -> list[list[Any]]:
    """The names and arguments of a message's calls."""
    functions = [call["function"] for call in message.get("tool_calls", [])]
    return [[function["name"], json.loads(function["arguments"])] for function in functions]


def accumulated(events: Iterable[sg.ReplyEvent]) -> dict[str, Any]:
    """The message that a client of the Chat Completions API puts together of the deltas."""
    message: dict[str, Any] = {"role": "assistant"}
    for event in events:
        delta: dict[str, Any] = dict(event.delta)
        for call in delta.pop("tool_calls", []):
            calls = message.setdefault("tool_calls", [])
            if call["index"] == len(calls):
                calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
            known = calls[call["index"]]
            known["id"] = call.get("id") or known["id"]
            for key, value in call.get("function", {}).items():
                known["function"][key] += value
        for key, value in delta.items():
            message[key] = message.get(key, "") + value
    return message


def told(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without content where that is empty, or null."""
    return {key: value for key, value in message.items() if key != "content" or value}


def random_reply(guide: sg.Guide, random: Random, eos: int) -> bytes:
    """A reply that a guide over bytes allows, drawn byte by byte; the guide's ``max_tokens`` ends it."""
    data = bytearray()
    while True:
        allowed = [token for token in range(eos + 1) if guide.allows(token)]
        if eos in allowed and (len(allowed) == 1 or random.random() < 0.1):
            return bytes(data)
        likely = [token for token in allowed if 32 <= token < 127]
        token = random.choice(likely if likely and random.random() < 0.8 else [t for t in allowed if t != eos])
        assert guide.advance(token)
        data.append(token)
