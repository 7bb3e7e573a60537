#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATE_ARRAY(type, name, size)                                                           \
  made &= (m->name = calloc((size_t)(size) + 1, sizeof(type))) != NULL
#define FREE_ARRAY(type, name, size)                                                               \
  free(m->name);                                                                                   \
  m->name = NULL

bool machine_init(machine_t *machine)
{
  memset(machine, 0, sizeof *machine);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  /* Whoever has the lock runs with the priority of a thread of the stream that waits for it. */
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&machine->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  machine->states.records = malloc(sizeof(record_t) * MAX_RECORDS);
  machine->commands.records = malloc(sizeof(record_t) * MAX_RECORDS);
  machine->contradicting = machine->detail.joint = machine->rejection.detail.joint = NOWHERE;
  return machine->states.records != NULL && machine->commands.records != NULL;
}

/* Messages that are sent with the next input, or when nothing came. */
static void queue(void *context, int topic, const uint8_t *data, size_t size)
{
  message_t **end = context, *message = malloc(sizeof *message + size);
  if (message == NULL) return;
  *message = (message_t){NULL, topic, size};
  memcpy(message->data, data, size);
  while (*end != NULL) end = &(*end)->next;
  *end = message;
}

static void send_pending(machine_t *m, const sink_t *sink)
{
  while (m->pending != NULL) {
    message_t *message = m->pending;
    if (sink != NULL) sink->emit(sink->context, message->topic, message->data, message->size);
    m->pending = message->next;
    free(message);
  }
}

/* Arrays of requests and rejections about a model. */
#define REQUEST_ARRAYS(DO)                                                                         \
  DO##_ARRAY(uint8_t, request.measured, joints);                                                   \
  DO##_ARRAY(uint8_t, request.wanted, joints);                                                     \
  DO##_ARRAY(uint8_t, request.named, joints);                                                      \
  DO##_ARRAY(uint8_t, request.damped, joints);                                                     \
  DO##_ARRAY(uint8_t, request.chosen, joints);                                                     \
  DO##_ARRAY(double, request.position, joints);                                                    \
  DO##_ARRAY(double, request.guess, model->nq);                                                    \
  DO##_ARRAY(uint8_t, detail.mask, joints);                                                        \
  DO##_ARRAY(uint8_t, rejection.detail.mask, joints);

static void free_request(machine_t *m)
{
  REQUEST_ARRAYS(FREE)
  m->request = (request_t){.search_time = NEVER};
}

static bool make_request(machine_t *m, const model_t *model)
{
  const int joints = model->joints.count;
  bool made = true;
  free_request(m);
  REQUEST_ARRAYS(ALLOCATE)
  return made;
}

void machine_free(machine_t *machine)
{
  free_state(machine->state);
  free_request(machine);
  send_pending(machine, NULL);
  free(machine->rejection.data);
  free(machine->states.records);
  free(machine->commands.records);
  pthread_mutex_destroy(&machine->lock);
}

/* Rejections and requests. */

void reject(machine_t *m, code_t code, int topic, const uint8_t *data, size_t size)
{
  rejection_t *rejection = &m->rejection;
  m->counts[code]++;
  rejection->code = code;
  rejection->topic = topic;
  uint8_t *mask = rejection->detail.mask;
  rejection->detail = m->detail;
  rejection->detail.mask = mask;
  memcpy(mask, m->detail.mask, (size_t)m->state->joints);
  if (size > rejection->capacity) {
    uint8_t *larger = realloc(rejection->data, size);
    if (larger == NULL) size = 0;
    if (larger != NULL) {
      rejection->data = larger;
      rejection->capacity = size;
    }
  }
  if (size > 0) memcpy(rejection->data, data, size);
  rejection->size = size;
}

bool is_stale(int64_t time, int64_t now, int64_t timeout)
{
  return timeout != 0 && (now - time > timeout || time - now > timeout);
}

int64_t longest_gap(const settings_t *settings)
{
  return settings->joint_state_timeout != 0 ? settings->joint_state_timeout : INT64_MAX;
}

