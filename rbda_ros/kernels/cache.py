"""Kernels of one robot, traced once each, bounded in number and in memory."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache, cached_property, partial
from typing import Any, Generic, TypeVar

import casadi as ca

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.cluster_tree.open_loops import OpenLoops, open_loops
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels import disk_cache
from rbda_ros.kernels.columns import is_long
from rbda_ros.kernels.fingerprint import fingerprint, versions
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.methods import Methods, choose_methods
from rbda_ros.kernels.registry import REGISTRY
from rbda_ros.kernels.trace import Load, trace, trace_check, trace_function

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_KERNELS = 256
"""Kernels with options that are cached: clients may ask for any frames and contacts."""
MAX_INSTRUCTIONS = 200_000
"""Instructions of all of them together: some 600 bytes each, machine code included."""
PATIENCE = 0.1
"""How long to wait for what another thread makes before looking whether to go on [s]."""


class LruCache(Generic[Key, Value]):
    """The values used last, each made once. Threads may share it.

    Whoever asks for one value does not wait while another one is made.

    Args:
        most: how many are kept; the least recently used goes first.
        heaviest: what they may weigh together; the one used last is kept whatever it weighs.
        weigh: the weight of a value, always the same.
    """

    def __init__(
        self,
        most: int,
        heaviest: float = math.inf,
        weigh: Callable[[Value], float] = lambda value: 0.0,
    ) -> None:
        self._most, self._heaviest, self._weigh = most, heaviest, weigh
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._weight = 0.0
        self._lock = threading.Lock()
        self._making: dict[Key, threading.Event] = {}  # set when it is made, or cannot be

    def __len__(self) -> int:
        return len(self._values)

    def snapshot(self) -> dict[Key, Value]:
        """Everything that is cached."""
        with self._lock:
            return dict(self._values)

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
            if key in self._values:
                self._weight -= self._weigh(self._values.pop(key))
            self._values[key] = value
            self._weight += self._weigh(value)
            while len(self._values) > self._most or (
                self._weight > self._heaviest and len(self._values) > 1
            ):
                self._weight -= self._weigh(self._values.popitem(last=False)[1])

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key; made if it is not there."""
        while (value := self.get(key)) is None:
            with self._lock:
                if key in self._values:
                    continue
                made = self._making.get(key)
                mine = made is None
                if made is None:
                    made = self._making[key] = threading.Event()
            if not mine:
                made.wait(PATIENCE)
                check_cancelled()
                continue  # if it could not be made there, perhaps here
            try:
                value = make()
                self.put(key, value)
            finally:
                with self._lock:
                    del self._making[key]
                made.set()
            return value
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._weight = 0.0


class KernelCache:
    """Traces kernels of one robot when they are first asked for. Threads may share it.

    Those without options are few, and stay. Of the others, such as those about frames, contacts
    or chosen joints, those used last stay: `MAX_KERNELS`, and `MAX_INSTRUCTIONS` in all.

    Args:
        tree: the robot.
        unloaded: kernels of the same robot without its payloads, for those that do not see them.
    """

    def __init__(self, tree: ClusterTree, unloaded: KernelCache | None = None) -> None:
        self.tree = tree
        self._unloaded = unloaded
        self._plain: dict[str, Kernel] = {}
        self._optional: LruCache[tuple[Any, ...], Kernel] = LruCache(
            MAX_KERNELS, MAX_INSTRUCTIONS, lambda kernel: kernel.instructions
        )
        self._tracing = threading.Lock()
        self._machine_code_error: Exception | None = (
            unloaded._machine_code_error if unloaded else None
        )
        # It knows the tree, not this cache: kernels have it, and nothing refers back to a robot.
        own: Callable[[], ca.Function] = cache(partial(trace_check, tree))
        self._check: Callable[[], ca.Function] = unloaded._check if unloaded else own

    def get(self, name: str, *options: Hashable) -> Kernel:
        """The kernel of an algorithm, one of `registry.REGISTRY`, for these options."""
        if not options:
            kernel = self._plain.get(name)
            return self._trace_plain(name) if kernel is None else kernel
        if self._unloaded is not None and not REGISTRY[name].sees_inertia:
            return self._unloaded.get(name, *options)
        return self._optional.get_or_make((name, *options), lambda: self._trace(name, *options))

    def function(self, name: str, *options: Hashable, load: Load | None = None) -> ca.Function:
        """The program of a kernel, as one straight line, however long the robot is.

        A load is as for `trace_function`.
        """
        if load is None and not is_long(self.tree, name):
            return self.get(name, *options).function
        return trace_function(self.tree, name, *options, loops=self._loops_of(name), load=load)

    def traced(self, name: str, *options: Hashable) -> Kernel | None:
        """The kernel with these options if it is traced; None without waiting for it."""
        if self._unloaded is not None and not REGISTRY[name].sees_inertia:
            return self._unloaded.traced(name, *options)
        return self._optional.get((name, *options))

    def kernels(self) -> dict[tuple[Any, ...], Kernel]:
        """Kernels that are traced now, by name and options."""
        plain: dict[tuple[Any, ...], Kernel] = {(name,): k for name, k in self._plain.items()}
        return plain | self._optional.snapshot()

    def take_over(self, before: KernelCache, why: Exception) -> None:
        """Have the kernels of another cache of the same robot, and machine code of none."""
        self._machine_code_error = why
        for key, kernel in before.kernels().items():
            kernel.disable_machine_code(why)
            if kernel.stored:
                continue  # its program was read from disk and never compared: traced when asked for
            if len(key) == 1:
                self._plain[key[0]] = kernel
            else:
                self._optional.put(key, kernel)

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

    def _loops_of(self, name: str) -> OpenLoops | None:
        return self.open_loops if REGISTRY[name].by_loop_forces else None

    def _trace_plain(self, name: str) -> Kernel:
        with self._tracing:
            if name not in self._plain:
                if self._unloaded is not None and not REGISTRY[name].sees_inertia:
                    self._plain[name] = self._unloaded.get(name)
                else:
                    self._plain[name] = self._trace(name)
            return self._plain[name]

    def _trace(self, name: str, *options: Any) -> Kernel:
        loops = self._loops_of(name)
        check = self._check if self.tree.has_loops and REGISTRY[name].inputs[0] == "q" else None
        trusted = self._machine_code_error is None and disk_cache.in_use()
        if is_long(self.tree, name) or not trusted:
            kernel = trace(self.tree, name, *options, loops=loops, check=check)
        else:
            kernel = self._stored(name, options, loops, check)
        if self._machine_code_error is not None:
            kernel.disable_machine_code(self._machine_code_error)
        return kernel

    def _stored(
        self,
        name: str,
        options: tuple[Any, ...],
        loops: OpenLoops | None,
        check: Callable[[], ca.Function] | None,
    ) -> Kernel:
        """The kernel of the program that the disk has, or traced and put there."""
        make = partial(trace_function, self.tree, name, *options, loops=loops)
        opened = None if loops is None else self.loop_methods.by_forces
        key = fingerprint("trace", versions(), self._fingerprint, name, options, opened)
        found = disk_cache.load(key)
        if found is None:
            function = make()
            disk_cache.store(key, {}, [function.serialize().encode()])
            return Kernel(function, check=check)
        _, (stored,) = found
        return Kernel(ca.Function.deserialize(stored.decode()), check=check, retrace=make)

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.tree)
