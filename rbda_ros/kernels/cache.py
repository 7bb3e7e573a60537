"""Kernels of one robot, traced once each and bounded in number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Generic, TypeVar

import casadi as ca

from rbda_ros.cluster_tree.open_loops import OpenLoops, open_loops
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels import disk_cache
from rbda_ros.kernels.columns import is_long
from rbda_ros.kernels.fingerprint import fingerprint, versions
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.methods import Methods, choose_methods
from rbda_ros.kernels.registry import REGISTRY
from rbda_ros.kernels.trace import trace, trace_function

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_KERNELS = 256
"""Kernels with options that are cached: clients may ask for any point of a link."""


class LruCache(Generic[Key, Value]):
    """The values used last, each made once. Threads may share it.

    Whoever asks for a value that is there does not wait while another one is made.

    Args:
        most: how many are kept; the least recently used goes first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[Key]:
        """What is cached, the least recently used first."""
        with self._lock:
            return list(self._values)

    def get(self, key: Key) -> Value | None:
        """The value of a key, which counts as used; None where there is none."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Add a value, or replace it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key; made if it is not there."""
        value = self.get(key)
        if value is None:
            with self._making:
                value = self.get(key)
                if value is None:
                    value = make()
                    self.put(key, value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()


class KernelCache:
    """Traces kernels of one robot when they are first asked for. Threads may share it.

    Those without options are few, and stay. Of the others, such as those about frames, contacts
    or chosen joints, the `MOST_KERNELS` used last stay.

    Args:
        tree: the robot.
        unloaded: kernels of the same robot without its payloads, for those that do not see them.
    """

    def __init__(self, tree: ClusterTree, unloaded: KernelCache | None = None) -> None:
        self.tree = tree
        self._unloaded = unloaded
        self._plain: dict[str, Kernel] = {}
        self._optional: LruCache[tuple[Any, ...], Kernel] = LruCache(MOST_KERNELS)
        self._tracing = threading.Lock()

    def get(self, name: str, *options: Hashable) -> Kernel:
        """The kernel of an algorithm, one of `registry.REGISTRY`, for these options."""
        if not options:
            kernel = self._plain.get(name)
            return self._trace_plain(name) if kernel is None else kernel
        if self._unloaded is not None and not REGISTRY[name].sees_inertia:
            return self._unloaded.get(name, *options)
        return self._optional.get_or_make((name, *options), lambda: self._trace(name, *options))

    def traced(self, name: str, *options: Hashable) -> Kernel | None:
        """The kernel with these options if it is traced; None without waiting for it."""
        if self._unloaded is not None and not REGISTRY[name].sees_inertia:
            return self._unloaded.traced(name, *options)
        return self._optional.get((name, *options))

    def cached(self) -> set[tuple[Any, ...]]:
        """Names and options of what is traced now."""
        return {(name,) for name in self._plain} | set(self._optional.keys())

    @cached_property
    def loop_methods(self) -> Methods:
        """How forward dynamics closes each loop: what ``method`` in the loop file comes to."""
        if self._unloaded is not None:
            return self._unloaded.loop_methods
        return choose_methods(self.tree)

    @cached_property
    def open_loops(self) -> OpenLoops | None:
        """The robot with the loops open that forward dynamics closes by their forces, if any."""
        names = self.loop_methods.by_forces
        return open_loops(self.tree, names) if names else None

    def _trace_plain(self, name: str) -> Kernel:
        with self._tracing:
            if name not in self._plain:
                if self._unloaded is not None and not REGISTRY[name].sees_inertia:
                    self._plain[name] = self._unloaded.get(name)
                else:
                    self._plain[name] = self._trace(name)
            return self._plain[name]

    def _trace(self, name: str, *options: Any) -> Kernel:
        loops = self.open_loops if REGISTRY[name].by_loop_forces else None
        if is_long(self.tree, name) or not disk_cache.in_use():
            return trace(self.tree, name, *options, loops=loops)

        def make() -> tuple[dict[str, Any], list[bytes]]:
            return {}, [trace_function(self.tree, name, *options, loops=loops).serialize().encode()]

        opened = None if loops is None else self.loop_methods.by_forces
        key = fingerprint("trace", versions(), self._fingerprint, name, options, opened)
        _, (function,) = disk_cache.load_or_make(key, make)
        return Kernel(ca.Function.deserialize(function.decode()))

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.tree)
