"""Going back in a key-value cache of transformers 5.24, exactly: what comes then is what would have come before.

| layers | go back by |
|---|---|
| dynamic, sliding windows included | their own ``crop``; a window remembers what it drops from `prepare` on |
| static | counting fewer: what stands behind is written over, and masked until then |
| quantised with a residual (Quanto, HQQ) | taking up what they held: they replace tensors and change none |
| FP8 | slicing, as each token was appended on its own |

A static sliding window writes over what it drops; linear attention keeps a sum, and indexed layers keys of their own:
they are refused.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TypeAlias

from ...errors import UnsupportedError
from ...system.types import Foreign

#: What quantised layers held, layer by layer; None for others.
Held: TypeAlias = "list[dict[str, Foreign] | None]"

#: Layers that can't go back, by a part of their names.
_FIXED = ("StaticSliding", "Indexed", "Linear")


@lru_cache(maxsize=1)
def name() -> str:
    """What transformers calls the cache among arguments and outputs of models: ``cache`` from 5.24 on."""
    output: Foreign = import_module("transformers.generation.utils").GenerateDecoderOnlyOutput
    return "cache" if "cache" in output.__dataclass_fields__ else "past_key_values"


def prepare(cache: Foreign) -> None:
    """Have a cache remember what going back takes. Raises `UnsupportedError` for one that can't go back."""
    names = [type(layer).__name__ for layer in _layers(cache)]
    fixed = next((name for name in names if any(each in name for each in _FIXED)), None)
    if fixed is not None or (cache is not None and not hasattr(cache, "crop")):
        raise UnsupportedError(
            f"optimistic decoding takes tokens back, which a {fixed or type(cache).__name__} can't",
            remedy="Use cache_implementation='dynamic', or mode='masked'.",
        )
    if hasattr(cache, "activate_past_recording"):
        cache.activate_past_recording()


def held(cache: Foreign) -> Held:
    """What going back to here takes: references to what quantised layers hold."""
    residual = _class("QuantizedLayer")
    return [dict(vars(layer)) if isinstance(layer, residual) else None for layer in _layers(cache)]


def reaches(cache: Foreign, count: int) -> bool:
    """Whether sliding windows still hold what stood in them ``count`` tokens ago: as far as the last going back."""
    kind = _class("DynamicSlidingWindowLayer")
    return all(_reaches(layer, count) for layer in _layers(cache) if isinstance(layer, kind))


def _reaches(window: Foreign, count: int) -> bool:
    length = window.get_seq_length()
    kept: int = window.keys.shape[-2] if length else 0
    return bool(kept - count >= min(window.sliding_window - 1, length - count))


def go_back(cache: Foreign, count: int, before: Held) -> None:
    """Forget the last ``count`` tokens, which were read since `held` gave ``before``, and within what `reaches`."""
    for layer, attributes in zip(_layers(cache), before, strict=True):
        if attributes is not None:
            vars(layer).clear()
            vars(layer).update(attributes)
        elif isinstance(layer, _class("StaticLayer")):
            layer.cumulative_length.sub_(count)  # in place: a compiled graph has its address
        elif isinstance(layer, _class("Fp8QuantizedLayer")):
            for name in ("_quantized_keys", "_quantized_values"):
                tensor, scale = getattr(layer, name)
                setattr(layer, name, (tensor[..., :-count, :], scale))
            layer.cumulative_length -= count
        else:
            layer.crop(-count)


def _layers(cache: Foreign) -> list[Foreign]:
    """The layers of a decoder's cache; of an encoder-decoder's those that grow."""
    return list(getattr(getattr(cache, "self_attention_cache", cache), "layers", ()))


def _class(name: str) -> Foreign:
    return getattr(import_module("transformers.cache_utils"), name, ())
