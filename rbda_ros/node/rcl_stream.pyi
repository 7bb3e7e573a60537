from collections.abc import Callable, Sequence
from typing import Any

class RclStream:
    def __init__(
        self,
        *,
        node: int,
        clock: int,
        machine: Any,
        inputs: tuple[tuple[str, Any, bool], ...],
        depth: int,
        wake: Callable[[], Any],
    ) -> None: ...
    def set_publishers(self, addresses: Sequence[int], /) -> None: ...
    def renew(self) -> None: ...
    def overtaken(self) -> int: ...
    def close(self) -> None: ...
