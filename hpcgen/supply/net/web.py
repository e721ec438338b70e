"""One GET over http or https: proxies and certificate authorities of the machine, redirects, timeouts, plain words.

Only ``http.client`` below it: a connection is kept for the next file of the same host, and a transfer that stalls can
be cut off from another thread. urllib3 (2.8) offers that too, but not before the answer has begun, and it ends a TLS
socket so that its reader goes on with what is still encrypted (``ssl.SSLSocket.shutdown``). Conditional ranges are
those of RFC 9110, sections 13.1.5 and 14.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from hpcgen.core.secret_rules import without_secrets

_REDIRECTS = 10
_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
"""Beside ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, which OpenSSL itself reads."""
_LATER = (408, 425, 429, 500, 502, 503, 504)
_MEANINGS = {
    401: "it requires a user name and a password, or a token",
    403: "it does not allow it",
    404: "it does not have the file",
    407: "the proxy requires a user name and a password",
    410: "it no longer has the file",
    429: "too many requests",
    503: "it is overloaded or under maintenance",
}


_CHUNK = 256 * 1024


class WebError(Exception):
    """Why an address gave nothing.

    ``again``: it may do better another time; ``wait``: not before so many seconds, as the server asks. ``down``: the
    host could not even be reached. ``other_file``: it gave a file, which is not the wanted one.
    """

    def __init__(
        self, message: str, again: bool = True, wait: float = 0.0, down: bool = False, other_file: bool = False
    ) -> None:
        super().__init__(message)
        self.message, self.again, self.wait, self.down, self.other_file = message, again, wait, down, other_file


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds: until a connection stands; of silence."""

    connect: float = 20.0
    silence: float = 30.0


class Response(msgspec.Struct, frozen=True):
    """A response: its final address, status and headers; ``read`` gives the next bytes, none at the end."""

    url: str
    status: int
    headers: Mapping[str, str]
    read: Callable[[int], bytes]
    close: Callable[[], None]

    def body(self, most: int) -> bytes:
        """All of it; WebError where it is larger than ``most`` bytes, or ends before the length that was announced."""
        data = bytearray()
        while chunk := self.read(_CHUNK):
            data += chunk
            if len(data) > most:
                raise WebError(f"the answer is larger than {most >> 20} MiB", again=False)
        announced = self.headers.get("content-length", "")
        if announced.isdecimal() and len(data) != int(announced):
            raise WebError("the connection ended in the middle of it")
        return bytes(data)


def shown(url: str) -> str:
    """An address for a message: without secrets, without control characters."""
    text = without_secrets(url)
    return text if text.isprintable() else repr(text)


def tls_context(ca_files: Iterable[Path]) -> ssl.SSLContext:
    """The machine's certificate authorities, those that the environment names, and ``ca_files`` where they exist.

    WebError: a file holds no certificates.
    """
    context = ssl.create_default_context()
    named = [Path(os.environ[name]) for name in _CA_VARIABLES if os.environ.get(name)]
    for path in [*named, *ca_files]:
        if path.is_dir():
            context.load_verify_locations(capath=str(path))
        elif path.is_file():
            try:
                context.load_verify_locations(cafile=str(path))
            except OSError as error:
                reason = "it contains no certificates" if isinstance(error, ssl.SSLError) else error.strerror
                raise WebError(f"{path} names no certificate authorities: {reason}", again=False) from None
    return context


