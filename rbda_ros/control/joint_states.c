/* Joint states to efforts. */
#include "../engine/geometry.h"
#include "machine.h"

#include <math.h>
#include <string.h>

static bool has_all(numbers_t field, const layout_t *layout)
{
  return field.count == (size_t)layout->count;
}

static code_t check_sizes(const settings_t *settings, const layout_t *layout,
                          const joint_state_t *state)
{
  if (!has_all(state->position, layout)) return WRONG_SIZE;
  if (!settings->differentiate && state->velocity.count > 0 && !has_all(state->velocity, layout))
    return WRONG_SIZE;
  return ACCEPTED;
}

/* Keep what a message says of one joint. A number that is not finite is one that is not there. */
static void keep_joint(machine_t *m, int joint, double position, double velocity, int64_t time)
{
  state_t *s = m->state;
  const settings_t *settings = &m->config->settings;
  const int64_t longest = longest_gap(settings);
  s->position[joint] = position;
  s->time[joint] = time;
  if (settings->differentiate) {
    update_rate(&s->velocity_rates[joint], position, time, settings->velocity_cutoff, longest);
    velocity = s->velocity_rates[joint].rate;
  }
  s->velocity[joint] = velocity;
  s->moving[joint] = isfinite(velocity) != 0;
  if (settings->acceleration_source == ACCELERATION_ESTIMATE)
    update_rate(&s->acceleration_rates[joint], velocity, time, settings->acceleration_cutoff,
                longest);
}

/* Keep a message; the masks (joints) say which joints have a position in it, and which a velocity
 * too. Whether all of its numbers are finite. */
static bool keep(machine_t *m, const layout_t *layout, const joint_state_t *state, int64_t time,
                 uint8_t *has_position, uint8_t *has_velocity)
{
  const bool velocities = has_all(state->velocity, layout);
  bool finite = true;
  memset(has_position, 0, (size_t)m->state->joints);
  memset(has_velocity, 0, (size_t)m->state->joints);
  for (int k = 0; k < layout->count; k++) {
    const int joint = layout->joints[k];
    if (joint == NOWHERE) continue;
    const double position = number_at(state->position, (size_t)k);
    const double velocity = velocities ? number_at(state->velocity, (size_t)k) : NAN;
    finite = finite && isfinite(position) && (!velocities || isfinite(velocity));
    if (!isfinite(position)) {
      /* Its driver does not know it any more; what other drivers measured stays. */
      if (m->state->source[joint] == layout->number) m->state->time[joint] = NEVER;
      continue;
    }
    keep_joint(m, joint, position, velocity, time);
    m->state->source[joint] = layout->number;
    has_position[joint] = 1;
    has_velocity[joint] = m->state->moving[joint];
  }
  return finite;
}

static void keep_efforts(machine_t *m, const layout_t *layout, const joint_state_t *state,
                         int64_t time)
{
  if (!has_all(state->effort, layout)) return;
  for (int k = 0; k < layout->count; k++) {
    const int joint = layout->joints[k];
    if (joint == NOWHERE) continue;
    const double effort = number_at(state->effort, (size_t)k);
    m->state->effort[joint] = effort;
    m->state->effort_time[joint] = isfinite(effort) ? time : NEVER;
  }
}

/* Routes. */

bool same_mask(const uint8_t *one, const uint8_t *other, size_t joints)
{
  return one == other || (one != NULL && other != NULL && memcmp(one, other, joints) == 0);
}

/* Whether no such route was asked for since the last configuration; it counts as asked for now. */
static bool is_new_route(machine_t *m, const uint8_t *measured, const uint8_t *wanted)
{
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (int k = 0; k < m->state->joints; k++) {
    const uint8_t joint = (uint8_t)(measured[k] | (wanted == NULL ? 4 : wanted[k] << 1));
    hash = (hash ^ joint) * 1099511628211u;
  }
  for (int k = 0; k < m->asked_count; k++)
    if (m->asked[k] == hash) return false;
  if (m->asked_count == MAX_ASKED) m->asked_count = 0;
  m->asked[m->asked_count++] = hash;
  return true;
}

/* The route for known joints as the settings want it; one with other terms will do until there is a
 * better one. NULL, and a request, where there is none. */
