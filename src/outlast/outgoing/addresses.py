"""Which addresses a request may go to: those of the public internet, and networks that the operator allows."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from outlast.errors import InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_TUNNELS = (
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("2001::/32"),
    IPv6Network("2002::/16"),
    IPv6Network("::/96"),
)
"""They lead to an IPv4 address by way of a relay, which nobody here can judge."""
_LAST_32_BITS = 0xFFFF_FFFF


def networks(texts: Sequence[str]) -> Sequence[Network]:
    """Raises `InvalidInput` for what is no network."""
    return [_network(each) for each in texts]


def _network(text: str) -> Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError as exc:
        raise InvalidInput(f"{text!r} is not a network: write it as 10.1.0.0/16 or fd00::/8.") from exc


def is_allowed(text: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a request may go to an address, as the resolver writes it."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    meant = _meant(address)
    return any(meant in each for each in allowed) or _is_public(meant)


def _meant(address: Address) -> Address:
    """The IPv4 address that stands within an IPv6 one."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & _LAST_32_BITS)
    return address


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, IPv4Address):
        return True
    return not address.is_site_local and not any(address in each for each in _TUNNELS)


def is_literal(host: str) -> bool:
    """Whether a host is an address and not a name."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
