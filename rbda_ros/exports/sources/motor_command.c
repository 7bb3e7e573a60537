/* Commands of joints as commands of motors: `MotorCommandCall`. `robot_` and `ROBOT_` become the name
 * of the library; its macros, tables and kernels come before. */

static inline robot_status
robot_run_motor_command(robot_workspace *w, void (*evaluate)(void *), const double *position,
                        const double *velocity, const double *effort, const double *stiffness,
                        const double *damping, const double *measured_velocity,
                        const double *feedforward, const double *limit, double *motor_position,
                        double *motor_velocity, double *motor_effort)
{
  enum { MEASURED_PORT = ROBOT_NY + ROBOT_NQ + ROBOT_MOTORS }; /* velocity, position, efforts */
  const double *const given[] = {position, velocity,          effort,     stiffness,
                                 damping,  measured_velocity, feedforward};
  static const int sizes[] = {ROBOT_JOINTS, ROBOT_JOINTS,   ROBOT_JOINTS, ROBOT_JOINTS,
                              ROBOT_JOINTS, ROBOT_MEASURED, ROBOT_MOTORS};
  double *const wanted[] = {motor_position, motor_velocity, motor_effort};
  double *p_position = w->memory, *p_velocity = p_position + ROBOT_JOINTS;
  double *p_effort = p_velocity + ROBOT_NY, *gains = p_effort + ROBOT_NV;
  double *offsets = gains + 2 * ROBOT_NV, *measured = offsets + ROBOT_MOTORS;
  double *guess = measured + MEASURED_PORT, *p_limit = guess + ROBOT_NQ;
  double *missed = p_limit + ROBOT_MOTORS, *motors = missed + ROBOT_NY;
  double *q = motors + 3 * ROBOT_MOTORS, *health = q + ROBOT_NQ;
  double *scratch = health + COMMAND_HEALTH;
  robot_bound bound = {{p_position, p_velocity, p_effort, guess, measured, gains, p_limit, offsets,
                        missed, motors, q, health},
                       &w->evaluations};
  Status status = robot_begin(w);
  for (int k = 0; k < 7; k++)
    if (status == GOOD && given[k] != NULL) status = robot_check_vector(w, given[k], sizes[k]);
  if (status != GOOD) return (robot_status)status;
  memset(p_velocity, 0,
         (size_t)(guess - p_velocity) * sizeof(double)); /* and all up to the guess */
  for (int k = 0; k < ROBOT_JOINTS; k++) {
    const ptrdiff_t at = robot_command_coordinates[k];
    p_position[k] = position[robot_command_order[k]];
    if (velocity != NULL) p_velocity[ROBOT_BASE_NV + k] = velocity[robot_command_order[k]];
    if (effort != NULL) p_effort[at] = effort[k];
    if (stiffness != NULL) gains[at] = stiffness[k];
    if (damping != NULL) gains[ROBOT_NV + at] = damping[k];
  }
  if (measured_velocity != NULL)
    for (int k = 0; k < ROBOT_COMMAND_RATES; k++)
      measured[ROBOT_BASE_NV + k] = measured_velocity[robot_command_rates[k]];
  memcpy(measured + ROBOT_NY, w->q, ROBOT_NQ * sizeof(double));
  if (feedforward != NULL)
    memcpy(measured + ROBOT_NY + ROBOT_NQ, feedforward, ROBOT_MOTORS * sizeof(double));
  if (!robot_read_limit(w, limit, p_limit)) return ROBOT_BAD_ARGUMENT;
  memcpy(guess, w->command_q, ROBOT_NQ * sizeof(double));
  closing_result_t result =
      robot_close_stream(w, &bound, evaluate, p_position, robot_command_entries,
                         ROBOT_COMMAND_KNOWN, guess, q, ROBOT_BASE_NQ, health, scratch, w->q);
  if (result != CLOSED) return robot_closing_status[result];
  result = judge_command(health, w->max_condition_number, ROBOT_LEFT_OVER);
  if (result == MOTORS_CANNOT)
    w->place = (int)first_beyond(missed, ROBOT_NY, ROBOT_LEFT_OVER * health[FORCE]);
  if (result != CLOSED) return robot_closing_status[result];
  w->limited = (int)health[LIMITED];
  if (first_beyond(motors, 3 * ROBOT_MOTORS, DBL_MAX) >= 0) return ROBOT_NOT_FINITE;
  memcpy(w->command_q, q, ROBOT_NQ * sizeof(double));
  for (int k = 0; k < 3; k++)
    if (wanted[k] != NULL)
      memcpy(wanted[k], motors + k * ROBOT_MOTORS, ROBOT_MOTORS * sizeof(double));
  return ROBOT_OK;
}