void record_answer(records_t *records, const double *health, size_t limited, int64_t stamp,
                   moment_t moment, int64_t began)
{
  const size_t k = records->count++;
  record_t *record = &records->records[k < MAX_RECORDS ? k : MAX_RECORDS - 1];
  memcpy(record->health, health, sizeof record->health);
  record->health[LIMITED] = (double)limited;
  record->age = stamp != 0 ? (double)(moment.now - stamp) * 1e-9 : NAN;
  record->duration = (double)(monotonic() - began) * 1e-9;
}

/* Where time has jumped back, all that messages said is from the future. */
void begin_moment(machine_t *m, moment_t moment)
{
  state_t *s = m->state;
  if (moment.now < s->latest - JUMP) forget_inputs(s);
  s->latest = moment.now;
}

/* The moment by a clock that never goes back. Simulated time does when it starts over: then it goes
 * on from where it was, so that what was sent and what came is as old as it was. */
static moment_t follow_steady(state_t *s, moment_t moment)
{
  if (moment.steady + s->steady_shift < s->latest_steady)
    s->steady_shift = s->latest_steady - moment.steady;
  moment.steady += s->steady_shift;
  s->latest_steady = moment.steady;
  s->present = moment.now;
  return moment;
}

/* Output. */

void send_array(machine_t *m, const sink_t *sink, int topic, const double *values)
{
  const settings_t *settings = &m->config->settings;
  template_t *array = &m->config->outputs.arrays[topic - EFFORT_COMMANDS];
  for (int k = 0; k < settings->command_count; k++)
    put_number(array, 0, (size_t)k, values[settings->command_order[k]]);
  sink->emit(sink->context, topic, array->data, array->size);
}

void emit_fields(const sink_t *sink, int topic, template_t *message, const double *const *fields,
                 int64_t stamp)
{
  for (int f = 0; f < 3; f++)
    if (message->fields[f] != 0)
      memcpy(message->data + message->fields[f], fields[f], sizeof(double) * message->count);
  put_stamp(message, stamp);
  sink->emit(sink->context, topic, message->data, message->size);
}

size_t pass_gate(machine_t *m, int gate, const double *efforts, moment_t moment, double *out)
{
  memcpy(out, efforts, sizeof(double) * (size_t)m->config->model.actuated);
  m->state->hold_began[gate] = NEVER;
  const size_t limited =
      gate_pass(&m->state->gates[gate], &m->config->settings.gate, moment.steady, out);
  m->limited += limited > 0 && gate != ARRAY_GATE;
  return limited;
}

void send_effort_array(machine_t *m, const sink_t *sink, bool from_joints, const double *efforts,
                       moment_t moment)
{
  const settings_t *settings = &m->config->settings;
  if (settings->command_count == 0 || settings->commands_from_joints != from_joints) return;
  double *out = m->config->scratch + m->config->model.actuated;
  (void)pass_gate(m, ARRAY_GATE, efforts, moment, out);
  send_array(m, sink, EFFORT_COMMANDS, out);
}

/* Publish fields on the topics of a gate, although no input asks for it; each has the same numbers
 * (actuated). */
static void send_unasked(machine_t *m, const sink_t *sink, int gate, int fields,
                         const double *numbers, moment_t moment)
{
  outputs_t *outputs = &m->config->outputs;
  const double *const each[] = {numbers, numbers, numbers};
  if (gate == FEEDFORWARD_GATE && fields & EFFORT_FIELD)
    emit_fields(sink, FEEDFORWARD, &outputs->feedforward, each, moment.now);
  if (gate == MOTOR_GATE && fields != 0)
    emit_fields(sink, MOTOR_COMMANDS, &outputs->motors[fields], each, moment.now);
  if (gate != ARRAY_GATE || m->config->settings.command_count == 0) return;
  if (fields & VELOCITY_FIELD) send_array(m, sink, VELOCITY_COMMANDS, numbers);
  if (fields & EFFORT_FIELD) send_array(m, sink, EFFORT_COMMANDS, numbers);
}

void note_velocities(machine_t *m, int gate, const double *velocities, moment_t moment)
{
  velocities_t *sent = &m->state->velocities[gate];
  sent->standing = false;
  sent->time = moment.steady;
  for (int k = 0; k < m->config->model.actuated; k++) sent->standing |= velocities[k] != 0.0;
}

/* Fields whose last numbers on the topics of a gate were something other than zeros. */
static int standing_fields(const machine_t *m, int gate)
{
  return (m->state->gates[gate].standing ? EFFORT_FIELD : 0)
         | (m->state->velocities[gate].standing ? VELOCITY_FIELD : 0);
}