class Web:
    """Connections to servers, kept for each thread.

    Parameters
    ----------
    ca_files: certificate authorities to trust beside those of the machine.
    tokens: what is sent to a host, by its name and port, over TLS alone: no other host that it redirects to gets it.
    """

    def __init__(
        self, timeouts: Timeouts | None = None, ca_files: Iterable[Path] = (), tokens: Mapping[str, str] | None = None
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self.ca_files = tuple(ca_files)
        self.tokens = dict(tokens or {})
        self.proxies = urllib.request.getproxies_environment()
        self._kept = threading.local()
        self._context: ssl.SSLContext | None = None
        self._making = threading.Lock()

    def get(
        self, url: str, headers: Mapping[str, str], plain: bool, on_socket: Callable[[socket.socket], None]
    ) -> Response:
        """The answer to a GET, redirects followed.

        plain: http without TLS is allowed. From https to http no redirect is ever followed.
        on_socket: told the socket of each connection, so that another thread can shut it down.
        WebError: no answer, or none that has a file.
        """
        origin = urllib.parse.urlsplit(url)
        parts = origin
        for _ in range(_REDIRECTS):
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise WebError(f"{shown(parts.geturl())} is not an https address", again=False)
            if parts.scheme == "http" and not plain:
                raise WebError("http is not allowed, only https", again=False)
            own = parts.netloc == origin.netloc
            answer = self._ask(parts, headers, origin if own else None, on_socket)
            if answer.status not in (301, 302, 303, 307, 308):
                return _with_file(answer)
            answer.close()
            target = _joined(parts.geturl(), answer.headers.get("location", ""))
            if parts.scheme == "https" and target.scheme == "http":
                raise WebError(f"redirects from https to http: {shown(target.geturl())}", again=False)
            parts = target
        raise WebError(f"redirects more than {_REDIRECTS} times", again=False)

    def _ask(
        self,
        parts: urllib.parse.SplitResult,
        headers: Mapping[str, str],
        credentials: urllib.parse.SplitResult | None,
        on_socket: Callable[[socket.socket], None],
    ) -> Response:
        """One request; a connection that was kept and has died meanwhile is replaced at once."""
        given = {"Accept-Encoding": "identity", "User-Agent": "hpcgen", "Accept": "*/*", **headers}
        if credentials is not None and credentials.username is not None:
            given["Authorization"] = _basic(credentials)
        elif parts.scheme == "https" and (token := self.tokens.get(parts.netloc)):
            given["Authorization"] = f"Bearer {token}"
        for attempt in (1, 2):
            connection, key, used = self._connection(parts)
            target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
            if key[2] and parts.scheme == "http":
                target = urllib.parse.urlunsplit(("http", _host(parts), parts.path or "/", parts.query, ""))
                given |= _proxy_authorization(self._proxy(parts))
            try:
                if connection.sock is None:
                    connection.connect()
                line: socket.socket = connection.sock  # set by connect()
                line.settimeout(self.timeouts.silence)
                on_socket(line)
                connection.request("GET", target, headers=given)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException, ValueError) as failure:
                connection.close()
                self._connections().pop(key, None)
                dropped = isinstance(failure, (ConnectionError, http.client.BadStatusLine))
                if used and attempt == 1 and dropped:
                    continue
                raise explained(failure, key[0]) from failure
            lower = {name.lower(): value for name, value in response.getheaders()}
            return Response(parts.geturl(), response.status, lower, response.read1, self._closer(response, key))
        raise AssertionError("unreachable")

    def _closer(self, response: http.client.HTTPResponse, key: tuple[str, str, str]) -> Callable[[], None]:
        """Ends a response; its connection is kept only if nothing of the response is left in it."""

        def close() -> None:
            if not response.isclosed() and response.length != 0 and (broken := self._connections().pop(key, None)):
                broken.close()
            response.close()

        return close

    def _connections(self) -> dict[tuple[str, str, str], http.client.HTTPConnection]:
        kept: dict[tuple[str, str, str], http.client.HTTPConnection] = self._kept.__dict__.setdefault("all", {})
        return kept

    def _connection(
        self, parts: urllib.parse.SplitResult
    ) -> tuple[http.client.HTTPConnection, tuple[str, str, str], bool]:
        proxy = self._proxy(parts)
        try:
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise WebError(f"{shown(parts.geturl())} has no usable port", again=False) from None
        key = (_host(parts), parts.scheme, proxy.geturl() if proxy else "")
        kept = self._connections()
        if key in kept:
            return kept[key], key, kept[key].sock is not None
        via = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(*via, timeout=self.timeouts.connect, context=self._tls())
            if proxy:
                connection.set_tunnel(host, port or 443, headers=_proxy_authorization(proxy))
        else:
            connection = http.client.HTTPConnection(*via, timeout=self.timeouts.connect)
        kept[key] = connection
        return connection, key, False

    def _tls(self) -> ssl.SSLContext:
        """Made for the first https address: it takes a tenth of a second, and files that are there need none."""
        with self._making:
            if self._context is None:
                self._context = tls_context(self.ca_files)
            return self._context

    def _proxy(self, parts: urllib.parse.SplitResult) -> urllib.parse.SplitResult | None:
        """The proxy that the environment names for an address."""
        named = self.proxies.get(parts.scheme) or self.proxies.get("all")
        if not named or urllib.request.proxy_bypass(_host(parts), self.proxies):
            return None
        proxy = urllib.parse.urlsplit(named if "://" in named else f"http://{named}")
        if proxy.scheme != "http" or not proxy.hostname:
            raise WebError(f"the proxy {shown(named)} uses a protocol other than http", again=False)
        return proxy


def explained(failure: BaseException, host: str) -> WebError:
    """What went wrong below http, in words for people."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        reason = f"the certificate of {host} is not trusted ({failure.verify_message})"
        return WebError(reason, again=False)
    if isinstance(failure, socket.gaierror):
        return WebError(f"{host} is unknown ({failure.strerror})", down=True)
    if isinstance(failure, TimeoutError):
        return WebError(f"{host} does not answer", down=True)
    if isinstance(failure, ConnectionRefusedError):
        return WebError(f"{host} refuses connections", down=True)
    if isinstance(failure, http.client.RemoteDisconnected):
        return WebError(f"{host} closed the connection without a response")
    if isinstance(failure, OSError) and failure.strerror:
        return WebError(f"{host}: {failure.strerror}", down=not isinstance(failure, ConnectionError))
    return WebError(f"{host}: {failure!r}"[:300])


def _with_file(answer: Response) -> Response:
    """The answer, if it has a file (or says that the range does not fit); else WebError."""
    if answer.status in (200, 206, 416):
        return answer
    answer.close()
    meaning = _MEANINGS.get(answer.status, "")
    message = f"the server says {answer.status}" + (f": {meaning}" if meaning else "")
    wait = answer.headers.get("retry-after", "")
    raise WebError(message, answer.status in _LATER, float(wait) if wait.isdecimal() and len(wait) < 6 else 0.0)


def _joined(base: str, location: str) -> urllib.parse.SplitResult:
    if not location or not location.isprintable():
        raise WebError("redirects to nowhere", again=False)
    try:
        return urllib.parse.urlsplit(urllib.parse.urljoin(base, location.replace(" ", "%20")))
    except ValueError:
        raise WebError("redirects to an invalid address", again=False) from None


def _host(parts: urllib.parse.SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _basic(parts: urllib.parse.SplitResult) -> str:
    user, password = urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or "")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _proxy_authorization(proxy: urllib.parse.SplitResult | None) -> dict[str, str]:
    return {"Proxy-Authorization": _basic(proxy)} if proxy is not None and proxy.username is not None else {}
