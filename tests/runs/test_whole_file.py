"""A file is written whole or not at all."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from core.runs.whole_file import write_whole


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Half:
    """A file on a disk that is full after the first half of what is written."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> "Half":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, content: bytes) -> None:
        self.file.write(content[: len(content) // 2])
        full()


def test_a_file_is_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for content in (b"first", b"second, which is longer", b"third"):
        write_whole(path, content)
        assert path.read_bytes() == content
        assert names(tmp_path) == {"a.csv"}


@pytest.mark.parametrize("earlier", [b"precious", None])
def test_a_disk_that_fills_up_leaves_what_was_there(earlier: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    if earlier:
        path.write_bytes(earlier)
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *mode: Half(opened(self, *mode)))
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"1,2,3\n" * 100)
    monkeypatch.undo()
    assert names(tmp_path) == ({"a.csv"} if earlier else set())
    assert not earlier or path.read_bytes() == earlier


def test_a_link_stays_one_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"earlier")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"later")
    assert link.is_symlink()
    assert target.read_bytes() == b"later"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_permissions_that_its_user_gives_to_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a.csv", b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"content")
    reader.join(10)
    assert read == [b"content"]
    assert pipe.is_fifo()
