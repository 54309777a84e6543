"""Restrict this process before it reads an untrusted file.

Memory, processor time and the size of files are limited with `setrlimit`; the network is cut off with a namespace of its own;
files that are not named are made inaccessible with Landlock. `restrict` returns the protections that this system lacks.

Example:
    >>> restrict(Restrictions(memory=4 << 30, readable=("/data/model.tflite",), writable=("/tmp/result",)))
    ()
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
# linux/landlock.h; the three calls have the same numbers on all processors.
_CREATE_RULES, _ADD_RULE, _RESTRICT = 444, 445, 446
_RULES_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FOLDER, _REMOVE_FILE, _MAKE_FOLDER, _MAKE_FILE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE = 1 << 14  # from version 3 on
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE
_FIRST_VERSION_BITS = 13
_MORE_BITS = {2: 14, 3: 15, 5: 16}  # version → how many kinds of access it knows
_TCP = 0b11  # bind and connect, from version 4 on
_SCOPES = 0b11  # abstract sockets and signals, from version 6 on
# Where programs, libraries and what they read about the machine are; nothing of a user's.
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev", "/opt")


@dataclass(frozen=True)
class Restrictions:
    """Limits of a process (0: unlimited) and the paths that it may use.

    `memory` is in bytes of address space, `seconds` is processor time, `file_bytes` is the largest file it may write.
    Where the system has Landlock, all other paths can neither be read nor written.
    """

    memory: int = 0
    seconds: int = 0
    file_bytes: int = 0
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


def restrict(restrictions: Restrictions) -> tuple[str, ...]:
    """Apply restrictions to this single-threaded process, irrevocably; return the protections that the system lacks."""
    limited = limit(memory=restrictions.memory, seconds=restrictions.seconds, file_bytes=restrictions.file_bytes)
    missing = [] if limited else ["limits of memory and time"]
    if not _leave_network():
        missing.append("a network namespace")
    if not _close_files(restrictions.readable, restrictions.writable):
        missing.append("Landlock for files")
    return tuple(missing)


def limit(*, memory: int = 0, seconds: int = 0, file_bytes: int = 0) -> bool:
    """Set the limits that are not 0, never above the present ones; return False where the system has no limits."""
    if sys.platform == "win32":
        return False
    import resource

    wanted = {
        resource.RLIMIT_AS: memory or None,
        resource.RLIMIT_CPU: seconds or None,
        resource.RLIMIT_FSIZE: file_bytes or None,
        resource.RLIMIT_CORE: 0,  # a dump would hold what the process read
    }
    for kind, most in wanted.items():
        if most is None:
            continue
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # The soft limit of time ends the process with a signal of its own; the hard one a little later with SIGKILL.
        later = bound + 5 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else bound
        with contextlib.suppress(ValueError, OSError):  # macOS refuses to limit address space
            resource.setrlimit(kind, (bound, later))
    return True


def _leave_network() -> bool:
    """Move into an empty network namespace, from which nothing can be reached, not even this machine."""
    libc = _libc()
    if libc is None:
        return False
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_NETWORK) != 0:
        return False
    # Without the maps the process would be nobody, which some libraries cannot look up.
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _close_files(readable: tuple[str, ...], writable: tuple[str, ...]) -> bool:
    libc = _libc()
    version = libc.syscall(_CREATE_RULES, None, 0, _RULES_VERSION) if libc is not None else -1
    if libc is None or version < 1:
        return False
    bits = max((count for since, count in _MORE_BITS.items() if since <= version), default=_FIRST_VERSION_BITS)
    handled = (1 << bits) - 1
    words = (handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    # Older kernels know a shorter structure and refuse a longer one unless the rest is zero.
    rules = libc.syscall(
        _CREATE_RULES, struct.pack("<3Q", *words), 24 if version >= 6 else 16 if version >= 4 else 8, 0
    )
    if rules < 0:
        return False
    look = _EXECUTE | _READ | _LIST
    change = look | _WRITE | _TRUNCATE | _REMOVE_FOLDER | _REMOVE_FILE | _MAKE_FOLDER | _MAKE_FILE
    for path in (*_SYSTEM, *_python(), *readable):
        _allow(libc, rules, path, look & handled)
    for path in (*writable, os.devnull):
        _allow(libc, rules, path, change & handled)
    done = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(_RESTRICT, rules, 0) == 0
    os.close(rules)
    return bool(done)


def _python() -> tuple[str, ...]:
    """Return the folders of Python modules, ours included, without the working directory, which holds a user's files."""
    here = os.path.realpath(os.curdir)
    modules = [folder for folder in sys.path if os.path.realpath(folder) != here]
    return (sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[1]), *modules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> None:
    """Allow access to a file, or to a folder and everything in it; what does not exist needs no rule."""
    if not path:
        return
    try:
        place = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return
    allowed = access if os.path.isdir(path) else access & _OF_FILES
    libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("<Qi", allowed, place), 0)
    os.close(place)


def _libc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
