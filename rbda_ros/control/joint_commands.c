/* Commands in joint space to commands of the motors. */
#include "machine.h"

#include <math.h>
#include <string.h>

static int fields_of(const joint_state_t *command)
{
  return (command->position.count > 0 ? POSITION_FIELD : 0)
         | (command->velocity.count > 0 ? VELOCITY_FIELD : 0)
         | (command->effort.count > 0 ? EFFORT_FIELD : 0);
}

static code_t check_command(const layout_t *layout, const joint_state_t *command)
{
  const numbers_t fields[] = {command->position, command->velocity, command->effort};
  if (layout->repeated || layout->known < layout->count) return MISNAMED;
  for (int k = 0; k < 3; k++)
    if (fields[k].count != 0 && fields[k].count != (size_t)layout->count) return WRONG_SIZE;
  return fields_of(command) == 0 ? WRONG_SIZE : ACCEPTED;
}

static bool is_state_fresh(const machine_t *m, int64_t now)
{
  const state_t *s = m->state;
  return s->answered && !is_stale(s->state_time, now, m->config->settings.joint_state_timeout);
}

/* The route for such commands; NULL, and a request, where there is none yet. */
static const command_route_t *find_command_route(machine_t *m, const uint8_t *named, int fields)
{
  const config_t *config = m->config;
  const size_t joints = (size_t)m->state->joints;
  const bool moves = fields & (POSITION_FIELD | VELOCITY_FIELD);
  const uint8_t *damped = config->settings.dampers && moves ? m->state->state_joints : NULL;
  for (int k = 0; k < config->command_route_count; k++) {
    const command_route_t *route = &config->command_routes[k];
    if (route->fields == fields && same_mask(route->measured, damped, joints)
        && same_mask(route->named, named, joints))
      return route;
  }
  request_t *request = &m->request;
  if (request->command) return NULL;
  memcpy(request->named, named, joints);
  request->fields = fields;
  request->has_damped = damped != NULL;
  if (damped != NULL) memcpy(request->damped, damped, joints);
  request->command = true;
  return NULL;
}

/* Where closing begins: where the robot is; without a fresh state, where the last command was. */
static const double *start_of(const machine_t *m, bool fresh, moment_t moment)
{
  const state_t *s = m->state;
  if (fresh) return s->state + s->ny;
  const bool recent =
      s->command_steady != NEVER
      && !is_stale(s->command_steady, moment.steady, m->config->settings.joint_state_timeout);
  return recent ? s->command_q : m->config->model.home;
}

static void give_command(machine_t *m, const command_route_t *route, const layout_t *layout,
                         const joint_state_t *command, const double *start, bool fresh)
{
  const state_t *s = m->state;
  const model_t *model = &m->config->model;
  const settings_t *settings = &m->config->settings;
  const size_t nv = (size_t)s->nv;
  int32_t *place = (int32_t *)(void *)m->config->scratch; /* of each joint in the message */
  for (int k = 0; k < layout->count; k++) place[layout->joints[k]] = k;
  memcpy(route->gain, settings->gains, sizeof(double) * 2 * nv);
  for (int k = 0; k < s->actuated; k++)
    route->offset[k] = settings->offsets[model->actuated_joints[k]];
  if (fresh) memcpy(route->state, s->state, sizeof(double) * (size_t)(s->ny + s->nq + s->actuated));
  memcpy(route->closing.guess, start, sizeof(double) * (size_t)s->nq);
  for (int k = 0; k < s->ny; k++) route->velocity[k] = 0.0;
  memset(route->effort, 0, sizeof(double) * nv);
  for (int k = 0; k < route->known; k++) {
    const int joint = route->joints[k];
    const size_t at = (size_t)place[joint];
    route->closing.position[k] =
        route->holds ? start[model->entries[joint]] : number_at(command->position, at);
    if (command->velocity.count > 0)
      route->velocity[s->base_nv + k] = number_at(command->velocity, at);
  }
  for (int k = 0; command->effort.count > 0 && k < layout->count; k++)
    route->effort[model->coordinates[layout->joints[k]]] = number_at(command->effort, (size_t)k);
}

