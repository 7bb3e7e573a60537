/* What all functions of an exported library share: to begin, to check arguments, to judge a position.
 * `robot_` and `ROBOT_` become the name of the library; its macros and tables come before. */

static inline Status robot_begin(robot_workspace *w)
{
  w->place = -1;
  w->evaluations = w->limited = 0;
  return GOOD;
}

static inline Status robot_check_vector(robot_workspace *w, const double *x, int count)
{
  w->place = (int)first_beyond(x, count, ROBOT_LARGEST);
  return w->place < 0 ? GOOD : UNREAD;
}

static inline Status robot_check_position(robot_workspace *w, const double *x, int count)
{
  w->place = (int)first_beyond(x, count, ROBOT_LARGEST_POSITION);
  return w->place < 0 ? GOOD : UNREAD;
}

static inline Status robot_read_vector(robot_workspace *w, const double *x, int count, double *into)
{
  memcpy(into, x, (size_t)count * sizeof *into);
  return robot_check_vector(w, into, count);
}

static inline int robot_normalize(double *q)
{
  return normalize_quaternions(q, robot_quaternions, ROBOT_QUATERNIONS, ROBOT_QUATERNION_TOLERANCE,
                               ROBOT_UNIT);
}

static inline Status robot_judge_position(robot_workspace *w, const double *q)
{
#ifdef ROBOT_LOOP_ROWS
  double phi[ROBOT_LOOP_ROWS + 1], conditioning[ROBOT_LOOPS + 1];
  robot_kernel_loop_state(q, phi, conditioning);
  return judge_loops(phi, ROBOT_LOOP_ROWS, conditioning, ROBOT_LOOPS, ROBOT_ON_LOOPS,
                     ROBOT_SINGULAR_LOOP, &w->residual, &w->conditioning);
#else
  (void)q;
  w->residual = 0.0;
  w->conditioning = 1.0;
  return GOOD;
#endif
}

static inline Status robot_read_position(robot_workspace *w, const double *given, double *q)
{
  const Status status = robot_check_position(w, given, ROBOT_NQ);
  if (status != GOOD) return status;
  memcpy(q, given, ROBOT_NQ * sizeof *q);
  if (!robot_normalize(q)) return UNREAD;
  return robot_judge_position(w, q);
}

static inline int robot_regular(robot_workspace *w, const double *conditioning, int count)
{
  for (int k = 0; k < count; k++) {
    w->conditioning = smaller(conditioning[k], w->conditioning);
    if (!(conditioning[k] >= ROBOT_SINGULAR_LOOP)) return 0;
  }
  return 1;
}

void robot_init(robot_workspace *w)
{
  memset(w, 0, sizeof *w);
  memcpy(w->q, robot_assembly, sizeof w->q);
  memcpy(w->command_q, robot_assembly, sizeof w->command_q);
  w->max_condition_number = ROBOT_MAX_CONDITION;
  w->place = -1;
}

robot_status robot_start_from(robot_workspace *w, const robot_real *q)
{
  double *read = w->memory;
  Status status = robot_begin(w);
  status = robot_read_position(w, q, read);
  if (status != GOOD) return (robot_status)status;
  memcpy(w->q, read, ROBOT_NQ * sizeof *read);
  memcpy(w->command_q, read, ROBOT_NQ * sizeof *read);
  return ROBOT_OK;
}

void robot_add_wrench(int link, const robot_real *wrench, robot_real *wrenches)
{
  if (link >= 0 && link < ROBOT_LINKS) add_link_wrench(robot_links[link], wrench, wrenches);
}
