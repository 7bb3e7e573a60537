/* The momentum observer of exported code. `robot_` and `ROBOT_` become the name of the library; its
 * macros and kernels come before. */

void robot_observer_init(robot_observer *observer)
{
  memset(observer, 0, sizeof *observer);
}

robot_status robot_observer_update(robot_workspace *w, robot_observer *observer, TIME gain,
                                   TIME time, const robot_real *q, const robot_real *yd,
                                   const robot_real *tau)
{
  const size_t bytes = ROBOT_NY * sizeof(double);
  double *p_q = w->memory;
  double *p_yd = p_q + ROBOT_NQ, *p_tau = p_yd + ROBOT_NY, *friction = p_tau + ROBOT_NY;
  double *momentum = friction + ROBOT_NY, *rate = momentum + ROBOT_NY, *drive = rate + ROBOT_NY;
  double *next = drive + ROBOT_NY, *last = next + ROBOT_NY, *external = last + ROBOT_NY;
  Status status = robot_begin(w);
  status = robot_read_position(w, q, p_q);
  if (status == GOOD) status = robot_read_vector(w, yd, ROBOT_NY, p_yd);
  if (status == GOOD) status = robot_read_vector(w, tau, ROBOT_NY, p_tau);
  if (status == GOOD && !(gain > 0.0 && gain < INFINITY && time - time == 0.0)) status = UNREAD;
  if (status != GOOD) return (robot_status)status;
  if (observer->started && !(time > observer->time)) return ROBOT_NOT_LATER;
  robot_kernel_friction_force(p_q, p_yd, friction);
#ifdef ROBOT_PAYLOAD
  robot_kernel_momentum(p_q, p_yd, w->payload, momentum, rate);
#else
  robot_kernel_momentum(p_q, p_yd, momentum, rate);
#endif
  for (int k = 0; k < ROBOT_NY; k++) drive[k] = (p_tau[k] - friction[k]) + rate[k];
  if (first_beyond(drive, ROBOT_NY, DBL_MAX) >= 0 || first_beyond(momentum, ROBOT_NY, DBL_MAX) >= 0)
    return ROBOT_NOT_FINITE;
  memcpy(next, observer->integral, bytes);
  memcpy(last, observer->drive, bytes);
  memcpy(external, observer->external, bytes);
  observer_step(ROBOT_NY, momentum, drive, (double)gain,
                observer->started ? (double)(time - observer->time) : 0.0, !observer->started, next,
                last, external);
  if (first_beyond(external, ROBOT_NY, DBL_MAX) >= 0 || first_beyond(next, ROBOT_NY, DBL_MAX) >= 0)
    return ROBOT_NOT_FINITE;
  memcpy(observer->integral, next, bytes);
  memcpy(observer->drive, last, bytes);
  memcpy(observer->external, external, bytes);
  observer->time = time;
  observer->started = 1;
  return ROBOT_OK;
}