static const route_t *find_route(machine_t *m, const uint8_t *measured)
{
  static const route_t nothing = {.determined = false};
  if (memchr(measured, 1, (size_t)m->state->joints) == NULL) return &nothing;
  const config_t *config = m->config;
  const settings_t *settings = &config->settings;
  const size_t joints = (size_t)m->state->joints;
  const int source = settings->acceleration_source;
  const uint8_t *wanted = source == ACCELERATION_REFERENCE ? m->state->referenced : NULL;
  const route_t *other_terms = NULL;
  for (int k = 0; k < config->route_count; k++) {
    const route_t *route = &config->routes[k];
    if (!same_mask(route->measured, measured, joints)) continue;
    if (!route->determined) return route;
    if (route->acceleration_source != source || route->wrenches != settings->external_wrench
        || !same_mask(route->wanted, wanted, joints))
      continue;
    if (route->terms == settings->terms) return route;
    other_terms = route;
  }
  request_t *request = &m->request;
  if (!request->route && is_new_route(m, measured, wanted)) {
    request->route = true;
    memcpy(request->measured, measured, joints);
    request->has_wanted = wanted != NULL;
    if (wanted != NULL) memcpy(request->wanted, wanted, joints);
  }
  return other_terms;
}

/* Joints whose last position is not too old; with `moving`, whose velocity is known as well. */
static void find_fresh(const machine_t *m, int64_t now, bool moving, uint8_t *fresh)
{
  const state_t *s = m->state;
  const int64_t timeout = m->config->settings.joint_state_timeout;
  const int64_t oldest = timeout != 0 ? now - timeout : NEVER + 1;
  for (int k = 0; k < s->joints; k++) fresh[k] = s->time[k] >= oldest && (!moving || s->moving[k]);
}

/* The route to answer by: that of the message alone, or of all that is fresh. The code says why
 * there is none; a route may come with it, by which positions can be completed. */
static code_t choose_route(machine_t *m, const uint8_t *has_position, const uint8_t *has_velocity,
                           int64_t now, bool finite, const route_t **route)
{
  const size_t joints = (size_t)m->state->joints;
  uint8_t *fresh = m->detail.mask;
  const route_t *alone = find_route(m, has_velocity);
  *route = alone;
  if (alone != NULL && alone->determined) {
    /* Used by itself, and never together with parts of other messages. */
    for (size_t k = 0; k < joints; k++)
      if (has_position[k]) m->state->time[k] = NEVER;
    return ACCEPTED;
  }
  memcpy(fresh, has_velocity, joints);
  if (alone == NULL) return finite ? NOT_READY : NOT_FINITE;
  find_fresh(m, now, true, fresh);
  const route_t *together = find_route(m, fresh);
  *route = together;
  if (together != NULL && together->determined) return ACCEPTED;
  if (together == NULL) return finite ? NOT_READY : NOT_FINITE;
  /* Perhaps the positions alone are enough for ~/joint_states. */
  find_fresh(m, now, false, fresh);
  const route_t *placed =
      find_route(m, memcmp(has_position, has_velocity, joints) == 0 ? fresh : has_position);
  if (placed != NULL && !placed->determined) placed = find_route(m, fresh);
  *route = placed;
  if (placed == NULL) return NOT_READY;
  if (placed->determined) {
    m->detail.value = m->config->settings.differentiate;
    return NO_VELOCITY;
  }
  *route = NULL;
  return finite ? PARTIAL : NOT_FINITE;
}

/* Inputs of the kernel. */

static code_t give_base(machine_t *m, const route_t *route, int64_t now)
{
  const state_t *s = m->state;
  const settings_t *settings = &m->config->settings;
  if (s->base_nv == 0) return ACCEPTED;
  if (s->base_time == NEVER || is_stale(s->base_time, now, settings->joint_state_timeout))
    return NO_BASE_STATE;
  memcpy(route->closing.guess, s->base_position, sizeof s->base_position);
  memcpy(route->velocity, s->base_twist, sizeof s->base_twist);
  if (settings->acceleration_source == ACCELERATION_ESTIMATE)
    for (int k = 0; k < s->base_nv; k++) route->acceleration[k] = s->base_rates[k].rate;
  return ACCEPTED;
}

static code_t give_wrenches(machine_t *m, const route_t *route, int64_t now)
{
  const state_t *s = m->state;
  const settings_t *settings = &m->config->settings;
  if (!settings->external_wrench) return ACCEPTED;
  const model_t *model = &m->config->model;
  memset(route->wrench, 0, sizeof(double) * 6 * (size_t)model->bodies);
  bool any = false;
  for (int k = 0; k < s->links; k++) {
    if (s->wrench_time[k] == NEVER) continue;
    any = true;
    if (is_stale(s->wrench_time[k], now, settings->joint_state_timeout)) return NO_WRENCH;
    if (model->link_bodies[k] == NOWHERE) continue;
    for (int i = 0; i < 6; i++)
      route->wrench[6 * model->link_bodies[k] + i] += s->wrenches[6 * k + i];
  }
  return any ? ACCEPTED : NO_WRENCH;
}

