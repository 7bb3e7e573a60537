from collections.abc import Callable
from typing import Any

def set_slice(thread: int, nanoseconds: int, /) -> None: ...

class Stream:
    def __init__(
        self,
        kind: str,
        node: int,
        clock: int,
        type_support: Any,
        topic: str,
        depth: int,
        wake: Callable[[], Any],
    ) -> None: ...
    def take(self) -> bytes | None: ...
    def arm(self, description: tuple[Any, ...] | None, now: tuple[Any, ...]) -> Any: ...
    def seize(self) -> tuple[Any, ...] | None: ...
    def look(self) -> tuple[Any, ...] | None: ...
    def put(
        self,
        acceleration: Any,
        wrenches: Any,
        base_position: Any,
        base_twist: Any,
        earliest: int,
        newest: int,
    ) -> bool: ...
    def read(self) -> tuple[int, bytes]: ...
    def close(self) -> None: ...