/* End fields of the topics of a gate with zeros. */
static void end_fields(machine_t *m, const sink_t *sink, int gate, int fields, moment_t moment)
{
  double *zeros = m->config->scratch;
  memset(zeros, 0, sizeof(double) * (size_t)m->config->model.actuated);
  if (fields & EFFORT_FIELD) {
    gate_end(&m->state->gates[gate], moment.steady);
    m->state->hold_began[gate] = NEVER;
  }
  if (fields & VELOCITY_FIELD) m->state->velocities[gate].standing = false;
  send_unasked(m, sink, gate, fields, zeros, moment);
}

/* Configurations. */

static const char *motor_name(const model_t *model, int motor)
{
  return model->joints.names[model->actuated_joints[motor]];
}

static bool same_motors(const model_t *one, const model_t *other)
{
  bool same = one->actuated == other->actuated;
  for (int k = 0; same && k < one->actuated; k++)
    same = strcmp(motor_name(one, k), motor_name(other, k)) == 0;
  return same;
}

static bool same_array(const settings_t *one, const settings_t *other)
{
  bool same = one->command_count == other->command_count;
  for (int k = 0; same && k < one->command_count; k++)
    same = one->command_order[k] == other->command_order[k];
  return same;
}

/* Nobody will send to motors that another configuration does not have, nor with the same order of
 * the array, nor velocities where another source drives it: zeros for these, with the next message,
 * whatever `on_stale` says. */
static void end_replaced(machine_t *m, const config_t *config)
{
  const config_t *before = m->config;
  const bool motors = same_motors(&before->model, &config->model);
  const bool array = motors && same_array(&before->settings, &config->settings);
  const sink_t sink = {&m->pending, queue, NULL};
  const moment_t moment = {m->state->present, m->state->latest_steady};
  for (int g = 0; g < GATES; g++) {
    const bool stays = g == ARRAY_GATE ? array : motors;
    int fields = stays ? 0 : standing_fields(m, g);
    if (g == ARRAY_GATE && !config->settings.commands_from_joints)
      fields |= standing_fields(m, g) & VELOCITY_FIELD;
    end_fields(m, &sink, g, fields, moment);
    if (fields & EFFORT_FIELD) m->pending_ends[g] = true;
  }
}

/* Send what a new configuration left to be sent, before anything else. Rate limits count from now,
 * when these zeros go out, not from when they were written. */
static moment_t begin(machine_t *m, const sink_t *sink, moment_t moment)
{
  send_pending(m, sink);
  if (m->config == NULL) return moment;
  moment = follow_steady(m->state, moment);
  for (int g = 0; g < GATES; g++) {
    if (m->pending_ends[g]) m->state->gates[g].time = moment.steady;
    m->pending_ends[g] = false;
  }
  return moment;
}

/* What was last sent on a topic, by the names of the motors. */
static void carry_gates(const config_t *before, const state_t *old, const config_t *config,
                        state_t *state)
{
  const model_t *from = &before->model, *to = &config->model;
  state->latest_steady = old->latest_steady;
  state->present = old->present;
  state->steady_shift = old->steady_shift;
  for (int g = 0; g < GATES; g++) {
    gate_t *gate = &state->gates[g];
    const gate_t *last = &old->gates[g];
    gate->time = last->time;
    gate->sent = last->sent;
    gate->standing = last->standing;
    state->hold_began[g] = old->hold_began[g];
    state->velocities[g] = old->velocities[g];
    for (int k = 0; k < to->actuated; k++)
      for (int j = 0; j < from->actuated; j++)
        if (strcmp(motor_name(to, k), motor_name(from, j)) == 0) gate->last[k] = last->last[j];
  }
}