static code_t give_acceleration(machine_t *m, const route_t *route, int64_t now)
{
  const state_t *s = m->state;
  const settings_t *settings = &m->config->settings;
  double *acceleration = route->acceleration + s->base_nv;
  if (settings->acceleration_source == ACCELERATION_REFERENCE) {
    if (s->reference_time == NEVER
        || is_stale(s->reference_time, now, settings->joint_state_timeout))
      return NO_REFERENCE;
    if (!route->reference_determined) return PARTIAL;
    for (int k = 0; k < route->wanted_count; k++)
      acceleration[k] = s->reference[route->wanted_joints[k]];
  } else if (settings->acceleration_source == ACCELERATION_ESTIMATE) {
    for (int k = 0; k < route->wanted_count; k++) {
      acceleration[k] = s->acceleration_rates[route->wanted_joints[k]].rate;
      if (!isfinite(acceleration[k])) return NO_ACCELERATION;
    }
    for (int k = 0; k < s->base_nv; k++)
      if (!isfinite(route->acceleration[k])) return NO_ACCELERATION;
  }
  return ACCEPTED;
}

static double measured_position(const machine_t *m, int joint)
{
  return m->state->position[joint] + m->config->settings.offsets[joint];
}

/* Where closing begins: where redundant measurements are; there, with the joints that nobody measures
 * where they follow from these; or at the last position. */
enum { AT_MEASURED, AT_SETTLED, AT_LAST };

/* Begin at the last position; with `seeded`, where more is measured than needed, at what is measured,
 * so that the measurements choose the branch. */
static void give_guess(machine_t *m, const route_t *route, bool seeded)
{
  const state_t *s = m->state;
  double *guess = route->closing.guess;
  memcpy(guess + m->config->model.base_nq, s->q + m->config->model.base_nq,
         sizeof(double) * (size_t)(s->nq - m->config->model.base_nq));
  for (int k = 0; seeded && k < route->seed_count; k++) {
    const int joint = route->seeds[k];
    guess[m->config->model.entries[joint]] = measured_position(m, joint);
  }
}

/* Share of the tolerance within which no other branch is looked for: two may be near a dead point. */
static const double CERTAIN = 1e-3;

/* Close the loops by the other measured joints, with the angles that nobody measures `turn` from the
 * guess; the largest contradiction to a measurement, infinite where they do not close. */
static double settle_from(machine_t *m, const route_t *route, double turn)
{
  const kernel_t *kernel = &route->settling;
  const model_t *model = &m->config->model;
  const closing_rules_t *rules = &m->config->settings.closing;
  const size_t nq = (size_t)model->nq;
  double *position = kernel->ports[0], *guess = kernel->ports[1], *q = kernel->ports[2];
  double residual = INFINITY, apart = 0.0;
  for (int k = 0; k < route->settling_count; k++)
    position[k] = measured_position(m, route->settling_joints[k]);
  memcpy(guess, route->closing.guess, sizeof(double) * nq);
  for (int k = 0; k < route->follower_count; k++)
    for (int joint = 0; joint < model->joints.count; joint++)
      if (model->entries[joint] == route->followers[k] && model->angular[joint])
        guess[route->followers[k]] += turn;
  for (int k = 0; k < rules->repeats && !(residual <= rules->precise); k++) {
    run_kernel(kernel);
    memcpy(guess, q, sizeof(double) * nq);
    residual = 0.0;
    for (size_t row = 0; row < kernel->sizes[3]; row++)
      residual = fmax(residual, fabs(kernel->ports[3][row]));
  }
  for (size_t k = 0; k < nq; k++)
    if (!isfinite(q[k])) return INFINITY;
  for (int k = 0; k < route->seed_count; k++) {
    const int joint = route->seeds[k];
    const double computed = q[model->entries[joint]];
    apart = fmax(apart,
                 disagreement(measured_position(m, joint), computed, model->angular[joint], 1.0));
  }
  return residual <= rules->closed ? apart : INFINITY;
}

/* Time between two tries from other angles that failed [ns]: each delays the messages behind it. */
static const int64_t SETTLING_PAUSE = 20000000;

