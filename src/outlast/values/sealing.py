"""Sealing: text that only a process with the key reads, and only in the place that it was sealed for."""

import base64
import hashlib
import json
import secrets
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from outlast.errors import InvalidInput, NoEncryptionKey

MAKE_KEY = "outlast keys generate-encryption"
"""The command that makes a key."""
_FORM = "s1."
"""How sealed text begins: another form would begin otherwise."""
_KEY_BYTES = 32
_NONCE_BYTES = 12
_ANY = "surrogatepass"
"""Whatever is given is kept: also what is no text that could be sent."""


class Unreadable(Exception):
    """No key opens it, or it was sealed for another place."""


class Sealing:
    """The first key seals, all of them open: to change it, put the new one first.

    `place` names what the text belongs to. It is bound into what is sealed (AES-256-GCM, as associated data) and not
    stored in it: a row that was copied to another place does not open there.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise NoEncryptionKey(f"No encryption key is set: make one with `{MAKE_KEY}`.")
        self._ciphers = [AESGCM(hashlib.sha256(b"outlast sealing " + _bytes_of(each)).digest()) for each in keys]
        self._fernet = MultiFernet([Fernet(each) for each in keys])
        self.mark_key = hashlib.sha256(b"outlast secrets " + keys[0].encode()).digest()
        """For marks by which equal texts are found without being read."""
        self.key_mark = hashlib.sha256(b"outlast key mark " + _bytes_of(keys[0])).hexdigest()[:16]
        """Names the key that seals, and tells nothing of it."""

    def seal(self, text: str, *place: str) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, text.encode(errors=_ANY), _bound(place))
        return _FORM + base64.urlsafe_b64encode(nonce + sealed).decode()

    def open(self, sealed: str, *place: str) -> str:
        """Raises `Unreadable`, whatever stands there."""
        try:
            if not sealed.startswith(_FORM):
                raise ValueError("not sealed here")
            packed = base64.b64decode(sealed.removeprefix(_FORM), altchars=b"-_", validate=True)
            nonce, body = packed[:_NONCE_BYTES], packed[_NONCE_BYTES:]
        except ValueError as exc:
            raise Unreadable from exc
        for each in self._ciphers if len(nonce) == _NONCE_BYTES else ():
            try:
                return each.decrypt(nonce, body, _bound(place)).decode(errors=_ANY)
            except (InvalidTag, UnicodeDecodeError):
                continue
        raise Unreadable

    def open_fernet(self, token: str) -> str:
        """A token in the Fernet form, which belongs to no place."""
        try:
            return self._fernet.decrypt(token.encode()).decode(errors=_ANY)
        except InvalidToken as exc:
            raise Unreadable from exc


def _bytes_of(key: str) -> bytes:
    try:
        found = base64.b64decode(key.encode(), altchars=b"-_", validate=True)
    except ValueError as exc:
        raise InvalidInput(_NO_KEY) from exc
    if len(found) != _KEY_BYTES:
        raise InvalidInput(_NO_KEY)
    return found


_NO_KEY = f"One of encryption_keys is not a key. Make one with: {MAKE_KEY}"


def _bound(place: Sequence[str]) -> bytes:
    """As JSON, so that no two places are written alike."""
    return json.dumps(place).encode()
