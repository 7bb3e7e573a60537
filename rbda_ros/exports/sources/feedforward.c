/* Efforts of the motors for the measured motion: `FeedforwardCall`. `robot_` and `ROBOT_` become the
 * name of the library; its macros, tables and kernels come before. */

/* `evaluate` has its wrenches as an input where they are not NULL. Those of the base are NULL where
 * it is fixed. */
static inline robot_status
robot_run_feedforward(robot_workspace *w, void (*evaluate)(void *), const double *base_position,
                      const double *base_twist, const double *base_acceleration,
                      const double *position, const double *velocity, const double *acceleration,
                      const double *wrenches, const double *limit, double *efforts)
{
  const double *const given[] = {position,   velocity,          acceleration, base_position,
                                 base_twist, base_acceleration, wrenches};
  static const int sizes[] = {ROBOT_MEASURED,  ROBOT_MEASURED, ROBOT_NY - ROBOT_BASE_NV, 7, 6, 6,
                              6 * ROBOT_BODIES};
  double *p_position = w->memory, *p_velocity = p_position + ROBOT_MEASURED;
  double *p_acceleration = p_velocity + ROBOT_NY, *guess = p_acceleration + ROBOT_NY;
  double *p_limit = guess + ROBOT_NQ, *p_efforts = p_limit + ROBOT_MOTORS;
  double *q = p_efforts + ROBOT_MOTORS, *health = q + ROBOT_NQ, *scratch = health + HEALTH;
  double *p_wrenches = scratch + 2 * ROBOT_NQ + 2 * ROBOT_MEASURED;
  robot_bound bound;
  int ports = 0;
  Status status = robot_begin(w);
  for (int k = 0; k < 7; k++)
    if (status == GOOD && given[k] != NULL) status = robot_check_vector(w, given[k], sizes[k]);
  if (status != GOOD) return (robot_status)status;
  memcpy(guess, w->q, ROBOT_NQ * sizeof(double));
  if (base_position != NULL) {
    memcpy(guess, base_position, 7 * sizeof(double));
    memcpy(p_velocity, base_twist, 6 * sizeof(double));
    memcpy(p_acceleration, base_acceleration, 6 * sizeof(double));
    if (!robot_normalize(guess)) return ROBOT_BAD_ARGUMENT;
  }
  for (int k = 0; k < ROBOT_MEASURED; k++) {
    p_position[k] = position[robot_feedforward_order[k]];
    p_velocity[ROBOT_BASE_NV + k] = velocity[robot_feedforward_order[k]];
  }
  for (int k = ROBOT_BASE_NV; k < ROBOT_NY; k++)
    p_acceleration[k] = acceleration[k - ROBOT_BASE_NV];
  if (!robot_read_limit(w, limit, p_limit)) return ROBOT_BAD_ARGUMENT;
  bound.count = &w->evaluations;
  bound.ports[ports++] = p_position;
  bound.ports[ports++] = p_velocity;
  bound.ports[ports++] = p_acceleration;
  bound.ports[ports++] = guess;
  bound.ports[ports++] = p_limit;
  if (wrenches != NULL) {
    memcpy(p_wrenches, wrenches, 6 * ROBOT_BODIES * sizeof(double));
    bound.ports[ports++] = p_wrenches;
  }
#ifdef ROBOT_PAYLOAD
  bound.ports[ports++] = w->payload;
#endif
  bound.ports[ports++] = p_efforts;
  bound.ports[ports++] = q;
  bound.ports[ports++] = health;
  closing_result_t result = robot_close_stream(
      w, &bound, evaluate, p_position, robot_feedforward_entries, ROBOT_FEEDFORWARD_KNOWN, guess, q,
      ROBOT_BASE_NQ, health, scratch, robot_assembly);
  if (result != CLOSED) return robot_closing_status[result];
  result = judge_health(health, ROBOT_CLOSED, w->max_condition_number);
  if (result != CLOSED) return robot_closing_status[result];
  w->limited = (int)health[LIMITED];
  memcpy(w->q, q, ROBOT_NQ * sizeof(double));
  memcpy(efforts, p_efforts, ROBOT_MOTORS * sizeof(double));
  return ROBOT_OK;
}