/* Begin where the loops close by the other measured joints: near a dead point of those that the
 * efforts follow from, these still tell on which branch the joints are that nobody measures. The
 * last position may be far from there, or on another branch: then from other angles, too. */
static void settle(machine_t *m, const route_t *route)
{
  static const double turns[] = {0.0, 1.0, -1.0, 2.0, -2.0, M_PI, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5};
  state_t *s = m->state;
  const bool paused = s->latest_steady - s->settling_failed < SETTLING_PAUSE;
  const int count = paused ? 1 : (int)(sizeof turns / sizeof *turns);
  const double close = 0.5 * m->config->settings.tolerance;
  double least = INFINITY;
  int best = 0, last = 0;
  for (int k = 0; k < count && !(least <= close); k++) {
    const double apart = settle_from(m, route, turns[last = k]);
    if (!(apart < least)) continue;
    least = apart;
    best = k;
  }
  if (!(least <= close) && !paused) s->settling_failed = s->latest_steady;
  if (!(least < INFINITY)) return;
  if (best != last) (void)settle_from(m, route, turns[best]);
  for (int k = 0; k < route->follower_count; k++)
    route->closing.guess[route->followers[k]] = route->settling.ports[2][route->followers[k]];
}

/* Where the robot is and how fast it moves, and nothing that should accelerate it. */
static void give_motion(machine_t *m, const route_t *route, bool moving)
{
  const state_t *s = m->state;
  const closing_t *closing = &route->closing;
  for (int k = 0; k < route->known; k++) {
    closing->position[k] = measured_position(m, route->joints[k]);
    route->velocity[s->base_nv + k] = moving ? s->velocity[route->joints[k]] : 0.0;
  }
  for (int k = 0; k < s->base_nv; k++) route->velocity[k] = route->acceleration[k] = 0.0;
  for (int k = 0; k < route->wanted_count; k++) route->acceleration[s->base_nv + k] = 0.0;
}

/* Closing and checking. */

/* Time between two searches that are asked for [ns]: they keep a core busy. */
static const int64_t SEARCH_PAUSE = 500000000;

/* Ask Python to search for a closed position near the last one. */
static void ask_search(machine_t *m, const route_t *route)
{
  request_t *request = &m->request;
  const closing_t *closing = &route->closing;
  const int64_t steady = m->state->latest_steady;
  if (request->search || steady - request->search_time <= SEARCH_PAUSE) return;
  request->search_time = steady;
  memcpy(request->chosen, route->chosen, (size_t)m->state->joints);
  memcpy(request->position, closing->position, sizeof(double) * closing->known);
  memcpy(request->guess, closing->guess, sizeof(double) * closing->nq);
  request->search = true;
}

/* Close the loops; with `home`, from the assembly too. */
static closing_result_t close_route(machine_t *m, const route_t *route, bool home)
{
  const config_t *config = m->config;
  if (route->closer == NULL)
    return close_loops(&route->closing, &config->settings.closing,
                       home ? config->model.home : NULL);
  if (!route->closer(route->closer_context, &route->closing)) return TOO_FAR;
  run_kernel(&route->kernel);
  return CLOSED;
}

/* Redundant measurements have to agree with the position that was computed. */
static code_t check_agreement(machine_t *m, const route_t *route)
{
  const double tolerance = m->config->settings.tolerance;
  code_t code = ACCEPTED;
  double largest = 0.0;
  for (int k = 0; k < route->redundant_count; k++) {
    const int joint = route->redundant[k];
    const double computed = route->closing.q[m->config->model.entries[joint]];
    const double measured = measured_position(m, joint);
    const double apart =
        disagreement(measured, computed, m->config->model.angular[joint], route->scales[k]);
    if (apart <= largest) continue;
    largest = apart;
    m->detail.joint = joint;
    m->detail.value = measured;
    m->detail.other = computed;
    if (apart > tolerance) code = CONTRADICTION;
  }
  m->apart = largest;
  return code;
}

/* Evaluate from one guess. */
static code_t evaluate_from(machine_t *m, const route_t *route, int start)
{
  static const code_t codes[] = {ACCEPTED, NOT_FINITE, NOT_CLOSING, SINGULAR, SINGULAR};
  const settings_t *settings = &m->config->settings;
  const double *health = route->closing.health;
  m->apart = 0.0;
  give_guess(m, route, start != AT_LAST);
  if (start == AT_SETTLED) settle(m, route);
  closing_result_t result = close_route(m, route, start == AT_LAST);
  if (result == CLOSED) {
    result = judge_health(health, settings->closing.closed, settings->max_condition_number);
    m->detail.value = result == EFFORT_NOT_FINITE ? NAN : health[CONDITIONING];
  }
  return result == CLOSED ? check_agreement(m, route) : codes[result];
}