static code_t compute_command(machine_t *m, const command_route_t *route, const double *start)
{
  static const code_t codes[] = {ACCEPTED, NOT_FINITE, NOT_CLOSING, SINGULAR, NOT_FINITE, MODEL};
  const settings_t *settings = &m->config->settings;
  const double *health = route->closing.health;
  closing_result_t result = CLOSED;
  if (route->moves)
    result = close_loops(&route->closing, &settings->closing, start);
  else
    run_kernel(&route->kernel);
  if (result != CLOSED) return codes[result];
  m->detail.value = health[CONDITIONING];
  return codes[judge_command(health, settings->max_condition_number, settings->cannot_give)];
}

static size_t send_motors(machine_t *m, const sink_t *sink, const command_route_t *route,
                          int64_t stamp, moment_t moment)
{
  config_t *config = m->config;
  const size_t actuated = (size_t)config->model.actuated;
  const int fields = (route->fields & ~EFFORT_FIELD) | (route->has_efforts ? EFFORT_FIELD : 0);
  const double *motors[] = {route->motors, route->motors + actuated, route->motors + 2 * actuated};
  double *passed = config->scratch;
  size_t limited = 0;
  if (route->has_efforts) limited = pass_gate(m, MOTOR_GATE, motors[2], moment, passed);
  const double *const sent[] = {motors[0], motors[1], passed};
  emit_fields(sink, MOTOR_COMMANDS, &config->outputs.motors[fields], sent, stamp);
  if (fields & VELOCITY_FIELD) note_velocities(m, MOTOR_GATE, motors[1], moment);
  if (!config->settings.commands_from_joints || config->settings.command_count == 0) return limited;
  if (fields & POSITION_FIELD) send_array(m, sink, POSITION_COMMANDS, motors[0]);
  if (fields & VELOCITY_FIELD) {
    send_array(m, sink, VELOCITY_COMMANDS, motors[1]);
    note_velocities(m, ARRAY_GATE, motors[1], moment);
  }
  if (route->has_efforts) send_effort_array(m, sink, true, motors[2], moment);
  return limited;
}

code_t feed_command(machine_t *m, const sink_t *sink, const uint8_t *data, size_t size,
                    moment_t moment)
{
  const int64_t began = monotonic();
  config_t *config = m->config;
  state_t *s = m->state;
  const settings_t *settings = &config->settings;
  joint_state_t command;
  layout_t *layout;
  code_t code = take_joint_state(m, &s->command_layouts, data, size, moment, &command, &layout);
  if (code != ACCEPTED) return code;
  code = check_command(layout, &command);
  if (code != ACCEPTED) return code;
  if (settings->joint_state_timeout != 0 && command.stamp < s->last_command_stamp)
    return OUT_OF_ORDER;
  s->last_command_stamp = command.stamp;
  uint8_t *named = m->detail.mask;
  memset(named, 0, (size_t)s->joints);
  for (int k = 0; k < layout->count; k++) named[layout->joints[k]] = 1;
  const int fields = fields_of(&command);
  if (settings->dampers && (fields & (POSITION_FIELD | VELOCITY_FIELD)) && !s->answered)
    return NO_STATE;
  const command_route_t *route = find_command_route(m, named, fields);
  if (route == NULL) return NOT_READY;
  if (!route->determined) return PARTIAL;
  const bool fresh = is_state_fresh(m, moment.now);
  if (route->needs_state && !fresh) return NO_STATE;
  const double *start = start_of(m, fresh, moment);
  give_command(m, route, layout, &command, start, fresh);
  code = compute_command(m, route, start);
  if (code != ACCEPTED) return code;
  memcpy(s->command_q, route->closing.q, sizeof(double) * (size_t)s->nq);
  s->command_stamp = command.stamp;
  s->command_steady = moment.steady;
  const size_t limited = send_motors(m, sink, route, command.stamp, moment);
  record_answer(&m->commands, route->closing.health, limited, command.stamp, moment, began);
  return ACCEPTED;
}
