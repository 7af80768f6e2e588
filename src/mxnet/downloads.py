"""Downloads over HTTP: broken connections are resumed, checksums are verified, and complete files are moved into place atomically."""
import contextlib
import hashlib
import os
import re
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from .files import FileError, Unfinished, reported

_BLOCK = 1 << 16
_SILENCE = (10, 60)  # seconds to wait for a connection, and for the next bytes
_PAUSE = 0.2  # seconds before the attempt after one that brought nothing; doubled each time
_BUSY = {408, 425, 429}  # status codes, besides 500 and above, after which the same request may succeed
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

# The errors that reading a damaged archive raises, besides OSError.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, ValueError, struct.error, OverflowError)


class DownloadError(FileError):
    """A file cannot be downloaded.

    Attributes
    ----------
    reason : str
        The cause, without the advice of the whole text.
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


class ChecksumError(DownloadError, UserWarning):
    """The content of a downloaded file has another checksum; a DownloadError, and the UserWarning that MXNet raises."""


class _Failed(Exception):
    """An attempt failed, and another one may succeed."""


class _Refused(Exception):
    """The server refused the request, and further attempts would have the same result."""


class _WrongContent(_Failed):
    """The download is complete and has another checksum."""


def why(error: Exception) -> str:
    """Return the cause of a failed download, for messages with their own advice."""
    return getattr(error, "reason", None) or str(error)


def fetch(url: str, path: str, *, sha1: str | None = None, attempts: int = 5, verify: bool = True,
          wanted: Callable[[], bool] = lambda: True, tell: Callable[[str], object] = print) -> bool:
    """Download a file.

    A broken transfer is resumed at its offset if the server supports that and its file has not changed; otherwise it starts again. If standard error
    is a terminal, it shows the progress. The environment variables of `requests` (proxies, certificates) apply.

    Parameters
    ----------
    url : str
    path : str
        The file to write, in a folder that exists.
    sha1 : str, optional
        The SHA-1 of the content, in hexadecimal digits.
    attempts : int
        The number of attempts, at least 1.
    verify : bool
        Check the server's certificate.
    wanted : callable
        Called after the download; if it returns False, the content is discarded.
    tell : callable
        Receives a line about each failed attempt that is followed by another.

    Returns
    -------
    bool
        True if the file was written.

    Raises
    ------
    ChecksumError
        If the content is not the expected one.
    DownloadError
        If the download fails. The text names the address, the file, and the folder for a manual download.
    FileError
        If the file can't be written.
    """
    attempts = max(attempts, 1)
    written = Unfinished(path)
    try:
        transfer = _Transfer(url, path, written.stream, sha1, verify)
        for left in range(attempts - 1, -1, -1):
            before = transfer.received
            try:
                transfer.run()
                break
            except (_Failed, _Refused) as error:
                if not left or isinstance(error, _Refused):
                    raise _final(url, path, sha1, error) from error
                tell(f"{url}: {error}; {left} further attempt{'s' if left > 1 else ''}")
                if transfer.received <= before:
                    time.sleep(_PAUSE * 2 ** (attempts - 1 - left))
        if not wanted():
            return False
        written.commit()
        return True
    finally:
        written.discard()


def unpacked(archive: zipfile.ZipFile, member: str | zipfile.ZipInfo) -> IO[bytes]:
    """Open a member of a zip file for reading. Compression methods whose memory use is determined by the file are refused.

    Raises
    ------
    NotImplementedError
        If it is compressed by such a method; and whatever is in `DAMAGED`.
    """
    info = archive.getinfo(member) if isinstance(member, str) else member
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(f"{info.filename} is compressed by method {info.compress_type}, expected is none, or deflate")
    return archive.open(info)


def _final(url: str, path: str, sha1: str | None, error: Exception) -> DownloadError:
    """Return the final error of a failed download."""
    folder, name = os.path.split(os.path.abspath(path))
    kind = ChecksumError if isinstance(error, _WrongContent) else DownloadError
    demand = f" (SHA-1 {sha1})" if sha1 else ""
    return kind(f"Failed downloading url {url}: {error}. If it is not to be had there any more, get {name}{demand} elsewhere and put it into the "
                f"folder {folder}", str(error))


def _cause(error: Exception) -> str:
    """Return the text of the innermost error in an error of requests, which wraps urllib3's, which wraps another."""
    while True:
        inner = getattr(error, "reason", None)
        inner = inner if isinstance(inner, Exception) else error.args[-1] if error.args and isinstance(error.args[-1], Exception) else None
        if inner is None:
            return str(error) or type(error).__name__
        error = inner


