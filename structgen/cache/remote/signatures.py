"""Ed25519 (RFC 8032) over the head of an object, through ``cryptography``, which is loaded where a key is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import ArgumentError, FormatError
from ...system.digest import blake2b

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from .values import ObjectStore

#: Bytes that name a key, before the signature.
_NAME_BYTES = 8

#: Bytes of a signature with its key's name.
SIGNATURE_BYTES = _NAME_BYTES + 64

#: Signed before what is signed, so that a signature means nothing elsewhere.
_DOMAIN = b"structgen store object 1\0"


class Keys:
    """The keys of a store: one that signs, and those by which an object is taken.

    Raises `ArgumentError` for what is not an Ed25519 key in PEM, and where ``cryptography`` is not installed.
    """

    def __init__(self, private: bytes | None, public: Sequence[bytes]) -> None:
        self._public: dict[bytes, Ed25519PublicKey] = {}
        self._private: Ed25519PrivateKey | None = None
        if private is None and not public:
            return
        try:
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
        except ImportError as error:
            raise ArgumentError(
                "signatures need the package cryptography", remedy="pip install 'structgen[store]'"
            ) from error
        if private is not None:
            with _reading("sign_key", "private"):
                signer = serialization.load_pem_private_key(private, None)
            if not isinstance(signer, Ed25519PrivateKey):
                raise _no_key("sign_key", "private")
            self._private = signer
            self._public[_name(signer.public_key())] = signer.public_key()
        for number, key in enumerate(public):
            with _reading(name := f"verify_keys[{number}]", "public"):
                taken = serialization.load_pem_public_key(key)
            if not isinstance(taken, Ed25519PublicKey):
                raise _no_key(name, "public")
            self._public[_name(taken)] = taken

    @classmethod
    def of(cls, store: ObjectStore) -> Keys:
        """Those that a user gave."""
        return cls(store.sign_key, store.verify_keys)

    def sign(self, head: bytes) -> bytes:
        """The signature of an object's head, with its key's name; empty without a key that signs."""
        if self._private is None:
            return b""
        return _name(self._private.public_key()) + self._private.sign(_DOMAIN + head)

    def check(self, head: bytes, signature: bytes, where: str) -> None:
        """Raise `FormatError` unless a key that is trusted signed the head; anything will do where there are none."""
        if not self._public:
            return
        from cryptography.exceptions import InvalidSignature

        key = self._public.get(signature[:_NAME_BYTES])
        if key is None:
            what = "is signed by a key that is not trusted" if signature else "is not signed"
            raise FormatError(f"the object {what}", where=where)
        try:
            key.verify(signature[_NAME_BYTES:], _DOMAIN + head)
        except InvalidSignature:
            raise FormatError("the object's signature is wrong", where=where) from None


def _name(key: Ed25519PublicKey) -> bytes:
    return blake2b(key.public_bytes_raw(), digest_size=_NAME_BYTES).digest()


@contextmanager
def _reading(name: str, half: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError) as error:
        raise _no_key(name, half) from error


def _no_key(name: str, half: str) -> ArgumentError:
    return ArgumentError(
        f"{name} is not an Ed25519 {half} key in PEM",
        remedy="openssl genpkey -algorithm ed25519 makes one; openssl pkey -pubout tells its public half.",
    )