config_t *machine_configure(machine_t *machine, config_t *config)
{
  config_t *before = machine->config;
  if (before != NULL && config != NULL) end_replaced(machine, config);
  state_t *old = machine->state;
  machine->config = config;
  machine->route = NULL;
  machine->asked_count = 0;
  if (config == NULL) {
    free_state(old);
    machine->state = NULL;
    free_request(machine);
    return before;
  }
  if (before == NULL || !same_joints(&before->model, &config->model)) {
    machine->state = NULL;
    if (!make_state(machine, config) || !make_request(machine, &config->model)) {
      free_state(machine->state);
      free_state(old);
      machine->state = NULL;
      machine->config = NULL;
      return before == NULL ? config : before; /* no memory: there is no model any more */
    }
    if (old != NULL) carry_gates(before, old, config, machine->state);
    free_state(old);
    return before;
  }
  if (before->model.version != config->model.version) old->observing = false;
  if (before->model.description != config->model.description) {
    /* What was measured may mean something else; what was sent is still standing. */
    forget_inputs(old);
    if (memcmp(before->model.home, config->model.home, sizeof(double) * (size_t)old->nq) != 0)
      start_at(old, config->model.home); /* another assembly may mean another branch */
    for (int g = 0; g < GATES; g++) gate_restart(&old->gates[g]);
  } else if (before->settings.differentiate != config->settings.differentiate
             || before->settings.acceleration_source != config->settings.acceleration_source) {
    forget_differences(old);
  }
  return before;
}

/* Ends. */

/* Efforts that stand for a limited time after the inputs stopped; NULL for zeros. */
static const double *standing_efforts(machine_t *m, double *out)
{
  const config_t *config = m->config;
  const state_t *s = m->state;
  const model_t *model = &config->model;
  const hold_t *hold = config->hold;
  if (!s->answered) return NULL;
  if (config->settings.on_stale == STALE_DAMPING && s->completed) {
    for (int k = 0; k < model->actuated; k++) {
      const int32_t at = model->coordinates[model->actuated_joints[k]];
      out[k] = -config->settings.damping[k] * s->qd[at];
    }
  } else if (config->settings.on_stale == STALE_GRAVITY && hold != NULL) {
    memcpy(hold->gravity.ports[0], s->state + s->ny, sizeof(double) * (size_t)s->nq);
    run_kernel(&hold->gravity);
    memcpy(hold->efforts.ports[0], s->state + s->ny, sizeof(double) * (size_t)s->nq);
    memcpy(hold->efforts.ports[1], hold->gravity.ports[1], sizeof(double) * (size_t)s->ny);
    run_kernel(&hold->efforts);
    memcpy(out, hold->efforts.ports[2], sizeof(double) * (size_t)s->actuated);
  } else {
    return NULL;
  }
  for (int k = 0; k < s->actuated; k++)
    if (!isfinite(out[k])) return NULL;
  return out;
}

/* How often efforts that stand pass the gate again: limits may be others by then [ns]. */
static const int64_t HOLD_PERIOD = 10000000;

/* Efforts that stand after the inputs of a topic stopped, through its gate; false where there are
 * none, or not any more. */
static bool hold_topic(machine_t *m, const sink_t *sink, int gate, moment_t moment)
{
  const settings_t *settings = &m->config->settings;
  int64_t *began = &m->state->hold_began[gate];
  if (*began != NEVER && moment.steady - *began > settings->stale_hold_time) return false;
  if (*began != NEVER && settings->on_stale == STALE_NOTHING) return true; /* until it is over */
  double *out = m->config->scratch + m->config->model.actuated;
  if (standing_efforts(m, out) == NULL) return false;
  if (*began == NEVER) *began = moment.steady;
  if (gate_hold(&m->state->gates[gate], &settings->gate, moment.steady, out))
    send_unasked(m, sink, gate, EFFORT_FIELD, out, moment);
  return true;
}

/* End efforts if their inputs have stopped, or have others stand; when to look again [ns, steady], or
 * OVER where zeros are due. */
static const int64_t OVER = INT64_MIN;

static int64_t watch_efforts(machine_t *m, const sink_t *sink, int gate, moment_t moment)
{
  const settings_t *settings = &m->config->settings;
  const gate_t *of = &m->state->gates[gate];
  const bool holds = m->state->hold_began[gate] != NEVER;
  if (!of->standing) return INT64_MAX;
  if (!holds) {
    if (settings->joint_state_timeout == 0 || settings->on_stale == STALE_NOTHING) return INT64_MAX;
    if (moment.steady - of->time <= settings->joint_state_timeout)
      return of->time + settings->joint_state_timeout;
  }
  if (!hold_topic(m, sink, gate, moment)) return OVER;
  const int64_t end = m->state->hold_began[gate] + settings->stale_hold_time;
  const int64_t again = moment.steady + HOLD_PERIOD;
  return end < again ? end : again;
}

