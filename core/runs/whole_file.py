"""A file that is written whole or not at all: what was there before stays until the new content is on disk."""

import os
import uuid
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Raises OSError. What is no plain file, such as a device or a pipe, is written directly."""
    target = Path(os.path.realpath(path))  # a link stays one
    earlier = target.stat() if target.exists() else None
    if earlier and not target.is_file():
        target.write_bytes(content)
        return
    temporary = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        if earlier:
            temporary.chmod(earlier.st_mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