/* Evaluate with the loops closed on the branch that agrees best with the measurements: that of the
 * measured joints, or else that of the last position. Where none agrees, the one that is nearest says
 * which joint is wrong. With `search`, Python is asked to search where nothing closes the loops. */
static code_t evaluate(machine_t *m, const route_t *route, bool search)
{
  const double close = CERTAIN * m->config->settings.tolerance;
  detail_t detail = m->detail;
  double apart = INFINITY;
  code_t code = NOT_CLOSING;
  for (int start = route->seed_count > 0 ? AT_MEASURED : AT_LAST; start <= AT_LAST; start++) {
    if (start == AT_SETTLED && route->settling.count == 0) continue;
    if (start == AT_LAST && code == ACCEPTED) break;
    code_t found = evaluate_from(m, route, start);
    if (search && start == AT_LAST && found == NOT_CLOSING && route->closer == NULL)
      ask_search(m, route);
    if (code == ACCEPTED && (found != ACCEPTED || m->apart > apart + close))
      found = evaluate_from(m, route, AT_MEASURED); /* it was better */
    if (code != CONTRADICTION || (found == CONTRADICTION && m->apart < apart)
        || found == ACCEPTED) {
      code = found;
      detail = m->detail;
      apart = m->apart;
    }
    if (found == ACCEPTED && apart <= close) break;
  }
  m->detail = detail;
  m->apart = apart;
  if (m->apart > m->contradiction) {
    m->contradiction = m->apart;
    m->contradicting = m->detail.joint;
  }
  return code;
}

/* Output. */

/* Whether the message has an effort of some joint; one that is not finite counts as absent. */
static bool has_efforts(const layout_t *layout, const joint_state_t *state)
{
  if (!has_all(state->effort, layout)) return false;
  for (int k = 0; k < layout->count; k++)
    if (layout->joints[k] != NOWHERE && isfinite(number_at(state->effort, (size_t)k))) return true;
  return false;
}

/* Velocities of every joint, into the state. */
static void complete_velocity(machine_t *m, const route_t *route)
{
  state_t *s = m->state;
  const kernel_t *kernel = &route->completion;
  memcpy(kernel->ports[0], route->closing.q, sizeof(double) * (size_t)s->nq);
  memcpy(kernel->ports[1], route->velocity, sizeof(double) * (size_t)(s->base_nv + route->known));
  run_kernel(kernel);
  memcpy(s->qd, kernel->ports[2], sizeof(double) * (size_t)s->nv);
}

/* Publish every joint of one coordinate, with the stamp of the message. Efforts are those of the
 * message; zero for joints of which it has none. */
static void send_completed(machine_t *m, const sink_t *sink, const route_t *route,
                           const layout_t *layout, const joint_state_t *state, bool moving)
{
  config_t *config = m->config;
  if (!config->settings.complete || !sink->listened(sink->context, COMPLETED_STATES)) return;
  const model_t *model = &config->model;
  const bool efforts = has_efforts(layout, state);
  const size_t joints = (size_t)model->joints.count;
  double *position = config->scratch, *velocity = position + joints, *effort = velocity + joints;
  double *measured = effort + joints; /* efforts of all joints, also those of several coordinates */
  memset(measured, 0, sizeof(double) * joints);
  for (int k = 0; efforts && k < layout->count; k++) {
    const double number = number_at(state->effort, (size_t)k);
    if (layout->joints[k] != NOWHERE && isfinite(number)) measured[layout->joints[k]] = number;
  }
  size_t place = 0;
  for (size_t joint = 0; joint < joints; joint++) {
    if (model->entries[joint] == NOWHERE) continue;
    position[place] = route->closing.q[model->entries[joint]];
    if (moving) velocity[place] = m->state->qd[model->coordinates[joint]];
    effort[place++] = measured[joint];
  }
  const double *const fields[] = {position, velocity, effort};
  emit_fields(sink, COMPLETED_STATES, &config->outputs.completed[moving + 2 * efforts], fields,
              state->stamp);
}

