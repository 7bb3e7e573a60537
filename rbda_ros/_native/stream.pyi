from collections.abc import Callable
from typing import Any

Heard = tuple[int, tuple[tuple[int, int], ...], bytes, int, int]

class Stream:
    def __init__(
        self,
        node: int,
        clock: int,
        type_support: Any,
        topic: str,
        depth: int,
        wake: Callable[[], Any],
    ) -> None: ...
    def take(self) -> bytes | None: ...
    def arm(
        self,
        description: tuple[Any, ...] | None,
        latest: int,
        times: tuple[int, ...],
        earliest: int,
        newest: int,
    ) -> None: ...
    def seize(self) -> Heard | None: ...
    def look(self) -> Heard | None: ...
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