class _Transfer:
    """The state of a download: the bytes received so far, over one or several connections."""

    def __init__(self, url: str, path: str, stream: IO[bytes], sha1: str | None, verify: bool) -> None:
        self.url, self.path, self.stream, self.sha1, self.verify = url, path, stream, sha1, verify
        self.validator = ""  # the ETag or date that identifies this version of the file
        self._restart()

    def _restart(self) -> None:
        if getattr(self, "received", 0):
            with reported(self.path, "write"):
                self.stream.seek(0)
                self.stream.truncate()
        self.received, self.digest = 0, hashlib.sha1(usedforsecurity=False)

    def run(self) -> None:
        """Make one attempt; the received bytes are kept for the next one.

        Raises
        ------
        _Failed, _Refused
        """
        import requests  # now: `import mxnet` is to be fast
        final = (ValueError, requests.TooManyRedirects)  # an invalid address, or endless redirects
        try:
            with contextlib.closing(requests.get(self.url, stream=True, verify=self.verify, headers=self._headers(), timeout=_SILENCE)) as answer:
                total = self._begin(answer)
                self._take(answer, total)
        except requests.RequestException as error:
            raise (_Refused if isinstance(error, final) else _Failed)(_cause(error)) from error
        if total is not None and self.received < total:
            raise _Failed(f"the connection ended after {self.received} of {total} bytes")
        if self.sha1 and self.digest.hexdigest() != self.sha1.lower():
            digest = self.digest.hexdigest()
            self._restart()
            raise _WrongContent(f"SHA-1 {self.sha1} expected, received another: {digest}; the server has another version of the file")

    def _headers(self) -> dict[str, str]:
        # A compressed transfer could be neither resumed nor measured.
        headers = {"Accept-Encoding": "identity"}
        if self.received and not self.validator and not self.sha1:
            self._restart()  # a change of the file between the parts could not be detected
        if self.received:
            headers["Range"] = f"bytes={self.received}-"
            if self.validator:
                headers["If-Range"] = self.validator
        return headers

    def _begin(self, answer: Any) -> int | None:
        """Check the headers of a response; return the size of the file in bytes, or None if they do not contain it."""
        headers, code = answer.headers, answer.status_code
        if code == 416 or (code == 206 and not self._continues(headers)):
            self._restart()
            raise _Failed(f"the server cannot continue the file (it answered {code}, {headers.get('Content-Range', 'without a range')})")
        if code == 206:
            total = headers.get("Content-Range", "").rpartition("/")[2]
            return int(total) if total.isdigit() else None
        if code != 200:
            text = f"the server answered {code} {answer.reason or ''}".rstrip()
            raise (_Failed if code >= 500 or code in _BUSY else _Refused)(text)
        self._restart()
        encoded = headers.get("Content-Encoding", "identity") != "identity"
        tag = headers.get("ETag", "")
        self.validator = "" if encoded else tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
        length = headers.get("Content-Length", "")
        return int(length) if length.isdigit() and not encoded else None

    def _continues(self, headers: Any) -> bool:
        match = _RANGE.fullmatch(headers.get("Content-Range", ""))
        return bool(match) and int(match[1]) == self.received  # type: ignore[index]

    def _take(self, answer: Any, total: int | None) -> None:
        from tqdm import tqdm
        with tqdm(total=total, initial=self.received, unit="B", unit_scale=True, desc=os.path.basename(self.path), file=sys.stderr,
                  disable=None, leave=False) as progress:  # None: disabled unless it is a terminal
            for block in answer.iter_content(chunk_size=_BLOCK):
                with reported(self.path, "write"):
                    self.stream.write(block)
                self.digest.update(block)
                self.received += len(block)
                progress.update(len(block))