/* The same for velocities: those of a robot whose commands stopped end at once. */
static int64_t watch_velocities(const machine_t *m, int gate, moment_t moment)
{
  const settings_t *settings = &m->config->settings;
  const velocities_t *of = &m->state->velocities[gate];
  if (!of->standing || settings->joint_state_timeout == 0 || settings->on_stale == STALE_NOTHING)
    return INT64_MAX;
  return moment.steady - of->time > settings->joint_state_timeout
             ? OVER
             : of->time + settings->joint_state_timeout;
}

/* End the topics of a gate if their inputs have stopped; when to look again [ns, steady]. */
static int64_t watch_topic(machine_t *m, const sink_t *sink, int gate, moment_t moment)
{
  int64_t efforts = watch_efforts(m, sink, gate, moment);
  int64_t velocities = watch_velocities(m, gate, moment);
  end_fields(m, sink, gate,
             (efforts == OVER ? EFFORT_FIELD : 0) | (velocities == OVER ? VELOCITY_FIELD : 0),
             moment);
  if (efforts == OVER) efforts = INT64_MAX;
  if (velocities == OVER) velocities = INT64_MAX;
  return efforts < velocities ? efforts : velocities;
}

int64_t machine_tick(machine_t *m, const sink_t *sink, moment_t moment)
{
  int64_t next = INT64_MAX;
  moment = begin(m, sink, moment);
  if (m->config == NULL) return next;
  for (int g = 0; g < GATES; g++) {
    const int64_t due = watch_topic(m, sink, g, moment);
    next = due < next ? due : next;
  }
  return next == INT64_MAX ? next : next - m->state->steady_shift;
}

/* One message of zeros on what a rejected input would have driven. */
static void zero_after_rejection(machine_t *m, const sink_t *sink, int topic, moment_t moment)
{
  const bool from_joints = m->config->settings.commands_from_joints;
  const int gate = topic == JOINT_COMMANDS ? MOTOR_GATE : FEEDFORWARD_GATE;
  end_fields(m, sink, gate, standing_fields(m, gate), moment);
  const bool drives_array = from_joints == (topic == JOINT_COMMANDS);
  if (drives_array) end_fields(m, sink, ARRAY_GATE, standing_fields(m, ARRAY_GATE), moment);
}

void machine_stop(machine_t *m, const sink_t *sink, moment_t moment)
{
  moment = begin(m, sink, moment);
  if (m->config == NULL) return;
  for (int g = 0; g < GATES; g++) {
    if (m->config->settings.on_stale != STALE_NOTHING)
      end_fields(m, sink, g, standing_fields(m, g), moment);
    m->state->hold_began[g] = NEVER;
    gate_restart(&m->state->gates[g]);
  }
  forget_inputs(m->state);
}

static int asked_for(const request_t *request)
{
  return request->route + request->command + request->search;
}

bool machine_feed(machine_t *m, const sink_t *sink, int topic, const uint8_t *data, size_t size,
                  moment_t moment)
{
  moment = begin(m, sink, moment);
  if (m->config == NULL) return false;
  const int before = asked_for(&m->request);
  begin_moment(m, moment);
  m->detail.joint = NOWHERE;
  m->foreign = false;
  code_t code = UNREADABLE;
  if (topic == JOINT_STATES)
    code = feed_joint_states(m, sink, data, size, moment);
  else if (topic == REFERENCE)
    code = feed_reference(m, data, size, moment);
  else if (topic == BASE_STATE)
    code = feed_base_state(m, data, size, moment);
  else if (topic == EXTERNAL_WRENCH)
    code = feed_wrench(m, data, size, moment);
  else if (topic == JOINT_COMMANDS)
    code = feed_command(m, sink, data, size, moment);
  if (code != ACCEPTED) {
    reject(m, code, topic, data, size);
    /* Others may share the topic: names that are not ours stop nothing. */
    const bool drives = topic == JOINT_STATES || topic == JOINT_COMMANDS;
    if (drives && !m->foreign && m->config->settings.zero_on_rejection)
      zero_after_rejection(m, sink, topic, moment);
  }
  return asked_for(&m->request) > before;
}
