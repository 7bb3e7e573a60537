/* Motion and efforts of some joints from those of others: `Robot.convert`. `robot_` and `ROBOT_`
 * become the name of the library; its macros, tables and kernels come before. */

/* From which joints to which; counts, then arrays of so many indices. */
typedef struct {
  void (*velocity)(const double *q, const double *rates, double *yd, double *conditioning);
  void (*acceleration)(const double *q, const double *yd, const double *rates, double *ydd,
                       double *conditioning);
  void (*efforts)(const double *q, const double *tau, double *on_acting, double *missed);
  void (*closure)(const double *values, const double *start, double *q, double *phi);
  int (*evaluate)(const void *, double *const *); /* the closure, as `robot_close_from` takes it */
  int given, known, rates, targets, acting;
  int loops, loops_of_acceleration, rows; /* numbers of conditioning, and of phi */
  const ptrdiff_t *known_of, *entries;    /* (known) places in `position`, and in q */
  const ptrdiff_t *rates_of;              /* (rates) places in `velocity` */
  const ptrdiff_t *given_in;              /* (given) places in qd */
  const ptrdiff_t *positions, *coordinates, *efforts_of; /* (targets) in q, qd, acting efforts */
} robot_conversion;

/* The position q whose known joints are at `values`; once more from there: to the last digits. */
static inline Status robot_convert_position(robot_workspace *w, const robot_conversion *of,
                                            const double *values, const double *start,
                                            double *scratch, double *q)
{
#ifdef ROBOT_PARTS
  double *next = scratch, *phi = next + ROBOT_NQ, *known = phi + of->rows;
  const Status status = robot_close_from(w, of->evaluate, of->entries, of->known, of->rows, values,
                                         start, known, next, phi, q);
  if (status != GOOD) return status;
  of->closure(values, q, next, phi);
  w->evaluations++;
  if (first_beyond(phi, of->rows, ROBOT_CLOSED) < 0) memcpy(q, next, ROBOT_NQ * sizeof(double));
#else
  (void)scratch;
  memcpy(q, start, ROBOT_NQ * sizeof(double));
  for (int k = 0; k < of->known; k++) q[of->entries[k]] = values[k];
#endif
  return robot_judge_position(w, q);
}

/* What is NULL is zero, or not wanted. Loops are closed from `start`, which moves along. */
static inline robot_status
robot_convert(robot_workspace *w, double *start, const robot_conversion *of, const double *position,
              const double *velocity, const double *acceleration, const double *effort,
              double *to_position, double *to_velocity, double *to_acceleration, double *to_effort)
{
  const double *const given[] = {position, velocity, acceleration, effort};
  double *q = w->memory, *yd = q + ROBOT_NQ, *ydd = yd + ROBOT_NY, *rates = ydd + ROBOT_NY;
  double *tau = rates + ROBOT_NY, *missed = tau + ROBOT_NY, *qd = missed + ROBOT_NY;
  double *qdd = qd + ROBOT_NV, *spanning = qdd + ROBOT_NV, *on_acting = spanning + ROBOT_NV;
  double *values = on_acting + of->acting, *conditioning = values + of->known;
  double *scratch = conditioning + of->loops + of->loops_of_acceleration;
  double *from_base = rates + ROBOT_NY - of->rates;
  Status status = robot_begin(w);
  for (int k = 0; k < 4; k++)
    if (status == GOOD && given[k] != NULL) status = robot_check_vector(w, given[k], of->given);
  if (status != GOOD) return (robot_status)status;
  for (int k = 0; k < of->known; k++) values[k] = position[of->known_of[k]];
  status = robot_convert_position(w, of, values, start, scratch, q);
  if (status != GOOD) return (robot_status)status;
  memset(yd, 0, 3 * ROBOT_NY * sizeof(double)); /* and ydd, and rates */
  if (velocity != NULL) {
    for (int k = 0; k < of->rates; k++) from_base[k] = velocity[of->rates_of[k]];
    of->velocity(q, rates, yd, conditioning);
    if (!robot_regular(w, conditioning, of->loops)) return ROBOT_DEAD_POINT;
  }
  if (acceleration != NULL) {
    for (int k = 0; k < of->rates; k++) from_base[k] = acceleration[of->rates_of[k]];
    of->acceleration(q, yd, rates, ydd, conditioning);
    if (!robot_regular(w, conditioning, of->loops_of_acceleration)) return ROBOT_DEAD_POINT;
  }
  robot_kernel_spanning_motion(q, yd, ydd, qd, qdd);
  memset(on_acting, 0, (size_t)of->acting * sizeof(double));
  if (effort != NULL) {
    memset(spanning, 0, ROBOT_NV * sizeof(double));
    for (int k = 0; k < of->given; k++) spanning[of->given_in[k]] = effort[k];
    robot_kernel_generalized_force(q, spanning, tau);
    of->efforts(q, tau, on_acting, missed);
    double largest = 0.0;
    for (int k = 0; k < ROBOT_NY; k++) largest = larger(fabs(tau[k]), largest);
    w->place = (int)first_beyond(missed, ROBOT_NY, ROBOT_LEFT_OVER * largest);
    if (w->place >= 0) return ROBOT_CANNOT_GIVE;
    if (first_beyond(on_acting, of->acting, DBL_MAX) >= 0) return ROBOT_NOT_FINITE;
  }
  if (first_beyond(qd, ROBOT_NV, DBL_MAX) >= 0 || first_beyond(qdd, ROBOT_NV, DBL_MAX) >= 0)
    return ROBOT_NOT_FINITE;
  memcpy(start, q, ROBOT_NQ * sizeof(double));
  for (int k = 0; k < of->targets; k++) {
    if (to_position != NULL) to_position[k] = q[of->positions[k]];
    if (to_velocity != NULL) to_velocity[k] = qd[of->coordinates[k]];
    if (to_acceleration != NULL) to_acceleration[k] = qdd[of->coordinates[k]];
    if (to_effort != NULL) to_effort[k] = on_acting[of->efforts_of[k]];
  }
  return ROBOT_OK;
}
