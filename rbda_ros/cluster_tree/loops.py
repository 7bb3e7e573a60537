"""Loop."""

class Loop:
    def explicit(self, q, yd, independent):
        raise AssertionError
