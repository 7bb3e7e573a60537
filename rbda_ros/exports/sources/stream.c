/* Closing loops by the kernels of the stream: those of feedforward and of commands. `robot_` and
 * `ROBOT_` become the name of the library; its macros and tables come before. */

/* A kernel with its arrays, and a count of its evaluations. */
typedef struct {
  double *ports[MAX_PORTS];
  int *count;
} robot_bound;

static const closing_rules_t robot_rules = {ROBOT_PRECISE,      ROBOT_CLOSED,
                                            ROBOT_NEARBY,       ROBOT_STREAM_REPEATS,
                                            robot_stream_parts, ROBOT_STREAM_PARTS};

/* In the order of `closing_result_t`. */
static const robot_status robot_closing_status[] = {ROBOT_OK,         ROBOT_BAD_ARGUMENT,
                                                    ROBOT_NOT_CLOSED, ROBOT_DEAD_POINT,
                                                    ROBOT_NOT_FINITE, ROBOT_CANNOT_GIVE};

/* Evaluate a kernel with the loops closed, from the guess, or else from the position `other`. Its
 * joints have so many `entries` of q at `position`. */
static inline closing_result_t robot_close_stream(robot_workspace *w, robot_bound *bound,
                                                  void (*evaluate)(void *), double *position,
                                                  const ptrdiff_t *entries, size_t known,
                                                  double *guess, double *q, size_t base_nq,
                                                  const double *health, double *scratch,
                                                  const double *other)
{
  kernel_t kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.evaluate = evaluate;
  kernel.memory = bound;
  closing_t of;
  of.kernel = &kernel;
  of.position = position;
  of.known = known;
  of.entries = entries;
  of.guess = guess;
  of.q = q;
  of.nq = ROBOT_NQ;
  of.base_nq = base_nq;
  of.health = health;
  of.scratch = scratch;
  const closing_result_t result = close_loops(&of, &robot_rules, other);
  w->residual = health[RESIDUAL];
  w->conditioning = health[CONDITIONING];
  return result;
}

/* Largest efforts of the motors, none where they are NULL; 0 where one is NaN. */
static inline int robot_read_limit(robot_workspace *w, const double *given, double *limit)
{
  for (int k = 0; k < ROBOT_MOTORS; k++) {
    limit[k] = given == NULL ? INFINITY : given[k];
    if (limit[k] != limit[k]) {
      w->place = k;
      return 0;
    }
  }
  return 1;
}
