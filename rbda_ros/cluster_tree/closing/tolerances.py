"""Every number that decides how loops are closed, with its reason.

Positions are in rad or m; residuals phi in m, or in the sine of an angle.
"""

from __future__ import annotations

# When a loop is closed.

CLOSED = 1e-9
"""Largest |phi| of a loop that counts as closed: a nanometre is far below what is measured."""
PRECISE = 1e-12
"""Residual that Newton steps in kernels aim at; `CLOSED` will do if they do not get there."""
ON_LOOPS = 1e-6
"""Largest |phi| of a spanning position that is taken as it is: users round to six digits."""

# How near to a dead point one may be.

SINGULAR = 1e-8
"""Conditioning of a loop below which nothing is computed: half of the digits would be lost."""
USABLE = 1e-4
"""Worst conditioning that a choice of independent joints may have near the assembly: motion takes
them nearer to a dead point than the few positions that are looked at."""
LEAST_USABLE = 1e-6
"""Bound where no choice does better: two digits from `SINGULAR`."""
RANK_TOLERANCE = 1e-7
"""Singular values below this share of the largest are zero: twice the digits of `ON_LOOPS` are
more than linkages built of rounded numbers have."""
VANISHING = 1e-3
"""Share of its length around it that a row of K has at an assembly that is nearly singular. Scaled
to length one, as K is judged, such a row looks like any other."""
ROUNDED = 1e-4
"""Rows of a cut smaller than this, beside the others, are rounding: files write 1.5708 for pi/2."""

# Newton steps in kernels: how far they can be trusted.

KERNEL_STEPS = 4
"""Steps of the closure kernel, one along the rates and three of Newton's: of a way that is
`STRAIGHT` the first leaves an eighth at most, the others 2e-3, 5e-7 and 1e-13 of it."""
STREAM_STEPS = 2
"""Steps of the feedforward kernel: joints move little between two messages."""
STREAM_REPEATS = 5
"""How often the feedforward kernel's steps are taken before it is better to take smaller ways."""
NEARBY = 0.3
"""How far a few Newton steps may lead from a guess: not onto another branch."""
STRAIGHT = 0.25
"""Share of a step by which rates may change along it: where branches meet they change by more. On
the first third of the way to a dead point they change by as much."""
KERNEL_PARTS = (1, 4, 16, 64)
"""In how many parts known joints go from a guess to where they are: `NEARBY` and `STRAIGHT` ask for
more where the others move far, or near a dead point."""
STREAM_PARTS = (4, 32)
"""The same while the stream waits: the one step was the call itself, and a search comes next."""
BATCH_NEAR = 0.1
"""How far known joints may be from a row of a batch to be closed from there, at once."""
BATCH_BLOCK = 256
"""Most rows that are closed from one: fewer blocks would not be faster."""

# The search outside the kernel.

SEARCH_STEPS = 60
"""Newton steps of one search: damped ones converge in ten to twenty, or not at all."""
STALLED = 6
"""Steps in a row that gain less than a tenth before a search is given up: out of reach."""
LONGEST_STEP = 0.5
"""Newton steps are shortened to this, so that they stay on their branch."""
SEARCH_RESTARTS = 24
"""Searches from random positions near the target, where no branch can be followed to it."""

MAX_EXPLAINED = 4.0
"""How many times farther than their rates say joints may end up from a guess."""

# Following a branch in small steps.

FOLLOW_STEP = 0.25
"""How far the known joints move at first when a branch is followed."""
SHORTEST_FOLLOW_STEP = 1e-8
"""Steps are not halved below this: the branch ends here, or meets another. Over the last of them
the others move with the square root, 1e-4."""
MEETING = 1e-3
"""How far the others may move over the last steps to a dead point: branches that are nearer to each
other are not distinguished."""
LONGEST_FOLLOW = 100.0
"""Joints that have farther to go are not followed there: it would take seconds."""
MAX_FOLLOW_STEPS = 500
"""Steps along one branch; a bound on time."""

# Assembling at load.

SAMPLES = 8
"""Closed positions at which rows and choices are judged, as one may be singular."""
REACH = 0.05
"""Standard deviation of the joints at the first of these; twice that at the second, and so on."""
SHORT_REACH = 0.02
"""The same where rows are compared: a row that is not redundant differs at once, and farther away
more of the positions are on another branch."""
ASSEMBLY_RESTARTS = 40
"""Searches from ever farther around the guess before a loop is said not to close."""
NEAR_STARTS = 4
"""Of these, how many are so near to the guess that Newton steps alone are tried first."""
LARGEST_RATE, SMALLEST_RATE = 1e100, 1e-100
"""Rates of a constraint by its joints between which their squares neither overflow nor vanish."""
NEARLY_CLOSED = 1e-5
"""Largest |phi| of rows that may be dropped as nearly redundant: models are written with five or
six digits."""
NEARLY_REDUNDANT = 1e-5
"""Singular values of K below this share of the largest, wherever it is judged, come from such
digits: the same loop written exactly would have zeros."""
ROUNDED_DIGITS = range(5, 10)
"""Significant digits of files whose rounding counts: with more it is below `CLOSED`."""
LARGEST_ROUNDING = 1e-3
"""Largest gap that rounding may explain: a millimetre is a mistake."""
APPROACH_STEPS = 120
"""Levenberg-Marquardt steps from one start: most take twenty to forty."""
AGREEING_STARTS = 3
"""Starts that end at the same gap before a loop's dimensions are blamed for it."""
SAME_GAP = 0.01
"""Share by which such gaps may differ: the last steps to a gap that stays are slow."""
MORE_FOR_LIMITS = 8
"""Further starts where the first closed position is outside joint limits."""
LOCKED = 1e-9
"""Joints that move less than this share of the loop's motion, wherever it is judged, are locked."""
MAX_FIXED = 6
"""Where more joints are locked than these, a message does not list their positions."""
MAX_CHOICES = 3000
"""Choices of independent joints that are all compared; above it, a pivoted QR decides."""

# Rods that spin about themselves.

STAYS = 1e-6
"""Velocity, beside the largest of a motion, below which a body or a joint does not take part."""
UNLIKELY = 1e-8
"""Square of such a velocity above which a body takes part for certain: `STAYS` squared, and four
digits more."""
ON_THE_LINE = 0.1
"""How far from the line that it spins about the mass of a rod may be, as a share of its length: a
bent rod is less, a swing between two ball joints is more."""
BESIDE_IT = 0.05
"""Share of a rod's mass below which a body beside it is a part of its joints: many files make a
ball joint of three hinges."""
BODIES_OF_A_ROD = 3
"""Bodies that may spin together, as cylinder, screw and piston of a linear actuator."""


def rounding_of(digits: int | None) -> float:
    """Largest error of a number that is stated with some digits, as a share of its first one.

    A length of 0.1 m with six digits is right to 5e-7 m, an angle of 3 rad to 5e-6 rad.
    """
    return 0.5 * 10.0 ** (1 - digits) if digits is not None and digits in ROUNDED_DIGITS else 0.0


def rounding_gap(digits: int | None, bodies: int) -> float:
    """Largest |phi| that rounding in a file explains, where errors of all bodies add up."""
    gap = min(rounding_of(digits) * (bodies + 2), LARGEST_ROUNDING)
    return max(gap, NEARLY_CLOSED)
