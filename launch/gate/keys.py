"""The keys of a run: an authority made for it alone, and one key signed by it for each host.

A key file is PEM: the certificate, its key, and the authority's certificate. It is all that a host
needs to know its run, and for the run to know the host. A new authority is made whenever a run is
started or resumed, so that what an earlier one signed opens nothing.
"""

import dataclasses
import datetime
import pathlib
import re

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from launch.errors import InputError
from report.atomic_file import write_atomically

# Longer than a run's stretch between two resumes; the docs say so too.
VALID_DAYS = 90
_CLOCK_HOURS = 1  # by which the clocks of two hosts may differ
_AUTHORITY, GATE = "authority.pem", "gate.pem"
_MAX_BYTES = 1 << 16
_ACTOR = re.compile(r"actor-(\d+)\.pem")


def actor_key(index: int) -> str:
    """File name of an actor host's key."""
    return f"{actor_name(index)}.pem"


def actor_name(index: int) -> str:
    """The name that an actor host's key is for."""
    return f"actor-{index}"


@dataclasses.dataclass(frozen=True)
class HostKey:
    """A key file that was read and found to be good, for now."""

    path: pathlib.Path
    run_id: str  # whose authority signed it
    authority: str  # the authority's certificate, as PEM
    ends: datetime.datetime


def make_keys(folder: pathlib.Path, run_id: str, actor_hosts: int) -> None:
    """Makes a new authority and the keys of all hosts; those of before are gone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    for path in folder.iterdir():
        path.unlink()
    authority = _new_authority(run_id)
    _write(folder / _AUTHORITY, authority.key, authority.certificate)
    _issue(authority, folder / GATE, ExtendedKeyUsageOID.SERVER_AUTH)
    add_actor_keys(folder, actor_hosts)


def add_actor_keys(folder: pathlib.Path, actor_hosts: int) -> None:
    """Makes the keys of those actor hosts that have none, and removes those of hosts beyond."""
    authority = _read_authority(folder / _AUTHORITY)
    wanted = {actor_key(index) for index in range(actor_hosts)}
    for path in folder.iterdir():
        if _ACTOR.fullmatch(path.name) and path.name not in wanted:
            path.unlink()
    for name in wanted:
        if not (folder / name).exists():
            _issue(authority, folder / name, ExtendedKeyUsageOID.CLIENT_AUTH)


def read_key(path: pathlib.Path, run_id: str | None = None) -> HostKey:
    """Reads a host's key; refuses one that is damaged, another run's, or not valid at this time."""
    text = _read(path)
    try:
        own, authority = x509.load_pem_x509_certificates(text)
        serialization.load_pem_private_key(text, password=None)
        signed_by = str(own.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"key '{path}' cannot be read: {error}; resume the run") from None
    if run_id not in (None, signed_by):
        raise InputError(f"key '{path}' is of run {signed_by}, not of {run_id}; resume the run")
    _check_dates(path, own)
    return HostKey(
        path,
        signed_by,
        authority.public_bytes(serialization.Encoding.PEM).decode(),
        own.not_valid_after_utc,
    )


def _check_dates(path: pathlib.Path, certificate: x509.Certificate) -> None:
    now = _now()
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        raise InputError(
            f"key '{path}' is valid from {begins:%F %T} UTC, and this host's clock says "
            f"{now:%F %T}; set the clock"
        )
    if now > ends:
        raise InputError(
            f"key '{path}' was valid until {ends:%F %T} UTC, and this host's clock says "
            f"{now:%F %T}; stop and resume the run, which makes new keys, or set the clock"
        )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _end() -> datetime.datetime:
    return _now() + datetime.timedelta(days=VALID_DAYS)


@dataclasses.dataclass(frozen=True)
class _Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def _new_authority(run_id: str) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(run_id)
    builder = _builder(subject=name, issuer=name, key=key.public_key(), ends=_end())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return _Authority(key, builder.sign(key, hashes.SHA256()))


def _issue(authority: _Authority, path: pathlib.Path, usage: x509.ObjectIdentifier) -> None:
    """Signs a new key: for one end of the gate, so that it cannot stand for the other."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate.subject
    run_id = str(issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    # A key of a host that joins late ends with the others: nobody takes it without its authority.
    ends = min(_end(), authority.certificate.not_valid_after_utc)
    builder = _builder(subject=_name(path.stem), issuer=issuer, key=key.public_key(), ends=ends)
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([usage]), True),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), False),
    ]
    if usage == ExtendedKeyUsageOID.SERVER_AUTH:
        extensions.append((x509.SubjectAlternativeName([x509.DNSName(run_id)]), False))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    certificate = builder.sign(authority.key, hashes.SHA256())
    _write(path, key, certificate, authority.certificate)


def _builder(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    ends: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - datetime.timedelta(hours=_CLOCK_HOURS))
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _write(
    path: pathlib.Path, key: ec.EllipticCurvePrivateKey, *certificates: x509.Certificate
) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    own, *others = (c.public_bytes(serialization.Encoding.PEM) for c in certificates)
    write_atomically(path, b"".join([own, private, *others]).decode(), mode=0o600)


def _read_authority(path: pathlib.Path) -> _Authority:
    text = _read(path)
    try:
        key = serialization.load_pem_private_key(text, password=None)
        [certificate] = x509.load_pem_x509_certificates(text)
    except (ValueError, TypeError) as error:
        raise InputError(f"key '{path}' cannot be read: {error}; resume the run") from None
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    _check_dates(path, certificate)
    return _Authority(key, certificate)


def _read(path: pathlib.Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except FileNotFoundError:
        raise InputError(
            f"no key '{path}'; it is made when the run is started or resumed"
        ) from None
    except OSError as error:
        raise InputError(f"key '{path}' cannot be read: {error.strerror}") from None