/* Publish where the joints are although no effort can be computed. */
static void send_positions(machine_t *m, const sink_t *sink, const route_t *route,
                           const layout_t *layout, const joint_state_t *state, bool moving)
{
  if (!m->config->settings.complete) return;
  give_motion(m, route, moving);
  if (route->wrench != NULL)
    memset(route->wrench, 0, sizeof(double) * 6 * (size_t)m->config->model.bodies);
  memcpy(route->closing.guess, m->state->q, sizeof(double) * (size_t)m->config->model.base_nq);
  if (evaluate(m, route, false) != ACCEPTED) return;
  if (moving) complete_velocity(m, route);
  send_completed(m, sink, route, layout, state, moving);
}

static void keep_answer(machine_t *m, const route_t *route, int64_t time)
{
  state_t *s = m->state;
  const size_t ny = (size_t)s->ny, nq = (size_t)s->nq;
  memcpy(s->q, route->closing.q, sizeof(double) * nq);
  memcpy(s->state, route->velocity, sizeof(double) * ny);
  memcpy(s->state + ny, s->q, sizeof(double) * nq);
  memcpy(s->state + ny + nq, route->efforts, sizeof(double) * (size_t)s->actuated);
  memcpy(s->state_joints, route->chosen, (size_t)s->joints);
  s->state_time = time;
  s->answered = true;
  m->route = route;
}

/* Compute the efforts for what is known now. */
static code_t compute(machine_t *m, const route_t *route, int64_t now)
{
  give_motion(m, route, true);
  code_t code = give_base(m, route, now);
  if (code == ACCEPTED) code = give_wrenches(m, route, now);
  if (code == ACCEPTED) code = give_acceleration(m, route, now);
  return code == ACCEPTED ? evaluate(m, route, true) : code;
}

code_t feed_joint_states(machine_t *m, const sink_t *sink, const uint8_t *data, size_t size,
                         moment_t moment)
{
  const int64_t began = monotonic();
  config_t *config = m->config;
  state_t *s = m->state;
  const settings_t *settings = &config->settings;
  joint_state_t state;
  layout_t *layout;
  code_t code = take_joint_state(m, &s->state_layouts, data, size, moment, &state, &layout);
  if (code != ACCEPTED) return code;
  if (layout->repeated) return MISNAMED;
  code = check_sizes(settings, layout, &state);
  if (code != ACCEPTED) return code;
  const int64_t time = state.stamp != 0 ? state.stamp : moment.now;
  if (settings->joint_state_timeout != 0 && time < layout->time) return OUT_OF_ORDER;
  note_time(&s->state_layouts, layout, time);

  uint8_t *has_position = (uint8_t *)(config->scratch), *has_velocity = has_position + s->joints;
  const bool finite = keep(m, layout, &state, time, has_position, has_velocity);
  keep_efforts(m, layout, &state, time);
  const route_t *route;
  code = choose_route(m, has_position, has_velocity, moment.now, finite, &route);
  if (code != ACCEPTED) {
    if (route != NULL && route->determined && code == NO_VELOCITY) {
      const double value = m->detail.value;
      send_positions(m, sink, route, layout, &state, false);
      m->detail.value = value;
    }
    return code;
  }
  code = compute(m, route, moment.now);
  if (code != ACCEPTED) {
    const bool placed = code == NO_REFERENCE || code == NO_WRENCH || code == NO_ACCELERATION
                        || code == PARTIAL || code == NO_BASE_STATE;
    if (placed) send_positions(m, sink, route, layout, &state, true);
    return code;
  }
  keep_answer(m, route, time);
  const size_t limited = pass_gate(m, FEEDFORWARD_GATE, route->efforts, moment, config->scratch);
  const double *const fields[] = {NULL, NULL, config->scratch};
  emit_fields(sink, FEEDFORWARD, &config->outputs.feedforward, fields, state.stamp);
  send_effort_array(m, sink, false, route->efforts, moment);
  const bool listened = settings->complete && sink->listened(sink->context, COMPLETED_STATES);
  const bool damping = settings->on_stale == STALE_DAMPING;
  s->completed = listened || damping || config->observer != NULL;
  if (s->completed) complete_velocity(m, route);
  if (listened) send_completed(m, sink, route, layout, &state, true);
  if (config->observer != NULL) {
    code = observe(m, sink, layout, &state, time);
    if (code != ACCEPTED) reject(m, code, JOINT_STATES, data, size);
  }
  record_answer(&m->states, route->closing.health, limited, state.stamp, moment, began);
  return ACCEPTED;
}
