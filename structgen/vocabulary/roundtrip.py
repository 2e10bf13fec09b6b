"""The judge of a vocabulary is its tokenizer: the bytes of ``encode(text)`` must be the text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ..errors import VocabularyError

#: Between them: words, cases, spaces, code, several scripts, an emoji, a combining mark, control characters.
TEXTS = (
    "hello world",
    "The quick brown fox, 1234567890!",
    '{"name": "value", "list": [1, 2.5e-3, null]}',
    "def f(x):\n    return x  # two  spaces\n\n\tdone",
    "naïve Straße, Ελληνικά, русский, 日本語, العربية",
    "👩\u200d💻 and \x01",
    "cafe\u0301",
    " leading and trailing ",
)


def check_roundtrip(
    token: Callable[[int], bytes | None],
    eos_ids: Collection[int],
    encode: Callable[[str], Sequence[int]],
    texts: Iterable[str],
) -> None:
    """Raise `VocabularyError` where the bytes of a text's tokens are not the text in UTF-8.

    One space before the text is forgiven: many tokenizers put it in front of the first word when they encode,
    and take it off the whole text when they decode. Texts that the tokenizer normalizes must be passed in
    normal form, see `faithful_texts`. A text with an EOS id among its tokens, whose bytes a vocabulary drops,
    says nothing. ``token`` gives the bytes of an id.
    """
    for text in texts:
        ids = encode(text)
        if not set(eos_ids).isdisjoint(ids):
            continue
        spelled = b"".join(token(i) or b"" for i in ids)
        if spelled not in (text.encode(), b" " + text.encode()):
            raise VocabularyError(
                f"the vocabulary is not the tokenizer's: it spells {text!r} as {spelled!r}",
                where=f"token ids {list(ids)}",
                remedy="If you know the bytes of its tokens, use Vocabulary.from_bytes.",
            )


def faithful_texts(
    encode: Callable[[str], Sequence[int]], decode: Callable[[Sequence[int]], str], texts: Iterable[str] = TEXTS
) -> list[str]:
    """The texts that the tokenizer itself gives back unchanged, so that they can judge a vocabulary."""
    return [text for text in texts if decode(encode(text)) == text]
